"""A signature is carried over only if it is of the table as it is now."""

import hashlib
import json

import pytest

from moses_rnn.cli.signatures import sound_signature


def signature(content):
    return {"program": "moses_rnn 1", "file": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}}


CASES = {
    "sound": (json.dumps(signature(b"a table")), ""),
    "of other bytes": (json.dumps(signature(b"another")), "Its signature is not carried over.\n"),
    "something else": ("{}", "is not a signature of moses-rnn-score, and is not carried over\n"),
    "none": (None, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_of_this_table_is_not_carried_over(tmp_path, capsys, case):
    text, message = CASES[case]
    (tmp_path / "t").write_bytes(b"a table")
    if text is not None:
        (tmp_path / "t.json").write_text(text)
    assert sound_signature(str(tmp_path / "t")) == (signature(b"a table") if case == "sound" else None)
    assert capsys.readouterr().err.endswith(message)
