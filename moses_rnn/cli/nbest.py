"""moses-rnn-nbest: features for n-best lists, their weights, and the best hypotheses by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    ProgramGroup,
    StopRequest,
    choose_device,
    reports_errors,
    say,
    shows_version,
    takes,
)
from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.tuning.optimisers import OPTIMISERS, RESTARTS

if TYPE_CHECKING:
    from moses_rnn.files.outputs import Output
    from moses_rnn.formats.nbest import NBestLine
    from moses_rnn.scoring.nbest_features import FeatureRequest

EPILOG = """\b
Example: two features for both lists, weights from the first, the second translated with them:
  moses-rnn-nbest dev.nbest.gz --source dev.en --add cslm --add phrase-table.rnn-model -o dev.more.gz
  moses-rnn-nbest test.nbest.gz --source test.en --add cslm --add phrase-table.rnn-model -o test.more.gz
  moses-rnn-nbest tune dev.more.gz --reference dev.fr -o weights.ini
  moses-rnn-nbest rerank test.more.gz weights.ini > test.out

\b
Lists are Moses's (-n-best-list FILE 100 distinct, best with -include-segmentation-in-n-best), plain or compressed; - is
stdin. `moses-rnn-nbest NBEST …` is short for `moses-rnn-nbest add NBEST …`.
"""


class _AddByDefault(ProgramGroup):
    """A group whose ``add`` may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h", "--version"):
            args = ["add", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_AddByDefault, context_settings=CONTEXT, epilog=EPILOG)
@shows_version
def main() -> None:
    """Add features to Moses's n-best lists, tune their weights, choose by them."""


ADD_EPILOG = """\b
Example:
  moses-rnn-nbest dev.nbest.gz --source dev.en --add cslm --backoff lm.arpa --add phrase-table.rnn-model > dev.more

\b
Values are natural logarithms; every other byte of the list stays as it is, so that Moses's own
scripts/nbest-rescore/ read the result. Features are named CSLM0, KENLM0, RNN0, WP0, with the next number where the list
has one of that name.
"""


@dataclass(frozen=True, kw_only=True)
class Adding:
    """Options of `add`."""

    nbest: str
    source: str
    add: tuple[Path, ...]
    cslm: Path | None
    backoff: str | None
    lm: Path | None
    rnn: Path | None
    inverse_rnn: Path | None
    whole: bool
    word_penalty: Path | None
    word_penalty_words: int | None
    output: str
    device: str
    precision: str
    threads: int | None
    allow_misfit: bool
    force: bool
    quiet: bool


@main.command("add", cls=Program, context_settings=CONTEXT, epilog=ADD_EPILOG)
@click.argument("nbest")
@click.option("--source", required=True, help="The sentences that were translated, as the decoder read them")
@click.option(
    "--add",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Add log p by this model: a folder of any network, or an n-gram model (ARPA or KenLM's binary). A network "
    "of phrase pairs scores the phrases of each hypothesis, summed; one of targets alone the hypothesis. Repeat it",
)
@click.option("--whole", is_flag=True, help="Score whole sentences with networks of pairs, whatever their phrases")
@click.option("--backoff", help="An ARPA file that shares out a CSLM's <unk> among the words outside its shortlist")
@click.option(
    "--word-penalty",
    type=click.Path(path_type=Path),
    help="Add minus the number of words outside the shortlist of this model or vocabulary file: WP0",
)
@click.option("--word-penalty-words", type=click.IntRange(1), help="Only its N most frequent words")
@click.option("--cslm", type=click.Path(path_type=Path), help="Deprecated: --add, for a CSLM alone")
@click.option("--lm", type=click.Path(path_type=Path), help="Deprecated: --add, for an n-gram model alone")
@click.option("--rnn", type=click.Path(path_type=Path), help="Deprecated: --add, for an RNN Encoder-Decoder alone")
@click.option("--inverse-rnn", type=click.Path(path_type=Path), help="Deprecated: --add, for an --inverse model alone")
@click.option("-o", "--output", default="-", show_default=True, help="The new list, compressed if its suffix says so")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@click.option("--precision", type=click.Choice(["fp32", "bf16", "fp64"]), default="fp32", show_default=True)
@click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all cores]")
@click.option("--allow-misfit", is_flag=True, help="Take a model that has learned nothing, which is refused otherwise")
@click.option("--force", is_flag=True, help="Replace an existing output")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@reports_errors
@takes(Adding)
def add(given: Adding) -> None:
    """Add features to an n-best list."""
    _check(given)
    import torch

    from moses_rnn.cli.progress import Display
    from moses_rnn.scoring.nbest_features import make_features
    from moses_rnn.scoring.nbest_lists import NBestReport, label_features, with_features

    if given.threads:
        torch.set_num_threads(given.threads)
    name, lines = _parsed(given.nbest)
    first = next(lines, None)
    sources = _text(given.source)
    features = label_features(first, make_features(first, name, _feature_request(given)))
    report = NBestReport()
    display = Display("hypotheses", quiet=given.quiet)
    with _output(given.output, given.force, (name, given.source)) as file:
        for block in with_features(_behind(first, lines), sources, features, name, report):
            file.append(block)
            display.show(report.lines)
        file.commit()
    display.close()
    if not given.quiet:
        say(f"{report.lines:,} hypotheses of {report.sentences:,} sentences, with {', '.join(report.choosing)}")
    for label in report.constant:
        say(f"warning: {label} is the same for all hypotheses of each sentence: leave it out, no tuning can use it")


def _feature_request(given: Adding) -> FeatureRequest:
    from moses_rnn.scoring.nbest_features import FeatureRequest

    return FeatureRequest(
        add=given.add,
        cslm=given.cslm,
        lm=given.lm,
        rnn=given.rnn,
        inverse_rnn=given.inverse_rnn,
        backoff=given.backoff,
        whole=given.whole,
        word_penalty=given.word_penalty,
        word_penalty_words=given.word_penalty_words,
        device=choose_device(given.device),
        precision=given.precision,
        allow_misfit=given.allow_misfit,
    )


def _check(given: Adding) -> None:
    """Refuse what does not go together."""
    if given.nbest == given.source == "-":
        raise click.UsageError("only one of the list and --source can be -")
    if not any((given.add, given.cslm, given.lm, given.rnn, given.inverse_rnn, given.word_penalty)):
        raise click.UsageError("nothing to add: give --add MODEL or --word-penalty")
    if given.backoff and not (given.cslm or given.add):
        raise click.UsageError("--backoff is the n-gram model that a CSLM backs off to: give one with --add")
    if given.whole and not (given.rnn or given.inverse_rnn or given.add):
        raise click.UsageError("--whole says how networks of pairs score: give one with --add")
    if given.word_penalty_words and not given.word_penalty:
        raise click.UsageError("--word-penalty-words is for --word-penalty")


def _output(path: str, force: bool, inputs: tuple[str, ...]) -> Output:
    """Where the result goes; refused before any work is done if it cannot."""
    from moses_rnn.files.outputs import OutputFile, StandardOutput

    return StandardOutput() if path == "-" else OutputFile(path, force=force, inputs=inputs)


def _behind(first: NBestLine | None, lines: Iterator[NBestLine]) -> Iterator[NBestLine]:
    if first is not None:
        yield first
        yield from lines


def _parsed(nbest: str) -> tuple[str, Iterator[NBestLine]]:
    """The list's name and lines."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.nbest import parse_nbest

    name = existing_input(nbest)
    return name, parse_nbest(read_lines(name), name)


def _text(path: str) -> list[bytes]:
    """The lines of a text."""
    from moses_rnn.files.streams import existing_input, read_lines

    return [line.rstrip(b"\r\n") for line in read_lines(existing_input(path))]


TUNE_EPILOG = """\b
Example:
  moses-rnn-nbest tune dev.more.gz --reference dev.fr -o weights.ini

\b
The search begins at --weights, a moses.ini say; without it, at the weights that the list was made with, as its totals
tell them. Added features begin at 0.
"""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Options of `tune`."""

    nbest: str
    references: tuple[str, ...]
    weights: str | None
    optimiser: str | None
    seed: int
    restarts: int
    moses_root: Path | None
    output: str
    force: bool


@main.command("tune", cls=Program, context_settings=CONTEXT, epilog=TUNE_EPILOG)
@click.argument("nbest")
@click.option("--reference", "references", multiple=True, required=True, help="A reference translation; repeat it")
@click.option("--weights", help="An ini whose weights the search begins with")
@click.option(
    "--optimiser",
    type=click.Choice(OPTIMISERS),
    help="Moses's mert or kbmira, or this package's mert [default: moses-mert if MOSES_ROOT is set, else mert]",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--restarts", type=click.IntRange(0), default=RESTARTS, show_default=True, help="Of mert")
@click.option("--moses-root", type=click.Path(path_type=Path), envvar="MOSES_ROOT", help="A built Moses [$MOSES_ROOT]")
@click.option("-o", "--output", default="-", show_default=True, help="The weights, as an ini")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
@takes(Tuning)
def tune(given: Tuning) -> None:
    """Find weights by which an n-best list gets a good BLEU."""
    from moses_rnn.formats.moses_ini import MosesIni
    from moses_rnn.moses.programs import Moses
    from moses_rnn.tuning.reading import read_tunable
    from moses_rnn.tuning.tune import choose_start, default_optimiser, format_ini
    from moses_rnn.tuning.tune import tune as tune_weights

    name, lines = _parsed(given.nbest)
    inputs = (name, *given.references, *([given.weights] if given.weights else []))
    with _output(given.output, given.force, inputs) as file:
        points = read_tunable(lines, [_text(reference) for reference in given.references], name=name)
        if points.missing:
            say(f"warning: {len(points.missing)} sentences have no hypothesis and count as translated by nothing")
        start = choose_start(points, MosesIni(_content(given.weights), given.weights) if given.weights else None)
        moses = Moses(given.moses_root.absolute()) if given.moses_root else None
        optimiser = given.optimiser or default_optimiser(moses)
        stop = StopRequest()
        tuned = tune_weights(
            points, start, optimiser, moses=moses, should_stop=stop, seed=given.seed, restarts=given.restarts
        )
        if stop():
            raise MosesRnnError("stopped before the search had ended; nothing was written")
        file.append(format_ini(points.names, tuned.weights))
        file.commit()
    say(f"{optimiser}, seed {given.seed}: BLEU {100 * tuned.start_bleu:.2f} before, {100 * tuned.bleu:.2f} after")
    for label in tuned.constant:
        say(f"warning: {label} is the same for all hypotheses of each sentence: its weight stays as it was")


RERANK_EPILOG = """\b
Example:
  moses-rnn-nbest rerank test.more.gz weights.ini --reference test.fr > test.out
"""


@main.command(cls=Program, context_settings=CONTEXT, epilog=RERANK_EPILOG)
@click.argument("nbest")
@click.argument("weights")
@click.option("--reference", "references", multiple=True, help="Also say the BLEU: before, after, at best; repeat it")
@click.option("--segments", is_flag=True, help="Print phrases with their source words, as -report-segmentation does")
@click.option("-o", "--output", default="-", show_default=True, help="The best hypotheses, a line a sentence")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
def rerank(nbest: str, weights: str, references: tuple[str, ...], segments: bool, output: str, force: bool) -> None:
    """Print each sentence's best hypothesis by an ini's weights."""
    from moses_rnn.formats.moses_ini import MosesIni
    from moses_rnn.tuning.reranking import choose_hypotheses, compare_bleu, format_segments, list_translations

    name, lines = _parsed(nbest)
    with _output(output, force, (name, weights, *references)) as file:
        kept = list(lines) if references else lines
        of_ini = MosesIni(_content(weights), weights).all_weights()
        best = choose_hypotheses(kept, of_ini, name, weights)
        texts = [_text(reference) for reference in references]
        sentences = len(texts[0]) if texts else 1 + max(best)
        if texts:
            chosen = list_translations(best, sentences)
            first, reranked, at_best = compare_bleu(kept, texts, name, chosen, of_ini)
            say(f"BLEU {first:.2f} of the list's first, {reranked:.2f} reranked, {at_best:.2f} at best (oracle)")
        translated = format_segments(best, sentences, name) if segments else list_translations(best, sentences)
        file.append(b"".join(line + b"\n" for line in translated))
        file.commit()


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
