"""Files that appear together or not at all: killed, torn or out of room at any step, they come to the same bytes."""

import contextlib
import gzip
import itertools
import json
import os
import random
import signal
import stat
import zlib
from pathlib import Path

import pytest

from moses_rnn.errors import (
    AlreadyComplete,
    CheckpointError,
    FormatError,
    InputError,
    MosesRnnError,
    OutputError,
    Stopped,
)
from moses_rnn.files import resumable
from moses_rnn.files.outputs import pack
from moses_rnn.files.resumable import ResumableOutputs

BLOCKS = 4
MANIFEST = {"input": "t", "floor": -87.0}
NAMES = ["t.gz", "list", "t.gz.rejects", "t.gz.json", "new.ini"]
STATE = ".t.gz.state"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(resumable, "SECONDS_BETWEEN_SAVES", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # slow, and a process that dies does not take the system with it
    return tmp_path


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def fail(error):
    raise error


def make(*, manifest=MANIFEST, after=None, do=kill, rejects=True, advise=None, **options):
    """Write all blocks that are not there yet, and `do` something after some of them; returns how many were there."""
    optional = ["t.gz.rejects"] if rejects else []
    files = ResumableOutputs(["t.gz", "list"], ["t.gz.json", "new.ini"], optional=optional, advise=advise, **options)
    with files:
        done = (files.begin(manifest) or {"done": 0})["done"]
        for i in range(done, BLOCKS + 1):
            if i == after:
                do()
            if i == BLOCKS:
                break
            files.append("t.gz", pack(b"block %d\n" % i * 50, "t.gz"))
            files.append("list", b"list %d\n" % i)
            if rejects and i % 2:
                files.append("t.gz.rejects", b"bad %d\n" % i)
            files.save({"done": i + 1})
        digest = "{bytes} {sha256}".format(**files.digest("t.gz"))
        files.commit({"t.gz.json": digest.encode(), "new.ini": b"[weight]\n"})
    return done


def contents(folder=Path()):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("whole"))
        make()
        return contents()


def run(work):
    """Work in a process of its own; how it ended."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_resumed_run_knows_that_it_replaces_files(here):
    killed_after(2, force=True)
    with ResumableOutputs(["t.gz", "list"], ["t.gz.json", "new.ini"], optional=["t.gz.rejects"], resume=True) as files:
        files.begin(MANIFEST)
        assert files.forced


CALLS = {os: ("write", "fsync", "open"), Path: ("replace", "unlink")}


def before_call(number, do, calls=CALLS):
    """Have every call to the disk counted, and something done before one of them."""
    numbers = itertools.count(1)

    def counted(original):
        def call(*args, **options):
            if next(numbers) == number:
                do(original, args)
            return original(*args, **options)

        return call

    for owner, names in calls.items():
        for name in names:
            setattr(owner, name, counted(getattr(owner, name)))


class Disk:
    """Knows what of the files here was synced: how far each of them, and the folder, as to the name of the state."""

    def __init__(self):
        self._synced, self._states, self._replace = {}, [], Path.replace
        os.fsync = self._sync

        def replace(path, target):
            return self._rename(path, target)

        Path.replace = replace

    def _sync(self, descriptor):
        status = os.fstat(descriptor)
        self._synced[status.st_ino] = status.st_size
        if stat.S_ISDIR(status.st_mode):
            self._states.clear()

    def _rename(self, path, target):
        if target.name == STATE:
            self._states.append(target.read_bytes() if target.exists() else b"")
        return self._replace(path, target)

    def lose(self, damage):
        """Leave of what was not synced what the damage gives back."""
        for path in Path().iterdir():
            size, data = self._synced.get(path.stat().st_ino, 0), path.read_bytes()
            path.write_bytes(data[:size] + damage(data[size:]))
        if self._states:
            Path(STATE).write_bytes(self._states[0])


def killed(number, damage=None, **options):
    """Make the files in a process that is killed before one of its calls; whether it came so far.

    With `damage` the power goes too.
    """

    def work():
        disk = Disk()

        def die(*_):
            if damage:
                disk.lose(damage)
            kill()

        before_call(number, die)
        make(**options)

    return run(work) == -signal.SIGKILL


def killed_after(blocks, **options):
    assert run(lambda: make(after=blocks, **options)) == -signal.SIGKILL


def test_the_files_are_their_blocks_and_nothing_else_stays(whole):
    assert sorted(whole) == sorted(NAMES)
    assert gzip.decompress(whole["t.gz"]) == b"".join(b"block %d\n" % i * 50 for i in range(BLOCKS))
    assert whole["t.gz.rejects"] == b"bad 1\nbad 3\n"


LOSSES = {"nothing": None, "its end": lambda _: b"", "its content": lambda data: bytes(len(data))}


@pytest.mark.parametrize(
    ("lost", "old"),
    [("nothing", True), ("its end", False), pytest.param("its content", False, marks=pytest.mark.release)],
)
def test_killed_before_any_call_they_come_to_the_same_bytes(here, whole, lost, old):
    """Also if the power goes, and a part loses what was not synced."""
    for number in itertools.count(1):
        for path in here.iterdir():
            path.unlink()
        if old:
            make(manifest={"input": "other"}, rejects=False)
            (here / "t.gz").write_bytes(b"old")
        before = contents()
        if not killed(number, LOSSES[lost], force=old):
            assert number > 50
            return
        left = contents()
        assert all(left.get(name) in (before.get(name), whole[name]) for name in NAMES)  # never a part
        with contextlib.suppress(AlreadyComplete):
            make(resume=True, force=old)
        assert contents() == whole, number


@pytest.mark.parametrize("names", range(5))
def test_killed_again_while_the_names_are_given_they_come_to_the_same_bytes(whole, monkeypatch, names):
    given = iter(range(names))
    publish = resumable.Part.publish
    with monkeypatch.context() as patch:
        patch.setattr(resumable.Part, "publish", lambda part: kill() if next(given, None) is None else publish(part))
        killed_after(None)

    def save_and_die():
        with ResumableOutputs(
            ["t.gz", "list"], ["t.gz.json", "new.ini"], optional=["t.gz.rejects"], resume=True
        ) as files:
            files.save(files.begin(MANIFEST))
            kill()

    assert run(save_and_die) == -signal.SIGKILL
    make(resume=True)
    assert contents() == whole


@pytest.mark.parametrize("seed", range(60))
def test_after_a_power_loss_they_come_to_the_same_bytes_or_are_refused_by_name(here, whole, seed):
    draw = random.Random(seed)
    if draw.random() < 0.2:
        killed(draw.randrange(40, 70))
    else:
        killed_after(draw.randrange(1, BLOCKS + 1))
    path = here / draw.choice([name for name in contents() if name.endswith((".part", ".state"))] or ["t.gz"])
    data = path.read_bytes()
    place = draw.randrange(len(data) + 1)
    damage = draw.choice([data[:place], data[:place] + bytes(len(data) - place), data + draw.randbytes(99)])
    path.write_bytes(damage)
    try:
        make(resume=True)
    except AlreadyComplete:
        assert not path.name.startswith(".")
        return
    except OutputError as error:
        assert path.name in str(error)  # noqa: PT017
        assert path.read_bytes() == damage
        make(force=True)
    assert contents() == whole


@pytest.mark.parametrize("calls", [{os: ("write",)}, {os: ("fsync",)}, {Path: ("replace",)}], ids=str)
def test_a_full_disk_at_any_call_costs_nothing_that_was_saved(here, whole, calls):
    for number in itertools.count(1):

        def refuse(original, args):
            if original is WRITE:  # as much as there is room for
                WRITE(args[0], args[1][: len(args[1]) // 2])
            raise OSError(28, os.strerror(28))

        def work(number=number, refuse=refuse):
            before_call(number, refuse, calls)
            with pytest.raises(OutputError, match="cannot be written: No space left on device"):
                make()

        if run(work):
            assert number > 5
            return
        saved = make(resume=True)
        assert saved >= min((number - 8) // 4, BLOCKS)
        assert contents() == whole
        for name in NAMES:
            (here / name).unlink()


WRITE = os.write


def test_what_cannot_be_made_durable_does_not_count(here, monkeypatch):
    """Its bytes may well seem to be there: what the system holds in memory is read like what is on disk."""
    fsync, state = os.fsync, []

    def failing(descriptor):
        if state and os.path.samestat(os.fstat(descriptor), (here / ".list.part").stat()):
            raise OSError(5, os.strerror(5))
        fsync(descriptor)

    def fill():
        state.append((here / STATE).read_bytes())

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="list: cannot be written: Input/output error"):
        make(after=3, do=fill)
    assert [(here / STATE).read_bytes()] == state


def test_a_second_run_is_refused_until_the_very_end(here, whole, monkeypatch):
    seen = []

    def second():
        for options in ({"resume": True}, {"force": True}):
            with pytest.raises(OutputError, match="t.gz: is being written by another run"):
                make(**options)
        if (here / ".list.part").exists():
            with pytest.raises(OutputError, match="list: is being written by another run"):
                ResumableOutputs(["other"], ["list"])
        seen.append(contents())

    replace = Path.replace

    def replacing(path, to):
        replace(path, to)
        if seen:
            second()

    monkeypatch.setattr(Path, "replace", replacing)
    make(after=1, do=second)
    assert len(seen) > len(NAMES)
    assert contents() == whole


def test_a_leftover_is_never_silently_used_or_lost(whole):
    killed_after(2)
    left = contents()
    for options, message in (
        ({}, "t.gz: an interrupted run left part of it; --resume continues, --force starts over"),
        (
            {"resume": True, "manifest": MANIFEST | {"floor": 1, "new": 2}},
            "found others: floor -87.0, now 1; new None, ",
        ),
        ({"resume": True, "rejects": False}, "found others: the files t.gz, .*t.gz.rejects, now t.gz, list\n"),
    ):
        with pytest.raises(OutputError, match=message):
            make(**options)
        assert left.items() <= {**contents(), **{name: b"" for name in left if left[name] == b""}}.items()
    assert make(resume=True) == 2
    assert contents() == whole


def test_a_file_that_the_interrupted_run_did_not_write_is_not_replaced(whole):
    killed_after(2)
    Path(".t.gz.state").write_bytes(without_small(Path(".t.gz.state").read_bytes()))
    Path("new.ini").write_bytes(b"tuned")
    with pytest.raises(OutputError, match="new.ini: already exists"):
        make(resume=True)
    Path("new.ini").unlink()
    assert (make(resume=True), contents()) == (2, whole)


def without_small(state):
    record = json.loads(state.partition(b" ")[2])
    text = json.dumps(record | {"small": []}).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def test_an_error_before_a_run_begins_costs_nothing(whole):
    killed_after(2)
    with pytest.raises(CheckpointError), ResumableOutputs(["t.gz", "list"], force=True):
        raise CheckpointError("a misspelt --model")
    assert make(resume=True) == 2
    assert contents() == whole


def test_they_may_be_moved_together(here, whole, monkeypatch):
    killed_after(3)
    here.rename(here.with_name("moved"))
    monkeypatch.chdir(here.with_name("moved"))
    assert make(resume=True) == 3
    assert contents() == whole


@pytest.mark.parametrize("name", ["t.gz", "new.ini"])
def test_files_that_others_made_meanwhile_are_not_replaced(here, whole, name):
    with pytest.raises(OutputError, match=f"{name}: appeared during the run; use --force to replace it"):
        make(after=2, do=(here / name).touch)
    with pytest.raises(OutputError, match=f"{name}: already exists; use --force to replace it"):
        make(resume=True)
    assert contents()[name] == b""
    make(resume=True, force=True)
    assert contents() == whole
    for path in here.iterdir():
        path.unlink()
    killed_after(2)
    (here / name).touch()
    with pytest.raises(OutputError, match=f"{name}: already exists; use --force to replace it"):
        make(resume=True)
    make(resume=True, force=True)
    assert contents() == whole


def test_existing_files_live_until_the_new_ones_are_complete(here, whole):
    (here / "list").write_bytes(b"old")
    for options in ({}, {"resume": True}):
        with pytest.raises(OutputError, match="list: already exists; use --force to replace it"):
            make(**options)
    killed_after(BLOCKS, force=True)
    assert contents()["list"] == b"old"
    assert make(resume=True) == BLOCKS
    assert contents() == whole


def test_what_is_complete_is_left_alone_unless_an_input_is_newer(here, whole, monkeypatch):
    make()
    (here / "input").write_bytes(b"")
    os.utime("input", ns=(0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(resumable, "hold", fail)  # other runs look at the same time, or the folder is read-only
        with pytest.raises(AlreadyComplete, match="t.gz: already complete"):
            make(resume=True, inputs=("input",))
    os.utime("input")
    os.utime("t.gz", ns=(0, 0))
    with pytest.raises(OutputError, match="t.gz: already exists, and input has changed since"):
        make(resume=True, inputs=("input",))
    assert contents() == whole | {"input": b""}


KEPT = {
    "a bad line": FormatError("t", 4, "a pair", "none"),
    "a full disk": OutputError("no room"),
    "a stop": Stopped("as requested"),
    "memory": MemoryError("none is left"),
    "the system": OSError(5, "Input/output error"),
}
DISCARDED = {
    "a file that is not a table": FormatError("t", None, "a whole file", "an early end"),
    "a changed table": InputError("was changed"),
    "a damaged model": CheckpointError("no weights"),
}


@pytest.mark.parametrize("error", (KEPT | DISCARDED).values(), ids=KEPT | DISCARDED)
def test_what_was_done_stays_unless_the_input_is_at_fault(monkeypatch, whole, error):
    monkeypatch.setattr(resumable, "SECONDS_BETWEEN_SAVES", 1000)
    error.advice = ""
    with pytest.raises(type(error)) as caught:
        make(after=3, do=lambda: fail(error), advise=lambda _, counts: f"{counts['done']} blocks")
    assert caught.value is error
    if error in DISCARDED.values():
        assert (contents(), error.advice) == ({}, "")
    else:
        assert error.advice == ("3 blocks" if isinstance(error, MosesRnnError) else "")
        assert make(resume=True) == 3
        assert contents() == whole


def test_a_death_costs_what_was_not_saved_for_a_second(monkeypatch, whole):
    monkeypatch.setattr(resumable, "SECONDS_BETWEEN_SAVES", 1000)
    killed_after(4)
    assert make(resume=True) == 1
    assert contents() == whole


def test_an_optional_file_may_come_late_and_is_not_there_without_content(here):
    with pytest.raises(Stopped):
        make(after=1, do=lambda: fail(Stopped("")), rejects=False)
    (here / "t.gz.rejects").write_bytes(b"of an older table")
    with ResumableOutputs(["t.gz", "list"], optional=["t.gz.rejects"], resume=True) as files:
        assert files.begin(MANIFEST) == {"done": 1}
        files.commit()
    assert sorted(contents()) == ["list", "t.gz"]


@pytest.mark.parametrize("stopped", [False, True])
def test_beside_standard_output_files_are_whole_or_not_there(capfdbinary, stopped):
    with contextlib.suppress(Stopped), ResumableOutputs(["-", "list"], ["ini"]) as files:
        assert files.begin({}) is None
        files.append("-", b"a\n")
        files.append("list", b"b\n")
        files.save({})
        assert "list" not in contents()
        if stopped:
            raise Stopped("as requested")
        files.commit({"ini": b"c\n"})
    assert contents() == ({} if stopped else {"list": b"b\n", "ini": b"c\n"})
    assert capfdbinary.readouterr().out == b"a\n"


@pytest.mark.parametrize("names", [["t", ".t.part"], ["t", ".t.state"], ["t", "./t"], ["t", "in"], [".in.part"], ["u"]])
def test_no_file_is_another_or_an_input(here, names):
    (here / "in").write_bytes(b"in")
    (here / ".in.part").write_bytes(b"part")
    (here / ".u.state").write_bytes(b"state")
    (here / "link").symlink_to("in")
    with pytest.raises(OutputError, match="; name another output"):
        ResumableOutputs(names, force=True, inputs=("link", ".in.part", ".u.state"))
    assert contents() == {".in.part": b"part", ".u.state": b"state", "in": b"in", "link": b"in"}


@pytest.mark.parametrize("name", [".t.part", ".t.state", ".t.lock"])
def test_nothing_is_written_through_a_link(here, name):
    (here / "victim").write_bytes(b"precious")
    (here / name).symlink_to("victim")
    with pytest.raises(OutputError), ResumableOutputs(["t"]) as files:
        files.begin({})
    assert (here / "victim").read_bytes() == b"precious"
