"""Dependency trees: as CoNLL-U has them, and as sequences of arc-standard actions (Nivre 2004), which a network writes.

CoNLL-U has a word a line in ten columns, of which ID, FORM, HEAD and DEPREL count here. Lines of several words
(``3-4``) and of words that are not there (``3.1``) are passed over, as are comments. Blanks within a word, which the
format allows, become ``_``: a text has one word between blanks.

A stack begins with the root. ``SH`` pushes the next word; ``LA:label`` makes the second of the stack a dependent of the
top, ``RA:label`` the top a dependent of the second, and the dependent leaves. A sentence of n words takes 2n actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from moses_rnn.errors import FormatError, shown

COLUMNS = 10
NO_WORD = re.compile(rb"[0-9]+[-.][0-9]+")
NUMBER = re.compile(rb"[0-9]{1,9}")
SHIFT, LEFT, RIGHT = b"SH", b"LA:", b"RA:"
LEFT_OVER = b"dep"  # relation to the root of words that no action attached


@dataclass(frozen=True)
class Dependencies:
    """A sentence in which each word depends on another word or on the root."""

    words: tuple[bytes, ...]
    heads: tuple[int, ...]  # of each word, from 1; 0 is the root
    labels: tuple[bytes, ...]  # relation of each word to its head


class _Word(NamedTuple):
    line: int
    form: bytes
    head: int
    label: bytes


def read_conllu(lines: Iterable[bytes], name: str) -> Iterator[Dependencies]:
    """Read the sentences of a treebank; a blank line ends a sentence.

    Raises FormatError, with the file's `name`, for a line that is not a word with a head, and for heads that do not
    lead to the root.
    """
    sentence: list[_Word] = []
    for number, line in enumerate(chain(lines, [b""]), 1):
        text = line.rstrip(b"\r\n")
        if text.strip():
            if not text.startswith(b"#"):
                sentence += _parse(text, len(sentence) + 1, name, number)
        elif sentence:
            _check_heads(sentence, name)
            _, words, heads, labels = zip(*sentence, strict=True)
            yield Dependencies(words, heads, labels)
            sentence = []


def _parse(line: bytes, following: int, name: str, number: int) -> Iterator[_Word]:
    """Yield the word of a line, if it has one; it must be word number `following` of the sentence."""
    columns = line.split(b"\t")
    if len(columns) != COLUMNS:
        found = f"{len(columns)}: {shown(line)}"
        raise FormatError(name, number, f"{COLUMNS} columns separated by tabs", found)
    if NO_WORD.fullmatch(columns[0]):
        return
    form, head, label = columns[1].strip(b" "), columns[6], columns[7].strip(b" ")
    for sound, column, expected in (
        (columns[0] == b"%d" % following, 0, f"word {following} in column 1"),
        (form, 1, "a word in column 2"),
        (NUMBER.fullmatch(head), 6, "the number of a head in column 7"),
        (label and b" " not in label, 7, "a relation without blanks in column 8"),
    ):
        if not sound:
            raise FormatError(name, number, expected, shown(columns[column]))
    yield _Word(number, form.replace(b" ", b"_"), int(head), label)


def _check_heads(sentence: Sequence[_Word], name: str) -> None:
    for word in sentence:
        if word.head > len(sentence):
            raise FormatError(name, word.line, f"a head from 0 to {len(sentence)} in column 7", str(word.head))
    rooted = {0}
    for begin, word in enumerate(sentence, 1):
        at, path = begin, set[int]()
        while at not in rooted and at not in path:
            path.add(at)
            at = sentence[at - 1].head
        if at in path:
            raise FormatError(name, word.line, "heads that lead to the root", f"a cycle through word {at}")
        rooted |= path


def format_conllu(sentence: Dependencies) -> bytes:
    """Format a sentence as lines, followed by a blank one; unknown fields are ``_``."""
    rows = enumerate(zip(sentence.words, sentence.heads, sentence.labels, strict=True), 1)
    return b"".join(b"%d\t%b\t_\t_\t_\t_\t%d\t%b\t_\t_\n" % (i, *row) for i, row in rows) + b"\n"


def format_factors(sentence: Dependencies) -> bytes:
    """Format each word as ``word|label``, as Moses reads factors, with ``|`` escaped and no line end."""
    pairs = zip(sentence.words, sentence.labels, strict=True)
    return b" ".join(b"|".join(part.replace(b"|", b"&#124;") for part in pair) for pair in pairs)


class Execution(NamedTuple):
    """The tree that a network's output gives."""

    sentence: Dependencies
    skipped: int  # actions that were not possible
    left_over: int  # words that no action attached

    @property
    def malformed(self) -> bool:
        """Whether it was not a sequence of actions for these words."""
        return bool(self.skipped or self.left_over)


def find_actions(sentence: Dependencies) -> list[bytes] | None:
    """Return the actions that make a tree: LA as early as possible, RA once all dependents of the top are attached.

    Return None if two arcs cross, including an arc to the root.
    """
    waiting = [0] * (len(sentence.words) + 1)  # dependents of each word that have not left yet
    for head in sentence.heads:
        waiting[head] += 1
    heads, labels = (-1, *sentence.heads), (b"", *sentence.labels)
    stack, actions = [0], []
    for word in range(1, len(heads)):
        stack.append(word)
        actions.append(SHIFT)
        while len(stack) > 1:
            second, top = stack[-2:]
            if heads[second] == top and not waiting[second]:
                actions.append(LEFT + labels[second])
                stack[-2:] = [top]
                waiting[top] -= 1
            elif heads[top] == second and not waiting[top]:
                actions.append(RIGHT + labels[top])
                stack.pop()
                waiting[second] -= 1
            else:
                break
    return actions if stack == [0] else None


def run_actions(actions: Iterable[bytes], words: Sequence[bytes]) -> Execution:
    """Make a tree from the words of a sentence and any actions that a network wrote.

    Skips impossible actions; words that no action attaches depend on the root as ``dep``.
    """
    stack, following, skipped = [0], 1, 0
    arcs: dict[int, tuple[int, bytes]] = {}  # head and label by dependent
    for action in actions:
        kind, label = action[:3], action[3:]
        if action == SHIFT and following <= len(words):
            stack.append(following)
            following += 1
        elif label and kind in (LEFT, RIGHT) and len(stack) > 1 + (kind == LEFT):  # the root depends on nothing
            dependent = stack.pop(-2 if kind == LEFT else -1)
            arcs[dependent] = stack[-1], label
        else:
            skipped += 1
    found = [arcs.get(word, (0, LEFT_OVER)) for word in range(1, len(words) + 1)]
    heads, labels = tuple(head for head, _ in found), tuple(label for _, label in found)
    return Execution(Dependencies(tuple(words), heads, labels), skipped, len(words) - len(arcs))
