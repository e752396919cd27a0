"""examples/import_groundhog.py: weights of the released code score as that code does, or are refused."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from moses_rnn.cli import score
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.rnnsearch import RNNSEARCH
from moses_rnn.scorers.open import open_model
from tests.conftest import EXAMPLES
from tests.networks import reference_groundhog as reference
from tests.networks.groundhog_weights import SOURCE_LINES, TARGET_LINES, K, S, weights

NETWORKS = {"phrases": (ENCDEC, reference.phrase_log_prob), "search": (RNNSEARCH, reference.search_log_prob)}
PAIRS = [(b"s2 s3", b"t2"), (b"s2 s3", b"t4 t2 rare"), (b"rare", b"t3"), (b"s7 s6 s5", b"t5 t5"), (b"s2", b"<s>")]


def convert(here, tensors, *options, source=SOURCE_LINES):
    """Run the script; the completed process."""
    np.savez(here / "m.npz", **tensors)
    (here / "s").write_bytes(b"\n".join(source) + b"\n")
    (here / "t").write_bytes(b"\n".join([*TARGET_LINES, b"last"]) + b"\n")
    script = [sys.executable, EXAMPLES / "import_groundhog.py", "m.npz", "s", "t", "model", *options]
    return subprocess.run(script, cwd=here, check=False, capture_output=True, text=True)


def rows(lines, phrase, end):
    """Ids of the released code."""
    known = {word: row for row, word in enumerate(lines) if row > 1 and row != end} | {b"<s>": 0}
    return [*(known.get(word, 1) for word in phrase.split()), end]


@pytest.mark.parametrize("end_row", [None, 3])
@pytest.mark.parametrize("network", NETWORKS)
def test_an_imported_network_scores_a_table_as_the_released_code_does(tmp_path, monkeypatch, network, end_row):
    monkeypatch.chdir(tmp_path)
    tensors = weights(network)
    options = ["--unit", "phrases", *([] if end_row is None else ["--end-row", str(end_row)])]
    done = convert(tmp_path, tensors, *options, source=[*SOURCE_LINES, b"s8"])
    assert done.returncode == 0, done.stderr
    loaded = open_model(tmp_path / "model", of_pairs=False)
    assert (loaded.unit, loaded.direction) == ("phrases", "source-to-target")
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"".join(b"%b ||| %b ||| 0.5\n" % pair for pair in PAIRS)))
    with pytest.raises(SystemExit, match="0"):
        score.main(["t.gz", "--model", "model", "--log", "--allow-misfit", "--quiet"])
    lines = gzip.decompress((tmp_path / "t.rnn.gz").read_bytes()).splitlines()
    theirs = {name: array.tolist() for name, array in tensors.items()}
    ends = [size - 1 if end_row is None else end_row for size in (S, K)]
    for line, (source, target) in zip(lines, PAIRS, strict=True):
        ids = rows(SOURCE_LINES, source, ends[0]), rows(TARGET_LINES, target, ends[1])
        expected = NETWORKS[network][1](theirs, *ids)
        assert float(line.split(b"|||")[2].split()[-1]) == pytest.approx(expected, rel=1e-5)


def test_tensors_without_a_place_are_listed(tmp_path):
    done = convert(tmp_path, weights("phrases") | {"W_back_enc_transition_0": np.zeros((5, 5))}, "--inverse")
    assert "left out: ['W_back_enc_transition_0']" in done.stdout
    assert open_model(tmp_path / "model").inverse


def changed(name, array):
    tensors = weights("phrases") | {name: array}
    return {key: value for key, value in tensors.items() if value is not None}


@pytest.mark.parametrize(
    ("tensors", "source"),
    [
        (changed("G_enc_transition_0", None), SOURCE_LINES),
        (changed("R_dec_transition_0", np.zeros((5, 6))), SOURCE_LINES),
        (changed("W_dec_transition_0", np.full((5, 5), np.nan)), SOURCE_LINES),
        (changed("W_dec_transition_0", np.array([{}])), SOURCE_LINES),  # a pickle
        (changed("b_0_enc_approx_embdr", np.zeros(1)), SOURCE_LINES),
        (weights("phrases"), SOURCE_LINES[:-1]),
        (weights("phrases"), [*SOURCE_LINES[:-1], b"s2"]),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path, tensors, source):
    done = convert(tmp_path, tensors, source=source)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "model").exists()
