"""Trees of phrases: bracketed as treebanks have them, linearised as a network writes them (Vinyals et al. 2015, §2–3).

Bracketed: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))``. Linearised, depth-first, with XX for every word:
``(S (NP XX XX )NP (VP XX )VP XX )S``; its tokens are parted by blanks, the words are another text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moses_rnn.errors import FormatError, shown

WORD = b"XX"
EMPTY = b"-NONE-"  # tag of what a treebank writes where something was moved or left out
PIECE = re.compile(  # a tag with its word, the beginning of another bracket, its end, or what belongs nowhere
    rb"""\([ \t\n]*(?P<tag>[^()\ \t\n]+)[ \t\n]+(?P<word>[^()\ \t\n]+)[ \t\n]*\)
    | \([ \t\n]*(?P<label>[^()\ \t\n]*)
    | \)
    | [^()\ \t\n]+""",
    re.VERBOSE,
)
LABEL = re.compile(rb"[^()]+")

Span = tuple[bytes, int, int]  # label, first word, the one behind the last, from 0


@dataclass(frozen=True)
class Tree:
    """The phrases of a sentence, perhaps in several trees or in none.

    `tokens` are balanced, have as many XX as there are words, and no bracket without words.
    """

    words: tuple[bytes, ...]
    tags: tuple[bytes, ...]  # of each word its part of speech; XX where nobody knows it
    tokens: tuple[bytes, ...]


class _Bracket(NamedTuple):
    label: bytes
    before: int  # tokens
    start: int  # in the text


class Rebuilt(NamedTuple):
    """The tree that a network's output gives."""

    tree: Tree
    malformed: bool  # it was not one tree over the words


def read_trees(lines: Iterable[bytes], name: str) -> Iterator[Tree]:
    """Read the trees of a treebank, each on one line or on several.

    A bracket without a label around a whole tree, as in the Penn Treebank, counts for nothing. Empty elements are left
    out, and so are brackets that then hold nothing. Raises FormatError, with the file's `name`, for anything that is
    not a tree or has no end.
    """
    text = b"\n".join(line.rstrip(b"\r\n") for line in lines)
    brackets: list[_Bracket] = []  # that are open
    leaves: list[tuple[bytes, bytes]] = []
    tokens: list[bytes] = []
    for piece in PIECE.finditer(text):
        if expected := _expected(piece, brackets, tokens):
            number = 1 + text.count(b"\n", 0, piece.start())
            raise FormatError(name, number, expected, shown(piece[0].strip()))
        if piece["tag"] == EMPTY:
            tokens.append(EMPTY)
        elif piece["word"]:
            leaves.append((piece["tag"], piece["word"].replace(b"-LRB-", b"(").replace(b"-RRB-", b")")))
            tokens.append(WORD)
        elif piece["label"] is not None:
            brackets.append(_Bracket(piece["label"], len(tokens), piece.start()))
            tokens += [b"(" + piece["label"]] * bool(piece["label"])
        else:
            label = brackets.pop().label
            tokens += [b")" + label] * bool(label)
        if not brackets:
            tags, words = zip(*leaves, strict=True) if leaves else ((), ())
            yield Tree(words, tags, tuple(_without_empty(token for token in tokens if token != EMPTY)))
            leaves, tokens = [], []
    if brackets:
        number = 1 + text.count(b"\n", 0, brackets[0].start)
        raise FormatError(name, number, "as many ) as ( in the tree that begins here", "the end of the file")


def _expected(piece: re.Match[bytes], brackets: Sequence[_Bracket], tokens: Sequence[bytes]) -> str:
    """Return what is expected in place of a piece; empty if the piece is right there."""
    if piece[0].startswith(b"("):
        return "a label after (" if brackets and brackets[-1].label and piece["label"] == b"" else ""
    if not brackets:
        return "( where a tree begins"
    if piece[0] != b")":
        return "each word in a bracket with its tag, such as (NN dog)"
    label, before, _ = brackets[-1]
    return "a word or brackets before )" if label and len(tokens) == before + 1 else ""


def format_tree(tree: Tree) -> bytes:
    """Format a tree as brackets on one line, without the line's end; several trees share a bracket without a label."""
    leaves = iter(zip(tree.tags, tree.words, strict=True))
    pieces = []
    for token in tree.tokens:
        if token == WORD:
            tag, word = next(leaves)
            escaped = word.replace(b"(", b"-LRB-").replace(b")", b"-RRB-")
            pieces.append(b" (" + tag + b" " + escaped + b")")
        else:
            pieces.append(b" " + token if _opens(token) else b")")
    text = b"".join(pieces)[1:]
    return text if count_trees(tree.tokens) == 1 else b"( " + text + b")"


def _opens(token: bytes) -> bool:
    return token[:1] == b"("


def _closes(token: bytes) -> bool:
    return token[:1] == b")"


def count_trees(tokens: Iterable[bytes]) -> int:
    """Count the brackets and words of a linearised sentence that are in no other bracket."""
    depth = count = 0
    for token in tokens:
        count += not depth and not _closes(token)
        depth += _opens(token) - _closes(token)
    return count


def rebuild(written: Sequence[bytes], words: Sequence[bytes]) -> Rebuilt:
    """Make a tree from the words of a sentence and any tokens that a network wrote.

    In this order: tokens of no tree are dropped; a closer closes the innermost open bracket whatever its label, or is
    dropped if none is open; open brackets are closed at the end; surplus XX are dropped from the end, missing ones put
    before the last closer; brackets without words are dropped. Several trees stay as they are. All but one tree is
    malformed, and so is all that had to be changed.
    """
    tokens = _without_empty(_with_words(_balanced(written), len(words)))
    tree = Tree(tuple(words), (WORD,) * len(words), tuple(tokens))
    return Rebuilt(tree, tokens != list(written) or count_trees(tokens) > 1)


def _balanced(written: Iterable[bytes]) -> list[bytes]:
    tokens, labels = [], []
    for token in written:
        if token == WORD:
            tokens.append(token)
        elif _opens(token) and LABEL.fullmatch(token, 1):
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
    """Count each bracket of a tree, with the root's, without tags."""
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
