"""Every benchmark runs to its end and prints its table: small ones here, on a small table."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from benchmarks.trials import Plan, read_plan
from tests.commands import ROOT, run

pytestmark = pytest.mark.release

CORPUS = ROOT / "examples" / "corpus"
SMALL = ["--preset", "small"]
TEXTS = [CORPUS / "dev", "--source", "en", "--target", "fr"]
RUNS = {
    "score": (["TABLE", *SMALL, "--lines", "600", "--rounds", "1"], "whole program, torch, bf16"),
    "train": (["TABLE", *SMALL, "--no-compile", "--pairs", "300", "--one-thread"], "+ 512 pairs a minibatch"),
    "table": (["TABLE", "--rounds", "1"], "all but scoring, all threads together"),
    "growth": (["--most", "1000", "--rounds", "1"], "       1,000 "),
    "accuracy": (["TABLE", "--model", "MODEL", "--pairs", "300"], "fp32, 1 000 pairs scored alone"),
    "sentences": (
        [*TEXTS, "--hidden-size", "16", "--sentences", "4", "--list", "5", "--batches", "1", "--rounds", "1"],
        "all sentences together",
    ),
    "scaling": (["TABLE", "--rounds", "1", "--speed", "1e5", "--workers", "1,3"], "threads: the driver alone"),
    "shared_cores": (["TABLE", "--seconds", "0.2", "--rounds", "1"], "moses-rnn-score --precision bf16"),
}


def bench(name, *arguments):
    return finished(name, *arguments).stdout


def finished(name, *arguments):
    command = [sys.executable, ROOT / "benchmarks" / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_prints_its_table(name, table, model, tmp_path):
    arguments, line = RUNS[name]
    here = {"TABLE": table, "MODEL": model}
    printed = bench(
        name, *(here.get(word, word) for word in arguments), *(["--json", tmp_path / "j"] * (name != "accuracy"))
    )
    assert line in printed
    assert re.search(r"\d", printed.split(line)[1])
    assert name == "accuracy" or json.loads((tmp_path / "j").read_text())


@pytest.mark.slow
def test_a_cluster_is_measured_too(table, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'benchmarks'}")
    printed = bench("scaling", table, "--rounds", "1", "--speed", "1e5", "--workers", "1", "--ray", "local")
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


def trials(folder, *words, plan=PLAN):
    (folder / "plan.toml").write_text(plan)
    command = [sys.executable, ROOT / "benchmarks" / "trials.py", folder / "plan.toml", folder / "runs", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_trials_are_a_table_with_spread_and_are_continued(tmp_path):
    failed = trials(tmp_path, "code=4", "--at-once", "2")
    assert failed.returncode == 1
    assert "small, seed 1: code 4 of: sh -c" in failed.stderr
    assert "| small | 0 | – |  |" in failed.stdout
    shutil.rmtree(tmp_path / "runs" / "small.1")
    other = trials(tmp_path)
    assert other.returncode == 3  # other commands in the folder of the first ones
    assert "expected the commands and settings of the plan" in other.stderr
    shutil.rmtree(tmp_path / "runs")
    assert trials(tmp_path, "--only", "small").returncode == 0
    times = tmp_path / "runs" / "small.1" / "times"
    assert times.read_text() == "\n"
    done = trials(tmp_path)
    assert done.stdout.splitlines() == [
        "| trial | seeds | cost | Δ |",
        "|---|---|---|---|",
        "| small | 2 | 1.015 ± 0.00707 |  |",
        "| large one | 2 | 3.015 ± 0.00707 | +2 |",
    ]
    assert times.read_text() == "\n"  # nothing ran twice
    assert trials(tmp_path, "--report").stdout == done.stdout


def test_stopped_trials_begin_no_other_and_are_continued(tmp_path):
    stopped = trials(tmp_path, "code=75")
    assert stopped.returncode == 75
    assert "the same command continues" in stopped.stderr
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
    done = trials(tmp_path, plan=plan)
    assert (done.returncode, done.stdout) == (3, "")
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
    plan = Plan(read_plan(path), tmp_path / "missing.runs", values)
    for trial in (plan.before(), *(runs[0] for runs in plan.trials([]).values())):
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
    printed = bench("walk", "--list", "validate", table)
    figures = re.search(
        r"\n +files +functions +their lines +changes of file\n +(\d+) +(\d+) +([\d,]+) +(\d+)\n", printed
    )
    files, functions, lines, changes = (int(figure.replace(",", "")) for figure in figures.groups())
    assert re.search(r"\n\ncli/validate\.py: [\d,]+ lines\n(  +\d+ .*\n)*  +\d+ main\n", printed)
    assert len(re.findall(r"\n\n\w+(?:/\w+)?\.py: ", printed)) == files > 4
    assert len(re.findall(r"\n +\d+ [\w.<>]+", printed.partition(": ")[2])) == functions > files
    assert lines > functions
    assert files <= changes + 1


def test_make_bench_takes_the_example_unless_told_otherwise():
    def plan(*words):
        done = subprocess.run(["make", "-n", "-C", ROOT, "bench", *words], capture_output=True, text=True, check=True)
        return re.findall(r"benchmarks/(?:score|train|shared_cores)\.py +(\S+)", done.stdout)

    assert plan() == ["examples/phrase-table.gz"] * 3
    assert plan("TABLE=mine.gz") == ["mine.gz"] * 3
