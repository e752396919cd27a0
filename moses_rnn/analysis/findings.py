"""Findings about a scored table and its model: everything that the report shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from moses_rnn.analysis import alignment_maps, gates, maps
from moses_rnn.analysis.agreement import Literalness, Scatter, Summary, compare_literalness, compute_scatter, summarise
from moses_rnn.analysis.explain import Explainer, Explanation, Lookup, read_target
from moses_rnn.analysis.extras import missing_libraries
from moses_rnn.analysis.results import Tuning, read_tuning
from moses_rnn.analysis.scored_table import ALL, SEED, ComparedPairs, Ints, ScoredTable, split_by_count
from moses_rnn.analysis.targets import SourceGroup, long_sources
from moses_rnn.errors import InputError
from moses_rnn.files.streams import Advanced, find_input, read_text, show_nothing
from moses_rnn.models.base import Scorer
from moses_rnn.models.model import Model
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.table.phrases import normalised, words
from moses_rnn.table.signatures import records_of
from moses_rnn.translation.proposals import Converter, Proposals, Proposer, known_targets
from moses_rnn.translation.requests import WORDS_PER_SOURCE_WORD
from moses_rnn.translation.search import Sampler, SamplingConfig

SOURCES, SAMPLES = 3, 50  # sources of each kind in Table 2; samples for each of them in Table 3
PHRASES, POINTS, PARTS = 2000, 500, 3  # phrases for the gates; points and enlarged parts of each map
TEXT_LINES = 4  # lines that a network with attention translates
MIN_WORDS, TOP = 4, 3  # words of a source in Table 2 and of a phrase in Figure 5; best targets by each score
DISPUTED_WORDS, DISPUTED_TARGETS, DISPUTED_COUNT = 2, 5, 10  # least values of a source for disputes
LENGTHS = ("1 word", "2 words", "3 words", "4 or 5 words", "6+ words")
LONGEST_OF = (1, 2, 3, 5)  # most words of these classes; the last has no limit
NATS, BINS = 1.0, 20  # width and number of the bins of costs; the last one holds all higher costs
Announce = Callable[[str, str], Advanced]  # begins a step, given its name and the unit of its progress


class CostClass(NamedTuple):
    """Pairs of one kind, and their costs."""

    name: str
    pairs: int
    nats: float  # total cost
    words: int  # with </s>
    bins: list[int]  # number of pairs by cost


class Dispute(NamedTuple):
    """The first choice of the table that has the worst rank with the RNN, or the other way round."""

    by: str  # whose choice it is: table or RNN
    rank: int  # with the other, from 1
    seen: float  # how often the source was extracted
    pair: int  # its line, from 0
    targets: range  # lines of all targets of its source


@dataclass
class Coverage:
    """How many words a table has, and which of them are outside a network's shortlists."""

    source_words: int = 0
    target_words: list[int] = field(default_factory=list)  # for each line
    source_unknown: Counter[bytes] = field(default_factory=Counter)
    target_unknown: Counter[bytes] = field(default_factory=Counter)
    pairs_unknown: int = 0  # pairs with an unknown word on either side


def measure_coverage(table: ScoredTable, model: Model, advanced: Advanced = show_nothing) -> Coverage:
    """Look up all words of a table in a network's shortlists."""
    found = Coverage()
    reads, writes = model.source_vocabulary, model.target_vocabulary
    for block in table.blocks(advanced):
        pairs = block.pairs()
        for source, target in zip(map(words, pairs.sources), map(words, pairs.targets), strict=True):
            found.source_words += len(source)
            found.target_words.append(len(target))
            not_read = [word for word in source if word not in reads]
            not_written = [word for word in target if word not in writes]
            if not_read or not_written:
                found.source_unknown.update(not_read)
                found.target_unknown.update(not_written)
                found.pairs_unknown += 1
    return found


@dataclass(frozen=True)
class Findings:
    """Everything in a report. Only an RNN Encoder-Decoder has gates and disputes."""

    table: ScoredTable
    model: Model
    pairs: ComparedPairs
    coverage: Coverage
    literalness: Literalness
    selections: Sequence[SourceGroup]
    summary: Summary
    scatter: Scatter
    proposals: Sequence[Proposals]
    gates: gates.GateReport | None
    maps: Mapping[str, maps.Map]  # words and phrases
    disputes: Sequence[tuple[Dispute, Explanation]]
    costs: Sequence[CostClass]
    tuning: Tuning | None
    alignments: Sequence[alignment_maps.AlignmentMap] | None  # None: there is no text
    missing: Sequence[str] = field(default_factory=missing_libraries)  # libraries for pictures

    @property
    def knows_gates(self) -> bool:
        """Whether the network is an RNN Encoder-Decoder."""
        return self.model.architecture is ENCDEC

    @property
    def history(self) -> list[tuple[float, float]]:
        """Minutes of training and nats per token of each evaluation; others than positive numbers are left out."""
        steps = records_of(self.model.provenance, "history")
        figures = [(step.get("seconds"), step.get("nats_per_token")) for step in steps]
        return [(seconds / 60, nats) for seconds, nats in figures if _is_positive(seconds) and _is_positive(nats)]


def _is_positive(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and 0 < value < math.inf


def gather(
    table: ScoredTable, model: Model, scorer: Scorer, source_text: str | None, results: str | None, announce: Announce
) -> Findings:
    """Inspect a table, its network and its scores.

    Raises:
        InputError: the model is inverse or learned from phrases of another form, the table is damaged or unsorted, or
            `results` is not a results.json.
        CheckpointError: there is a source text, but the model has no attention.
    """
    reading = Converter(model)
    if reading.inverse:
        found = f"found direction {model.direction}"
        raise InputError(f"{table.path}: expected a model of p(target | source) to report on, {found}")
    reading.check_form(table.path, table.form)
    tuning = read_tuning(find_input(results)) if results else None
    alignments = _alignments(model, source_text, announce) if source_text else None
    pairs = table.pairs(announce("reading the table", "lines"))
    coverage = measure_coverage(table, model, announce("looking words up", "lines"))
    selections = long_sources(table, pairs, SOURCES, min_words=MIN_WORDS, min_targets=TOP)
    phrases = _draw_sources(table, pairs, reading, PHRASES)
    announce("sampling targets", "")
    proposals = _proposals(model, scorer, selections, reading)
    found_gates, disputes = None, []
    if model.architecture is ENCDEC:
        announce("looking at gates", "")
        found_gates = gates.measure_gates(model, phrases) if phrases else None
        disputes = list(_explain(pairs, table, Explainer(model, scorer, phrases, table.signature.names)))
    return Findings(
        table=table,
        model=model,
        pairs=pairs,
        coverage=coverage,
        literalness=compare_literalness(pairs),
        selections=selections,
        summary=summarise(pairs),
        scatter=compute_scatter(pairs, floor=table.signature.floor(table.column)),
        proposals=proposals,
        gates=found_gates,
        maps=dict(_maps(model, _draw_sources(table, pairs, reading, POINTS, MIN_WORDS), announce)),
        disputes=disputes,
        costs=costs_by_class(pairs, np.array(coverage.target_words)),
        tuning=tuning,
        alignments=alignments,
    )


def _draw_sources(
    table: ScoredTable, pairs: ComparedPairs, reading: Converter, count: int, least: int = 0
) -> list[bytes]:
    """Draw sources of at least `least` words, in the network's words."""
    fitting = np.flatnonzero(pairs.source_words >= least)
    drawn = pairs.begins[fitting[np.argsort(pairs.source_keys[fitting])[:count]]].tolist()
    lines = table.lines(drawn)
    return [*dict.fromkeys(reading.pair(lines[line])[0] for line in drawn)]


def find_disputes(pairs: ComparedPairs) -> list[Dispute]:
    """Find the frequent sources on which both disagree most: one by the table's first choice, one by the RNN's.

    A source with several equally good best targets has no first choice.
    """
    best, begins, sizes = pairs.best, pairs.begins, pairs.sizes
    is_frequent = (pairs.source_words >= DISPUTED_WORDS) & (sizes >= DISPUTED_TARGETS)
    is_frequent &= pairs.source_counts >= DISPUTED_COUNT
    found = []
    for by, own, other in (("table", 0, 1), ("RNN", 1, 0)):
        is_choice = is_frequent & (np.add.reduceat(best[:, own], begins, dtype=np.int64) == 1)
        chosen = np.flatnonzero(best[:, own] & is_choice[pairs.source])
        sources = pairs.source[chosen]
        limits = np.full(len(begins), np.inf)
        limits[sources] = pairs.logs[chosen, other]
        ranks = 1 + np.add.reduceat(pairs.logs[:, other] > limits[pairs.source], begins, dtype=np.int64)[sources]
        for i in np.lexsort((-pairs.source_counts[sources], -ranks))[:1]:
            source = sources[i]
            seen, targets = float(pairs.source_counts[source]), pairs.pairs_of(source)
            found.append(Dispute(by, int(ranks[i]), seen, int(chosen[i]), targets))
    return [dispute for dispute in found if dispute.rank > 1]


def _explain(pairs: ComparedPairs, table: ScoredTable, explain: Explainer) -> Iterator[tuple[Dispute, Explanation]]:
    for one in find_disputes(pairs):
        lines = table.lines(one.targets)
        targets = [read_target(line, table.path, table.form) for line in lines.values()]
        chosen = one.pair - one.targets.start
        source, (target, _, read) = normalised(lines[one.pair].source), targets[chosen]
        yield one, explain(Lookup(source, target, read, targets, chosen))


def _proposals(model: Model, scorer: Scorer, selections: Sequence[SourceGroup], reading: Converter) -> list[Proposals]:
    lines = [line for selection in selections for one in selection.sources for line in one.lines]
    sources = list(dict.fromkeys(reading.pair(line)[0] for line in lines))
    sampler = Sampler(model.make_stepper(Compute(precision="fp64")), SamplingConfig(samples=SAMPLES, seed=SEED))
    return list(Proposer(reading, sampler, scorer, known_targets(lines, sources, reading))(sources))


def _maps(model: Model, phrases: list[bytes], announce: Announce) -> Iterator[tuple[str, maps.Map]]:
    method = "pca" if "scikit-learn" in missing_libraries() else "tsne"
    points = {
        "words": maps.word_points(model, "source", POINTS),
        "phrases": maps.phrase_points(model, phrases),
    }
    for name, (labels, vectors) in points.items():
        if labels:
            announce(f"mapping {name}", "")
            yield name, maps.draw_map(f"source {name}, {method}", labels, vectors, method, PARTS)


def _alignments(model: Model, source_text: str, announce: Announce) -> list[alignment_maps.AlignmentMap]:
    """Align the first lines of a text with the network's own translations."""
    announce("translating", "")
    # so long that the translation can always be drawn
    most_words = alignment_maps.MOST_CELLS // WORDS_PER_SOURCE_WORD - 2
    name = find_input(source_text)
    lines = [line.rstrip(b"\r\n") for line in read_text(name)]
    numbers = [number for number, line in enumerate(lines, start=1) if 0 < len(words(line)) <= most_words]
    return alignment_maps.map_alignments(model, lines, name, numbers[:TEXT_LINES]) if numbers else []


def costs_by_class(pairs: ComparedPairs, lengths: Ints) -> list[CostClass]:
    """Return the costs of all pairs, then by the length of the target in the network's words, then by count."""
    nats = -pairs.logs[:, 1]
    by_length = np.searchsorted(LONGEST_OF, lengths)
    parts = dict(split_by_count(pairs.counts))
    parts = {ALL: parts.pop(ALL), **{name: by_length == i for i, name in enumerate(LENGTHS)}, **parts}
    found = []
    for name, part in parts.items():
        if part.any():
            bins = np.bincount(np.clip(nats[part] / NATS, 0, BINS - 1).astype(np.int64), minlength=BINS).tolist()
            count = int(part.sum())
            found.append(CostClass(name, count, float(nats[part].sum()), int(lengths[part].sum()) + count, bins))
    return found
