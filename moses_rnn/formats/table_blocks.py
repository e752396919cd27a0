"""Many lines of a phrase table at once: what `phrase_table` does line by line, for blocks (bytes of whole lines).

Nearly all lines of a table are regular. Those are found and vouched for all at once, by the native core or else by
`regular_lines`; every other line is parsed for itself. No Python runs for each regular line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.formats import regular_lines
from moses_rnn.formats.native_table import native_table
from moses_rnn.formats.numbers import Floats, rows_as_text
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm, alignment_field
from moses_rnn.formats.phrase_table import LineParser, Places, Rejected, TableLine
from moses_rnn.formats.text_phrases import AlignedPhrases, TextPhrases

Ints = npt.NDArray[np.int64]

END = len(Places._fields)  # the column of a line's end, behind those of its places


@dataclass(frozen=True)
class TableLines:
    """Sound lines laid end to end, and where their fields stand.

    `places` has a row for each line: its `Places`, then its end, as bytes from the beginning of `text`. `numbers` are
    those of the lines in the file, from 1. `irregular` are the lines that may be odd, parsed.
    """

    text: bytes
    places: Ints
    numbers: Ints
    irregular: tuple[TableLine, ...] = ()
    form: PhraseForm = PLAIN

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, lines: slice) -> TableLines:
        """Some of the lines, one after the other."""
        first, last, _ = lines.indices(len(self))
        if last <= first:
            return TableLines(b"", self.places[:0], self.numbers[:0], form=self.form)
        begin, end = self._begin_of(first), int(self.places[last - 1, END])
        numbers = self.numbers[first:last]
        low, high = numbers[0], numbers[-1]
        irregular = tuple(line for line in self.irregular if low <= line.number <= high)
        return TableLines(self.text[begin:end], self.places[first:last] - begin, numbers, irregular, self.form)

    def _begin_of(self, line: int) -> int:
        return int(self.places[line - 1, END]) if line else 0

    @classmethod
    def joined(cls, parts: Sequence[TableLines]) -> TableLines:
        """The lines of one part after those of the other."""
        if len(parts) == 1:
            return parts[0]
        begins = np.cumsum([0, *(len(part.text) for part in parts[:-1])])
        return cls(
            b"".join([part.text for part in parts]),
            np.concatenate([part.places + begin for part, begin in zip(parts, begins, strict=True)]),
            np.concatenate([part.numbers for part in parts]),
            tuple(line for part in parts for line in part.irregular),
            parts[0].form,
        )

    @property
    def line_ends(self) -> Ints:
        """Where each line ends; bytes from the beginning of `text`."""
        return self.places[:, END]

    def after(self, number: int) -> TableLines:
        """The lines of higher numbers."""
        return self[int(np.searchsorted(self.numbers, number, side="right")) :]

    def source(self, line: int) -> bytes:
        """A source phrase."""
        begin, end = self.places[line, :2]
        return self.text[begin:end]

    def phrases(self) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """All source phrases and all target phrases, as a network reads them (see `PhraseForm`).

        Sources of plain words know their alignments.
        """
        sources, targets = (self._texts(first, first + 1) for first in (0, 2))
        if self.form.is_plain:
            return AlignedPhrases(sources, self._alignments), targets
        fields = zip(sources, targets, self._alignments(), strict=True)
        read = [self.form.read(source, target, alignment) for source, target, alignment in fields]
        return [source for source, _ in read], [target for _, target in read]

    def _texts(self, begins: int, ends: int) -> TextPhrases:
        """What stands between two columns of the places."""
        return TextPhrases(self.text, self.places[:, begins], self.places[:, ends])

    def _alignments(self) -> list[bytes]:
        return [alignment_field(rest, 0) for rest in self._texts(END - 1, END)]

    def pairs(self, *, inverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """What is read and what is predicted from it: source and target phrases, or the other way round."""
        sources, targets = self.phrases()
        return zip(targets, sources, strict=True) if inverse else zip(sources, targets, strict=True)

    def with_scores(self, added: Sequence[bytes]) -> bytes:
        """The lines with further scores, a blank before each, behind each one's own; every other byte as it came."""
        cuts = self.places[:, Places._fields.index("scores_end")].tolist()
        text = self.text
        pieces = [b""] * (2 * len(cuts) + 1)
        pieces[::2] = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        pieces[1::2] = added
        return b"".join(pieces)

    def with_numbers(self, values: Floats) -> bytes:
        """The same with numbers of 9 significant digits; lines × columns."""
        table = native_table()
        if table is None:
            return self.with_scores(rows_as_text(values))
        return table.add_numbers(self.text, self.places, values)


def parse_blocks(
    blocks: Iterable[bytes],
    name: str,
    rejected: Rejected | None = None,
    form: PhraseForm = PLAIN,
    lines_before: int = 0,
) -> Iterator[TableLines]:
    """Parse a table of which each block holds whole lines, behind so many others; see `LineParser`.

    Raises:
        FormatError: at the first line that is not one of such a table, if `rejected` is None; the lines before it are
            given out first.
    """
    parser = LineParser(name, rejected, form)
    for text in filter(None, blocks):
        block = _Block(text, lines_before + 1)
        try:
            block.parse(parser)
        finally:
            if sound := block.sound(parser.form):
                yield sound
        lines_before += len(block.ends)


class _Block:
    """A block that is being parsed."""

    def __init__(self, text: bytes, first_number: int) -> None:
        self._text = text
        self._lines = native_table() or regular_lines
        self.ends = self._lines.line_ends(text)
        self._begins = np.append(0, self.ends[:-1])
        self._first_number = first_number
        self._places = np.zeros((len(self.ends), END + 1), np.int64)
        self._places[:, END] = self.ends
        self._regular = np.zeros(len(self.ends), np.bool_)
        self._irregular: list[TableLine] = []
        self._done = 0  # lines that were looked at

    def parse(self, parser: LineParser) -> None:
        """Parse all lines, those that are not regular one by one."""
        while not parser.columns and self._done < len(self.ends):  # until the number of scores is known
            self._parse_line(self._done, parser)
            self._done += 1
        if parser.form.is_plain:
            lines = self._text, self.ends, self._done
            self._places, self._regular = self._lines.find_regular(*lines, parser.columns)
        for i in (np.flatnonzero(~self._regular[self._done :]) + self._done).tolist():
            self._done = i
            self._parse_line(i, parser)
        self._done = len(self.ends)

    def _parse_line(self, i: int, parser: LineParser) -> None:
        line = parser.parse(self._text[self._begins[i] : self.ends[i]], self._first_number + i)
        if line is not None:
            self._irregular.append(line)

    def sound(self, form: PhraseForm) -> TableLines | None:
        """The lines that are sound so far; None without any."""
        sound = self._regular.copy()
        sound[self._done :] = False
        if self._irregular:
            rows = np.array([line.number for line in self._irregular]) - self._first_number
            places = np.array([line.places for line in self._irregular])
            self._places[rows, :END] = places + self._begins[rows, None]
            sound[rows] = True
        numbers = self._first_number + np.arange(len(self.ends))
        lines = TableLines(self._text, self._places, numbers, tuple(self._irregular), form)
        if sound.all():
            return lines
        edges = np.flatnonzero(np.diff(sound, prepend=False, append=False)).tolist()
        runs = [lines[first:last] for first, last in zip(edges[::2], edges[1::2], strict=True)]
        return TableLines.joined(runs) if runs else None
