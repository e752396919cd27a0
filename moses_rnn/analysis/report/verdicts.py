"""The paper's observations held against the figures of one table, in words that say no more than the figures do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from moses_rnn.analysis.preferences import Preferences, Summary
from moses_rnn.analysis.report.survey import Literalness

DEVIATIONS = 2.0  # of a fair coin, beyond which a difference counts
FEWEST = 30  # sources or pairs: too few for any verdict below that
# |Spearman's correlation| from which it counts as strong, moderate or weak
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


def shorter(figures: Preferences) -> tuple[str, str]:
    """Of the length of the best targets."""
    if figures.sources < FEWEST or figures.shorter is None or figures.longer is None:
        return OPEN, f"Only {figures.sources:,} sources have several targets."
    text = (
        f"Over {figures.sources:,} sources with several targets, the best target has {figures.words_by_rnn:.2f} words "
        f"by the RNN and {figures.words_by_table:.2f} by the table ({figures.words_of_all:.2f} over all targets); the "
        f"RNN's is shorter for {figures.shorter:.1%} of the sources and longer for {figures.longer:.1%}, where of "
        "targets that are equally good to the table the mean length counts."
    )
    if figures.shorter_apart is not None and figures.longer_apart is not None:
        text += (
            f" Where the RNN's is not among the table's best ({figures.apart:,} sources), it is shorter for "
            f"{figures.shorter_apart:.1%} and longer for {figures.longer_apart:.1%}."
        )
    return _together(
        _decided(figures.shorter * figures.sources, figures.longer * figures.sources),
        _decided((figures.shorter_apart or 0) * figures.apart, (figures.longer_apart or 0) * figures.apart),
    ), text


def _together(first: str, second: str) -> str:
    """Of two verdicts: to hold, both must."""
    both = {first, second}
    return first if len(both) == 1 else PARTLY if HOLDS in both else FAILS


def literal(counts: Literalness) -> tuple[str, str]:
    """Of the lexical weight, as far as that stands for being literal."""
    if counts.sources < FEWEST:
        why = "the table has no lexical weights, or the two hardly ever choose different targets"
        return OPEN, f"Literalness can only be judged by lexical weights, and {why}."
    text = (
        f"Judged by the lexical weight lex(target | source) for each word, which is only a stand-in: where the best "
        f"targets differ ({counts.sources:,} sources), the RNN's is the more literal one for "
        f"{counts.rnn_more / counts.sources:.1%} and the less literal one for {counts.rnn_less / counts.sources:.1%}."
    )
    return _decided(counts.rnn_more, counts.rnn_less), text


def _decided(for_it: float, against: float) -> str:
    """Whether a difference is more than chance would bring about (a sign test)."""
    difference, noise = for_it - against, DEVIATIONS * math.sqrt(for_it + against)
    return HOLDS if difference > noise else FAILS if difference < -noise else OPEN


def insensitive(summary: Summary) -> tuple[str, str]:
    """Of correlations with the counts of pairs."""
    rnn, table = summary.rnn_over_pairs, summary.table_over_pairs
    if summary.sample < FEWEST:
        return OPEN, f"Only {summary.sample:,} pairs of sources with several targets have a count."
    if rnn is None:
        return OPEN, f"Of {summary.sample:,} pairs of sources with several targets, all have one count or one score."
    text = (
        f"Over a sample of {summary.sample:,} pairs of sources with several targets, the RNN's score has "
        f"{strength(rnn)} rank correlation with the pair's count ({rnn:+.2f}; p(target|source): "
        f"{'–' if table is None else format(table, '+.2f')})."
    )
    within = summary.classes[0].rnn_with_count
    strongest = max(abs(rnn), abs(within or 0.0))
    verdict = HOLDS if strongest < WEAK else PARTLY if strongest < MODERATE else UNSEEN
    return verdict, text + "".join(_caveats(summary.classes[0], rnn))


def _caveats(figures: Preferences, over_pairs: float) -> Iterator[str]:
    """What else is to be known of these correlations."""
    within = figures.rnn_with_count
    if within is not None:
        yield f" Among the targets of one source it is {within:+.2f} on average, over {figures.ordered:,} sources."
    if over_pairs >= WEAK:
        yield " Short pairs are both frequent and likely, which is part of the correlation over pairs."
    if within is not None and within >= WEAK:
        yield (" That need not come from counts, which training does not see: a source's frequent translations are "
               "often its plain ones, which a good model finds likely.")  # fmt: skip


def strength(correlation: float) -> str:
    """A rank correlation in words."""
    return next(words for least, words in STRENGTHS if abs(correlation) >= least)
