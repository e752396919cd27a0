"""Progress of long work: a bar on a terminal, plain lines otherwise; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm import tqdm

from moses_rnn.cli.command import print_err

if TYPE_CHECKING:
    from moses_rnn.files.streams import Advanced

SECONDS_BETWEEN_LINES = 30.0


class Display:
    """Shows how much work is done, how fast, and how much time is left; nothing if `quiet`."""

    def __init__(self, unit: str, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._unit = unit
        self._started = self._last_line = time.monotonic()
        on_terminal = sys.stderr.isatty() and not quiet
        self._bar = tqdm(unit=f" {unit}", unit_scale=True, file=sys.stderr) if on_terminal else None

    def show(self, done: float, share: float | None = None, note: str = "") -> None:
        """Show how many units are done, their share of all the work if known, and a note."""
        if self._bar is not None:
            self._bar.total = done / share if share else None
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._bar.n)
        elif not self._quiet and time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            print_err(self._line(done, share, note))

    def _line(self, done: float, share: float | None, note: str) -> str:
        seconds = time.monotonic() - self._started
        left = f" ({share:.0%}, {duration(seconds * (1 - share) / share)} left)" if share else ""
        return f"{done:,.0f} {self._unit}{left}, {done / seconds:,.0f}/s" + (f", {note}" if note else "")

    def print_err(self, text: str) -> None:
        """Print a line that stays, above the bar."""
        if not self._quiet:
            with tqdm.external_write_mode(sys.stderr):
                print_err(text)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def progress(unit: str, *, quiet: bool = False) -> Iterator[Advanced]:
    """Show the progress of a piece of work."""
    display = Display(unit, quiet=quiet)
    try:
        yield display.show
    finally:
        display.close()


def duration(seconds: float) -> str:
    """Format a duration as hours, minutes and seconds."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
