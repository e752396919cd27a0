"""The real decoders load an extended table, in all its forms, and use what is new in it."""

import gzip
import math
import re

import pytest

from moses_rnn.files.streams import read_lines
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.commands import run
from tests.conftest import EXAMPLES, TINY
from tests.moses.decoding import decode

pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]
ANY = ["--min-log-prob", "-1e9", "--top", "2"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory, moses_root):
    """The example table with lines for pairs of words that it lacks, and its ini."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("phrase-table.gz", "lm.arpa.gz", "moses.ini"):
        (folder / name).symlink_to(EXAMPLES / name)
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.3", "--quiet", cwd=folder)
    sentences = (EXAMPLES / "corpus" / "dev.en").read_text().splitlines()[:40]
    (folder / "text").write_text("".join(" ".join(reversed(sentence.split())) + "\n" for sentence in sentences))
    options = ["--text", "text", "--longest", "2", "--moses-ini", "moses.ini"]
    run("extend", "phrase-table.gz", *options, *ANY, "--allow-misfit", "-q", cwd=folder)
    return folder


def new_lines(folder):
    with gzip.open(folder / "phrase-table.extended.gz") as lines:
        return [line for line in parse_table(lines, "new") if line.is_proposed]


def test_all_kinds_of_dictionaries_show_what_the_table_says(moses_root, extended):
    options = ["--moses-ini", "moses.extended.ini"]
    done = run("verify", "phrase-table.extended.gz", *options, cwd=extended, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"(?m)^\S+ +ok: \d+ pairs", done.stdout)) == 6


def test_the_decoder_uses_new_pairs_with_their_scores(moses_root, extended):
    new = {(line.source.decode(), line.target): words(line.scores) for line in new_lines(extended)}
    assert len(new) > 50
    sources = sorted({source for source, _ in new})
    flags = ["-n-best-list", "nbest", "200", "-include-segmentation-in-n-best"]
    decode(moses_root, extended, "moses.extended.ini", sources, *flags)
    seen = 0
    for line in parse_nbest(read_lines(str(extended / "nbest")), "nbest"):
        pair = sources[line.sentence], line.hypothesis
        if len(line.further[0].split()) == 1 and pair in new:
            logs = [max(math.log(float(score)), -100) for score in new[pair]]
            assert line.values("TranslationModel0") == pytest.approx(logs, abs=1e-3)
            seen += 1
    assert seen > len(sources) / 2
