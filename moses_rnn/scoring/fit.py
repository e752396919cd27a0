"""Whether model and table fit each other: what the model has learned, and how much of the table it knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moses_rnn.errors import CheckpointError, MisfitError
from moses_rnn.formats.signatures import FLOORED_REFUSAL, UNKNOWN_REFUSAL, UNKNOWN_WARNING
from moses_rnn.producers.open import Model
from moses_rnn.scoring.phrase_tables import ScoringReport

FIRST_LOOK = 100_000  # lines, after which and after each doubling a table is judged before its end


def check_learned(model: Model) -> None:
    """Refuse a network that predicts held-out targets no better than word frequencies do, or ranks by chance.

    Raises:
        CheckpointError: it does not, by what its training recorded.
    """
    learned, rival, measure = model.held_out_cost, model.baseline_cost, model.architecture.measure
    if learned is None or rival is None or learned < rival:
        return
    command = "moses-rnn nmt train" if model.learned_sentences else "moses-rnn-train"
    raise CheckpointError(
        f"{model.folder}: expected a model that costs less than {measure.rival}'s {rival:.2f} {measure.unit}, "
        f"found {learned:.2f}",
        advice=(
            f"It has learned nothing that helps. Train longer (the same {command} with a larger "
            "--max-minutes or --max-epochs goes on), or\ntrain again with another --learning-rate; "
            "--allow-misfit scores with it all the same."
        ),
    )


def unit_warnings(model: Model, *, on_sentences: bool) -> Iterator[str]:
    """That a network scores something else than it learned from.

    Args:
        model: of pairs.
        on_sentences: whether it scores sentences, not phrases.
    """
    units = "phrases", "sentences"
    if model.learned_sentences != on_sentences:
        learned = units[model.learned_sentences]
        yield f"{model.folder} learned from {learned} (its unit), and is to score {units[on_sentences]}"


class FitWatch:
    """Looks at a report from time to time while a table is scored.

    Args:
        table: its name.
        report: of the run.
        names: of the added columns.
        allow_misfit: whether nothing is judged after all.
    """

    def __init__(self, table: str, report: ScoringReport, names: Sequence[str], *, allow_misfit: bool = False) -> None:
        self._table, self._report, self._names = table, report, names
        self._allow_misfit = allow_misfit
        self._next = FIRST_LOOK

    def look(self) -> None:
        """Judge the lines so far, if there are enough of them.

        Raises:
            MisfitError: a column's model does not know the table's words, or finds its pairs impossible.
        """
        if self._report.lines >= self._next:
            self.judge()
            while self._report.lines >= self._next:
                self._next *= 2

    def judge(self) -> None:
        """Judge the lines so far; raises as `look`."""
        if self._allow_misfit:
            return
        for name, unknown, floored in shares(self._report, self._names):
            misfits = []
            if unknown > UNKNOWN_REFUSAL:
                misfits.append(f"{unknown:.1%} of the pairs with a word outside its shortlists")
            if floored >= FLOORED_REFUSAL:
                misfits.append(f"{floored:.1%} of the scores at the floor")
            if misfits:
                raise self._misfit(name, " and ".join(misfits))

    def _misfit(self, name: str, misfits: str) -> MisfitError:
        table = self._table
        return MisfitError(
            f"{table}: expected a table that {name}'s model knows, found {misfits} in {self._report.lines:,} lines",
            advice=(
                "Was the model trained on another table, language or tokenisation? Make one with: "
                f"moses-rnn-train {table}\n--allow-misfit scores with it all the same."
            ),
        )


def shares(report: ScoringReport, names: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Of each added column: its name, the share of pairs with ``<unk>``, the share of scores at the floor."""
    lines = max(report.lines, 1)
    for name, unknown, floored in zip(names, report.unknown, report.floored, strict=False):
        yield name, unknown / lines, floored / lines


def fit_warnings(report: ScoringReport, names: Sequence[str]) -> Iterator[str]:
    """What the user should know of columns whose model knows too few of the table's words."""
    for name, unknown, _ in shares(report, names):
        if unknown > UNKNOWN_WARNING:
            yield (
                f"{name}: {unknown:.1%} of the pairs have a word outside the model's shortlists, which is read as "
                "<unk>: a model with larger shortlists would tell such words apart"
            )
