"""Perplexities of a CSLM, an n-gram model and both together, over one closed vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, ScoreError, placing
from moses_rnn.producers.language_models import LanguageModel, Values

SENTENCES = 2000  # scored together
HALVINGS = 30  # of the range of weights: to a billionth

Marks = npt.NDArray[np.bool_]
Observe = Callable[[int], None]  # is told how many more sentences were scored


def observe_nothing(_sentences: int) -> None:
    """Where nobody looks."""


@dataclass(frozen=True)
class Judged:
    """What models give to every word and end symbol of a text, natural logarithms; tokens each."""

    name: str
    cslm: Values
    kenlm: Values | None
    outside: Marks  # of the shortlist
    unknown: Marks  # to the n-gram model

    def named(self, name: str) -> Judged:
        """The same by another name."""
        return replace(self, name=name)

    def mixed(self, weight: float) -> Values:
        """log p of the linear interpolation; `weight` is the CSLM's."""
        assert self.kenlm is not None
        if not 0 < weight < 1:
            return self.cslm if weight else self.kenlm
        mixture: Values = np.logaddexp(math.log(weight) + self.cslm, math.log(1 - weight) + self.kenlm)
        return mixture


def judge(
    lines: Iterable[bytes],
    name: str,
    cslm: LanguageModel,
    kenlm: LanguageModel | None,
    observe: Observe = observe_nothing,
) -> Judged:
    """Score a text.

    Args:
        lines: of the text; those without words do not count.
        name: of the text, for messages.
        cslm: as it is compared.
        kenlm: likewise, if there is one.
        observe: see `Observe`.

    Raises:
        InputError: it is empty.
        ScoreError: a model gives a word no probability; the sentence is named.
    """
    parts: list[tuple[Values, Values, Marks, Marks]] = []
    before = 0  # sentences
    with placing(lambda row: f"{name}, sentence {before + row + 1:,}"):
        for sentences in together(lines, observe):
            values = cslm.word_log_probs(sentences)
            by_kenlm = kenlm.word_log_probs(sentences) if kenlm else values
            unknown = kenlm.unknown(sentences) if kenlm else np.zeros(len(values), np.bool_)
            parts.append((values, by_kenlm, cslm.unknown(sentences), unknown))
            before += len(sentences)
    if not parts:
        raise InputError(f"{name}: expected sentences, found none")
    by_cslm, n_gram, outside, unknown = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Judged(name, by_cslm, n_gram if kenlm else None, outside, unknown)


def sentences_of(lines: Iterable[bytes]) -> list[bytes]:
    """The lines of a text without their ends, and without those that have no word."""
    ended = (line.rstrip(b"\r\n") for line in lines)
    return [sentence for sentence in ended if sentence.strip(b" \t")]


def together(lines: Iterable[bytes], observe: Observe) -> Iterator[list[bytes]]:
    """The sentences of a text in groups that are scored at once; each group is observed when it is done."""
    sentences = sentences_of(lines)
    for first in range(0, len(sentences), SENTENCES):
        group = sentences[first : first + SENTENCES]
        yield group
        observe(len(group))


def best_weight(judged: Judged) -> float:
    """The CSLM's weight in the interpolation that makes a text most likely; 0 or 1 where one model alone does.

    The log-likelihood is concave, so it is highest where its slope is 0. Expectation maximisation would take hundreds
    of rounds where the best weight is near 0 or 1, and ended early it may give less than one model alone.
    """
    assert judged.kenlm is not None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        weight = (low + high) / 2
        both = judged.mixed(weight)
        slope = float((np.exp(judged.cslm - both) - np.exp(judged.kenlm - both)).sum())
        low, high = (weight, high) if slope > 0 else (low, weight)
    return max((low, high, 0.0, 1.0), key=lambda weight: float(judged.mixed(weight).mean()))


def perplexity(log_probs: Values, text: str) -> float:
    """exp of the mean cost.

    Raises:
        ScoreError: no float is as high; the text is named.
    """
    cost = -float(log_probs.mean())
    try:
        return math.exp(cost)
    except OverflowError as error:
        raise ScoreError(f"{text}: expected a perplexity that a float can hold, found exp({cost:g})") from error


def as_markdown(texts: Sequence[Judged], weight: float | None) -> Iterator[str]:
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
        cells.append(f"{perplexity(text.cslm[~text.outside], text.name):.2f}")
        if weight is not None:
            assert text.kenlm is not None
            mixed = text.mixed(weight)
            alone, n_gram, both, known = (
                perplexity(log_probs, text.name) for log_probs in (text.cslm, text.kenlm, mixed, mixed[~text.unknown])
            )
            cells += [f"{alone:.2f}", f"{n_gram:.2f}", f"{both:.2f}", f"{1 - both / n_gram:.1%}", f"{known:.2f}"]
        yield f"| {' | '.join(cells)} |"
