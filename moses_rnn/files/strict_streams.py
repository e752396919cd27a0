"""bz2 and xz, read to the end of their last stream or refused."""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

BUFFER_BYTES = 1 << 17  # read at once, compressed
XZ_MEMORY = 1 << 30  # no file may make us take more; xz -9 needs 65 MB


class StrictStreams(io.RawIOBase):
    """Compressed streams one after another; nothing but zero bytes may follow one that is not another.

    Python's own readers of bz2 and xz take a later stream with a damaged head for harmless litter and stop there.
    """

    def __init__(self, raw: BinaryIO, new_decompressor: Callable[[], Decompressor]) -> None:
        self._raw = raw
        self._new_decompressor = new_decompressor
        self._decompressor = new_decompressor()

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Decompress into a buffer; the number of bytes, 0 at the end of the last stream."""
        view = memoryview(buffer).cast("B")
        while not self._decompressor.eof or self._next_stream():
            if self._decompressor.eof:  # a stream of nothing
                continue
            data = self._more() if self._decompressor.needs_input else b""
            out = self._decompressor.decompress(data, len(view))
            if out:
                view[: len(out)] = out
                return len(out)
        return 0

    def _more(self) -> bytes:
        data = self._raw.read(BUFFER_BYTES)
        if not data:
            raise EOFError("a stream has no end")
        return data

    def _next_stream(self) -> bool:
        """Start on a further stream, if one follows."""
        left = self._decompressor.unused_data.lstrip(b"\0")
        while not left:
            data = self._raw.read(BUFFER_BYTES)
            if not data:
                return False
            left = data.lstrip(b"\0")
        self._decompressor = self._new_decompressor()
        self._decompressor.decompress(left, 0)  # taken in; what comes out is fetched later
        return True


Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor
DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY),
}
