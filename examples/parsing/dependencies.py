"""Dependency trees: in CoNLL-U, and as the actions of an arc-standard parser (Nivre 2004), which a network writes.

In CoNLL-U, each word has a line with ten columns. This module reads ID, FORM, HEAD and DEPREL. It skips comments, lines
for several words (``3-4``) and lines for words that are not in the text (``3.1``). The format allows blanks within a
word; they become ``_``, because words end at blanks in a text for training.

The parser has a stack, on which the root is first. ``SH`` pushes the next word. ``LA:label`` makes the second word of
the stack a dependent of the top and removes it; ``RA:label`` makes the top a dependent of the second and removes it. A
sentence of n words takes 2n actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moses_rnn import InputError

COLUMNS = 10
NO_WORD = re.compile(rb"[0-9]+[-.][0-9]+")
NUMBER = re.compile(rb"[0-9]{1,9}")
SHIFT, LEFT, RIGHT = b"SH", b"LA:", b"RA:"
LEFT_OVER = b"dep"  # the relation to the root of a word that no action attached


@dataclass(frozen=True)
class Dependencies:
    """A sentence in which each word depends on another word or on the root."""

    words: tuple[bytes, ...]
    heads: tuple[int, ...]  # the head of each word, from 1; 0 is the root
    labels: tuple[bytes, ...]  # the relation of each word to its head


class _Word(NamedTuple):
    line: int
    form: bytes
    head: int
    label: bytes


def read_conllu(text: bytes, name: str) -> Iterator[Dependencies]:
    """Read the sentences of a treebank. A blank line ends a sentence.

    Raises InputError, with the file's `name`, if a line is not a word with a head, or if heads do not lead to the root.
    """
    sentence: list[_Word] = []
    for number, line in enumerate([*text.split(b"\n"), b""], 1):
        row = line.rstrip(b"\r")
        if row.strip():
            columns = row.split(b"\t")
            if not row.startswith(b"#") and not NO_WORD.fullmatch(columns[0]):
                sentence.append(_read_word(columns, len(sentence) + 1, name, number))
        elif sentence:
            _check_heads(sentence, name)
            _, words, heads, labels = zip(*sentence, strict=True)
            yield Dependencies(words, heads, labels)
            sentence = []


def _read_word(columns: Sequence[bytes], position: int, name: str, line: int) -> _Word:
    """Read the word of a line, which must be at this position of the sentence."""
    if len(columns) != COLUMNS:
        raise _error(name, line, f"{COLUMNS} columns separated by tabs", str(len(columns)))
    form, head, label = columns[1].strip(b" "), columns[6], columns[7].strip(b" ")
    for is_right, column, expected in (
        (columns[0] == b"%d" % position, 1, f"word {position}"),
        (form, 2, "a word"),
        (NUMBER.fullmatch(head), 7, "the number of a head"),
        (label and b" " not in label, 8, "a relation without blanks"),
    ):
        if not is_right:
            raise _error(name, line, f"{expected} in column {column}", repr(columns[column - 1])[1:80])
    return _Word(line, form.replace(b" ", b"_"), int(head), label)


def _check_heads(sentence: Sequence[_Word], name: str) -> None:
    for word in sentence:
        if word.head > len(sentence):
            raise _error(name, word.line, f"a head from 0 to {len(sentence)} in column 7", str(word.head))
    leads_to_root = {0}
    for position, word in enumerate(sentence, 1):
        at, path = position, set[int]()
        while at not in leads_to_root and at not in path:
            path.add(at)
            at = sentence[at - 1].head
        if at in path:
            raise _error(name, word.line, "heads that lead to the root", f"a cycle through word {at}")
        leads_to_root |= path


def _error(name: str, line: int, expected: str, found: str) -> InputError:
    return InputError(f"{name}:{line}: expected {expected}, found {found}")


def format_conllu(sentence: Dependencies) -> bytes:
    """Format a sentence as lines, followed by a blank one. Unknown columns are ``_``."""
    rows = enumerate(zip(sentence.words, sentence.heads, sentence.labels, strict=True), 1)
    return b"".join(b"%d\t%b\t_\t_\t_\t_\t%d\t%b\t_\t_\n" % (i, *row) for i, row in rows) + b"\n"


def format_factors(sentence: Dependencies) -> bytes:
    """Format each word as ``word|label``, without a line end. Moses reads these as factors; ``|`` is escaped."""
    pairs = zip(sentence.words, sentence.labels, strict=True)
    return b" ".join(b"|".join(part.replace(b"|", b"&#124;") for part in pair) for pair in pairs)


class Execution(NamedTuple):
    """The tree made of a network's output."""

    sentence: Dependencies
    skipped: int  # actions that were not possible
    left_over: int  # words that no action attached

    @property
    def malformed(self) -> bool:
        """Whether the output was not a sequence of actions for these words."""
        return bool(self.skipped or self.left_over)


def find_actions(sentence: Dependencies) -> list[bytes] | None:
    """Find the actions that make a tree. LA comes as early as possible, RA after all dependents of the top.

    Returns None if two arcs cross, including an arc to the root.
    """
    waiting = [0] * (len(sentence.words) + 1)  # dependents of each word that are still to be attached
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
    """Make a tree of the words of a sentence and the actions that a network wrote, which may be any tokens.

    Skips impossible actions. Words that no action attaches depend on the root as ``dep``.
    """
    stack, following, skipped = [0], 1, 0
    arcs: dict[int, tuple[int, bytes]] = {}  # head and label of each dependent
    for action in actions:
        kind, label = action[:3], action[3:]
        if action == SHIFT and following <= len(words):
            stack.append(following)
            following += 1
        elif kind == LEFT and label and len(stack) > 2:  # the root depends on nothing
            dependent = stack.pop(-2)
            arcs[dependent] = stack[-1], label
        elif kind == RIGHT and label and len(stack) > 1:
            dependent = stack.pop()
            arcs[dependent] = stack[-1], label
        else:
            skipped += 1
    found = [arcs.get(word, (0, LEFT_OVER)) for word in range(1, len(words) + 1)]
    heads, labels = tuple(head for head, _ in found), tuple(label for _, label in found)
    return Execution(Dependencies(tuple(words), heads, labels), skipped, len(words) - len(arcs))
