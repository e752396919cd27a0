"""Builds the native core while the package is installed; without a C++ compiler the package is pure Python.

Run by hatchling (pyproject.toml), or by hand after a change: ``python native/build_hook.py [LIBRARY [FLAG…]]``. The
core is a shared library with a C interface, loaded by ctypes: it needs no Python headers and fits every Python.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIBRARY = "_native.so"
PLACE = HERE.parent / "moses_rnn" / LIBRARY
FLAGS = [
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-Wno-uninitialized",  # GCC's own headers for AVX-512 have it, by its count
    "-Wno-maybe-uninitialized",
]
# A file of each instruction set; the machine's is chosen when the library is loaded, never when it is built. What other
# files are compiled for runs on every processor of the family, whatever the compiler's default is.
BASELINE = ["-march=x86-64"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]
AVX512_BF16 = [*AVX512, "-mavx512bf16"]
FLAGS_OF = {
    "kernels_avx2.cpp": ["-mavx2", "-mfma"],
    "kernels_avx512.cpp": AVX512,
    "kernels_avx512bf16.cpp": AVX512_BF16,
    "kernels_amx.cpp": [*AVX512_BF16, "-mamx-tile", "-mamx-bf16"],
}
# libstdc++ inside, and of it only what is used: the library runs where libstdc++ or the C library is older
LINK_FLAGS = ["-shared", "-static-libstdc++", "-pthread", "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections"]
X86 = ("x86_64", "AMD64")


def compiler() -> str | None:
    """The C++ compiler: $CXX, or the usual one."""
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def sources() -> list[Path]:
    """What is compiled here: files of instruction sets only where the processor's family has them."""
    files = sorted(HERE.glob("*.cpp"))
    return [file for file in files if file.name not in FLAGS_OF or platform.machine() in X86]


def flags(file: Path) -> list[str]:
    """Of the compiler, for a source."""
    baseline = BASELINE if platform.machine() in X86 else []
    return [*FLAGS, *baseline, *FLAGS_OF.get(file.name, [])]


def build(place: Path = PLACE, extra: tuple[str, ...] = ()) -> None:
    """Compile all sources, several at once, and link them.

    Args:
        place: of the library.
        extra: further flags for the compiler.

    Raises:
        OSError: there is no compiler.
        subprocess.CalledProcessError: it fails.
    """
    cxx = compiler()
    if cxx is None:
        raise FileNotFoundError("no C++ compiler (set CXX)")
    objects = place.with_suffix(".objects")
    objects.mkdir(exist_ok=True)
    try:
        commands = [
            [cxx, *flags(file), *extra, "-c", str(file), "-o", str(objects / f"{file.stem}.o")] for file in sources()
        ]
        running = [(command, subprocess.Popen(command)) for command in commands]
        failed = [(command, process.returncode) for command, process in running if process.wait()]
        for command, code in failed:
            raise subprocess.CalledProcessError(code, command)
        new = objects / LIBRARY  # put in its place when it is whole: a process may have the old one loaded
        made = [str(objects / f"{file.stem}.o") for file in sources()]
        subprocess.run([cxx, *made, *LINK_FLAGS, *extra, "-o", str(new)], check=True)
        new.replace(place)
    finally:
        shutil.rmtree(objects, ignore_errors=True)


def platform_tag() -> str:
    """Of the wheel: any Python 3, this platform."""
    return f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    pass
else:

    class NativeCore(BuildHookInterface[Any]):
        """Adds the library to a wheel, if it can be built; MOSES_RNN_BUILD_NATIVE=0 does without, =1 insists."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """See hatchling; `version` is "standard" or "editable"."""
            wanted = os.environ.get("MOSES_RNN_BUILD_NATIVE", "")
            if self.target_name != "wheel" or wanted == "0":
                return
            try:
                build()
            except (OSError, subprocess.CalledProcessError) as error:
                if wanted == "1":
                    raise
                self.app.display_warning(f"moses-rnn: without its native core, which could not be built: {error}")
                return
            if version == "standard":  # an editable one has it where it was built
                build_data["force_include"][str(PLACE)] = f"moses_rnn/{LIBRARY}"
            build_data["pure_python"] = False
            build_data["tag"] = platform_tag()


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:2]] or [PLACE]
    build(*given, extra=tuple(sys.argv[2:]))
    print(*given)
