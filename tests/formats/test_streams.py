import bz2
import gzip
import lzma
import os
import subprocess
import sys

import pytest
from xopen import xopen

from moses_rnn.errors import FormatError, InputError, OutputError
from moses_rnn.formats.streams import OutputFile, compressed, existing_input, read_lines

TEXT = b"un\ndeux \xe2\x80\xa8 deux\ntrois\x0b\x0c\x1c\x85\r\xc2\xa0\nquatre\r\n"
LINES = [b"un\n", b"deux \xe2\x80\xa8 deux\n", b"trois\x0b\x0c\x1c\x85\r\xc2\xa0\n", b"quatre\r\n"]


def zstd(data):
    return compressed(data, "zst")


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize("name", ["t", "t.gz", "t.txt", "t.xz"])
def test_reads_any_compression_by_its_first_bytes_whatever_its_name(tmp_path, compress, name):
    (tmp_path / name).write_bytes(compress(TEXT))
    assert list(read_lines(str(tmp_path / name))) == LINES


def test_members_one_after_another_are_one_file(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert list(read_lines(str(tmp_path / "t.gz"))) == [b"a\n", b"bc\n"]


def test_keeps_a_last_line_without_end(tmp_path):
    (tmp_path / "t").write_bytes(b"a\nb")
    assert list(read_lines(str(tmp_path / "t"))) == [b"a\n", b"b"]


def test_lines_across_blocks(tmp_path):
    lines = [b"x" * n + b"\n" for n in (1, 700_000, 700_000, 3, 1_000_000)]
    (tmp_path / "t").write_bytes(b"".join(lines))
    assert list(read_lines(str(tmp_path / "t"))) == lines


def test_reads_standard_input():
    program = "from moses_rnn.formats.streams import read_lines; print(list(read_lines('-')))"
    done = subprocess.run([sys.executable, "-c", program], input=gzip.compress(TEXT), capture_output=True, check=True)
    assert done.stdout.decode() == f"{LINES}\n"


@pytest.mark.parametrize("cut", [-1, -9, -30])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_file_cut_short_is_refused(tmp_path, compress, cut):
    (tmp_path / "t").write_bytes(compress(TEXT * 9)[:cut])
    with pytest.raises(FormatError, match="expected a (whole|sound) compressed file, found"):
        list(read_lines(str(tmp_path / "t")))


def test_the_message_says_where_it_ends(tmp_path):
    random = os.urandom(3 << 20).hex().encode()  # more than one block, hardly compressible
    data = b"\n".join(random[i : i + 63] for i in range(0, len(random), 63))
    (tmp_path / "t.gz").write_bytes(gzip.compress(data, 1)[: 3 << 20])
    with pytest.raises(
        FormatError, match=r"t.gz: expected a whole compressed file, found an early end after line \d{5}"
    ):
        list(read_lines(str(tmp_path / "t.gz")))


def test_damage_is_refused(tmp_path):
    data = bytearray(gzip.compress(TEXT * 1000))
    data[len(data) // 2] ^= 4
    (tmp_path / "t.gz").write_bytes(data)
    with pytest.raises(FormatError, match="expected a sound compressed file, found damage after line 0"):
        list(read_lines(str(tmp_path / "t.gz")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "empty: expected at least one line, found an empty file"),
        ("empty.gz", b"", "empty.gz: expected at least one line, found an empty file"),
        ("long", b"a\n" + b"x" * 2_000_000, r"long:2: expected a line of at most 1048576 bytes, found 'xxx"),
        ("bomb.gz", gzip.compress(b"x" * 50_000_000), r"bomb.gz:1: expected a line of at most 1048576 bytes"),
    ],
)
def test_refusals(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message):
        list(read_lines(str(tmp_path / name)))


def test_finds_the_file_that_is_meant(tmp_path):
    (tmp_path / "phrase-table.gz").write_bytes(b"x")
    assert existing_input(str(tmp_path / "phrase-table")) == str(tmp_path / "phrase-table.gz")
    with pytest.raises(InputError, match=r"other: expected a file, found nothing of that name \(nor .*other.gz\)"):
        existing_input(str(tmp_path / "other"))
    with pytest.raises(InputError, match="expected a file, found a directory"):
        existing_input(str(tmp_path))


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_writes_by_suffix_and_only_on_commit(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    with OutputFile(str(path)) as output:
        assert not path.exists()
        output.commit(TEXT)
    with xopen(path, "rb") as file:
        assert file.read() == TEXT
    assert os.listdir(tmp_path) == [path.name]


def test_without_commit_nothing_stays(tmp_path):
    (tmp_path / "t.gz").write_bytes(b"old")
    with OutputFile(str(tmp_path / "t.gz"), force=True):
        assert len(os.listdir(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["t.gz"]
    assert (tmp_path / "t.gz").read_bytes() == b"old"


def test_equal_content_gives_equal_bytes():
    assert compressed(TEXT, "gz") == compressed(TEXT, "gz")


def test_refuses_to_write_over_what_is_there(tmp_path):
    (tmp_path / "t").write_bytes(b"old")
    with pytest.raises(OutputError, match="t: exists already; use --force to replace it"):
        OutputFile(str(tmp_path / "t"))


@pytest.mark.parametrize("spelling", ["t", "./t", "link", "hard", "sub/../t"])
def test_refuses_its_input_by_any_spelling(tmp_path, spelling):
    (tmp_path / "t").write_bytes(b"input")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("t")
    (tmp_path / "hard").hardlink_to(tmp_path / "t")
    with pytest.raises(OutputError, match="is the input .*/t itself; name another output"):
        OutputFile(f"{tmp_path}/{spelling}", force=True, inputs=(str(tmp_path / "t"),))


def test_refuses_a_place_that_does_not_exist(tmp_path):
    with pytest.raises(OutputError, match="no/t.gz: cannot be written: No such file or directory"):
        OutputFile(str(tmp_path / "no" / "t.gz"))


def test_two_runs_cannot_write_one_file(tmp_path):
    with OutputFile(str(tmp_path / "t")), pytest.raises(OutputError, match="t: is being written by another run"):
        OutputFile(str(tmp_path / "t"))
