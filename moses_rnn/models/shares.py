"""Share a language model's probability of ``<unk>`` among words outside: evenly, or by their n-gram probabilities.

p(w | h) = p_CSLM(<unk> | h) · p_n(w | h) / M(h) for a word w outside the shortlist, where M(h), the mass that the
n-gram model gives to all words outside, makes the whole a distribution over the n-gram model's vocabulary (its own
``<unk>`` being a word of it) and the shortlist. M(h) needs no sum over the vocabulary: for a backoff model with context
h and its suffix h',

    M(h) = Σ_{w seen after h} p_n(w | h) + b(h) · (M(h') - Σ_{w seen after h} p_n(w | h'))

over words w outside, of which few are ever seen after a context. With B(h) the product of the backoff weights of h and
all its suffixes this unrolls to M(h) = B(h) · (M() + Σ_j c(h_j)) over the suffixes h_j of h, where
c(h) = Σ_{w seen after h} (p_n(w | h) / B(h) - p_n(w | h') / B(h')); and B(h) = p_n(<unk> | h) / p_n(<unk>), because
``<unk>`` is seen after no context.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from moses_rnn.errors import InputError, shown
from moses_rnn.files.streams import read_lines, regular_file
from moses_rnn.models.kenlm import KenlmScorer
from moses_rnn.models.language_models import BEGIN, LN_10, LanguageModel, Marks, text, words_of
from moses_rnn.moses.arpa import parse_arpa
from moses_rnn.networks.batches import Values
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.table.table_blocks import Phrases

NOT_SHARING = UNKNOWN, END, BEGIN


class EvenShares:
    """Equal shares for `count` words outside the shortlist, at least one (Mikolov et al. 2010, equation 7)."""

    def __init__(self, count: int) -> None:
        self.count = max(count, 1)
        self.description = f"with an even share of <unk>, one of {self.count:,}"

    def log_shares(self, _sentences: Phrases, unknown: Marks) -> Values:
        """See `Shares`."""
        return np.full(np.count_nonzero(unknown), -math.log(self.count))


def types_of(lines: Iterable[bytes]) -> set[bytes]:
    """Return the distinct words of a text."""
    return {word for line in lines for word in words_of(line.rstrip(b"\r\n"))}


def count_outside(sentences: Iterable[bytes], types: Collection[bytes]) -> int:
    """Count the running words that are not among `types`, or are <unk>."""
    return sum(word == UNKNOWN or word not in types for sentence in sentences for word in words_of(sentence))


def even_shares(types: Iterable[bytes], vocabulary: Vocabulary, *, with_unknown: bool = False) -> EvenShares:
    """Return even shares for the words in `types` that are outside a shortlist.

    `with_unknown` adds one share for all words outside `types` too, as in an n-gram model.
    """
    return EvenShares(len(set(types) - set(vocabulary.words) - set(NOT_SHARING)) + with_unknown)


class ClosedVocabulary:
    """The union of shortlists and an n-gram model's words, over which models with ``<unk>`` can be compared.

    The shortlists' words that the n-gram model does not know, and one more for all words that no model knows, share its
    ``<unk>`` evenly; otherwise, each would get all of it.
    """

    def __init__(self, vocabularies: Sequence[Vocabulary], n_grams: KenlmScorer) -> None:
        words = {word for vocabulary in vocabularies for word in vocabulary.words} - set(NOT_SHARING)
        self._n_grams = n_grams
        self.strange = {word for word in words if not n_grams.knows(word)}

    def compare(self, model: LanguageModel, vocabulary: Vocabulary | None = None) -> LanguageModel:
        """Return the model as a distribution over this vocabulary; `vocabulary` is its shortlist, if any."""
        strange = self.strange - set(vocabulary.words if vocabulary else ())
        return _Sharing(model, self._n_grams, len(strange) + 1) if strange else model


class _Sharing:
    """A model that divides ``<unk>`` evenly by `count` for words that neither it nor an n-gram model knows."""

    def __init__(self, model: LanguageModel, n_grams: KenlmScorer, count: int) -> None:
        self._model, self._n_grams, self._count = model, n_grams, count
        self.meaning = model.meaning

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        values = self._model.word_log_probs(sentences)
        values[self._model.unknown(sentences) & self._n_grams.unknown(sentences)] -= math.log(self._count)
        return values

    def unknown(self, sentences: Phrases) -> Marks:
        """See `LanguageModel`."""
        return self._model.unknown(sentences)


NOTHING = -98.0  # log10: ARPA files write 10⁻⁹⁹ for 0, and KenLM puts 10⁻¹⁰⁰ where there is no <unk>
LARGEST_LOG10 = 300.0  # log10 of a summand, at most
EXACT = 1e-4  # the share of M() below which M(h) is lost in KenLM's float32
Context = tuple[bytes, ...]


class Backoff:
    """The share of a word outside the shortlist in a network's ``<unk>``, by an n-gram model.

    `n_grams` are the model's, shorter ones first, as `parse_arpa` yields them. Raises InputError if the model gives
    ``<unk>`` no probability, has it in longer n-grams, or has an n-gram twice.
    """

    description = "backed off to an n-gram model"

    def __init__(self, n_grams: Iterable[Context], model: KenlmScorer, vocabulary: Vocabulary, name: str) -> None:
        self._model, self._name = model, name
        self._unknown = self._log10_p(model.nothing(), UNKNOWN)
        if self._unknown < NOTHING:
            raise InputError(
                f"{name}: expected a model that gives <unk> a probability, found {10**self._unknown:.0e}\n"
                "  An n-gram model from lmplz does."
            )
        known = {BEGIN, *vocabulary.words} - {UNKNOWN}
        self.outside = 0.0  # M()
        self._corrections: defaultdict[Context, float] = defaultdict(float)
        for n_gram in self._of_words_outside(n_grams, known):
            *context, word = n_gram
            if context:
                self._corrections[tuple(context)] += self._scaled(context, word) - self._scaled(context[1:], word)
            else:
                self.outside += self._scaled((), word)

    def _of_words_outside(self, n_grams: Iterable[Context], known: set[bytes]) -> Iterator[Context]:
        """Yield the n-grams that end in a word outside the shortlist, except words that KenLM cannot take."""
        seen: set[Context] = set()
        for n_gram in n_grams:
            *context, word = n_gram
            if context and UNKNOWN in n_gram:
                advice = (
                    "An n-gram model from lmplz has none. A model that treats <unk> as an ordinary word cannot be used."
                )
                raise InputError(
                    f"{self._name}: expected no n-gram with <unk>, found {shown(b' '.join(n_gram))}", advice=advice
                )
            if word in known or text(word).encode() != word:
                continue
            if n_gram in seen:
                raise InputError(f"{self._name}: expected each n-gram once, found {shown(b' '.join(n_gram))} again")
            seen.add(n_gram)
            yield n_gram

    def log_mass(self, context: Sequence[bytes], state: Any) -> float:
        """Return log M(h); raise InputError if the model leaves no probability.

        `context` has the preceding words with ``<s>``, oldest first; only the last order - 1 matter.
        """
        known = tuple(context[-(self._model.order - 1) :]) if self._model.order > 1 else ()
        added = sum(self._corrections.get(known[i:], 0.0) for i in range(len(known)))
        if not self.outside + added > EXACT * self.outside:
            raise self._without_rest(known)
        return math.log(self.outside + added) + LN_10 * self._log10_b(state)

    def log_shares(self, sentences: Phrases, unknown: Marks) -> Values:
        """Return log p_n(w | h) / M(h) of the unknown words; see `Shares`."""
        values: list[float] = []
        first = 0
        for sentence in sentences:
            spelled = words_of(sentence)
            last = first + len(spelled)
            if unknown[first:last].any():
                values += self._shares(spelled, unknown[first:last])
            first = last + 1
        return np.array(values, np.float64)

    def _shares(self, sentence: Sequence[bytes], unknown: Marks) -> Iterator[float]:
        state = self._model.begin()
        for i, word in enumerate(sentence):
            log10_p, after = self._model.step(state, word)
            if unknown[i]:
                yield LN_10 * log10_p - self.log_mass([BEGIN, *sentence[:i]], state)
            state = after

    def _scaled(self, context: Sequence[bytes], word: bytes) -> float:
        """Return p_n(w | h) / B(h)."""
        state = self._after(context)
        log10 = self._log10_p(state, word) - self._log10_b(state)
        if log10 > LARGEST_LOG10:
            raise self._without_rest(context)
        return float(10**log10)

    def _log10_b(self, state: Any) -> float:
        """Return log10 B(h)."""
        return self._log10_p(state, UNKNOWN) - self._unknown

    def _without_rest(self, context: Sequence[bytes]) -> InputError:
        behind = shown(b" ".join(context))
        return InputError(f"{self._name}: expected some probability for words never seen after {behind}, found none")

    def _after(self, context: Sequence[bytes]) -> Any:
        state = self._model.nothing()
        if list(context[:1]) == [BEGIN]:
            state, context = self._model.begin(), context[1:]
        for word in context:
            _, state = self._model.step(state, word)
        return state

    def _log10_p(self, state: Any, word: bytes) -> float:
        return self._model.step(state, word)[0]


def open_backoff(file: str, vocabulary: Vocabulary, model: KenlmScorer | None = None) -> Backoff:
    """Open an ARPA file as a backoff; `model` is the same file's, if it is loaded already."""
    path = regular_file(file)
    return Backoff(parse_arpa(read_lines(path), path), model or KenlmScorer(path), vocabulary, path)
