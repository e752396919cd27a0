"""Dependency trees as CoNLL-U has them: a word a line in ten columns, of which ID, FORM, HEAD and DEPREL count here.

Lines of several words (``3-4``) and of words that are not there (``3.1``) are passed over, as are comments. Blanks
within a word, which the format allows, become ``_``: a text has one word between blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, shown

COLUMNS = 10
NO_WORD = re.compile(rb"[0-9]+[-.][0-9]+")
NUMBER = re.compile(rb"[0-9]{1,9}")


@dataclass(frozen=True)
class Dependencies:
    """A sentence, each of whose words depends on another one or on the root."""

    words: tuple[bytes, ...]
    heads: tuple[int, ...]  # of each word, from 1; 0 is the root
    labels: tuple[bytes, ...]  # of each word, what it is to its head


def read_conllu(lines: Iterable[bytes], name: str) -> Iterator[Dependencies]:
    """The sentences of a treebank.

    Args:
        lines: with or without their ends; a blank one ends a sentence.
        name: of the file, for messages.

    Raises:
        FormatError: a line is no word with a head, or heads do not lead to the root.
    """
    sentence = _Sentence(name)
    for number, line in enumerate(lines, 1):
        text = line.rstrip(b"\r\n")
        if not text.strip():
            yield from sentence.end()
            sentence = _Sentence(name)
        elif not text.startswith(b"#"):
            sentence.add(text, number)
    yield from sentence.end()


@dataclass
class _Sentence:
    """The sentence that is being read."""

    name: str
    numbers: list[int] = field(default_factory=list)  # of the words' lines
    words: list[bytes] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    labels: list[bytes] = field(default_factory=list)

    def add(self, line: bytes, number: int) -> None:
        """Read a line that is neither blank nor a comment."""
        columns = line.split(b"\t")
        if len(columns) != COLUMNS:
            found = f"{len(columns)}: {shown(line)}"
            raise FormatError(self.name, number, f"{COLUMNS} columns parted by tabs", found)
        if NO_WORD.fullmatch(columns[0]):
            return
        form, head, label = columns[1].strip(b" "), columns[6], columns[7].strip(b" ")
        wanted = len(self.words) + 1
        for sound, column, expected in (
            (columns[0] == b"%d" % wanted, 0, f"word {wanted} in column 1"),
            (form, 1, "a word in column 2"),
            (NUMBER.fullmatch(head), 6, "the number of a head in column 7"),
            (label and b" " not in label, 7, "a relation without blanks in column 8"),
        ):
            if not sound:
                raise FormatError(self.name, number, expected, shown(columns[column]))
        self.numbers.append(number)
        self.words.append(form.replace(b" ", b"_"))
        self.heads.append(int(head))
        self.labels.append(label)

    def end(self) -> Iterator[Dependencies]:
        """The sentence, if it has words."""
        count = len(self.words)
        for number, head in zip(self.numbers, self.heads, strict=True):
            if head > count:
                raise FormatError(self.name, number, f"a head from 0 to {count} in column 7", str(head))
        self._check_circles()
        if count:
            yield Dependencies(tuple(self.words), tuple(self.heads), tuple(self.labels))

    def _check_circles(self) -> None:
        rooted = {0}
        for word, number in enumerate(self.numbers, 1):
            path: dict[int, None] = {}
            while word not in rooted and word not in path:
                path[word] = None
                word = self.heads[word - 1]  # noqa: PLW2901 - the way up
            if word in path:
                found = f"a circle through word {word}"
                raise FormatError(self.name, number, "heads that lead to the root", found)
            rooted.update(path)


def format_conllu(sentence: Dependencies) -> bytes:
    """The lines of a sentence and the blank one behind it; what nobody knows is ``_``."""
    rows = enumerate(zip(sentence.words, sentence.heads, sentence.labels, strict=True), 1)
    return b"".join(b"%d\t%b\t_\t_\t_\t_\t%d\t%b\t_\t_\n" % (i, *row) for i, row in rows) + b"\n"


def format_factors(sentence: Dependencies) -> bytes:
    """``word|label`` of each word, as Moses reads factors, without the line's end; ``|`` is escaped as Moses does."""
    pairs = zip(sentence.words, sentence.labels, strict=True)
    return b" ".join(b"|".join(part.replace(b"|", b"&#124;") for part in pair) for pair in pairs)
