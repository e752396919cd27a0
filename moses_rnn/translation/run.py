"""A whole translation: a text in; its translations, n-best lists and alignments out, resumable after any death."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass

from moses_rnn.errors import FormatError, InputError, MosesRnnError, OutputError, Stopped, placing, shown
from moses_rnn.files.outputs import Note, Packing, ResumableOutputs
from moses_rnn.files.streams import Advanced, Meter, change_stamp, find_input, is_gzip, read_lines
from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.moses.nbest import format_nbest_line
from moses_rnn.networks.hardware import Compute
from moses_rnn.scorers.ensembles import Ensemble, Writer
from moses_rnn.scorers.open import model_files
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import SEPARATOR
from moses_rnn.translation import translate
from moses_rnn.translation.options import TranslationRequest
from moses_rnn.translation.search import BeamConfig
from moses_rnn.translation.translate import (
    FEW_LINE_ENDS,
    NO_ALPHA,
    Counts,
    Translation,
    Translator,
    Words,
    blocks_of,
    format_alignment,
    make_translator,
    no_attention,
    rule_of,
)


def translate_text(
    request: TranslationRequest,
    model: Writer,
    lexicon: Lexicon | None,
    advanced: Advanced,
    should_stop: Callable[[], bool],
) -> Counts:
    """Translate a text.

    Args:
        request: all choices.
        model: what translates, alone or together; in a list its log p is the feature NAME0.
        lexicon: that was read from the request's dictionary.
        advanced: called now and then with the lines that this run has translated and, if known, their share of those
            that it has to.
        should_stop: called as often, and while a pipe has nothing to give.

    Raises:
        InputError: the text or the model was rejected; nothing appears under the outputs' names.
        OutputError: an output cannot be written; what was finished can be resumed.
        ScoreError: the network gives a line no translation; the line is named.
        Stopped: as requested; what was finished can be resumed, unless it goes to a pipe.
    """
    config = BeamConfig(
        width=request.beam,
        best=request.n_best[0] if request.n_best else 1,
        words_per_source_word=request.max_words_factor,
        length_score=request.length_score,
    )
    models = (path for member in model.models for path in model_files(member.folder))
    inputs = (request.text, *([find_input(request.dictionary)] if request.dictionary else []), *models)
    names = [request.output, *request.others]
    with ResumableOutputs(names, resume=request.resume, force=request.force, inputs=inputs, advise=_advice) as outputs:
        translator = make_translator(
            model,
            Compute(request.device),
            config,
            unknown=request.unknown,
            lexicon=lexicon,
            candidates=request.candidates,
            aligned=config.best if request.n_best else int(request.alignments is not None),
        )
        if request.alignments is not None and not translator.aligned:
            raise no_attention(model)
        note = outputs.begin(_manifest(request, model, config, lexicon))
        run = _Run(request, translator, outputs, should_stop, f"{model.name}0")
        run.translate(advanced, note)
        outputs.commit()
    return run.counts


def _advice(error: MosesRnnError, counts: Note) -> str:
    """What to do about a line that was refused."""
    if isinstance(error, FormatError):
        return (
            f"{counts['lines']:,} lines are already translated and saved. Correct the line and continue with --resume."
        )
    return ""


def _manifest(request: TranslationRequest, model: Writer, config: BeamConfig, lexicon: Lexicon | None) -> Note:
    """Everything that decides the bytes, but for the text: that is known by the hash in each block's note."""
    return {
        "model": _identity(model),
        "beam": asdict(config),
        "block_lines": translate.LINES,
        "device": request.device.partition(":")[0],
        "n_best": request.n_best is not None,
        "alignments": request.alignments is not None,
        "unknown": rule_of(model, request.unknown, lexicon),
        "candidates": request.candidates and list(request.candidates),
        "lexicon": lexicon and hashlib.sha256(b"".join(lexicon.lines())).hexdigest(),
    }


def _identity(model: Writer) -> Note:
    """What decides a network's probabilities: its files, or those of all members and how they are combined."""
    members = [dict(member.hashes) for member in model.models]
    return {"combination": model.combination, "members": members} if isinstance(model, Ensemble) else members[0]


@dataclass
class _Run:
    """Goes through the text, block by block.

    Args:
        request: all choices.
        translator: of blocks.
        outputs: begun.
        should_stop: see `translate_text`.
        feature: what log p is called in a list.
    """

    request: TranslationRequest
    translator: Translator
    outputs: ResumableOutputs
    should_stop: Callable[[], bool]
    feature: str

    def __post_init__(self) -> None:
        self._text = self.request.text
        self._meter = Meter(waiting=self._stop_if_requested)
        self._hash, self._blocks = hashlib.sha256(), 0

    @property
    def counts(self) -> Counts:
        """What was met, in the blocks of interrupted runs too."""
        return self.translator.counts

    def translate(self, advanced: Advanced, note: Note | None) -> None:
        """Translate what is not yet translated, given the note of the last block that is."""
        stamp = change_stamp(self._text)
        with contextlib.closing(self._lines()) as lines:
            blocks = blocks_of(lines, self._text)
            before = self._skip(blocks, note)

            def between(more: int) -> None:
                done = self.counts.lines + more - before
                advanced(done, self._share(before, done))
                self._stop_if_requested()

            with placing(lambda row: f"{self._text}:{self.counts.lines + row + 1}"):
                for block in blocks:
                    self._stop_if_requested()
                    self._write(block, self.translator.translate(block, between))
        if change_stamp(self._text) != stamp:
            raise InputError(f"{self._text}: was changed while it was read; nothing was written")

    def _write(self, block: list[Words], translations: list[Translation]) -> None:
        texts = self._texts(translations, self.counts.lines - len(block))
        self._add(block)
        for path, text in zip((self.request.output, *self.request.others), texts, strict=True):
            self.outputs.append(path, Packing(is_gzip(path))(text))
        self.outputs.save({"sha256": self._hash.hexdigest(), "blocks": self._blocks, **asdict(self.counts)})

    def _lines(self) -> Generator[bytes]:
        try:
            yield from read_lines(self._text, meter=self._meter)
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
        for _ in range(note["blocks"]):
            self._add(next(blocks, []))
        grown = self.outputs.complete and next(blocks, None) is not None
        if grown or self._hash.hexdigest() != note["sha256"]:
            raise OutputError(
                f"{self.request.output}: expected the text that the interrupted run was given, found another: "
                f"{self._text}, by its first {note['lines']:,} lines",
                advice="Give the same to go on, or --force to start over.",
            )
        self.translator.counts = Counts(**{key: note[key] for key in asdict(self.counts)})
        return self.counts.lines

    def _add(self, block: list[Words]) -> None:
        self._blocks += 1
        self._hash.update(b"".join(b" ".join(line) + b"\n" for line in block))

    def _share(self, before: int, done: int) -> float | None:
        """Of the lines that this run has to translate, as far as the reading tells."""
        if self._meter.share is None:
            return None
        whole = self._meter.lines_read / self._meter.share
        return min(done / max(whole - before, 1), 1.0)

    def _stop_if_requested(self) -> None:
        if self.should_stop():
            what_next = (
                "the same command with --resume continues"
                if self.outputs.resumable
                else "what goes through a pipe cannot be resumed: the same command starts over"
            )
            raise Stopped(f"stopped after {self.counts.lines:,} lines; {what_next}")

    def _texts(self, translations: list[Translation], first: int) -> list[bytes]:
        """A block of each file."""
        texts = [b"".join(translation.text() + b"\n" for translation in translations)]
        if self.request.n_best is not None:
            texts.append(b"".join(self._nbest_lines(first + i, line) for i, line in enumerate(translations)))
        if self.request.alignments is not None:
            texts.append(b"".join(_alignment(first + i + 1, line) for i, line in enumerate(translations)))
        return texts

    def _nbest_lines(self, sentence: int, translation: Translation) -> bytes:
        """The candidates of a line, numbered from 0, as Moses lists them."""
        texts = [translation.text(i) for i in range(len(translation.candidates))]
        # by a word of the text, or of a lexicon, in place of an unknown one
        if parted := next((text for text in texts if SEPARATOR in text), None):
            raise FormatError(self._text, sentence + 1, "words without ||| for an n-best list", shown(parted))
        return b"".join(
            format_nbest_line(sentence, text, self.feature, candidate.log_prob, translation.links(i))
            for i, (text, candidate) in enumerate(zip(texts, translation.candidates, strict=True))
        )


def _alignment(number: int, translation: Translation) -> bytes:
    alpha = NO_ALPHA if translation.alpha is None else translation.alpha
    return format_alignment(number, translation.source, words(translation.best.words), alpha)
