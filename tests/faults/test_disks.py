"""Faults 25, 26 and 22: full, read-only and forbidden places."""

import contextlib
import os
import re
import shutil
import subprocess

import pytest

from tests.commands import program, run
from tests.faults.conftest import FULL

(COMMAND,) = program("score")
# Root may do everything; without these two capabilities it is refused what others are.
ORDINARY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def mounted(place, options):
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here (not root?): {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.timeout(6000)
def test_a_full_disk_costs_nothing_that_was_done(folder):
    size = len(folder.whole)
    sizes = range(0, size + 300_000, 4096 * 12 if FULL else 4096 * 48)
    place = folder.path / "small"
    refused = 0
    for number in sizes:
        with mounted(place, f"size={max(number, 4096)}"):
            output = place / "out.gz"
            with contextlib.suppress(OSError):
                output.write_bytes(b"old")
            options = ["t.gz", "--model", "model", "-o", output, "--threads", "1", "-q", "--force"]
            code, messages = folder.score(*options)
            if code == 0:
                assert output.read_bytes() == folder.whole
                continue
            refused += 1
            assert (code, "No space left on device" in messages, "Traceback" in messages) == (1, True, False), messages
            assert not output.exists() or output.read_bytes() in (b"old", b"")
            subprocess.run(["mount", "-o", "remount,size=20m", place], check=True)
            code, messages = folder.score(*options, "--resume")
            assert code == 0, messages
            assert output.read_bytes() == folder.whole
    assert refused > 2
    print(f"{refused} of {len(sizes)} sizes were too small; all went on to the same bytes")


@pytest.fixture(scope="module")
def written(tmp_path_factory, table, model):
    here = tmp_path_factory.mktemp("written")
    run("score", table, "--model", model, "-o", here / "t", "-q")
    return here


def test_a_full_disk_names_the_bytes_wanted_and_free(written, tmp_path):
    place = tmp_path / "small"
    with mounted(place, "size=4096,nr_inodes=9"):
        output = place / "old.tsv"
        output.write_bytes(b"old")
        done = run("analyse", "prune", "t", "--keep", 0.9, "-o", output, "--force", cwd=written, check=False)
        assert done.returncode == 1, done.stderr
        found = re.search(
            r"old.tsv: cannot be written: No space left on device \(([\d,]+) bytes wanted, 0 free\)", done.stderr
        )
        assert found, done.stderr
        assert int(found.group(1).replace(",", "")) > 100
        assert [path.name for path in place.iterdir()] == ["old.tsv"]
        assert output.read_bytes() == b"old"


def test_a_full_disk_leaves_all_outputs_or_none(written, tmp_path):
    place = tmp_path / "small"
    size = (written / "t").stat().st_size // 4096 * 4096 + 4096
    with mounted(place, f"size={size + 4096}"):
        done = run("analyse", "prune", "t", "--keep", 1, "-o", place / "new", cwd=written, check=False)
        assert (done.returncode, sorted(place.iterdir())) == (0, [place / "new", place / "new.json"]), done.stderr
    with mounted(place, f"size={size}"):
        done = run("analyse", "prune", "t", "--keep", 1, "-o", place / "new", cwd=written, check=False)
        assert "new.json: cannot be written: No space left on device (" in done.stderr
        assert (done.returncode, [*place.iterdir()]) == (1, [])


def test_a_file_size_limit_is_a_full_disk(folder):
    line = f"ulimit -f {len(folder.whole) // 2048}; {COMMAND} t.gz --model model -o out.gz --threads 1 -q"
    done = subprocess.run(["bash", "-c", line], cwd=folder.path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "out.gz: cannot be written: File too large (" in done.stderr
    assert " lines are already scored and saved. Correct the cause and continue with --resume." in done.stderr
    assert "out.gz" not in folder.names()
    assert folder.score("t.gz", "--model", "model", "-o", "out.gz", "--threads", "1", "-q", "--resume")[0] == 0
    assert (folder.path / "out.gz").read_bytes() == folder.whole


def ordinary(folder, *options):
    """Score as somebody who may not write and read everything."""
    if ORDINARY and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv may do everything")
    command = [*ORDINARY, COMMAND, "t.gz", *options]
    return subprocess.run(command, cwd=folder.path, capture_output=True, text=True, check=False)


def test_a_read_only_folder_is_refused(folder):
    (folder.path / "closed").mkdir(mode=0o555)
    done = ordinary(folder, "--model", "model", "-o", "closed/out.gz")
    assert done.returncode == 1
    assert "closed/out.gz: cannot be written: Permission denied" in done.stderr


def test_a_file_that_may_not_be_read_is_refused(folder):
    (folder.path / "t.gz").chmod(0)
    done = ordinary(folder, "--model", "model")
    assert (done.returncode, "t.gz: cannot be read: Permission denied" in done.stderr) == (3, True), done.stderr
