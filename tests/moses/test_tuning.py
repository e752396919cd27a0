"""Our tuning beside Moses's own programs, on real n-best lists: MOSES_ROOT names a built Moses."""

import gzip
import re
import time

import numpy as np
import pytest

from moses_rnn.moses.decoding import Moses
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.nbest.lists import bleu_of, read_tunable
from moses_rnn.nbest.mert import RESTARTS
from moses_rnn.nbest.tune import format_features, format_scores, recover_weights, tune
from moses_rnn.nbest.weights import read_weights, select_weights
from tests.moses.decoding import ran

pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, multi30k):
    """The development set's n-best lists and references, not compressed."""
    folder = tmp_path_factory.mktemp("tuning")
    for name, path in (("nbest", "nbest.val.100.gz"), ("reference", "val.fr.gz")):
        (folder / name).write_bytes(gzip.decompress((multi30k / path).read_bytes()))
    return folder


@pytest.fixture(scope="module")
def points(folder):
    references = (folder / "reference").read_bytes().split(b"\n")[:-1]
    with (folder / "nbest").open("rb") as lines:
        return read_tunable(parse_nbest(lines, "nbest"), [references])


@pytest.fixture(scope="module")
def of_ini(multi30k):
    """The weights of the ini before any tuning, and those that the lists were made with."""
    return [read_weights(str(multi30k / name)) for name in ("moses.ini", "moses.tuned.ini")]


def test_mosess_extractor_writes_the_same_files(moses_root, folder, points):
    files = ("--ffile", "features.dat", "--scfile", "scores.dat")
    ran(moses_root / "bin" / "extractor", "-d", "-r", "reference", "-n", "nbest", *files, cwd=folder)
    assert "".join(format_features(points)) == (folder / "features.dat").read_text()
    assert "".join(format_scores(points)) == (folder / "scores.dat").read_text()


def test_with_several_references_too(moses_root, folder, points):
    lines = (folder / "reference").read_bytes().split(b"\n")[:-1]
    second = [b" ".join(reversed(line.split(b" "))) + b" encore" for line in lines]
    (folder / "second").write_bytes(b"".join(line + b"\n" for line in second))
    files = ("--ffile", "two.features.dat", "--scfile", "two.scores.dat")
    ran(moses_root / "bin" / "extractor", "-d", "-r", "reference,second", "-n", "nbest", *files, cwd=folder)
    with (folder / "nbest").open("rb") as nbest:
        with_two = read_tunable(parse_nbest(nbest, "nbest"), [lines, second])
    assert not np.array_equal(with_two.statistics, points.statistics)
    assert "".join(format_scores(with_two)) == (folder / "two.scores.dat").read_text()


def test_the_weights_of_the_lists_are_found(points, of_ini):
    recovered = recover_weights(points)
    assert recovered == pytest.approx(select_weights(points.names, of_ini[1]), abs=2e-5)


def test_ours_reaches_what_mosess_mert_reaches_and_means_the_same_bleu(moses_root, folder, points, of_ini):
    for name, lines in (("features.dat", format_features(points)), ("scores.dat", format_scores(points))):
        (folder / name).write_text("".join(lines))
    start = select_weights(points.names, of_ini[0])
    ranges = [" ".join([word] * len(start)) for word in ("0", "1")]
    (folder / "init.opt").write_text("\n".join([" ".join(map(str, start)), *ranges, ""]))
    files = ("--ffile", "features.dat", "--scfile", "scores.dat", "--ifile", "init.opt")
    mert = [moses_root / "bin" / "mert", "-d", len(start), "-n", RESTARTS]
    ours, theirs = [], []
    for seed in SEEDS:
        began = time.monotonic()
        tuned = tune(points, start, seed=seed)
        ours.append(bleu_of(points, tuned))
        assert ours[-1] > bleu_of(points, start)
        assert np.abs(tuned).sum() == pytest.approx(1)
        done = ran(*mert, "-r", seed, *files, cwd=folder)
        ((weights, bleu),) = re.findall(r"Best point: (.*) => (\S+)", done.stderr)
        theirs.append(float(bleu))
        print(f"seed {seed}: we reach {ours[-1]:.5f}, mert {bleu}, in {time.monotonic() - began:.0f} s together")
        # its weights are printed with six digits
        assert bleu_of(points, [float(weight) for weight in weights.split()]) == pytest.approx(float(bleu), abs=2e-4)
    assert max(ours) >= max(theirs) - 0.001


def test_kbmira(moses_root, points, of_ini):
    start = select_weights(points.names, of_ini[0])
    tuned = tune(points, start, "kbmira", seed=1, moses=Moses(moses_root))
    print(f"kbmira: BLEU {100 * bleu_of(points, tuned):.3f}")
    assert bleu_of(points, tuned) > bleu_of(points, start)


def test_a_constant_feature_keeps_its_ratio(moses_root, folder):
    references = (folder / "reference").read_bytes().split(b"\n")[:60]
    with (folder / "nbest").open("rb") as lines:
        parsed = [line for line in parse_nbest(lines, "nbest") if line.sentence < 60]
    added = [line.with_features([("New0", [b"-2.5"])]) for line in parsed]
    points = read_tunable(parse_nbest(added, "nbest"), [references])
    start = np.append(np.full(len(points.names) - 1, 0.1), 0.7)
    for optimiser in ("mert", "kbmira"):
        tuned = tune(points, start, optimiser, seed=1, restarts=3, moses=Moses(moses_root))
        assert points.constant == ("New0_0",)
        assert tuned[-1] == pytest.approx(start[-1] / np.abs(start[:-1]).sum())
        assert np.abs(tuned[:-1]).sum() == pytest.approx(1)
        assert bleu_of(points, tuned) > bleu_of(points, start)
