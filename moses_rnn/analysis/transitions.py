"""Dependency trees as sequences of arc-standard actions (Nivre 2004), which a network can write.

A stack begins with the root. ``SH`` pushes the next word; ``LA:label`` makes the second of the stack a dependent of the
top, ``RA:label`` the top a dependent of the second, and the dependent leaves. A sentence of n words takes 2n actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moses_rnn.analysis.conllu import Dependencies

SHIFT, LEFT, RIGHT = b"SH", b"LA:", b"RA:"
LEFT_OVER = b"dep"  # what a word that no action attached is to the root


class Execution(NamedTuple):
    """What became of a network's output."""

    sentence: Dependencies
    skipped: int  # actions that were not possible
    left_over: int  # words that no action attached

    @property
    def malformed(self) -> bool:
        """Whether it was not a sequence of actions for these words."""
        return bool(self.skipped or self.left_over)


def find_actions(sentence: Dependencies) -> list[bytes] | None:
    """The actions that make a tree: LA as early as possible, RA once all dependents of the top are attached.

    Returns:
        None if there are none: two of its arcs cross, one to the root counted.
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


@dataclass
class _Parser:
    """A stack, the words, and what is decided of them."""

    words: Sequence[bytes]
    next: int = 1  # word
    stack: list[int] = field(default_factory=lambda: [0])
    arcs: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # head and label by dependent

    def act(self, action: bytes) -> bool:
        """Do it, if it is possible."""
        kind, label = action[:3], action[3:]
        if action == SHIFT and self.next <= len(self.words):
            self.stack.append(self.next)
            self.next += 1
            return True
        if kind == LEFT and label and len(self.stack) > 2:  # the root depends on nothing
            dependent = self.stack.pop(-2)
            self.arcs[dependent] = self.stack[-1], label
            return True
        if kind == RIGHT and label and len(self.stack) > 1:
            dependent = self.stack.pop()
            self.arcs[dependent] = self.stack[-1], label
            return True
        return False


def run_actions(actions: Iterable[bytes], words: Sequence[bytes]) -> Execution:
    """Make a tree of what a network wrote, whatever that is.

    Actions that are not possible are skipped; words that are left over depend on the root as ``dep``.

    Args:
        actions: tokens.
        words: of the sentence.
    """
    parser = _Parser(words)
    skipped = sum(not parser.act(action) for action in actions)
    arcs = [parser.arcs.get(word, (0, LEFT_OVER)) for word in range(1, len(words) + 1)]
    heads, labels = tuple(head for head, _ in arcs), tuple(label for _, label in arcs)
    return Execution(Dependencies(tuple(words), heads, labels), skipped, len(words) - len(parser.arcs))
