"""moses-rnn validate: what it measures, counts, shows and refuses."""

import gzip
import hashlib
import json
import os
import subprocess

import pytest

from tests.commands import run

GOOD = b"a b ||| c ||| 0.5 1 ||| 0-0 1-0 ||| 2 2 1 ||| |||\n"
OTHER = b"a c ||| d ||| 1 0.25 ||| 0-0 ||| 2 2 1 ||| |||\n"


def validate(tmp_path, data, *options, check=True, name="t"):
    (tmp_path / name).write_bytes(data)
    return run("validate", name, *options, cwd=tmp_path, check=check)


@pytest.mark.parametrize(
    ("name", "packed", "warned"),
    [("t.gz", False, True), ("t.gz", True, False), ("t", False, False), ("t", True, False)],
)
def test_plain_text_under_the_name_of_a_compressed_file_is_warned_of(tmp_path, name, packed, warned):
    done = validate(tmp_path, gzip.compress(GOOD) if packed else GOOD, name=name)
    assert (
        f"warning: {name}: is plain text, but Moses expects compressed text under this name" in done.stderr
    ) == warned


def test_sorted_means_what_sort_means(tmp_path):
    for lines in ([GOOD, GOOD.replace(b"0.5", b"0.1")], [GOOD, GOOD.replace(b"0.5", b" 0.5")]):
        assert validate(tmp_path, b"".join(lines), "--sorted", check=False).returncode == 3
        validate(tmp_path, b"".join(reversed(lines)), "--sorted")


def test_sources_are_counted_only_if_equal_ones_follow_each_other(tmp_path):
    assert (
        "\n  sources: 2\n  longest source: 2 words, longest target: 1 word\n" in validate(tmp_path, GOOD + OTHER).stdout
    )
    unsorted = GOOD + OTHER + GOOD
    assert "sources: not counted, because the table is not sorted" in validate(tmp_path, unsorted).stdout
    assert json.loads(validate(tmp_path, unsorted, "--json").stdout)["sources"] is None


def test_pipes_are_never_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe.json").write_text(
        json.dumps({"program": "moses_rnn 1", "lines": 1, "columns": 2, "file": {"bytes": 1}})
    )
    done = run("validate", "pipe", "--quick", cwd=tmp_path, check=False)
    assert (done.returncode, "pipe: expected a regular file" in done.stderr) == (3, True)
    with subprocess.Popen(["sh", "-c", "printf 'a ||| b ||| 1 1\\n' > pipe"], cwd=tmp_path):
        assert "signature: none beside it" in run("validate", "pipe", cwd=tmp_path).stdout


@pytest.mark.parametrize("program", ["moses_rnn \ud800", "moses_rnn \x1b[31m"])
def test_signatures_cannot_command_a_terminal(tmp_path, program):
    digest = {"bytes": len(GOOD), "sha256": hashlib.sha256(GOOD).hexdigest()}
    (tmp_path / "t.json").write_text(json.dumps({"program": program, "lines": 1, "columns": 2, "file": digest}))
    for options in ([], ["--quick"]):
        done = validate(tmp_path, GOOD, *options)
        assert "\x1b" not in done.stdout + done.stderr
