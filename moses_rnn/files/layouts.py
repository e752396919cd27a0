"""Where a compressed file can be entered: what is known of its pieces without decompressing them.

A plain file can be entered anywhere. Files of bgzip (SAMtools' BGZF: each gzip member names its own length) are
walked from header to header. Any other file begins at its beginning: it has to be read once to learn its size.
"""

from __future__ import annotations

import bisect
import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from moses_rnn.errors import InputError
from moses_rnn.files.streams import GZIP, HEAD_BYTES, OTHERS, read_blocks

GZIP_HEADER = 12  # bytes before the extra field, with its length
EXTRA_FLAG = 4


@dataclass
class Layout:
    """How many bytes a file has uncompressed, and where its pieces begin, uncompressed and as stored, both ascending.

    `is_scanned` says that the file had to be read to know it.
    """

    size: int
    begins: array[int] = field(default_factory=lambda: array("Q", [0]))
    stored: array[int] = field(default_factory=lambda: array("Q", [0]))
    is_plain: bool = False
    is_scanned: bool = False

    def entry(self, offset: int) -> tuple[int, int]:
        """The last place before an uncompressed byte where reading can begin: uncompressed, and as stored."""
        if self.is_plain:
            return offset, offset
        i = bisect.bisect_right(self.begins, offset) - 1
        return self.begins[i], self.stored[i]


def layout_of(path: str) -> Layout:
    """The layout of a file, by its headers or, where they do not tell, by reading it.

    Raises:
        InputError: it is a pipe, or cannot be read.
        FormatError: it is damaged.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: expected a file, whose parts can be read one by one, found a pipe")
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
            file.seek(0)
            if not head.startswith((GZIP, *OTHERS)):
                return Layout(os.fstat(file.fileno()).st_size, is_plain=True)
            layout = _walked(file, _bgzip_members(file))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return layout or Layout(sum(map(len, read_blocks(path, max_line_bytes=1 << 62))), is_scanned=True)


def _walked(file: BinaryIO, pieces: Iterator[tuple[int, int] | None]) -> Layout | None:
    """A layout of pieces, each by its size as stored and uncompressed; None if one of them does not tell."""
    layout = Layout(0, array("Q"), array("Q"))
    at, end = 0, os.fstat(file.fileno()).st_size
    for piece in pieces:
        if piece is None:
            return None
        if piece[1]:
            layout.begins.append(layout.size)
            layout.stored.append(at)
        at, layout.size = at + piece[0], layout.size + piece[1]
    return layout if at == end and layout.begins else None


def _bgzip_members(file: BinaryIO) -> Iterator[tuple[int, int] | None]:
    """Members by the subfield BC of their headers (SAM specification, section 4.1)."""
    at = 0
    header = file.read(GZIP_HEADER + 6)
    while header:
        member = _bgzip_length(header)
        if member is None:
            yield None
            return
        file.seek(at + member - 4)
        tail = file.read(4 + GZIP_HEADER + 6)  # the length that was compressed, and the next header
        if len(tail) < 4:
            yield None
            return
        yield member, int.from_bytes(tail[:4], "little")
        at, header = at + member, tail[4:]


def _bgzip_length(header: bytes) -> int | None:
    if len(header) < GZIP_HEADER + 6 or not header.startswith(b"\x1f\x8b\x08") or not header[3] & EXTRA_FLAG:
        return None
    name, size, length = struct.unpack_from("<2sHH", header, GZIP_HEADER)
    return length + 1 if (name, size) == (b"BC", 2) else None
