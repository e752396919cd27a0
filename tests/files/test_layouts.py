"""Where compressed files can be entered, and what their headers tell of sizes."""

import gzip
import struct
import zlib

import pytest

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.layouts import Layout, layout_of
from moses_rnn.files.streams import read_blocks

TEXT = b"".join(b"line %d of some text\n" % i for i in range(3000))
PIECES = [TEXT[i : i + 7001] for i in range(0, len(TEXT), 7001)]


def bgzip_member(data):
    """A member as SAMtools' bgzip writes it."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = packer.compress(data) + packer.flush()
    head = b"\x1f\x8b\x08\x04" + b"\0" * 4 + b"\0\xff" + struct.pack("<H2sHH", 6, b"BC", 2, len(body) + 25)
    return head + body + struct.pack("<II", zlib.crc32(data), len(data))


def bgzip(pieces):
    return b"".join(map(bgzip_member, [*pieces, b""]))


def test_pieces_are_known_by_their_headers(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bgzip(PIECES))
    layout = layout_of(str(path))
    assert (layout.size, layout.is_plain, layout.is_scanned) == (len(TEXT), False, False)
    assert [*layout.begins] == [7001 * i for i in range(len(PIECES))]
    for offset in (0, 1, 7000, 7001, 20_000, len(TEXT) - 1):
        begin, stored = layout.entry(offset)
        assert begin == offset // 7001 * 7001
        assert b"".join(read_blocks(str(path), begin=stored)) == TEXT[begin:]


def test_a_plain_file_is_entered_anywhere(tmp_path):
    (tmp_path / "file").write_bytes(TEXT)
    layout = layout_of(str(tmp_path / "file"))
    assert (layout.size, layout.entry(12_345)) == (len(TEXT), (12_345, 12_345))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT),
        gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:]),
        bgzip(PIECES[:-1]) + gzip.compress(PIECES[-1]),
    ],
    ids=["gzip", "two members", "bgzip and gzip"],
)
def test_other_files_are_read_once(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    layout = layout_of(str(tmp_path / "file"))
    assert (layout.size, layout.is_scanned, layout.entry(5001)) == (len(TEXT), True, (0, 0))


@pytest.mark.parametrize("cut", [1, 3, 9, 25, 100])
def test_a_torn_file_is_found_by_reading_it(tmp_path, cut):
    data = bgzip(PIECES)
    (tmp_path / "file").write_bytes(data[:-cut])
    torn = str(tmp_path / "file")
    with pytest.raises(FormatError, match="early end|sound compressed file"):
        b"".join(read_blocks(torn, begin=layout_of(torn).entry(0)[1]))


def test_what_cannot_be_entered(tmp_path):
    with pytest.raises(InputError, match="expected a file, whose parts can be read one by one, found a pipe"):
        layout_of("-")
    assert Layout(0).entry(0) == (0, 0)
