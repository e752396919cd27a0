"""Explain a phrase pair: what the table, the network and the weights say about it."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from moses_rnn.analysis.grids import readable
from moses_rnn.analysis.inspection import stepped_log_probs
from moses_rnn.analysis.neighbours import nearest_phrases
from moses_rnn.analysis.phrase_samples import draw_phrases, read_for_network
from moses_rnn.analysis.scored_table import NO_LOGARITHMS, TABLE_COLUMNS, Floats
from moses_rnn.errors import FormatError, InputError, number_of, shown
from moses_rnn.files.streams import Advanced, find_input, show_nothing
from moses_rnn.models.base import Scorer
from moses_rnn.models.ensembles import AnyModel
from moses_rnn.models.model import Model
from moses_rnn.networks.compute import HERE
from moses_rnn.networks.vocabulary import END
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, DIRECT_COLUMN, SEPARATOR, TableLine, log_of, parse_line
from moses_rnn.table.phrases import PLAIN, PhraseForm, has_gaps, normalised, words
from moses_rnn.table.signatures import own_columns, signature_of, without_number
from moses_rnn.table.table_blocks import Pairs, TableLines
from moses_rnn.translation.proposals import Converter

TABLE_LIMIT = 20  # Moses's default
NEAREST = 5  # phrases to show, those with the most similar summaries c
OTHERS = 5000  # phrases of the table to choose them from


class TableTarget(NamedTuple):
    """A target of the source in the table."""

    target: bytes
    scores: list[float]
    read: tuple[bytes, bytes]  # source and target, in the network's words


@dataclass(frozen=True)
class Lookup:
    """A pair, and what the table has for its source."""

    source: bytes
    target: bytes
    read: tuple[bytes, bytes]  # source and target, in the network's words
    targets: Sequence[TableTarget] = ()  # all targets of the source, in the table's order
    chosen: int | None = None  # the pair's place in `targets`: the first, if a rule occurs with several alignments


def parse_pair(text: bytes, form: PhraseForm = PLAIN) -> Lookup:
    """Parse 'source ||| target' or a line of a table."""
    fields = text.rstrip(b"\r\n").split(SEPARATOR)
    if len(fields) < 2 or not words(fields[0]) or not words(fields[1]) or b"\n" in text.rstrip(b"\r\n"):
        raise InputError(f"expected a pair as 'source ||| target', found {shown(text)}")
    return lookup_of(fields[0], fields[1], fields[3] if len(fields) > 3 else b"", form)


def lookup_of(source: bytes, target: bytes, alignment: bytes, form: PhraseForm) -> Lookup:
    """Make a pair from its parts. A rule of a table needs no alignment, because the table has it."""
    source, target = normalised(source), normalised(target)
    if alignment or not (form.hierarchical and (has_gaps(source) or has_gaps(target))):
        form.check(source, target, alignment, "the pair", 1)
    return Lookup(source, target, form.read(source, target, alignment))


def look_up(blocks: Iterable[TableLines], name: str, pair: Lookup, *, inverse: bool) -> tuple[Lookup, list[bytes]]:
    """Look a pair up in a table, and draw a sample of the phrases that the network reads."""
    targets: list[TableTarget] = []

    def phrases() -> Iterator[tuple[bytes]]:
        for block in blocks:
            if pair.source in block.text or b"  " in block.text or b"\t" in block.text:
                sources = block.field("source")
                at = [i for i, source in enumerate(sources) if normalised(source) == pair.source]
                lines = [parse_line(block[i : i + 1].text, name, int(block.numbers[i]), block.form) for i in at]
                targets.extend(read_target(line, name, block.form) for line in lines)
            yield from zip(dict.fromkeys(block.pairs().sides(inverse=inverse)[0]))

    others = [phrase for (phrase,) in draw_phrases(phrases(), OTHERS)]
    chosen = next((i for i, target in enumerate(targets) if target.target == pair.target), None)
    read = pair.read if chosen is None else targets[chosen].read
    return replace(pair, read=read, targets=targets, chosen=chosen), others


def read_target(line: TableLine, name: str, form: PhraseForm) -> TableTarget:
    """Parse a line of a table; raise an error if its scores are logarithms."""
    scores = [float(score) for score in words(line.scores)]
    if min(scores) < 0:
        raise FormatError(name, line.number, "probabilities as scores", shown(line.scores), NO_LOGARITHMS)
    return TableTarget(normalised(line.target), scores, form.read(line.source, line.target, line.alignment))


@dataclass(frozen=True)
class TableWeights:
    """Weights of a phrase dictionary: one for each score, and one for an RNN that has not scored the table yet."""

    values: Sequence[float]
    name: str  # the ini's name, for messages
    table_limit: int = TABLE_LIMIT  # 0: no limit


class TableScore(NamedTuple):
    """A score of the pair in the table, and its natural logarithm as Moses takes it."""

    name: str
    score: float
    log: float


class Word(NamedTuple):
    """A word with its natural log p, given the words before it and the other phrase."""

    word: str
    log_prob: float
    known: bool  # whether it is in the shortlist


class Rank(NamedTuple):
    """The place of the pair among the targets of its source, by one score."""

    by: str
    rank: int | None  # from 1, the best; equal values share the better rank; None: the pair has no such score
    of: int
    value: float | None  # the natural logarithm of the score
    cut: bool | None = None  # whether Moses's table limit leaves the pair out; None: no limit applies


class Neighbour(NamedTuple):
    """A word or phrase, and the cosine between its vector and that of another one."""

    phrase: str
    cosine: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a pair.

    `log_prob` is the natural log p that `scorer` gives the pair. It is the sum over `words`: the words that the network
    writes (the target's or, if the network is inverse, the source's), then ``</s>``. `unknown` are the words that the
    network reads as ``<unk>``. `table_limit` is None without weights.
    """

    source: str
    target: str
    in_table: bool = False
    targets: int | None = None  # how many the source has in the table; None: there is no table
    scorer: str
    log_prob: float
    words: list[Word]
    unknown: list[str]
    columns: list[TableScore] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    table_limit: int | None = None
    neighbours: list[Neighbour] = field(default_factory=list)

    def __str__(self) -> str:
        words = (f"  {one.log_prob:z9.4f}  {one.word}{'' if one.known else '  (<unk>)'}" for one in self.words)
        return "\n".join([*_heading(self), *words, *_further(self)])

    def _repr_html_(self) -> str:
        """Format for notebooks: a table with a column for each word, redder if less likely, within the text."""
        before, after = (html.escape("\n".join(lines)) for lines in (_heading(self), _further(self)))
        return f"<pre>{before}</pre><table><tr>{''.join(map(_cell, self.words))}</tr></table><pre>{after}</pre>"


def explain_words(model: AnyModel, scorer: Scorer, pair: Lookup) -> Explanation:
    """Explain a pair by any network, without a table. `scorer` is named like its column in a scored table."""
    if any(map(has_gaps, pair.read)):  # unnumbered: neither the pair nor the table gave an alignment
        alone = f"{shown(pair.source)} and {shown(pair.target)} alone"
        raise InputError(f"expected a rule of the table, or a line that aligns its non-terminals, found {alone}")
    read, written = map(words, pair.read[::-1] if model.inverse else pair.read)
    reads, writes = model.source_vocabulary, model.target_vocabulary
    log_prob = float(scorer.log_probs(Pairs.of([pair.read]))[0])  # raises an error that names the pair
    ids = writes.ids(written)
    by_ids = stepped_log_probs(model.make_stepper(HERE), reads.ids(read), ids)
    log_probs = np.add.reduceat(by_ids, [*writes.firsts(ids), len(ids)]).tolist()
    return Explanation(
        source=readable(pair.source),
        target=readable(pair.target),
        scorer=scorer.name,
        log_prob=log_prob,
        words=[
            Word(readable(word), log_prob, word == END or word in writes)
            for word, log_prob in zip([*written, END], log_probs, strict=True)
        ],
        unknown=[readable(word) for word in read if word not in reads],
    )


def column_names(columns: int, added: Mapping[int, str]) -> list[str]:
    """Name the scores of a table, as far as they are known: Moses's own four, and those `added` by column."""
    own = TABLE_COLUMNS if own_columns(columns, added) == len(TABLE_COLUMNS) else ()
    return [added.get(i) or (own[i] if i < len(own) else f"score {i + 1}") for i in range(columns)]


@dataclass(frozen=True)
class Explainer:
    """Explains pairs of a table by a network and its scorer.

    `others` are phrases from which the nearest ones are chosen. `added` are the names of the scores that moses_rnn
    added, by column, as the signature records them.
    """

    model: Model
    scorer: Scorer
    others: Sequence[bytes] = ()
    added: Mapping[int, str] = field(default_factory=dict)
    weights: TableWeights | None = None

    def __call__(self, pair: Lookup) -> Explanation:
        """Explain a pair; raise InputError if the number of weights differs from that of scores."""
        found = explain_words(self.model, self.scorer, pair)
        targets, chosen, rnn = pair.targets, pair.chosen, np.zeros(0)  # log p of every target of the source
        scores = np.array([target.scores for target in targets])
        names, added = [], self.added
        if targets:
            rnn = self.scorer.log_probs(Pairs.of([target.read for target in targets]))
            added = added or self._guess_added(scores, rnn)
            names = column_names(scores.shape[1], added)
        logs = np.array([[log_of(score) for score in of_target] for of_target in scores])
        ranks = []
        if own_columns(len(names), added) >= len(TABLE_COLUMNS):
            ranks.append(_rank("p(target|source)", logs[:, DIRECT_COLUMN], chosen))
        with_own = rnn if chosen is not None else np.append(rnn, found.log_prob)
        ranks.append(_rank(self.scorer.name, with_own, chosen if chosen is not None else len(rnn)))
        if self.weights and targets:
            ranks += self._weighted(self.weights, logs, names, rnn, chosen)
        own = scores[chosen].tolist() if chosen is not None else []
        return replace(
            found,
            in_table=chosen is not None,
            targets=len(targets),
            columns=[TableScore(name, score, log_of(score)) for name, score in zip(names, own, strict=False)],
            ranks=ranks,
            table_limit=self.weights.table_limit if self.weights else None,
            neighbours=self._neighbours(pair.read[self.model.inverse]),
        )

    def _guess_added(self, scores: Floats, rnn: Floats) -> Mapping[int, str]:
        """Find the columns that agree with the network's scores; `scores` is targets × columns."""
        logs = np.log(np.maximum(scores, np.exp(DEFAULT_FLOOR)))
        agree = np.all(np.isclose(logs, np.maximum(rnn, DEFAULT_FLOOR)[:, None], atol=0.01), axis=0).tolist()
        # if there is only one target, a score of Moses's own may agree by chance
        first = len(TABLE_COLUMNS) if len(scores) == 1 else 0
        likely = range(first, scores.shape[1])
        return {column: self.scorer.name for column in likely if agree[column]}

    def _weighted(
        self, given: TableWeights, logs: Floats, names: list[str], rnn: Floats, chosen: int | None
    ) -> Iterator[Rank]:
        """Rank by the weighted sum of the scores: without the RNN's and, if it has a weight, with it."""
        weights, rnn_name = np.array(given.values), self.scorer.name
        at = [column for column, name in enumerate(names) if without_number(name) == rnn_name]
        if not at and len(weights) == len(names) + 1:  # not scored yet
            logs, at = np.column_stack([logs, rnn]), [len(names)]
        if len(weights) != logs.shape[1]:
            expected = f"{number_of(logs.shape[1], 'weight')}, one for each score of the table"
            raise InputError(f"{given.name}: expected {expected}, found {len(weights)}")
        limit, without = given.table_limit or None, weights.copy()
        without[at] = 0
        is_clear = bool(at) or len(names) <= len(TABLE_COLUMNS)  # otherwise an unnamed score may be the RNN's
        title = f"weighted sum without {rnn_name}" if is_clear else "weighted sum"
        yield _rank(title, _sums(logs, without), chosen, limit)
        if at:
            yield _rank(f"weighted sum with {rnn_name}", _sums(logs, weights), chosen, limit)

    def _neighbours(self, read: bytes) -> list[Neighbour]:
        """Return the phrases whose summaries have the highest cosine similarity."""
        (nearest,) = nearest_phrases(self.model, [read], self.others, NEAREST)
        return [Neighbour(readable(phrase), cosine) for phrase, cosine in nearest]


def explain_in_table(
    model: Model,
    scorer: Scorer,
    pair: Lookup,
    table: str,
    weights: TableWeights | None = None,
    advanced: Advanced = show_nothing,
) -> Explanation:
    """Explain a pair and compare it with a table, which must match its signature."""
    name, reading = find_input(table), Converter(model)
    added = signature_of(name).names
    found, others = look_up(read_for_network(name, reading, advanced), name, pair, inverse=reading.inverse)
    return Explainer(model, scorer, others, added, weights)(found)


def _sums(logs: Floats, weights: Floats) -> Floats:
    """Sum column by column: a matrix product may round equal rows differently."""
    return np.asarray(sum(weight * column for weight, column in zip(weights.tolist(), logs.T, strict=True)))


def _rank(by: str, values: Floats, chosen: int | None, limit: int | None = None) -> Rank:
    if chosen is None:
        return Rank(by, None, len(values), None)
    rank = 1 + int((values > values[chosen]).sum())
    return Rank(by, rank, len(values), float(values[chosen]), None if limit is None else rank > limit)


def _heading(explanation: Explanation) -> list[str]:
    """Return the pair, whether the table has it, and its log p."""
    lines = [f"{explanation.source} ||| {explanation.target}"]
    targets, log_prob = explanation.targets, explanation.log_prob
    if explanation.in_table:
        lines.append(f"  one of {targets:,} targets of its source in the table")
    elif targets is not None:
        lacks = f", which has {targets:,} other targets of its source" if targets else ", nor is its source"
        lines.append(f"  not in the table{lacks}")
    return [*lines, "", f"{explanation.scorer}: log p = {log_prob:z.4f}, p = {math.exp(log_prob):.3g}; word by word:"]


def _cell(word: Word) -> str:
    """Return a cell with a word and its log p. Less likely words are redder, down to -5 nats."""
    red = min(-word.log_prob / 5, 1.0)
    text = f"{html.escape(word.word)}{'' if word.known else ' (&lt;unk&gt;)'}<br>{word.log_prob:z.2f}"
    return f'<td style="text-align: center; background: rgba(220, 50, 40, {red:.2f})">{text}</td>'


def _further(explanation: Explanation) -> list[str]:
    """Describe everything except the words: words read as ``<unk>``, scores, ranks, neighbours."""
    lines = [f"  read as <unk>: {' '.join(explanation.unknown)}"] if explanation.unknown else []
    if explanation.columns:
        width = max(len(column.name) for column in explanation.columns)
        lines += ["", f"{'scores of the table':<{width + 2}}  {'score':>11}       log"]
        lines += [f"  {name:<{width}}  {score:11.6g} {log:z9.4f}" for name, score, log in explanation.columns]
    if explanation.ranks:
        lines += ["", "rank among the targets of its source:", *map(_rank_line, explanation.ranks)]
    if explanation.table_limit is not None:
        lines.append("  (by the table's scores alone; Moses, with its")
        limit = f"table-limit={explanation.table_limit}"
        lines.append(f"  {limit}, counts the word penalty and the language model's estimate too)")
    if explanation.neighbours:
        lines += ["", "nearest phrases by the summary c (cosine):"]
        lines += [f"  {cosine:z7.4f}  {phrase}" for phrase, cosine in explanation.neighbours]
    return lines


def _rank_line(rank: Rank) -> str:
    if rank.rank is None:
        return f"  {rank.by}: not among the {rank.of:,}, as it is not in the table"
    cut = {None: "", True: ", cut by the table limit", False: ", within the table limit"}[rank.cut]
    return f"  {rank.by}: {rank.rank:,} of {rank.of:,} ({rank.value:z.4f}){cut}"


def as_json(explanation: Explanation) -> str:
    """Format an explanation for programs: its fields as JSON."""
    record: dict[str, Any] = asdict(explanation)
    for name in ("words", "columns", "ranks", "neighbours"):
        record[name] = [item._asdict() for item in getattr(explanation, name)]
    return json.dumps(record, indent=2, ensure_ascii=False)
