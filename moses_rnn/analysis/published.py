"""What papers report of systems like ours: beside our figures, with test set and paper, never among them.

The column `published` of moses_configs/systems names a row or a table of this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

WMT14 = "WMT'14 English–French"
CHO_2014 = f"Cho et al. (2014), arXiv:1406.1078v3, Table 1: {WMT14}"


class PublishedBleu(NamedTuple):
    """BLEU of a system on a paper's development and test set, 0 to 100."""

    dev: float
    test: float
    source: str


@dataclass(frozen=True)
class PublishedTable:
    """A table of BLEU, or of perplexities, on a paper's test set.

    Attributes:
        source: paper, place in it, and test set.
        columns: names of the figures of a row.
        rows: a system, as the paper names it, and its figures, BLEU from 0 to 100, as they are printed.
    """

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


# by the column `published`
PUBLISHED = {
    "baseline": PublishedBleu(30.64, 33.30, CHO_2014),
    "rnn": PublishedBleu(31.20, 33.87, CHO_2014),
    "cslm-rnn": PublishedBleu(31.48, 34.64, CHO_2014),
    "cslm-rnn-wp": PublishedBleu(31.50, 34.54, CHO_2014),
}
# the same, of whole tables
PUBLISHED_TABLES = {
    "bahdanau": PublishedTable(
        f"Bahdanau et al. (2015), arXiv:1409.0473v7, Table 1: {WMT14}, newstest2014; sentences of up to 30 or 50 "
        "words, * until no gain; No UNK: sentences without unknown words",
        ("All", "No UNK"),
        (
            ("RNNenc-30", "13.93", "24.19"),
            ("RNNsearch-30", "21.50", "31.44"),
            ("RNNenc-50", "17.82", "26.71"),
            ("RNNsearch-50", "26.75", "34.16"),
            ("RNNsearch-50*", "28.45", "36.15"),
            ("Moses", "33.30", "35.63"),
        ),
    ),
    "sutskever-translating": PublishedTable(
        f"Sutskever et al. (2014), arXiv:1409.3215v3, Table 1: {WMT14}, newstest2014; LSTMs that translate "
        "by themselves",
        ("BLEU",),
        (
            ("one forward LSTM, beam 12", "26.17"),
            ("one reversed LSTM, beam 12", "30.59"),
            ("five reversed LSTMs, beam 1", "33.00"),
            ("two reversed LSTMs, beam 12", "33.27"),
            ("five reversed LSTMs, beam 2", "34.50"),
            ("five reversed LSTMs, beam 12", "34.81"),
        ),
    ),
    "sutskever-rescoring": PublishedTable(
        f"Sutskever et al. (2014), arXiv:1409.3215v3, Table 2: {WMT14}, newstest2014; LSTMs that choose "
        "from the 1000-best lists of the baseline",
        ("BLEU",),
        (
            ("baseline", "33.30"),
            ("Cho et al.", "34.54"),
            ("one forward LSTM", "35.61"),
            ("one reversed LSTM", "35.85"),
            ("five reversed LSTMs", "36.5"),
            ("oracle", "~45"),
        ),
    ),
    "jean": PublishedTable(
        f"Jean et al. (2015), arXiv:1412.2007: {WMT14}, newstest2014; RNNsearch, and RNNsearch-LV with a large "
        "vocabulary",
        ("BLEU",),
        (
            ("RNNsearch", "29.97"),
            ("RNNsearch, <unk> replaced", "33.08"),
            ("RNNsearch-LV", "32.68"),
            ("+ candidate lists", "33.36"),
            ("+ <unk> replaced", "34.11"),
            ("+ reshuffled", "34.60"),
            ("+ ensemble", "37.19"),
        ),
    ),
    "luong": PublishedTable(
        f"Luong et al. (2015), arXiv:1410.8206: {WMT14}, newstest2014; deep LSTMs without and with PosUnk",
        ("base", "PosUnk"),
        (
            ("4 layers", "29.5", "31.8"),
            ("6 layers", "30.4", "32.7"),
            ("eight of them", "34.1", "36.9"),
            ("80 000 words", "31.5", "33.1"),
            ("80 000 words, eight of them", "35.6", "37.5"),
        ),
    ),
}
# perplexities, of no system of the pipeline: by paper
PERPLEXITIES = {
    "bengio": PublishedTable(
        "Bengio et al. (2003), Table 1: perplexities of the Brown corpus; n: order, h: hidden units, m: features of a "
        "word; mixed: evenly with a trigram model; no network: deleted interpolation, Kneser-Ney back-off, back-off "
        "with 500 classes of words",
        ("valid", "test"),
        (
            ("MLP1: n 5, h 50, m 60, direct", "284", "268"),
            ("MLP2: MLP1, mixed", "275", "257"),
            ("MLP3: n 5, h 0, m 60, direct", "327", "310"),
            ("MLP4: MLP3, mixed", "286", "272"),
            ("MLP5: n 5, h 50, m 30, direct", "296", "279"),
            ("MLP6: MLP5, mixed", "273", "259"),
            ("MLP7: n 3, h 50, m 30, direct", "309", "293"),
            ("MLP8: MLP7, mixed", "284", "270"),
            ("MLP9: n 5, h 100, m 30, not direct", "280", "276"),
            ("MLP10: MLP9, mixed", "265", "252"),
            ("deleted interpolation, n 3", "352", "336"),
            ("Kneser-Ney, n 3", "334", "323"),
            ("Kneser-Ney, n 4", "332", "321"),
            ("Kneser-Ney, n 5", "332", "321"),
            ("classes, n 3", "326", "312"),
        ),
    ),
    "mikolov": PublishedTable(
        "Mikolov et al. (2010), Table 2: perplexities of the WSJ's development set after 6.4 million words; H/C: "
        "hidden units, and how often a word must be seen; with KN5: 0.75 of the network, 0.25 of the 5-gram model",
        ("RNN", "with KN5"),
        (
            ("KN5", "", "221"),
            ("RNN 60/20", "229", "186"),
            ("RNN 90/10", "202", "173"),
            ("RNN 250/5", "173", "155"),
            ("RNN 250/2", "176", "156"),
            ("RNN 400/10", "171", "152"),
            ("3xRNN static", "151", "143"),
            ("3xRNN dynamic", "128", "121"),
        ),
    ),
}
NAMES = (*PUBLISHED, *PUBLISHED_TABLES)


def format_published(names: Iterable[str | None]) -> Iterator[str]:
    """The lines of the tables that these names stand for, in Markdown, each table once and under its source.

    Args:
        names: of the column `published`, or of `PERPLEXITIES`; others than a table's are passed over.
    """
    for name in dict.fromkeys(names):
        table = (PUBLISHED_TABLES | PERPLEXITIES).get(name or "")
        if table:
            yield ""
            yield f"Published, not ours: {table.source}"
            yield ""
            yield f"| {' | '.join(('system', *table.columns))} |"
            yield "|" + "---|" * (1 + len(table.columns))
            yield from (f"| {' | '.join(row)} |" for row in table.rows)
