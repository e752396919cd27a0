import bz2
import contextlib
import gzip
import io
import lzma
import os
import subprocess
import sys

import pytest

from moses_rnn.errors import FormatError, Stopped
from moses_rnn.files.streams import Meter, read_blocks, read_lines

TEXT = b"un\ndeux \xe2\x80\xa8 deux\ntrois\x0b\x0c\x1c\x85\r\xc2\xa0\nquatre\r\n"
LINES = [b"un\n", b"deux \xe2\x80\xa8 deux\n", b"trois\x0b\x0c\x1c\x85\r\xc2\xa0\n", b"quatre\r\n"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["t", "t.gz", "t.txt", "t.xz"])
def test_reads_by_the_first_bytes_whatever_the_name(tmp_path, compress, name):
    (tmp_path / name).write_bytes(compress(TEXT))
    assert list(read_lines(str(tmp_path / name))) == LINES


@pytest.mark.parametrize(
    ("compress", "printer"),
    [(bz2.compress, "bzcat"), (lzma.compress, "xzcat"), (lambda _: b"\x28\xb5\x2f\xfd", "zstdcat")],
)
def test_other_compression_is_refused_with_the_pipe_that_reads_it(tmp_path, compress, printer):
    (tmp_path / "t.gz").write_bytes(compress(TEXT))
    with pytest.raises(
        FormatError, match=f"expected plain text or gzip, found a file for {printer}\n.*{printer} .*t.gz"
    ):
        list(read_lines(str(tmp_path / "t.gz")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "empty: expected at least one line, found an empty file"),
        ("empty.gz", b"", "empty.gz: expected at least one line, found an empty file"),
        ("long", b"a\n" + b"x" * 2_000_000, r"long:2: expected a line of at most 1,048,576 bytes, found 'xxx"),
        ("bomb.gz", gzip.compress(b"x" * 50_000_000), r"bomb.gz:1: expected a line of at most 1,048,576 bytes"),
    ],
    ids=["empty", "empty gzip", "long line", "long line in gzip"],  # else a gzip header's time is in a name
)
def test_refusals(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message):
        list(read_lines(str(tmp_path / name)))


MANY = [b"%d\n" % i for i in range(20_000)]


def test_damage_to_a_later_stream_is_never_taken_for_litter(tmp_path):
    first, second = gzip.compress(b"".join(MANY[:10_000])), gzip.compress(b"".join(MANY[10_000:]))
    path = tmp_path / "t"
    path.write_bytes(first + second + bytes(7))
    assert list(read_lines(str(path))) == MANY  # zero bytes behind the last member are padding, of tapes for example
    for bit in range(8 * 12):
        damaged = bytearray(second)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(first + damaged)
        try:
            lines = list(read_lines(str(path)))
        except FormatError:
            continue
        assert lines == MANY


@pytest.mark.parametrize("litter", [b"litter", b"\n", b"x", b"\0\0x", b"more than a header of gzip takes"], ids=str)
def test_litter_behind_the_last_stream_is_refused(tmp_path, litter):
    (tmp_path / "t").write_bytes(gzip.compress(TEXT) + gzip.compress(TEXT) + litter)
    with pytest.raises(FormatError, match="found b'.* behind the compressed data") as caught:
        list(read_lines(str(tmp_path / "t")))
    assert "cut" not in str(caught.value)
    advised = caught.value.advice.split("\n")[0].rpartition(": ")[2]
    subprocess.run(["bash", "-c", advised], check=False, cwd=tmp_path, stderr=subprocess.DEVNULL)  # gzip warns
    assert b"".join(read_lines(str(tmp_path / "NEW.gz"))) == TEXT * 2


@pytest.mark.parametrize("kept", [2, 5, 15, -1, -8])
def test_a_stream_that_was_cut_short_is_called_so(tmp_path, kept):
    (tmp_path / "t").write_bytes(gzip.compress(TEXT) + gzip.compress(TEXT)[:kept])
    with pytest.raises(FormatError, match="expected a whole compressed file, found an early end") as caught:
        list(read_lines(str(tmp_path / "t")))
    assert "cut the file short" in caught.value.advice


def test_a_pipe_may_give_its_first_bytes_one_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    program = (
        "import gzip, sys, time\n"
        "with open(sys.argv[1], 'wb', buffering=0) as pipe:\n"
        f"    for byte in gzip.compress({TEXT}):\n"
        "        pipe.write(bytes([byte])); time.sleep(0.002)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path / "pipe"]) as writer:
        assert list(read_lines(str(tmp_path / "pipe"))) == LINES
    assert writer.returncode == 0


def test_blocks_are_whole_lines_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("moses_rnn.files.streams.BLOCK_BYTES", 7)
    text = b"a\nbcd\n\nefghijklmnop\nq"
    (tmp_path / "t").write_bytes(text)
    meter = Meter()
    blocks = []
    for block in read_blocks(str(tmp_path / "t"), meter=meter):
        blocks.append(block)
        assert meter.lines_read == len(b"".join(blocks).splitlines())
    assert blocks == [b"a\nbcd\n\n", b"efghijklmnop\n", b"q"]
    assert list(read_lines(str(tmp_path / "t"))) == text.splitlines(keepends=True)


def test_waiting_at_a_pipe_can_be_interrupted(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def waiting():
        raise Stopped("enough")

    with pytest.raises(Stopped, match="enough"):  # no writer
        list(read_lines(str(tmp_path / "pipe"), meter=Meter(waiting=waiting)))
    with contextlib.closing(io.FileIO(tmp_path / "pipe", "r+")) as writer:
        writer.write(b"a ||| b")
        with pytest.raises(Stopped, match="enough"):  # a writer that has fallen silent
            list(read_lines(str(tmp_path / "pipe"), meter=Meter(waiting=waiting)))


def test_the_meter_follows_the_reading(tmp_path):
    meter = Meter()
    (tmp_path / "t.gz").write_bytes(gzip.compress(TEXT))
    assert list(read_lines(str(tmp_path / "t.gz"), meter=meter)) == LINES
    assert (meter.share, meter.bytes_read) == (1, (tmp_path / "t.gz").stat().st_size)
