"""Which words language models share when they are compared, and what of a network's <unk> each of them has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.models.vocabulary import Vocabulary
    from moses_rnn.producers.backoff import Backoff
    from moses_rnn.producers.kenlm import KenlmProducer
    from moses_rnn.producers.language_models import Shares
    from moses_rnn.producers.open import OpenModel
    from moses_rnn.producers.shares import ClosedVocabulary


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Options that say which words count."""

    lm: tuple[str, ...]
    rare: str | None
    vocabulary: str | None


def closed_by(models: Sequence[OpenModel], n_grams: KenlmProducer) -> ClosedVocabulary:
    """The vocabulary of an n-gram model and of all shortlists."""
    from moses_rnn.producers.shares import ClosedVocabulary

    return ClosedVocabulary([model.target_vocabulary for model in models], n_grams)


def shares_of(
    models: Sequence[OpenModel], n_grams: Sequence[KenlmProducer], texts: Sequence[str], given: WordOptions
) -> Iterator[Shares | None]:
    """Of words outside each model's shortlist.

    Args:
        models: that are compared.
        n_grams: those of `given`, opened.
        texts: names of files, whose words count where nothing else says which do.
        given: options.
    """
    from moses_rnn.producers.shares import even_shares

    vocabularies = [model.target_vocabulary for model in models]
    if given.rare:
        types = _closed_vocabulary(vocabularies, texts, given)
        yield from (even_shares(types, vocabulary, with_unknown=bool(given.lm)) for vocabulary in vocabularies)
    elif n_grams:
        yield from (backing_off(given.lm[0], n_grams[0], vocabulary) for vocabulary in vocabularies)
    else:
        yield from [None] * len(models)


def _closed_vocabulary(vocabularies: Sequence[Vocabulary], texts: Sequence[str], given: WordOptions) -> set[bytes]:
    """The words that all models share: those of all shortlists, and of the n-gram model or else of the texts."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.producers.shares import types_of

    types = {word for vocabulary in vocabularies for word in vocabulary.words}
    if given.lm:
        return types | _words_of_arpa(existing_input(given.lm[0]))
    named = [given.vocabulary] if given.vocabulary else texts
    return types.union(*(types_of(read_lines(existing_input(text))) for text in named))


def _words_of_arpa(name: str) -> set[bytes]:
    from moses_rnn.files.streams import read_lines
    from moses_rnn.formats.arpa import parse_arpa

    return {n_gram[0] for n_gram in parse_arpa(read_lines(name), name) if len(n_gram) == 1}


def n_gram_models(paths: Sequence[str]) -> list[KenlmProducer]:
    """N-gram models, which must all know the words of the first.

    Raises:
        InputError: one does not, or cannot be read.
    """
    from moses_rnn.files.streams import existing_input
    from moses_rnn.producers.kenlm import KenlmProducer

    models = [KenlmProducer(existing_input(path)) for path in paths]
    if len(models) > 1:
        names = [existing_input(path) for path in paths]
        words = [_words_of_arpa(name) for name in names]
        for name, known in zip(names, words, strict=True):
            if known != words[0]:
                different = len(known ^ words[0])
                raise InputError(f"{name}: expected the words of {names[0]}, found {different:,} different ones")
    return models


def backing_off(lm: str, model: KenlmProducer, vocabulary: Vocabulary) -> Backoff:
    """What an n-gram model needs to share out <unk>."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.arpa import parse_arpa
    from moses_rnn.producers.backoff import Backoff

    path = existing_input(lm)
    return Backoff(parse_arpa(read_lines(path), path), model, vocabulary, path)
