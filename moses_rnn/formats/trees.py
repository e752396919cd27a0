"""Trees of phrases: bracketed as treebanks have them, linearised as a network writes them (Vinyals et al. 2015, §2–3).

Bracketed: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))``. Linearised, depth-first, with XX for every word:
``(S (NP XX XX )NP (VP XX )VP XX )S``; its tokens are parted by blanks, the words are another text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moses_rnn.errors import FormatError, shown
from moses_rnn.formats.alignments import broken

WORD = b"XX"
PIECE = re.compile(rb"[()]|[^() \t]+")
PARENTHESES = ((b"(", b"-LRB-"), (b")", b"-RRB-"))  # in a word, and what stands for them in a bracketed tree

Span = tuple[bytes, int, int]  # label, first word, the one behind the last, from 0


@dataclass(frozen=True)
class Tree:
    """The phrases of a sentence, perhaps in several trees or in none.

    `tokens` are balanced, have as many XX as there are words, and no bracket without words.
    """

    words: tuple[bytes, ...]
    tags: tuple[bytes, ...]  # of each word its part of speech; XX where nobody knows it
    tokens: tuple[bytes, ...]


class Rebuilt(NamedTuple):
    """What became of a network's output."""

    tree: Tree
    malformed: bool  # it was not one tree over the words


def read_trees(lines: Iterable[bytes], name: str) -> Iterator[Tree]:
    """The trees of a treebank, each on one line or on several.

    A bracket without a label around a whole tree, as the Penn Treebank has it, counts for nothing.

    Args:
        lines: with or without their ends.
        name: of the file, for messages.

    Raises:
        FormatError: a line does not go on with a tree, or the last tree has no end.
    """
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        try:
            yield from reader.read(line.rstrip(b"\r\n"), number)
        except ValueError as error:
            raise broken(name, number, error) from error
    if reader.open:
        expected = "as many ) as ( in the tree that begins here"
        raise FormatError(name, reader.begins, expected, "the end of the file")


@dataclass
class _Bracket:
    """A bracket that is not closed yet: of phrases, or of a tag and its word."""

    label: bytes | None = None
    word: bytes | None = None
    of_phrases: bool = False


@dataclass
class _Reader:
    """The tree that is being read."""

    begins: int = 0  # on this line
    open: list[_Bracket] = field(default_factory=list)
    words: list[bytes] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    tokens: list[bytes] = field(default_factory=list)

    def read(self, line: bytes, number: int) -> Iterator[Tree]:
        """The trees that end on a line.

        Raises:
            ValueError: it does not go on with a tree; as "expected …, found …".
        """
        for piece in PIECE.findall(line):
            if not self.open:
                self.begins = number
            self._add(piece)
            if not self.open:
                yield Tree(tuple(self.words), tuple(self.tags), tuple(self.tokens))
                self.words, self.tags, self.tokens = [], [], []

    def _add(self, piece: bytes) -> None:
        if piece == b"(":
            self._begin()
        elif not self.open:
            raise ValueError(f"expected ( where a tree begins, found {shown(piece)}")
        elif piece == b")":
            self._end(self.open.pop())
        else:
            self._name(self.open[-1], piece)

    def _begin(self) -> None:
        if self.open and not self.open[-1].of_phrases:
            above = self.open[-1]
            if above.word is not None:
                raise ValueError("expected ) behind a tag and its word, found '('")
            if above.label is not None:
                self.tokens.append(b"(" + above.label)
            elif len(self.open) > 1:
                raise ValueError("expected a label behind (, found '('")
            above.of_phrases = True
        self.open.append(_Bracket())

    def _name(self, bracket: _Bracket, piece: bytes) -> None:
        if bracket.of_phrases or bracket.word is not None:
            raise ValueError(f"expected each word in a bracket with its tag, such as (NN dog), found {shown(piece)}")
        if bracket.label is None:
            bracket.label = piece
        else:
            bracket.word = _unescape(piece)

    def _end(self, bracket: _Bracket) -> None:
        if bracket.word is not None and bracket.label is not None:
            self.words.append(bracket.word)
            self.tags.append(bracket.label)
            self.tokens.append(WORD)
        elif bracket.of_phrases and bracket.label is not None:
            self.tokens.append(b")" + bracket.label)
        elif self.open or bracket.label is not None:  # of all brackets, the outermost alone may have neither
            raise ValueError("expected a word or brackets before ), found ')'")


def _unescape(word: bytes) -> bytes:
    for parenthesis, name in PARENTHESES:
        word = word.replace(name, parenthesis)
    return word


def _escape(word: bytes) -> bytes:
    for parenthesis, name in PARENTHESES:
        word = word.replace(parenthesis, name)
    return word


def format_tree(tree: Tree) -> bytes:
    """A tree on a line, bracketed, without the line's end; several share a bracket without a label."""
    leaves = iter(zip(tree.tags, tree.words, strict=True))
    pieces = []
    for token in tree.tokens:
        if token == WORD:
            tag, word = next(leaves)
            pieces.append(b" (" + tag + b" " + _escape(word) + b")")
        else:
            pieces.append(b" " + token if _opens(token) else b")")
    text = b"".join(pieces)[1:]
    return text if count_trees(tree.tokens) == 1 else b"( " + text + b")"


def _opens(token: bytes) -> bool:
    return token[:1] == b"("


def _closes(token: bytes) -> bool:
    return token[:1] == b")"


def count_trees(tokens: Iterable[bytes]) -> int:
    """How many brackets and words of a linearised sentence are within no bracket."""
    depth = count = 0
    for token in tokens:
        count += not depth and not _closes(token)
        depth += _opens(token) - _closes(token)
    return count


def rebuild(written: Sequence[bytes], words: Sequence[bytes]) -> Rebuilt:
    """Make a tree of what a network wrote, whatever that is.

    In this order: tokens of no tree are dropped; a closer closes the innermost open bracket whatever its label, or is
    dropped if none is open; open brackets are closed at the end; surplus XX are dropped from the end, missing ones put
    before the last closer; brackets without words are dropped. Several trees stay as they are. All but one tree is
    malformed, and so is all that had to be changed.

    Args:
        written: tokens.
        words: of the sentence.
    """
    tokens = _without_empty(_with_words(_balanced(written), len(words)))
    tree = Tree(tuple(words), (WORD,) * len(words), tuple(tokens))
    return Rebuilt(tree, tokens != list(written) or count_trees(tokens) > 1)


def _balanced(written: Iterable[bytes]) -> list[bytes]:
    tokens, labels = [], []
    for token in written:
        if token == WORD:
            tokens.append(token)
        elif _opens(token) and len(token) > 1:
            tokens.append(token)
            labels.append(token[1:])
        elif _closes(token) and labels:
            tokens.append(b")" + labels.pop())
    return tokens + [b")" + label for label in reversed(labels)]


def _with_words(tokens: list[bytes], count: int) -> list[bytes]:
    places = [i for i, token in enumerate(tokens) if token == WORD]
    if len(places) > count:
        surplus = {*places[count:]}
        return [token for i, token in enumerate(tokens) if i not in surplus]
    closers = [i for i, token in enumerate(tokens) if _closes(token)]
    last = closers[-1] if closers else len(tokens)
    return tokens[:last] + [WORD] * (count - len(places)) + tokens[last:]


def _without_empty(tokens: Iterable[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    for token in tokens:
        if _closes(token) and _opens(kept[-1]):
            kept.pop()
        else:
            kept.append(token)
    return kept


def count_spans(tree: Tree) -> Counter[Span]:
    """The brackets of a tree, the root's included, tags not; how often each is there."""
    spans: Counter[Span] = Counter()
    begins: list[int] = []
    position = 0
    for token in tree.tokens:
        if token == WORD:
            position += 1
        elif _opens(token):
            begins.append(position)
        else:
            spans[token[1:], begins.pop(), position] += 1
    return spans
