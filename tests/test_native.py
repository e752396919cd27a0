import re
import runpy
import subprocess
import sys

import pytest

from moses_rnn.errors import InputError
from moses_rnn.native import INSTRUCTION_SETS, LIBRARY, SWITCH, NativeCore, native_core
from tests.commands import ROOT

needs_native = pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")


def test_it_can_be_switched_off_but_not_invented(monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    assert native_core() is None
    for name in ("sse9", ""):
        monkeypatch.setenv(SWITCH, name)
        with pytest.raises(InputError, match=rf"MOSES_RNN_NATIVE: expected 0 or one of portable, .*, found '{name}'"):
            native_core()


@needs_native
def test_instruction_sets_can_be_held_back(monkeypatch):
    used = []
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv(SWITCH, name)
        core = native_core()
        used.append(core.instructions)
        assert str(core) == f"native core, {INSTRUCTION_SETS[core.instructions]}"
    assert used == sorted(used)
    assert used[0] == 0


@pytest.mark.parametrize("name", INSTRUCTION_SETS)
def test_what_an_instruction_set_multiplies_in(name):
    core = NativeCore(None, INSTRUCTION_SETS.index(name))
    of_bf16 = name in ("avx512bf16", "amx")
    assert [core.multiplies(kind) for kind in ("fp32", "bf16", "fp64")] == [True, of_bf16, False]


def test_a_library_that_is_none_is_passed_over(tmp_path):
    """Asked in a process of its own: a library is loaded once."""
    (tmp_path / "_native.so").write_bytes(b"no library")
    program = (
        "from pathlib import Path\n"
        "from moses_rnn import native\n"
        f"native.LIBRARY = Path({str(tmp_path / '_native.so')!r})\n"
        "assert native.native_core() is None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_a_compiler_building_says_so(tmp_path):
    before = LIBRARY.stat().st_mtime_ns if LIBRARY.exists() else None
    command = [sys.executable, str(ROOT / "native" / "build_hook.py")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "no C++ compiler (set CXX)" in done.stderr
    assert before == (LIBRARY.stat().st_mtime_ns if LIBRARY.exists() else None)


@pytest.mark.release
def test_no_function_for_an_instruction_set_stands_in_for_one_of_another_file(tmp_path):
    """The linker keeps one of several weak functions; from a file of kernels, it would stop processors that have less."""
    hook = runpy.run_path(str(ROOT / "native" / "build_hook.py"))
    if hook["compiler"]() is None:
        pytest.skip("there is no C++ compiler")
    for file in hook["sources"]():
        if file.name in hook["FLAGS_OF"]:
            made = tmp_path / f"{file.stem}.o"
            subprocess.run([hook["compiler"](), *hook["flags"](file), "-c", file, "-o", made], check=True)
            symbols = subprocess.run(["nm", "--defined-only", made], check=True, capture_output=True, text=True).stdout
            assert "kernels" in symbols
            assert not re.findall(r" [WVu] .*", symbols)
