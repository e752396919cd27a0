"""Counts the files and functions that one run of a command enters: how much a newcomer has to read.

    python benchmarks/walk.py [--list] score TABLE --model MODEL …
    python benchmarks/walk.py [--list] train TABLE …

The command runs in this process with a profiler. The figures are the functions of moses_rnn that ran in any thread,
their source lines (nested functions once), and how often the file changes if each function is read when first called.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import itertools
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import moses_rnn

PACKAGE = Path(moses_rnn.__file__).parent


def functions_of(name: str, words: list[str]) -> list[CodeType]:
    """Run a command; return the package's functions that ran, in the order of their first calls."""
    main = importlib.import_module(f"moses_rnn.cli.{name}").main
    entered: dict[int, CodeType] = {}  # by identity, because equal code in two files is two functions

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.setdefault(id(frame.f_code), frame.f_code)

    sys.argv = [f"moses-rnn {name}", *words]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.suppress(SystemExit):
            main(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = [code for code in list(entered.values()) if Path(code.co_filename).is_relative_to(PACKAGE)]
    # Neither bodies of modules and classes, nor lambdas and comprehensions, which are read in passing
    return [code for code in ours if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")]


def lines_of(code: CodeType) -> set[tuple[str, int]]:
    """Return the source lines of a function, with decorators and docstring."""
    source, first = inspect.getsourcelines(code)
    return {(code.co_filename, first + i) for i in range(len(source))}


def main() -> None:
    """Run a command and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the files and functions too")
    parser.add_argument("command", help="as in moses-rnn COMMAND")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    functions = functions_of(given.command, given.words)
    files: dict[str, list[CodeType]] = {}
    for code in functions:
        files.setdefault(code.co_filename, []).append(code)
    changes = sum(a.co_filename != b.co_filename for a, b in itertools.pairwise(functions))
    back = changes - (len(files) - 1)  # to a file that was left before
    lines = set().union(*map(lines_of, functions))
    print(f"{'files':>8}{'functions':>12}{'their lines':>14}{'changes of file':>18}{'of them back':>15}")
    print(f"{len(files):>8,}{len(functions):>12,}{len(lines):>14,}{changes:>18,}{back:>15,}")
    for file, inside in files.items() if given.list else ():
        print(f"\n{Path(file).relative_to(PACKAGE)}: {len(set().union(*map(lines_of, inside))):,} lines")
        for code in inside:
            print(f"  {code.co_firstlineno:>4} {code.co_qualname}")


if __name__ == "__main__":
    main()
