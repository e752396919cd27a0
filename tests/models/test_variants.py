"""The names of an RNN Encoder-Decoder's switches."""

import pytest

from moses_rnn.models.variants import SWITCH_VALUES, SWITCHES, EncDecConfig, check_variant, variant_of

SIZES = {"hidden_size": 4, "embedding_size": 3, "maxout_size": 2, "output_rank": 5}


@pytest.mark.parametrize("variant", SWITCHES)
def test_three_switches_have_a_name(variant):
    assert variant_of(SWITCHES[variant]) == variant
    assert variant_of({**SWITCHES[variant], "decoder_reset": None}) == variant  # of a cell that resets nothing
    assert variant_of({**SWITCHES[variant], "summary": "other"}) == "custom"


def test_the_paper_is_the_default():
    config = EncDecConfig(9, 8)
    assert variant_of({key: getattr(config, key) for key in SWITCH_VALUES}) == config.variant == "paper"


class RefusedError(Exception):
    pass


def refuse(key, valid, expected):
    if not valid:
        raise RefusedError(key)


def test_what_fits_is_accepted():
    check_variant({**SIZES, **SWITCHES["groundhog"], "variant": "groundhog"}, refuse, SWITCH_VALUES)
    check_variant({**SIZES, **SWITCHES["groundhog"], "variant": "custom"}, refuse, SWITCH_VALUES)


@pytest.mark.parametrize(
    "changes",
    [{"hidden_size": 0}, {"summary": "mean"}, {"decoder_reset": None}, {"variant": "paper"}, {"variant": 3}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_does_not_fit_is_named(changes):
    with pytest.raises(RefusedError, match=next(iter(changes))):
        check_variant({**SIZES, **SWITCHES["groundhog"], "variant": "groundhog", **changes}, refuse, SWITCH_VALUES)
