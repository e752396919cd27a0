"""Networks of subwords: each word is cut by itself, and what is outside the model stays in words."""

import numpy as np
import pytest
import sentencepiece
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.ensembles import make_ensemble
from moses_rnn.models.open import open_model, read_shortlist, save_model
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.subwords import learn_subwords
from tests.contract.rows import CASES, FIRST, WORDS
from tests.contract.test_scores import NATIVE, needs_native
from tests.models.pairs import of_pairs, random_pairs
from tests.networks.saved import edit_config

SUBWORDS = learn_subwords({b"%s%d" % (letter, i): 9 - i for letter in (b"s", b"t") for i in range(8)}, 20)
BOTH = {"source": SUBWORDS, "target": SUBWORDS}
PAIRS = [*random_pairs(40), (b"", b""), (b"s3s2 \xff", b"t2 <unk>"), ("s2▁s3".encode(), b"t9 </s> " + b"t2" * 60)]
OF_SENTENCES, OF_TEXTS = (
    {case.key for case in FIRST for training in case.row.trainings if training.material == material}
    for material in ("sentences", "text")
)
EACH, EACH_OF_SENTENCES, EACH_OF_TEXTS = (
    pytest.mark.parametrize("case", [case for case in FIRST if case.key in keys], ids=str)
    for keys in (OF_SENTENCES | OF_TEXTS, OF_SENTENCES, OF_TEXTS)
)


def pieces(line):
    """By sentencepiece itself, which has no words of its own."""
    library = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.model)
    every = [library.encode(word.decode("utf-8", "replace")) for word in line.split()]
    odd = [len(word) > 100 or "▁".encode() in word or 0 in ids for word, ids in zip(line.split(), every, strict=True)]
    return [i for ids, is_odd in zip(every, odd, strict=True) for i in ([0] if is_odd else ids)]


IDS = [(pieces(source), pieces(target)) for source, target in PAIRS]
WAYS = [pytest.param(case, Compute()) for case in CASES if case.key in OF_SENTENCES | OF_TEXTS]
WAYS += [pytest.param(case, NATIVE, marks=needs_native) for case in FIRST if case.architecture.native]


@pytest.fixture
def folder(tmp_path, case):
    save_model(tmp_path / "m", case.opened(words=BOTH))
    return tmp_path / "m"


@pytest.mark.parametrize(("case", "compute"), WAYS, ids=str)
def test_scores_are_those_of_the_equations_for_the_pieces(case, compute):
    exact, single = case.make(words=BOTH), case.make(torch.float32, words=BOTH)
    if not compute.native:
        scorer = case.opened(exact, BOTH).make_scorer(Compute(precision="fp64"))
        assert of_pairs(scorer, PAIRS) == pytest.approx(case.expected(exact, IDS), abs=1e-10)
    scorer = case.opened(single, BOTH).make_scorer(compute)
    assert of_pairs(scorer, PAIRS) == pytest.approx(case.expected(single, IDS), rel=1e-4, abs=1e-5)
    alone = [of_pairs(scorer, [pair])[0] for pair in PAIRS]
    np.testing.assert_allclose(alone, of_pairs(scorer, PAIRS), rtol=1e-5, atol=1e-6)


@EACH_OF_TEXTS
def test_a_language_model_gives_a_word_the_probability_of_its_pieces(case):
    model = case.opened(words=BOTH)
    scorer, targets = model.make_language_model(), [target for _, target in PAIRS]
    ids = [i for _, target in IDS for i in target]
    lengths = np.array([len(target) for _, target in IDS])
    of_pieces = iter(case.architecture.words(model.network, "cpu", torch.float32).log_probs(np.array(ids), lengths))
    values, unknown = [], []
    for target in targets:
        cuts = [pieces(word) for word in target.split()]
        values += [sum(next(of_pieces) for _ in cut) for cut in [*cuts, [1]]]
        unknown += [cut == [0] for cut in cuts] + [False]
    np.testing.assert_allclose(scorer.word_log_probs(targets), values, rtol=1e-5)
    assert scorer.unknown(targets).tolist() == unknown
    assert any(unknown)
    assert (len(scorer.word_log_probs([])), len(scorer.unknown([]))) == (0, 0)


@EACH_OF_SENTENCES
def test_a_network_from_right_to_left_writes_the_last_piece_first(case):
    scorer = case.opened(words=BOTH, right_to_left=True).make_scorer()
    turned = [(source, target[::-1]) for source, target in IDS]
    assert of_pairs(scorer, PAIRS) == pytest.approx(
        case.expected(case.make(torch.float32, words=BOTH), turned), rel=1e-4
    )


@EACH
def test_a_folder_keeps_the_segmentation(case, folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {*case.architecture.files, "subwords.model"}
    opened = open_model(folder, of_pairs=False)
    assert (
        of_pairs(opened.make_scorer(), PAIRS).tobytes()
        == of_pairs(case.opened(words=BOTH).make_scorer(), PAIRS).tobytes()
    )
    assert opened.meaning.endswith("; words are cut into subwords, in one way each")
    assert "subwords.model" in opened.hashes
    assert read_shortlist(folder).ids([b"s7", b"x"]) == [*pieces(b"s7"), 0]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    save_model(folder, opened)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


OTHER = learn_subwords({b"other": 1}, 20)


@EACH
def test_a_segmentation_that_is_damaged_missing_or_of_other_pieces_is_refused(case, folder):
    path = folder / "subwords.model"
    path.write_bytes(SUBWORDS.model[:-9])
    with pytest.raises(CheckpointError, match=r"m/subwords\.model: expected SHA-256"):
        open_model(folder, of_pairs=False)
    edit_config(folder, files={})
    for content, place in (
        (SUBWORDS.model[:-9], r"subwords\.model: expected a sentencepiece model"),
        (b"", r"subwords\.model: expected a sentencepiece model"),
        (OTHER.model, r"(source|target)\.vocab: expected the pieces of subwords\.model"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=f"m/{place}"):
            open_model(folder, of_pairs=False)
    path.unlink()
    with pytest.raises(CheckpointError, match=r"m/subwords\.model: expected a file of a model folder, found: No such"):
        open_model(folder, of_pairs=False)


def test_a_config_and_its_hashes_must_both_have_subwords(tmp_path):
    for case in FIRST:
        save_model(tmp_path / "m", case.opened())
        (tmp_path / "m" / "subwords.model").write_bytes(SUBWORDS.model)
        edit_config(tmp_path / "m", subwords=1)
        with pytest.raises(CheckpointError, match="expected subwords to be false, or true for"):
            open_model(tmp_path / "m", of_pairs=False)
        edit_config(tmp_path / "m", subwords=True)
        with pytest.raises(CheckpointError, match="expected files to have the hashes of"):
            open_model(tmp_path / "m", of_pairs=False)


@EACH_OF_SENTENCES
def test_members_of_an_ensemble_cut_words_alike(case, tmp_path):
    network = case.make(torch.float32, words=BOTH)
    two = [case.opened(network, BOTH), case.opened(network, BOTH)]
    for combination in ("geometric", "mean-log"):
        scores = of_pairs(make_ensemble(two, combination).make_scorer(), PAIRS)
        np.testing.assert_allclose(scores, of_pairs(two[0].make_scorer(), PAIRS), rtol=1e-4, atol=1e-5)
    for words in ({"source": OTHER, "target": OTHER}, WORDS):
        with pytest.raises(CheckpointError, match="expected the words in target.vocab"):
            make_ensemble([two[0], case.opened(words=words)])
