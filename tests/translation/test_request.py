"""What a translation is asked for, and the translator that follows; what it refuses is in test_run."""

from moses_rnn.formats.lexicon import Lexicon
from moses_rnn.producers.base import HERE
from moses_rnn.producers.open import open_model
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.request import TranslationRequest, make_stepper, make_translator, rule_of
from moses_rnn.translation.unknown_words import COPY, DICTIONARY, NO
from tests.producers.rare import save_rare_model
from tests.translation.sentences import save_model


def asked(**options):
    beam = BeamConfig(width=2, words_per_source_word=3)
    return TranslationRequest(input="in", output="out", beam=beam, compute=HERE, **options)


def test_a_token_for_every_word_needs_twice_as_many_of_them(tmp_path):
    model = open_model(save_rare_model(tmp_path / "model", "posall"))
    translator = make_translator(asked(), model, make_stepper(asked(), model))
    assert translator._search.config.words_per_source_word == 6


def test_what_was_annotated_is_copied_unless_another_rule_is_given(tmp_path):
    plain, rare = open_model(save_model(tmp_path / "plain")), open_model(save_rare_model(tmp_path / "rare", "posunk"))
    assert [rule_of(asked(), model) for model in (plain, rare)] == [NO, COPY]
    assert rule_of(asked(unknown=NO), rare) == NO
    lexicon = asked(lexicon=Lexicon({}))
    assert [rule_of(lexicon, model) for model in (plain, rare)] == [NO, DICTIONARY]


def test_what_is_written_beside_the_text():
    assert asked().others == []
    assert asked(n_best="list", alignments="alpha").others == ["list", "alpha"]
