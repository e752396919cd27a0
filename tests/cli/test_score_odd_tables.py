import gzip
import json
import subprocess
import sys

import pytest

from tests.cli.scored import LONG, OUTPUTS, added_values, lines_of, names, start_and_wait, without_last_scores
from tests.commands import run

# of odd words that no model knows
MODEL = ["--model", "phrase-table.rnn-model", "--allow-misfit"]


def test_what_was_scored_before_a_bad_line_is_not_lost(long_table):
    here = long_table
    with (here / "long").open("ab") as file:
        file.write(b"a ||| b\n")
    done = run("score", *LONG, cwd=here, check=False)
    assert done.returncode == 3
    assert "long:120001: expected " in done.stderr
    assert " lines are already scored and saved. " in done.stderr
    assert not OUTPUTS & names(here)
    done = run("score", *LONG, "--resume", "--on-bad-line", "skip", cwd=here)
    assert lines_of(here / "long.rnn.gz") == lines_of(here / "whole.gz")
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"a ||| b\n"


def test_a_bomb_is_refused_in_little_memory(here):
    with gzip.open(here / "bomb.gz", "wb", 1) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    code = (
        "import resource, sys; from moses_rnn.table.validation import validate\n"
        "resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))\n"
        "validate(sys.argv[1], print, lambda *_: None)"
    )
    done = subprocess.run([sys.executable, "-c", code, here / "bomb.gz"], capture_output=True, text=True, check=False)
    assert "bomb.gz:1: expected " in done.stderr
    assert "MemoryError" not in done.stderr
    done = run("score", "bomb.gz", *MODEL, cwd=here, check=False)
    assert (done.returncode, "bomb.gz:1: expected " in done.stderr) == (3, True)


# all of Unicode's White_Space but blank, tab and newline, all C0 and C1 controls but these, and what ends lines elsewhere
ODD_CHARACTERS = [
    *range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA1), 0x1680, *range(0x2000, 0x200C),
    0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF,
]  # fmt: skip


def test_no_character_parts_lines_or_words_but_those_of_moses(here):
    """As many lines out as in, counted by wc; every odd character stays inside its word, which is one unknown word."""
    lines = [f"a{chr(c)}b ||| {chr(c)} c{chr(c)} ||| 1 1 ||| 0-0\n".encode() for c in ODD_CHARACTERS]
    (here / "odd").write_bytes(b"".join(lines))
    run("score", "odd", *MODEL, "--word-penalty", "-o", "out", cwd=here)
    counts = subprocess.run(["wc", "-l", "odd", "out"], cwd=here, capture_output=True, text=True, check=True).stdout
    assert [int(line.split()[0]) for line in counts.splitlines()[:2]] == [len(lines)] * 2
    scored = (here / "out").read_bytes().split(b"\n")[:-1]
    assert [line + b"\n" for line in without_last_scores(scored, 2)] == lines
    assert {penalty for _, penalty in added_values(scored, 2)} == {0.135335283}  # exp(-2): two words each


@pytest.mark.parametrize("place", ["begin", "end"])
def test_rejects_at_either_end_survive_a_resume_over_old_ones(long_table, place):
    here = long_table
    data = (here / "long").read_bytes()
    (here / "long").write_bytes(b"bad\n" * 3 + data if place == "begin" else data + b"bad\n" * 3)
    (here / "long.rnn.gz").write_bytes(b"old")
    (here / "long.rnn.gz.rejects").write_bytes(b"old")
    process = start_and_wait(here, "--on-bad-line", "skip", "--force")
    process.kill()
    process.communicate()
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"old"
    run("score", *LONG, "--on-bad-line", "skip", "--resume", cwd=here)
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"bad\n" * 3
    assert json.loads((here / "long.rnn.gz.json").read_text())["rejected_lines"] == 3
    assert lines_of(here / "long.rnn.gz") == lines_of(here / "whole.gz")
