import csv
import gzip
import io
import itertools
import json

import pytest
from click.testing import CliRunner

from moses_rnn.cli.analyse import main
from tests.commands import run


def invoke(*arguments, code=0):
    """A subcommand in this process."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.fixture
def scored(tmp_path, table, model):
    path = tmp_path / "scored.gz"
    run("score", table, "--model", model, "-o", path, "--quiet")
    return path


@pytest.mark.parametrize("network", ["encoder", "decoder"])
def test_gates(tmp_path, table, model, network):
    out = tmp_path / "gates.csv"
    done = invoke("gates", model, table, "--network", network, "--phrases", 50, "-o", out)
    assert done.stdout.startswith(f"{network}: 8 units, 50 phrases, ")
    assert len(rows_of(out)) == 1 + 8
    again = invoke("gates", model, table, "--network", network, "--phrases", 50)
    assert again.stdout == done.stdout
    assert "exists already" in invoke("gates", model, table, "-o", out, code=1).stderr


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("gates", inverse_model, table, "--phrases", 20, "--min-times", 1)
    assert done.stdout.startswith("encoder: 8 units, 20 phrases, ")


def test_words_and_phrases(tmp_path, table, model):
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    outputs = [argument for kind in ("svg", "png", "csv", "json") for argument in ("-o", tmp_path / f"words.{kind}")]
    invoke("words", model, "--max-points", 30, "--method", "pca", *outputs)
    assert (tmp_path / "words.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "words.json").read_bytes())["labels"]) == 30
    done = invoke("phrases", model, table, "--max-points", 40, "-o", tmp_path / "phrases.csv")
    assert done.stdout.startswith("source phrases, tsne: 39 points")  # two differ in unknown words only
    labels = [row[0] for row in rows_of(tmp_path / "phrases.csv")][1:]
    assert len(labels) == 39
    assert all(len(label.split()) >= 4 for label in labels)


def test_explain(tmp_path, table, model, scored):
    ini = tmp_path / "tuned.ini"
    ini.write_text(
        f"[feature]\nPhraseDictionaryMemory name=T num-features=5 path={scored} table-limit=2\n"
        "[weight]\nT= 0.1 0.1 0.3 0.1 0.4\n"
    )
    pair, out = _a_pair(table), tmp_path / "pair.json"
    done = invoke("explain", model, scored, pair, "--moses-ini", ini, "-o", out)
    found = json.loads(out.read_bytes())
    assert done.stdout.startswith(f"{pair}\n  one of ")
    assert sum(word["log_prob"] for word in found["words"]) == pytest.approx(found["log_prob"], abs=1e-4)
    column = found["columns"][-1]
    assert column["name"] == "RNN"
    assert column["log"] == pytest.approx(found["log_prob"], abs=1e-4)  # the table's own score
    assert found["table_limit"] == 2
    assert [rank["by"] for rank in found["ranks"]][2:] == ["weighted sum without RNN", "weighted sum with RNN"]
    limited = invoke("explain", model, scored, pair, "--moses-ini", ini, "--table-limit", 0)
    assert "cut" not in limited.stdout
    assert "nor is its source" in invoke("explain", model, scored, "no such ||| rien").stdout


# arguments behind model and table
EITHER_ORDER = [
    ["gates", "--phrases", 9],
    ["phrases", "--method", "pca", "--max-points", 9],
    ["explain", "a ||| b", "--phrases", 9],
]


@pytest.mark.parametrize("arguments", EITHER_ORDER, ids=lambda arguments: arguments[0])
def test_model_and_table_come_in_either_order(tmp_path, model, table, arguments):
    command, *rest = arguments
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    invoke(command, model, table, *rest, "-o", first)
    invoke(command, table, model, *rest, "-o", second)
    assert first.read_bytes() == second.read_bytes()


def _a_pair(table):
    with gzip.open(table) as lines:
        line = next(itertools.islice(lines, 2000, None))
    return " ||| ".join(line.decode().split(" ||| ")[:2])


# arguments behind model and table; exit code, the message
REFUSED = [
    (["explain", "no pair"], 3, "expected a pair as 'source ||| target', found 'no pair'"),
    (["explain", "a ||| b", "--moses-ini", "none.ini"], 3, "none.ini: cannot be read: No such file or directory"),
    (["explain", "a ||| b", "--table-limit", "3"], 2, "--table-limit and --feature are about a --moses-ini"),
    (["phrases", "-o", "x.gif"], 2, "--output x.gif: expected a name that ends with .svg, .png, .csv or .json"),
    (["phrases", "-o", "x.csv", "-o", "./x.csv"], 1, "./x.csv: is where x.csv goes; name another output"),
    (["phrases", "-o", "x.csv", "--method", "pca", "--min-words", "99"], 3,
     "expected phrases of 99 or more words in the table, found none"),
    (["gates", "--network", "both"], 2, "'both' is not one of"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED)
def test_what_is_refused(tmp_path, monkeypatch, table, model, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    command, *rest = arguments
    done = invoke(command, model, table, *rest, code=code)
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_phrases_of_another_form_are_refused(tmp_path, model):
    rules = tmp_path / "rules"
    rules.write_text("a [X][X] [X] ||| b [X][X] [X] ||| .1 .1 .1 .1 ||| 1-1\n")
    done = invoke("gates", model, rules, code=3)
    assert "expected phrases as the model learned from (plain words), found hierarchical" in done.stderr
