"""A whole translation: a text in; its translations, n-best lists and alignments out, resumable after any death."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moses_rnn.errors import FormatError, InputError, OutputError, Stopped
from moses_rnn.files.journal import Opening
from moses_rnn.files.metered import Advanced, Meter
from moses_rnn.files.records import Note
from moses_rnn.files.streams import read_lines, stamp_of
from moses_rnn.formats.lexicon import Lexicon
from moses_rnn.formats.nbest import format_nbest_line
from moses_rnn.formats.phrase_forms import words
from moses_rnn.inference.steps import Stepper
from moses_rnn.producers.annotated import shortlists_of
from moses_rnn.producers.base import Compute
from moses_rnn.producers.ensembles import Ensemble, Writer
from moses_rnn.producers.open import model_files
from moses_rnn.translation.alignments import NO_ALPHA, format_alignment, has_attention
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.candidates import CandidateLists
from moses_rnn.translation.outputs import Outputs, open_outputs
from moses_rnn.translation.translate import (
    FEW_LINE_ENDS,
    LINES,
    Counts,
    Translation,
    Translator,
    WordHandling,
    Words,
    blocks_of,
)
from moses_rnn.translation.unknown_words import COPY, NO, by_attention, by_tokens, word_for


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """What to translate, how, and what to write."""

    input: str
    output: str
    beam: BeamConfig  # whose `best` is the number of hypotheses of the n-best list
    compute: Compute
    n_best: str | None = None
    alignments: str | None = None
    unknown: str | None = None  # of RULES; None: what was annotated is copied, what was not stays
    candidates: tuple[int, int] | None = None  # most frequent words, and translations of each source word; None: all
    lexicon: Lexicon | None = None
    opening: Opening = field(default_factory=Opening)

    @property
    def others(self) -> list[str]:
        """What is written beside the text."""
        return [path for path in (self.n_best, self.alignments) if path is not None]


def translate_text(
    request: TranslationRequest, model: Writer, advanced: Advanced, should_stop: Callable[[], bool]
) -> Counts:
    """Translate a text.

    Args:
        request: all choices.
        model: what translates, alone or together; in a list its log p is the feature NAME0.
        advanced: called now and then with the lines that this run has translated and, if known, their share of those
            that it has to.
        should_stop: called as often, and while a pipe has nothing to give.

    Raises:
        InputError: the text or the model was rejected; nothing appears under the outputs' names.
        OutputError: an output cannot be written; what was finished can be resumed.
        Stopped: as requested; what was finished can be resumed, unless it goes to a pipe.
    """
    inputs = (request.input, *(path for member in model.models for path in model_files(member.folder)))
    with open_outputs(request.output, request.others, request.opening, inputs) as outputs, outputs.kept_if_resumable():
        stepper = _stepper(request, model)
        note = outputs.begin(_manifest(request, model))
        run = _Run(request, _translator(request, model, stepper), outputs, should_stop, feature=f"{model.name}0")
        run.translate(advanced, note)
        outputs.commit()
    return run.counts


def _stepper(request: TranslationRequest, model: Writer) -> Stepper[Any, Any]:
    for member in model.models:
        if not member.form.is_plain:
            raise InputError(f"{member.folder}: expected a model of plain words, found one of phrases ({member.form})")
    stepper = model.make_stepper(request.compute)
    looks = request.alignments is not None or (_rule(request, model) != NO and model.rare is None)
    if looks and not has_attention(stepper):
        folders = ", ".join(str(member.folder) for member in model.models)
        titles = " and ".join(f"a {member.row.title}" for member in model.models)
        advice = (
            "" if request.alignments else "One that was trained with --rare says by itself where rare words come from."
        )
        raise InputError(
            f"{folders}: expected a network with attention, found {titles}: it has no alignments", advice=advice
        )
    return stepper


def _rule(request: TranslationRequest, model: Writer) -> str:
    """What becomes of unknown words."""
    return request.unknown or (NO if model.rare is None else COPY)


def _translator(request: TranslationRequest, model: Writer, stepper: Stepper[Any, Any]) -> Translator:
    finishes = _rule(request, model) != NO
    wanted = request.beam.best if request.n_best is not None else int(request.alignments is not None or finishes)
    beam = request.beam
    if model.rare is not None and model.rare.doubles:
        beam = replace(beam, words_per_source_word=2 * beam.words_per_source_word)
    return Translator(
        model.source_vocabulary,
        model.target_vocabulary,
        stepper,
        beam,
        aligned=wanted if has_attention(stepper) else 0,
        handling=_handling(request, model),
    )


def _handling(request: TranslationRequest, model: Writer) -> WordHandling:
    rule, rare = _rule(request, model), model.rare
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
    )


def _manifest(request: TranslationRequest, model: Writer) -> Note:
    """Everything that decides the bytes, but for the text: that is known by the hash in each block's note."""
    return {
        "model": _identity(model),
        "beam": asdict(request.beam),
        "block_lines": LINES,
        "device": request.compute.device.partition(":")[0],
        "precision": request.compute.precision,
        "n_best": request.n_best is not None,
        "alignments": request.alignments is not None,
        **_manifest_of_words(request, model),
    }


def _manifest_of_words(request: TranslationRequest, model: Writer) -> Note:
    """What is done about unknown words, if anything is."""
    note: Note = {}
    if _rule(request, model) != NO:
        note["unknown"] = _rule(request, model)
    if request.candidates is not None:
        note["candidates"] = list(request.candidates)
    if request.lexicon is not None:
        note["lexicon"] = hashlib.sha256(b"".join(request.lexicon.lines())).hexdigest()
    return note


def _identity(model: Writer) -> Note:
    """What decides a network's probabilities: its files, or those of all members and how they are combined."""
    members = [dict(member.checkpoint.hashes) for member in model.models]
    return {"combination": model.combination, "members": members} if isinstance(model, Ensemble) else members[0]


class _Run:
    """Goes through the text, block by block.

    Args:
        request: all choices.
        translator: of blocks.
        outputs: begun.
        should_stop: see `translate_text`.
        feature: what log p is called in a list.
    """

    def __init__(
        self,
        request: TranslationRequest,
        translator: Translator,
        outputs: Outputs,
        should_stop: Callable[[], bool],
        *,
        feature: str,
    ) -> None:
        self._feature = feature
        self._request = request
        self._translator = translator
        self._outputs = outputs
        self._should_stop = should_stop
        self._meter = Meter(waiting=self._stop_if_requested)
        self._hash = hashlib.sha256()

    @property
    def counts(self) -> Counts:
        """What was met, in the blocks of interrupted runs too."""
        return self._translator.counts

    def translate(self, advanced: Advanced, note: Note | None) -> None:
        """Translate what is not yet translated, given the note of the last block that is."""
        stamp = stamp_of(self._request.input)
        with contextlib.closing(self._lines()) as lines:
            blocks = blocks_of(lines, self._request.input)
            before = self._skip(blocks, note)

            def between(more: int) -> None:
                done = self.counts.lines + more - before
                advanced(done, self._share(before, done))
                self._stop_if_requested()

            for block in blocks:
                self._stop_if_requested()
                self._translate(block, between)
        if stamp_of(self._request.input) != stamp:
            raise InputError(f"{self._request.input}: was changed while it was read; nothing was written")

    def _translate(self, block: list[Words], between: Callable[[int], None]) -> None:
        first = self.counts.lines
        text, others = self._texts(self._translator.translate(block, between), first)
        self._add(block)
        self._outputs.append(text, others, {"sha256": self._hash.hexdigest(), "counts": asdict(self.counts)})

    def _lines(self) -> Generator[bytes]:
        try:
            yield from read_lines(self._request.input, meter=self._meter)
        except FormatError as error:
            if error.line is not None:  # which is too long for a table, even
                error.advice = FEW_LINE_ENDS
            raise

    def _skip(self, blocks: Iterator[list[Words]], note: Note | None) -> int:
        """Go over the blocks that an interrupted run has translated; returns their lines.

        Raises:
            OutputError: they are not those of this text.
        """
        if note is None:
            return 0
        for _ in range(self._outputs.blocks):
            self._add(next(blocks, []))
        grown = self._outputs.published and next(blocks, None) is not None
        if grown or self._hash.hexdigest() != note["sha256"]:
            raise OutputError(
                f"{self._request.output}: expected the text that the interrupted run was given, found another: "
                f"{self._request.input}, by its first {note['counts']['lines']:,} lines",
                advice="Give the same to go on, or --force to start over.",
            )
        self._translator.counts = Counts(**note["counts"])
        return self.counts.lines

    def _add(self, block: list[Words]) -> None:
        self._hash.update(b"".join(b" ".join(line) + b"\n" for line in block))

    def _share(self, before: int, done: int) -> float | None:
        """Of the lines that this run has to translate, as far as the reading tells."""
        if self._meter.share is None:
            return None
        whole = self._meter.lines_read / self._meter.share
        return min(done / max(whole - before, 1), 1.0)

    def _stop_if_requested(self) -> None:
        if self._should_stop():
            what_next = (
                "the same command with --resume goes on"
                if self._outputs.is_resumable
                else "what goes through a pipe cannot be resumed: the same command starts over"
            )
            raise Stopped(f"stopped after {self.counts.lines:,} lines; {what_next}")

    def _texts(self, translations: list[Translation], first: int) -> tuple[bytes, list[bytes]]:
        """A block of the text, and of what goes along with it."""
        text = b"".join(translation.text() + b"\n" for translation in translations)
        others = []
        if self._request.n_best is not None:
            others.append(b"".join(_nbest_lines(first + i, line, self._feature) for i, line in enumerate(translations)))
        if self._request.alignments is not None:
            others.append(b"".join(_alignment(first + i + 1, line) for i, line in enumerate(translations)))
        return text, others


def _nbest_lines(sentence: int, translation: Translation, feature: str) -> bytes:
    """The candidates of a line, numbered from 0, as Moses lists them."""
    return b"".join(
        format_nbest_line(sentence, translation.text(i), feature, candidate.log_prob, translation.links(i))
        for i, candidate in enumerate(translation.candidates)
    )


def _alignment(number: int, translation: Translation) -> bytes:
    alpha = NO_ALPHA if translation.alpha is None else translation.alpha
    return format_alignment(number, translation.source, words(translation.best.words), alpha)
