"""moses-rnn-analyse trials: the whole of it with programs that stand in for Moses, and once with a real one."""

import gzip
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from moses_rnn.cli.analyse.trials import Progress
from tests.cli.analyse.calls import invoke, seen
from tests.commands import ROOT, run, start
from tests.conftest import EXAMPLES
from tests.trials import PLAN, calls_of, write_place, write_plan, write_programs


@pytest.fixture(autouse=True)
def signals_as_they_were():
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGUSR1
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a plan and programs that stand in for others."""
    monkeypatch.setattr("moses_rnn.moses.pipeline.commands_folder", lambda: tmp_path / "bin")
    write_place(tmp_path)
    return tmp_path


def rows(text):
    """Cells of a table's lines by its first column."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for line in lines if (cells := [cell.strip() for cell in line.strip("| ").split("|")])}


def test_trials_become_a_table_and_what_is_done_stays_done(place):
    done = invoke("trials", place / "plan.toml", "--samples", 50)
    table = rows(done.stdout)
    assert list(table) == ["trial", "Baseline", "plain", "drop-0.5", "drop-0.9", "pair"]
    assert table["trial"][3:8] == ["dev BLEU", "one BLEU", "Δ", "p by seed", "two BLEU"]
    for name in ("plain", "drop-0.5", "pair"):
        assert table[name][:5] == [
            "mert",
            "1.500",
            "8.0" if name == "pair" else "2.0",
            "100.00 ± 0.00",
            "100.00 ± 0.00",
        ]
        assert float(table[name][5]) > 5
        assert all(float(p) < 0.05 for p in table[name][6].split(", "))
    assert table["drop-0.9"][5:7] == ["+0.00", "1.000, 1.000"]
    assert table["pair"][-1] == "networks 1+2, inverse true"
    assert table["drop-0.5"][-1] == "train.dropout 0.5"
    assert (
        "1 of 12: texts and table" in done.stderr
    )  # with a baseline, seven networks less the one shared, four systems
    train, score, mert = (
        place / "bin" / "moses-rnn-train", place / "bin" / "moses-rnn-score", place / "moses/scripts/training/mert-moses.pl"
    )  # fmt: skip
    assert [len(calls_of(program)) for program in (train, score, mert)] == [6, 4, 10]
    assert [re.findall(r"--(?:inverse-)?model|--combine mean-log", call) for call in calls_of(score)][-1] == [
        "--model", "--model", "--inverse-model", "--inverse-model", "--combine mean-log",
    ]  # fmt: skip
    again = invoke("trials", place / "plan.toml", "--samples", 50, "--quiet")
    assert (again.stdout, again.stderr) == (done.stdout, "")
    assert [len(calls_of(program)) for program in (train, score, mert)] == [6, 4, 10]
    assert invoke("trials", place / "plan.toml", "--samples", 50, "--report").stdout == done.stdout


def test_a_changed_plan_is_noticed_and_only_what_it_changes_runs_anew(place):
    two = ["--samples", 10, "--only", "plain", "--only", "drop-0.5"]
    invoke("trials", place / "plan.toml", *two)
    plan = PLAN.replace('name = "plain"', 'name = "plain"\ntrain = {dropout = 0.25}').replace(
        "[1, 2]\n\n", "[1, 2, 3]\n\n"
    )
    done = invoke("trials", write_plan(place, plan), *two)
    (changed,) = [line for line in done.stderr.splitlines() if "the plan has changed" in line]
    assert changed.startswith(
        'plain: the plan has changed, so this runs anew (train was [["--hidden-size=64", "--seed=1"]], is '
        '[["--dropout=0.25", "--hidden-size=64", "--seed=1"]]); what was made before is in '
    )
    assert len(calls_of(place / "bin" / "moses-rnn-train")) == 3
    assert len(calls_of(place / "moses/scripts/training/mert-moses.pl")) == 6 + 3 + 1 + 1  # a third seed for the others
    assert len(list((place / "work" / "trials").glob("plain.*"))) == 2
    assert rows(done.stdout)["plain"][-1] == "train.dropout 0.25"


def test_the_failure_of_a_trial_loses_no_other(place):
    plan = write_plan(place, PLAN.replace("0.9", "0.7"))
    few = ["--samples", 10, "--only", "drop-0.7", "--only", "plain"]
    done = invoke("trials", plan, *few, code=1)
    table = rows(done.stdout)
    assert table["drop-0.7"][0] == "failed: network of drop-0.7, seed 1"
    assert table["plain"][1] == "1.500"
    log = next((place / "work" / "networks").glob("*/make.log"))
    assert "network of drop-0.7, seed 1: make ended with code 2; the whole log: " in done.stderr
    assert "no such luck" in done.stderr
    assert log.exists()
    assert done.stderr.splitlines()[-1].endswith("1 of 2 trials failed: drop-0.7")
    report = invoke("trials", plan, *few, "--report")
    assert rows(report.stdout)["drop-0.7"][0] == "not done"
    (translation,) = (place / "work" / "trials").glob("plain.*/decode/rnn.2.two.fr")
    whole = translation.read_text()
    translation.write_text("one line\n")
    cut = invoke("trials", plan, *few, code=1)
    assert rows(cut.stdout)["plain"][0] == "failed: rnn, seed 2: expected 24 lines of two, found 1"
    translation.write_text(whole)
    write_programs(place / "bin", {"moses-rnn-train": 'mkdir -p "$3"'})  # mended, it runs the rest
    assert rows(invoke("trials", plan, *few).stdout)["drop-0.7"][1:3] == ["", "0.0"]


def test_what_is_missing_is_shown_once(place):
    (place / "data" / "one.fr").unlink()
    done = invoke("trials", place / "plan.toml", code=1)
    assert done.stderr.count(f"missing: {place}/data/one.fr or {place}/data/one.fr.gz: a corpus (TEST=)") == 1
    assert {cells[0] for name, cells in rows(done.stdout).items() if name != "trial"} == {"failed: texts and table"}


def test_a_dry_run_prints_commands_that_can_be_run(place):
    done = invoke("trials", place / "plan.toml", "--dry-run", "--only", "pair")
    assert not (place / "work").exists()
    lines = done.stdout.splitlines()
    heads, commands = lines[::2], lines[1::2]
    assert heads == [
        "# texts and table", "# baseline, mert", "# network of pair, seed 1", "# network of pair, seed 2",
        "# network of pair, seed 1, inverse", "# network of pair, seed 2, inverse", "# pair",
    ]  # fmt: skip
    words = shlex.split(commands[2])
    assert words[:2] == ["moses-rnn-pipeline", "train-rnn"]
    assert "TRAIN_FLAGS=--hidden-size=64 --seed=1" in words
    assert f"PHRASE_TABLE={place}/data/phrase-table.gz" in words


def test_make_has_a_target_for_it(tmp_path):
    """A dry run: it installs nothing."""
    command = ["make", "-n", "-C", ROOT, f"VENV={tmp_path}/venv", "trials", "PLAN=my.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{tmp_path}/venv/bin/moses-rnn-analyse trials my.toml" in done.stdout


def test_the_documented_plan_is_one(tmp_path):
    (text,) = re.findall("```toml\n(.*?)```", (ROOT / "docs" / "trials.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "trials.toml").write_text(text)
    done = invoke("trials", tmp_path / "trials.toml", "--dry-run")
    assert [line for line in done.stdout.splitlines() if line.startswith("# ")][-1] == "# ensemble"


def test_progress_on_a_terminal_is_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = Progress(3, quiet=False)
    progress.begin(type("Step", (), {"name": "plain", "folder": "x"}))
    progress.end()
    progress.close()
    shown = capsys.readouterr().err
    assert "plain 0:00:00" in shown
    assert "1/3" in shown
    assert "1 of 3" not in shown


# --- stopped, and with real programs --------------------------------------------------------------------------------------


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """A place whose make, the real one put aside, waits."""
    write_place(tmp_path)
    write_programs(tmp_path / "path", {"make": f"echo $$ > {tmp_path}/pid; exec sleep 60"})
    monkeypatch.setenv("PATH", f"{tmp_path}/path:/usr/bin:/bin")
    return tmp_path


def begun(place):
    """Wait until make is at work; its process's number."""
    for _ in range(600):
        if (place / "pid").exists() and (text := (place / "pid").read_text()):
            return int(text)
        time.sleep(0.1)
    raise AssertionError("make was not started")


def test_stopped_it_ends_what_it_has_started(waiting):
    process = start("analyse", "trials", waiting / "plan.toml")
    pid = begun(waiting)
    other = seen("trials", waiting / "plan.toml")
    assert other.exit_code == 1
    assert f"{waiting}/work: another run is at work there" in other.stderr
    process.terminate()
    assert process.wait(60) == 75
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


SMALL = "hidden-size = 16, embedding-size = 8, maxout-size = 8, output-rank = 8, max-epochs = 0.5"


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_trials_with_a_real_moses(moses_root, tmp_path):
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            (tmp_path / f"train.{language}").write_text("".join(itertools.islice(lines, 2000)))
        for name in ("dev", "test"):
            text = (EXAMPLES / "corpus" / f"{name}.{language}").read_text().splitlines(keepends=True)
            (tmp_path / f"{name}.{language}").write_text("".join(text[:60]))
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""
        seeds = [1]
        [pipeline]
        MOSES_ROOT = "{moses_root}"
        SRC = "en"
        TRG = "fr"
        TRAIN = "train"
        DEV = "dev"
        TEST = ["test", "dev.again"]
        ORDER = 3
        MAX_PHRASE = 4
        LM_FLAGS = "--discount_fallback"
        MERT_FLAGS = "--maximum-iterations 2"
        THREADS = 2
        [every]
        train = {{{SMALL}}}
        [[trial]]
        name = "plain"
        [[trial]]
        name = "pair"
        networks = [1, 2]
        inverse = true
        tuner = "mira"
        score = {{precision = "fp32"}}
        """
    )
    for language in ("en", "fr"):
        (tmp_path / f"dev.again.{language}").write_text((tmp_path / f"dev.{language}").read_text())
    done = run("analyse", "trials", "plan.toml", "--samples", "50", cwd=tmp_path)
    table = rows(done.stdout)
    assert [name for name in table if name != "Baseline"] == ["trial", "plain", "pair"]
    assert all(float(table[name][1]) > 0 for name in ("plain", "pair"))
    (signature,) = (tmp_path / "plan" / "trials").glob("pair.*/rnn/phrase-table.gz.json")
    assert [column["name"] for column in json.loads(signature.read_text())["added_columns"]] == ["ENS", "ENSInverse"]
    again = run("analyse", "trials", "plan.toml", "--samples", "50", cwd=tmp_path)
    assert again.stdout == done.stdout
