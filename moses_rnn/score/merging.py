"""Merge the shards of a scored table: check them against each other, concatenate them, write one signature."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from moses_rnn.errors import InputError, Stopped, number_of
from moses_rnn.files.outputs import output_files, refuse_equal
from moses_rnn.files.shards import Shard
from moses_rnn.files.streams import Advanced, is_gzip, reading
from moses_rnn.moses.ini_editing import lines_of
from moses_rnn.score.checks import check_fit, check_rejected, fit_warnings
from moses_rnn.score.score import ScoringResult
from moses_rnn.score.scoring_options import rejects_of
from moses_rnn.table.signatures import Signature, TableCounts, check_probabilities, read_signature

PIECE_BYTES = 1 << 24  # bytes copied at a time
HIERARCHICAL = "hierarchical"  # in the description of a table's phrases
ALIKE = ("program", "torch", "input", "precision", "phrases", "columns", "models")  # equal in all shards


class ScoredShard:
    """A scored shard and its signature, which is not trusted."""

    def __init__(self, path: str) -> None:
        self.path, self.signature = path, read_signature(path)
        if not Path(path).is_file() or not self.signature:
            found = "no signature beside it" if Path(path).is_file() else "nothing of that name"
            raise InputError(
                f"{path}: expected a shard of a scored table, found {found}",
                advice="Did its run finish? --resume continues it; the run writes PATH.json at its end.",
            )
        check_probabilities(path, self.signature)
        try:
            self._read(self.signature)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            expected = "the signature of a shard, as moses-rnn-score --shard writes it"
            found = f"one without {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}.json: expected {expected}, found {found}") from error

    def _read(self, signature: Signature) -> None:
        record, self.added = signature.record, signature.added
        shard = record["shard"]
        self.shard = Shard(int(shard["number"]), int(shard["count"]))
        self.counts, lines_of_table = TableCounts.of_signature(signature), int(shard["lines"])
        if len(self.added) < len(record["added_columns"]):
            raise ValueError("a column without a name or an index")
        lines, share = self.counts.lines + self.counts.rejected, len(self.shard.lines_of(lines_of_table))
        if lines != share:
            raise ValueError(f"{number_of(lines, 'line')} instead of {share:,}")
        self.bytes, self.sha256 = int(record["file"]["bytes"]), str(record["file"]["sha256"])
        source, target = (int(factors) for factors in shard["factors"])
        self.columns, self.factors = int(record["columns"]), (source, target)
        self.computed_by = str(record.get("native") or "torch")
        self.settings = {  # must be equal in all shards
            **{key: record.get(key) for key in ALIKE},
            "number of shards": self.shard.count,
            "table": {**record["input_content"], "lines_sha256": shard.get("lines_sha256")},
            "number of lines": lines_of_table,
            # of the first line; a rule of non-terminals has none
            "number of factors": () if HIERARCHICAL in str(record["phrases"]) else self.factors,
            "added columns": [column.as_record() for column in self.added],
        }


def merge(
    paths: Sequence[str],
    output: str,
    *,
    force: bool,
    allow_misfit: bool = False,
    advanced: Advanced,
    should_stop: Callable[[], bool],
) -> ScoringResult:
    """Concatenate the shards of a scored table, given in any order; report bytes and their share to `advanced`.

    Unless `allow_misfit`, the model must fit the whole table.
    """
    shards = in_table_order([ScoredShard(path) for path in paths])
    first, counts = shards[0], TableCounts()
    for shard in shards:
        counts.add(shard.counts)
    column_names = tuple(column.name for column in first.added)
    table_name = str(first.signature.record["input"])
    check_rejected(table_name, counts)
    check_fit(table_name, counts, column_names, allowed=allow_misfit)
    ini = lines_of(output, first.columns, first.factors)
    cores = sorted({shard.computed_by for shard in shards})
    whole = sum(shard.bytes for shard in shards)
    if mixed := next((shard.path for shard in shards if is_gzip(shard.path) != is_gzip(output)), None):
        expected = "a name with the same suffix as the shards, because the merge does not compress them again"
        raise InputError(f"{output}: expected {expected}, found {Path(mixed).name}")
    names = [output, f"{output}.json", *([rejects_of(output)] if counts.rejected else [])]
    inputs = tuple(name for shard in shards for name in (shard.path, f"{shard.path}.json"))
    refuse_equal([rejects_of(output)], inputs)  # perhaps an older table's, which will be removed
    with output_files(names, force=force, inputs=inputs) as files:
        table, signature = files[:2]
        for piece in _pieces(shards):
            table.write(piece)  # already compressed
            advanced(table.bytes, table.bytes / whole)
            if should_stop():
                raise Stopped(f"stopped after {number_of(table.bytes, 'byte')}; the same command starts over")
        record = {**first.signature.record} | {
            "output": Path(output).name,
            "file": table.digest(),
            "native": None if cores == ["torch"] else " and ".join(cores),
            "rejected_lines": counts.rejected,
            "lines": counts.lines,
            "added_columns": [column.as_record() | counts.of_column(i) for i, column in enumerate(first.added)],
            "merged_from": len(shards),
        }
        del record["shard"]
        signature.append(Signature(record).as_file())
        if counts.rejected:
            files[2].append(b"".join(_rejected_lines(shard) for shard in shards if shard.counts.rejected))
    if force and not counts.rejected:
        Path(rejects_of(output)).unlink(missing_ok=True)
    warnings = [*ini.warnings, *fit_warnings(counts, column_names)]
    if len(cores) > 1:
        warnings.append(f"the shards were computed by {' and '.join(cores)}: last digits may differ between them")
    return ScoringResult(counts, column_names, ini, tuple(warnings), " and ".join(cores))


def in_table_order(shards: Sequence[ScoredShard]) -> list[ScoredShard]:
    """Return the shards in table order; raise InputError unless each occurs once and all were scored alike."""
    first = shards[0]
    by_number: dict[int, ScoredShard] = {}
    for shard in shards:
        other = by_number.setdefault(shard.shard.number, shard)
        if other is not shard:
            raise InputError(f"{shard.path}: expected each shard once, found {shard.shard} in {other.path} too")
        for what, value in shard.settings.items():
            if value != first.settings[what]:
                raise InputError(
                    f"{shard.path}: expected the same {what} as {first.path}, found {value!r} here and "
                    f"{first.settings[what]!r} there",
                    advice="All shards must come from the same table, scored by the same models with the same options.",
                )
    count = first.shard.count
    if missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in by_number]:
        names = ", ".join(missing[:20]) + (f" and {len(missing) - 20:,} more" if missing[20:] else "")
        raise InputError(f"expected {number_of(count, 'shard')}, found {len(shards):,}; not given: {names}")
    return [by_number[number] for number in sorted(by_number)]


def _pieces(shards: Sequence[ScoredShard]) -> Iterator[bytes]:
    """Yield the shards' bytes; raise InputError if a shard's hash differs from its signature's."""
    for shard in shards:
        digest = hashlib.sha256()
        with reading(shard.path), Path(shard.path).open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                yield piece
        if digest.hexdigest() != shard.sha256:
            raise InputError(
                f"{shard.path}: expected the file that its signature describes, found other bytes",
                advice=f"The file was changed or cut short: score shard {shard.shard} again, with --force.",
            )


def _rejected_lines(shard: ScoredShard) -> bytes:
    path = rejects_of(shard.path)
    with reading(path):
        lines = Path(path).read_bytes()
    count = lines.count(b"\n")
    if count != shard.counts.rejected:
        raise InputError(f"{path}: expected {number_of(shard.counts.rejected, 'rejected line')}, found {count:,}")
    return lines
