"""What the real decoder makes of our tables and inis: MOSES_ROOT names a built Moses."""

import gzip
import math
import random
import re
import subprocess

import pytest

from moses_rnn.files.streams import read_lines
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.commands import ROOT, run
from tests.conftest import EXAMPLES
from tests.moses.decoding import decode

CONFIGS = ROOT / "moses_configs"
pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]
SIZES = ["--hidden-size", "32", "--embedding-size", "16"]


def one_phrase_features(moses_root, folder, ini, sentences):
    """The phrase-table features of all hypotheses that are one phrase pair, by the pair."""
    decode(moses_root, folder, ini, sentences, "-n-best-list", "nbest", "500", "-include-segmentation-in-n-best")
    features = {}
    for line in parse_nbest(read_lines(str(folder / "nbest")), "nbest"):
        if len(line.further[0].split()) == 1:
            features[sentences[line.sentence], line.hypothesis.decode()] = line.values("TranslationModel0")
    return features


def prepare(source, folder, *options):
    """Train on a system's table for a short while, score the table, extend the ini."""
    for path in source.iterdir():
        if path.is_file():
            (folder / path.name).symlink_to(path)
    run("train", "phrase-table.gz", *SIZES, *options, "--quiet", cwd=folder)
    run("score", "phrase-table.gz", "--moses-ini", "moses.ini", "--word-penalty", "--quiet", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def system(tmp_path_factory, moses_root):
    return prepare(EXAMPLES, tmp_path_factory.mktemp("system"), "--shortlist", "150", "--max-epochs", "2")


@pytest.fixture(scope="module", params=["example", "Multi30k"])
def any_system(request, tmp_path_factory, moses_root):
    """The example system, or that of a real corpus, scored; and sentences to translate."""
    if request.param == "example":
        sentences = (EXAMPLES / "corpus" / "dev.en").read_text().split("\n")[:-1]
        return request.getfixturevalue("system"), sentences
    multi30k = request.getfixturevalue("multi30k")
    folder = tmp_path_factory.mktemp("multi30k")
    real = prepare(multi30k, folder, "--shortlist", "1000", "--max-minutes", "1")
    with gzip.open(real / "val.en.gz", "rt", encoding="utf-8", newline="\n") as lines:
        return real, [line.rstrip("\n") for line in lines]


def test_the_decoder_sees_the_log_probability(moses_root, any_system):
    (folder, _), sources = any_system, 300
    with gzip.open(folder / "phrase-table.rnn.gz") as lines:
        table = list(parse_table(lines, "scored"))
    chosen = {line.source for line in random.Random(1).sample(table, sources)}
    expected = {
        (line.source.decode(), line.target.decode()): [math.log(float(score)) for score in words(line.scores)[-2:]]
        for line in table
        if line.source in chosen
    }
    seen = one_phrase_features(moses_root, folder, "moses.rnn.ini", sorted(source.decode() for source in chosen))
    assert len(seen) > sources / 2
    differences = [
        abs(a - b) for pair, values in seen.items() for a, b in zip(values[-2:], expected[pair], strict=True)
    ]
    print(f"{len(seen)} pairs, largest difference {max(differences):.2g}")
    assert max(differences) <= 1e-4


def test_weight_zero_is_the_baseline(moses_root, any_system):
    folder, sentences = any_system
    text = (folder / "moses.rnn.ini").read_text()
    zero = re.sub(r"(?m)^(TranslationModel0= \S+ \S+ \S+ \S+) \S+ \S+$", r"\1 0 0", text)
    assert zero != text
    (folder / "zero.ini").write_text(zero)
    baseline = decode(moses_root, folder, "moses.ini", sentences)
    assert len(baseline) == len(sentences)
    assert decode(moses_root, folder, "zero.ini", sentences) == baseline
    assert decode(moses_root, folder, "moses.rnn.ini", sentences) != baseline


def test_mert_tunes_the_new_weights_with_no_other_change(moses_root, system, tmp_path):
    mert = [
        moses_root / "scripts" / "training" / "mert-moses.pl",
        EXAMPLES / "corpus" / "dev.en", EXAMPLES / "corpus" / "dev.fr", moses_root / "bin" / "moses", system / "moses.rnn.ini",
        "--mertdir", moses_root / "bin", "--rootdir", moses_root / "scripts", "--working-dir", tmp_path / "mert",
        "--maximum-iterations", "2", "--decoder-flags", "-threads 2", "--predictable-seeds",
    ]  # fmt: skip
    done = subprocess.run(mert, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    tuned = (tmp_path / "mert" / "moses.ini").read_text()
    (line,) = re.findall(r"(?m)^TranslationModel0= .*$", tuned)
    assert len(line.split()) == 7
    assert line not in (system / "moses.rnn.ini").read_text()
    assert "num-features=6" in tuned


@pytest.mark.parametrize("template", ["baseline.ini", "rnn.ini", "rnn-wp.ini"])
def test_the_templates_are_inis(moses_root, tmp_path, template):
    text = (CONFIGS / template).read_text()
    (tmp_path / template).write_text(text.replace("/path/to/lm.binary", str(EXAMPLES / "lm.arpa.gz")))  # it is opened
    weights = decode(moses_root, tmp_path, template, [], "-show-weights")
    (line,) = [line for line in weights if line.startswith("TranslationModel0=")]
    assert len(line.split()) - 1 == {"baseline.ini": 4, "rnn.ini": 5, "rnn-wp.ini": 6}[template]
