"""Make the requested features from models on disk, and score the hypotheses of n-best lists with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from moses_rnn.errors import FormatError, InputError, ScoreError
from moses_rnn.files.streams import find_input, regular_file
from moses_rnn.models.base import Scorer
from moses_rnn.models.ensembles import GEOMETRIC, AnyModel, make_ensemble
from moses_rnn.models.kenlm import KenlmScorer
from moses_rnn.models.language_models import NetworkLanguageModel
from moses_rnn.models.model import Model
from moses_rnn.models.open import check_learned, check_reads_sources, check_shortlist, open_model, read_shortlist
from moses_rnn.models.phrases import WordPenaltyScorer
from moses_rnn.models.pretrained import open_pretrained
from moses_rnn.models.shares import NOT_SHARING, open_backoff
from moses_rnn.moses.alignments import check_links, format_links
from moses_rnn.moses.nbest import NBestLine, alignment_of, segmentation_of
from moses_rnn.nbest.request import ListRequest
from moses_rnn.networks.batches import Values
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.vocabulary import UNKNOWN, Vocabulary
from moses_rnn.options import is_pretrained
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, Phrases

Knows = Callable[[bytes], bool]  # whether a model knows a word
Part = tuple[bytes, bytes, bytes]  # a unit of scoring: source, target, and their links if a model needs them


def _links_of(line: NBestLine, source: bytes, name: str) -> bytes:
    """Return the hypothesis's alignment, for annotating rare words; raise FormatError if it has none."""
    links = alignment_of(line, name)
    check_links(links, len(words(source)), len(words(line.hypothesis)), name, line.number)
    return format_links(links)


def _phrases_of(line: NBestLine, source: bytes, name: str) -> list[Part]:
    """Return the phrase pairs of the hypothesis; raise FormatError without a fitting segmentation.

    Words that the decoder copied are pairs too. Moses usually copies the same words in all hypotheses of a sentence.
    """
    read, written = words(source), words(line.hypothesis)
    segments = segmentation_of(line, name)
    if segments is None:
        if not written:
            return []
        advice = "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole."
        raise FormatError(name, line.number, "a segmentation", "none", advice)
    return [
        (b" ".join(read[first : last + 1]), b" ".join(written[begin:end]), b"") for first, last, begin, end in segments
    ]


@dataclass(frozen=True)
class Feature:
    """A feature of hypotheses: a scorer's scores of whole hypotheses, with alignments if they are `aligned`.

    If `summed`, they are instead the sums of its scores of each hypothesis's phrases, as the decoder adds up phrases.
    If `of_sources`, the score depends on the source sentences, which must all match the list's. `knows_source` and
    `knows_target` tell whether the model knows a word; None: not checked.
    """

    scorer: Scorer
    aligned: bool = False
    summed: bool = False
    of_sources: bool = True
    knows_source: Knows | None = None
    knows_target: Knows | None = None
    is_slow: bool = False  # whether to score fewer lines together, so that progress shows

    def scores(self, lines: Sequence[NBestLine], sources: Phrases, name: str) -> Values:
        """Return the natural-log scores of lines of the list `name`, each with its source sentence.

        Equal parts are scored once, in an order independent of the list's. A ScoreError names its line's row.
        """
        of_lines = [self._parts(line, source, name) for line, source in zip(lines, sources, strict=True)]
        rows = np.repeat(np.arange(len(lines)), [len(parts) for parts in of_lines])
        parts = [part for of_line in of_lines for part in of_line]
        totals = np.zeros(len(lines))
        if parts:
            distinct = sorted(set(parts))
            place = {part: i for i, part in enumerate(distinct)}
            read, written, links = map(list, zip(*distinct, strict=True))
            try:
                values = self.scorer.log_probs(Pairs(read, written, links if self.aligned else None))
            except ScoreError as error:
                error.row = int(rows[parts.index(distinct[error.row])])
                raise
            # Not differences of running sums: their rounding would depend on earlier lines.
            np.add.at(totals, rows, values[[place[part] for part in parts]])
        return totals

    def _parts(self, line: NBestLine, source: bytes, name: str) -> list[Part]:
        """Split a line, given its source and the list's name."""
        if self.summed:
            return _phrases_of(line, source, name)
        return [(source, line.hypothesis, _links_of(line, source, name) if self.aligned else b"")]


def make_features(first: NBestLine | None, name: str, request: ListRequest) -> Iterator[tuple[str, Feature]]:
    """Yield the features of the list `name`, each with its name; `first` is its first line, if there is one."""
    maker = _FeatureMaker(first, name, request)
    networks = (maker.open_network(path) for path in request.add if path.is_dir())
    if request.backoff and all(model.architecture.reads_sources for model in networks):
        raise InputError("--backoff: expected a language model whose <unk> it can share, found none")
    yield from map(maker.of_model, request.add)
    yield from map(maker.of_ensemble, request.ensembles)
    if request.word_penalty:
        yield "WP", Feature(WordPenaltyScorer(read_shortlist(request.word_penalty)), of_sources=False)


class _FeatureMaker:
    """Makes features of the list `name`, whose first line is `first`, from models that it opens once."""

    def __init__(self, first: NBestLine | None, name: str, request: ListRequest) -> None:
        self._first, self._name, self._request = first, name, request
        self.open_network = cache(partial(open_model, of_pairs=False))
        self._open_n_grams = cache(KenlmScorer)

    def of_model(self, path: Path) -> tuple[str, Feature]:
        """Return the name of a model's score, and the feature."""
        if is_pretrained(path):
            pretrained = open_pretrained(path, self._request)
            return pretrained.name, Feature(pretrained.make_scorer(self._compute(pretrained)), is_slow=True)
        if not path.is_dir():
            n_grams = self._open_n_grams(find_input(str(path)))
            return n_grams.name, Feature(n_grams, of_sources=False, knows_target=_knows(n_grams))
        model = self.open_network(path)
        if model.architecture.reads_sources:
            return model.name, self._of_pairs(model)
        return model.name, Feature(self._language_model(model), of_sources=False, knows_target=_knows(model))

    def of_ensemble(self, paths: tuple[Path, ...]) -> tuple[str, Feature]:
        """Return the name of an ensemble's score, and the feature."""
        models = [self.open_network(path) for path in paths]
        for model in models:
            check_reads_sources(model)
        ensemble = make_ensemble(models, self._request.combine or GEOMETRIC)
        return ensemble.name, self._of_pairs(ensemble)

    def _of_pairs(self, model: AnyModel) -> Feature:
        """Make a feature of phrases if the networks learned from phrases and no whole sentences are asked for."""
        for member in model.models:
            if not self._request.allow_misfit:
                check_learned(member)
            if member.form.hierarchical:
                found = "found one of rules, which hypotheses do not show"
                raise InputError(f"{member.folder}: expected a model of phrases, {found}")
            if member.form.is_factored:
                raise InputError(f"{member.folder}: expected a model of plain words, found one of {member.form}")
        scorer = model.make_scorer(self._compute(model))
        aligned = model.rare is not None and model.rare.needs_links
        summed = not aligned and self._takes_phrases(model)
        read, written = _in_shortlist(model.source_vocabulary), _knows(model)
        sides = (written, read) if model.inverse else (read, written)
        return Feature(scorer, aligned, summed, True, *sides)

    def _takes_phrases(self, model: AnyModel) -> bool:
        """Whether the model scores phrases; raise FormatError if the list does not show them."""
        first, name = self._first, self._name
        if self._request.whole or model.learned_sentences or first is None:
            return False
        if first.hypothesis and segmentation_of(first, name) is None:
            advice = (
                "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole, which\n"
                "  does not suit a network that learned phrases."
            )
            raise FormatError(name, 1, "a segmentation, for the phrases of a hypothesis", "none", advice)
        return True

    def _language_model(self, model: Model) -> NetworkLanguageModel:
        backoff = None
        if self._request.backoff:
            check_shortlist(model)
            path = regular_file(self._request.backoff)
            backoff = open_backoff(path, model.target_vocabulary, self._open_n_grams(path))
        return model.make_language_model(self._compute(model), backoff)

    def _compute(self, model: AnyModel) -> Compute:
        floors_long = self._request.long_phrases == "floor"
        return model.choose_compute(self._request.device, "fp32", floors_long=floors_long)


def _knows(model: AnyModel | KenlmScorer) -> Knows:
    """Return the test for target words that a model knows."""
    if isinstance(model, KenlmScorer):
        return lambda word: word not in NOT_SHARING and model.knows(word)
    return _in_shortlist(model.target_vocabulary)


def _in_shortlist(vocabulary: Vocabulary) -> Knows:
    return lambda word: word != UNKNOWN and word in vocabulary
