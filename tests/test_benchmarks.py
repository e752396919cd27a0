"""Every benchmark runs to its end and prints its table: small ones here, on a small table."""

import gzip
import json
import re
import subprocess
import sys
import tomllib

import pytest

from tests.commands import ROOT, run, settings

pytestmark = pytest.mark.release

CORPUS = ROOT / "examples" / "corpus"
SMALL = ["--preset", "small", "--no-compile"]
TEXTS = [CORPUS / "dev", "--source", "en", "--target", "fr"]
RUNS = {
    "score": (["TABLE", *SMALL, "--lines", "600", "--rounds", "1"], "whole program, torch, bf16"),
    "train": (["TABLE", *SMALL, "--pairs", "300", "--one-thread"], "+ 512 pairs a minibatch"),
    "table": (["TABLE", "--rounds", "1"], "all but scoring, all threads together"),
    "growth": (["--most", "1000", "--rounds", "1"], "       1,000 "),
    "accuracy": (["TABLE", "--model", "MODEL", "--pairs", "300", "--no-compile"], "fp32, 1 000 pairs scored alone"),
    "sentences": (
        [*TEXTS, "--hidden-size", "16", "--sentences", "4", "--list", "5", "--batches", "1", "--rounds", "1"],
        "all sentences together",
    ),
    "scaling": (["TABLE", "--rounds", "1", "--speed", "1e5", "--workers", "1,3"], "processes: the driver alone"),
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
def test_actors_of_a_cluster_are_measured_too(table, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'benchmarks'}")
    printed = bench("scaling", table, "--rounds", "1", "--speed", "1e5", "--workers", "1", "--ray", "local")
    assert "ray: the driver alone" in printed


def test_a_sweep_is_a_table_and_is_gone_on_with(table, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[every]\nhidden_size = 8\nshortlist = 60\nmax_epochs = 0.2\nevaluate_every = 200\n"
        "[slow]\nlearning_rate = 0.001\n[fast]\nlearning_rate = 0.01\n"
    )
    first = bench("sweep", table, plan, tmp_path / "runs", "--minutes", "0.0001", "--at-once", "2")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines()]
    assert rows[0] == ["trial", "settings", "pairs/s", "0.0001 min", "best", "last"]
    assert [row[:2] for row in rows[2:]] == [["slow", "learning_rate 0.001"], ["fast", "learning_rate 0.01"]]
    assert float(rows[3][4]) < float(rows[2][4])
    assert bench("sweep", table, plan, tmp_path / "runs", "--minutes", "0.0001") == first  # nothing is run twice


def test_cells_are_compared_at_equal_width_and_at_equal_size(table, tmp_path):
    command = table, tmp_path / "runs", "--minutes", "0.0001", "--seeds", "1", "--width", "16", "--cells", "lstm"
    printed = bench("cells", *command, "--json", tmp_path / "j")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows] == ["equal width", "---", "gru", "lstm", "equal size", "---", "gru", "lstm"]
    (gru, lstm), (_, smaller) = rows[2:4], rows[6:8]
    assert gru[1] == lstm[1] == "16"
    assert gru[5] == "+0.000"
    figures = [int(row[2].replace(",", "")) for row in (gru, lstm, smaller)]
    assert figures[1] > figures[0]
    assert abs(figures[2] - figures[0]) < abs(figures[1] - figures[0])
    assert all(0 < float(row[4].partition(" ")[0]) < 20 for row in (gru, lstm, smaller))


def test_comparators_are_asked_what_a_ranker_learns(table, model, tmp_path):
    brief = "--max-epochs", "1", "--quiet"
    for architecture, *options in (
        ("ranker", "--shortlist", "60", "--hidden-size", "8"),
        ("cstm", "--shortlist", "60", *settings(tmp_path, first_size=8, second_size=8)),
        ("encdec", "--shortlist", "50", "--hidden-size", "8"),
    ):
        run("train", table, "--model", tmp_path / architecture, "--architecture", architecture, *options, *brief)
    printed = bench("comparators", table, tmp_path / "ranker", tmp_path / "cstm", model)
    config = json.loads((tmp_path / "ranker" / "config.json").read_text())["provenance"]
    assert printed.startswith(f"{config['corpus']['held_out_pairs']:,} held-out pairs, 10 corruptions of each\n")
    ranked = printed.split("ranked right |\n|---|---|---|\n| ranker, ")[1].split(" | ")
    best = max(step["ranked_right"] for step in config["history"])
    assert ranked[0] == str(tmp_path / "ranker")
    assert float(ranked[1].rstrip("%")) / 100 == pytest.approx(best, abs=1e-4)
    assert re.search(r"\| CSTM, \S+ \| -?0\.\d{3} \| 1\.000 \| -?0\.\d{3} \| -?0\.\d{3} \|\n", printed)
    refused = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "comparators.py", table, tmp_path / "cstm", tmp_path / "encdec"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("comparators: expected models of the same")


def rows_of(printed):
    """Of all tables, by the first cell; the first of a name counts."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in reversed(rows)}


def aligned_texts(folder, count):
    """Texts with links, as arguments of a bench."""
    for side in ("en", "fr"):
        lines = gzip.decompress((CORPUS / f"train.{side}.gz").read_bytes()).splitlines(keepends=True)[:count]
        (folder / f"train.{side}").write_bytes(b"".join(lines))
    (folder / "links").write_text("0-0 1-1\n" * count)
    return folder / "train", folder / "runs", "--source", "en", "--target", "fr", "--alignment", folder / "links"


def test_rows_that_need_attention_are_left_out_without_it(tmp_path):
    learns = "--architecture seq2seq --max-epochs 1 --batch-size 4 --hidden-size 8 --embedding-size 8"
    sizes = "--words", "30", "--partition-words", "80", "--beam", "1", "--samples", "20", "--tables", "jean"
    texts = *aligned_texts(tmp_path, 120), "--test", CORPUS / "dev", "--seeds", "1"
    printed = bench("rare_words", *texts, *sizes, "--train", learns)
    rows = list(rows_of(printed.partition("Left out")[0]))
    assert {*rows} == {
        "system",
        "---",
        "base",
        "all words, whole softmax",
        "all words, partitions",
        "+ candidate lists",
    }
    (left_out,) = re.findall("^Left out, since the networks have no attention: (.*)$", printed, re.MULTILINE)
    assert left_out.split("; ")[:2] == ["base, <unk> replaced: copy", "base, <unk> replaced: dictionary"]
    assert left_out.endswith("; + ensemble")


def test_rare_words_are_left_replaced_and_pointed_to(tmp_path):
    texts = aligned_texts(tmp_path, 800)
    learns = "--optimiser adam --learning-rate 0.01 --max-epochs 1 --batch-size 4"
    learning = "--train", f"{learns} --hidden-size 16 --embedding-size 16"
    sizes = "--words", "30", "--partition-words", "80", "--beam", "1", "--samples", "20"
    command = *texts, "--test", CORPUS / "dev", *sizes, "--seeds", "1", *learning
    done = finished("rare_words", *command)
    printed, rows = done.stdout, rows_of(done.stdout)
    assert all(row[0] == "1" for row in (rows["base"], rows["PosUnk, all seeds"], rows["+ candidate lists"]))
    assert percent(rows["base"][1]) > 20  # so they write words, and what is replaced can be seen
    assert percent(rows["PosUnk, pointers left"][1]) > percent(rows["PosUnk, translations"][1]) > 0
    assert rows["base, <unk> replaced: copy"][1] == "0.00%"
    warned = r"^moses-rnn nmt translate \S+/base\.1 .* --unknown no .*:\nwarning: empty translations .*: [1-9]\d*$"
    assert re.search(warned, done.stderr, re.MULTILINE)
    assert rows["4 layers"] == ["29.5", "31.8"]
    assert rows["RNNsearch-LV"] == ["32.68"]
    unknown = re.findall(r"word that (\w+) does not know: dev (\S+)% of 300\n", printed)
    assert [network for network, _ in unknown] == ["base", "base", "reshuffled"]
    assert float(unknown[1][1]) > float(unknown[2][1])
    assert bench("rare_words", *command) == printed


def percent(cell):
    return float(cell.removesuffix("%"))


def test_language_models_stand_beside_the_published(tmp_path):
    lines = gzip.decompress((CORPUS / "train.fr.gz").read_bytes()).splitlines(keepends=True)[:200]
    (tmp_path / "train.fr").write_bytes(b"".join(lines))
    texts = "--dev", CORPUS / "dev.fr", "--test", CORPUS / "test.fr", "--lm", ROOT / "examples" / "lm.arpa.gz"
    command = tmp_path / "train.fr", tmp_path / "runs", *texts, "--train", "--max-epochs 1", "--dynamic-rates", "0"
    rows = rows_of(bench("language_models", *command))
    assert rows["model"] == ["dev.fr", "test.fr"]
    assert float(rows["MLP2: MLP1, mixed"][1]) < float(
        rows["MLP1: order 5, hidden_size 50, embedding_size 60, direct True"][1]
    )
    assert float(rows["RNN-90-10, with lm.arpa.gz"][1]) < float(rows["RNN-90-10"][1])
    assert rows["3xRNN dynamic, 0"] == rows["3xRNN static"]
    assert rows["RNN 60/20"] == ["229", "186"]


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


def test_the_plan_of_the_documents_is_one_of_options_that_there_are():
    from moses_rnn.cli.train import main

    known = {parameter.name for parameter in main.params}
    plan = tomllib.loads((ROOT / "benchmarks" / "sweep.toml").read_text())
    assert {name for options in plan.values() for name in options} <= known
    assert len(plan) > 12
