"""What a training run says as it goes: its corpus, its network, its held-out figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from moses_rnn.cli.command import say
from moses_rnn.cli.progress import Display, duration
from moses_rnn.errors import Stopped
from moses_rnn.files.metered import Meter
from moses_rnn.files.streams import read_blocks

if TYPE_CHECKING:
    from moses_rnn.models.vocabulary import Vocabulary
    from moses_rnn.training.config import TrainingConfig
    from moses_rnn.training.corpus import Corpus
    from moses_rnn.training.cslm_run import TextStatistics
    from moses_rnn.training.run import TrainingRequest
    from moses_rnn.training.trainer import Progress, Trainer


class TrainingDisplay:
    """Tells a training run's news."""

    def __init__(self, config: TrainingConfig, unit: str, *, quiet: bool = False) -> None:
        self._config = config
        self._unit = unit
        self._quiet = quiet
        self._display = Display("lines read", quiet=quiet)
        self._meter = Meter()
        self._loss = 0.0
        self._before = 0  # examples
        self._wanted = 0.0
        self._share_before = 0.0

    def reading(self, path: str, should_stop: Callable[[], bool]) -> Iterator[bytes]:
        """A file in blocks of lines, shown as they are read; raises Stopped when asked to."""
        for block in read_blocks(path, meter=self._meter):
            yield block
            self._display.show(self._meter.lines_read, self._meter.share)
            if should_stop():
                raise Stopped(f"stopped while reading {path}; the same command goes on")
        self._display.close()

    def starting(self, trainer: Trainer) -> None:
        """Print how large the network is and where the run stands; open the bar."""
        parameters = sum(tensor.numel() for tensor in trainer.model.parameters())
        self._say(f"network: {self._network(trainer)}, {parameters:,} parameters")
        self._say(f"training: {trainer.config.describe(self._unit)}")
        if trainer.resumed:
            best = f"best so far {trainer.progress.best:.4f}" if trainer.progress.history else "no evaluation yet"
            self._say(f"going on after {trainer.progress.examples:,} {self._unit}, {best}")
        self._display = Display(self._unit, quiet=self._quiet)
        self._before = trainer.progress.examples
        self._wanted = self._config.max_epochs * trainer.task.examples
        self._share_before = self._share(trainer.progress)

    def _network(self, trainer: Trainer) -> str:
        raise NotImplementedError

    def stepped(self, progress: Progress, loss: float) -> None:
        """Move the bar."""
        self._loss += 0.02 * (loss - self._loss) if self._loss else loss
        note = f"epoch {progress.epoch + 1}, {self._loss:.3f} nats/token"
        share = (self._share(progress) - self._share_before) / (1 - self._share_before or 1)  # of what was left
        if self._before:
            note = f"{progress.examples:,} in all, {note}"
        self._display.show(progress.examples - self._before, share or None, note)

    def _share(self, progress: Progress) -> float:
        """How much of the run is over at least, by its budgets of time and of epochs; 0 without any."""
        seconds = 60 * self._config.max_minutes
        by_time = progress.seconds / seconds if seconds else 0.0
        by_examples = progress.examples / self._wanted if self._wanted else 0.0
        return max(by_time, by_examples)

    def evaluated(self, progress: Progress, is_best: bool) -> None:
        """Print the held-out figures."""
        figures = progress.history[-1]
        self._display.say(
            f"{figures[self._unit]:,} {self._unit} ({figures['epochs']:.2f} epochs, {duration(figures['seconds'])}): "
            f"held out {self._figures(figures)}, {figures['clipped_share']:.0%} of steps clipped, "
            f"{figures['tokens_per_second']:,.0f} target tokens/s"
            + (f", {progress.skipped_steps:,} skipped (gradient not finite)" if progress.skipped_steps else "")
            + (", best" if is_best else "")
        )

    def _figures(self, figures: Mapping[str, float]) -> str:
        raise NotImplementedError

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._display.close()


class PairsDisplay(TrainingDisplay):
    """Tells the news of an RNN Encoder-Decoder's training."""

    def __init__(self, request: TrainingRequest, *, advise_on: str | None = None, quiet: bool = False) -> None:
        super().__init__(request.training, "pairs", quiet=quiet)
        self._device = request.device
        self._advise_on = advise_on  # a preset of which the user should know how long it takes here
        self._variant = f"{request.network['variant']} variant, H {request.network['hidden_size']}"
        self.unigram_nats = 0.0

    def corpus_read(self, corpus: Corpus, unigram_nats: float) -> None:
        """Print what the table holds."""
        self.unigram_nats = unigram_nats
        n = corpus.statistics
        collapsed = n.collapsed_pairs / n.distinct_pairs
        for line in (
            f"table: {n.pairs:,} lines, {n.distinct_pairs:,} distinct pairs; {collapsed:.2%} equal another "
            "pair once rare words are <unk>, and are learned once",
            f"left out: {n.too_long:,} pairs longer than --max-length, {n.empty:,} with an empty side",
            f"source shortlist: {len(corpus.source_vocabulary) - 2:,} of {n.source_words:,} words, "
            f"{n.source_coverage:.2%} of running words",
            f"target shortlist: {len(corpus.target_vocabulary) - 2:,} of {n.target_words:,} words, "
            f"{n.target_coverage:.2%} of running words",
            f"training pairs: {n.training_pairs:,}; held out by source phrase: {n.held_out_pairs:,}",
            f"unigram baseline: {unigram_nats:.4f} held-out nats per target token",
        ):
            self._say(line)
        if self._advise_on and not self._quiet:
            self._advise(self._advise_on, corpus)

    def _advise(self, preset: str, corpus: Corpus) -> None:
        from moses_rnn.training.config import PRESETS
        from moses_rnn.training.estimate import estimate_preset

        expected = estimate_preset(PRESETS[preset], corpus, self._device, self._config.threads)
        self._say(
            f"no GPU: taking --preset small. --preset {preset} would learn about "
            f"{expected.pairs_per_second:,.0f} pairs/s here: {duration(expected.seconds_of_a_pass)} for each pass over "
            "this table, of which it needs several"
        )

    def _network(self, trainer: Trainer) -> str:
        return self._variant

    def _figures(self, figures: Mapping[str, float]) -> str:
        per_token = f"{figures['nats_per_token']:.4f} nats/token (unigram {self.unigram_nats:.4f})"
        return f"{per_token}, {figures['nats_per_pair']:.3f} nats/pair"


class NGramsDisplay(TrainingDisplay):
    """Tells the news of a CSLM's training."""

    def __init__(self, config: TrainingConfig, sizes: str, *, quiet: bool = False) -> None:
        super().__init__(config, "n-grams", quiet=quiet)
        self._sizes = sizes

    def text_read(self, statistics: TextStatistics, vocabulary: Vocabulary) -> None:
        """Print what the text holds."""
        n = statistics
        self._say(f"text: {n.lines:,} lines, {n.words:,} words, {n.distinct_words:,} distinct")
        self._say(f"shortlist: {len(vocabulary) - 2:,} words, {n.coverage:.2%} of running words")
        if n.held_out_lines:
            self._say(f"held out: {n.held_out_lines:,} lines")

    def _network(self, trainer: Trainer) -> str:
        return self._sizes

    def _figures(self, figures: Mapping[str, float]) -> str:
        per_token = f"{figures['nats_per_token']:.4f} nats/token, perplexity {math.exp(figures['nats_per_token']):.2f}"
        return f"{per_token}, mean |log Z| {figures['mean_abs_log_z']:.3f}"
