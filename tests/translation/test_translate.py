"""Lines in, translations out: in order, each line's own, with all that is known of them."""

import itertools

import numpy as np
import pytest
import torch

from moses_rnn.errors import ScoreError
from moses_rnn.models.open import open_model
from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.networks.compute import HERE, Compute
from moses_rnn.networks.encdec import EncDecStepper
from moses_rnn.networks.subwords import learn_subwords
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Vocabulary
from moses_rnn.translation import search, translate
from moses_rnn.translation.requests import RULES
from moses_rnn.translation.search import BeamConfig, GeneratedTarget
from moses_rnn.translation.translate import (
    CandidateLists,
    Translator,
    align,
    of_words,
    restore_by_attention,
    rule_of,
    word_for,
)
from tests.models.pairs import TARGET
from tests.models.rare import save_rare_model
from tests.networks.id_pairs import flat
from tests.translation.sentences import network, saved_model, sentences
from tests.translation.writers import attentive, model_of

LINES = [b"s2 s3 s4", b"", b"s8", b"  s5\ts5 zork ", b"s2 s3 s4", b" ", b"s6 s7 s2 s3 s4 s5 s6"]
MODEL = network()
BEAM = BeamConfig(width=4, best=3, words_per_source_word=3)


def stepper():
    return EncDecStepper(MODEL, dtype=torch.float64)


def attentive_stepper():
    return attentive().make_stepper(Compute(precision="fp64"))


def translator(writer=None, config=BEAM, **options):
    return Translator(model_of(writer or stepper()), HERE, config, **options)


def test_lines_come_back_in_order_each_as_if_alone(monkeypatch):
    together = list(translator()(LINES, "t"))
    alone = [next(translator()([line], "t")) for line in LINES]
    monkeypatch.setattr(translate, "LINES", 2)
    monkeypatch.setattr(search, "PREFIXES_NEAR", 1)
    in_twos = list(translator()(LINES, "t"))
    for one, other in itertools.chain(zip(together, alone, strict=True), zip(in_twos, alone, strict=True)):
        assert one.source == other.source
        assert [(c.words, c.ended) for c in one.candidates] == [(c.words, c.ended) for c in other.candidates]
        assert [c.log_prob for c in one.candidates] == pytest.approx([c.log_prob for c in other.candidates], abs=1e-12)
    assert together[0] == together[4]
    assert len({tuple(c.words for c in translation.candidates) for translation in together}) > 3
    assert together[3].source == [b"s5", b"s5", b"zork"]


def test_empty_lines_are_not_asked_of_the_network(monkeypatch):
    writer = stepper()
    ours = translator(writer)
    monkeypatch.setattr(writer, "encode", None)
    assert [t.best for t in ours([b"", b" \t", b"\r\n"], "t")] == [(b"", 0.0, True, None, b"", 0)] * 3
    assert (ours.counts.lines, ours.counts.empty, ours.counts.unended) == (3, 3, 0)


def test_what_met_the_limit_is_given_as_it_stands():
    endless = network()
    with torch.no_grad():
        endless.decoder.b_G[END_ID] = -500.0
    writer = EncDecStepper(endless, dtype=torch.float64)
    (found,) = translator(writer, BeamConfig(width=2, words_per_source_word=3, length_score="mean"))([b"s2"], "t")
    assert (found.best.ended, len(found.best.words.split())) == (False, 6)
    assert len(found.candidates) == 1


class Mute(EncDecStepper):
    def next_log_probs(self, encoded, prefixes, columns=None):
        log_probs = super().next_log_probs(encoded, prefixes, columns).fill_(-torch.inf)
        log_probs[:, UNKNOWN_ID] = 0
        return log_probs


def test_a_line_for_which_nothing_may_be_written_is_named():
    translate_lines = translator(Mute(MODEL, dtype=torch.float64), unknown="never").translate
    with pytest.raises(ScoreError, match="^'s3': expected a word or the end that may follow, found none") as refused:
        translate_lines([[b"s2", b"s3"], [b"s3"]])
    assert refused.value.row == 1


def is_candidate(line, word):
    """The three most frequent words are, and for each s5 the word t7."""
    return word in (b"<unk>", b"t2", b"t3", b"t4") or (word == b"t7" and b"s5" in line.split())


@pytest.mark.parametrize("writer", [stepper, attentive_stepper])
def test_translations_are_of_their_candidates(writer):
    lexicon = Lexicon({b"s5": [(b"t7", 1.0)], b"zork": [(b"t9", 1.0)]})
    bounded = {"lexicon": lexicon, "candidates": (3, 2)}
    lines = [*LINES, b"s5 s6", b"s6 s5", b"s7", b"s8 s8"]
    together = list(translator(writer(), **bounded)(lines, "t"))
    for line, translation in zip(lines, together, strict=True):
        assert all(is_candidate(line, word) for c in translation.candidates for word in c.words.split())
        (alone,) = translator(writer(), **bounded)([line], "t")
        assert [c.words for c in alone.candidates] == [c.words for c in translation.candidates]
        assert alone.best.log_prob == pytest.approx(translation.best.log_prob, abs=1e-12)


def test_unknown_source_words_have_candidates_too():
    """Lines of equal ids but other words are other lines."""
    lexicon = Lexicon({b"zork": [(b"t7", 1.0)], b"bork": [(b"t6", 1.0)]})
    config = BeamConfig(width=300, best=300, words_per_source_word=1)
    ours = translator(config=config, lexicon=lexicon, candidates=(0, 1))
    words = [{word for c in t.candidates for word in c.words.split()} for t in ours([b"zork", b"bork", b"mork"], "t")]
    assert words == [{b"<unk>", b"t7"}, {b"<unk>", b"t6"}, {b"<unk>"}]


def test_unknown_words_are_replaced_by_what_the_network_looks_at():
    found = list(translator(attentive_stepper(), aligned=3, unknown="copy")(sentences(30), "t"))
    as_written = list(translator(attentive_stepper(), aligned=3)(sentences(30), "t"))
    replaced = 0
    for translation, plain in zip(found, as_written, strict=True):
        for candidate, as_it_was in zip(translation.candidates, plain.candidates, strict=True):
            expected = [
                translation.source[candidate.links[i]] if word == b"<unk>" else word
                for i, word in enumerate(candidate.words.split())
            ]
            assert candidate.text.split() == expected
            assert candidate._replace(text=as_it_was.text, links=tuple(candidate.links), replaced=0) == as_it_was
        replaced += translation.best.words.split().count(b"<unk>")
    assert replaced > 0
    ours = translator(attentive_stepper(), aligned=1, unknown="copy")
    list(ours(sentences(30), "t"))
    assert (ours.counts.replaced, ours.counts.written_unknown) == (replaced, 0)


def test_a_token_for_every_word_needs_twice_as_many_of_them(tmp_path):
    model = open_model(save_rare_model(tmp_path / "model", "posall"))
    assert Translator(model, HERE, BEAM)._search.config.words_per_source_word == 6


def test_what_was_annotated_is_restored_unless_another_rule_is_given(tmp_path):
    plain, rare = open_model(saved_model(tmp_path / "plain")), open_model(save_rare_model(tmp_path / "rare", "posunk"))
    assert [rule_of(model, None, None) for model in (plain, rare)] == ["no", "copy"]
    assert [rule_of(model, None, Lexicon({})) for model in (plain, rare)] == ["no", "dictionary"]
    assert rule_of(rare, "no", None) == "no"


ALIGNED = [(2, 3, 4), (2, 3, 4), (5,), (6, 6, 7, 8, 2), (5,)]
WRITTEN = [
    GeneratedTarget((2, 5, 3), -1.0, ended=True),
    GeneratedTarget((), -1.0, ended=True),
    GeneratedTarget((4, 4, 4, 4), -1.0, ended=False),
    GeneratedTarget((7, 0), -1.0, ended=True),
    GeneratedTarget((2,), -1.0, ended=True),
]


def alpha_of(network, source, hypothesis):
    """Row after row, of this pair alone."""
    encoded, _ = network.encode(*flat([source]))
    prefixes, rows = network.start(encoded), []
    for word in [*hypothesis.words, *[0] * hypothesis.ended]:
        rows.append(network.alignment(encoded, prefixes)[0].tolist())
        prefixes = network.step(encoded, prefixes, torch.tensor([0]), torch.tensor([word]))
    return np.array(rows)


@pytest.mark.parametrize("at_once", [1 << 22, 60, 1])
def test_alpha_is_that_of_each_pair_alone(monkeypatch, at_once):
    monkeypatch.setattr(translate, "NUMBERS_AT_ONCE", at_once)
    network = attentive_stepper()
    alphas = list(align(network, ALIGNED, WRITTEN))
    assert len(alphas) == len(WRITTEN)
    for source, hypothesis, alpha in zip(ALIGNED, WRITTEN, alphas, strict=True):
        assert alpha.shape == (len(hypothesis.words) + hypothesis.ended, len(source) + 1)
        np.testing.assert_allclose(alpha, alpha_of(network, source, hypothesis), atol=1e-6)
        np.testing.assert_allclose(alpha.sum(1), 1, atol=1e-6)


def test_alpha_of_subwords_is_given_to_their_words():
    subwords = learn_subwords({b"ab": 9, b"bb": 3}, 7)  # ▁a, ▁ab, and letters
    source, target = [b"abb", b"x", b"bb"], [b"ab", b"aab"]
    read, written = subwords.ids(source), subwords.ids(target)
    of_source, of_target = ([len(subwords.ids([word])) for word in side] for side in (source, target))
    assert (of_source[1], min(of_source[::2]) > 1, of_target[1] > 1) == (1, True, True)
    alpha = np.random.default_rng(1).random((len(written) + 1, len(read) + 1), np.float32)
    first, second = of_source[0], of_source[0] + 1
    expected = [
        [*(row[part].sum() for part in (slice(first), slice(first, second), slice(second, -1))), row[-1]]
        for row in (alpha[0], alpha[of_target[0]], alpha[-1])
    ]
    np.testing.assert_allclose(of_words(alpha, subwords, read, subwords, written), expected, rtol=1e-6)
    np.testing.assert_allclose(of_words(alpha[:-1], subwords, read, subwords, written), expected[:-1], rtol=1e-6)
    assert of_words(alpha[:0], subwords, read, subwords, []).shape == (0, 4)
    words = Vocabulary([b"<unk>", b"</s>", b"a"])
    assert of_words(alpha, words, read, words, written).tobytes() == alpha.tobytes()


def test_tokens_are_candidates_always():
    lists = CandidateLists(TARGET, Lexicon({}), frequent=1, of_each=2, tokens=2)
    assert lists.columns([()], torch.device("cpu")).words.tolist() == [0, 1, 2, 3, 4]


LEXICON = Lexicon(
    {b"cat": [(b"chat", 0.5), (b"minou", 0.5)], b"Paris": [(b"Lutece", 1.0)], "été".encode(): [(b"summer", 1.0)]}
)
# source word → what each rule writes: the page's table
RULE_TABLE = {
    b"cat": {"copy": b"cat", "dictionary": b"chat", "lowercase": b"chat"},
    b"Paris": {"copy": b"Paris", "dictionary": b"Lutece", "lowercase": b"Paris"},
    "été".encode(): {"copy": "été".encode(), "dictionary": b"summer", "lowercase": b"summer"},
    b"\xff": {"copy": b"\xff", "dictionary": b"\xff", "lowercase": b"\xff"},
}


@pytest.mark.parametrize("word", RULE_TABLE)
def test_each_rule_writes_what_the_table_says(word):
    for rule, expected in RULE_TABLE[word].items():
        assert word_for(rule, LEXICON)(word) == expected
    assert set(RULES) == {"no", "never", *RULE_TABLE[word]}


WORDS = [b"the", b"cat", b"Paris"]


def test_an_unknown_word_is_replaced_by_its_place():
    chosen = word_for("dictionary", Lexicon({b"cat": [(b"chat", 1.0)], b"the": [(b"<unk>", 1.0)]}))
    written = [b"le", b"<unk>", b"<unk>", b"<unk>", b"<unk>"]
    restored = restore_by_attention(WORDS, written, [0, 1, 2, 0, None], chosen)
    assert restored == ([b"le", b"chat", b"Paris", b"<unk>", b"<unk>"], [0, 1, 2, 3, 4], [0, 1, 2, 0, None], 2)
    assert restore_by_attention(WORDS, [b"<unk>"], None, chosen) == ([b"<unk>"], [0], [None], 0)
