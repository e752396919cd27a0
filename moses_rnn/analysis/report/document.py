"""A report on a scored table and its model: everything the paper shows, as one page of HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from moses_rnn import __version__
from moses_rnn.analysis import preferences, scatter
from moses_rnn.analysis.alignment_maps import AlignmentMap, as_grid
from moses_rnn.analysis.maps import Map
from moses_rnn.analysis.report import page
from moses_rnn.analysis.report.findings import TOP, Findings, alignment_name
from moses_rnn.analysis.report.head import head
from moses_rnn.analysis.report.learning import costs, training, tuned
from moses_rnn.analysis.report.model import explained, gates, samples
from moses_rnn.analysis.report.page import Markup, Section
from moses_rnn.analysis.report.survey import Coverage
from moses_rnn.analysis.report.verdicts import verdicts
from moses_rnn.analysis.targets import Targets
from moses_rnn.formats.grids import Cell, Grid, unescaped

CITATION = (
    "Kyunghyun Cho, Bart van Merriënboer, Caglar Gulcehre, Dzmitry Bahdanau, Fethi Bougares, Holger Schwenk and "
    "Yoshua Bengio: Learning Phrase Representations using RNN Encoder–Decoder for Statistical Machine Translation. "
    "EMNLP 2014, arXiv:1406.1078. Sections, tables and figures are those of this paper."
)
TARGETS_HEADER = ("source", "#", "by the table", "its p", "by the RNN", "its p")
UNKNOWN_SHOWN = 20  # words outside a shortlist
HOW_TO_GET = "pip install 'moses-rnn[plot]' brings what is missing; then write the report again."


def write_report(findings: Findings, made: str = "") -> bytes:
    """The page, which says when and how it was made; equal findings give equal bytes."""
    looked_into = [gates(findings.gates), explained(findings.explained)] if findings.knows_gates else []
    sections = [
        training(findings),
        coverage(findings.coverage, findings.scatter),
        costs(findings),
        *([tuned(findings, findings.tuning)] if findings.tuning else []),
        targets(findings),
        samples(findings.proposals, findings.options.samples),
        observations(findings),
        scores(findings),
        word_map(findings),
        phrase_map(findings),
        *looked_into,
        *[alignments(findings)] * bool(findings.options.source_text),
    ]
    network = "RNN" if findings.knows_gates else findings.model.network_title
    title = f"Phrase table {findings.name} and its {network}"
    foot = f"Made by moses_rnn {__version__}{made}. The paper: {CITATION}"
    return page.page(title, head(findings), sections, foot)


def coverage(counted: Coverage, pairs: scatter.Scatter) -> Section:
    """What the shortlists and the floor leave out."""
    rows = [
        (
            "source words",
            counted.source_words,
            counted.source_unknown,
            _share(counted.source_unknown, counted.source_words),
        ),
        (
            "target words",
            counted.target_words,
            counted.target_unknown,
            _share(counted.target_unknown, counted.target_words),
        ),
        ("pairs with <unk>", counted.lines, counted.pairs_unknown, _share(counted.pairs_unknown, counted.lines)),
    ]
    grid = Grid("", ("running words of the table", "all", "<unk>", "share"), rows)
    how = (
        "Words outside the shortlists are <unk> to the network (section 4.1: there 15 000 words, 93% of the corpus), "
        "so pairs that differ only in them score alike; pairs at the floor cannot be told apart by the feature at all. "
        "The words of each line count once, so frequent phrases weigh no more than rare ones."
    )
    outside = [
        page.paragraph(f"Most frequent words outside the {side} shortlist: ", page.joined(_with_counts(counts), ", "))
        for side, counts in (("source", counted.source_words_unknown), ("target", counted.target_words_unknown))
        if counts
    ]
    return Section("coverage", "Coverage", how, [page.table(grid), page.paragraph(_at_floor(pairs)), *outside])


def _with_counts(counts: Counter[bytes]) -> list[Markup]:
    """The most frequent of them; those that are as frequent in the order of their bytes."""
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:UNKNOWN_SHOWN]
    return [page.joined([page.phrase(word), page.element("small", f"{count:,}")], "") for word, count in first]


def _at_floor(pairs: scatter.Scatter) -> str:
    group = pairs.groups[0]
    without_log = f"{group.without_log:,} have" if group.without_log else "none has"
    return (
        f"{group.at_floor:,} of {group.pairs:,} pairs ({_share(group.at_floor, group.pairs)}) have an RNN score at the "
        f"floor, log p = {pairs.floor:g}; {without_log} a score of 0."
    )


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.2%}" if whole else "–"


def targets(findings: Findings) -> Section:
    """Table 2."""
    how = (
        "Table 2 (section 4.3): the best targets of long source phrases by the table's p(target|source) and by the "
        "RNN, each with its probability. Of rare phrases the table's estimates are coarse (1, ½, ⅓ …), and there the "
        "RNN has something to say; the paper sees it choose literal and rather short targets."
    )
    return Section("targets", "Table 2: best targets", how, list(_targets(findings)))


def _targets(findings: Findings) -> Iterator[Markup]:
    for selection in findings.selections:
        remark = str(selection).removeprefix(f"{selection.wanted.title} (").removesuffix(")")
        yield page.element("h3", selection.wanted.title)
        yield page.note(f"{remark[:1].upper()}{remark[1:]}.")
        rows = [row for one in selection.sources for row in _ranks(one, findings)]
        if rows:
            yield page.table(Grid("", TARGETS_HEADER, rows, group_columns=1))


def _ranks(source: Targets, findings: Findings) -> Iterator[Sequence[Cell]]:
    """The best targets of a source; what else is known of it stands beside it, which spares two columns on a phone."""
    seen = f"seen {source.frequency:,g} times, " if source.frequency else ""
    title = page.joined([page.phrase(source.source), page.element("small", f"{seen}{len(source.lines):,} targets")])
    for rank, pick in enumerate(source.picks(findings.table.column, TOP), start=1):
        yield title, rank, *pick


def observations(findings: Findings) -> Section:
    """Whether what the paper observes is so here."""
    how = (
        "Sections 3.1 and 4.3 observe this on examples; here it is counted over the whole table. These are figures of "
        "one table and one model, which has learned from such a table itself: they describe, they do not prove."
    )
    observed = [
        page.joined([page.element("strong", f"{claim}: {verdict}."), text])
        for claim, verdict, text in verdicts(findings.summary, findings.literalness)
    ]
    grid = preferences.as_grid(findings.summary)
    notes = " ".join(preferences.notes(findings.summary)[:2])
    all_sources = findings.summary.classes[0]
    if all_sources.agreement is not None and all_sources.chance is not None:
        agree = f"Both choose the same best target for {all_sources.agreement:.1%} of the sources"
        observed.append(page.markup(f"{agree}; a blind choice would for {all_sources.chance:.1%}."))
    return Section("preferences", "What the RNN prefers", how,
                   [page.bullets(observed), page.table(grid), page.note(notes)])  # fmt: skip


def scores(findings: Findings) -> Section:
    """Figure 3."""
    how = (
        "Figure 3 (section 4.3): where pairs lie by both log-probabilities. Were the points on one line, the RNN would "
        "tell the decoder nothing new; the more they spread, the more it adds, right or wrong. Logarithms are natural."
    )
    all_pairs = findings.scatter.groups[0]
    caption = f"log p(target|source) of table and RNN, {all_pairs.pairs:,} pairs; the scale says how many a cell holds."
    body = [_picture(findings, "scatter", caption), page.table(scatter.groups_grid(findings.scatter))]
    return Section("scores", "Figure 3: both scores", how, body)


def word_map(findings: Findings) -> Section:
    """Figure 4."""
    how = (
        "Figure 4 (section 4.4): the most frequent source words by their embeddings. Words that do the same work "
        "should lie together. Distances across such a map mean little; neighbours in an enlarged part mean more."
    )
    return Section("words", "Figure 4: words", how, list(_map(findings, "words")))


def phrase_map(findings: Findings) -> Section:
    """Figure 5."""
    vector = "their summary c" if findings.knows_gates else "what the decoder begins with"
    how = (
        f"Figure 5 (section 4.4): source phrases of four and more words by {vector}. Phrases alike in meaning or "
        "syntax should lie together; a part's share says how many neighbours on the map are those in the network."
    )
    return Section("phrases", "Figure 5: phrases", how, list(_map(findings, "phrases")))


def alignments(findings: Findings) -> Section:
    """Heat maps, as in the paper of RNNsearch."""
    how = (
        "Bahdanau et al. 2015, Figure 3: where the network looked while it translated the first lines of a text by "
        "itself. The source is across, the target down; each row sums to 1, white is 0 and black 1. Words in grey are "
        "<unk> to the network. A dark line along the diagonal means that words are translated in order, one by one."
    )
    body = [part for one in findings.alignments for part in _alignment(findings, one)]
    return Section("alignments", "Alignments", how, body or [page.paragraph("There are no such lines.")])


def _alignment(findings: Findings, alignment: AlignmentMap) -> Iterator[Markup]:
    caption = f"Line {alignment.line}: {alignment.text}"
    yield page.element("div", _picture(findings, alignment_name(alignment), caption), class_="alignment")
    grid = as_grid(alignment)
    readable = replace(grid, header=[unescaped(word) for word in grid.header])  # as words in cells are
    yield page.details(f"Line {alignment.line} in per cent", page.table(readable))


def _map(findings: Findings, name: str) -> Iterator[Markup]:
    drawn = findings.maps.get(name)
    if drawn is None:
        yield page.paragraph(f"There are no such {name}.")
        return
    caption = f"{len(drawn.labels):,} {name}; framed parts are enlarged beside the map."
    yield page.element("div", _picture(findings, name, caption), class_="map")
    if "scikit-learn" in findings.missing:
        yield page.paragraph(f"Points are laid out by PCA: t-SNE, as in the paper, needs scikit-learn. {HOW_TO_GET}")
    yield from _parts(drawn)


def _parts(drawn: Map) -> Iterator[Markup]:
    for number, zoom in enumerate(drawn.zooms, start=1):
        title = f"Part {number}: {len(zoom.points):,} points, {zoom.purity:.0%} of neighbours are the network's"
        labels = page.joined([page.phrase(drawn.labels[i]) for i in zoom.points], " · ")
        yield page.details(title, page.paragraph(labels))


def _picture(findings: Findings, name: str, caption: str) -> Markup:
    data = findings.pictures.get(name)
    if data is None:
        return page.paragraph(f"Pictures need matplotlib. {HOW_TO_GET}")
    return page.element("div", page.picture(data, "svg", caption, caption), class_=name)
