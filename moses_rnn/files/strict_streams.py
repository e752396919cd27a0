"""bz2 and xz, read to the end of their last stream or refused."""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

READ_BYTES = 1 << 17
XZ_MEMORY = 1 << 30  # no file may make us take more; xz -9 needs 65 MB


class StrictStreams(io.RawIOBase):
    """Compressed streams one after another; nothing but zero bytes may follow one that is not another.

    Python's own readers of bz2 and xz take a later stream with a damaged head for harmless litter and end there.
    """

    def __init__(self, raw: BinaryIO, new_decoder: Callable[[], Decoder]) -> None:
        self._raw = raw
        self._new_decoder = new_decoder
        self._decoder = new_decoder()

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Decompress into a buffer; the number of bytes, 0 at the end of the last stream."""
        view = memoryview(buffer).cast("B")
        while not self._decoder.eof or self._next_stream():
            data = self._more() if self._decoder.needs_input else b""
            out = self._decoder.decompress(data, len(view))
            if out:
                view[: len(out)] = out
                return len(out)
        return 0

    def _more(self) -> bytes:
        data = self._raw.read(READ_BYTES)
        if not data:
            raise EOFError("a stream has no end")
        return data

    def _next_stream(self) -> bool:
        """Begin a further stream, if one follows."""
        left = self._decoder.unused_data.lstrip(b"\0")
        while not left:
            data = self._raw.read(READ_BYTES)
            if not data:
                return False
            left = data.lstrip(b"\0")
        self._decoder = self._new_decoder()
        self._decoder.decompress(left, 0)  # taken in; what comes out is asked for later
        return True


Decoder = bz2.BZ2Decompressor | lzma.LZMADecompressor
DECODERS: dict[str, Callable[[], Decoder]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY),
}
