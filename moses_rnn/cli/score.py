"""moses-rnn-score: a phrase table in, the same table with the network's score out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from moses_rnn.api.pairs import BytesPair
from moses_rnn.cli.command import (
    STOPPED,
    StopRequest,
    check_inputs,
    choose_device,
    command,
    given_options,
    inputs_of,
    print_err,
    print_json,
    print_out,
    shows_version,
    warn,
)
from moses_rnn.cli.inputs import model_beside
from moses_rnn.errors import AlreadyComplete, number_of
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.options import FIRST_SECTION, Argument, Json, Option, PretrainedOptions, Quiet, Section, is_pretrained
from moses_rnn.score.scoring_options import ScoringOptions
from moses_rnn.table.phrases import words
from moses_rnn.table.tab_separated import TAB, split_pair

if TYPE_CHECKING:
    from moses_rnn.files.streams import Advanced
    from moses_rnn.models.model import Model
    from moses_rnn.score.score import ScoringResult


ENOUGH_WORDS = 100  # of a side of pairs, to judge whether a model fits
EPILOG = f"""\b
Example: score a table with the model beside it, and write the ini that mert-moses.pl tunes:
  moses-rnn-score phrase-table.gz --moses-ini moses.ini
  $MOSES_ROOT/scripts/training/mert-moses.pl $PWD/dev.src $PWD/dev.ref $MOSES_ROOT/bin/moses $PWD/moses.rnn.ini \\
      --mertdir $MOSES_ROOT/bin --rootdir $MOSES_ROOT/scripts --working-dir $PWD/mert-rnn
Three networks that differ in their --seed, as one column:
  moses-rnn-score phrase-table.gz --model seed-1 --model seed-2 --model seed-3

The column holds the network's p(target | source), because Moses takes the logarithm itself: inside the decoder, the
feature's value is the natural log p, including the end symbols of both sides. Everything else in the table stays byte
for byte as it was. After any interruption, even kill -9, --resume continues. Exit codes: 0 done, 1 failure, 2 usage
error, 3 table, model or ini refused, {STOPPED} stopped and resumable.
"""
# Options that apply to pairs of plain lines; the others are for phrase tables
OF_PAIRS = {
    *("phrase_table", "place", "new_table", "models", "layout", "device", "precision", "threads"),
    *("allow_misfit", "force", "as_json", "quiet"),
    *(field.name for field in fields(PretrainedOptions)),
}


@dataclass(frozen=True, kw_only=True)
class Scoring(ScoringOptions):
    """Further options of the command."""

    place: Annotated[str | None, Argument("[NEW_TABLE]")] = None
    as_json: Json = False
    estimate: Annotated[bool, Section(FIRST_SECTION), Option("Estimate how long scoring takes here; write nothing")] = (
        False
    )
    quiet: Quiet = False


@command(EPILOG)
@shows_version
def main(given: Scoring) -> None:
    """Add an RNN Encoder-Decoder's p(target | source) to a Moses PHRASE_TABLE (- is stdin).

    You may name both tables without .gz, as Moses's experiment.perl does.
    """
    if given.place and given.new_table:
        raise click.UsageError("NEW_TABLE and --output mean the same: give one")
    given = replace(given, new_table=given.place or given.new_table)
    if given.layout == "tsv":
        _refuse_options_of_tables()
    _check_options(given)
    given = replace(given, models=given.models or (model_beside(given.table),))
    check_inputs(given.table, *given.models, *given.inverse_models, given.moses_ini)
    if given.layout == "tsv":
        _score_pairs(given)
        return

    stop = None if given.estimate else StopRequest()  # before torch loads, which takes seconds
    given = replace(given, device=",".join(map(choose_device, given.devices)))
    from moses_rnn.cli.progress import progress

    if stop is None:
        from moses_rnn.score.estimate import estimate

        lines, rate, computed_by = estimate(given)
        took = timedelta(seconds=round(lines / rate))
        print_out(f"{rate:,.0f} lines/s here ({computed_by}): {took} for about {lines:,.0f} lines")
        return
    with progress("lines", quiet=given.quiet) as show:
        result = _score(given, show, stop)
    for line in () if given.quiet or given.as_json else _summary(given, result):
        print_err(line)
    warn(*result.warnings)
    if given.as_json:
        print_json(_record(given, result))
    elif not given.shard:
        ini_lines = "[feature]\n{}\n\n[weight]\n{}".format(*result.ini.lines)
        (print_out if given.signature else print_err)(ini_lines)


def _score(given: Scoring, show: Advanced, stop: StopRequest) -> ScoringResult:
    """Score the table; print the summary of a complete one as JSON if that is asked for."""
    from moses_rnn.score.score import score

    try:
        return score(given, show, stop)
    except AlreadyComplete as error:
        if given.as_json:
            print_json(_record(given, cast("ScoringResult", error.result)))
        raise


def _check_options(given: Scoring) -> None:
    to_stdout = given.output == STANDARD_STREAM
    if given.as_json and (to_stdout or given.estimate):
        raise click.UsageError(
            "--json prints a summary on stdout: it cannot be combined with a table on stdout or with --estimate"
        )
    if to_stdout and (given.shard or given.on_bad_line == "skip"):
        what, beside = ("--shard", "its signature goes") if given.shard else ("--on-bad-line skip", "the bad lines go")
        raise click.UsageError(f"{what} needs a file as --output: {beside} beside it")
    if given.combine and max(len(given.models), len(given.inverse_models)) < 2:
        raise click.UsageError("--combine needs several models: repeat --model or --inverse-model")
    if given.word_penalty and any(map(is_pretrained, given.models[:1])):
        raise click.UsageError("--word-penalty counts words outside a shortlist, which a pretrained model lacks")
    _check_devices(given.device, given.devices)
    _check_ini(given)


def _check_devices(device: str, names: Sequence[str]) -> None:
    kinds = sorted({name.partition(":")[0] for name in names})
    if len(kinds) > 1:
        raise click.UsageError(
            f"--device {device}: expected devices of one kind, which compute alike, found {' and '.join(kinds)}"
        )


def _check_ini(given: Scoring) -> None:
    if given.shard and given.moses_ini:
        raise click.UsageError("--moses-ini needs the whole table: merge the shards, then run moses-rnn ini")
    if given.output_ini and not given.moses_ini:
        raise click.UsageError("--output-ini needs --moses-ini, the ini to extend")
    if given.moses_ini and given.output == STANDARD_STREAM:
        raise click.UsageError("--moses-ini cannot be combined with a table on stdout: Moses would not load it")
    if STANDARD_STREAM in (given.moses_ini, given.output_ini):
        raise click.UsageError("--moses-ini and --output-ini take files, not standard streams")


def _summary(given: Scoring, result: ScoringResult) -> Iterator[str]:
    from moses_rnn.score.checks import shares

    counts = result.counts
    left_out = f", {counts.rejected:,} left out" if counts.rejected else ""
    yield f"{number_of(counts.lines, 'line')} scored{left_out}: {given.output}"
    if given.signature:
        yield f"signature: {given.signature}"
    if given.new_ini:
        yield f"ini: {given.new_ini}"
    yield f"computed by: {result.computed_by}"
    for name, low, high in zip(result.column_names, counts.lowest, counts.highest, strict=False):
        yield f"{name}: log values from {low:.4g} to {high:.4g}"
    for name, unknown, floored in shares(counts, result.column_names):
        yield f"{name}: {unknown:.1%} of the pairs contain <unk>, {floored:.1%} of the scores were raised to the floor"


def _record(given: Scoring, result: ScoringResult) -> Mapping[str, Any]:
    """Return the same as JSON; see docs/scoring.md."""
    from moses_rnn.score.checks import shares

    counts = result.counts
    columns = [
        {"name": name, "lowest": low, "highest": high, "unknown_share": unknown, "floored_share": floored}
        for (name, unknown, floored), low, high in zip(
            shares(counts, result.column_names), counts.lowest, counts.highest, strict=False
        )
    ]
    return {
        "table": given.table,
        "output": given.output,
        "signature": given.signature,
        "ini": given.new_ini,
        "lines": counts.lines,
        "rejected": counts.rejected,
        "computed_by": result.computed_by,
        "columns": columns,
        "feature": result.ini.lines[0],
        "weight": result.ini.lines[1],
        "warnings": list(result.warnings),
    }


def _refuse_options_of_tables() -> None:
    for name, option in given_options().items():
        if name not in OF_PAIRS:
            raise click.UsageError(f"{option} applies to phrase tables, not to --format tsv")


def _score_pairs(given: Scoring) -> None:
    """Write every line of a table of pairs with the natural log p of its target as a further column."""
    from moses_rnn.api import models as api
    from moses_rnn.cli.inputs import output_to
    from moses_rnn.cli.progress import progress
    from moses_rnn.files.streams import Meter, read_lines
    from moses_rnn.models.ensembles import MEAN_LOG, open_models
    from moses_rnn.models.open import check_learned

    table, device = given.table, choose_device(given.device, given.threads)
    opened = open_models(given.models, MEAN_LOG, given)
    judged = () if given.allow_misfit else opened.models
    for one in judged:
        check_learned(one)
    counted = _PairWords(table, judged)
    model = api.Model(opened, device, given.precision or "fp32", given.threads)
    lowest, highest, done, meter = math.inf, -math.inf, 0, Meter()
    lines, copies = itertools.tee(read_lines(table, meter=meter))
    aligned = opened.rare is not None and opened.rare.needs_links
    pairs = counted.passing(_pairs(lines, table, aligned=aligned))
    inputs = inputs_of(table, *given.models)
    with output_to(given.output, given.force, inputs) as output, progress("pairs", quiet=given.quiet) as advanced:
        for scores in api.score_pairs(model, pairs):
            scored = zip(scores.tolist(), copies, strict=False)
            output.append(b"".join(b"%b\t%.9g\n" % (line.removesuffix(b"\n"), score) for score, line in scored))
            lowest, highest, done = min(lowest, scores.min()), max(highest, scores.max()), done + len(scores)
            if done == len(scores):  # the first ones
                counted.check()
            advanced(done, meter.share)
        counted.check()
        output.commit()
    if given.as_json:
        record = {"table": table, "output": given.output, "lines": done, "name": model.name, "meaning": model.meaning}
        print_json({**record, "lowest": float(lowest), "highest": float(highest)})
    elif not given.quiet:
        print_err(f"{number_of(done, 'pair')} scored: {given.output}")
        if model.inverse:
            print_err(f"score: {model.meaning}")


class _PairWords:
    """Counts the words of both sides of pairs, to refuse models of plain words that know too few of them."""

    def __init__(self, table: str, models: Sequence[Model]) -> None:
        self._table = table
        self._models = [model for model in models if model.form.is_plain and not is_pretrained(model.folder)]
        self._counts: tuple[Counter[bytes], Counter[bytes]] = Counter(), Counter()

    def passing(self, pairs: Iterable[BytesPair]) -> Iterator[BytesPair]:
        """Yield the pairs after counting the words of each."""
        for pair in pairs:
            for counts, text in zip(self._counts, (pair.source, pair.target), strict=True):
                counts.update(words(text))
            yield pair

    def check(self) -> None:
        """Raise MisfitError if a model does not know most words of a side."""
        from moses_rnn.nbest.adding import check_known

        for model in self._models:
            sides = model.source_vocabulary, model.target_vocabulary
            known = sides[::-1] if model.inverse else sides
            for side, counts, vocabulary in zip(("source", "target"), self._counts, known, strict=True):
                if counts.total() >= ENOUGH_WORDS:
                    expected = f"{self._table}: expected pairs"
                    check_known(expected, str(model.folder), side, counts, vocabulary.__contains__, allowed=False)


def _pairs(lines: Iterable[bytes], table: str, *, aligned: bool) -> Iterator[BytesPair]:
    """Yield a pair for each line; if `aligned`, the third column holds word alignments, which the model needs."""
    for number, line in enumerate(lines, start=1):
        pair = BytesPair(f"{table}:{number}", *split_pair(line, table, number))
        further = line.removesuffix(b"\n").split(TAB)[2:]
        yield pair._replace(alignment=further[0]) if aligned and further else pair
