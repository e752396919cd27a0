"""How good the trees are that networks wrote, beside baselines that do not look at the words.

Of bracketed trees: precision, recall and F1. A bracket is right if label, first and last word are those of a bracket of
the gold tree, each of which counts once. The root counts, so do brackets of punctuation, and labels are compared whole.
EVALB gives the same figures under parameters that say so; its usual ones drop the root and punctuation.

Of dependencies: UAS, the share of words with the right head, and LAS, with the right relation too. All words count,
those of punctuation as well, and relations are compared whole (``nsubj:pass`` is not ``nsubj``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from moses_rnn.analysis.dependencies import LEFT_OVER, Dependencies, Execution, read_conllu, run_actions
from moses_rnn.analysis.grids import Cell, Grid
from moses_rnn.analysis.trees import WORD, Rebuilt, Tree, count_spans, read_trees, rebuild
from moses_rnn.errors import InputError
from moses_rnn.table.phrase_table import words

Lines = Sequence[bytes]
Gold = TypeVar("Gold", Tree, Dependencies)
Output = TypeVar("Output", Rebuilt, Execution)

BRACKETS_HEADER = ("system", "malformed", "precision", "recall", "F1", "whole trees")
ATTACHMENTS_HEADER = ("system", "malformed", "skipped", "left over", "UAS", "LAS", "whole trees")


def compare_parses(lines: Lines, name: str, outputs: Mapping[str, Lines]) -> Grid:
    """Compare what systems wrote with the gold trees of a file of that name: bracketed trees or CoNLL-U.

    Refuses a file without trees, and a system that has not a line of tokens for each tree.
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
    """Brackets of each system, then of the baselines: the root alone, and a bracket from each word to the end."""
    systems = _read(gold, outputs, rebuild) | _bracket_baselines(gold)
    rows = [[name, *_shown(score_brackets(gold, trees))] for name, trees in systems.items()]
    brackets = sum(count_spans(tree).total() for tree in gold)
    return Grid(f"{brackets:,} brackets of {len(gold):,} trees, per cent", BRACKETS_HEADER, rows)


def compare_attachments(gold: Sequence[Dependencies], outputs: Mapping[str, Lines]) -> Grid:
    """Words of each system, then of the baselines: each word on the one before it, and on the next one."""
    systems = _read(gold, outputs, run_actions) | _attachment_baselines(gold)
    rows = [[name, *_shown(score_attachments(gold, trees))] for name, trees in systems.items()]
    count = sum(len(sentence.words) for sentence in gold)
    title = f"Attachments of {count:,} words in {len(gold):,} sentences, per cent"
    return Grid(title, ATTACHMENTS_HEADER, rows)


def _read(
    gold: Sequence[Gold], outputs: Mapping[str, Lines], read: Callable[[Sequence[bytes], Sequence[bytes]], Output]
) -> dict[str, list[Output]]:
    systems = {}
    for name, lines in outputs.items():
        if len(lines) != len(gold):
            raise InputError(f"{name}: expected a line for each of {len(gold):,} trees, found {len(lines):,}")
        systems[name] = [read(words(line), tree.words) for tree, line in zip(gold, lines, strict=True)]
    return systems


def score_brackets(gold: Sequence[Tree], outputs: Sequence[Rebuilt]) -> list[Cell]:
    """The figures of BRACKETS_HEADER, shares from 0 to 1; None: there is nothing to take a share of."""
    pairs = [(count_spans(tree), count_spans(output.tree)) for tree, output in zip(gold, outputs, strict=True)]
    right = sum((wanted & found).total() for wanted, found in pairs)
    wanted, found = (sum(spans.total() for spans in side) for side in zip(*pairs, strict=True))
    malformed = _share(sum(output.malformed for output in outputs), len(gold))
    whole = _share(sum(wanted == found for wanted, found in pairs), len(gold))
    return [malformed, _share(right, found), _share(right, wanted), _share(2 * right, wanted + found), whole]


def score_attachments(gold: Sequence[Dependencies], outputs: Sequence[Execution]) -> list[Cell]:
    """The figures of ATTACHMENTS_HEADER, two counts and shares from 0 to 1; None: as of `score_brackets`."""
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


def _shown(figures: Sequence[Cell]) -> list[Cell]:
    """Shares in per cent."""
    return [f"{100 * figure:.2f}" if isinstance(figure, float) else figure for figure in figures]


def _bracket_baselines(gold: Sequence[Tree]) -> dict[str, list[Rebuilt]]:
    """Trees by the numbers of words alone; labels are the gold trees' commonest, of roots and of other brackets."""
    root, inner = (
        _commonest((token[1:] for tree in gold for token in tree.tokens[part] if token[:1] == b"("), WORD)
        for part in (slice(1), slice(1, None))
    )

    def flat(count: int) -> list[bytes]:
        return [b"(" + root, *[WORD] * count, b")" + root]

    def branching(count: int) -> list[bytes]:
        """A bracket from each word, the last one excepted, to the end."""
        further = max(count - 2, 0)
        opened = [b"(" + root, WORD, *[b"(" + inner, WORD] * further]
        return [*opened, *[WORD] * (count > 1), *[b")" + inner] * further, b")" + root]

    return {
        "root alone": [rebuild(flat(len(tree.words)), tree.words) for tree in gold],
        "right-branching": [rebuild(branching(len(tree.words)), tree.words) for tree in gold],
    }


def _attachment_baselines(gold: Sequence[Dependencies]) -> dict[str, list[Execution]]:
    """Chains of words; relations are the gold trees' commonest, of the root's dependents and of other words."""
    pairs = [pair for sentence in gold for pair in zip(sentence.heads, sentence.labels, strict=True)]
    root, inner = (
        _commonest((label for head, label in pairs if bool(head) == has), LEFT_OVER) for has in (False, True)
    )

    def chain(text: tuple[bytes, ...], heads: Sequence[int]) -> Execution:
        return Execution(Dependencies(text, tuple(heads), tuple(inner if head else root for head in heads)), 0, 0)

    texts = [sentence.words for sentence in gold]
    return {
        "on the word before": [chain(text, range(len(text))) for text in texts],
        "on the next word": [chain(text, [*range(2, len(text) + 1), 0][: len(text)]) for text in texts],
    }


def _commonest(labels: Iterable[bytes], otherwise: bytes) -> bytes:
    common = Counter(labels).most_common(1)
    return common[0][0] if common else otherwise
