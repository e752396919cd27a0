"""Faults 18 and 19: inputs cut anywhere, and single flipped bits."""

import gzip
import random

import pytest

from moses_rnn.files.outputs import pack
from tests.faults.conftest import FULL

COUNT = 200 if FULL else 12
PACKERS = {
    "gz": lambda data: gzip.compress(data, 1, mtime=0),
    "gz members": lambda data: b"".join(pack(data[i : i + 99_999], "t.gz") for i in range(0, len(data), 99_999)),
}
OPTIONS = ["damaged", "--model", "model", "-o", "out.gz", "-q"]


def cuts(size):
    draw = random.Random(2)
    return [draw.randrange(size) for _ in range(COUNT)] + [size - n for n in range(1, 31 if FULL else 4)]


def member_ends(data):
    """Where a file can be cut so that no reader sees it: behind a whole member."""
    return {i for i in range(len(data)) if data.startswith(b"\x1f\x8b\x08", i)}


@pytest.mark.timeout(6000)
@pytest.mark.parametrize("kind", PACKERS)
def test_every_truncation_is_refused(folder, kind):
    data = PACKERS[kind]((folder.path / "t").read_bytes())
    before = folder.names() | {"damaged"}
    invisible = member_ends(data)
    for size in cuts(len(data)):
        if size in invisible:
            continue
        (folder.path / "damaged").write_bytes(data[:size])
        code, messages = folder.score(*OPTIONS)
        assert (code, "Traceback" in messages) == (3, False), (size, messages)
        assert "moses-rnn-score: damaged" in messages
        assert folder.names() == before
    print(f"{kind}: {len(cuts(len(data)))} truncations refused")


@pytest.mark.timeout(6000)
@pytest.mark.parametrize("kind", PACKERS)
def test_every_flipped_bit_is_refused_or_harmless(folder, kind):
    data = PACKERS[kind]((folder.path / "t").read_bytes())
    draw = random.Random(3)
    before = folder.names() | {"damaged"}
    harmless = 0
    for number in range(COUNT):
        damaged = bytearray(data)
        place = draw.randrange(40) if number % 8 == 0 else draw.randrange(len(data))
        damaged[place] ^= 1 << draw.randrange(8)
        (folder.path / "damaged").write_bytes(damaged)
        code, messages = folder.score(*OPTIONS)
        assert "Traceback" not in messages
        if code == 0:  # a bit that no checksum covers: a time stamp, a level
            harmless += 1
            assert gzip.decompress((folder.path / "out.gz").read_bytes()) == gzip.decompress(folder.whole)
            (folder.path / "out.gz").unlink()
            (folder.path / "out.gz.json").unlink()
        else:
            assert (code, "moses-rnn-score: damaged" in messages) == (3, True), (place, messages)
            if "are already scored and saved" in messages:  # the damage showed as a bad line, before any checksum
                code, messages = folder.score(*OPTIONS, "--resume", "--on-bad-line", "skip")
                explained = "expected a sound compressed file" in messages or " bad lines in a row" in messages
                assert (code, explained) == (3, True), (place, messages)
                for name in (".out.gz.part", ".out.gz.state", ".out.gz.rejects.part"):
                    (folder.path / name).unlink(missing_ok=True)  # still kept, in case of bad lines
        assert folder.names() == before
    print(f"{kind}: {COUNT} flipped bits, {COUNT - harmless} refused, {harmless} harmless")
