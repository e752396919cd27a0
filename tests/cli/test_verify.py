"""moses-rnn verify without a Moses: a table beside its ini, and what is made of what a decoder saw.

With the real decoders it is tested in tests/moses/test_verify.py.
"""

import json

import pytest

from moses_rnn.cli import verify as command
from moses_rnn.cli.command import print_json
from moses_rnn.moses import decoder
from moses_rnn.moses.decoder import Comparison
from tests.analysis.scored import sign
from tests.commands import run

GOOD = Comparison("text", pairs=2, values=4)
WRONG = Comparison("ondisk", pairs=2, values=4, missing=[(b"a", b"b")])
FAILED = Comparison("compact", failure="processPhraseTableMin ended with code 1")


@pytest.mark.parametrize(
    ("seen", "code", "said"),
    [
        ([GOOD], 0, ""),
        ([GOOD, WRONG], 3, "t: the decoder does not see what the table says\n"),
        ([WRONG, FAILED, GOOD], 1, "t: some comparisons are missing: a Moses program failed\n"),
        ([Comparison("text")], 3, "t: the decoder does not see what the table says\n"),
    ],
    ids=["good", "wrong", "failed", "nothing"],
)
def test_what_the_decoder_saw_is_printed_and_judged(tmp_path, monkeypatch, capsys, seen, code, said):
    (tmp_path / "t").write_text("a ||| b ||| 1\n")
    monkeypatch.setattr(command, "end_cleanly_on_sigterm", lambda: None)
    monkeypatch.setenv("MOSES_ROOT", "moses")
    monkeypatch.setattr(decoder, "verify", lambda *_, **__: seen)
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as leaving:
            command.main([str(tmp_path / "t"), *options])
        output, messages = capsys.readouterr()
        assert (leaving.value.code, messages.endswith(said)) == (code, True)
        if options:
            kinds = json.loads(output)["kinds"]
            assert [(one["kind"], one["good"]) for one in kinds] == [(one.kind, one.good) for one in seen]
        else:
            assert output == "".join(f"{line}\n" for one in seen for line in one.summary())


def test_numbers_that_json_does_not_know_are_null(capfd):
    print_json({"a": [float("inf"), 0.5], "b": {"c": float("nan")}, "d": "é\udcff"})
    assert capfd.readouterr().out == '{"a": [null, 0.5], "b": {"c": null}, "d": "\\u00e9\\udcff"}\n'


def test_logarithms_are_refused(tmp_path):
    (tmp_path / "t").write_text("a ||| b ||| -1\n")
    sign(tmp_path / "t", {0: {"name": "RNN", "written_as": "natural logarithm"}})
    (tmp_path / "ini").touch()
    done = run("verify", "t", "--moses-ini", "ini", "--no-decoder", cwd=tmp_path, check=False)
    assert (done.returncode, "t: expected probabilities in score 1, found logarithms" in done.stderr) == (3, True)


def test_a_folder_that_is_no_moses_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t").write_text("a ||| b ||| 1\n")
    monkeypatch.setenv("MOSES_ROOT", str(tmp_path))
    done = run("verify", "t", cwd=tmp_path, check=False)
    assert (done.returncode, f"{tmp_path}/bin/moses: expected a program" in done.stderr) == (3, True), done.stderr
