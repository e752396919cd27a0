"""The shards of a scored table become one table: checked against each other, laid end to end, with one signature."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import InputError, Stopped
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.files.metered import Advanced
from moses_rnn.files.outputs import NoOutput, OutputFile, refuse_equal, stop_if_complete
from moses_rnn.files.streams import is_gzip
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.shard_signatures import ScoredShard, merged_signature, read_shard
from moses_rnn.scoring.fit import fit_warnings
from moses_rnn.scoring.new_ini import NewIni, make_ini
from moses_rnn.scoring.phrase_tables import ScoringReport
from moses_rnn.scoring.request import IniRequest, rejects_of

PIECE_BYTES = 1 << 26  # which a journal's record stands for


@dataclass(frozen=True)
class MergeRequest:
    """All choices: the tables that the shards' runs have written, in any order, and what they become."""

    shards: tuple[str, ...]
    output: str
    ini: IniRequest | None = None
    force: bool = False
    resume: bool = False


@dataclass(frozen=True)
class MergeResult:
    """What a merge made, and what the user should know."""

    lines: int
    rejected: int
    ini: NewIni
    warnings: tuple[str, ...]


def merge(request: MergeRequest, advanced: Advanced, should_stop: Callable[[], bool]) -> MergeResult:
    """Lay the shards of a scored table end to end.

    Args:
        request: all choices.
        advanced: called with the bytes that are copied, and their share.
        should_stop: called as often.

    Raises:
        InputError: a shard is missing, doubled, torn or of other models or settings than the first; nothing appears
            under the output's name.
        OutputError: an output cannot be written; what was copied can be resumed.
        Stopped: as requested; --resume goes on.
    """
    shards = in_table_order([read_shard(path) for path in request.shards])
    _check_output(request, shards)
    first = shards[0]
    shape = Shape(first.old_columns, first.factors, aligned=False)
    ini = make_ini(first.table, request.output, request.ini, shape, len(first.columns))
    whole = sum(shard.bytes for shard in shards)
    with _outputs(request, shards) as (table, rejects, signature, new_ini):
        before = table.begin({"program": first.record["program"], "merged": [shard.sha256 for shard in shards]})
        for piece, copied in _pieces(shards, before["copied"] if before else 0):
            table.append(piece, {"copied": copied})
            advanced(copied, copied / whole)
            if should_stop():
                raise Stopped(f"stopped after {copied:,} bytes; the same command with --resume goes on")
        rejected_lines = b"".join(_rejected_lines(shard) for shard in shards if shard.rejected)
        files = {"output": Path(request.output).name, "file": table.digest()}
        table.commit()
        signature.commit(merged_signature(shards, files))
        new_ini.commit(ini.content)
        rejects.commit(rejected_lines)
    cores = sorted({shard.computed_by for shard in shards})
    report = ScoringReport()
    for shard in shards:
        report.add(shard.counts)
    warnings = [*ini.warnings, *fit_warnings(report, [str(column.get("name")) for column in first.columns])]
    if len(cores) > 1:
        warnings.append(f"the shards were computed by {' and '.join(cores)}: last digits may differ between them")
    return MergeResult(sum(s.lines for s in shards), sum(s.rejected for s in shards), ini, tuple(warnings))


def in_table_order(shards: Sequence[ScoredShard]) -> list[ScoredShard]:
    """The shards in the order of the table.

    Raises:
        InputError: they are not all shards of one table, scored alike, each once.
    """
    first = shards[0]
    by_number: dict[int, ScoredShard] = {}
    for shard in shards:
        if shard.number in by_number:
            other = by_number[shard.number].path
            raise InputError(
                f"{shard.path}: expected each shard once, found {shard.number}/{shard.count} as {other} too"
            )
        for what, value in shard.settings.items():
            if value != first.settings[what]:
                raise InputError(
                    f"{shard.path}: expected the same {what} as {first.path}, found {value!r} and there "
                    f"{first.settings[what]!r}",
                    advice="All shards must be of the same table, scored by the same models with the same options.",
                )
        by_number[shard.number] = shard
    missing = [str(number) for number in range(1, first.count + 1) if number not in by_number]
    if missing:
        names = ", ".join(missing[:20]) + (f" and {len(missing) - 20:,} more" if missing[20:] else "")
        raise InputError(f"expected {first.count:,} shards, found {len(shards):,}: missing {names}")
    ordered = [by_number[number] for number in sorted(by_number)]
    _check_ends(ordered)
    return ordered


def _check_ends(shards: Sequence[ScoredShard]) -> None:
    """Raise InputError unless each begins where the one before it ends, and all of the table is there."""
    end = 0
    for shard in shards:
        if shard.begin != end:
            raise InputError(f"{shard.path}: expected to begin at byte {end:,} of the table, found {shard.begin:,}")
        end = shard.end
    if end != shards[-1].size:
        raise InputError(f"{shards[-1].path}: expected to end at byte {shards[-1].size:,} of the table, found {end:,}")


def _check_output(request: MergeRequest, shards: Sequence[ScoredShard]) -> None:
    for shard in shards:
        if is_gzip(shard.path) != is_gzip(request.output):
            raise InputError(
                f"{request.output}: expected a name that ends as the shards' do, which are not compressed again, found "
                f"{Path(shard.path).name}"
            )


@contextlib.contextmanager
def _outputs(
    request: MergeRequest, shards: Sequence[ScoredShard]
) -> Iterator[tuple[BlockOutput, OutputFile | NoOutput, OutputFile | NoOutput, OutputFile | NoOutput]]:
    inputs = tuple(name for s in shards for name in (s.path, f"{s.path}.json"))
    inputs += (request.ini.ini,) if request.ini else ()
    has_rejects = any(shard.rejected for shard in shards)
    small = [f"{request.output}.json", *([request.ini.output] if request.ini else [])]
    rejected = [rejects_of(request.output)] if has_rejects else []
    refuse_equal(iter([request.output, *small, *rejected]))
    opening = Opening(force=request.force, resume=request.resume)
    if request.resume and not request.force:
        stop_if_complete([request.output, *small, *rejected], inputs)
    with contextlib.ExitStack() as stack:
        table = stack.enter_context(BlockOutput(request.output, opening=opening, inputs=inputs))
        force = request.force or (request.resume and table.has_leftover)

        def small_output(path: str | None) -> OutputFile | NoOutput:
            if path is None:
                return NoOutput()
            return stack.enter_context(OutputFile(path, force=force, inputs=inputs))

        signature = small_output(small[0])
        ini = small_output(request.ini.output if request.ini else None)
        rejects = small_output(rejected[0] if rejected else None)
        try:
            yield table, rejects, signature, ini
        except InputError:
            table.discard()
            raise


def _pieces(shards: Sequence[ScoredShard], before: int) -> Iterator[tuple[bytes, int]]:
    """The shards' bytes in pieces, behind so many that are copied, each with how many then are.

    Raises:
        InputError: a shard's bytes are not those that its signature tells of.
    """
    copied = 0
    for shard in shards:
        digest = hashlib.sha256()
        for piece in _bytes_of(shard):
            digest.update(piece)
            copied += len(piece)
            if copied > before:
                yield piece, copied
        if digest.hexdigest() != shard.sha256:
            raise _torn(shard, "other bytes")


def _bytes_of(shard: ScoredShard) -> Iterator[bytes]:
    """A shard's bytes, in pieces that do not depend on where an earlier run stopped."""
    try:
        with Path(shard.path).open("rb") as file:
            size = file.seek(0, 2)
            if size != shard.bytes:
                raise _torn(shard, f"{size:,} bytes in place of {shard.bytes:,}")
            file.seek(0)
            while piece := file.read(PIECE_BYTES):
                yield piece
    except OSError as error:
        raise InputError(f"{shard.path}: cannot be read: {error.strerror}") from error


def _torn(shard: ScoredShard, finding: str) -> InputError:
    return InputError(
        f"{shard.path}: expected the file that its signature tells of, found {finding}",
        advice=f"It was changed or cut short: score shard {shard.number}/{shard.count} again, with --force.",
    )


def _rejected_lines(shard: ScoredShard) -> bytes:
    path = Path(rejects_of(shard.path))
    try:
        lines = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    count = lines.count(b"\n")
    if count != shard.rejected:
        raise InputError(f"{path}: expected {shard.rejected:,} rejected lines, found {count:,}")
    return lines
