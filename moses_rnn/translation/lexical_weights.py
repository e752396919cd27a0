"""Lexical weights and alignments of new phrase pairs, estimated from the words of a phrase table.

Koehn, Och and Marcu 2003 (Statistical phrase-based translation, section 4) weight a pair by its words: each target
word by the mean of p(target word | source word) over the source words that it is linked to, or by p(target word | no
word), and the pair by their product; the other direction likewise. Moses reads the words' probabilities from its
lexicon (``lex.f2e``, ``lex.e2f``), which may be missing beside a phrase table. This module counts them in the table.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from moses_rnn.errors import FormatError
from moses_rnn.moses.alignments import Links, check_links, parse_links, transposed
from moses_rnn.table.phrase_table import TableLine
from moses_rnn.table.phrases import words

NO_WORD = b""  # partner of words without a link
LEAST = 1e-7  # probability of words that are never linked
WHOLE_LINK: Links = ((0, 0),)


class LexicalWeights:
    """p(target word | source word) and p(source word | target word): a link's share of all links of the word.

    Links are those of the table's pairs with a single word on one side. Each pair counts as often as it was extracted
    (field 5), or once if the table does not say. A word of such a pair without a link counts as linked to NO_WORD.
    Lines without a valid alignment, and those of an earlier extension, are skipped.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[bytes, dict[bytes, float]] = defaultdict(dict)  # by source word, then target word
        self._source_counts: defaultdict[bytes, float] = defaultdict(float)
        self._target_counts: defaultdict[bytes, float] = defaultdict(float)

    def add(self, line: TableLine) -> None:
        """Count a line if one of its sides is a single word."""
        if b" " in line.source and b" " in line.target:
            return
        source, target = words(line.source), words(line.target)
        links = _links(line, len(source), len(target))
        if not links or 1 not in (len(source), len(target)) or line.is_proposed:
            return
        times = line.counts.pair or 1.0
        linked = {s for s, _ in links}, {t for _, t in links}
        pairs = [(source[s], target[t]) for s, t in set(links)]
        pairs += ((word, NO_WORD) for i, word in enumerate(source) if i not in linked[0])
        pairs += ((NO_WORD, word) for i, word in enumerate(target) if i not in linked[1])
        for s, t in pairs:
            self._counts[s][t] = self._counts[s].get(t, 0.0) + times
            self._source_counts[s] += times
            self._target_counts[t] += times

    def _count(self, source: bytes, target: bytes) -> float:
        return self._counts.get(source, {}).get(target, 0.0)

    def p_target(self, target: bytes, source: bytes) -> float:
        """Return p(target word | source word); 0 for words that are never linked."""
        count = self._count(source, target)
        return count / self._source_counts[source] if count else 0.0

    def p_source(self, source: bytes, target: bytes) -> float:
        """Return p(source word | target word); 0 for words that are never linked."""
        count = self._count(source, target)
        return count / self._target_counts[target] if count else 0.0

    def align(self, source: list[bytes], target: list[bytes]) -> Links:
        """Align a pair: link each word to its best match on the other side.

        First link each target word to a source word, or to none if NO_WORD matches better; then do the same for each
        source word without a link. The match of two words is p(t | s) p(s | t); ties go to the word nearest to the
        diagonal. If no words match, links follow the diagonal.
        """
        fits = [[self._fit(s, t) for t in target] for s in source]
        links = set()
        for t, word in enumerate(target):
            best = _nearest_best([row[t] for row in fits], t / len(target), self._fit(NO_WORD, word))
            links |= {(best, t)} if best is not None else set()
        unlinked = set(range(len(source))) - {s for s, _ in links}
        for s in unlinked:
            best = _nearest_best(fits[s], s / len(source), self._fit(source[s], NO_WORD))
            links |= {(s, best)} if best is not None else set()
        return tuple(sorted(links)) or _diagonal(len(source), len(target))

    def _fit(self, source: bytes, target: bytes) -> float:
        return self.p_target(target, source) * self.p_source(source, target)

    def weigh(self, source: list[bytes], target: list[bytes], links: Links) -> tuple[float, float]:
        """Return the lexical weights of an aligned pair: p(source | target), then p(target | source)."""
        return _weigh(source, target, links, self.p_source), _weigh(target, source, transposed(links), self.p_target)


def _links(line: TableLine, source_words: int, target_words: int) -> Links:
    try:
        links = parse_links(line.alignment)
        check_links(links, source_words, target_words)
    except FormatError:  # validation reports it
        return ()
    return links or (WHOLE_LINK if source_words == target_words == 1 else ())


def _weigh(side: list[bytes], other: list[bytes], links: Links, p: Callable[[bytes, bytes], float]) -> float:
    """Return the product, over a side's words, of the mean p(word | linked word)."""
    linked: dict[int, list[bytes]] = defaultdict(list)
    for i, j in links:
        linked[i].append(other[j])
    return math.prod(_mean([p(word, given) for given in linked.get(i, [NO_WORD])]) for i, word in enumerate(side))


def _mean(probabilities: Sequence[float]) -> float:
    return max(sum(probabilities) / len(probabilities), LEAST)


def _nearest_best(fits: list[float], place: float, of_no_word: float) -> int | None:
    """Return the index of the best match, ties by distance to `place`; None if no word matches better."""
    best = max(range(len(fits)), key=lambda i: (fits[i], -abs(i / len(fits) - place)))
    return best if fits[best] > of_no_word else None


def _diagonal(source_words: int, target_words: int) -> Links:
    """Return a diagonal link for each word of the longer side."""
    longer = max(source_words, target_words)
    return tuple((i * source_words // longer, i * target_words // longer) for i in range(longer))
