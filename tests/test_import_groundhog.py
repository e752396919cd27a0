"""examples/import_groundhog.py: weights of the released code score as that code does, or are refused."""

import gzip
import runpy

import numpy as np
import pytest

from moses_rnn.cli import score
from moses_rnn.models.open import open_model
from tests.conftest import EXAMPLES
from tests.networks.reference_groundhog import SOURCE_LINES, TARGET_LINES, K, S, log_prob, weights

PAIRS = [(b"s2 s3", b"t2"), (b"s2 s3", b"t4 t2 rare"), (b"rare", b"t3"), (b"s7 s6 s5", b"t5 t5"), (b"s2", b"<s>")]


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Run the script on weights in this process; its exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(tensors, *options, source=SOURCE_LINES):
        np.savez("m.npz", **tensors)
        (tmp_path / "s").write_bytes(b"\n".join(source) + b"\n")
        (tmp_path / "t").write_bytes(b"\n".join([*TARGET_LINES, b"last"]) + b"\n")
        monkeypatch.setattr("sys.argv", ["import_groundhog.py", "m.npz", "s", "t", "model", *options])
        try:
            runpy.run_path(str(EXAMPLES / "import_groundhog.py"), run_name="__main__")
        except SystemExit as end:
            return end.code, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return run


def rows(lines, phrase, end):
    """Ids of the released code."""
    known = {word: row for row, word in enumerate(lines) if row > 1 and row != end} | {b"<s>": 0}
    return [*(known.get(word, 1) for word in phrase.split()), end]


@pytest.mark.parametrize("end_row", [None, 3])
@pytest.mark.parametrize("network", ["phrases", "search"])
def test_an_imported_network_scores_a_table_as_the_released_code_does(tmp_path, convert, network, end_row):
    tensors = weights(network)
    options = ["--unit", "phrases", *([] if end_row is None else ["--end-row", str(end_row)])]
    without_place = {"W_back_dec": np.zeros((5, 5))} if network == "phrases" else {}
    code, output, messages = convert(tensors | without_place, *options, source=[*SOURCE_LINES, b"s8"])
    assert not code, messages
    assert ("left out: ['W_back_dec']" in output) == (network == "phrases")
    loaded = open_model(tmp_path / "model", of_pairs=False)
    assert (loaded.unit, loaded.direction) == ("phrases", "source-to-target")
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"".join(b"%b ||| %b ||| 0.5\n" % pair for pair in PAIRS)))
    with pytest.raises(SystemExit, match="0"):
        score.main(["t.gz", "--model", "model", "--allow-misfit", "--quiet"])
    lines = gzip.decompress((tmp_path / "t.rnn.gz").read_bytes()).splitlines()
    theirs = {name: array.astype(float) for name, array in tensors.items()}
    ends = [size - 1 if end_row is None else end_row for size in (S, K)]
    for line, (source, target) in zip(lines, PAIRS, strict=True):
        ids = rows(SOURCE_LINES, source, ends[0]), rows(TARGET_LINES, target, ends[1])
        expected = log_prob(theirs, *ids)
        assert np.log(float(line.split(b"|||")[2].split()[-1])) == pytest.approx(expected, rel=1e-5)


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
        (weights("phrases"), SOURCE_LINES[:-1]),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path, convert, tensors, source):
    code, *_ = convert(tensors, source=source)
    assert code not in (None, 0)
    assert not (tmp_path / "model").exists()
