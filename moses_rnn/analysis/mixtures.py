"""Perplexities of any number of language models over one closed vocabulary: each alone, and interpolated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_rnn.analysis.perplexity import Marks, Observe, observe_nothing, perplexity, together
from moses_rnn.errors import InputError, MosesRnnError, placing
from moses_rnn.producers.language_models import LanguageModel, Values

SUFFICIENT = 1e-6  # nats of a whole text: how near its likelihood is to the highest
ROUNDS = 20_000  # of expectation maximisation at most, where weights go to 0 slowly
# of a network beside an n-gram model: Bengio et al. 2003, section 4.2; Mikolov et al. 2010, section 3
FIXED_WEIGHTS = {"bengio": 0.5, "rnnlm": 0.75}


@dataclass(frozen=True)
class Contender:
    """A model to be compared.

    `network` is its kind as config.json names it; None: an n-gram model.
    """

    name: str
    model: LanguageModel
    network: str | None


@dataclass(frozen=True)
class Scored:
    """What models give to the words and end symbols of a text, natural logarithms.

    `outside` are the words that some network's shortlist does not have; tokens.
    """

    name: str
    log_probs: Values  # models × tokens
    outside: Marks

    def named(self, name: str) -> Scored:
        """The same by another name."""
        return replace(self, name=name)

    def known(self) -> Scored:
        """Without the words outside."""
        return Scored(self.name, self.log_probs[:, ~self.outside], self.outside[~self.outside])

    def mixed(self, weights: Sequence[float]) -> Values:
        """log p of the linear interpolation; tokens."""
        with np.errstate(divide="ignore"):  # of a model without weight
            mixture: Values = np.logaddexp.reduce(self.log_probs + np.log(weights)[:, None])
        return mixture


def score_text(
    lines: Iterable[bytes], name: str, contenders: Sequence[Contender], observe: Observe = observe_nothing
) -> Scored:
    """Score a text by all models.

    Args:
        lines: of the text; those without words do not count.
        name: of the text, for messages.
        contenders: the models.
        observe: see `Observe`.

    Raises:
        InputError: it is empty.
        MosesRnnError: a model fails; the error tells which, and at which text.
    """
    log_probs: list[Values] = []
    outside: list[Marks] = []
    before = 0  # sentences
    with placing(lambda row: f"{name}, sentence {before + row + 1:,}"):
        for sentences in together(lines, observe):
            log_probs.append(np.stack([_word_log_probs(one, sentences, name) for one in contenders]))
            unknown = [one.model.unknown(sentences) for one in contenders if one.network]
            outside.append(np.logical_or.reduce([np.zeros(log_probs[-1].shape[1], np.bool_), *unknown]))
            before += len(sentences)
    if not log_probs:
        raise InputError(f"{name}: expected sentences, found none")
    return Scored(name, np.concatenate(log_probs, 1), np.concatenate(outside))


def _word_log_probs(one: Contender, sentences: Sequence[bytes], text: str) -> Values:
    try:
        return one.model.word_log_probs(sentences)
    except MosesRnnError as error:
        error.add_advice(f"The model is {one.name}, the text {text}.")
        raise


def best_weights(scored: Scored) -> list[float]:
    """Weights of the interpolation that make a text most likely, by expectation maximisation.

    With r_m the mean over words of p_m / Σ w p, a round multiplies the weight w_m by r_m; and since the logarithm is
    concave, no other weights are better by more than the number of words times log max r_m: that ends it.
    """
    count, tokens = scored.log_probs.shape
    p = np.exp(scored.log_probs - scored.log_probs.max(0))
    weights = np.full(count, 1 / count)
    for _ in range(ROUNDS):
        ratios = (p / (weights @ p)).mean(1)
        if tokens * math.log(max(float(ratios.max()), 1.0)) <= SUFFICIENT:
            break
        weights *= ratios
        weights /= weights.sum()
    best: list[float] = weights.tolist()
    return best


def interpolations(contenders: Sequence[Contender], first: Scored) -> Iterator[tuple[str, list[float]]]:
    """Rows of the table: what is interpolated, and the weight of each model.

    Args:
        contenders: networks, and n-gram models if there are any.
        first: the text that decides the best weights.
    """
    for i, one in enumerate(contenders):
        yield one.name, _weights(len(contenders), {i: 1.0})
    networks = [i for i, one in enumerate(contenders) if one.network]
    n_gram = next((i for i, one in enumerate(contenders) if not one.network), None)
    even = {i: 1 / len(networks) for i in networks}
    if len(networks) > 1:
        yield f"the {len(networks)} networks evenly", _weights(len(contenders), even)
    if n_gram is not None:
        yield from _beside(contenders, n_gram, {i: {i: 1.0} for i in networks})
        if len(networks) > 1 and len({contenders[i].network for i in networks}) == 1:
            yield from _beside(contenders, n_gram, {networks[0]: even})
    if len(contenders) > 1:
        best = best_weights(first)
        shown = ", ".join(f"{weight:.3f} {one.name}" for weight, one in zip(best, contenders, strict=True))
        yield f"best for {first.name}: {shown}", best


def _beside(
    contenders: Sequence[Contender], n_gram: int, networks: dict[int, dict[int, float]]
) -> Iterator[tuple[str, list[float]]]:
    """Networks, or their mixtures, beside an n-gram model at the weight of the paper that they are from."""
    for i, shares in networks.items():
        weight = FIXED_WEIGHTS.get(contenders[i].network or "")
        if weight is not None:
            name = contenders[i].name if len(shares) == 1 else f"the {len(shares)} networks evenly"
            all_shares = {**{j: weight * share for j, share in shares.items()}, n_gram: 1 - weight}
            mixed = f"{weight:g} {name}, {1 - weight:g} {contenders[n_gram].name}"
            yield mixed, _weights(len(contenders), all_shares)


def _weights(count: int, shares: dict[int, float]) -> list[float]:
    return [shares.get(i, 0.0) for i in range(count)]


def as_table(texts: Sequence[Scored], rows: Iterable[tuple[str, Sequence[float]]]) -> Iterator[str]:
    """Lines of Markdown: a line an interpolation, a column a text, perplexities over all tokens given."""
    yield f"| model | {' | '.join(text.name for text in texts)} |"
    yield "|---|" + "---|" * len(texts)
    for name, weights in rows:
        yield f"| {name} | {' | '.join(f'{perplexity(text.mixed(weights), text.name):.2f}' for text in texts)} |"
