"""Lists in which some hypotheses copy a word that others translate: MOSES_ROOT names a built Moses."""

import itertools

import pytest

from tests.commands import run
from tests.moses.decoding import decode, ran
from tests.moses.test_reranker import INI

pytestmark = pytest.mark.moses

WORDS = "a b d e"
TABLE = sorted(
    [f"{word} ||| {word.upper()}{k} ||| 0.{k} 0.{9 - k}\n" for word in WORDS.split() for k in (1, 3, 4)]
    + ["a c ||| AC ||| 0.01 0.02\n", "a c ||| A1 C ||| 0.02 0.01\n"]  # c alone has no phrase
)
SENTENCES = ["a c", "b a c", "a c d", "e d b", "a unknown b"]
DECODERS = {"moses": [], "beam": ["-beam-threshold", "0"], "cube": ["-beam-threshold", "0", "-search-algorithm", "1"]}


@pytest.fixture
def listed(moses_root, tmp_path):
    """Makes a list, and the decoder's best translations as its reference."""

    def made(decoder, penalty="UnknownWordPenalty"):
        (tmp_path / "table").write_text("".join(TABLE))
        (tmp_path / "moses.ini").write_text(INI.replace("UnknownWordPenalty\n", f"{penalty}\n", 1))
        flags = ["-n-best-list", "nbest", "500", "distinct"]
        if decoder == "moses2":
            text = "".join(sentence + "\n" for sentence in SENTENCES)
            ran(moses_root / "bin" / "moses2", "-f", "moses.ini", *flags, input=text, cwd=tmp_path)
        else:
            decode(moses_root, tmp_path, "moses.ini", SENTENCES, *flags, *DECODERS[decoder])
        lines = (tmp_path / "nbest").read_text().splitlines()
        first = [next(of_sentence) for _, of_sentence in itertools.groupby(lines, lambda line: line.split(" ")[0])]
        (tmp_path / "best").write_text("".join(line.split(" ||| ")[1].strip() + "\n" for line in first))
        copied = [line for line in lines if " c " in line.split("||")[1]]
        return tmp_path, len(copied)

    return made


COMMANDS = (
    ("tune", "nbest", "--reference", "best", "-o", "new.ini", "--force"),
    ("tune", "nbest", "--reference", "best", "--weights", "moses.ini", "-o", "new.ini", "--force"),
    ("rerank", "nbest", "moses.ini", "-o", "out", "--force"),
)


@pytest.mark.parametrize("decoder", ["beam", "cube", "moses2"])
def test_hidden_penalties_are_refused(listed, decoder):
    folder, copied = listed(decoder)
    assert copied
    for words in COMMANDS:
        done = run("nbest", *words, cwd=folder, check=False)
        assert done.returncode == 3
        assert "nbest: expected totals that the features explain, found " in done.stderr


@pytest.mark.parametrize("decoder", [*DECODERS, "moses2"])
def test_shown_penalties_are_a_feature(listed, decoder):
    folder, copied = listed(decoder, "UnknownWordPenalty" + " tuneable=true" * (decoder != "moses"))
    assert bool(copied) == (decoder != "moses")
    for words in COMMANDS:
        assert "totals" not in run("nbest", *words, cwd=folder).stderr
    assert (folder / "out").read_bytes() == (folder / "best").read_bytes()
    run("nbest", "rerank", "nbest", "new.ini", "-o", "out", "--force", cwd=folder)
    assert (folder / "out").read_bytes() == (folder / "best").read_bytes()
