"""moses-rnn-score stopped, killed, resumed; and what it never overwrites.

That nothing is lost at any call to the disk is tested in tests/files/test_resumable.py and tests/faults.
"""

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.scored import INI, LONG, OUTPUTS, names, start_and_wait
from tests.commands import run


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -9),
        (signal.SIGTERM, 75),
        pytest.param(signal.SIGINT, 75, marks=pytest.mark.release),
        pytest.param(signal.SIGUSR1, 75, marks=pytest.mark.release),
    ],
)
def test_stopped_half_way_it_leaves_no_final_file_and_goes_on_to_the_same_bytes(long_table, number, code):
    here = long_table
    process = start_and_wait(here)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == code
    assert not OUTPUTS & names(here)
    if code == 75:
        assert b"lines; the same command with --resume continues" in messages
    again = run("score", *LONG, cwd=here, check=False)
    assert again.returncode == 1
    assert "long.rnn.gz: an interrupted run left part of it; --resume continues, --force starts over" in again.stderr
    run("score", *LONG, "--resume", cwd=here)
    assert (here / "long.rnn.gz").read_bytes() == (here / "whole.gz").read_bytes()
    new, whole = ((here / name).read_text() for name in ("moses.rnn.ini", "whole.ini"))
    assert new.replace(f"{here}/long.rnn.gz", "TABLE") == re.sub(r"/\S+/whole\.gz", "TABLE", whole)
    signatures = [json.loads((here / f"{name}.json").read_text()) for name in ("long.rnn.gz", "whole.gz")]
    assert {**signatures[0], "output": ""} == {**signatures[1], "output": ""}
    assert not [name for name in names(here) if name.startswith(".")]


def test_a_table_that_changes_while_it_is_read_is_refused(long_table):
    process = start_and_wait(long_table)
    with (long_table / "long").open("ab") as file:
        file.write(b"one ||| more ||| 1 1 1 1\n")
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 3
    assert b"long: was changed while it was read; nothing was written" in messages
    assert not OUTPUTS & names(long_table)


def test_resume_without_a_leftover_begins_and_of_what_is_complete_does_nothing(here):
    run("score", "phrase-table.gz", "--resume", cwd=here)
    before = {name: (here / name).stat().st_mtime_ns for name in names(here)}
    done = run("score", "phrase-table.gz", "--resume", cwd=here)
    assert (done.stdout, done.stderr) == (
        "",
        "moses-rnn-score: phrase-table.rnn.gz: already complete; --force makes it again\n",
    )
    assert {name: (here / name).stat().st_mtime_ns for name in names(here)} == before
    again = ["phrase-table.rnn.gz", "--model", "phrase-table.rnn-model", "-o", "twice.gz", "--again", "--word-penalty"]
    run("score", *again, cwd=here)
    assert "twice.gz: already complete" in run("score", *again, "--resume", cwd=here).stderr


@pytest.mark.parametrize(
    "options", [[], ["--word-penalty", "--moses-ini", "moses.ini"], ["--shard", "2/2"]], ids=" ".join
)
def test_the_summary_for_programs_is_that_of_the_run_that_made_the_table(here, options):
    (here / "moses.ini").write_text(INI)
    first = run("score", "phrase-table.gz", *options, "--json", "--resume", cwd=here)
    again = run("score", "phrase-table.gz", *options, "--json", "--resume", cwd=here)
    assert "already complete" in again.stderr
    made, found = json.loads(first.stdout), json.loads(again.stdout)
    assert found.keys() == made.keys()
    assert found["lines"] == 3000 or options[:1] == ["--shard"]
    shares = [
        column.pop(key) for one in (made, found) for column in one["columns"] for key in [*column] if "share" in key
    ]
    assert shares[: len(shares) // 2] == pytest.approx(shares[len(shares) // 2 :])
    assert found == made


@pytest.mark.parametrize("change", [{"added_columns": [{"index": 4, "name": "RNN"}]}, {"lines": "many"}], ids=str)
def test_counts_that_a_signature_lacks_are_not_summed_up(here, change):
    run("score", "phrase-table.gz", cwd=here)
    signature = here / "phrase-table.rnn.gz.json"
    signature.write_text(json.dumps(json.loads(signature.read_text()) | change))
    done = run("score", "phrase-table.gz", "--json", "--resume", cwd=here, check=False)
    assert (done.returncode, done.stdout, "counts" in done.stderr) == (1, "", True)


def change_model(here):
    """The last weight is another one, and no file is newer than the table."""
    config, model = (here / "phrase-table.rnn-model" / name for name in ("config.json", "model.safetensors"))
    weights = model.read_bytes()
    model.write_bytes(weights[:-4] + bytes([weights[-4] ^ 1]) + weights[-3:])
    record = json.loads(config.read_text())
    record["files"][model.name] = hashlib.sha256(model.read_bytes()).hexdigest()
    config.write_text(json.dumps(record))
    for file in (config, model):
        os.utime(file, (0, 0))


def other_ini(here):
    for name in ("moses.ini", "moses.rnn.ini"):
        (here / name).write_text(INI.format(table=here / "phrase-table.gz"))
        os.utime(here / name, (0, 0))


def change_table(here):
    """Another one of that name, older than the scored one."""
    with gzip.open(here / "phrase-table.gz", "ab") as file:
        file.write(b"zzz ||| z ||| 1 1 1 1\n")
    os.utime(here / "phrase-table.gz", (0, 0))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda here: os.utime(here / "phrase-table.gz"), [], "already exists, and phrase-table.gz has changed since"),
        (change_model, [], "signature differs in models;"),
        (lambda here: None, ["--floor", "-50"], "signature differs in added columns;"),
        (lambda here: None, ["--word-penalty"], "signature differs in added columns, columns;"),
        (lambda here: (here / "phrase-table.rnn.gz.json").unlink(), [], "phrase-table.rnn.gz: already exists"),
        (lambda here: (here / "ini").write_text(INI), ["--moses-ini", "ini"], "already exists"),
        (other_ini, ["--moses-ini", "moses.ini"], "already exists with other content than this run writes"),
        (lambda here: None, ["--shard", "1/2", "-o", "phrase-table.rnn.gz"], "differs in shard;"),
        (lambda here: None, ["--precision", "bf16"], "differs in precision;"),
        (change_table, [], "differs in input content;"),
    ],
    ids=["another table", "another model", "another floor", "another column", "no signature", "no ini yet", "another ini", "a shard", "another precision", "another table of that name"],
)  # fmt: skip
def test_what_is_complete_may_be_of_another_run(here, change, options, message):
    run("score", "phrase-table.gz", cwd=here)
    change(here)
    done = run("score", "phrase-table.gz", *options, "--resume", cwd=here, check=False)
    assert (done.returncode, message in done.stderr) == (1, True)
    assert ".phrase-table.rnn.gz.state" not in names(here)


def test_a_stop_is_noticed_while_a_pipe_is_silent(here):
    command = Path(sys.executable).with_name("moses-rnn-score")
    process = subprocess.Popen(
        [command, "-", "--model", "phrase-table.rnn-model", "-o", "t.gz"],
        cwd=here, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(b"a ||| b")
    process.stdin.flush()
    while ".t.gz.lock" not in names(here):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 75
    messages = process.stderr.read()
    process.stdin.close()
    process.stderr.close()
    assert b"stopped after 0 lines; a run through a pipe cannot be resumed" in messages
    assert names(here) == {"phrase-table.gz", "phrase-table.rnn-model"}


SIGNAL_WHILE_TORCH_LOADS = """
import importlib, os, signal, sys
class Early:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGUSR1)
sys.meta_path.insert(0, Early())
importlib.import_module(f"moses_rnn.cli.{sys.argv[1]}").main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    "command",
    [
        "score phrase-table.gz -o t.gz",
        pytest.param("train phrase-table.gz --model new", marks=pytest.mark.release),
        pytest.param("merge t.gz whole.gz", marks=pytest.mark.release),
    ],
)
def test_a_signal_while_torch_loads_is_a_stop(here, command):
    if "merge" in command:
        run("score", "phrase-table.gz", "--shard", "1/1", "-o", "whole.gz", "-q", cwd=here)
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_WHILE_TORCH_LOADS, *command.split()], cwd=here, capture_output=True, check=False
    )
    assert done.returncode == 75
    assert b"stopping after saving what is done" in done.stderr
    assert not {"t.gz", "new"} & names(here)


def test_a_second_signal_ends_at_once(here):
    """The first one is noticed while a pipe is silent only when somebody looks; the second needs nobody."""
    code = "from moses_rnn.cli.command import StopRequest; StopRequest.__call__ = lambda _: False; import sys; from moses_rnn.cli.score import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "-", "--model", "phrase-table.rnn-model", "-o", "t.gz"],
        cwd=here, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while ".t.gz.lock" not in names(here):
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert process.wait(timeout=30) == 130
    process.stdin.close()
