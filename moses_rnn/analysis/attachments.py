"""How well words are attached: UAS, the share of words with the right head, LAS, with the right relation too.

All words count, those of punctuation as well, and relations are compared whole (``nsubj:pass`` is not ``nsubj``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moses_rnn.analysis.brackets import per_cent, share
from moses_rnn.errors import InputError
from moses_rnn.formats.conllu import Dependencies
from moses_rnn.formats.grids import Grid
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.transitions import LEFT_OVER, Execution, run_actions

BEFORE, BEHIND = "on the word before", "on the next word"  # what can be attached without looking at the words
HEADER = ("system", "malformed", "skipped", "left over", "UAS", "LAS", "whole trees")


@dataclass(frozen=True)
class AttachmentScores:
    """What became of a system's outputs: counts over all sentences."""

    sentences: int
    words: int
    malformed: int  # outputs that were not a sequence of actions for their words
    skipped: int  # actions that were not possible
    left_over: int  # words that no action attached
    heads: int  # that are right
    labelled: int  # words with the right head and relation
    whole: int  # sentences all of whose words have both

    @property
    def uas(self) -> float | None:
        """The share of words with the right head; None if there are no words."""
        return share(self.heads, self.words)

    @property
    def las(self) -> float | None:
        """The share of words with the right head and relation; None if there are no words."""
        return share(self.labelled, self.words)


def score_attachments(gold: Sequence[Dependencies], outputs: Sequence[Execution]) -> AttachmentScores:
    """Compare trees with the gold ones of the same sentences."""
    heads = labelled = whole = 0
    for wanted, output in zip(gold, outputs, strict=True):
        got = output.sentence
        right = [a == b for a, b in zip(wanted.heads, got.heads, strict=True)]
        same = [a == b for a, b in zip(wanted.labels, got.labels, strict=True)]
        both = [a and b for a, b in zip(right, same, strict=True)]
        heads, labelled, whole = heads + sum(right), labelled + sum(both), whole + all(both)
    return AttachmentScores(
        len(gold),
        sum(len(sentence.words) for sentence in gold),
        sum(output.malformed for output in outputs),
        sum(output.skipped for output in outputs),
        sum(output.left_over for output in outputs),
        heads,
        labelled,
        whole,
    )


def compare_attachments(
    gold: Sequence[Dependencies], outputs: Mapping[str, Sequence[bytes]]
) -> dict[str, AttachmentScores]:
    """Compare what networks wrote with the gold trees, beside baselines that do not look at the words.

    Args:
        gold: sentences with their trees.
        outputs: by system, a line of actions for each.

    Raises:
        InputError: a system has another number of lines.
    """
    scores = {}
    for name, lines in outputs.items():
        if len(lines) != len(gold):
            raise InputError(f"{name}: expected a line for each of {len(gold):,} sentences, found {len(lines):,}")
        executed = [run_actions(words(line), tree.words) for tree, line in zip(gold, lines, strict=True)]
        scores[name] = score_attachments(gold, executed)
    return scores | {name: score_attachments(gold, chain) for name, chain in _baselines(gold).items()}


def _baselines(gold: Sequence[Dependencies]) -> dict[str, list[Execution]]:
    """Chains of words; relations are the gold trees' commonest, of the root's dependents and of other words."""
    pairs = [pair for sentence in gold for pair in zip(sentence.heads, sentence.labels, strict=True)]
    root = _commonest(label for head, label in pairs if not head)
    inner = _commonest(label for head, label in pairs if head)
    heads: dict[str, Callable[[int], Iterable[int]]] = {
        BEFORE: range,
        BEHIND: lambda count: [*range(2, count + 1), *[0] * bool(count)],
    }
    return {
        name: [_chain(sentence.words, tuple(of(len(sentence.words))), (root, inner)) for sentence in gold]
        for name, of in heads.items()
    }


def _chain(text: tuple[bytes, ...], heads: tuple[int, ...], labels: tuple[bytes, bytes]) -> Execution:
    return Execution(Dependencies(text, heads, tuple(labels[bool(head)] for head in heads)), 0, 0)


def _commonest(labels: Iterable[bytes]) -> bytes:
    """The label that most words have; ``dep`` if there are none."""
    common = Counter(labels).most_common(1)
    return common[0][0] if common else LEFT_OVER


def as_grid(scores: Mapping[str, AttachmentScores]) -> Grid:
    """A system a row; shares in per cent, of sentences and of words, and two counts."""
    rows = [
        [
            name,
            per_cent(share(s.malformed, s.sentences)),
            s.skipped,
            s.left_over,
            per_cent(s.uas),
            per_cent(s.las),
            per_cent(share(s.whole, s.sentences)),
        ]
        for name, s in scores.items()
    ]
    some = next(iter(scores.values()))
    return Grid(f"Attachments of {some.words:,} words in {some.sentences:,} sentences, per cent", HEADER, rows)
