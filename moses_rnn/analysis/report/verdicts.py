"""The paper's observations held against the figures of one table, in words that say no more than the figures do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from moses_rnn.analysis.preferences import Preferences, Summary
from moses_rnn.analysis.report.survey import Literalness

DEVIATIONS = 2.0  # of a fair coin, from where on a difference is called one
FEWEST = 30  # sources or pairs of which anything is said
# |Spearman's correlation| from which on it is called so
STRONG, MODERATE, WEAK = 0.5, 0.3, 0.1
STRENGTHS = ((STRONG, "a strong"), (MODERATE, "a moderate"), (WEAK, "a weak"), (0.0, "practically no"))
HOLDS, PARTLY, FAILS, OPEN = "Holds here", "Holds in part", "Does not hold here", "Not to be decided here"
UNSEEN = "Not seen here"


def verdicts(summary: Summary, literalness: Literalness) -> list[tuple[str, str, str]]:
    """What the paper says, whether it holds, and by which figures."""
    everything = summary.classes[0]
    return [
        ("The RNN prefers shorter targets (section 4.3)", *shorter(everything)),
        ("The RNN prefers literal targets (section 4.3)", *literal(literalness)),
        ("The RNN does not know how often a pair was seen (section 3.1)", *insensitive(summary)),
    ]


def shorter(found: Preferences) -> tuple[str, str]:
    """Of the length of the best targets."""
    if found.sources < FEWEST or found.shorter is None or found.longer is None:
        return OPEN, f"Only {found.sources:,} sources have several targets."
    told = (
        f"Over {found.sources:,} sources with several targets, the best target has {found.words_by_rnn:.2f} words by "
        f"the RNN and {found.words_by_table:.2f} by the table ({found.words_of_all:.2f} over all targets); the RNN's "
        f"is shorter for {found.shorter:.1%} of the sources and longer for {found.longer:.1%}, where of targets that "
        "are equally good to the table the mean length counts."
    )
    if found.shorter_apart is not None and found.longer_apart is not None:
        told += (
            f" Where the RNN's is none of the table's best ({found.apart:,} sources), it is shorter for "
            f"{found.shorter_apart:.1%} and longer for {found.longer_apart:.1%}."
        )
    return _together(
        _decided(found.shorter * found.sources, found.longer * found.sources),
        _decided((found.shorter_apart or 0) * found.apart, (found.longer_apart or 0) * found.apart),
    ), told


def _together(first: str, second: str) -> str:
    """Of two verdicts: to hold, both must."""
    both = {first, second}
    return first if len(both) == 1 else PARTLY if HOLDS in both else FAILS


def literal(found: Literalness) -> tuple[str, str]:
    """Of the lexical weight, as far as that stands for being literal."""
    if found.sources < FEWEST:
        why = "the table has no lexical weights, or the two hardly ever choose different targets"
        return OPEN, f"Literalness can only be judged by lexical weights, and {why}."
    told = (
        f"Judged by the lexical weight lex(target | source) for each word, which is only a stand-in: where the best "
        f"targets differ ({found.sources:,} sources), the RNN's is the more literal one for "
        f"{found.rnn_more / found.sources:.1%} and the less literal one for {found.rnn_less / found.sources:.1%}."
    )
    return _decided(found.rnn_more, found.rnn_less), told


def _decided(for_it: float, against: float) -> str:
    """Whether a difference is more than chance would bring about (a sign test)."""
    difference, noise = for_it - against, DEVIATIONS * math.sqrt(for_it + against)
    return HOLDS if difference > noise else FAILS if difference < -noise else OPEN


def insensitive(found: Summary) -> tuple[str, str]:
    """Of correlations with the counts of pairs."""
    rnn, table = found.rnn_over_pairs, found.table_over_pairs
    if found.sample < FEWEST:
        return OPEN, f"Only {found.sample:,} pairs of sources with several targets have a count."
    if rnn is None:
        return OPEN, f"Of {found.sample:,} pairs of sources with several targets, all have one count or one score."
    told = (
        f"Over a sample of {found.sample:,} pairs of sources with several targets, the RNN's score has {strength(rnn)} "
        f"rank correlation with the pair's count ({rnn:+.2f}; p(target|source): "
        f"{'–' if table is None else format(table, '+.2f')})."
    )
    within = found.classes[0].rnn_with_count
    strongest = max(abs(rnn), abs(within or 0.0))
    verdict = HOLDS if strongest < WEAK else PARTLY if strongest < MODERATE else UNSEEN
    return verdict, told + "".join(_caveats(found.classes[0], rnn))


def _caveats(found: Preferences, over_pairs: float) -> Iterator[str]:
    """What else is to be known of these correlations."""
    within = found.rnn_with_count
    if within is not None:
        yield f" Among the targets of one source it is {within:+.2f} on average, over {found.ordered:,} sources."
    if over_pairs >= WEAK:
        yield " Short pairs are both frequent and likely, which is part of the correlation over pairs."
    if within is not None and within >= WEAK:
        yield (" That need not come from counts, which training does not see: a source's frequent translations are "
               "often its plain ones, which a good model finds likely.")  # fmt: skip


def strength(correlation: float) -> str:
    """A rank correlation in words."""
    return next(words for least, words in STRENGTHS if abs(correlation) >= least)
