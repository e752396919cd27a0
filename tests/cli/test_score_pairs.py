"""moses-rnn-score --format tsv: what it appends, what it refuses."""

import gzip
import math

import pytest

from moses_rnn.models.open import open_model
from moses_rnn.table.table_blocks import Pairs
from tests.commands import run
from tests.models.rare import ALIGNED, save_rare_model

PAIRS = [("the small dog", "le petit chien"), ("a house", "une maison"), ("nowhere seen", "jamais vu")]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return path


def score(model, pairs, *options, check=True):
    return run("score", pairs, "--format", "tsv", "--model", model, "--device", "cpu", *options, check=check)


def test_the_table_and_the_pairs_have_the_same_scores(model, table, tmp_path):
    run("score", table, "--model", model, "-o", tmp_path / "scored.gz", "--quiet")
    with gzip.open(tmp_path / "scored.gz", "rt", encoding="utf-8") as lines:
        rows = [line.split(" ||| ") for line in lines][:50]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in rows))
    done = score(model, tmp_path / "pairs.tsv", "-o", "-", "--quiet")
    here = [float(line.split("\t")[2]) for line in done.stdout.splitlines()]
    assert here == pytest.approx([math.log(float(row[2].split()[-1])) for row in rows], abs=1e-5)
    assert done.stderr == ""


def test_a_network_of_rare_words_reads_alignments_from_the_third_column(tmp_path):
    rare, rows = save_rare_model(tmp_path / "rare"), [row for row in ALIGNED if row[0] and row[1]]
    (tmp_path / "aligned.tsv").write_bytes(b"".join(b"\t".join(row) + b"\n" for row in rows))
    done = score(rare, tmp_path / "aligned.tsv", "-o", "-", "-q")
    sources, targets, links = map(list, zip(*rows, strict=True))
    expected = open_model(rare).make_scorer().log_probs(Pairs(sources, targets, links))
    assert [float(line.split("\t")[3]) for line in done.stdout.splitlines()] == pytest.approx(expected, rel=1e-5)


def test_pairs_that_the_model_does_not_know_are_refused(model, pairs, tmp_path):
    pairs.write_text("".join(f"{target}\t{source}\n" for source, target in PAIRS * 20))
    done = score(model, pairs, "-o", tmp_path / "out", check=False)
    assert (done.returncode, (tmp_path / "out").exists()) == (3, False)
    assert "found 100.0% of the source words outside" in done.stderr
    score(model, pairs, "-o", tmp_path / "out", "--allow-misfit")
    assert len((tmp_path / "out").read_text().splitlines()) == 20 * len(PAIRS)
