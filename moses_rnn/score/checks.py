"""Check that models fit a table, before, during and after scoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moses_rnn.errors import CheckpointError, FormatError, InputError, MisfitError, number_of
from moses_rnn.models.model import Model
from moses_rnn.models.phrases import WordPenaltyScorer
from moses_rnn.score.input_table import InputTable
from moses_rnn.score.scoring_options import ScoringOptions, training_command
from moses_rnn.table.signatures import (
    FLOORED_REFUSAL,
    UNKNOWN_REFUSAL,
    UNKNOWN_WARNING,
    TableCounts,
    without_number,
)


def check_table(options: ScoringOptions, table: InputTable, models: Sequence[Model], names: Sequence[str]) -> None:
    """Raise InputError if the table has one of the columns already, or does not suit a model.

    Phrases must have the form that the model learned from (a plain model may read a factor), and alignments if the
    model needs them.
    """
    there = [] if options.again else sorted({*names} & {*table.signature.names.values()})
    if there:
        raise InputError(
            f"{options.table}: expected a table without {' and '.join(there)}, found "
            f"{'them' if there[1:] else 'it'} added already, according to the signature beside it",
            advice=(
                "Score the original table. To add another such column, for example from a second model, give --again."
            ),
        )
    form = table.form
    for model in models:
        if model.rare is not None and not form.is_plain:
            raise CheckpointError(
                f"{model.folder}: expected a table of plain words, in which to annotate rare words, found one of {form}"
            )
        learned = model.form
        fits = learned.hierarchical == form.hierarchical
        fits &= learned.source_factor in (None, form.source_factor)
        fits &= learned.target_factor in (None, form.target_factor)
        if not fits:
            factors = ("--source-factor", form.source_factor), ("--target-factor", form.target_factor)
            of_factors = [text for option, factor in factors if factor is not None for text in (option, str(factor))]
            command = training_command(table.path, *["--inverse"] * model.inverse, *of_factors)
            raise CheckpointError(
                f"{model.folder}: expected a model trained on phrases like those of {table.path} ({form}), found one "
                f"for {learned}",
                advice=f"Train one with: {command}",
            )
        if model.rare is not None and model.rare.needs_links and not table.first.alignment:
            raise FormatError(
                table.path,
                table.first.number,
                f"a word alignment in field 4, which {model.folder} needs to annotate rare words",
                "none",
                "train-model.perl writes it, unless you give --no-word-alignment.",
            )


def check_rejected(table: str, counts: TableCounts, examples: Sequence[str] = (), *, allowed: bool = False) -> None:
    """Unless `allowed`, raise FormatError if most lines are bad: all are after a damaged first line."""
    if counts.rejected > counts.lines and not allowed:
        example = f", for example {examples[0]}" if examples else ""
        raise FormatError(
            table,
            None,
            "more good lines than bad ones",
            f"{counts.lines:,} good and {counts.rejected:,} bad{example}",
            "Is the first line damaged? It decides how many scores and factors the others must have.",
        )


def check_fit(table: str, counts: TableCounts, names: Sequence[str], *, allowed: bool) -> None:
    """Unless `allowed`, raise MisfitError if a model knows too few of the table's words or floors too many scores."""
    for name, unknown, floored in () if allowed else shares(counts, names):
        misfits = []
        if unknown > UNKNOWN_REFUSAL:
            misfits.append(f"{unknown:.1%} of the pairs with a word outside its shortlists")
        if floored >= FLOORED_REFUSAL:
            misfits.append(f"{floored:.1%} of the scores at the floor")
        if misfits:
            raise MisfitError(
                f"{table}: expected a table that {name}'s model knows, found {' and '.join(misfits)} in "
                f"{number_of(counts.lines, 'line')}",
                advice=(
                    "Was the model trained on another table, language or tokenisation? Make one with: "
                    f"{training_command(table, *['--inverse'] * ('Inverse' in name))}\n--allow-misfit uses it anyway."
                ),
            )


def shares(counts: TableCounts, names: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Yield each added column's name, its share of pairs with ``<unk>`` and its share of scores at the floor."""
    lines = max(counts.lines, 1)
    for name, unknown, floored in zip(names, counts.unknown, counts.floored, strict=False):
        yield name, unknown / lines, floored / lines


def unit_warnings(models: Sequence[Model], *, on_sentences: bool) -> Iterator[str]:
    """Warn of networks that score sentences but learned from phrases, or the other way round."""
    units = "phrases", "sentences"
    for model in models:
        if model.learned_sentences != on_sentences:
            learned = units[model.learned_sentences]
            yield f"{model.folder}: learned from {learned}, but scores {units[on_sentences]} here"


def fit_warnings(counts: TableCounts, names: Sequence[str]) -> Iterator[str]:
    """Warn about columns with too many unknown words, and about constant columns, which MERT cannot use."""
    for name, unknown, _ in shares(counts, names):
        if unknown > UNKNOWN_WARNING and without_number(name) != WordPenaltyScorer.name:
            yield (
                f"{name}: {unknown:.1%} of the pairs have a word outside the model's shortlists, which is read as "
                "<unk>: a model with larger shortlists could tell such words apart"
            )
    for name, low, high in zip(names, counts.lowest, counts.highest, strict=False):
        if low == high:
            yield (
                f"{name} is the same on every line: MERT cannot find a weight for it (leave the column out, or exclude "
                "it from tuning with tuneable-components=)"
            )
