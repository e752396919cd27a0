"""The training loop: minibatches, gradient steps, held-out evaluation and resuming, for any task.

A run is a function of its task and its configuration: a killed run continues from the last saved state and ends with
the same weights as an uninterrupted run. Several processes may train together; all of them take the same steps, and the
first decides by its clock when time is up.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from moses_rnn.errors import MosesRnnError, number_of
from moses_rnn.training.corpus import Positions
from moses_rnn.training.descent import OPTIMISERS, Average, Gradients
from moses_rnn.training.model_folder import ModelFolder, Progress, RunState
from moses_rnn.training.ranks import ALONE, AllThreads, PeerFailed, Ranks, Threads
from moses_rnn.training.schedules import ENDS, SCHEDULES, Course, Evaluation
from moses_rnn.training.tasks import Task

HOPELESS = 10  # steps in a row without a finite gradient
LONGEST_WARM_UP = 0.25  # share of the budget
NO_GAIN = "evaluations brought no gain"


class Observer(Protocol):
    """Callbacks that follow a run of any network."""

    def reading(self, lines: int, share: float | None) -> None:
        """Called while the corpus is read: `lines` so far, and their `share`, 0 to 1, if known."""
        return

    def corpus_read(self, description: Sequence[str]) -> None:
        """Called once the corpus is read, with its description in lines for a log."""
        return

    def starting(self, trainer: Trainer) -> None:
        """Called before the first step."""
        return

    def stepped(self, trainer: Trainer, loss: float) -> None:
        """Called after each step; `loss` is in the task's unit, such as nats per token."""
        return

    def evaluated(self, trainer: Trainer, is_best: bool) -> None:
        """Called after each evaluation, which adds its figures to ``trainer.progress.history``.

        `is_best`: whether these are the best weights so far.
        """
        return


class Nobody(Observer):
    """An observer that does nothing."""


NOBODY = Nobody()


class Trainer:
    """Trains a task's network, which has initial weights and is on its device."""

    def __init__(self, task: Task, ranks: Ranks = ALONE) -> None:
        self.task = task
        self.model = task.model
        self.config = config = task.config
        self.ranks = ranks
        self.progress = Progress(learning_rate=config.learning_rate)
        self.resumed = False
        self._started = self._saved = time.monotonic()
        self._optimiser = OPTIMISERS[config.optimiser](self.model.parameters(), config)
        self._threads = Threads(config.threads)
        self._gradients = Gradients(task, self._threads, ranks)
        self._average = Average(self.model, config.averaging)

    def run(self, folder: ModelFolder, observer: Observer, should_stop: Callable[[], bool]) -> Progress:
        """Train, or continue the folder's run, until a limit is reached or `should_stop` is true; save either way."""
        progress = self.progress
        self.resumed = folder.restore(self._state())
        parts = {"threads": self.config.threads, "accumulate": self.config.accumulate}
        device = next(self.model.parameters()).device.type
        self.ranks.compare({**self._state().identity, **parts, "steps": progress.steps, "device": device})
        observer.starting(self)
        self._started = time.monotonic() - progress.seconds
        self._look_at_limits_again()
        if not self.resumed:
            self._save(folder)  # so that a checkpoint always has a state beside it
        elif progress.examples > progress.examples_at_evaluation and self._is_evaluation_due():
            self._evaluate(folder, observer)  # a limit was lowered, or another process died in the evaluation
        while not progress.finished:
            for batch in self.task.batches(progress.epoch, progress.batch):
                with self._saving_if_deserted(folder):
                    loss = self.learn(batch)
                observer.stepped(self, loss)
                with self._saving_if_deserted(folder):
                    if self._is_evaluation_due():
                        self._evaluate(folder, observer)
                    stopping = self.ranks.any(should_stop())
                if progress.finished or stopping:
                    self._save(folder)
                    return progress
                if time.monotonic() - self._saved > 60 * self.config.save_minutes:
                    self._save(folder)
            progress.epoch, progress.batch = progress.epoch + 1, 0
        return progress

    def _state(self) -> RunState:
        identity = {**self.task.identity, **self.config.course()}
        return RunState(identity, self.model, self._optimiser, self.progress, self._average.tensors)

    def _save(self, folder: ModelFolder) -> None:
        folder.save(self._state())
        self._saved = time.monotonic()

    @contextlib.contextmanager
    def _saving_if_deserted(self, folder: ModelFolder) -> Iterator[None]:
        """Save the state if another rank has failed; the current step or evaluation has changed nothing yet."""
        try:
            yield
        except PeerFailed:
            self._save(folder)
            raise

    def _look_at_limits_again(self) -> None:
        """Check the limits again: they may have been raised since the state was saved.

        A run that had used its budget restarts its patience: with a larger budget, the learning rate is high again, and
        the cost may be above its best for a while.
        """
        progress = self.progress
        used_its_budget = progress.finished and not progress.finished.endswith(NO_GAIN)
        if used_its_budget and not self._limit_reached():
            progress.without_gain = 0
        progress.finished = self._reason_to_finish()

    def learn(self, rows: Positions) -> float:
        """Take one gradient step; return the loss in the task's unit, such as nats per token."""
        progress, config = self.progress, self.config
        sums = self._gradients.compute(rows, progress.steps, lambda: time.monotonic() - self._started)
        of_pair = 1 / {"sum": 1, "pair-mean": len(rows), "token-mean": sums.tokens}[config.reduction]
        norm = of_pair * math.sqrt(sums.squares)
        if math.isfinite(norm):
            clipped = min((config.clip_norm or math.inf) / (norm + 1e-6), 1.0)
            rate, scale = self._learning_rate(), of_pair * clipped
            self._threads.each(lambda places: self._descend(places, rate, scale, len(rows)), self._gradients.places)
            progress.skipped_in_a_row = 0
        else:  # a step along NaN would lose the weights
            progress.skipped_steps += 1
            progress.skipped_in_a_row += 1
        progress.clipped_steps += bool(config.clip_norm) and norm > config.clip_norm
        progress.steps += 1
        progress.batch += 1
        progress.examples += len(rows)
        progress.tokens += sums.tokens
        progress.seconds = sums.seconds
        return sums.nats / sums.tokens

    def _descend(self, places: list[int], rate: float, scale: float, examples: int) -> None:
        self._optimiser.step_along(rate, scale, [self._gradients.weights[i] for i in places], examples)
        self._average.add(places, self.progress.steps)

    def _learning_rate(self) -> float:
        """Return the learning rate of this step: rising at the beginning, falling at the end."""
        config, progress = self.config, self.progress
        warm = (progress.steps + 1) / config.warm_up if config.warm_up else 1.0
        risen = min(max(warm, self.share_over() / LONGEST_WARM_UP), 1.0)
        left = min((1 - self.share_over()) / config.cool_down, 1.0) if config.cool_down else 1.0
        return self._scheduled_rate() * risen * max(left, 0.0)

    def _scheduled_rate(self) -> float:
        return self.config.learning_rate * SCHEDULES[self.config.schedule](self._course())

    def _course(self) -> Course:
        progress, of_epoch = self.progress, self.task.examples
        judged = [
            Evaluation(figures[self.task.unit] / of_epoch, figures[self.task.measure.key])
            for figures in progress.history
        ]
        warm_ups = (progress.steps + 1) / max(self.config.warm_up, 1)
        return Course(progress.examples, progress.examples / of_epoch, judged, self.config.decay_on_plateau, warm_ups)

    def share_over(self) -> float:
        """Return the used share of the time or epoch budget, whichever is larger, 0 to 1; 0 without either."""
        config, progress = self.config, self.progress
        by_time = progress.seconds / (60 * config.max_minutes) if config.max_minutes else 0.0
        by_epochs = progress.examples / (config.max_epochs * self.task.examples) if config.max_epochs else 0.0
        return max(by_time, by_epochs)

    def _is_evaluation_due(self) -> bool:
        due = min(self.config.evaluate_every, self.task.examples)
        return self.progress.examples - self.progress.examples_at_evaluation >= due or self._limit_reached() != ""

    def _limit_reached(self) -> str:
        config, progress = self.config, self.progress
        if config.max_minutes and progress.seconds >= 60 * config.max_minutes:
            return f"the time budget of {number_of(config.max_minutes, 'minute')} is used up"
        if config.max_epochs and progress.examples >= config.max_epochs * self.task.examples:
            return "1 epoch is done" if config.max_epochs == 1 else f"{config.max_epochs:g} epochs are done"
        return ""

    def _reason_to_finish(self) -> str:
        if limit := self._limit_reached():
            return limit
        if self.progress.without_gain >= self.config.patience:
            return f"{self.config.patience} {NO_GAIN}"
        end = ENDS.get(self.config.schedule)
        return end(self._course()) if end else ""

    def _evaluate(self, folder: ModelFolder, observer: Observer) -> None:
        with self._average.in_place():
            is_best = self._judge()
            folder.record(self.progress, is_best=is_best)
            observer.evaluated(self, is_best)
        self._save(folder)

    def _judge(self) -> bool:
        """Evaluate the held-out examples; return whether these are the best weights so far."""
        progress = self.progress
        figures = self.task.held_out(AllThreads(self._threads, self.ranks))
        cost = figures[self.task.measure.key]
        self._refuse_divergence(cost)
        progress.examples_at_evaluation = progress.examples
        progress.history.append(self._with_course(figures))
        progress.learning_rate = self._scheduled_rate()
        is_best = cost < progress.best
        if is_best:
            progress.best, progress.without_gain = cost, 0
        else:
            progress.without_gain += 1
        progress.finished = self._reason_to_finish()
        return is_best

    def _refuse_divergence(self, held_out: float) -> None:
        progress = self.progress
        lost = progress.skipped_in_a_row  # an average may still be finite when the weights are not
        if math.isfinite(held_out) and lost < HOPELESS:
            return
        what = (
            f"no gradient of the last {number_of(lost, 'minibatch', 'minibatches')} is finite"
            if lost
            else f"the held-out cost is {held_out}"
        )
        raise MosesRnnError(
            f"training diverged: after {progress.examples:,} {self.task.unit}, {what}\n"
            "  Start over with --force and a lower --learning-rate, or clip_norm in --config."
        )

    def _with_course(self, figures: Mapping[str, float]) -> dict[str, float]:
        progress = self.progress
        return {
            self.task.unit: progress.examples,
            "epochs": progress.examples / self.task.examples,
            "seconds": round(progress.seconds, 1),
            **figures,
            "clipped_share": progress.clipped_steps / progress.steps,
            "learning_rate": self._learning_rate(),
            "tokens_per_second": progress.tokens / progress.seconds,
        }
