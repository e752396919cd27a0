"""moses-rnn verify without a Moses: a table beside its ini, and what is made of what a decoder saw.

With the real decoders it is tested in tests/moses/test_verify.py.
"""

import pytest

from moses_rnn.cli import verify as command
from moses_rnn.moses import decoder
from moses_rnn.moses.decoder import Comparison
from moses_rnn.moses.dictionaries import KINDS
from tests.commands import run

GOOD = Comparison("text", pairs=2, values=4)
WRONG = Comparison("ondisk", pairs=2, values=4, missing=[(b"a", b"b")])
FAILED = Comparison("compact", failure="processPhraseTableMin ended with code 1")


@pytest.fixture
def verify(tmp_path, monkeypatch, capsys):
    """The command in this process, on a decoder that saw what the test says: exit code, output, messages."""
    (tmp_path / "t").write_text("a ||| b ||| 1\n")
    monkeypatch.setattr(command, "end_cleanly_on_sigterm", lambda: None)
    monkeypatch.setenv("MOSES_ROOT", "moses")
    monkeypatch.setattr("sys.argv", ["moses-rnn verify"])

    def verify_with(seen, *arguments):
        requests = []

        def look(_table, _moses, kinds, log, **options):
            requests.append({"kinds": kinds, **options})
            log("text: moses translates")
            return seen

        monkeypatch.setattr(decoder, "verify", look)
        with pytest.raises(SystemExit) as leaving:
            command.main([str(tmp_path / "t"), *arguments])
        return leaving.value.code, *capsys.readouterr(), *requests

    return verify_with


def test_what_the_decoder_saw_is_printed_and_judged(verify):
    code, output, messages, request = verify([GOOD])
    assert (code, messages) == (0, "text: moses translates\n")
    assert output == "text     ok: 2 pairs, 4 values, max |Δ| 0\n"
    assert request == {"kinds": tuple(KINDS), "sources": 300, "whole": False, "own": None}


def test_options_reach_the_verification(verify):
    options = ["--kind", "text", "--kind", "compact", "--sources", "7", "--whole"]
    *_, messages, request = verify([GOOD], *options)
    assert messages == "text: moses translates\n"
    assert request == {"kinds": ("text", "compact"), "sources": 7, "whole": True, "own": None}


def test_what_the_table_does_not_say_is_a_rejection(verify):
    code, output, messages, _ = verify([GOOD, WRONG])
    assert code == 3
    assert output.count("\n") == 3
    assert messages.endswith("t: the decoder does not see what the table says\n")


def test_a_program_that_failed_is_a_failure_whatever_else_was_wrong(verify):
    code, output, messages, _ = verify([WRONG, FAILED, GOOD])
    assert code == 1
    assert "compact  FAILED: processPhraseTableMin ended with code 1\n" in output
    assert messages.endswith("t: not everything could be compared: a program of Moses failed\n")


def test_nothing_compared_is_not_as_the_table_says(verify):
    assert verify([Comparison("text")])[0] == 3


def test_a_folder_that_is_no_moses_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t").write_text("a ||| b ||| 1\n")
    monkeypatch.setenv("MOSES_ROOT", str(tmp_path))
    done = run("verify", "t", cwd=tmp_path, check=False)
    assert (done.returncode, f"{tmp_path}/bin/moses: expected a program" in done.stderr) == (3, True), done.stderr
