"""Files that earlier versions wrote, with the code as it is now; README.md says what they are."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import moses_rnn
from tests.commands import zygote
from tests.nbest.stub_moses import put_stub

HERE = Path(__file__).parent


@pytest.fixture(params=sorted(path.name for path in HERE.glob("[1-9]*")))
def kept(request, tmp_path, monkeypatch):
    """A copy of a version's files, and a stub in Moses's place."""
    folder = tmp_path / "kept"
    shutil.copytree(HERE / request.param, folder)
    settings = folder / "reranker" / "reranker.toml"
    settings.write_text(settings.read_text().replace("/kept/", f"{folder}/"))
    put_stub(tmp_path)
    monkeypatch.setenv("MOSES_ROOT", str(tmp_path / "moses"))
    return folder


def test_a_table_its_signature_and_its_network_are_read(kept):
    done = zygote("validate", kept / "table.rnn.gz", "--quick")
    assert done.returncode == 0, done.stderr
    table = moses_rnn.read_table(kept / "table.rnn.gz")
    scores = moses_rnn.load(kept / "phrases", device="cpu").score(table)
    np.testing.assert_allclose(scores, np.log(table.to_columns()["RNN"]), rtol=1e-5)


def test_networks_of_sentences_and_words_give_the_same_scores(kept):
    expected = json.loads((kept / "scores.json").read_bytes())
    sources, targets = ((kept / f"dev.{side}").read_text().splitlines() for side in ("en", "fr"))
    sentences = moses_rnn.load(kept / "reranker" / "models" / "sentences", device="cpu")
    np.testing.assert_allclose(sentences.score(sources, targets), expected["sentences"], rtol=1e-5)
    words = moses_rnn.load_language_model(kept / "reranker" / "models" / "words", device="cpu")
    np.testing.assert_allclose(words.score(sources), expected["words"], rtol=1e-5)


def test_a_reranker_chooses_the_same_translations(kept):
    done = zygote("reranker", "translate", "reranker", "dev.en", "--json", "--device", "cpu", cwd=kept)
    assert (done.returncode, done.stderr) == (0, "6 lines\n")
    given, expected = (
        [json.loads(line) for line in text.splitlines()]
        for text in (done.stdout, (kept / "translated.json").read_bytes())
    )
    assert numbers_of(given) == [pytest.approx(numbers, rel=1e-5) for numbers in numbers_of(expected)]
    assert given == expected


def numbers_of(lines):
    """Take the scores and features out of lines."""
    return [[line.pop("score"), *itertools.chain(*line.pop("features").values())] for line in lines]
