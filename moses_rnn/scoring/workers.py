"""What a worker does with a chunk: scores it, checks the scores, writes them into its lines and packs the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from moses_rnn.errors import InputError, MosesRnnError, PairError, placing, shown
from moses_rnn.files.outputs import Packing
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR
from moses_rnn.formats.signatures import ColumnCounts
from moses_rnn.formats.table_blocks import TableLines
from moses_rnn.producers.base import Compute, Description, ScoreProducer, Scores, Tally, is_unbounded
from moses_rnn.producers.ensembles import MEAN_LOG, Writer, make_ensemble
from moses_rnn.producers.open import Model, ModelOnDisk
from moses_rnn.producers.phrases import WordPenaltyProducer

Chunk = TableLines  # lines to be scored together
CEILING = -DEFAULT_FLOOR  # of a logarithm whose exponential is written: Moses holds it as float32


@dataclass(frozen=True)
class ColumnOptions:
    """How scores are written: as their exponentials, from exp(`floor`) on, or as natural logarithms as they are.

    And whether the models of one direction give one column together, the mean of their log p, or a column each.
    """

    floor: float = DEFAULT_FLOOR
    logarithms: bool = False
    averaged: bool = True


@dataclass(frozen=True)
class ScoredChunk:
    """A packed block of the new table, and what was counted in it; `halvings` see `Tally`."""

    block: bytes
    counts: ColumnCounts
    halvings: int = 0


class ChunkScorer:
    """Makes blocks of the new table out of chunks of the old one.

    Args:
        producers: of the new columns; threads may share them.
        name: of the table, for messages.
        options: how scores are written.
        pack: done to each block.
    """

    def __init__(self, producers: Sequence[ScoreProducer], name: str, options: ColumnOptions, pack: Packing) -> None:
        self.producers = producers
        self._name, self._options, self._pack = name, options, pack
        unbounded = np.array([is_unbounded(of) for of in producers for _ in range(of.num_scores)], np.bool_)
        self._highest = np.where(unbounded, np.inf if options.logarithms else CEILING, 0.0)

    def __call__(self, chunk: Chunk) -> ScoredChunk:
        """Score a chunk.

        Raises:
            MosesRnnError: it could not be scored, or a score is none, see `check_scores`; the line at fault is named.
        """
        scores, tallies = self._scored_or_explained(chunk)
        scores = np.minimum(scores, self._highest)
        floor = -np.inf if self._options.logarithms else self._options.floor
        halvings = sum({id(tally): tally.halvings for tally in tallies}.values())
        block = self._pack(chunk.append_scores(to_probabilities(scores, self._options)))
        return ScoredChunk(block, _counts(scores, tallies, floor), halvings)

    def _scored_or_explained(self, chunk: Chunk) -> tuple[Scores, list[Tally]]:
        try:
            with placing(lambda row: f"{self._name}:{chunk.numbers[row]}"):
                return self._scored(chunk)
        except PairError as error:
            raise self._failure(chunk, error) from error
        except MosesRnnError:
            raise
        except Exception as error:
            raise self._failure(chunk, error) from error

    def _scored(self, chunk: Chunk) -> tuple[Scores, list[Tally]]:
        pairs = chunk.pairs()
        columns, tallies = [], []
        for producer in self.producers:
            tally = Tally()
            columns.append(producer.log_probs(pairs, tally))
            tallies += [tally] * producer.num_scores
        return np.concatenate(columns, axis=1), tallies

    def _failure(self, chunk: Chunk, error: Exception) -> MosesRnnError:
        """What could not be scored: the lines, and by halving them again and again the one at fault."""
        where = lines_of(chunk)
        first = chunk.numbers[0]
        while len(chunk) > 1:
            half = chunk[: len(chunk) // 2]
            chunk = chunk[len(chunk) // 2 :] if self._can_score(half) else half
        pairs = chunk.pairs()
        pair = shown(b" ||| ".join((pairs.sources[0], pairs.targets[0])))
        if isinstance(error, PairError):
            return InputError(f"{self._name}:{chunk.numbers[0]}: {error.message}: {pair}", advice=error.advice)
        alone = "only in their company" if self._can_score(chunk) else "alone too"
        return MosesRnnError(
            f"{self._name}:{first}: expected to score {where}, found {type(error).__name__}: {error}\n"
            f"  Line {chunk.numbers[0]:,} fails ({alone}): {pair}"
        )

    def _can_score(self, chunk: Chunk) -> bool:
        try:
            self._scored(chunk)
        except Exception:
            return False
        return True


def lines_of(chunk: Chunk) -> str:
    """A chunk's lines, for messages."""
    return f"lines {chunk.numbers[0]:,} to {chunk.numbers[-1]:,}"


def to_probabilities(scores: Scores, options: ColumnOptions) -> Scores:
    """Scores as they stand in a table, where 9 digits hold more than the decoder's float32; lines × columns."""
    return scores + 0.0 if options.logarithms else np.exp(np.maximum(scores, options.floor))  # + 0.0: no -0


def _counts(scores: Scores, tallies: Sequence[Tally], floor: float) -> ColumnCounts:
    """What a signature counts, of some lines; scores are lines × columns."""
    written = np.maximum(scores, floor)
    return ColumnCounts(
        lines=len(scores),
        unknown=[tally.unknown for tally in tallies],
        floored=(scores < floor).sum(axis=0).tolist(),
        lowest=written.min(axis=0).tolist(),
        highest=written.max(axis=0).tolist(),
    )


@dataclass(frozen=True)
class ScoringJob:
    """What workers elsewhere are told: files and choices instead of open models."""

    name: str  # of the table
    models: tuple[ModelOnDisk, ...]
    compute: Compute
    word_penalty: bool
    columns: ColumnOptions
    pack: Packing

    def begin(self, device: str) -> ChunkScorer:
        """Open the models on a device.

        Raises:
            CheckpointError: a model is not there, or not the one that was checked.
        """
        torch.set_num_threads(1)
        compute = replace(self.compute, device=device)
        writers = make_writers([model.open_again() for model in self.models], averaged=self.columns.averaged)
        return ChunkScorer(
            make_producers(writers, compute, word_penalty=self.word_penalty), self.name, self.columns, self.pack
        )

    def name_of(self, chunk: Chunk) -> str:
        """A chunk's name for messages."""
        return f"{self.name}: {lines_of(chunk)}"


def make_writers(models: Sequence[Model], *, averaged: bool) -> list[Writer]:
    """What gives a column each: models, or all of a direction together.

    Raises:
        CheckpointError: models of a direction do not write the same words, and so have no mean.
    """
    if not averaged:
        return [*models]
    directions = [[model for model in models if model.inverse == inverse] for inverse in (False, True)]
    return [of[0] if len(of) == 1 else make_ensemble(of, MEAN_LOG) for of in directions if of]


def make_producers(writers: Sequence[Writer], compute: Compute, *, word_penalty: bool) -> list[ScoreProducer]:
    """The producers of the new columns."""
    producers = [writer.make_producer(compute) for writer in writers]
    if word_penalty:
        producers.append(WordPenaltyProducer(writers[0].target_vocabulary))
    return producers


def describe_columns(writers: Sequence[Writer], *, word_penalty: bool) -> list[Description]:
    """The new columns, without the producers."""
    penalty = Description(WordPenaltyProducer.name, WordPenaltyProducer.meaning)
    return [*(writer.describe() for writer in writers), *[penalty] * word_penalty]
