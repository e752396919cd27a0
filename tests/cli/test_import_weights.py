"""moses-rnn-import: an archive of the released code becomes a model that scores, or is refused and leaves nothing."""

import gzip
import json

import numpy as np
import pytest

from moses_rnn.cli import import_weights, score
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.rnnsearch import RNNSEARCH
from tests.models import reference_groundhog as reference
from tests.models.groundhog_weights import SOURCE_LINES, TARGET_LINES, K, S, weights

NETWORKS = {"phrases": (ENCDEC, reference.phrase_log_prob), "search": (RNNSEARCH, reference.search_log_prob)}
PAIRS = [(b"s2 s3", b"t2"), (b"s2 s3", b"t4 t2 rare"), (b"rare", b"t3"), (b"s7 s6 s5", b"t5 t5"), (b"s2", b"<s>")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an archive of each network, and two vocabularies."""
    monkeypatch.chdir(tmp_path)
    for network in NETWORKS:
        np.savez(tmp_path / f"{network}.npz", **weights(network))
    (tmp_path / "s").write_bytes(b"\n".join(SOURCE_LINES) + b"\n")
    (tmp_path / "t").write_bytes(b"\n".join(TARGET_LINES) + b"\n")
    return tmp_path


def run(main, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == code


def import_model(*arguments, code=0):
    run(import_weights.main, *arguments, "--source-vocabulary", "s", "--target-vocabulary", "t", code=code)


def rows(lines, phrase, end):
    """Ids of the released code."""
    known = {word: row for row, word in enumerate(lines) if row > 1} | {b"<s>": 0}
    return [*(known.get(word, 1) for word in phrase.split()), end]


@pytest.mark.parametrize("network", NETWORKS)
def test_an_imported_network_scores_a_table_as_the_released_code_does(here, network):
    import_model(f"{network}.npz", "--unit", "phrases", "--quiet")
    loaded = load_checkpoint(here / f"{network}.rnn-model", NETWORKS[network][0])
    assert (loaded.unit, loaded.direction) == ("phrases", "source-to-target")
    assert loaded.provenance["imported"] == {"archive": f"{network}.npz", "left_out": []}
    (here / "t.gz").write_bytes(gzip.compress(b"".join(b"%b ||| %b ||| 0.5\n" % pair for pair in PAIRS)))
    run(score.main, "t.gz", "--model", f"{network}.rnn-model", "--log", "--allow-misfit", "--quiet")
    lines = gzip.decompress((here / "t.rnn.gz").read_bytes()).splitlines()
    theirs = {name: array.tolist() for name, array in weights(network).items()}
    for line, (source, target) in zip(lines, PAIRS, strict=True):
        ids = rows(SOURCE_LINES, source, S - 1), rows(TARGET_LINES, target, K - 1)
        expected = NETWORKS[network][1](theirs, *ids)
        assert float(line.split(b"|||")[2].split()[-1]) == pytest.approx(expected, rel=1e-5)


def test_what_is_imported_and_what_is_not_is_said(here, capfd):
    np.savez(here / "more.npz", **weights("phrases"), W_back_enc_transition_0=np.zeros((5, 5)))
    (here / "t").write_bytes((here / "t").read_bytes() + b"eos\nrare\n")
    import_model("more.npz", "--inverse", "--unit", "sentences", "--model", "m")
    words = capfd.readouterr().err
    assert "encdec, H 5, E 3, 9 and 8 words: m" in words
    assert "left out, as this network does not have them: W_back_enc_transition_0" in words
    assert "left out: 1 target words at the end of their list, which have no row" in words
    loaded = load_checkpoint(here / "m")
    assert (loaded.unit, loaded.inverse) == ("sentences", True)
    assert loaded.source_vocabulary.words[:4] == [b"<unk>", b"</s>", b"<s>", b"s2"]


def test_a_model_is_replaced_only_on_request(here, capfd):
    import_model("search.npz")
    before = (here / "search.rnn-model" / "model.safetensors").read_bytes()
    assert json.loads((here / "search.rnn-model" / "config.json").read_text())["unit"] == "sentences"
    np.savez(here / "search.npz", **weights("search", seed=5))
    import_model("search.npz", code=1)
    assert "search.rnn-model: exists already; --force replaces it" in capfd.readouterr().err
    assert (here / "search.rnn-model" / "model.safetensors").read_bytes() == before
    import_model("search.npz", "--force")
    assert (here / "search.rnn-model" / "model.safetensors").read_bytes() != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda here: np.savez(here / "phrases.npz", W=np.zeros(3)), "phrases.npz: expected the 30 tensors of gated units"),
        (lambda here: (here / "phrases.npz").write_bytes(b"PK"), "phrases.npz: expected a .npz archive, found"),
        (lambda here: (here / "phrases.npz").unlink(), "phrases.npz: expected a file, found nothing of that name"),
        (lambda here: np.savez(here / "phrases.npz", W=np.array([{}])), "'W.npy': expected float32 or float64"),
        (lambda here: (here / "s").write_bytes(b"a\nb\nc\n"), "s: expected a word for each of 9 rows but the last, found 3"),
        (lambda here: (here / "t").unlink(), "t: expected a file, found nothing of that name"),
        (lambda here: (here / "t").write_bytes(b"a\nb\nc\nd\nc\ng\nh\n"), "t: line 5: expected each word once, found b'c'"),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing(here, capfd, change, message):
    change(here)
    import_model("phrases.npz", code=3)
    assert message in capfd.readouterr().err
    assert not (here / "phrases.rnn-model").exists()


def test_an_end_row_that_there_is_not_is_refused(here, capfd):
    import_model("phrases.npz", "--end-row", 8, code=3)
    assert "t: expected the end symbol's row to be one of 8, but not 1, found 8" in capfd.readouterr().err
