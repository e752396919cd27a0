"""A loaded network of pairs, or several as one: what Python code scores, samples, translates and explains with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import overload

import numpy as np

from moses_rnn.analysis.explain import Explanation
from moses_rnn.api.arguments import (
    BytesPair,
    Pair,
    PathLike,
    Text,
    check_choice,
    check_range,
    pairs_of,
    texts_of,
)
from moses_rnn.api.chunks import PAIRS, Floats, scored
from moses_rnn.api.explaining import explain_pair
from moses_rnn.api.options import Options
from moses_rnn.api.reading import PairReading
from moses_rnn.api.writing import Sample, Translated, draw_samples, translate
from moses_rnn.errors import ArgumentError
from moses_rnn.producers.base import ScoreProducer
from moses_rnn.producers.ensembles import Writer
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.sampling import SamplingConfig
from moses_rnn.translation.translate import make_translator
from moses_rnn.translation.unknown_words import COPY, NEVER, NO

LENGTH_SCORES = "sum", "mean"
UNKNOWN_RULES = NO, COPY, NEVER
WORDS_PER_SOURCE_WORD = 3  # and for its </s>: the longest translation


class Model:
    """A network that gives log p(target | source) of pairs, as `moses_rnn.load` returns it.

    Texts are str, which counts as UTF-8, or bytes: words with blanks between, as the table or corpus has them from
    which the network learned. All log-probabilities are natural, with the end symbols of both sides; words outside the
    shortlists count as ``<unk>``.
    """

    def __init__(self, writer: Writer, options: Options) -> None:
        self._writer = writer
        self._options = options
        self._compute = options.scoring(writer.models)

    def __repr__(self) -> str:
        known = len(self._writer.source_vocabulary), len(self._writer.target_vocabulary)
        folders = ", ".join(repr(str(folder)) for folder in self.folders)
        how = f"{self._compute.device}, {self._compute.precision}{', native core' * self._compute.native}"
        return f"<moses_rnn.Model {folders}: {self.meaning}; {known[0]:,} and {known[1]:,} words; {how}>"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where it was read from; several of an ensemble."""
        return tuple(model.folder for model in self._writer.models)

    @property
    def network(self) -> str:
        """What it is, such as ``RNN Encoder-Decoder`` or ``RNNsearch of sentences``."""
        return self._writer.title

    @property
    def name(self) -> str:
        """Of its score, as tables and n-best lists have it."""
        return self._writer.name

    @property
    def meaning(self) -> str:
        """What its score is, in words."""
        return self._producer.meaning

    @property
    def inverse(self) -> bool:
        """Whether it gives log p(source | target), as models of ``moses-rnn-train --inverse`` do."""
        return self._writer.inverse

    @property
    def learned_sentences(self) -> bool:
        """Whether it learned from sentences, not from phrases."""
        return self._writer.learned_sentences

    @overload
    def score(self, pairs: Iterable[Pair]) -> Floats: ...

    @overload
    def score(self, pairs: Iterable[Text], targets: Iterable[Text]) -> Floats: ...

    def score(self, pairs: Iterable[Pair] | Iterable[Text], targets: Iterable[Text] | None = None) -> Floats:
        """log p of each pair, or a ranker's score; as many, float64.

        Args:
            pairs: any number of (source, target), or of (source, target, alignment) where the phrases are rules or
                rare words are annotated; or, with `targets`, the sources alone.
            targets: as many.

        Raises:
            ArgumentError: there are not as many targets as sources, or something is no pair of texts.
        """
        return np.concatenate([np.zeros(0), *self._chunks(pairs_of(pairs, targets), PAIRS)])

    @overload
    def score_iter(self, pairs: Iterable[Pair], *, chunk: int = PAIRS) -> Iterator[float]: ...

    @overload
    def score_iter(self, pairs: Iterable[Text], targets: Iterable[Text], *, chunk: int = PAIRS) -> Iterator[float]: ...

    def score_iter(
        self, pairs: Iterable[Pair] | Iterable[Text], targets: Iterable[Text] | None = None, *, chunk: int = PAIRS
    ) -> Iterator[float]:
        """log p of each pair of a stream of any length, one after the other; raises as `score`.

        Args:
            pairs: see `score`; read a few chunks ahead.
            targets: see `score`.
            chunk: pairs that are scored together.
        """
        size = check_range("chunk", chunk)
        scores = self._chunks(pairs_of(pairs, targets), size)
        return chain.from_iterable(map(np.ndarray.tolist, scores))

    def explain(
        self, source: Text, target: Text, alignment: Text | None = None, *, table: PathLike | None = None
    ) -> Explanation:
        """What is known of one pair: log p word by word, and what a table says; ``print`` shows it.

        Args:
            source: phrase or sentence.
            target: the same.
            alignment: of a rule with gaps that is not in the table.
            table: a phrase table to compare with, scored or not.

        Raises:
            ArgumentError: see `score`.
            InputError: the table cannot be read, or its phrases are not of the form that the model knows.
        """
        (pair,) = pairs_of([(source, target) if alignment is None else (source, target, alignment)])
        path = None if table is None else Path(table)
        return explain_pair(self._writer, self._producer, pair, path)

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
        """Targets of each source, drawn word by word from the network; distinct ones, the likeliest first.

        Products are in float64 for it: so a source's samples depend on the seed and the options alone.

        Args:
            sources: any number.
            samples: drawn of each.
            temperature: below 1, likely words are drawn more often; above, less.
            seed: of the samples.
            max_words: what has more is left out.
            unknown: whether ``<unk>`` may be drawn.

        Raises:
            ArgumentError: an option is not possible, or something is no text.
        """
        if not 0 < temperature < math.inf:
            raise ArgumentError("temperature", "a number above 0", str(temperature))
        config = SamplingConfig(
            samples=check_range("samples", samples),
            temperature=temperature,
            seed=check_range("seed", seed, least=0),
            max_words=check_range("max_words", max_words),
            allow_unknown=unknown,
        )
        return draw_samples(self._writer, self._producer, self._options.device, texts_of("sources", sources), config)

    def translate(
        self,
        sentences: Iterable[Text],
        *,
        beam: int = 12,
        n_best: int = 1,
        length_score: str = "sum",
        unknown: str | None = None,
    ) -> Iterator[Translated]:
        """The network's own translations of sentences by beam search, one after the other, in order.

        Args:
            sentences: any number; read some hundred ahead. An empty one's translation is empty.
            beam: width of the search; 1 is greedy.
            n_best: hypotheses of each, at most.
            length_score: what decides: "sum", log p, or "mean", log p per word.
            unknown: what stands for ``<unk>``: "no": itself; "copy": the source word that the network looked at;
                "never": it is not written. None: "copy" if rare words are annotated, else "no".

        Raises:
            ArgumentError: an option is not possible, or something is no text.
            InputError: the network learned from factored phrases or rules, or has no attention to copy by.
        """
        rule = None if unknown is None else check_choice("unknown", unknown, UNKNOWN_RULES)
        beam_config = BeamConfig(
            width=check_range("beam", beam),
            best=check_range("n_best", n_best),
            words_per_source_word=WORDS_PER_SOURCE_WORD,
            length_score="mean" if check_choice("length_score", length_score, LENGTH_SCORES) == "mean" else "sum",
        )
        compute = self._options.writing(self._writer.models)
        translator = make_translator(self._writer, compute, beam_config, unknown=rule, aligned=beam_config.best)
        return translate(self._writer, translator, texts_of("sentences", sentences))

    @cached_property
    def _producer(self) -> ScoreProducer:
        return self._writer.make_producer(self._compute)

    @cached_property
    def _reading(self) -> PairReading:
        return PairReading(self._writer)

    def _chunks(self, pairs: Iterator[BytesPair], size: int) -> Iterator[Floats]:
        threads = self._options.threads_or_all if self._compute.native else 1  # torch has threads of its own
        checked = self._reading.checked(pairs)
        return scored(checked, self._log_probs, threads, size, unbounded=self._writer.unbounded)

    def _log_probs(self, pairs: list[BytesPair]) -> Floats:
        return self._producer.log_probs(*self._reading.sides(pairs))[:, 0]
