"""Perplexities of a CSLM, an n-gram model and both together, over one closed vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.scoring.language_models import CslmProducer, KenlmProducer, Values

SENTENCES = 2000  # scored together
ROUNDS = 100  # of expectation maximisation at most; it ends earlier
ENOUGH = 1e-6

Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """What models give to every word and end symbol of a text, natural logarithms; tokens each."""

    name: str
    cslm: Values
    kenlm: Values | None
    outside: Marks  # of the shortlist
    unknown: Marks  # to the n-gram model

    def mixed(self, weight: float) -> Values:
        """log p of the linear interpolation; `weight` is the CSLM's."""
        assert self.kenlm is not None
        if not 0 < weight < 1:
            return self.cslm if weight else self.kenlm
        mixture: Values = np.logaddexp(math.log(weight) + self.cslm, math.log(1 - weight) + self.kenlm)
        return mixture


def judge(lines: Iterable[bytes], name: str, cslm: CslmProducer, kenlm: KenlmProducer | None) -> Judged:
    """Score a text.

    Raises:
        InputError: it is empty.
    """
    parts: list[tuple[Values, Values, Marks, Marks]] = []
    for sentences in _together(line.rstrip(b"\r\n") for line in lines):
        values = cslm.word_log_probs(sentences)
        by_kenlm = kenlm.word_log_probs(sentences) if kenlm else values
        unknown = kenlm.unknown(sentences) if kenlm else np.zeros(len(values), np.bool_)
        parts.append((values, by_kenlm, cslm.unknown(sentences), unknown))
    if not parts:
        raise InputError(f"{name}: expected sentences, found none")
    by_cslm, n_gram, outside, unknown = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Judged(name, by_cslm, n_gram if kenlm else None, outside, unknown)


def _together(sentences: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    for sentence in sentences:
        if sentence.strip(b" \t"):
            group.append(sentence)
        if len(group) == SENTENCES:
            yield group
            group = []
    if group:
        yield group


def best_weight(judged: Judged) -> float:
    """The CSLM's weight in the interpolation that makes a text most likely, by expectation maximisation."""
    assert judged.kenlm is not None
    weight = 0.5
    for _ in range(ROUNDS):
        share = np.exp(math.log(weight) + judged.cslm - judged.mixed(weight))
        new = min(max(float(share.mean()), ENOUGH), 1 - ENOUGH)
        if abs(new - weight) < ENOUGH:
            break
        weight = new
    return weight


def perplexity(log_probs: Values) -> float:
    """exp of the mean cost."""
    return math.exp(-float(log_probs.mean())) if len(log_probs) else math.nan


def report(texts: Sequence[Judged], weight: float | None) -> Iterator[str]:
    """Lines of Markdown: a line a text, perplexities over all tokens, and over those of the shortlist.

    Args:
        texts: scored; the n-gram model's values are there for all or none.
        weight: of the CSLM in the interpolation.
    """
    head = ["text", "tokens", "outside the shortlist", "CSLM, shortlist only"]
    if weight is not None:
        head += ["CSLM", "n-gram model", f"both ({weight:.3f} CSLM)", "gain", "both, known words only"]
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for text in texts:
        cells = [text.name, f"{len(text.cslm):,}", f"{text.outside.mean():.2%}"]
        cells.append(f"{perplexity(text.cslm[~text.outside]):.2f}")
        if weight is not None:
            assert text.kenlm is not None
            both, alone = text.mixed(weight), perplexity(text.kenlm)
            gain = 1 - perplexity(both) / alone
            cells += [f"{perplexity(text.cslm):.2f}", f"{alone:.2f}", f"{perplexity(both):.2f}", f"{gain:.1%}"]
            cells.append(f"{perplexity(both[~text.unknown]):.2f}")
        yield f"| {' | '.join(cells)} |"
