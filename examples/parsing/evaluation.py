"""How good the trees are that networks wrote, beside baselines that do not look at the words.

Of bracketed trees: precision, recall and F1. A bracket is right if label, first and last word are those of a bracket of
the gold tree, each of which counts once. The root counts, so do brackets of punctuation, and labels are compared whole.
EVALB gives the same figures under parameters that say so; its usual ones drop the root and punctuation. Empty elements
do not count.

Of dependencies: UAS, the share of words with the right head, and LAS, with the right relation too. All words count,
including punctuation, and relations are compared whole (``nsubj:pass`` is not ``nsubj``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dependencies import (
    LEFT,
    LEFT_OVER,
    RIGHT,
    SHIFT,
    Dependencies,
    Execution,
    read_conllu,
    run_actions,
)
from trees import WORD, Rebuilt, Tree, count_spans, count_trees, read_trees, rebuild

from moses_rnn.analysis.grids import Cell, Grid
from moses_rnn.errors import InputError, number_of
from moses_rnn.table.phrases import words

Lines = Sequence[bytes]

BRACKETED_WORD = re.compile(rb"\([^() \t]+[ \t]+[^() \t]+\)")  # (NN dog), which no linearised tree has


def compare_parses(lines: Lines, name: str, outputs: Mapping[str, Lines]) -> Grid:
    """Compare what systems wrote with the gold trees of a file: bracketed trees or CoNLL-U.

    Raises InputError if the file has no trees, or a system has not one line of tokens per tree.
    """
    first = next((line.strip() for line in lines if line.strip()), b"")
    if not first:
        raise InputError(f"{name}: expected bracketed trees or CoNLL-U, found neither")
    if first.startswith(b"("):
        return compare_brackets(list(read_trees(lines, name)), outputs)
    gold = list(read_conllu(lines, name))
    if not gold:
        raise InputError(f"{name}: expected sentences, found none")
    return compare_attachments(gold, outputs)


def compare_brackets(gold: Sequence[Tree], outputs: Mapping[str, Lines]) -> Grid:
    """Judge each system's brackets, then those of two baselines: the root alone, and one from each word to the end.

    Outputs are linearised or bracketed. The baselines' labels are the commonest of the gold trees, of roots and of
    other brackets.
    """
    root, inner = (
        _commonest((token[1:] for tree in gold for token in tree.tokens[part] if token[:1] == b"("), WORD)
        for part in (slice(1), slice(1, None))
    )
    alone, branching = [], []
    for count in (len(tree.words) for tree in gold):
        further = max(count - 2, 0)
        opened = [b"(" + root, WORD, *[b"(" + inner, WORD] * further]
        alone.append(b" ".join([b"(" + root, *[WORD] * count, b")" + root]))
        branching.append(b" ".join([*opened, *[WORD] * (count > 1), *[b")" + inner] * further, b")" + root]))
    linearised = {name: _linearised(lines, name) for name, lines in outputs.items()}
    systems = _with_baselines(linearised, {"root alone": alone, "right-branching": branching})
    title = (
        f"{number_of(sum(count_spans(tree).total() for tree in gold), 'bracket')} of "
        f"{number_of(len(gold), 'tree')}, per cent"
    )
    header = ("system", "malformed", "precision", "recall", "F1", "whole trees")
    return Grid(title, header, _rows(gold, systems, rebuild, score_brackets), decimals=2)


def _linearised(lines: Lines, name: str) -> Lines:
    if any(BRACKETED_WORD.search(line) for line in lines):
        return [b" ".join(tree.tokens) for tree in read_trees(lines, name)]
    return lines


def compare_attachments(gold: Sequence[Dependencies], outputs: Mapping[str, Lines]) -> Grid:
    """Judge the words of each system, then of the baselines: each word on the one before it, and on the next one.

    The baselines' relations are the commonest of the gold trees, of the root's dependents and of other words.
    """
    pairs = [pair for sentence in gold for pair in zip(sentence.heads, sentence.labels, strict=True)]
    root, inner = (
        _commonest((label for head, label in pairs if bool(head) == has), LEFT_OVER) for has in (False, True)
    )
    before, behind = [], []
    for others in (len(sentence.words) - 1 for sentence in gold):
        before.append(b" ".join([*[SHIFT] * (others + 1), *[RIGHT + inner] * others, RIGHT + root]))
        behind.append(b" ".join([SHIFT, *[SHIFT, LEFT + inner] * others, RIGHT + root]))
    systems = _with_baselines(outputs, {"on the word before": before, "on the next word": behind})
    title = f"Attachments of {number_of(len(pairs), 'word')} in {number_of(len(gold), 'sentence')}, per cent"
    header = ("system", "malformed", "skipped", "left over", "UAS", "LAS", "whole trees")
    return Grid(title, header, _rows(gold, systems, run_actions, score_attachments), decimals=2)


def _with_baselines(outputs: Mapping[str, Lines], baselines: Mapping[str, Lines]) -> Mapping[str, Lines]:
    if taken := outputs.keys() & baselines.keys():
        raise InputError(f"{min(taken)}: expected a file with another name, found that of a baseline")
    return {**outputs, **baselines}


def _rows(
    gold: Sequence[Any],
    systems: Mapping[str, Lines],
    read: Callable[[Sequence[bytes], Sequence[bytes]], Any],
    score: Callable[[Sequence[Any], Sequence[Any]], list[Cell]],
) -> list[list[Cell]]:
    """Return a row for each system, with shares in per cent."""
    rows: list[list[Cell]] = []
    for name, lines in systems.items():
        if len(lines) != len(gold):
            raise InputError(
                f"{name}: expected a line for each of {number_of(len(gold), 'tree')}, found {len(lines):,}"
            )
        figures = score(gold, [read(words(line), tree.words) for tree, line in zip(gold, lines, strict=True)])
        rows.append([name, *(round(100 * one, 2) if isinstance(one, float) else one for one in figures)])
    return rows


def score_brackets(gold: Sequence[Tree], outputs: Sequence[Rebuilt]) -> list[Cell]:
    """Return malformed, precision, recall, F1 and whole trees, from 0 to 1; None: a share of nothing."""
    pairs = [(count_spans(tree), count_spans(output.tree)) for tree, output in zip(gold, outputs, strict=True)]
    right = sum((wanted & found).total() for wanted, found in pairs)
    wanted, found = (sum(spans.total() for spans in side) for side in zip(*pairs, strict=True))
    malformed = _share(sum(map(_is_malformed, gold, outputs)), len(gold))
    whole = _share(sum(wanted == found for wanted, found in pairs), len(gold))
    return [malformed, _share(right, found), _share(right, wanted), _share(2 * right, wanted + found), whole]


def _is_malformed(gold: Tree, output: Rebuilt) -> bool:
    """Treebanks have some sentences of several trees, which are right if the gold tree is such a one."""
    are_several = count_trees(gold.tokens) > 1 and output.tree.tokens == gold.tokens
    return output.malformed and not are_several


def score_attachments(gold: Sequence[Dependencies], outputs: Sequence[Execution]) -> list[Cell]:
    """Return malformed, the counts of skipped actions and left-over words, UAS, LAS and whole trees, from 0 to 1."""
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


def _commonest(labels: Iterable[bytes], otherwise: bytes) -> bytes:
    common = Counter(labels).most_common(1)
    return common[0][0] if common else otherwise
