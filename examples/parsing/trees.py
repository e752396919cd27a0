"""Trees of phrases: bracketed as in treebanks, and linearised as a network writes them (Vinyals et al. 2015, §2–3).

Bracketed: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))``. Linearised, depth-first, with XX for each word:
``(S (NP XX XX )NP (VP XX )VP XX )S``. Blanks separate these tokens. The words are in another text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moses_rnn import InputError

WORD = b"XX"
EMPTY = b"-NONE-"  # the tag where a treebank marks that something was moved or left out
IGNORED = {EMPTY, b"(", b")"}  # with brackets that have no label
PIECE = re.compile(  # a tag with its word, the beginning of another bracket, an end, or text that belongs nowhere
    rb"""\([ \t\n]*(?P<tag>[^()\ \t\n]+)[ \t\n]+(?P<word>[^()\ \t\n]+)[ \t\n]*\)
    | \([ \t\n]*(?P<label>[^()\ \t\n]*)
    | \)
    | [^()\ \t\n]+""",
    re.VERBOSE,
)
LABEL = re.compile(rb"[^()]+")

Span = tuple[bytes, int, int]  # label, first word, last word + 1; words count from 0


@dataclass(frozen=True)
class Tree:
    """The phrases of a sentence. They may form one tree, several or none.

    The brackets in `tokens` are balanced, each contains words, and there is an XX for each word.
    """

    words: tuple[bytes, ...]
    tags: tuple[bytes, ...]  # the part of speech of each word; XX if unknown
    tokens: tuple[bytes, ...]


class _Bracket(NamedTuple):
    label: bytes
    tokens_before: int
    start: int  # in the text


class Rebuilt(NamedTuple):
    """The tree made of a network's output."""

    tree: Tree
    malformed: bool  # whether the output was not one tree over the words


def split(line: bytes) -> list[bytes]:
    """Split a line into words. As in Moses, words end at blanks and tabs only."""
    return re.findall(rb"[^ \t]+", line)


def read_trees(text: bytes, name: str) -> Iterator[Tree]:
    """Read the trees of a treebank. A tree may take several lines.

    The Penn Treebank puts a bracket without a label around each tree; such brackets are ignored. Empty elements are
    left out, and so are brackets that contain nothing else. Raises InputError, with the file's `name`, if something is
    not a tree or has no end.
    """
    text = text.replace(b"\r\n", b"\n")
    brackets: list[_Bracket] = []  # those that are open
    leaves: list[tuple[bytes, bytes]] = []
    tokens: list[bytes] = []
    for piece in PIECE.finditer(text):
        if expected := _expected(piece, brackets, tokens):
            raise _error(name, text, piece.start(), expected, repr(piece[0].strip())[1:80])
        if piece["tag"] == EMPTY:
            tokens.append(EMPTY)
        elif piece["word"]:
            leaves.append((piece["tag"], piece["word"].replace(b"-LRB-", b"(").replace(b"-RRB-", b")")))
            tokens.append(WORD)
        elif piece["label"] is not None:
            brackets.append(_Bracket(piece["label"], len(tokens), piece.start()))
            tokens.append(b"(" + piece["label"])
        else:
            tokens.append(b")" + brackets.pop().label)
        if not brackets:
            tags, words = zip(*leaves, strict=True) if leaves else ((), ())
            yield Tree(words, tags, tuple(_without_empty(token for token in tokens if token not in IGNORED)))
            leaves, tokens = [], []
    if brackets:
        expected = "as many ) as ( in the tree that begins here"
        raise _error(name, text, brackets[0].start, expected, "the end of the file")


def _expected(piece: re.Match[bytes], brackets: Sequence[_Bracket], tokens: Sequence[bytes]) -> str:
    """Return what should be in the place of a piece, or "" if the piece is right."""
    if piece[0].startswith(b"("):
        return "a label after (" if brackets and brackets[-1].label and piece["label"] == b"" else ""
    if not brackets:
        return "( where a tree begins"
    if piece[0] != b")":
        return "each word in a bracket with its tag, such as (NN dog)"
    label, tokens_before, _ = brackets[-1]
    return "a word or brackets before )" if label and len(tokens) == tokens_before + 1 else ""


def _error(name: str, text: bytes, start: int, expected: str, found: str) -> InputError:
    line = 1 + text.count(b"\n", 0, start)
    return InputError(f"{name}:{line}: expected {expected}, found {found}")


def format_tree(tree: Tree) -> bytes:
    """Format a tree as brackets on one line, without a line end. A bracket without a label joins several trees."""
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
        if depth == 0 and not _closes(token):
            count += 1
        depth += _opens(token) - _closes(token)
    return count


def rebuild(written: Sequence[bytes], words: Sequence[bytes]) -> Rebuilt:
    """Make a tree of the words of a sentence and the tokens that a network wrote, which may be any.

    Repair, in this order: drop tokens that no tree has; let each closing token close the innermost open bracket,
    whatever its label, or drop it if none is open; close all open brackets at the end; drop surplus XX from the end, or
    put missing ones before the last closing token; drop brackets without words. Several trees stay as they are.
    Anything other than one unchanged tree counts as malformed.
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
    """Count the brackets of a tree by label and words. The root counts, tags do not."""
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
