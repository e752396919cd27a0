"""moses-rnn analyse: what a scored table says, and what came of it."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.analysis.grids import LAYOUTS, PICTURES, as_csv, as_text
from moses_rnn.cli.analyse_map import MAX_SENTENCES, map_, neighbours
from moses_rnn.cli.analyse_options import (
    SORTED,
    ColumnOption,
    Layout,
    kind_of,
    named_files,
    open_phrase_network,
    optional_output,
    progress,
)
from moses_rnn.cli.command import CONTEXT, ProgramGroup, check_inputs, command, inputs_of, print_err, print_out, warn
from moses_rnn.cli.inputs import choose_model, parallel_texts, sound_signature, text_of
from moses_rnn.errors import CheckpointError, InputError, number_of, shown_value
from moses_rnn.options import Argument, Force, ModelBeside, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.explain import TableWeights
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.analysis.targets import Samples, SourceGroup
    from moses_rnn.files.streams import Advanced

TARGETS_EPILOG = f"""\b
Examples: frequent and rare long sources; shorter ones too, as CSV; a given source; the paper's Tables 2 and 3:
  moses-rnn analyse targets phrase-table.rnn.gz
  moses-rnn analyse targets phrase-table.rnn.gz --min-words 3 --format csv
  moses-rnn analyse targets phrase-table.rnn.gz --source "the old man" --top 5
  moses-rnn analyse targets phrase-table.rnn.gz --count 5 --model phrase-table.rnn-model --format markdown

Whether a rare source is chosen depends only on its words, so other tables of the same text give the same ones. Among
equally good targets, the table's first one comes first. {SORTED}
"""


@command(TARGETS_EPILOG)
def targets(  # noqa: PLR0913, one for each option
    phrase_table: str,
    *,
    sources: Annotated[
        tuple[str, ...],
        Option("Source phrase, as in the table; repeat it for several [default: long ones are chosen]", "--source"),
    ] = (),
    count: Annotated[int, Option("Number of frequent and of rare sources", min=1)] = 3,
    min_words: Annotated[int, Option("Minimum words per source", min=1)] = 4,
    top: Annotated[int, Option("Targets per source", min=1)] = 3,
    model: Annotated[Path | None, Option("Also show the best of 50 samples of this network", metavar="FOLDER")] = None,
    column: ColumnOption = None,
    layout: Layout = "text",
) -> None:
    """Show the best targets of source phrases. Rank them by p(target|source) and by the RNN (the paper's Table 2)."""
    check_inputs(phrase_table, model)
    from moses_rnn.analysis import targets as analysis
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.table.phrases import words

    table = ScoredTable.open(phrase_table, column)
    with progress() as advanced:
        pairs = table.pairs(advanced)
    if sources:
        found = analysis.find_sources(table, pairs, [os.fsencode(source) for source in sources])
        if not found:
            expected = f"source phrases {', '.join(map(repr, sources))}"
            raise InputError(f"{table.path}: expected {expected}, found none")
        names = [words(one.source) for one in found]
        for source in sources:
            if words(os.fsencode(source)) not in names:
                warn(f"{table.path}: has no source phrase {source!r}")
        groups = [analysis.SourceGroup("", found)]
    else:
        groups = analysis.long_sources(table, pairs, count, min_words=min_words, min_targets=top)
        if not any(group.sources for group in groups):
            expected = f"source phrases of at least {number_of(min_words, 'word')} and {number_of(top, 'target')}"
            raise InputError(f"{table.path}: expected {expected}, found none")
    samples = _samples(model, table, groups) if model else {}
    if layout == "text":
        print_out(analysis.as_text(groups, table.column, top, samples))
    else:
        print_out(LAYOUTS[layout](analysis.as_grid(groups, table.column, top, samples)))


def _samples(folder: Path, table: ScoredTable, groups: list[SourceGroup]) -> Samples:
    """Let a network write targets of the sources (the paper's Table 3)."""
    from moses_rnn.api.models import DRAWING, make_proposer
    from moses_rnn.models.open import open_model
    from moses_rnn.networks.compute import Compute
    from moses_rnn.networks.config import SOURCE_TO_TARGET
    from moses_rnn.translation.proposals import Converter
    from moses_rnn.translation.search import SamplingConfig

    model, compute = open_model(folder, direction=SOURCE_TO_TARGET), Compute(precision=DRAWING)
    reading = Converter(model)
    reading.check_form(table.path, table.form)
    read = {one.source: reading.pair(one.lines[0])[0] for group in groups for one in group.sources}
    propose = make_proposer(model, SamplingConfig(), model.make_scorer(compute), compute.device)
    written = ([one.target for one in proposals.best] for proposals in propose([*read.values()]))
    return dict(zip(read, written, strict=True))


SUMMARY_EPILOG = f"""\b
Example: also show how far the table and the RNN agree over all pairs, as a figure and in numbers:
  moses-rnn analyse summary phrase-table.rnn.gz -o scatter.svg

Logarithms are natural. Pairs whose RNN score is at the floor, and those with a score of 0, are counted but left out of
the figure's correlations. The summary checks the paper's observations: does the RNN prefer shorter targets, and does it
follow counts? {SORTED}
"""


@command(SUMMARY_EPILOG)
def summary(
    phrase_table: str,
    *,
    outputs: Annotated[
        tuple[str, ...],
        Option(
            "Draw Figure 3 as .svg or .png (needs matplotlib), or write all pairs in cells as .csv; repeat it for both",
            "-o --output",
        ),
    ] = (),
    column: ColumnOption = None,
    layout: Layout = "text",
    force: Force = False,
) -> None:
    """Summarise what the table and the RNN prefer. Show lengths, agreement, correlation with counts (Figure 3)."""
    check_inputs(phrase_table)
    from moses_rnn.analysis import agreement
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.files.outputs import output_files

    kinds = [kind_of(output, (*PICTURES, "csv"), "a .csv does not need it") for output in outputs]
    table, show = ScoredTable.open(phrase_table, column), LAYOUTS[layout]
    with output_files(outputs, force=force, inputs=(table.path,)) as files:
        with progress() as advanced:
            pairs = table.pairs(advanced)
        figures = agreement.summarise(pairs)
        if outputs:
            scatter = agreement.compute_scatter(pairs, floor=table.signature.floor(table.column))
        for file, kind in zip(files, kinds, strict=True):
            if kind == "csv":
                file.append(f"{as_csv(agreement.histogram_grid(scatter))}\n".encode())
            else:
                from moses_rnn.analysis.plots import pairs_figure, picture

                file.append(picture(pairs_figure, scatter, kind=kind))
    print_out(show(agreement.preferences_grid(figures)))
    if layout == "text":
        print_out("\n".join(agreement.notes(figures)))
    if outputs:
        print_out(("" if layout == "jsonl" else "\n") + show(agreement.groups_grid(scatter)))


PRUNE_EPILOG = f"""\b
Example: keep 70% of the table:
  moses-rnn analyse prune phrase-table.rnn.gz -o pruned.gz --keep 0.7 --keep-best-words 1

Then change path= in the tuned moses.ini; the weights stay. One threshold applies to the whole table. Kept lines do not
change. An evenly spread share of the pairs tied at the threshold stays. Most sources of a raw table have a single
target, and each source keeps its best one, even beyond --keep. To avoid this, --keep-best-words 1 protects only single
words, from which longer sources are built. --by direct uses p(target|source), which is 1 for most sources seen once;
--by both uses the mean of the two rank quantiles. {SORTED}
"""


@command(PRUNE_EPILOG)
def prune(
    phrase_table: str,
    *,
    output: Annotated[str, Option("The smaller table; gzip if its name ends in .gz", "-o --output")],
    keep: Annotated[float, Option("Share of lines to keep", min=0, max=1, min_open=True)],
    by: Annotated[Literal["rnn", "direct", "both"], Option()] = "rnn",
    keep_best_words: Annotated[
        int | None,
        Option("Keep the best target of each source of at most this many words; 0: of none [default: of all]", min=0),
    ] = None,
    column: ColumnOption = None,
    force: Force = False,
) -> None:
    """Write a table without the least likely pairs. The RNN, p(target|source) or both together judge them."""
    from moses_rnn.analysis.pruning import as_grid, prune_table, warnings
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.files.outputs import output_files
    from moses_rnn.table.signatures import Signature

    table = ScoredTable.open(phrase_table, column, by_table=by != "rnn")
    try:
        signature = sound_signature(table.path)
    except InputError as error:  # --column says what the signature does not
        warn(f"{error}\n  Its signature is not copied.")
        signature = Signature()
    inputs = table.path, f"{table.path}.json"
    protected = math.inf if keep_best_words is None else keep_best_words
    with output_files([output, f"{output}.json"], force=force, inputs=inputs) as (kept, beside):
        with progress() as advanced:
            pruned = prune_table(table, kept.append, keep=keep, by=by, keep_best=protected, advanced=advanced)
        files = {"input": Path(table.path).name, "output": Path(output).name, "file": kept.digest()}
        how = {
            "by": by,
            "column": table.column,
            "keep": keep,
            "keep_best": keep_best_words != 0,
            "keep_best_words": keep_best_words or None,
            "lines_before": pruned.lines[0],
        }
        shape = {"lines": pruned.lines[1], "columns": table.scores}
        beside.append(signature.changed({**files, **shape}, "pruned", how).as_file())
    warn(*warnings(pruned))
    print_out(as_text(as_grid(pruned, f"{table.path}, pruned by {by}")))


EXPLAIN_EPILOG = """\b
Example:
  moses-rnn analyse explain phrase-table.rnn.gz "far from the ||| loin de la" --moses-ini tuned/moses.ini

The pair need not be in the table. Log-probabilities are natural and include the end symbols of both sides.
"""


@command(EXPLAIN_EPILOG)
def explain(
    phrase_table: str,
    pair: str,
    *,
    model: ModelBeside = None,
    moses_ini: Annotated[
        str | None, Option("Ini with tuned weights: also rank by the weighted sum of the table's scores")
    ] = None,
    output: Annotated[str | None, Option("Write the explanation as JSON", "-o --output")] = None,
    force: Force = False,
) -> None:
    """Explain the score of a phrase pair.

    This prints what a network, PHRASE_TABLE and the weights of a moses.ini say about PAIR. PAIR is "source ||| target"
    in the table's words, or a whole line of the table.
    """
    folder = choose_model(model, phrase_table)
    check_inputs(folder, phrase_table, moses_ini)
    from moses_rnn.analysis.explain import as_json, explain_in_table, parse_pair
    from moses_rnn.files.streams import find_input

    inputs = *inputs_of(phrase_table, moses_ini, folder), f"{find_input(phrase_table)}.json"
    with optional_output(output, *inputs, force=force) as file:
        network = open_phrase_network(folder)
        given = parse_pair(os.fsencode(pair), network.form)
        weights = _weights(moses_ini, phrase_table) if moses_ini else None
        with progress() as advanced:
            found = explain_in_table(network, network.make_scorer(), given, phrase_table, weights, advanced)
        if file:
            file.commit(as_json(found).encode())
    print_out(str(found))


def _weights(moses_ini: str, table: str) -> TableWeights:
    """Return the weights and the table limit that an ini has for a table."""
    from moses_rnn.analysis.explain import TABLE_LIMIT, TableWeights
    from moses_rnn.files.streams import reading
    from moses_rnn.moses.ini import MosesIni

    with reading(moses_ini):
        ini = MosesIni(Path(moses_ini).read_bytes(), moses_ini)
    feature = ini.choose(table=table)
    limit, expected = ini.table_limit(feature), len(ini.weights(feature))
    weights = ini.all_weights()[feature.name]  # [weight-overwrite] wins
    if len(weights) != expected or not all(map(math.isfinite, weights)):
        raise ini.error(None, f"{expected} finite weights of {feature.name} in [weight-overwrite]", f"{weights}")
    return TableWeights(weights, moses_ini, TABLE_LIMIT if limit is None else limit)


LENGTHS_EPILOG = """\b
Example: two systems and their curves, also on sentences in which a network knows every word:
  moses-rnn analyse lengths test.en test.fr search.out moses.out --model search -o lengths.svg
On sentences of common and of rare words:
  moses-rnn analyse lengths test.en test.fr search.out moses.out --by-rarity train.en

The texts are tokenised and parallel, line by line. BLEU is sacreBLEU's, without tokenisation. As in Moses,
words end at blanks and tabs only, so sacreBLEU itself gives another number if words contain other white space, such as
U+00A0. "No UNK" marks the sentences whose source and reference have no word that is unknown to the model. The rarity of
a sentence is the mean rank of its words, where 1 is the commonest word; words that the text lacks come last. Exit
codes: 0 done, 1 failure, 2 usage error, 3 texts or model refused.
"""


@command(LENGTHS_EPILOG)
def lengths(  # noqa: PLR0913, one for each option
    source: str,
    reference: str,
    outputs: Annotated[tuple[str, ...], Argument("OUTPUT...")],
    *,
    model: Annotated[
        Path | None,
        Option("Also compare on sentences without words that are unknown to this network", "--model", metavar="FOLDER"),
    ] = None,
    by_rarity: Annotated[
        str | None,
        Option("Compare by how rare the words of SOURCE are in this text, not by length", metavar="FILE"),
    ] = None,
    output: Annotated[str | None, Option("Draw the curves: .svg or .png (needs matplotlib)", "-o --output")] = None,
    layout: Layout = "text",
    force: Force = False,
) -> None:
    """Compare translations by BLEU on short and long sentences. Each OUTPUT is a translation of SOURCE."""
    check_inputs(source, reference, *outputs, model, by_rarity)
    from moses_rnn.analysis.lengths import as_grid, compare_lengths

    kind = kind_of(output, PICTURES, "the table does not need it") if output else ""
    with optional_output(output, source, reference, *outputs, by_rarity or "", force=force) as file:
        texts, known = {name: text_of(path) for name, path in named_files(outputs).items()}, None
        if model:  # whose words are by the language of the texts, not by what it reads and writes
            from moses_rnn.models.open import open_model

            network = open_model(model)
            sides = network.source_vocabulary, network.target_vocabulary
            known = sides[::-1] if network.inverse else sides
        text = text_of(by_rarity) if by_rarity else None
        scores = compare_lengths(text_of(source), text_of(reference), texts, known, text)
        if file:
            from moses_rnn.analysis.plots import lengths_figure, picture

            file.commit(picture(lengths_figure, scores, kind=kind))
    print_out(LAYOUTS[layout](as_grid(scores)))


GRADIENTS_EPILOG = """\b
Example: models with different cells (cell = "…" in --config):
  moses-rnn analyse gradients test.en test.fr tanh.model lstm.model gru.model -o gradients.svg

L(t) is the loss of word t, -log p, and h'(t) the state that predicts it; the state of an LSTM includes its memory. Row
k is the mean norm of the gradient of L(t) with respect to h'(t-k) over the words that have such a state. Only the first
1000 sentences count, and </s> is a word. Rows of fewer than 30 words are left out, except the first.
"""


@command(GRADIENTS_EPILOG)
def gradients(
    source: str,
    target: str,
    models: Annotated[tuple[str, ...], Argument("MODEL...")],
    *,
    output: Annotated[str | None, Option("Draw the curves: .svg or .png (needs matplotlib)", "-o --output")] = None,
    layout: Layout = "text",
    force: Force = False,
) -> None:
    """Measure how far back gradients reach. Each MODEL is an RNN Encoder-Decoder from SOURCE to TARGET."""
    check_inputs(source, target, *map(Path, models))
    from moses_rnn.analysis.gradients import as_grid, measure_gradients

    kind = kind_of(output, PICTURES, "the table does not need it") if output else ""
    with optional_output(output, source, target, force=force) as file:
        networks = {
            name: open_phrase_network(Path(folder), of_any_cell=True) for name, folder in named_files(models).items()
        }
        sources, targets = parallel_texts(source, target)
        if not sources:
            raise InputError(f"{source}: expected sentences, found none")
        with progress("sentences") as advanced:
            found = measure_gradients(networks, sources[:MAX_SENTENCES], targets[:MAX_SENTENCES], advanced)
        if file:
            from moses_rnn.analysis.plots import gradients_figure, picture

            file.commit(picture(gradients_figure, found, kind=kind))
    print_out(LAYOUTS[layout](as_grid(found)))


EPOCH = "SOURCE_DATE_EPOCH"
REPORT_EPILOG = f"""\b
Example:
  moses-rnn analyse report phrase-table.rnn.gz -o report.html

The page works offline and needs no other file. Pictures need pip install 'moses-rnn[report]'; without it, the page has
none. Gates, and pairs on which table and network disagree, appear only for the RNN Encoder-Decoder. The same table,
model and options give the same page, except for the date at the end, which {EPOCH} sets. A table of 839,112 lines takes
minutes.
{SORTED}
"""


@command(REPORT_EPILOG)
def report(
    phrase_table: str,
    *,
    model: ModelBeside = None,
    output: Annotated[str, Option("The page, a single HTML file", "-o --output")],
    source_text: Annotated[
        str | None, Option("Draw where a network with attention looks in the first lines of this text", metavar="FILE")
    ] = None,
    results: Annotated[str | None, Option("results.json of the pipeline: what tuning gained", metavar="FILE")] = None,
    column: ColumnOption = None,
    force: Force = False,
) -> None:
    """Write a page about a scored table and its network. It has the paper's tables and figures."""
    folder = choose_model(model, phrase_table)
    check_inputs(phrase_table, folder, source_text, results)
    from moses_rnn.analysis.findings import gather
    from moses_rnn.analysis.report import write_report
    from moses_rnn.analysis.scored_table import ScoredTable
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import find_input, show_nothing
    from moses_rnn.models.open import open_model
    from moses_rnn.networks.compute import Compute

    path, made = find_input(phrase_table), _made()
    with OutputFile(output, force=force, inputs=inputs_of(path, source_text, results, folder)) as file:
        network = open_model(folder)
        if network.architecture.stepper is None:
            expected = "expected a network that writes word by word"
            raise CheckpointError(f"{folder}: {expected}, found: {network.network_title}")
        network.check_order()
        scorer = network.make_scorer(Compute(precision="fp64"))
        with ExitStack() as stack:

            def announce(title: str, unit: str) -> Advanced:
                """Begin a step; if it counts units, show a bar on a terminal."""
                stack.close()
                if sys.stderr.isatty():
                    print_err(f"{title} …")
                return stack.enter_context(progress(unit)) if unit else show_nothing

            table = ScoredTable.open(path, column, network.architecture.name)
            findings = gather(table, network, scorer, source_text, results, announce)
        file.commit(write_report(findings, made))
    if findings.missing:
        missing = " and ".join(findings.missing)
        warn(f"{missing} not found: pip install 'moses-rnn[report]' for all pictures")
    print_out(f"The report is in {output}.")


def _made() -> str:
    given = click.get_current_context().obj
    try:
        when = datetime.fromtimestamp(time.time() if given is None else _seconds(given), UTC)
    except (ValueError, OverflowError, OSError) as error:
        expected = "expected a whole number of seconds since 1970, up to the year 9999"
        raise InputError(f"{EPOCH}: {expected}, found {shown_value(given)}") from error
    command = shlex.join(["moses-rnn", *sys.argv[1:]])
    return f" on {when:%Y-%m-%d at %H:%M} UTC by: {command}"


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


EPILOG = """\b
Examples:
  moses-rnn analyse targets phrase-table.rnn.gz --count 3
  moses-rnn analyse targets phrase-table.rnn.gz --source "the old man" --top 5
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@click.pass_context
def main(context: click.Context) -> None:
    """Inspect a phrase table that moses-rnn-score has scored, and the results obtained with it."""
    # No picture needs these, and matplotlib fails at values that it does not know
    os.environ.pop("MPLBACKEND", None)
    context.obj = os.environ.pop(EPOCH, None)


RESULTS_EPILOG = """\b
Example, as the pipeline calls it:
  moses-rnn analyse results work --target fr --system baseline --system rnn --seed 1 --seed 2 --seed 3

In BLEU, words end at blanks and tabs only, as in Moses.
"""


@command(RESULTS_EPILOG)
def results(
    work: Path,
    *,
    target: Annotated[str, Option("File suffix of the target language")],
    systems: Annotated[tuple[str, ...], Option("System, the baseline first; repeat it for several", "--system")],
    tests: Annotated[tuple[str, ...], Option("Test set; repeat it for several", "--test")] = ("test",),
    seeds: Annotated[tuple[str, ...], Option("Seed of a tuning run; repeat it for several", "--seed")],
    output: Annotated[str | None, Option("Write all numbers as JSON", "-o --output")] = None,
    force: Force = False,
) -> None:
    """Compare tuned systems (the paper's Table 1). WORK is the pipeline's folder."""
    from moses_rnn.analysis.results import compare_systems, format_table, list_warnings

    comparison = compare_systems(work, target, tests, systems, seeds)
    inputs = [str(path) for part in ("corpus", "decode", "tune") for path in Path(work, part).rglob("*")]
    with optional_output(output, *inputs, force=force) as file:
        if file:
            file.commit(f"{json.dumps(comparison, indent=2)}\n".encode())
    warn(*list_warnings(comparison))
    print_out("\n".join(format_table(comparison)))


for subcommand in (report, targets, summary, explain, neighbours, map_, lengths, gradients, prune, results):
    main.add_command(subcommand)
