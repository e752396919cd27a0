"""Perplexities of language models over one closed vocabulary, each alone and interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, MosesRnnError, ScoreError, placing
from moses_rnn.models.language_models import LanguageModel, Marks
from moses_rnn.networks.batches import Values

SENTENCES = 2000  # scored together
SUFFICIENT = 1e-6  # nats of a whole text: stop if its likelihood is this near to the highest
ROUNDS = 20_000  # of expectation maximisation at most; weights can go to 0 slowly
# Of networks mixed with an n-gram model: Bengio et al. 2003, section 4.2; Mikolov et al. 2010, section 3
FIXED_WEIGHTS = {"bengio": 0.5, "rnnlm": 0.75}


@dataclass(frozen=True)
class Contender:
    """A model in the comparison."""

    name: str
    model: LanguageModel
    network: str | None  # the network's name in config.json; None: an n-gram model


@dataclass(frozen=True)
class Scored:
    """Natural logarithms that models give to the words and end symbols of a text.

    `outside` marks the words that some network's shortlist lacks; it has one value for each token.
    """

    name: str
    log_probs: Values  # models × tokens
    outside: Marks

    def only(self, chosen: Marks) -> Scored:
        """Select tokens."""
        return Scored(self.name, self.log_probs[:, chosen], self.outside[chosen])

    def perplexity(self, weights: npt.ArrayLike) -> float:
        """Return the perplexity of the linear interpolation."""
        with np.errstate(divide="ignore"):  # of a model without weight
            mixture: Values = np.logaddexp.reduce(self.log_probs + np.log(weights)[:, None])
        return perplexity(mixture, self.name)


def score_text(
    lines: Iterable[bytes],
    name: str,
    contenders: Sequence[Contender],
    observe: Callable[[int], None] = lambda _sentences: None,
) -> Scored:
    """Score a text by all models; blank lines are skipped. `observe` gets the number of sentences of each step.

    Raises InputError if the text has no words. If a model fails, the error names the model and the text.
    """
    parts: list[tuple[Values, Marks]] = []
    before, all_sentences = 0, sentences_of(lines)
    with placing(lambda row: f"{name}, sentence {before + row + 1:,}"):
        for before in range(0, len(all_sentences), SENTENCES):
            sentences = all_sentences[before : before + SENTENCES]
            values = np.stack([_word_log_probs(one, sentences, name) for one in contenders])
            outside = np.zeros(values.shape[1], np.bool_)
            for one in contenders:
                if one.network:
                    outside |= one.model.unknown(sentences)
            parts.append((values, outside))
            observe(len(sentences))
    if not parts:
        raise InputError(f"{name}: expected sentences, found none")
    return Scored(name, *(np.concatenate(column, -1) for column in zip(*parts, strict=True)))


def _word_log_probs(one: Contender, sentences: Sequence[bytes], text: str) -> Values:
    try:
        return one.model.word_log_probs(sentences)
    except MosesRnnError as error:
        error.add_advice(f"The model is {one.name}, the text {text}.")
        raise


def sentences_of(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines that have words, without their ends."""
    ended = (line.rstrip(b"\r\n") for line in lines)
    return [sentence for sentence in ended if sentence.strip(b" \t")]


def perplexity(log_probs: Values, text: str) -> float:
    """Return exp of the mean cost. Raise ScoreError, with the name of the text, if no float can hold it."""
    cost = -float(log_probs.mean())
    try:
        return math.exp(cost)
    except OverflowError as error:
        raise ScoreError(f"{text}: expected a perplexity that a float can hold, found exp({cost:g})") from error


def best_weights(scored: Scored) -> Values:
    """Find the weights that make a text most likely, by expectation maximisation.

    Let r_m be the mean of p_m / Σ w p over all words. Each round multiplies the weight w_m by r_m. The logarithm is
    concave, so no weights are better by more than log max r_m times the number of words. This decides when to stop.
    """
    count, tokens = scored.log_probs.shape
    p = np.exp(scored.log_probs - scored.log_probs.max(0))
    weights: Values = np.full(count, 1 / count)
    for _ in range(ROUNDS):
        ratios = (p / (weights @ p)).mean(1)
        if tokens * math.log(max(float(ratios.max()), 1.0)) <= SUFFICIENT:
            break
        weights *= ratios
        weights /= weights.sum()
    return weights


def interpolations(contenders: Sequence[Contender], first: Scored) -> Iterator[tuple[str, Values]]:
    """Yield the rows of the table: what is interpolated, and the weight of each model.

    If there is an n-gram model, it is mixed with each network, and with several networks of one kind, by the weight in
    the network's paper. The best weights are those for the `first` text.
    """
    alone = np.eye(len(contenders))
    rows = [(one.name, weights, one.network) for one, weights in zip(contenders, alone, strict=True)]
    networks = [i for i, one in enumerate(contenders) if one.network]
    kinds = {contenders[i].network for i in networks}
    if len(networks) > 1:
        kind = kinds.pop() if len(kinds) == 1 else None
        rows.append((f"the {len(networks)} networks, equal weights", alone[networks].mean(axis=0), kind))
    n_gram = next((i for i, one in enumerate(contenders) if not one.network), None)
    if n_gram is not None:
        for name, weights, kind in rows.copy():
            share = FIXED_WEIGHTS.get(kind or "")
            if share is not None:
                mixed = share * weights + (1 - share) * alone[n_gram]
                rows.append((f"{share:g} {name}, {1 - share:g} {contenders[n_gram].name}", mixed, None))
    yield from ((name, weights) for name, weights, _ in rows)
    if len(contenders) > 1:
        best = best_weights(first)
        shown = ", ".join(f"{weight:.3f} {one.name}" for weight, one in zip(best, contenders, strict=True))
        yield f"best for {first.name}: {shown}", best


def as_table(texts: Sequence[Scored], rows: Iterable[tuple[str, Values]]) -> Iterator[str]:
    """Yield a Markdown table of perplexities over all tokens: a row for each interpolation, a column for each text."""
    yield f"| model | {' | '.join(text.name for text in texts)} |"
    yield "|---|" + "---|" * len(texts)
    for name, weights in rows:
        yield f"| {name} | {' | '.join(f'{text.perplexity(weights):.2f}' for text in texts)} |"
