"""How good the trees are that networks wrote, compared with baselines that do not look at the words.

Trees of phrases: precision, recall and F1. A bracket is right if the gold tree has one with the same label, first and
last word; each gold bracket counts once. All brackets count, even the root and those of punctuation, and labels are
compared whole. EVALB leaves out the root and punctuation by default.

Dependencies: UAS, the share of words with the right head, and LAS, the share with the right head and relation. All
words count, even punctuation, and relations are compared whole (``nsubj:pass`` is not ``nsubj``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dependencies import LEFT, LEFT_OVER, RIGHT, SHIFT, Dependencies, Execution, run_actions
from trees import WORD, Rebuilt, Tree, count_spans, count_trees, read_trees, rebuild, split

from moses_rnn import InputError

System = tuple[str, Sequence[bytes]]  # a name, and the lines that it wrote
Cell = str | float | int | None

BRACKETED_WORD = re.compile(rb"\([^() \t]+[ \t]+[^() \t]+\)")  # such as (NN dog), which no linearised tree has


class Table(NamedTuple):
    """Figures of systems. Shares are floats from 0 to 1, shown in per cent; None: a share of nothing."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __str__(self) -> str:
        texts = [self.header, *([_shown(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = [self.title]
        for name, *figures in texts:
            columns = [text.rjust(width) for text, width in zip(figures, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *columns]))
        return "\n".join(lines)


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{100 * cell:.2f}"
    return "-" if cell is None else str(cell)


def compare_brackets(gold: Sequence[Tree], outputs: Sequence[System]) -> Table:
    """Compare the brackets of systems and two baselines with gold trees. Outputs are linearised or bracketed.

    Raises InputError if a system does not have one line for each tree.

    The baselines are the root alone, and a bracket from each word to the end. They have the commonest labels of the
    gold trees: the root that of roots, other brackets that of other brackets.
    """
    root = _commonest((token[1:] for tree in gold for token in tree.tokens[:1] if token[:1] == b"("), WORD)
    inner = _commonest((token[1:] for tree in gold for token in tree.tokens[1:] if token[:1] == b"("), WORD)
    root_alone, branching = [], []
    for count in (len(tree.words) for tree in gold):
        root_alone.append(b" ".join([b"(" + root, *[WORD] * count, b")" + root]))
        further = max(count - 2, 0)
        opened = [b"(" + root, WORD, *[b"(" + inner, WORD] * further]
        if count > 1:
            opened.append(WORD)
        branching.append(b" ".join([*opened, *[b")" + inner] * further, b")" + root]))
    linearised = [(name, _linearised(lines, name)) for name, lines in outputs]
    systems = [*linearised, ("root alone", root_alone), ("right-branching", branching)]
    brackets = sum(count_spans(tree).total() for tree in gold)
    title = f"Brackets, in per cent (trees: {len(gold):,}, brackets: {brackets:,})"
    header = ("system", "malformed", "precision", "recall", "F1", "whole trees")
    return Table(title, header, _judge(gold, systems, rebuild, score_brackets))


def _linearised(lines: Sequence[bytes], name: str) -> Sequence[bytes]:
    if any(BRACKETED_WORD.search(line) for line in lines):
        return [b" ".join(tree.tokens) for tree in read_trees(b"\n".join(lines), name)]
    return lines


def compare_attachments(gold: Sequence[Dependencies], outputs: Sequence[System]) -> Table:
    """Compare the heads and relations of systems and two baselines with gold trees.

    Raises InputError if a system does not have one line for each sentence.

    In the baselines, each word depends on the one before it, or on the next one. They have the commonest relations of
    the gold trees: the root's dependent that of such words, other words that of other words.
    """
    pairs = [pair for sentence in gold for pair in zip(sentence.heads, sentence.labels, strict=True)]
    root = _commonest((label for head, label in pairs if head == 0), LEFT_OVER)
    inner = _commonest((label for head, label in pairs if head > 0), LEFT_OVER)
    before, behind = [], []
    for others in (len(sentence.words) - 1 for sentence in gold):
        before.append(b" ".join([*[SHIFT] * (others + 1), *[RIGHT + inner] * others, RIGHT + root]))
        behind.append(b" ".join([SHIFT, *[SHIFT, LEFT + inner] * others, RIGHT + root]))
    systems = [*outputs, ("on the word before", before), ("on the next word", behind)]
    title = f"Attachments, in per cent (sentences: {len(gold):,}, words: {len(pairs):,})"
    header = ("system", "malformed", "skipped", "left over", "UAS", "LAS", "whole trees")
    return Table(title, header, _judge(gold, systems, run_actions, score_attachments))


def _commonest(labels: Iterable[bytes], otherwise: bytes) -> bytes:
    common = Counter(labels).most_common(1)
    return common[0][0] if common else otherwise


def _judge(
    gold: Sequence[Any],
    systems: Sequence[System],
    read: Callable[[Sequence[bytes], Sequence[bytes]], Any],
    score: Callable[[Sequence[Any], Sequence[Any]], list[Cell]],
) -> list[list[Cell]]:
    """Return a row for each system."""
    rows = []
    for name, lines in systems:
        if len(lines) != len(gold):
            raise InputError(f"{name}: expected a line for each of {len(gold):,} trees, found {len(lines):,}")
        outputs = [read(split(line), tree.words) for tree, line in zip(gold, lines, strict=True)]
        rows.append([name, *score(gold, outputs)])
    return rows


def score_brackets(gold: Sequence[Tree], outputs: Sequence[Rebuilt]) -> list[Cell]:
    """Return the shares of malformed outputs, precision, recall, F1, and the share of trees that are wholly right."""
    pairs = [(count_spans(tree), count_spans(output.tree)) for tree, output in zip(gold, outputs, strict=True)]
    right = sum((wanted & found).total() for wanted, found in pairs)
    wanted, found = (sum(spans.total() for spans in side) for side in zip(*pairs, strict=True))
    malformed = _share(sum(map(_is_malformed, gold, outputs)), len(gold))
    whole = _share(sum(wanted == found for wanted, found in pairs), len(gold))
    return [malformed, _share(right, found), _share(right, wanted), _share(2 * right, wanted + found), whole]


def _is_malformed(gold: Tree, output: Rebuilt) -> bool:
    """Whether an output is malformed. If a treebank has several trees for a sentence, the same ones are right."""
    are_several = count_trees(gold.tokens) > 1 and output.tree.tokens == gold.tokens
    return output.malformed and not are_several


def score_attachments(gold: Sequence[Dependencies], outputs: Sequence[Execution]) -> list[Cell]:
    """Return the share of malformed outputs, the numbers of skipped actions and left-over words, UAS, LAS, whole trees.

    Whole trees are those in which all words have the right head and relation.
    """
    heads, labelled, whole = 0, 0, 0
    for wanted, output in zip(gold, outputs, strict=True):
        found = output.sentence
        right = [a == b for a, b in zip(wanted.heads, found.heads, strict=True)]
        same = [a == b for a, b in zip(wanted.labels, found.labels, strict=True)]
        both = [a and b for a, b in zip(right, same, strict=True)]
        heads, labelled, whole = heads + sum(right), labelled + sum(both), whole + all(both)
    count = sum(len(sentence.words) for sentence in gold)
    malformed = _share(sum(output.malformed for output in outputs), len(gold))
    skipped, left_over = (sum(output.skipped for output in outputs), sum(output.left_over for output in outputs))
    return [malformed, skipped, left_over, _share(heads, count), _share(labelled, count), _share(whole, len(gold))]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
