"""Learning n-grams from a text, however long: ids stay on disk, shuffled a block at a time."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import InputError, writing
from moses_rnn.formats.phrase_forms import words
from moses_rnn.networks.dropout import Drop, drop_units, keep
from moses_rnn.networks.learning_curves import NATS
from moses_rnn.networks.n_grams import NGramNetwork, n_grams_of
from moses_rnn.networks.vocabulary import END_ID, Ids, Vocabulary
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Positions
from moses_rnn.training.gradients import Cost
from moses_rnn.training.threads import Workers, seed_of

ORDER, WITHIN = 0, 1  # random streams of an epoch: of its blocks, of the n-grams in each
BLOCK = 1 << 22  # words and boundaries shuffled together
EVALUATION_ROWS = 2048
MAX_HELD_OUT_SHARE = 0.1


@dataclass(frozen=True)
class TextConfig:
    """What is made of a text; `held_out_lines` of it, at most a tenth, are chosen by the seed and not trained on."""

    shortlist: int = 15_000
    held_out_lines: int = 0  # 0: the paper's 0.1 %, but at least 1 000
    seed: int = 1
    min_count: int = 1  # of a word of the shortlist


@dataclass(frozen=True)
class Text:
    """Sentences as ids end to end, each behind order - 1 times ``<s>`` and before ``</s>``."""

    flat: Ids
    begin_id: int  # of <s>

    def predicted(self, first: int, last: int) -> Positions:
        """Where, from `first` to before `last`, words and end symbols stand."""
        return np.flatnonzero(self.flat[first:last] != self.begin_id) + first

    def tokens(self) -> int:
        """How many words and end symbols there are."""
        return sum(len(self.predicted(first, first + BLOCK)) for first in range(0, len(self.flat), BLOCK))


class NGrams:
    """The task of a CSLM, or of Bengio's network.

    Args:
        model: with its initial weights, on its device.
        text: to learn.
        held_out: to be judged by.
        config: batches, precision, seed.
        self_normalise: α of a penalty α (log Z)² on what is learned.
    """

    unit = "n-grams"
    measure = NATS

    def __init__(
        self, model: NGramNetwork, text: Text, held_out: Text, config: TrainingConfig, self_normalise: float = 0.0
    ) -> None:
        self.model = model
        self._text, self._held_out = text, held_out
        self._config, self._self_normalise = config, self_normalise
        self._device = model.bias.device
        self._product = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self.examples = text.tokens()
        digests = [hashlib.sha256(part.flat.data).hexdigest() for part in (text, held_out)]
        texts = {"text": digests[0], "held-out text": digests[1]}
        self.identity = {**texts, **asdict(model.config), "self_normalise": self_normalise}

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """The minibatches of an epoch from a given one on; seed and epoch determine them.

        Every n-gram comes once. Blocks of the text come in random order, and the n-grams of a block too.
        """
        size, seed = self._config.batch_size, self._config.seed
        blocks = range(0, len(self._text.flat), BLOCK)
        before = 0
        for number in np.random.default_rng((seed, epoch, ORDER)).permutation(len(blocks)):
            positions = self._text.predicted(blocks[number], blocks[number] + BLOCK)
            shuffled = np.random.default_rng((seed, epoch, WITHIN, number)).permutation(positions)
            cut = range(0, len(shuffled), size)
            for start in cut[max(first - before, 0) :]:
                yield shuffled[start : start + size]
            before += len(cut)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities, and the penalty on log Z."""
        drop = drop_units(self._config.dropout, seed_of(self._config.seed, step, part), self._device)
        log_p, log_Z = self._log_probs(self._text, rows, drop)
        nats = -log_p.sum()
        penalty = self._self_normalise * (log_Z**2).sum()
        return Cost(nats + penalty, nats.item(), len(rows))

    def held_out(self, workers: Workers) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one; mean |log Z|."""
        costs = workers.each(self._exact_cost, range(0, len(self._held_out.flat), EVALUATION_ROWS))
        nats, size, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens, "mean_abs_log_z": size / tokens}

    def describe(self) -> str:
        """The order, and the sizes of the layers."""
        description: str = self.model.config.description
        return description

    @torch.no_grad()
    def _exact_cost(self, start: int) -> tuple[float, float, int]:
        rows = self._held_out.predicted(start, start + EVALUATION_ROWS)
        if not len(rows):
            return 0.0, 0.0, 0
        log_p, log_Z = self._log_probs(self._held_out, rows)
        return -log_p.double().sum().item(), log_Z.double().abs().sum().item(), len(rows)

    def _log_probs(self, text: Text, rows: Positions, drop: Drop = keep) -> tuple[Tensor, Tensor]:
        n_grams = torch.from_numpy(n_grams_of(text.flat, rows, self.model.config.order)).to(self._device)
        return self.model.log_probs(n_grams[:, :-1], n_grams[:, -1], self._product, drop)


def build_texts(
    lines: Iterable[bytes],
    held_out: Iterable[bytes] | None,
    folder: Path,
    vocabulary: Vocabulary,
    order: int,
    chosen: npt.NDArray[np.bool_] | None = None,
) -> tuple[Text, Text]:
    """Write a text's ids into files, and those of the held-out one.

    Args:
        lines: tokenised sentences; empty ones are left out.
        held_out: another text to judge by; None takes the `chosen` lines of this one.
        folder: for the files, which are replaced.
        vocabulary: the shortlist.
        order: n of the n-grams.
        chosen: which lines are held out.

    Raises:
        InputError: one of the texts is empty.
    """
    texts = [_Writer(folder / f"{name}.tokens", vocabulary, order) for name in ("text", "held-out")]
    for number, line in enumerate(lines):
        texts[held_out is None and chosen is not None and bool(chosen[number])].add(line)
    for line in held_out or ():
        texts[1].add(line)
    kept, judging = (writer.text() for writer in texts)
    if not len(kept.flat) or not len(judging.flat):
        what = "a text to train on" if not len(kept.flat) else "held-out lines"
        raise InputError(f"expected {what}, found no line with words")
    return kept, judging


def chosen_lines(lines: int, config: TextConfig) -> npt.NDArray[np.bool_]:
    """Which lines of a text are held out."""
    wanted = config.held_out_lines or max(1000, lines // 1000)
    count = max(min(wanted, int(MAX_HELD_OUT_SHARE * lines)), 1)
    chosen = np.zeros(lines, np.bool_)
    chosen[np.random.default_rng(config.seed).permutation(lines)[:count]] = True
    return chosen


class _Writer:
    """Streams sentences into a file of ids."""

    def __init__(self, path: Path, vocabulary: Vocabulary, order: int) -> None:
        self._path = path
        self._ids_of = vocabulary.ids
        self._begin_id = len(vocabulary)
        self._before = [self._begin_id] * (order - 1)
        self._buffer = array("i")
        path.unlink(missing_ok=True)  # perhaps a link to something else
        path.touch(exist_ok=False)

    def add(self, line: bytes) -> None:
        if sentence := words(line.rstrip(b"\r\n")):
            self._buffer.extend([*self._before, *self._ids_of(sentence), END_ID])
            if len(self._buffer) > BLOCK:
                self._flush()

    def _flush(self) -> None:
        with writing(self._path, 4 * len(self._buffer)), self._path.open("ab") as file:
            self._buffer.tofile(file)
            file.flush()
        del self._buffer[:]

    def text(self) -> Text:
        self._flush()
        flat = np.memmap(self._path, dtype=np.int32, mode="r") if self._path.stat().st_size else np.zeros(0, np.int32)
        return Text(flat, self._begin_id)
