"""How well brackets are placed: labelled precision, recall and F1, and the share of outputs that were no tree.

A bracket is right if label, first and last word are those of a bracket of the gold tree, each of which counts once. The
root counts, so do brackets of punctuation, and labels are compared whole. EVALB gives the same figures under parameters
that say so; its usual ones drop the root and punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moses_rnn.errors import InputError
from moses_rnn.formats.grids import Cell, Grid
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.trees import WORD, Rebuilt, Tree, count_spans, rebuild

FLAT, RIGHT_BRANCHING = "root alone", "right-branching"  # what can be written without looking at the words
HEADER = ("system", "malformed", "precision", "recall", "F1", "whole trees")


@dataclass(frozen=True)
class BracketScores:
    """What became of a system's outputs: counts over all sentences."""

    sentences: int
    malformed: int  # outputs that had to be repaired
    whole: int  # trees whose brackets are those of the gold tree
    right: int  # brackets
    written: int
    gold: int

    @property
    def precision(self) -> float | None:
        """Of the brackets that were written, the share that is right; None if there are none."""
        return share(self.right, self.written)

    @property
    def recall(self) -> float | None:
        """Of the gold brackets, the share that was written; None if there are none."""
        return share(self.right, self.gold)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both: 2 right / (written + gold); None if there are no brackets at all."""
        return share(2 * self.right, self.written + self.gold)


def share(part: int, whole: int) -> float | None:
    """A part of a whole, from 0 to 1; None if there is no whole."""
    return part / whole if whole else None


def per_cent(part: float | None) -> str | None:
    """A share as a table has it."""
    return None if part is None else f"{100 * part:.2f}"


def score_brackets(gold: Sequence[Tree], outputs: Sequence[Rebuilt]) -> BracketScores:
    """Compare trees with the gold ones of the same sentences."""
    whole = right = written = 0
    for tree, output in zip(gold, outputs, strict=True):
        spans, wanted = count_spans(output.tree), count_spans(tree)
        right += (spans & wanted).total()
        written += spans.total()
        whole += spans == wanted
    malformed = sum(output.malformed for output in outputs)
    return BracketScores(len(gold), malformed, whole, right, written, sum(count_spans(t).total() for t in gold))


def compare_brackets(gold: Sequence[Tree], outputs: Mapping[str, Sequence[bytes]]) -> dict[str, BracketScores]:
    """Compare what networks wrote with the gold trees, beside baselines that do not look at the words.

    Args:
        gold: trees.
        outputs: by system, a line of tokens for each.

    Raises:
        InputError: a system has another number of lines.
    """
    scores = {}
    for name, lines in outputs.items():
        if len(lines) != len(gold):
            raise InputError(f"{name}: expected a line for each of {len(gold):,} trees, found {len(lines):,}")
        rebuilt = [rebuild(words(line), tree.words) for tree, line in zip(gold, lines, strict=True)]
        scores[name] = score_brackets(gold, rebuilt)
    return scores | {name: score_brackets(gold, trees) for name, trees in _baselines(gold).items()}


def _baselines(gold: Sequence[Tree]) -> dict[str, list[Rebuilt]]:
    """Trees by the numbers of words alone; labels are the gold trees' commonest, of roots and of other brackets."""
    root = _commonest(tree.tokens[:1] for tree in gold)
    inner = _commonest(tree.tokens[1:] for tree in gold)
    shapes = {FLAT: _flat, RIGHT_BRANCHING: _right_branching}
    return {
        name: [rebuild(shape(len(tree.words), root, inner), tree.words) for tree in gold]
        for name, shape in shapes.items()
    }


def _commonest(tokens: Iterable[Iterable[bytes]]) -> bytes:
    """The label that most brackets have; XX if there are none."""
    labels = Counter(token[1:] for some in tokens for token in some if token[:1] == b"(")
    return labels.most_common(1)[0][0] if labels else WORD


def _flat(count: int, root: bytes, _inner: bytes) -> list[bytes]:
    return [b"(" + root, *[WORD] * count, b")" + root]


def _right_branching(count: int, root: bytes, inner: bytes) -> list[bytes]:
    """A bracket from each word, the last one excepted, to the end."""
    further = max(count - 2, 0)
    opened = [b"(" + root, WORD, *[b"(" + inner, WORD] * further]
    return [*opened, *[WORD] * (count > 1), *[b")" + inner] * further, b")" + root]


def as_grid(scores: Mapping[str, BracketScores]) -> Grid:
    """A system a row; shares in per cent."""
    rows: list[list[Cell]] = []
    for name, s in scores.items():
        shares = share(s.malformed, s.sentences), s.precision, s.recall, s.f1, share(s.whole, s.sentences)
        rows.append([name, *map(per_cent, shares)])
    some = next(iter(scores.values()))
    return Grid(f"{some.gold:,} brackets of {some.sentences:,} trees, per cent", HEADER, rows)
