"""What a translation is asked for, and what that makes of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from moses_rnn.errors import InputError
from moses_rnn.files.journal import Opening
from moses_rnn.formats.lexicon import Lexicon
from moses_rnn.inference.steps import Stepper
from moses_rnn.models.vocabulary import UNKNOWN_ID
from moses_rnn.producers.annotated import shortlists_of
from moses_rnn.producers.base import Compute
from moses_rnn.producers.ensembles import Writer
from moses_rnn.translation.alignments import has_attention
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.candidates import CandidateLists
from moses_rnn.translation.translate import Translator, WordHandling
from moses_rnn.translation.unknown_words import COPY, DICTIONARY, NO, by_attention, by_tokens, word_for


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """What to translate, how, and what to write."""

    input: str
    output: str
    beam: BeamConfig  # whose `best` is the number of hypotheses of the n-best list
    compute: Compute
    n_best: str | None = None
    alignments: str | None = None
    unknown: str | None = None  # of RULES; None: what was annotated is restored, what was not stays
    candidates: tuple[int, int] | None = None  # most frequent words, and translations of each source word; None: all
    lexicon: Lexicon | None = None
    lexicon_file: str | None = None  # where it was read from
    opening: Opening = field(default_factory=Opening)

    @property
    def inputs(self) -> list[str]:
        """What is read beside the models."""
        return [path for path in (self.input, self.lexicon_file) if path is not None]

    @property
    def others(self) -> list[str]:
        """What is written beside the text."""
        return [path for path in (self.n_best, self.alignments) if path is not None]


def make_stepper(request: TranslationRequest, model: Writer) -> Stepper[Any, Any]:
    """The network as a request needs it.

    Raises:
        InputError: it is of phrases, or has no attention where some is needed.
    """
    for member in model.models:
        if not member.form.is_plain:
            raise InputError(f"{member.folder}: expected a model of plain words, found one of phrases ({member.form})")
    stepper = model.make_stepper(request.compute)
    looks = request.alignments is not None or (rule_of(request, model) != NO and model.rare is None)
    if looks and not has_attention(stepper):
        folders = ", ".join(str(member.folder) for member in model.models)
        titles = " and ".join(member.row.title for member in model.models)
        advice = (
            "" if request.alignments else "One that was trained with --rare says by itself where rare words come from."
        )
        raise InputError(
            f"{folders}: expected a network with attention, found {titles}, without alignments", advice=advice
        )
    return stepper


def rule_of(request: TranslationRequest, model: Writer) -> str:
    """What becomes of unknown words: if nothing was asked for, annotated ones are restored as well as can be."""
    if request.unknown or model.rare is None:
        return request.unknown or NO
    return DICTIONARY if request.lexicon is not None else COPY


def make_translator(request: TranslationRequest, model: Writer, stepper: Stepper[Any, Any]) -> Translator:
    """What translates blocks of lines as a request wants it."""
    finishes = rule_of(request, model) != NO
    wanted = request.beam.best if request.n_best is not None else int(request.alignments is not None or finishes)
    beam = request.beam
    if model.rare is not None:
        factor = 1 + model.rare.doubles
        tokens = len(model.rare.unknown_tokens) - 1
        beam = replace(beam, words_per_source_word=factor * beam.words_per_source_word, unknown_tokens=tokens)
    return Translator(
        model.source_vocabulary,
        model.target_vocabulary,
        stepper,
        beam,
        aligned=wanted if has_attention(stepper) else 0,
        handling=_handling(request, model),
    )


def _handling(request: TranslationRequest, model: Writer) -> WordHandling:
    rule, rare = rule_of(request, model), model.rare
    chosen = word_for(rule, request.lexicon)
    candidates = None
    if request.candidates is not None and request.lexicon is not None:
        tokens = len(rare.written_tokens) if rare else 0
        candidates = CandidateLists(model.target_vocabulary, request.lexicon, *request.candidates, tokens)
    if rare is None:
        return WordHandling(finish=by_attention(chosen) if rule != NO else None, candidates=candidates)
    shortlist = shortlists_of(model, rare).read
    return WordHandling(
        read=lambda line: rare.annotate_source(line, shortlist),
        finish=by_tokens(rare, shortlist, chosen) if rule != NO else None,
        candidates=candidates,
        unknown_read=frozenset([UNKNOWN_ID, *model.source_vocabulary.ids(rare.read_tokens)]),
        unknown_written=frozenset(rare.unknown_tokens),
    )
