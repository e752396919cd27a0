"""Translate sentences by beam search with any network that writes.

The attention α of a chosen target comes from a second, forced pass over it. N source words with the end symbol, T
target words.

A word that the network cannot write is replaced by way of its source word. Either attention points to that word (Jean
et al. 2015, section 3.4), or the tokens that the network writes in place of rare words do (Luong et al. 2015).

Candidate lists restrict a source's translation to a few target words (Jean et al. 2015, section 3.3):
V_x = {<unk>, </s>} ∪ the K most frequent words ∪ for each word of the source x its K' likeliest translations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn.errors import FormatError, InputError, ScoreError, shown
from moses_rnn.files.streams import FEW_LINE_ENDS
from moses_rnn.models.annotated import shortlists_of
from moses_rnn.models.ensembles import AnyModel
from moses_rnn.models.rare_words import NOWHERE, UNKNOWN, RareWords, Restored, WordFor, Written, restore_words
from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.finite import finite
from moses_rnn.networks.steps import Candidates, Stepper
from moses_rnn.networks.subwords import Subwords
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Phrase, Vocabulary
from moses_rnn.table.phrases import words
from moses_rnn.translation.requests import COPY, DICTIONARY, NEVER, NO
from moses_rnn.translation.search import PREFIXES_AT_ONCE, BeamConfig, BeamSearch, GeneratedTarget, read_sources

LINES = 512  # per block; a block is sorted by length, and equal lines are searched once
LONGEST_LINE = 1000  # per line

Words = list[bytes]
Alpha = npt.NDArray[np.float32]  # T, and one more for the </s> of what has ended, × N
NO_ALPHA: Alpha = np.zeros((0, 0), np.float32)  # of an empty line, or not asked for
NUMBERS_AT_ONCE = 1 << 22  # of α
SPECIAL = UNKNOWN_ID, END_ID
Further = tuple[int, ...]  # ids of candidates besides the most frequent words, ascending
Places = Sequence[int | None]  # position of each written word's source word, from 0


def has_attention(stepper: Stepper) -> bool:
    """Whether a network has attention."""
    encoded = read_sources(stepper, [[]])
    return stepper.alignment(encoded, stepper.start(encoded)) is not None


def align(stepper: Stepper, sources: Sequence[Phrase], hypotheses: Sequence[GeneratedTarget]) -> Iterator[Alpha]:
    """Yield α of each target, given its source; sources have no end symbols and may repeat."""
    if hypotheses:
        largest = max(map(_predicted, hypotheses)) * (max(map(len, sources)) + 1)
        count = min(max(NUMBERS_AT_ONCE // max(largest, 1), 1), PREFIXES_AT_ONCE)
        for first in range(0, len(hypotheses), count):
            yield from _align_together(stepper, sources[first : first + count], hypotheses[first : first + count])


def _predicted(hypothesis: GeneratedTarget) -> int:
    """Return the number of predicted words, including the end symbol."""
    return len(hypothesis.words) + hypothesis.ended


@torch.inference_mode()
def _align_together(stepper: Stepper, sources: Sequence[Phrase], hypotheses: Sequence[GeneratedTarget]) -> list[Alpha]:
    """Compute α of all targets in one pass over their words; read each distinct source once."""
    row_of = {source: row for row, source in enumerate(dict.fromkeys(map(tuple, sources)))}
    counts = list(map(_predicted, hypotheses))
    padded = [[*h.words, *[0] * (max(counts) - len(h.words))] for h in hypotheses]
    rows, words = (torch.tensor(numbers, dtype=torch.int64, device=stepper.device) for numbers in (counts, padded))
    whole = np.zeros((len(hypotheses), max(counts), max(map(len, sources)) + 1), np.float32)
    encoded = read_sources(stepper, list(row_of))
    prefixes = stepper.start(encoded)
    at = torch.tensor([row_of[tuple(source)] for source in sources], device=stepper.device)  # the prefix of each target
    targets = torch.arange(len(rows), device=stepper.device)  # that have a word at this step
    for step in range(max(counts)):
        alpha = stepper.alignment(encoded, prefixes)
        assert alpha is not None
        whole[targets.cpu().numpy(), step] = finite(alpha[at]).float().cpu().numpy()
        continues = rows[targets] > step + 1
        targets, at = targets[continues], at[continues]
        if len(targets):
            prefixes = stepper.step(encoded, prefixes, at, words[targets, step])
            at = torch.arange(len(targets), device=stepper.device)
    shapes = zip(whole, counts, sources, strict=True)
    return [alpha[:count, : len(source) + 1].copy() for alpha, count, source in shapes]


def of_words(alpha: Alpha, reads: Vocabulary, source: Phrase, writes: Vocabulary, target: Phrase) -> Alpha:
    """Return α of words, given that of ids: when a word's first id is written, and summed over the ids of a word read.

    Neither side has an end symbol.
    """
    rows = np.array([*writes.firsts(target), *range(len(target), len(alpha))], np.int64)
    summed: Alpha = np.add.reduceat(alpha[rows], [*reads.firsts(source), len(source)], axis=1)
    return summed


def links(alpha: Alpha, target_words: int) -> tuple[int, ...]:
    """Return, for each of T target words, the source word with the most attention, from 0, without end symbols."""
    return tuple(alpha[:target_words, :-1].argmax(1).tolist())


def format_alignment(number: int, source: Sequence[bytes], target: Sequence[bytes], alpha: Alpha) -> bytes:
    """Format α, rounded to four digits, and its words as a line of JSON; line numbers are from 1.

    Words have no end symbols; these are the last column of α, and the last row if there is one more row than words.
    """
    record = {
        "line": number,
        "source": [word.decode("utf-8", "surrogateescape") for word in source],
        "target": [word.decode("utf-8", "surrogateescape") for word in target],
        "alpha": np.round(alpha.astype(np.float64), 4).tolist(),
    }
    return json.dumps(record).encode() + b"\n"


class CandidateLists:
    """Candidate lists: the K most `frequent` words and K' translations `of_each` source word.

    The first `tokens` words of `target`, which is ordered by frequency, replace rare words and are always candidates.
    """

    def __init__(self, target: Vocabulary, lexicon: Lexicon, frequent: int, of_each: int, tokens: int = 0) -> None:
        self._id_of = target.id_of
        self._lexicon = lexicon
        self._always = min(len(SPECIAL) + tokens + frequent, len(target))
        self._of_each = of_each

    def choose(self, source: Sequence[bytes]) -> Further:
        """Return the candidates of a source, without the most frequent words."""
        translations = (target for word in source for target in self._lexicon.likeliest(word, self._of_each))
        ids = {self._id_of.get(target, UNKNOWN_ID) for target in translations}
        return tuple(sorted(i for i in ids if i >= self._always))

    def columns(self, sources: Sequence[Further], device: torch.device) -> Candidates:
        """Combine the candidates of sources that are searched together, given each one's result of `choose`."""
        further = np.unique(np.fromiter((word for of_source in sources for word in of_source), np.int64))
        allowed = np.zeros((len(sources), self._always + len(further)), np.bool_)
        allowed[:, : self._always] = True
        for row, of_source in zip(allowed, sources, strict=True):
            row[self._always + np.searchsorted(further, np.array(of_source, np.int64))] = True
        words = np.concatenate([np.arange(self._always), further])
        return Candidates(torch.from_numpy(words).to(device), torch.from_numpy(allowed).to(device))


def word_for(rule: str, lexicon: Lexicon | None) -> WordFor:
    """Return the function that replaces a source word.

    "copy" keeps the word; "dictionary" gives its likeliest translation, or the word if there is none; "lowercase" is
    "dictionary" for words that begin with a lower-case letter, and "copy" for others.
    """
    if rule == COPY or lexicon is None:
        return lambda word: word
    if rule == DICTIONARY:
        return lambda word: lexicon.best(word) or word
    return lambda word: (word.decode("utf-8", "replace")[:1].islower() and lexicon.best(word)) or word


def restore_by_attention(source: Words, written: Words, places: Places | None, chosen: WordFor) -> Restored:
    """Replace each ``<unk>`` by the choice for its most attended source word, if it has one."""
    both = zip(written, places or [None] * len(written), strict=True)
    return restore_words((Written(word, place, at) for at, (word, place) in enumerate(both)), source, chosen)


class Query(NamedTuple):
    """The input of the network for a line; equal queries are translated once."""

    ids: tuple[int, ...]
    candidates: Further = ()


class Candidate(NamedTuple):
    """A translation found by the search; words are separated by blanks."""

    words: bytes  # as the network wrote them
    log_prob: float  # natural log p(words, </s> | source); of the words alone if not ended
    ended: bool  # False: it met the length limit
    links: Sequence[int] | None  # source word, from 0, of each word of the text; NOWHERE: it has none; None: unknown
    text: bytes  # final text, with unknown words replaced
    replaced: int = 0  # number of replaced words


@dataclass(frozen=True)
class Translation:
    """The translation of a line."""

    source: Words
    candidates: Sequence[Candidate]  # best first, at least one; unended only if none has ended
    alpha: Alpha  # of the best candidate's original words; NO_ALPHA if not asked for

    @property
    def best(self) -> Candidate:
        """The best candidate."""
        return self.candidates[0]


@dataclass
class Counts:
    """Counts of a translation run."""

    lines: int = 0
    empty: int = 0  # lines
    words: int = 0  # source words
    unknown: int = 0  # of them, read as <unk>
    unended: int = 0  # translations that met the limit
    written_unknown: int = 0  # <unk> among the words of the translations
    replaced: int = 0  # unknown words of the translations that were replaced
    without_words: int = 0  # translations of lines that are not empty


class Translator:
    """Translates lines with a model of plain words; each line gets at most `config.best` candidates.

    An empty line has an empty translation with log p 0, without the network. Words outside the shortlist are read as
    ``<unk>``; an ``<unk>`` that the network writes stays visible, unless the search may not write it.

    `unknown` is a rule, see `rule_of`; some rules need attention. `candidates` are the numbers of frequent words and of
    the lexicon's translations per source word that may be written; None: all words. With attention, `aligned` adds
    links to candidates, and α to the best.
    """

    def __init__(
        self,
        model: AnyModel,
        compute: Compute,
        config: BeamConfig,
        *,
        unknown: str | None = None,
        lexicon: Lexicon | None = None,
        candidates: tuple[int, int] | None = None,
        aligned: int = 0,
    ) -> None:
        check_plain(model)
        rule = rule_of(model, unknown, lexicon)
        self.counts = Counts()
        self._source, self._target, self._rare = model.source_vocabulary, model.target_vocabulary, model.rare
        self._shortlist = shortlists_of(model, model.rare).read if model.rare else frozenset()
        self._stepper = model.make_stepper(compute)
        self._word_for = word_for(rule, lexicon)
        self._restores = rule != NO and (rule != NEVER or model.rare is not None)
        looks = has_attention(self._stepper)
        if self._restores and model.rare is None and not looks:
            raise no_attention(model, "A model trained with --rare knows by itself where rare words come from.")
        self.aligned = max(aligned, self._restores) if looks else 0
        self._lists = None
        if candidates is not None and lexicon is not None:
            if isinstance(self._target, Subwords):
                raise InputError(
                    f"{model.models[0].folder}: expected a model of words for --candidates, found one of subwords"
                )
            tokens = len(model.rare.written_tokens) if model.rare else 0
            self._lists = CandidateLists(self._target, lexicon, *candidates, tokens)
        self._search = BeamSearch(self._stepper, with_tokens(replace(config, allow_unknown=rule != NEVER), model.rare))

    def __call__(self, lines: Iterable[bytes], name: str) -> Iterator[Translation]:
        """Yield the translation of each line of the text `name`; reject lines of more than `LONGEST_LINE` words."""
        for block in blocks_of(lines, name):
            yield from self.translate(block)

    def translate(
        self, block: Sequence[Words], advanced: Callable[[int], None] = lambda _lines: None
    ) -> list[Translation]:
        """Translate lines that are searched together; a ScoreError has the row of its line.

        `advanced` is called regularly with the number of finished lines; it may raise.
        """
        queries = [self._query(line) for line in block]
        distinct = sorted({line for line in queries if line.ids}, key=lambda line: (len(line.ids), line))
        nothing = [Candidate(b"", 0.0, True, () if self.aligned else None, b"")], NO_ALPHA
        translated: dict[Query, tuple[list[Candidate], Alpha]] = {Query(()): nothing}
        for first in range(0, len(distinct), self._search.at_once):
            group = distinct[first : first + self._search.at_once]
            try:
                translated.update(zip(group, self._translate(group), strict=True))
            except ScoreError as error:
                error.row = queries.index(group[error.row])
                error.message = f"{shown(b' '.join(block[error.row]))}: {error.message}"
                raise
            advanced(sum(line in translated for line in queries))
        translations = []
        for line, query in zip(block, queries, strict=True):
            candidates, alpha = translated[query]
            translations.append(Translation(line, [self._finished(line, one) for one in candidates], alpha))
        self._count(translations, queries)
        return translations

    def _query(self, line: Words) -> Query:
        ids = tuple(self._source.ids(self._rare.annotate_source(line, self._shortlist) if self._rare else line))
        return Query(ids, self._lists.choose(line) if self._lists and ids else ())

    def _finished(self, line: Words, candidate: Candidate) -> Candidate:
        """Replace the unknown words of a candidate, as the rule says."""
        if not self._restores:
            return candidate
        links, written = candidate.links, words(candidate.words)
        if self._rare:
            restored = self._rare.restore(written, line, self._shortlist, self._word_for)
        else:
            restored = restore_by_attention(line, written, links, self._word_for)
        if links is None and self._rare and self._rare.needs_links:  # without attention, but its tokens point
            links = [NOWHERE] * len(written)
        if links is not None:  # what a token says goes before attention: scoring the text again needs it
            links = [
                links[at] if place is None else place for at, place in zip(restored.kept, restored.places, strict=True)
            ]
        return candidate._replace(text=b" ".join(restored.words), links=links, replaced=restored.replaced)

    def _translate(self, group: Sequence[Query]) -> Iterator[tuple[list[Candidate], Alpha]]:
        """Yield the candidates of sources, and α of the best."""
        sources, lists = [query.ids for query in group], self._lists
        columns = lists.columns([query.candidates for query in group], self._stepper.device) if lists else None
        found = self._search(sources, columns)
        if [] in found:
            raise ScoreError("expected a word or the end that may follow, found none", found.index([]))
        proposed = [[h for h in of_source if h.ended] or of_source for of_source in found]
        pairs = [(ids, h) for ids, of_source in zip(sources, proposed, strict=True) for h in of_source[: self.aligned]]
        by_ids = align(self._stepper, [ids for ids, _ in pairs], [h for _, h in pairs])
        alphas = (
            of_words(alpha, self._source, ids, self._target, h.words)
            for (ids, h), alpha in zip(pairs, by_ids, strict=True)
        )
        for hypotheses in proposed:
            of_source = list(islice(alphas, len(hypotheses[: self.aligned])))
            candidates: dict[bytes, Candidate] = {}  # of several ways to write a text, the likeliest
            for h, alpha in zip_longest(hypotheses, of_source):
                written = self._target.spell(h.words)
                text = b" ".join(written)
                looked = None if alpha is None else links(alpha, len(written))
                candidates.setdefault(text, Candidate(text, h.log_prob, h.ended, looked, text))
            yield [*candidates.values()], of_source[0] if of_source else NO_ALPHA

    def _count(self, translations: Sequence[Translation], queries: Sequence[Query]) -> None:
        counts = self.counts
        read = {UNKNOWN_ID, *self._source.ids(self._rare.read_tokens if self._rare else ())}
        written = {*self._rare.unknown_tokens} if self._rare else {UNKNOWN}
        counts.lines += len(translations)
        for translation, line in zip(translations, queries, strict=True):
            counts.empty += not line.ids
            counts.words += len(translation.source)
            counts.unknown += sum(word in read for word in line.ids)
            counts.unended += not translation.best.ended
            counts.written_unknown += sum(word in written for word in words(translation.best.text))
            counts.replaced += translation.best.replaced
            counts.without_words += bool(line.ids) and not words(translation.best.text)


def with_tokens(config: BeamConfig, rare: RareWords | None) -> BeamConfig:
    """Adapt the config to a network that writes tokens for rare words or after words."""
    if rare is None:
        return config
    limit = config.words_per_source_word * (2 if rare.doubles else 1)
    return replace(config, words_per_source_word=limit, unknown_tokens=len(rare.unknown_tokens) - 1)


def blocks_of(lines: Iterable[bytes], name: str) -> Iterator[list[Words]]:
    """Yield the words of lines in blocks of up to `LINES`; reject lines of more than `LONGEST_LINE` words."""
    block = []
    for number, line in enumerate(lines, 1):
        block.append(words(line.rstrip(b"\r\n")))
        if len(block[-1]) > LONGEST_LINE:
            expected = f"at most {LONGEST_LINE:,} words in a line to translate"
            raise FormatError(name, number, expected, f"{len(block[-1]):,}", FEW_LINE_ENDS)
        if len(block) == LINES:
            yield block
            block = []
    if block:
        yield block


def rule_of(model: AnyModel, unknown: str | None, lexicon: Lexicon | None) -> str:
    """Return the rule for unknown words; by default, annotated ones are restored as well as possible."""
    if unknown or model.rare is None:
        return unknown or NO
    return COPY if lexicon is None else DICTIONARY


def check_plain(model: AnyModel) -> None:
    """Raise InputError for a network of factors or rules."""
    for one in model.models:
        if not one.form.is_plain:
            raise InputError(f"{one.folder}: expected a model of plain words, found one of {one.form}")


def no_attention(model: AnyModel, advice: str = "") -> InputError:
    """Return the error for a network without attention."""
    folders = ", ".join(str(member.folder) for member in model.models)
    titles = " and ".join(member.architecture.title for member in model.models)
    return InputError(
        f"{folders}: expected a network with attention, found {titles}, without alignments", advice=advice
    )
