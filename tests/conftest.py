"""Things that tests of several folders need: a small real table, a small model of it, the commands as processes."""

import ctypes
import gzip
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from moses_rnn.native import INSTRUCTION_SETS, SWITCH, NativeCore, native_core
from tests.commands import ROOT, run

# Tests are not timed: machines are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Tiny networks gain nothing from threads, and threads that spin on shared cores cost everyone; commands inherit this.
os.environ["OMP_NUM_THREADS"] = "1"

# `make test` is make too: what it hands down would have another make print the folders that it enters.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

EXAMPLES = ROOT / "examples"
SHARED = Path(os.environ.get("MOSES_RNN_SHARED") or ROOT.parent / "shared")  # data too large for the repository
TINY = ["--hidden-size", "8", "--embedding-size", "6", "--shortlist", "60"]

LEARNED = ["--max-epochs", "1", "--learning-rate", "0.02", "--batch-size", "16"]  # in a second: more than unigrams know


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """The first 3 000 lines of the example table."""
    path = tmp_path_factory.mktemp("table") / "phrase-table.gz"
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        path.write_bytes(gzip.compress(b"".join(itertools.islice(lines, 3000))))
    return path


@pytest.fixture(scope="session")
def model(table):
    """A tiny model of it, beside it."""
    run("train", table, *TINY, *LEARNED, "--quiet")
    return table.with_name("phrase-table.rnn-model")


@pytest.fixture(scope="session")
def inverse_model(table):
    """The same for p(source | target)."""
    run("train", table, *TINY, *LEARNED, "--quiet", "--inverse")
    return table.with_name("phrase-table.rnn-inverse-model")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of tiny models; see `save_models`."""
    from tests.score.saved_models import save_models

    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def software_tiles(tmp_path_factory):
    """The native core with kernels for AMX whose tile instructions are replaced by what they do; its own library."""
    core = native_core()
    if core is None or core.instructions < INSTRUCTION_SETS.index("avx512bf16"):
        pytest.skip("what stands around tiles needs the native core, and AVX-512 with bf16")
    library = tmp_path_factory.mktemp("tiles") / "tiles.so"
    build = [sys.executable, ROOT / "native" / "build_hook.py", library, "-DMOSES_RNN_TILES_IN_SOFTWARE", "-O1"]
    subprocess.run(build, check=True, capture_output=True)
    return NativeCore(ctypes.CDLL(str(library)), INSTRUCTION_SETS.index("amx"))


@pytest.fixture(scope="session")
def multi30k():
    """The folder of a real Moses system; skips without it.

    It is ``data/multi30k`` within the folder that the environment variable MOSES_RNN_SHARED names, by default within
    ``shared`` beside the checkout.
    """
    folder = SHARED / "data" / "multi30k"
    if not folder.is_dir():
        pytest.skip(f"the Multi30k system is not at {folder}; MOSES_RNN_SHARED may name another place")
    return folder


@pytest.fixture(scope="session")
def moses_root():
    """Where Moses was built; skips without MOSES_ROOT."""
    root = os.environ.get("MOSES_ROOT")
    if not root:
        pytest.skip("MOSES_ROOT is not set: no Moses to run")
    if not (Path(root) / "bin" / "moses").exists():
        pytest.fail(f"MOSES_ROOT={root} has no bin/moses")
    return Path(root)


@pytest.fixture(scope="module", params=["native core", "python"])
def either_path(request):
    """The tests of a module run twice: by the native core, where it was built, and without it.

    Of a module's scope, since hypothesis wants nothing that is made for each test.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setenv(SWITCH, "0")
        elif native_core() is None:
            pytest.skip("the native core was not built, or is switched off")
        yield
