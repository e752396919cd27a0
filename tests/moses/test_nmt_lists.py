"""Moses's own extractor and mert read the lists that a network writes; MOSES_ROOT names a built Moses."""

import pytest

from moses_rnn.moses.nbest import format_nbest_line, parse_nbest
from moses_rnn.nbest.lists import read_tunable
from moses_rnn.nbest.tune import format_features, format_scores
from moses_rnn.networks.compute import HERE
from moses_rnn.translation.search import BeamConfig
from moses_rnn.translation.translate import Translator
from tests.moses.decoding import ran
from tests.translation.sentences import sentences, text
from tests.translation.writers import attentive

pytestmark = pytest.mark.moses


@pytest.fixture
def folder(tmp_path):
    """A list, with an empty line's and alignments, and the reference of it: its second hypotheses, where there are."""
    search = BeamConfig(width=6, best=5, words_per_source_word=3)
    translations = list(Translator(attentive(), HERE, search, aligned=5)(sentences(40), "in"))
    lines = [
        format_nbest_line(number, candidate.words, "SEARCH0", candidate.log_prob, candidate.links)
        for number, translation in enumerate(translations)
        for candidate in translation.candidates
    ]
    (tmp_path / "list").write_bytes(b"".join(lines))
    (tmp_path / "reference").write_bytes(text(translation.candidates[-1].words for translation in translations))
    return tmp_path


def test_mosess_programs_read_the_lists(moses_root, folder):
    programs = moses_root / "bin"
    ran(programs / "extractor", "-d", "-r", "reference", "-n", "list", "-F", "features", "-S", "scores", cwd=folder)
    references = (folder / "reference").read_bytes().split(b"\n")[:-1]
    with (folder / "list").open("rb") as lines:
        points = read_tunable(parse_nbest(lines, "list"), [references])
    assert "".join(format_features(points)) == (folder / "features").read_text()
    assert "".join(format_scores(points)) == (folder / "scores").read_text()
    (folder / "init.opt").write_text("1\n0\n1\n")
    data = "--ffile", "features", "--scfile", "scores", "--ifile", "init.opt"
    ran(programs / "mert", "-d", "1", "-n", "2", "-r", "1", *data, cwd=folder)
    assert (folder / "weights.txt").read_text().split()
