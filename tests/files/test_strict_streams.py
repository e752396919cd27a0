import bz2
import io
import lzma

import pytest

from moses_rnn.files.strict_streams import BUFFER_BYTES, DECOMPRESSORS, StrictStreams

COMPRESS = {"bz2": bz2.compress, "xz": lzma.compress}
KINDS = pytest.mark.parametrize("kind", COMPRESS)


def read(kind, data):
    return io.BufferedReader(StrictStreams(io.BytesIO(data), DECOMPRESSORS[kind])).read()


def test_every_kind_is_tested():
    assert COMPRESS.keys() == DECOMPRESSORS.keys()


@KINDS
@pytest.mark.parametrize("padding", [0, 4, BUFFER_BYTES + 4])
def test_streams_one_after_another_are_one_content(kind, padding):
    parts = [b"un\n", b"", b"deux" * 100_000]
    assert read(kind, b"".join(COMPRESS[kind](part) + bytes(padding) for part in parts)) == b"".join(parts)


@KINDS
def test_an_end_too_soon_is_an_error(kind):
    data = COMPRESS[kind](b"un\n") + COMPRESS[kind](b"deux\n")
    for size in (1, 10, len(data) - 1):
        with pytest.raises(EOFError, match="a stream has no end"):
            read(kind, data[:size])


@KINDS
@pytest.mark.parametrize("litter", [b"litter", b"\0\0litter"])
def test_litter_behind_a_stream_is_an_error(kind, litter):
    with pytest.raises((OSError, lzma.LZMAError, EOFError)):
        read(kind, COMPRESS[kind](b"un\n") + litter)
