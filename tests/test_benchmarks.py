"""Every benchmark runs to its end and prints its table: small ones here, on a small table."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from benchmarks.trials import read_plan, runs_of
from tests.commands import ROOT, run

pytestmark = pytest.mark.release

CORPUS = ROOT / "examples" / "corpus"
RUNS = {
    "score": "TABLE --model MODEL --lines 600 --rounds 1",
    "train": "TABLE --preset small --no-compile --pairs 300 --one-thread",
    "table": "TABLE --rounds 1",
    "growth": "--most 1000 --rounds 1",
    "sentences": f"{CORPUS}/dev --source en --target fr --hidden-size 16 --sentences 4 --list 5 --batches 1 --rounds 1",
    "scaling": "TABLE --rounds 1 --speed 1e5 --workers 1,3",
    "shared_cores": "TABLE --rounds 1",
}


def bench(name, *arguments, code=0):
    command = [sys.executable, ROOT / "benchmarks" / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    return done


def numbers(record):
    """All numbers of a record."""
    if isinstance(record, int | float):
        return [record]
    parts = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return [number for part in parts for number in numbers(part)]


@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_prints_the_figures_that_it_writes(name, table, model, tmp_path):
    words = RUNS[name].replace("TABLE", str(table)).replace("MODEL", str(model)).split()
    printed = bench(name, *words, "--json", tmp_path / "j").stdout
    found = numbers(json.loads((tmp_path / "j").read_text()))
    assert found
    assert min(found) > 0
    assert re.search(r"(\d.* ){2}", printed)


@pytest.mark.slow
def test_a_cluster_is_measured_too(table):
    pytest.importorskip("ray")
    printed = bench("scaling", table, "--rounds", "1", "--speed", "1e5", "--workers", "1", "--ray", "local").stdout
    assert "ray: the driver alone" in printed


PLAN = """
seeds = [1, 2]
before = ["tee {folder}/log"]
commands = ["cat {run}/settings.toml", "sh -c 'echo >> {run}/times; echo {word}; exit {code}'"]
settings = "cost {cost}{seed}"
read = {cost = 'cost (.*)'}
every = {code = 0, word = "one"}
[trial.small]
cost = 1.0
[trial."large one"]
cost = 3.0
"""


def trials(folder, *words, plan=PLAN, code=0):
    (folder / "plan.toml").write_text(plan)
    return bench("trials", folder / "plan.toml", folder / "runs", *words, code=code)


def test_trials_are_a_table_with_spread_and_are_continued(tmp_path):
    failed = trials(tmp_path, "code=4", "--at-once", "2", code=1)
    assert "small, seed 1: code 4 of: sh -c" in failed.stderr
    assert "| small | 0 | – |  |" in failed.stdout
    shutil.rmtree(tmp_path / "runs" / "small.1")
    other = trials(tmp_path, code=3)  # other commands in the folder of the first ones
    assert "expected what the plan says" in other.stderr
    shutil.rmtree(tmp_path / "runs")
    done = trials(tmp_path)
    assert done.stdout.splitlines() == [
        "| trial | seeds | cost | Δ |",
        "|---|---|---|---|",
        "| small | 2 | 1.015 ± 0.00707 |  |",
        "| large one | 2 | 3.015 ± 0.00707 | +2 |",
    ]
    assert trials(tmp_path).stdout == done.stdout
    assert (tmp_path / "runs" / "small.1" / "times").read_text() == "\n"  # nothing ran twice


def test_stopped_trials_begin_no_other_and_are_continued(tmp_path):
    assert "the same command continues" in trials(tmp_path, "code=75", code=75).stderr
    assert not (tmp_path / "runs" / "small.2" / "log").exists()


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        (PLAN + "cots = 1\n[trials]\n", "found trials"),
        (PLAN.replace("{cost}", "{cots}"), "{cots}"),
        (PLAN.replace("(.*)", ".*"), "one group"),
        ("seeds = [1", "plan in TOML"),
        ("seeds = [1]\n", "expected commands"),
    ],
)
def test_what_is_no_plan_is_refused(plan, named, tmp_path):
    done = trials(tmp_path, plan=plan, code=3)
    assert done.stdout == ""
    assert named in done.stderr


def command_lines(trial):
    """The commands of a trial as words; in place of the pipeline those to which it hands options."""
    for words in map(shlex.split, trial.commands):
        if "pipeline" in words:
            flags = dict(word.split("=", 1) for word in words if "=" in word)
            yield ["moses-rnn-train", "missing", *flags["TRAIN_FLAGS"].split()]
            yield ["moses-rnn-score", "missing", *flags["SCORE_FLAGS"].split()]
        else:
            yield words


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "plans").glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_name_commands_options_and_settings_that_there_are(path, tmp_path):
    needed = re.findall(r"(\w+)=", path.read_text(encoding="utf-8").partition("\nseeds")[0])
    values = dict.fromkeys(needed, "missing") | {"minutes": "1", "words": "9"}
    before, trials = runs_of(read_plan(path), tmp_path / "missing.runs", values)
    for trial in (before, *(runs[0] for runs in trials.values())):
        trial.folder.mkdir(parents=True)
        (trial.folder / "settings.toml").write_text(trial.settings)
        for first, *words in command_lines(trial):
            name = first.partition("moses-rnn-")[2] or words.pop(0)
            done = run(name, *words, cwd=tmp_path, check=False)
            # All that is wrong is that there are no such files
            assert done.returncode == 3, done.stderr
            assert "missing" in done.stderr
            assert "settings.toml" not in done.stderr


def test_a_walk_counts_what_a_command_enters(table):
    printed = bench("walk", "--list", "validate", table).stdout
    figures = re.search(
        r"\n +files +functions +their lines +changes of file +of them back\n +(\d+) +(\d+) +([\d,]+) +(\d+) +(\d+)\n",
        printed,
    )
    files, functions, lines, changes, back = (int(figure.replace(",", "")) for figure in figures.groups())
    assert re.search(r"\n\ncli/validate\.py: [\d,]+ lines\n(  +\d+ .*\n)*  +\d+ main\n", printed)
    assert len(re.findall(r"\n\n\w+(?:/\w+)?\.py: ", printed)) == files > 4
    assert len(re.findall(r"\n +\d+ [\w.<>]+", printed.partition(": ")[2])) == functions > files
    assert lines > functions
    assert back == changes - (files - 1) >= 0
