import gzip
import os
import random

import pytest

from moses_rnn.errors import OutputError
from moses_rnn.files import journal
from moses_rnn.files.journal import BlockOutput, Opening

MANIFEST = {"input": "t", "floor": -87.0}
BLOCKS = [b"block %d\n" % i * 50 for i in range(6)]
RESUME = Opening(resume=True)


class Death(BaseException):
    """What no part of the program catches."""


def make(path, *, opening=None, manifest=None, die_after=None):
    """Write all blocks that are not there yet; perhaps die after some."""
    with BlockOutput(str(path), opening=opening) as output:
        done = (output.begin(manifest or MANIFEST) or {"done": 0})["done"]
        for i in range(done, len(BLOCKS)):
            if i == die_after:
                raise Death
            output.append(output.pack(BLOCKS[i]), {"done": i + 1})
        if die_after == len(BLOCKS):
            raise Death
        digest = output.digest()
        output.commit()
    return done, digest


def die(path, after, **options):
    with pytest.raises(Death):
        make(path, die_after=after, **options)


@pytest.fixture
def whole(tmp_path):
    make(tmp_path / "whole.gz")
    return (tmp_path / "whole.gz").read_bytes()


def left(path):
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.journal")


def test_the_file_is_its_blocks_and_nothing_else_stays(tmp_path, whole):
    assert gzip.decompress(whole) == b"".join(BLOCKS)
    assert os.listdir(tmp_path) == ["whole.gz"]


@pytest.mark.parametrize("after", [1, 3, 6])
def test_goes_on_after_any_block(tmp_path, whole, after):
    path = tmp_path / "t.gz"
    die(path, after)
    assert not path.exists()
    assert make(path, opening=RESUME) == (after, make(tmp_path / "again.gz")[1])
    assert path.read_bytes() == whole


def test_nothing_stays_of_a_run_without_blocks(tmp_path):
    die(tmp_path / "t.gz", 0)
    assert os.listdir(tmp_path) == []


def test_a_leftover_is_never_silently_used_or_lost(tmp_path):
    path = tmp_path / "t.gz"
    die(path, 2)
    with pytest.raises(
        OutputError, match="t.gz: an interrupted run left 2 blocks of it; --resume goes on, --force starts over"
    ):
        make(path)
    assert all(file.exists() for file in left(path))
    assert make(path, opening=Opening(force=True))[0] == 0


def test_a_leftover_of_something_else_is_refused(tmp_path):
    path = tmp_path / "t.gz"
    die(path, 2)
    with pytest.raises(OutputError, match="found other: floor -87.0, now -50.0; new None, now 1\n"):
        make(path, opening=RESUME, manifest={"input": "t", "floor": -50.0, "new": 1})
    assert make(path, opening=RESUME)[0] == 2


def test_an_existing_file_lives_until_the_new_one_is_complete(tmp_path, whole):
    path = tmp_path / "t.gz"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match="t.gz: exists already; use --force to replace it"):
        make(path)
    with pytest.raises(OutputError, match="exists already"):
        make(path, opening=RESUME)
    die(path, 3, opening=Opening(force=True))
    assert path.read_bytes() == b"old"
    assert make(path, opening=RESUME)[0] == 3
    assert path.read_bytes() == whole


@pytest.mark.parametrize("seed", range(40))
def test_torn_files_are_cut_to_what_is_provable(tmp_path, whole, seed):
    """A power loss may leave either file shorter, longer or changed near its end."""
    path, draw = tmp_path / "t.gz", random.Random(seed)
    die(path, 5)
    for file in left(path):
        data = bytearray(file.read_bytes())
        damage = draw.choice(["none", "cut", "grow", "flip"])
        if damage == "cut":
            del data[draw.randrange(len(data)) :]
        elif damage == "grow":
            data += draw.randbytes(100)
        elif damage == "flip":
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)
    try:
        make(path, opening=RESUME)
    except OutputError as error:  # the journal's first line, the manifest, was hit: nothing can be proved
        assert "found other" in str(error) or "expected a sound journal beside it" in str(error)  # noqa: PT017
        with pytest.raises(OutputError):
            make(path)
        make(path, opening=Opening(force=True))
    assert path.read_bytes() == whole


def only_close(output, *_):
    """What the system does for a process that dies."""
    output._stream.close()
    output._journal.close()


@pytest.mark.parametrize("moment", ["sync_directory", "end"])
def test_death_after_the_final_name_is_finished(tmp_path, whole, monkeypatch, moment):
    """What else belongs to the output, its signature, may be missing then: --resume lets it be written."""
    path = tmp_path / "t.gz"

    def power_loss(*_):
        raise Death

    if moment == "end":
        monkeypatch.setattr(BlockOutput, "__exit__", only_close)
        make(path)
    else:
        monkeypatch.setattr(journal, "sync_directory", power_loss)
        with pytest.raises(Death):
            make(path)
    monkeypatch.undo()
    assert path.read_bytes() == whole
    with pytest.raises(OutputError, match="exists already"):
        make(path)
    done, digest = make(path, opening=RESUME)
    assert (done, digest["bytes"]) == (len(BLOCKS), len(whole))
    assert path.read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["t.gz", "whole.gz"]


def test_a_final_file_that_was_changed_meanwhile_is_not_taken_for_ours(tmp_path, whole, monkeypatch):
    path = tmp_path / "t.gz"
    monkeypatch.setattr(BlockOutput, "__exit__", only_close)
    make(path)
    monkeypatch.undo()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert make(path, opening=RESUME)[0] == 0
    assert path.read_bytes() == whole


def test_an_output_that_goes_along_keeps_no_more_than_the_other(tmp_path, whole):
    path = tmp_path / "t.gz"
    die(path, 5)
    with BlockOutput(str(path), opening=RESUME) as output:
        assert output.begin(MANIFEST, most=3) == {"done": 3}
        for i in range(3, len(BLOCKS)):
            output.append(output.pack(BLOCKS[i]), {"done": i + 1})
        output.commit()
    assert path.read_bytes() == whole


def test_a_second_run_waits_for_nothing_until_the_very_end(tmp_path, whole):
    """Also between the final name and the removal of the journal, another run cannot take the output."""
    path = tmp_path / "t.gz"
    with BlockOutput(str(path)) as output:
        output.begin(MANIFEST)
        output.append(output.pack(BLOCKS[0]), {})
        output.commit()
        message = rf"being written by another run \(process {os.getpid()} on {os.uname().nodename}\)"
        with pytest.raises(OutputError, match=message):
            make(path, opening=Opening(force=True))
    make(path, opening=Opening(force=True))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_every_failing_call_is_reported_and_survived(tmp_path, whole, monkeypatch, call):
    """Fail the 1st, 2nd, 3rd … call of each kind; afterwards the run goes on and gives the same bytes."""
    for number in range(1, 40):
        path = tmp_path / f"t{number}.gz"
        calls = iter(range(1, 1000))
        with monkeypatch.context() as patch:
            fail_nth(patch, call, number, calls)
            try:
                make(path)
            except OutputError as error:
                assert "cannot be written: No space left on device" in str(error)  # noqa: PT017
                failed = True
            else:
                failed = False
        if failed:
            make(path, opening=RESUME)
        assert path.read_bytes() == whole
        if not failed:
            assert number > 1
            return
    pytest.fail("more calls than expected")


def test_a_block_that_cannot_be_made_durable_leaves_no_record(tmp_path, monkeypatch):
    """Its bytes may well seem to be there: what the system holds in memory is read like what is on disk."""
    path = tmp_path / "t.gz"
    part, record = left(path)
    original, failing = os.fsync, []

    def fsync(descriptor):
        if failing and os.path.samestat(os.fstat(descriptor), part.stat()):
            raise OSError(5, os.strerror(5))
        original(descriptor)

    monkeypatch.setattr(journal.os, "fsync", fsync)
    with BlockOutput(str(path)) as output:
        output.begin(MANIFEST)
        output.append(output.pack(b"a\n"))
        records = record.read_bytes()
        failing.append(True)
        with pytest.raises(OutputError, match="cannot be written: Input/output error"):
            output.append(output.pack(b"b\n"))
        assert (record.read_bytes(), output.blocks) == (records, 1)
    assert record.read_bytes() == records


def fail_nth(patch, call, number, calls):
    def failing(original):
        def wrapped(*args):
            if next(calls) == number:
                raise OSError(28, os.strerror(28))
            return original(*args)

        return wrapped

    if call == "fsync":
        patch.setattr(journal.os, "fsync", failing(os.fsync))
    elif call == "replace":
        patch.setattr(journal.Path, "replace", failing(journal.Path.replace))
    else:
        original = journal.BlockOutput._open

        def open_failing(self):
            return tuple(FailingFile(stream, failing) for stream in original(self))

        patch.setattr(journal.BlockOutput, "_open", open_failing)


class FailingFile:
    """A file whose writes may fail, as a full disk makes them."""

    def __init__(self, stream, failing):
        self._stream = stream
        self.write = failing(stream.write)

    def __getattr__(self, name):
        return getattr(self._stream, name)
