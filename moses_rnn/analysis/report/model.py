"""The sections of a report for which the network itself was run: samples, gates, explained pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from moses_rnn.analysis.explain import TABLE_COLUMNS, Explanation
from moses_rnn.analysis.gates import THRESHOLD, GateReport, Unit, WordGate, histogram
from moses_rnn.analysis.report import page
from moses_rnn.analysis.report.page import Figure, Markup, Section
from moses_rnn.analysis.report.survey import Disagreement
from moses_rnn.formats.grids import Cell, Grid
from moses_rnn.formats.phrase_table import DIRECT_COLUMN
from moses_rnn.translation.proposals import Proposals, Totals

NO_BREAK = Markup("&nbsp;")
TOP_SAMPLES = 5  # of each source


def samples(proposals: Sequence[Proposals], drawn: int) -> Section:
    """Table 3."""
    how = (
        f"Table 3 (section 4.3): {drawn} targets drawn from the RNN for each source of Table 2, the best "
        f"{TOP_SAMPLES} by its log p. It proposes them without looking at the table; many that the table lacks "
        "and that read well would mean that the RNN could do more than rescore."
    )
    totals = Totals()
    for one in proposals:
        totals.add(one)
    rows = [row for one in proposals for row in _proposals(one)]
    grid = Grid("", ("source", "#", "sampled target", "log p", "times drawn", "in the table"), rows, group_columns=1)
    body = [page.table(grid), page.paragraph(f"{totals.summary('samples')}.")] if rows else [page.paragraph("None.")]
    unknown = page.joined([page.phrase(word) for word in totals.unknown], ", ")
    body += [page.paragraph("Words of these sources that the network reads as <unk>: ", unknown)] * bool(totals.unknown)
    return Section("samples", "Table 3: samples", how, body)


def _proposals(proposals: Proposals) -> Iterator[Sequence[Cell]]:
    for rank, one in enumerate(proposals.best[:TOP_SAMPLES], start=1):
        known = {True: "yes", False: "no", None: "–"}[one.in_table]
        yield proposals.source, rank, one.target or "(nothing)", _fixed(one.log_prob), one.times, known


def _fixed(value: float) -> Figure:
    return Figure(f"{value:z.2f}")


def gates(report: GateReport | None) -> Section:
    """What the units do."""
    how = (
        "Section 2.3: a unit whose update gate z is mostly near 1 keeps its state and can carry something through the "
        "phrase; a unit whose reset gate r is mostly near 0 forgets what was before and attends to the word at hand. "
        "The paper expects both kinds; which words open and close a gate hints at what a unit is for."
    )
    return Section("gates", "Gates", how, list(_gates(report)) if report else [page.paragraph("There are no phrases.")])


def _gates(report: GateReport) -> Iterator[Markup]:
    units = len(report.z)
    yield page.paragraph(
        f"The {report.network}'s {units:,} units over {report.phrases:,} phrases, {report.steps:,} steps: "
        f"{int(report.long_term.sum()):,} are long-term (z above {THRESHOLD:g} at most steps), "
        f"{int(report.short_term.sum()):,} short-term (r below {THRESHOLD:g} at most steps), "
        f"{int((report.long_term & report.short_term).sum()):,} of them both. Mean z is {report.z.mean():.2f}, mean r "
        f"{report.r.mean():.2f}."
    )
    yield page.element("div", page.columns(histogram(report.z), "Units by mean z (1 keeps)"),
                       page.columns(histogram(report.r), "Units by mean r (0 forgets)"), class_="charts")  # fmt: skip
    yield page.element("h3", "Units that remember most, with their mean z at words")
    yield page.table(_units(report.remembering, ("keeps at", "takes in")))
    yield page.element("h3", "Units that forget most, with their mean r at words")
    yield page.table(_units(report.resetting, ("remembers at", "forgets at")))


def _units(units: Sequence[Unit], verbs: tuple[str, str]) -> Grid:
    rows = [(str(u.unit), _fixed(u.z), _fixed(u.r), _words(u.highest), _words(u.lowest)) for u in units]
    return Grid("", ("unit", "mean z", "mean r", *verbs), rows)


def _words(gates: Sequence[WordGate]) -> Markup:
    return page.words_of([page.joined([page.phrase(one.word), f"{one.gate:.2f}"], NO_BREAK) for one in gates])


def explained(disputes: Sequence[tuple[Disagreement, Explanation]]) -> Section:
    """Pairs on which both disagree."""
    how = (
        "Among frequent sources, the pairs on which both disagree most (cf. Table 2, section 4.3): where the RNN is "
        "right, tuning its weight pays; where it is wrong, its words show why. log p of a pair is the sum of that of "
        "its words, each given the source and the words before (section 2.2)."
    )
    body = [part for disagreement, explanation in disputes for part in _explained(disagreement, explanation)]
    return Section("explained", "Pairs in dispute", how, body or [page.paragraph("There are no such pairs.")])


def _explained(disagreement: Disagreement, explanation: Explanation) -> Iterator[Markup]:
    other = "RNN" if disagreement.by == "table" else "table"
    yield page.element("h3", page.phrase(explanation.source), " → ", page.phrase(explanation.target))
    seen = f", seen {disagreement.frequency:,g} times," if disagreement.frequency else ""
    yield page.paragraph(
        f"The {disagreement.by}'s first choice for this source{seen} is number {disagreement.rank:,} of "
        f"{explanation.targets:,} with the {other}. {explanation.producer}: log p = {explanation.log_prob:z.3f}."
    )
    yield page.table(_word_grid(explanation))
    yield page.table(_score_grid(explanation))
    if explanation.neighbours:
        near = [page.joined([page.phrase(phrase), f"({cosine:.2f})"]) for phrase, cosine in explanation.neighbours]
        yield page.paragraph("Nearest phrases by the summary c, with their cosine: ", page.joined(near, " · "))


def _word_grid(explanation: Explanation) -> Grid:
    rows = [
        (page.joined([page.phrase(word.word), "" if word.known else "(<unk>)"]), _fixed(word.log_prob),
         _bar(word.log_prob))
        for word in explanation.words
    ]  # fmt: skip
    return Grid("", ("target word", "log p", "p"), rows)


def _bar(log_prob: float) -> Markup:
    return page.joined([page.bar(math.exp(log_prob)), Markup(f"{math.exp(log_prob):.2g}")])


def _score_grid(explanation: Explanation) -> Grid:
    """The table's scores, each with the rank that it gives."""
    ranks = {
        {"p(target|source)": TABLE_COLUMNS[DIRECT_COLUMN]}.get(rank.by, rank.by): rank for rank in explanation.ranks
    }
    rows = [
        (
            name,
            Figure(f"{score:.4g}"),
            _fixed(log),
            f"{rank.rank:,} of {rank.of:,}" if (rank := ranks.get(name)) else "",
        )
        for name, score, log in explanation.columns
    ]
    return Grid("", ("score", "value", "log", "rank"), rows)
