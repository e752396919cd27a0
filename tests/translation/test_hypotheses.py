"""What sampling and search share: a source's targets depend on that source alone, and unknown words can be forbidden."""

import numpy as np
import pytest
import torch

from moses_rnn.inference import steps
from moses_rnn.models.vocabulary import UNKNOWN_ID
from moses_rnn.translation import hypotheses
from moses_rnn.translation.hypotheses import read_sources, source_blocks
from tests.models.networks import SIZES
from tests.translation.writers import SOURCES, flat, sampler, search, stepper, words_of

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
    monkeypatch.setattr(hypotheses, "PREFIXES_AT_ONCE", 60)
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


def test_equal_sources_are_read_once(monkeypatch):
    reader, rows = stepper(), []
    read = reader.read

    def counted(ids, lengths):
        terms, term_of = read(ids, lengths)
        rows.append(len(terms.h_0))
        return terms, term_of

    monkeypatch.setattr(reader, "read", counted)
    together = read_sources(reader, [[2, 3], [], [2, 3], [4], [2, 3]])
    assert (rows, len(together.h_0)) == ([3], 5)
    for row, source in enumerate([[2, 3], [], [2, 3], [4], [2, 3]]):
        torch.testing.assert_close(together.h_0[row : row + 1], read_sources(reader, [source]).h_0)


@pytest.mark.parametrize(("each", "sizes"), [(1, [7]), (3, [3, 3, 1]), (10, [1] * 7), (1000, [1] * 7)])
def test_blocks_of_sources_hold_few_prefixes(monkeypatch, each, sizes):
    monkeypatch.setattr(hypotheses, "PREFIXES_AT_ONCE", 10)
    sources = [[word] for word in range(7)]
    blocks = list(source_blocks(sources, each))
    assert [len(block) for block in blocks] == sizes
    assert [source for block in blocks for source in block] == sources
    assert list(source_blocks([], each)) == []
