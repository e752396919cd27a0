"""JSON of files that may hold anything; and the records of a journal, lines of it behind a checksum each.

The first one is the manifest: what is being made. Of the others, those with ``end`` are of blocks: where the block ends
in the file, its checksum, and a note of the writer's.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashlib import _Hash

Note = dict[str, Any]
Records = list[tuple[Note, int]]  # and where each ends in the journal
LONGEST = 18  # characters of a whole number that 64 bits hold, whatever it is


def parse_json(data: bytes | str) -> Any:
    """What JSON says; in place of a number that a float does not hold stands its text, which nothing takes for one.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(data, parse_int=_parse_whole, parse_float=_parse_float, parse_constant=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _parse_whole(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST else text


def _parse_float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def format_record(record: Note) -> bytes:
    """A record as its line."""
    text = json.dumps(record).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_records(path: Path) -> Records:
    """A journal's sound records and where each ends: a torn or changed one and all after it do not count."""
    records: Records = []
    end = 0
    if not path.exists():
        return records
    for line in path.read_bytes().split(b"\n")[:-1]:
        end += len(line) + 1
        checksum, _, text = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(text):
            break
        record = json.loads(text)
        if not isinstance(record, dict):
            break
        records.append((record, end))
    return records


def compare_manifests(saved: Note, given: Note) -> list[str]:
    """In what they differ, as text."""
    wanted = json.loads(json.dumps(given))
    keys = sorted(saved.keys() | wanted.keys())
    return [f"{key} {saved.get(key)!r}, now {wanted.get(key)!r}" for key in keys if saved.get(key) != wanted.get(key)]


@dataclass
class Written:
    """What a file holds of an output: how many blocks, where the last one ends, and the hash of all of them."""

    blocks: int = 0
    end: int = 0
    hash: _Hash = field(default_factory=hashlib.sha256)

    def add(self, member: bytes) -> None:
        """Count a block that was written as this member."""
        self.hash.update(member)
        self.end += len(member)
        self.blocks += 1


def find_sound(path: Path, records: Records, most: int) -> tuple[int, Written]:
    """How many of the records hold for a file, and what it holds by them; of at most so many blocks."""
    written = Written()
    with path.open("rb") as stream:
        for kept, (record, _) in enumerate(records):
            if "end" not in record:
                continue
            member = stream.read(record["end"] - written.end)
            if written.blocks == most or zlib.crc32(member) != record["crc32"]:
                return kept, written
            written.add(member)
    return len(records), written
