"""moses-rnn-import: weights of the authors' released code in, a model folder out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, say, shows_version, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.errors import InputError, OutputError

if TYPE_CHECKING:
    from moses_rnn.models.checkpoint import Checkpoint
    from moses_rnn.models.groundhog import Plan, Words

MAX_VOCABULARY = 1 << 28  # bytes

EPILOG = """\b
Example: a network that GroundHog's experiments/nmt has trained, for the tables and lists of Moses:
  moses-rnn-import phrases_model.npz --source-vocabulary ivocab.en.txt --target-vocabulary ivocab.fr.txt
  moses-rnn-score phrase-table.gz --model phrases_model.rnn-model

MODEL.npz is what it saves beside its state; the state and the vocabularies there are pickles, which are not read. A
vocabulary is text, one word a line, line number = row of the embedding, from 0: row 0 is kept as <s>, row 1 is <unk>,
and the last row is the end of a phrase unless --end-row says otherwise. Phrase models become an RNN Encoder-Decoder of
variant groundhog, RNNsearch one with phases of groundhog; sizes are those of the tensors. Exit code 3: refused.
"""


@dataclass(frozen=True, kw_only=True)
class Importing:
    """The command's arguments and options."""

    archive: Path
    source_vocabulary: Path
    target_vocabulary: Path
    model: Path | None
    end_row: int | None
    inverse: bool
    unit: str | None
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("archive", metavar="MODEL.npz", type=click.Path(path_type=Path))
@click.option("--source-vocabulary", required=True, type=click.Path(path_type=Path), help="Words that it reads")
@click.option("--target-vocabulary", required=True, type=click.Path(path_type=Path), help="Words that it writes")
@click.option("--model", type=click.Path(path_type=Path), help="Model folder [default: MODEL.rnn-model]")
@click.option(
    "--end-row", type=click.IntRange(0), help="Row of the end symbol on both sides [default: each side's last]"
)
@click.option("--inverse", is_flag=True, help="It reads the tables' target side and writes their source side")
@click.option(
    "--unit",
    type=click.Choice(["phrases", "sentences"]),
    help="What it learned from [default: phrases, an RNNsearch sentences]",
)
@click.option("--force", is_flag=True, help="Replace an existing model")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing")
@shows_version
@reports_errors
@takes(Importing)
def main(given: Importing) -> None:
    """Make a model folder of MODEL.npz, weights of the code that the paper's authors released (GroundHog)."""
    folder = given.model or given.archive.with_suffix(".rnn-model")
    if folder.exists() and not given.force:
        raise OutputError(f"{folder}: exists already; --force replaces it")
    check_inputs(*map(str, (given.archive, given.source_vocabulary, given.target_vocabulary)))
    from moses_rnn.formats.npz import open_npz
    from moses_rnn.models.checkpoint import save_checkpoint
    from moses_rnn.models.groundhog import network_of, plan_of

    with open_npz(given.archive) as archive:
        try:
            plan = plan_of({name: member.shape for name, member in archive.members.items()})
            words = {side: _words(given, side, plan) for side in ("source", "target")}
            network = network_of(plan, archive.read, words, given.unit)
        except ValueError as error:
            raise InputError(f"{given.archive}: {error}") from error
    checkpoint = _checkpoint(given, plan, network, words)
    save_checkpoint(folder, checkpoint)
    if not given.quiet:
        _say(folder, plan, words)


def _words(given: Importing, side: str, plan: Plan) -> Words:
    """The words of a side's rows.

    Raises:
        InputError: the file cannot be read, or does not fit.
    """
    from moses_rnn.models.groundhog import words_of

    path: Path = getattr(given, f"{side}_vocabulary")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_VOCABULARY + 1)
    except OSError as error:
        raise InputError(f"{path}: expected a vocabulary, found: {error.strerror}") from error
    if len(data) > MAX_VOCABULARY:
        raise InputError(f"{path}: expected a vocabulary of at most {MAX_VOCABULARY:,} bytes, found more")
    lines = data.removesuffix(b"\n").split(b"\n")
    try:
        return words_of(lines, plan.sizes["S" if side == "source" else "K"], given.end_row)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _checkpoint(given: Importing, plan: Plan, network: object, words: Mapping[str, Words]) -> Checkpoint:
    from moses_rnn import __version__
    from moses_rnn.models.checkpoint import Checkpoint
    from moses_rnn.models.folders import PHRASES, SOURCE_TO_TARGET, TARGET_TO_SOURCE

    return Checkpoint(
        plan.kind,
        network,
        {side: of_side.vocabulary for side, of_side in words.items()},
        direction=TARGET_TO_SOURCE if given.inverse else SOURCE_TO_TARGET,
        provenance={
            "version": __version__,
            "unit": given.unit or PHRASES,
            "imported": {"archive": given.archive.name, "left_out": list(plan.left_out)},
        },
    )


def _say(folder: Path, plan: Plan, words: Mapping[str, Words]) -> None:
    S, K = plan.sizes["S"], plan.sizes["K"]
    say(f"{plan.kind.network}, H {plan.sizes['H']}, E {plan.sizes['E']}, {S:,} and {K:,} words: {folder}")
    if plan.left_out:
        names = ", ".join(plan.left_out)
        say(f"left out, as this network does not have them: {names if len(names) < 1000 else names[:1000] + ' …'}")
    for side, of_side in words.items():
        if of_side.left_out:
            say(f"left out: {of_side.left_out:,} {side} words at the end of their list, which have no row")
