"""A table's lines with new ones at their places, in memory that does not grow with the table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from moses_rnn.formats.lexical_weights import counts_of
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import TableLine
from moses_rnn.translation.extension.new_lines import OTHERS, NewLine
from moses_rnn.translation.extension.sources import PARTED, Wanted, is_regular, normalised
from moses_rnn.translation.extension.survey import key_of

WINDOW = 2048  # lines


class FewTargets:
    """Chooses the sources of a table that have few targets.

    Args:
        fewer_than: targets; 0: no source is chosen.
        longest: most words of a source.
        apart: targets on lines that do not stand with the others of their source.
        known: words that the network reads; a source with others is not chosen, but counted as `unknown`.
    """

    def __init__(
        self, fewer_than: int, longest: int, apart: Mapping[bytes, Collection[bytes]], known: Collection[bytes]
    ) -> None:
        self._fewer_than, self._longest, self._apart, self._known = fewer_than, longest, apart, known
        self.unknown = 0

    def __call__(self, lines: Iterable[TableLine]) -> Iterator[Wanted]:
        """Those sources whose lines, one after the other, are all given."""
        if not self._fewer_than:
            return
        for source, of_source in itertools.groupby(filter(is_regular, lines), lambda line: line.source):
            members = list(of_source)
            targets = {normalised(line.target) for line in members}
            targets.update(self._apart.get(source, ()))
            if source and len(targets) < self._fewer_than and self._is_readable(source):
                counts = counts_of(members[0])
                yield Wanted(source, frozenset(targets), counts[1] if counts else b"0")

    def _is_readable(self, source: bytes) -> bool:
        """Whether it is short, and of words that are known."""
        of_source = words(source)
        is_known = all(word in self._known for word in of_source)
        self.unknown += not is_known
        return is_known and len(of_source) <= self._longest


def windows(lines: Iterable[TableLine], size: int = WINDOW) -> Iterator[tuple[list[TableLine], list[TableLine]]]:
    """The lines, some at a time, cut where the source changes; and of them those whose source is not cut.

    A source of `size` lines and more may be cut, and is then left out of the second list.
    """
    window: list[TableLine] = []
    cut: bytes | None = None
    for line in lines:
        between = bool(window) and line.source != window[-1].source
        if (between and len(window) >= size) or len(window) >= 2 * size:
            last = cut if between else line.source
            yield window, [member for member in window if member.source not in (cut, last)]
            window, cut = [], None if between else line.source
        window.append(line)
    yield window, [member for member in window if member.source != cut]


class Merger:
    """Puts new lines among those of a table.

    Args:
        few: chooses sources of the table.
        lacking: source phrases that it lacks.
        make_lines: makes new lines for sources, in the order of their bytes.
        provenance: whether the old lines get the column that says that they are not new.
        size: of a window.
    """

    def __init__(
        self,
        few: FewTargets,
        lacking: Iterable[bytes],
        make_lines: Callable[[Sequence[Wanted]], list[NewLine]],
        *,
        provenance: bool,
        size: int = WINDOW,
    ) -> None:
        self._few, self._make_lines, self._provenance, self._size = few, make_lines, provenance, size
        # The last one first: they are taken from the end
        self._lacking = sorted(lacking, key=lambda source: source + PARTED, reverse=True)

    def __call__(self, lines: Iterable[TableLine]) -> Iterator[tuple[int, bytes]]:
        """All lines of the new table, some at a time, with the number of old ones that were read so far.

        Args:
            lines: of the table, in the order of their bytes.
        """
        read, unended = 0, b""
        for window, whole in windows(lines, self._size):
            read += len(window)
            new = self._make_lines(sorted([*self._few(whole), *self._lacking_before(window)], key=lambda w: w.key))
            text = unended + self._merged(window, new)
            unended = b"" if text.endswith(b"\n") or not text else b"\n"
            yield read, text
        if new := self._make_lines(list(self._rest())):
            yield read, unended + b"".join(line.line for line in new)

    def _lacking_before(self, window: Sequence[TableLine]) -> Iterator[Wanted]:
        """The lacking sources whose lines come before the last one of a window."""
        last = key_of(window[-1]) if window else b""
        while self._lacking and self._lacking[-1] + PARTED < last:
            yield Wanted(self._lacking.pop())

    def _rest(self) -> Iterator[Wanted]:
        while self._lacking:
            yield Wanted(self._lacking.pop())

    def _merged(self, old: Sequence[TableLine], new: Sequence[NewLine]) -> bytes:
        """Both in the order of their bytes; of equal keys the old line first."""
        keyed = [(key_of(line), self._old(line)) for line in old]
        keyed += [(line.key, line.line) for line in new]
        keyed.sort(key=lambda pair: pair[0])
        return b"".join(
            line if line.endswith(b"\n") or i == len(keyed) - 1 else line + b"\n" for i, (_, line) in enumerate(keyed)
        )

    def _old(self, line: TableLine) -> bytes:
        return line.with_scores(OTHERS) if self._provenance else line.line
