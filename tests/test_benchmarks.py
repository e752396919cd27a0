"""Every benchmark runs to its end and prints its table: small ones here, on a small table."""

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from benchmarks.gpu import SECONDS
from benchmarks.trials import read_plan, runs_of
from tests.cli.nbest import lists
from tests.commands import ROOT, make, run
from tests.score.saved_models import save_models

pytestmark = pytest.mark.release

CORPUS = ROOT / "examples" / "corpus"
SENTENCES = f"{CORPUS}/dev --source en --target fr --hidden-size 16 --sentences 4 --list 5 --batches 1 --rounds 1"
RUNS = {
    "score": "TABLE --model MODEL --lines 600 --rounds 1",
    "train": "TABLE --preset small --pairs 300 --one-thread",
    "table": "TABLE --rounds 1",
    "growth": "--most 1000 --rounds 1",
    "sentences": SENTENCES,
    "sentences of the Transformer": f"{SENTENCES} --architecture transformer --cpu-time",
    "scaling": "TABLE --rounds 1 --speed 1e5 --workers 1,3",
    "pretrained": f"{CORPUS}/dev --source en --target fr --hidden-size 16 --layers 1 --sentences 2 --list 5 --rounds 1",
}


def bench(name, *arguments, code=0):
    command = [sys.executable, ROOT / "benchmarks" / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    return done


def numbers(record):
    if isinstance(record, int | float):
        return [record]
    parts = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return [number for part in parts for number in numbers(part)]


@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_prints_the_figures_that_it_writes(name, table, model, tmp_path):
    if name == "pretrained":
        pytest.importorskip("transformers")
        pytest.importorskip("sentencepiece")
    words = RUNS[name].replace("TABLE", str(table)).replace("MODEL", str(model)).split()
    printed = bench(name.split()[0], *words, "--json", tmp_path / "j").stdout
    found = numbers(json.loads((tmp_path / "j").read_text()))
    assert found
    assert min(found) > 0
    assert re.search(r"(\d.* ){2}", printed)


@pytest.mark.timeout(1200)
def test_what_needs_a_gpu_runs_to_its_end_without_one(tmp_path):
    words = ["--device", "cpu", "--small", "--minutes", "60"]
    printed = bench("gpu", *words, "--folder", tmp_path).stdout
    table = (tmp_path / "table.md").read_text()
    assert printed.endswith(f"{table}\n")
    assert re.findall(r"^\| (\S+) \| (\w+) \|", table.partition("| step |")[2].partition("\n\n")[0], re.MULTILINE) == [
        (step, "done") for step in SECONDS
    ]
    assert "| parts, 14 | 14 | 0 | 0 |" in table
    assert (tmp_path / "log").read_text().count("skipped") >= 1


def test_a_step_that_fails_stops_no_other(tmp_path):
    words = ["sentences", "machine", "--device", "cpu", "--small", "--texts", tmp_path / "missing", "--minutes", "60"]
    printed = bench("gpu", *words, "--folder", tmp_path, code=1).stdout
    assert "| sentences | failed, code 1 |" in printed
    assert "| machine | done |" in printed
    assert f"{tmp_path}/missing.en: expected a file, found none" in (tmp_path / "log").read_text()


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


def test_trials_with_missing_figures_or_in_one_folder_are_refused(tmp_path):
    of_one = trials(tmp_path, plan=PLAN.replace("'cost (.*)'", "'cost (.*1)$'"), code=1)
    assert "small, seed 2: expected a figure like cost (.*1)$, as for other seeds, found none" in of_one.stderr
    trial = '[trial."-"]\ncost = 1.0\n[trial."+"]\ncost = 3.0\n'
    assert "names give different folders" in trials(tmp_path, plan=PLAN.partition("[trial")[0] + trial, code=1).stderr
    assert "expected at least one seed" in trials(tmp_path, "seeds=", code=1).stderr
    assert "expected whole numbers" in trials(tmp_path, "seeds=a", code=1).stderr
    assert "expected names in braces" in trials(tmp_path, plan=PLAN.replace("{code}", "{code"), code=3).stderr
    assert "--at-once: expected a positive number" in trials(tmp_path, "--at-once", "0", code=2).stderr
    assert "expected each seed once, found 1 1" in trials(tmp_path, "seeds=1 1", code=1).stderr
    assert (
        "expected a pattern with one group for cost"
        in trials(tmp_path, plan=PLAN.replace("(.*)", "(.*"), code=3).stderr
    )


BAD_PLANS = {  # what takes the place of what in the plan, and the message
    "no TOML": ("seeds = [1, 2]", "seeds = [1,", "plan.toml: expected a plan in TOML, found: "),
    "an unknown key": ("before =", "befor =", "expected tables and lists named commands, "),
    "a command that is a number": ('["tee {folder}/log"]', "[3]", "plan.toml: expected texts as before, found 3"),
    "no command": ('"tee {folder}/log"', '" "', "before: expected words whose quotes are closed, found ' '"),
    "an open quote": ("tee {folder}", "tee '{folder}", "before: expected words whose quotes are closed, found \"tee '"),
    "seeds that are lists": ("[1, 2]", "[[1], [2]]", "plan.toml: expected whole numbers as seeds, found [1]"),
    "seeds that are no numbers": ("[1, 2]", "[true]", "plan.toml: expected whole numbers as seeds, found True"),
    "a trial that is no table": ("[trial.small]", "[trial]", "plan.toml: expected tables as trial, found 1.0"),
    "a seed of a trial": ("cost = 1.0", "seed = 4", "small, seed 1: expected no value for seed, which trials sets"),
    "a run for all": ('word = "one"', 'word = "one", run = "r"', "expected no value for run, which trials sets"),
    "a part of a name": ("{word}", "{word.x}", "small, seed 1: expected names in braces, and {{ for a brace, found: "),
    "an unknown name": ("{word}", "{world}", "small, seed 1: expected a value for {world}, found none"),
}


@pytest.mark.parametrize("case", BAD_PLANS.values(), ids=BAD_PLANS)
def test_a_bad_plan_is_refused_before_anything_runs(tmp_path, case):
    old, new, message = case
    done = trials(tmp_path, plan=PLAN.replace(old, new), code=3)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_plan_that_is_missing_is_refused(tmp_path):
    assert "/plan.toml: expected a plan in TOML" in bench("trials", tmp_path / "plan.toml", tmp_path, code=3).stderr


def test_folders_and_records_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "runs").touch()
    assert trials(tmp_path, code=3).stderr == (
        f"trials: {tmp_path}/runs/before/run.json: expected a place for a record, found: Not a directory\n"
    )
    (tmp_path / "runs").unlink()
    (tmp_path / "runs").symlink_to("/proc")  # where even root makes no folders
    assert "before: /proc/before: expected to write it, found: " in trials(tmp_path, code=1).stderr.replace(
        f"{tmp_path}/runs", "/proc"
    )
    (tmp_path / "runs").unlink()
    trials(tmp_path)
    record = tmp_path / "runs" / "small.2" / "run.json"
    good = json.loads(record.read_text())
    for damaged in ("", "[]", "{}", json.dumps({**good, "printed": 3})):
        record.write_text(damaged)
        assert f"trials: {record}: expected a record of a run, found: " in trials(tmp_path, code=3).stderr
    record.write_text(json.dumps({**good, "printed": ["a", "b", "c"]}))
    assert f"{record}: expected outputs of 2 commands, found 3" in trials(tmp_path, code=3).stderr


def test_figures_that_are_no_numbers(tmp_path):
    words = trials(tmp_path, plan=PLAN.replace("cost = 3.0", "cost = 'three'"), code=1)
    assert "trials: expected a number from cost (.*), found: " in words.stderr
    assert "Traceback" not in words.stderr
    shutil.rmtree(tmp_path / "runs")
    diverged = trials(
        tmp_path, "seeds=1 2", plan=PLAN.replace('"cost {cost}{seed}"', '"cost {cost}"').replace("3.0", "inf")
    )
    assert "| large one | 2 | inf |" in diverged.stdout


def test_a_program_that_is_missing_stops_no_other_trial(tmp_path):
    plan = PLAN.replace("commands = [", "commands = ['{program}', ").replace(
        'word = "one"', 'word = "one", program = "true"'
    )
    done = trials(tmp_path, plan=plan + "program = '/no/program'\n", code=1)
    assert "large one, seed 1: [Errno 2] No such file or directory: '/no/program'" in done.stderr
    assert "| small | 2 | 1.015" in done.stdout


def test_a_bar_in_a_trials_name_is_no_column(tmp_path):
    assert "| a \\| b | 2 | 1.015" in trials(tmp_path, plan=PLAN.replace("[trial.small]", '[trial."a | b"]')).stdout


def test_stopped_trials_begin_no_other_and_are_continued(tmp_path):
    assert "the same command continues" in trials(tmp_path, "code=75", code=75).stderr
    assert not (tmp_path / "runs" / "small.2" / "log").exists()


PREFIXES = ["train", "dev", "test", "train_source", "train_target", "dev_target", "test_source", "test_target"]
LISTED = ["dev_source", "dev_lists", "test_lists", "cslm", "rnn", "weights"]
VALUES = [*PREFIXES, *LISTED, "source", "target", "src", "trg", "table", "ini", "lm", "links"]


def command_lines(run):
    """The commands of a run as words; in place of the pipeline those to which it hands options, and those of a shell."""
    for words in map(shlex.split, run.commands):
        if words[0] == "sh":
            yield from map(shlex.split, re.findall("moses-rnn [^|;]*", words[-1].replace("$seed", "1")))
        elif "pipeline" in words:
            flags = dict(word.split("=", 1) for word in words if "=" in word)
            yield ["moses-rnn-train", "missing", *flags["TRAIN_FLAGS"].split()]
            yield ["moses-rnn-score", "missing", *flags["SCORE_FLAGS"].split()]
        elif words[0] not in {"true", "awk"}:
            yield words


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "plans").glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_name_commands_options_and_settings_that_there_are(path, tmp_path):
    plan = read_plan(path)
    values = {name: "missing" for name in VALUES if name not in plan["every"]} | {"minutes": "1", "words": "9"}
    before, trials = runs_of(plan, tmp_path / "missing.runs", values)
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


def test_gains_of_two_networks_are_compared_with_their_joint_gain(tmp_path):
    for name in ("nbest", "corpus", "cslm", "rnn", "tune/baseline.1"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("dev", "test"):
        (tmp_path / "nbest" / f"baseline.1.{name}.gz").write_bytes(gzip.compress(lists.NBEST))
        (tmp_path / "corpus" / f"{name}.s").write_bytes(lists.SOURCE)
        (tmp_path / "corpus" / f"{name}.t").write_bytes(lists.REFERENCE)
    (tmp_path / "tune" / "baseline.1" / "moses.ini").write_text("[weight]\nLM0= 1\n")
    saved = save_models(tmp_path / "saved")
    for name in ("cslm", "rnn"):
        (tmp_path / name / "model").symlink_to(saved / name)
    printed = bench("contributions", tmp_path, "--source", "s", "--target", "t", "--seeds", "1 2").stdout
    rows = dict(re.findall(r"^\| (\S+) \| 2 \| [\d.]+ ± \S+ \|[^|]*\| ([\d.]+) ", printed, re.MULTILINE))
    assert list(rows) == ["Baseline", "+CSLM", "+RNN", "+CSLM+RNN"]
    baseline, cslm, rnn, both = map(float, rows.values())
    (alone, together) = re.findall(r"^test: alone (\S+) in sum, together (\S+)$", printed, re.MULTILINE)[0]
    assert float(alone) == pytest.approx(cslm + rnn - 2 * baseline, abs=0.02)
    assert float(together) == pytest.approx(both - baseline, abs=0.02)
    correlation = re.findall(r"^Rank correlation of CSLM and RNN within 4 test lists: (\S+)$", printed, re.MULTILINE)
    assert -1 <= float(correlation[0]) <= 1


def test_translations_that_moses_lacks_join_its_lists(tmp_path):
    moses = tmp_path / "moses.gz"
    own, both = tmp_path / "own", tmp_path / "both.gz"
    moses.write_bytes(
        gzip.compress(
            b"0 ||| a b ||| LM0= -2 WordPenalty0= -2 TM0= 1 3 Net0= -1 ||| -4 ||| 0-0\n"
            b"0 ||| a ||| LM0= -4 WordPenalty0= -1 TM0= 2 5 Net0= -2 ||| -6 ||| 0-0\n"
            b"1 ||| d ||| LM0= -1 WordPenalty0= -1 TM0= 0 0 Net0= -3 ||| -1 ||| 0-0\n"
        )
    )
    own.write_bytes(
        b"0 ||| a b ||| Own= 1 Net0= -1 KENLM0= -2 ||| -1\n0 ||| c a b ||| Own= 1 Net0= -0.5 KENLM0= -7 ||| -2\n"
    )
    bench("union", moses, own, both, "--rename", "KENLM0=LM0")
    assert gzip.decompress(both.read_bytes()).splitlines() == [
        b"0 ||| a b ||| LM0= -2 WordPenalty0= -2 TM0= 1 3 Net0= -1 Own0= 0 ||| -4",
        b"0 ||| a ||| LM0= -4 WordPenalty0= -1 TM0= 2 5 Net0= -2 Own0= 0 ||| -6",
        b"0 ||| c a b ||| LM0= -7 WordPenalty0= -3 TM0= 1.5 4 Net0= -0.5 Own0= 1 ||| -5",
        b"1 ||| d ||| LM0= -1 WordPenalty0= -1 TM0= 0 0 Net0= -3 Own0= 0 ||| -1",
    ]


FURTHER = {  # tables after a target's own
    "bahdanau": ["BLEU by source words"],
    "sutskever": ["BLEU by source words", "BLEU by mean frequency rank of the source words"],
    "jean": ["BLEU by source words"],
    "luong": ["BLEU by mean frequency rank of the source words"],
    "gradients": ["Mean norm of the gradient of a word's loss with respect to the state k steps before"],
}
LAST = {  # rows of these
    "bahdanau": "RNNsearch-50*",
    "sutskever": "five-reversed-12",
    "mikolov": "0.75 the 3 networks, equal weights, 0.25 lm.arpa.gz",
    "jean": "together",
    "luong": "together",
}
PICTURES = {
    "bahdanau": ["lengths.svg"],
    "sutskever": ["lengths.svg", "rarity.svg"],
    "luong": ["rarity.svg"],
    "gradients": ["gradients.svg"],
}
PAPERS = "bahdanau", "sutskever", "bengio", "mikolov", "jean", "luong", "cells", "gradients", "identity"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", PAPERS)
def test_a_table_of_a_paper_is_printed_and_not_made_twice(target, tmp_path):
    seeds = "1 2" if target in {"jean", "luong"} else "1"  # for an ensemble
    given = f"WORK={tmp_path}", "MINUTES=0.02", f"SEEDS={seeds}"
    printed = make(target, *given).stdout
    trials = read_plan(ROOT / "benchmarks" / "plans" / f"{target}.toml")["trial"]
    rows = [
        row
        for name in trials
        for row in re.findall(rf"^\| {re.escape(name)} \| {len(seeds.split())} \| [\d.]+ .*", printed, re.MULTILINE)
    ]
    assert len(rows) == len(trials)
    assert re.findall(r"^\*\*(.*)\*\*$", printed, re.MULTILINE) == FURTHER.get(target, [])
    if target in LAST:
        assert re.search(
            rf"^\| (?:\S*/)?{re.escape(LAST[target])} \| [\d.]+ \|", printed.replace("\\", ""), re.MULTILINE
        )
    if find_spec("matplotlib"):
        assert sorted(path.name for path in tmp_path.rglob("*.svg")) == PICTURES.get(target, [])
    records = {path: path.read_text() for path in tmp_path.rglob("run.json")}
    assert make(target, *given).stdout.splitlines()[-len(rows) :] == printed.splitlines()[-len(rows) :]
    assert records == {path: path.read_text() for path in tmp_path.rglob("run.json")}


@pytest.mark.moses
@pytest.mark.timeout(3600)
def test_the_table_of_the_phrase_models_paper_is_printed(tmp_path, moses_root):
    printed = make(
        "table1", f"WORK={tmp_path}", f"MOSES_ROOT={moses_root}", "MINUTES=0.2", "MERT_FLAGS=--maximum-iterations 1"
    ).stdout
    assert re.findall(r"^\| (Baseline|\+[\w+]+)\*? \| [\d.]+ ", printed, re.MULTILINE) == [
        "Baseline",
        "+RNN",
        "+CSLM+RNN",
        "+CSLM+RNN+WP",
    ]
