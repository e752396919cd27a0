"""Hierarchical, factored and sparse tables, made by real Moses from a real corpus, scored, loaded and decoded."""

import gzip
import itertools
import re
import subprocess

import pytest

from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import PLAIN, PhraseForm, words
from tests.commands import run
from tests.conftest import TINY
from tests.moses.decoding import decode

pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]
SENTENCES, TRANSLATED = 3000, 60
TABLES = {
    "hierarchical": (["--hierarchical", "--glue-grammar", "--max-phrase-length", "5"], "rule-table.gz", [], PhraseForm(hierarchical=True)),
    "factored": (["--translation-factors", "0,1-0,1", "--decoding-steps", "t0"], "phrase-table.0,1-0,1.gz", ["--source-factor", "0", "--target-factor", "0"], PhraseForm(0, 0)),
    "sparse": (["--score-options", "--SparseCountBinFeature 1 2 3 5"], "phrase-table.gz", [], PLAIN),
    "13 scores": (["--score-options", "--CountBinFeature 1 2 3 5 8 13 21 34 --PhraseCount"], "phrase-table.gz", [], PLAIN),
}  # fmt: skip


def lines_of(path, count):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in itertools.islice(lines, count)]


def with_factors(line):
    return " ".join(f"{word}|{word[-2:]}" for word in line.split(" "))


@pytest.fixture(scope="module", params=TABLES)
def system(request, tmp_path_factory, moses_root, multi30k):
    """A system of some kind, its table scored; with the sentences to translate."""
    options, name, reading, form = TABLES[request.param]
    folder = tmp_path_factory.mktemp("system")
    factored = with_factors if request.param == "factored" else str
    for language in ("en", "fr"):
        text = "".join(factored(line) + "\n" for line in lines_of(multi30k / f"train.{language}.gz", SENTENCES))
        (folder / f"train.{language}").write_text(text)
    points = lines_of(multi30k / "train.grow-diag-final-and.gz", SENTENCES)
    (folder / "model").mkdir()
    (folder / "model" / "aligned.grow-diag-final-and").write_text("".join(line + "\n" for line in points))
    command = [
        moses_root / "scripts" / "training" / "train-model.perl", "--root-dir", folder, "--corpus", folder / "train",
        "--f", "en", "--e", "fr", "--alignment", "grow-diag-final-and", "--first-step", "4", "--last-step", "9",
        "--lm", f"0:5:{multi30k / 'fr.5.arpa.gz'}:8", *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    model = folder / "model"
    run("train", name, *TINY, *reading, "--model", "rnn", "--max-epochs", "0.2", "--quiet", cwd=model)
    given = ["--model", "rnn", "--moses-ini", "moses.ini", "-o", "scored.gz", "--allow-misfit", "--quiet"]
    run("score", name, *given, cwd=model)
    sentences = [factored(line) for line in lines_of(multi30k / "val.en.gz", TRANSLATED)]
    return request.param, model, model / name, form, sentences


def with_new_weight(text, weight):
    changed = re.sub(r"(?m)^(TranslationModel0= .*) \S+$", rf"\1 {weight}", text)
    assert changed != text
    return changed


def test_it_is_loaded_and_weight_zero_is_the_baseline(moses_root, system):
    kind, model, _, _, sentences = system
    text = (model / "moses.rnn.ini").read_text()
    if kind == "sparse":  # whose features have no weights yet; one of them shows that they are there
        text += "TranslationModel0_cs_1= 0.5\n"
        (model / "moses.ini").write_text((model / "moses.ini").read_text() + "TranslationModel0_cs_1= 0.5\n")
    (model / "zero.ini").write_text(with_new_weight(text, 0))
    (model / "strong.ini").write_text(with_new_weight(text, 1.5))
    baseline = decode(moses_root, model, "moses.ini", sentences)
    assert len(baseline) == TRANSLATED
    assert decode(moses_root, model, "zero.ini", sentences) == baseline
    strong = decode(moses_root, model, "strong.ini", sentences)
    assert strong != baseline
    changed = sum(a != b for a, b in zip(strong, baseline, strict=True))
    print(f"{kind}: {TRANSLATED} sentences as the baseline with weight 0; {changed} differ with weight 1.5")


def test_only_a_score_was_added(system):
    _, model, table, form, _ = system
    count = 0
    with gzip.open(model / "scored.gz") as new, gzip.open(table) as old:
        for before, after in zip(old, parse_table(new, "scored", form=form), strict=True):
            end = after.spans.scores_end
            added = words(after.scores)[-1]
            assert after.line[: end - len(added) - 1] + after.line[end:] == before
            assert 0 < float(added) <= 1
            count += 1
    assert count > 10_000


def test_verify_agrees(moses_root, system):
    kind, model, _, _, _ = system
    done = run("verify", "scored.gz", cwd=model)
    print(done.stdout)
    assert ("moses2: left out" in done.stderr) == (kind in {"hierarchical", "factored"})
    assert done.stdout.count(" ok: ") == {"hierarchical": 2, "factored": 4}.get(kind, 5)  # what Moses survives
