"""What sampling and search share: a source's targets depend on that source alone, and unknown words can be forbidden."""

import numpy as np
import pytest

from moses_rnn.networks import steps
from moses_rnn.networks.vocabulary import UNKNOWN_ID
from tests.networks.networks import SIZES
from tests.translation.writers import SOURCES, flat, sampler, search, words_of

MAKERS = {
    "samples": lambda **config: sampler(samples=30, **config),
    "beam": lambda **config: search(width=4, best=3, **config),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_sources_targets_do_not_depend_on_its_company(maker, monkeypatch):
    find = MAKERS[maker]()
    together = find(SOURCES)
    alone = [find([source])[0] for source in SOURCES]
    assert words_of(together) == words_of(alone)
    assert words_of(find(SOURCES[::-1])) == words_of(together[::-1])
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 3 * SIZES["target_vocabulary_size"])
    monkeypatch.setattr("moses_rnn.translation.search.PREFIXES_AT_ONCE", 60)
    assert words_of(find(SOURCES)) == words_of(together)
    np.testing.assert_allclose([h.log_prob for h in flat(together)], [h.log_prob for h in flat(alone)], rtol=1e-12)


@pytest.mark.parametrize("maker", MAKERS)
def test_equal_sources_get_equal_targets_and_no_sources_none(maker):
    find = MAKERS[maker]()
    first, second = find([SOURCES[0], SOURCES[0]])
    assert first == second
    assert find([]) == []


@pytest.mark.parametrize("maker", MAKERS)
def test_unknown_words_can_be_forbidden(maker):
    assert UNKNOWN_ID in {word for h in flat(MAKERS[maker]()(SOURCES)) for word in h.words}
    allowed = flat(MAKERS[maker](allow_unknown=False)(SOURCES))
    assert UNKNOWN_ID not in {word for hypothesis in allowed for word in hypothesis.words}
