"""Loaded networks that score, sample, translate and explain from Python."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch

from moses_rnn.analysis.explain import Explanation, Lookup, Neighbour, explain_in_table, explain_words, lookup_of
from moses_rnn.analysis.maps import all_embeddings
from moses_rnn.analysis.neighbours import nearest_phrases, nearest_words, summaries
from moses_rnn.api.chunks import CHUNK, score_chunks
from moses_rnn.api.pairs import (
    BytesPair,
    Pair,
    PathLike,
    Text,
    as_str,
    check_choice,
    check_range,
    items_of,
    pairs_of,
    read_pair,
    texts_of,
)
from moses_rnn.errors import ArgumentError, CheckpointError, InputError, number_of, shown_value
from moses_rnn.files.streams import checked_path
from moses_rnn.models.base import Scorer
from moses_rnn.models.ensembles import COMBINATIONS, GEOMETRIC, AnyModel, open_models
from moses_rnn.models.language_models import NetworkLanguageModel
from moses_rnn.models.model import Model as Opened
from moses_rnn.models.open import check_reads_sources, open_language_model
from moses_rnn.native import MOST_THREADS
from moses_rnn.networks.compute import PRECISIONS, Compute, choose_device
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.own_settings import own_settings
from moses_rnn.options import DETOKENISED, PRETRAINED_TEXTS, PretrainedOptions
from moses_rnn.score.checks import unit_warnings
from moses_rnn.table.table_blocks import Floats
from moses_rnn.translation.proposals import Converter, Known, Proposer, parse_sources
from moses_rnn.translation.requests import BEAM, COPY, NEVER, NO, WORDS_PER_SOURCE_WORD
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from moses_rnn.translation.translate import Translation, Translator

DRAWING = "fp64"  # in float32, one of some ten thousand samples would depend on what else is sampled


@dataclass(frozen=True)
class Sample:
    """A target that the network wrote, its log p given the source, and how often it was drawn."""

    text: str
    log_prob: float
    times: int


@dataclass(frozen=True)
class Hypothesis:
    """A translation: log p of its words and ``</s>``; of one that has not `ended` within the limit, of the words.

    `places` are the places, from 0, of the source word that each word points to (-1: to none) or, without a pointer or
    with ``unknown="no"``, looks at most; None for a network without attention or pointers.
    """

    text: str
    log_prob: float
    ended: bool
    places: tuple[int, ...] | None


@dataclass(frozen=True)
class Translated:
    """A sentence and its likeliest translations, best first; at least one."""

    source: str
    hypotheses: tuple[Hypothesis, ...]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    @property
    def log_prob(self) -> float:
        """Log p of the best translation."""
        return self.hypotheses[0].log_prob


class _Loaded:
    """A loaded network. Pickling leaves out the scorer, which may hold C pointers; it is made again when needed."""

    _model: AnyModel
    _compute: Compute

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    def word_vectors(self, side: str | None = None) -> tuple[list[str], Floats]:
        """Return the words of a side, by default the first that there is, and their embeddings; words × numbers."""
        names, vectors = all_embeddings(*self._single(side))
        return list(map(as_str, names)), vectors.astype(np.float64)

    def nearest(
        self, texts: Iterable[Text], *, among: Iterable[Text] | None = None, side: str | None = None, count: int = 10
    ) -> list[list[Neighbour]]:
        """Return what is nearest to each text by the cosine of their vectors, nearest first.

        Texts are words, with the vectors of `word_vectors`. With `among`, they are phrases or sentences, which are
        compared with those `among` by their `summaries`.
        """
        (model, side), count = self._single(side), check_range("count", count)
        if among is None:
            find = partial(nearest_words, model, [*texts_of("texts", texts)], side, count)
        else:
            check_reads_sources(model)
            given, others = _phrases_of("texts", texts, model), dict.fromkeys(_phrases_of("among", among, model))
            find = partial(nearest_phrases, model, given, [*others], count, Compute(self._compute.device))
        with own_settings():
            found = find()
        return [[Neighbour(as_str(text), cosine) for text, cosine in nearest] for nearest in found]

    def _single(self, side: str | None = None) -> tuple[Opened, str]:
        """Return the network and a side of it; raise CheckpointError if it is several together."""
        model, *others = self._model.models
        if others:
            raise CheckpointError(f"{model.folder}: expected a single network, with vectors, found {self._model.title}")
        sides = model.architecture.sides
        return model, sides[0] if side is None else check_choice("side", side, sides)


def _phrases_of(argument: str, phrases: Iterable[Text], model: Opened) -> list[bytes]:
    return list(parse_sources(texts_of(argument, phrases), argument, Converter(model)))


class Model(_Loaded):
    """A network that gives log p(target | source) of pairs, as `moses_rnn.load` returns it.

    Texts are str, which counts as UTF-8, or bytes: words with blanks between, as the table or corpus has them from
    which the network learned. All log-probabilities are natural, with the end symbols of both sides; words outside the
    shortlists count as ``<unk>``. A wrong value raises an ArgumentError that names it, what the network cannot read an
    InputError, and what a network cannot do a CheckpointError.

    Attributes:
        folders: where it was read from; several of an ensemble.
        network: what it is, such as ``RNN Encoder-Decoder`` or ``RNNsearch of sentences``.
        name: of its score, as tables and n-best lists have it.
        inverse: whether it gives log p(source | target), as models of ``moses-rnn-train --inverse`` do.
        learned_sentences: whether it learned from sentences, not from phrases.
    """

    def __init__(self, model: AnyModel, device: str, precision: str, threads: int | None) -> None:
        self._model, self._converter, self._threads = model, Converter(model), threads
        self._compute = model.choose_compute(device, precision)
        self.folders: tuple[Path, ...] = tuple(member.folder for member in model.models)
        self.network: str = model.title
        self.name: str = model.name
        self.inverse: bool = model.inverse
        self.learned_sentences: bool = model.learned_sentences

    def __repr__(self) -> str:
        read, written = self._model.source_vocabulary, self._model.target_vocabulary
        folders = ", ".join(repr(str(folder)) for folder in self.folders)
        how = f"{self._compute.device}, {self._compute.precision}"
        if self._compute.native:
            how += ", native core"
        size = f"{len(read):,} and {number_of(len(written), written.unit)}"
        return f"<moses_rnn.Model {folders}: {self.meaning}; {size}; {how}>"

    @property
    def meaning(self) -> str:
        """Description of the score."""
        return self._scorer.meaning

    @cached_property
    @own_settings()
    def _scorer(self) -> Scorer:
        return self._model.make_scorer(self._compute)

    def score(self, pairs: Iterable[Pair | Text], targets: Iterable[Text] | None = None) -> Floats:
        """Return log p of each pair, or a ranker's score, as float64.

        Args:
            pairs: any number of (source, target), or of (source, target, alignment) where the phrases are rules or
                rare words are annotated; or rows of a table; or, with `targets`, the sources alone.
            targets: as many, else a ValueError.
        """
        return np.concatenate([np.zeros(0), *score_pairs(self, pairs_of(pairs, targets))])

    def score_iter(
        self, pairs: Iterable[Pair | Text], targets: Iterable[Text] | None = None, *, chunk: int = CHUNK
    ) -> Iterator[float]:
        """Yield log p of each pair of any stream, in order; a few chunks of pairs are read ahead."""
        scores = score_pairs(self, pairs_of(pairs, targets), check_range("chunk", chunk, most=sys.maxsize))
        return chain.from_iterable(map(np.ndarray.tolist, scores))

    @own_settings()
    def explain(
        self, source: Text, target: Text, alignment: Text | None = None, *, table: PathLike | None = None
    ) -> Explanation:
        """Explain one pair: log p word by word, and what a table says; ``print`` and notebooks show it.

        Args:
            source: phrase or sentence.
            target: the same.
            alignment: of a rule with gaps that is not in the table.
            table: a phrase table to compare with, scored or not.
        """
        (pair,) = pairs_of([(source, target) if alignment is None else (source, target, alignment)])
        (model, *others), rare = self._model.models, self._model.rare
        if rare:
            expected = "expected a model of plain words to explain"
            raise CheckpointError(
                f"{model.folder}: {expected}, found one that learned annotated rare words ({rare.kind})"
            )
        if table is None:
            read = read_pair(pair, self._converter.form)
            return explain_words(
                self._model, self._scorer, Lookup(pair.source, pair.target, (read.source, read.target))
            )
        if others or model.architecture is not ENCDEC:
            found = f"table: expected an RNN Encoder-Decoder to compare with a table, found {self.network}"
            raise CheckpointError(found)
        lookup = lookup_of(pair.source, pair.target, pair.alignment or b"", self._converter.form)
        return explain_in_table(model, self._scorer, lookup, checked_path("table", table))

    def sample(
        self,
        sources: Iterable[Text],
        samples: int = 50,
        *,
        temperature: float = 1.0,
        seed: int = 1,
        max_words: int = 50,
        unknown: bool = True,
    ) -> list[list[Sample]]:
        """Draw targets of each source word by word from the network; return distinct ones, likeliest first.

        Products are in float64 for it: so a source's samples depend on the seed and the options alone.

        Args:
            sources: any number.
            samples: drawn of each.
            temperature: below 1, likely words are drawn more often; above, less.
            seed: of the samples.
            max_words: what has more is left out.
            unknown: whether ``<unk>`` may be drawn.
        """
        config = SamplingConfig(
            samples=check_range("samples", samples),
            temperature=_check_temperature(temperature),
            seed=check_range("seed", seed, least=0, most=math.inf),
            max_words=check_range("max_words", max_words),
            allow_unknown=unknown,
        )
        read = list(parse_sources(texts_of("sources", sources), "sources", self._converter))
        with own_settings():
            drawn = make_proposer(self._model, config, self._scorer, self._compute.device)(read)
            return [[Sample(as_str(p.target), p.log_prob, p.times) for p in proposals.best] for proposals in drawn]

    def translate(
        self,
        sentences: Iterable[Text],
        *,
        beam: int = BEAM,
        n_best: int = 1,
        length_score: str = "mean",
        unknown: str | None = None,
    ) -> list[Translated]:
        """Translate sentences by beam search, in order.

        Args:
            sentences: any number. An empty one's translation is empty.
            beam: width of the search; 1 is greedy.
            n_best: hypotheses of each, at most.
            length_score: what decides: "mean", log p per word, or "sum", log p.
            unknown: what stands for ``<unk>``: "no": itself; "copy": the source word that the network looked at;
                "never": it is not written. None: "copy" if rare words are annotated, else "no".
        """
        config = BeamConfig(
            width=check_range("beam", beam),
            best=check_range("n_best", n_best),
            words_per_source_word=WORDS_PER_SOURCE_WORD,
            length_score="mean" if check_choice("length_score", length_score, ("sum", "mean")) == "mean" else "sum",
        )
        rule = None if unknown is None else check_choice("unknown", unknown, (NO, COPY, NEVER))
        compute = replace(self._compute, native=False)
        given = list(texts_of("sentences", sentences))
        for text in unit_warnings(self._model.models, on_sentences=True):
            warnings.warn(text, stacklevel=2)
        with own_settings():
            translator = Translator(self._model, compute, config, unknown=rule, aligned=config.best)
            return list(map(_translated, translator(given, "sentences")))

    def summaries(self, phrases: Iterable[Text]) -> Floats:
        """Return the decoder's initial vector for each phrase or sentence; phrases × numbers, float64.

        That is c of an RNN Encoder-Decoder, h of all layers of a deep LSTM, s_0 of an RNNsearch. Other networks, and
        several together, have none.
        """
        model, _ = self._single()
        read = _phrases_of("phrases", phrases, model)
        with own_settings():
            return summaries(model, read, Compute(self._compute.device)).astype(np.float64)


def score_pairs(model: Model, pairs: Iterable[BytesPair], size: int = CHUNK) -> Iterator[Floats]:
    """Yield the scores of `size` pairs at a time; errors name a pair by its `name` and are those of `Model.score`."""
    form, rare, threads = model._converter.form, model._model.rare, 1  # torch has threads of its own
    if model._compute.native:
        threads = model._threads or torch.get_num_threads()
    needs_links = rare is not None and rare.needs_links
    read = (read_pair(pair, form, needs_links=needs_links) for pair in pairs)
    return score_chunks(read, model._scorer, size, threads)


def make_proposer(
    model: AnyModel, config: SamplingConfig | BeamConfig, scorer: Scorer, device: str, known: Known | None = None
) -> Proposer:
    """Make what samples or searches for targets and scores them; `known` are the targets of a table."""
    if model.rare and model.rare.needs_links:
        raise InputError(
            f"{model.models[0].folder}: expected a model that scores pairs without alignments, found one whose "
            f"rare words are annotated ({model.rare.kind}): its proposals have no word alignments"
        )
    stepper = model.make_stepper(Compute(device, DRAWING))
    search = BeamSearch(stepper, config) if isinstance(config, BeamConfig) else Sampler(stepper, config)
    return Proposer(Converter(model), search, scorer, known)


def _check_temperature(value: Any) -> float:
    if isinstance(value, Real) and 0 < value <= sys.float_info.max:  # type: ignore[operator]
        return float(value)
    raise ArgumentError("temperature", "a number above 0", shown_value(value))


def _translated(translation: Translation) -> Translated:
    hypotheses = (
        Hypothesis(as_str(one.text), one.log_prob, one.ended, None if one.links is None else tuple(one.links))
        for one in translation.candidates
    )
    return Translated(as_str(b" ".join(translation.source)), tuple(hypotheses))


def load(  # noqa: PLR0913, one for each option
    folder: PathLike | Sequence[PathLike],
    *,
    device: str | torch.device = "auto",
    precision: str = "fp32",
    threads: int | None = None,
    combine: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    pretrained_text: str = DETOKENISED,
    allow_pickle: bool = False,
) -> Model:
    """Load a network of pairs, or several as one, from what moses-rnn-train or moses-rnn nmt train has written.

    Args:
        folder: of the model; a list of several makes an ensemble of networks that write the same words.
        device: "cpu", "cuda", "cuda:1" …; "auto" is CUDA if there is one.
        precision: of matrix products: "fp32", "bf16", "fp64", or "auto", bf16 where it is faster and the network
            large.
        threads: of the processor; for all of torch in this process. None: all cores.
        combine: how several are one: "geometric" (the default), "mean-log" or "arithmetic".
        source_language: code of the language that a pretrained model, ``hf:FOLDER`` or ``hf:NAME``, reads.
        target_language: code of the language that it writes.
        pretrained_text: what it reads: "detokenised" and unescaped lines, "tokenised" and unescaped ones, or "raw".
        allow_pickle: whether its weights may be pickled; only tensors are read.

    Raises:
        ArgumentError: an option is not possible; it is named.
        CheckpointError: a folder cannot be read, is of a language model, or does not go with the first one.
    """
    if isinstance(folder, str | bytes | os.PathLike):
        folder = [folder]
    folders = [Path(checked_path("folder", path)) for path in items_of("folder", folder, "folders, or one folder")]
    if not folders:
        raise ArgumentError("folder", "a folder, or a list of at least one", "an empty list")
    if combine is not None:
        check_choice("combine", combine, COMBINATIONS)
        if len(folders) == 1:
            raise ArgumentError("combine", "several folders, which it combines into one network", f"{folders[0]} alone")
    device, precision, threads = _choose(device, precision, threads)
    options = PretrainedOptions(
        source_language=source_language,
        target_language=target_language,
        pretrained_text=check_choice("pretrained_text", pretrained_text, PRETRAINED_TEXTS),
        allow_pickle=allow_pickle,
    )
    with own_settings():
        return Model(open_models(folders, combine or GEOMETRIC, options), device, precision, threads)


def _choose(device: str | torch.device, precision: str, threads: int | None) -> tuple[str, str, int | None]:
    """Check where and how to compute, and set torch's number of threads."""
    device = choose_device(str(device), "device")
    check_choice("precision", precision, ("auto", *PRECISIONS))
    if threads is not None:
        torch.set_num_threads(check_range("threads", threads, most=MOST_THREADS))
    return device, precision, threads


class LanguageModel(_Loaded):
    """A network that gives log p of sentences, as `moses_rnn.load_language_model` returns it.

    Sentences are str, which counts as UTF-8, or bytes: words with blanks between. Log-probabilities are natural, with
    the end symbol; words outside the shortlist count as ``<unk>``. A wrong value raises an ArgumentError that names it.

    Attributes:
        folder: where it was read from.
        network: what it is, such as ``CSLM``.
        name: of its score, as n-best lists have it.
        meaning: what its score is, in words.
    """

    _model: Opened

    def __init__(self, model: Opened, device: str, precision: str) -> None:
        self._model, self._compute = model, model.choose_compute(device, precision)
        self.folder: Path = model.folder
        self.network: str = model.title
        self.name: str = model.name
        self.meaning: str = self._scorer.meaning

    @cached_property
    @own_settings()
    def _scorer(self) -> NetworkLanguageModel:
        return self._model.make_language_model(self._compute)

    def __repr__(self) -> str:
        vocabulary, how = self._model.target_vocabulary, f"{self._compute.device}, {self._compute.precision}"
        about = f"{self.meaning}; {number_of(len(vocabulary), vocabulary.unit)}; {how}"
        return f"<moses_rnn.LanguageModel {str(self.folder)!r}: {about}>"

    def score(self, sentences: Iterable[Text]) -> Floats:
        """Return log p of each sentence, as float64."""
        return np.concatenate([np.zeros(0), *self._chunks(sentences, CHUNK)])

    def score_iter(self, sentences: Iterable[Text], *, chunk: int = CHUNK) -> Iterator[float]:
        """Yield log p of each sentence of any stream, in order; a few chunks are read ahead."""
        return chain.from_iterable(
            map(np.ndarray.tolist, self._chunks(sentences, check_range("chunk", chunk, most=sys.maxsize)))
        )

    def word_scores(self, sentence: Text) -> Floats:
        """Return log p of each word of a sentence given those before it, and of ``</s>``; words + 1, float64."""
        (text,) = texts_of("sentence", [sentence])
        with own_settings():
            return self._scorer.word_log_probs([text])

    def _chunks(self, sentences: Iterable[Text], size: int) -> Iterator[Floats]:
        texts = enumerate(texts_of("sentences", sentences))
        pairs = (BytesPair(f"sentences[{i}]", source=b"", target=text) for i, text in texts)
        return score_chunks(pairs, self._scorer, size)


def load_language_model(
    folder: PathLike, *, device: str | torch.device = "auto", precision: str = "fp32", threads: int | None = None
) -> LanguageModel:
    """Load a language model from what moses-rnn cslm train has written; options and errors are those of `load`."""
    device, precision, _ = _choose(device, precision, threads)
    with own_settings():
        return LanguageModel(open_language_model(checked_path("folder", folder)), device, precision)
