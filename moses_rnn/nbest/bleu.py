"""Corpus BLEU-4 from summed sufficient statistics, for many corpora at once.

Statistics are sacreBLEU's, in its order: length of the hypothesis, length of the reference, n-grams that match for
n = 1…4, n-grams that there are for n = 1…4. They add up over sentences, so that a corpus's BLEU needs only their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from moses_rnn.errors import InputError
from moses_rnn.table.phrases import words

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

STATISTICS = 10
HYPOTHESIS_LENGTH, REFERENCE_LENGTH = 0, 1
MATCHES, TOTALS = slice(2, 6), slice(6, 10)


def corpus_bleu(statistics_sum: npt.ArrayLike) -> Floats:
    """Return unsmoothed BLEU-4, 0 to 1, as Moses's mert computes it (mert/BleuScorer.cpp, calculateScore); … × 10 to ….

    sacreBLEU's ``BLEU(smooth_method="none")`` gives a hundred times this. Its default is another only for a corpus
    without a single match of some n: it smoothes (``exp``), we and Moses say 0. The brevity penalty is the same,
    exp(1 - reference length / hypothesis length) where the hypothesis is the shorter. Moses computes in float32 and
    prints six digits; we compute in float64.
    """
    return _bleu(np.asarray(statistics_sum, np.float64))


def smoothed_bleu(statistics: npt.ArrayLike) -> Floats:
    """Return sentence BLEU-4, … × 10 to …, adding one match and one n-gram for n above 1 (Lin and Och, 2004)."""
    added = np.zeros(STATISTICS)
    added[MATCHES.start + 1 : MATCHES.stop] = added[TOTALS.start + 1 : TOTALS.stop] = 1
    return _bleu(np.asarray(statistics, np.float64) + added)


def _bleu(sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):  # where nothing matches, the result is set below
        log_precision = np.log(sums[..., MATCHES] / sums[..., TOTALS]).mean(-1)
        log_penalty = np.minimum(0.0, 1.0 - sums[..., REFERENCE_LENGTH] / sums[..., HYPOTHESIS_LENGTH])
        bleu = np.exp(log_precision + log_penalty)
    return np.where((sums[..., MATCHES] > 0).all(-1), bleu, 0.0)


class WordNumbers(dict[bytes, str]):
    """A number for each word of texts.

    Moses separates words at blanks only; sacreBLEU, even with ``tokenize="none"``, at any white space that Unicode
    knows, such as U+00A0. Given numbers in place of words, it counts what Moses counts.
    """

    def of(self, line: bytes | str) -> str:
        """Return the numbers of a line's words."""
        if isinstance(line, str):
            line = line.encode("utf-8", "surrogateescape")
        return " ".join([self.setdefault(word, str(len(self))) for word in words(line.rstrip(b"\r\n"))])

    @property
    def contain_white_space(self) -> bool:
        """Whether a word contains white space, so that sacreBLEU would divide it."""
        texts = (word.decode("utf-8", "surrogateescape") for word in self)
        return any(text.split() != [text] for text in texts)

    def of_texts(self, texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the numbers of texts, by name."""
        return {name: [self.of(line) for line in lines] for name, lines in texts.items()}


def find_p(before: Sequence[bytes], after: Sequence[bytes], references: Sequence[bytes], samples: int = 1000) -> float:
    """Return the p-value of the difference in BLEU between two translations, by a paired bootstrap."""
    if list(before) == list(after):
        return 1.0  # where sacreBLEU says 1 / samples
    numbers = WordNumbers()
    first, second, judged = (list(map(numbers.of, lines)) for lines in (before, after, references))
    metrics = {"BLEU": BLEU(tokenize="none", force=True)}
    named: list[Any] = [("1", first), ("2", second)]
    compared: Any = PairedTest(named, metrics, [judged], "bs", n_samples=samples)()[1]
    return float(next(values[1].p_value for label, values in compared.items() if label != "System"))


class References:
    """Reference translations, and the statistics of hypotheses compared with them.

    `texts` are the lines of each reference translation; refuses none, and texts that differ in length.
    """

    def __init__(self, texts: Sequence[Sequence[bytes | str]]) -> None:
        lengths = [len(lines) for lines in texts]
        if len(set(lengths)) != 1:
            found = ", ".join(map(str, lengths)) or "no references"
            raise InputError(f"references: expected texts with the same number of lines, found {found}")
        self._bleu = BLEU(tokenize="none", force=True, effective_order=True)  # the latter for no warning
        self._numbers = WordNumbers()
        self._lines = [[self._numbers.of(line) for line in lines] for lines in zip(*texts, strict=True)]
        self.has_bars = any(b"|" in word for word in self._numbers)  # factors, say; then hypotheses may have them too

    def __len__(self) -> int:
        return len(self._lines)

    def statistics(self, sentence: int, hypothesis: bytes) -> tuple[int, ...]:
        """Return the ten statistics of a hypothesis for a sentence (from 0)."""
        score = self._bleu.sentence_score(self._numbers.of(hypothesis), self._lines[sentence])
        return (score.sys_len, score.ref_len, *score.counts, *score.totals)
