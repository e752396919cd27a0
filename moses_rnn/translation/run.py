"""Translate a text and write translations, n-best lists and alignments; a killed run can be resumed."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from moses_rnn.errors import (
    AlreadyComplete,
    FormatError,
    MosesRnnError,
    OutputError,
    Stopped,
    number_of,
    placing,
    shown,
)
from moses_rnn.files.outputs import Note, pack
from moses_rnn.files.resumable import ResumableOutputs, check_finished
from moses_rnn.files.streams import Advanced, Meter, check_unchanged, find_input, fingerprint, read_text
from moses_rnn.models.ensembles import AnyModel, Ensemble
from moses_rnn.models.open import model_files
from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.moses.nbest import format_nbest_line
from moses_rnn.networks.compute import Compute
from moses_rnn.table.phrase_table import SEPARATOR
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import PROGRAM
from moses_rnn.translation import translate
from moses_rnn.translation.requests import TranslationRequest
from moses_rnn.translation.search import BeamConfig
from moses_rnn.translation.translate import (
    Counts,
    Translation,
    Translator,
    Words,
    blocks_of,
    format_alignment,
    no_attention,
    rule_of,
)


def translate_text(
    request: TranslationRequest,
    model: AnyModel,
    lexicon: Lexicon | None,
    advanced: Advanced,
    should_stop: Callable[[], bool],
) -> Counts:
    """Translate a text; in n-best lists, the model's log p is the feature NAME0.

    `lexicon` was read from the request's dictionary. `advanced` regularly gets the number of lines that this run has
    translated and, if known, their share. `should_stop` is called as often, and while a pipe has no data; after a stop
    or an error, the run can be resumed unless it writes to a pipe.
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
    try:
        opened = ResumableOutputs(names, resume=request.resume, force=request.force, inputs=inputs, advise=_advice)
    except AlreadyComplete:
        _check_complete(request, _make_translator(request, model, config, lexicon), f"{model.name}0")
        raise
    with opened as outputs:
        translator = _make_translator(request, model, config, lexicon)
        note = outputs.begin(_manifest(request, model, config, lexicon))
        _Run(request, translator, outputs, f"{model.name}0", should_stop).translate(advanced, note)
        outputs.commit()
    return translator.counts


def _make_translator(
    request: TranslationRequest, model: AnyModel, config: BeamConfig, lexicon: Lexicon | None
) -> Translator:
    translator = Translator(
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
    return translator


def _check_complete(request: TranslationRequest, translator: Translator, feature: str) -> None:
    """Raise OutputError unless existing outputs begin as this run would write them, with as many lines as the text."""
    if not Path(request.text).is_file():
        raise OutputError(f"{request.output}: already exists; use --force to replace it")
    blocks = blocks_of(read_text(request.text), request.text)
    first = next(blocks)
    texts = _texts_of(request, feature, 0, translator.translate(first))
    outputs = dict(zip((request.output, *request.others), texts, strict=True))
    check_finished(request.output, len(first) + sum(map(len, blocks)), outputs)


def _advice(error: MosesRnnError, counts: Note) -> str:
    """Return advice about a rejected line."""
    done = f"{number_of(counts['lines'], 'line is', 'lines are')} already translated and saved. "
    done += "Correct the line, then continue with --resume."
    return done if isinstance(error, FormatError) else ""


def _manifest(request: TranslationRequest, model: AnyModel, config: BeamConfig, lexicon: Lexicon | None) -> Note:
    """Return everything that determines the output, except the text, which the hash in each block's note covers."""
    members = [dict(member.hashes) for member in model.models]
    return {
        "program": PROGRAM,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "model": {"combination": model.combination, "members": members} if isinstance(model, Ensemble) else members[0],
        "beam": asdict(config),
        "block_lines": translate.LINES,
        "device": request.device.partition(":")[0],
        "n_best": request.n_best is not None,
        "alignments": request.alignments is not None,
        "unknown": rule_of(model, request.unknown, lexicon),
        "candidates": request.candidates and list(request.candidates),
        "lexicon": lexicon and hashlib.sha256(b"".join(lexicon.lines())).hexdigest(),
    }


class _Run:
    """Translates the text block by block; `feature` is the name of log p in a list."""

    def __init__(
        self,
        request: TranslationRequest,
        translator: Translator,
        outputs: ResumableOutputs,
        feature: str,
        should_stop: Callable[[], bool],
    ) -> None:
        self._request, self._translator, self._outputs, self._feature = request, translator, outputs, feature
        self._text, self._should_stop = request.text, should_stop
        self._meter = Meter(waiting=self._stop_if_requested)
        self._hash, self._blocks = hashlib.sha256(), 0

    @property
    def _done(self) -> int:
        """Number of translated lines, including those of interrupted runs."""
        return self._translator.counts.lines

    def translate(self, advanced: Advanced, note: Note | None) -> None:
        """Translate the rest of the text, given the note of the last translated block."""
        identity = fingerprint(self._text)
        with contextlib.closing(read_text(self._text, meter=self._meter)) as lines:
            blocks = blocks_of(lines, self._text)
            if note is not None:
                self._skip(blocks, note)
            before = self._done

            def between(more: int) -> None:
                done = self._done + more - before
                share = self._meter.share
                to_do = max(self._meter.lines_read / share - before, 1) if share else 0
                advanced(done, min(done / to_do, 1.0) if to_do else None)
                self._stop_if_requested()

            with placing(lambda row: f"{self._text}:{self._done + row + 1}"):
                for block in blocks:
                    self._stop_if_requested()
                    self._write(block, self._translator.translate(block, between))
        check_unchanged(self._text, identity)

    def _skip(self, blocks: Iterator[list[Words]], note: Note) -> None:
        """Skip the blocks that an interrupted run has translated; raise an error if the text differs."""
        for _ in range(note["blocks"]):
            self._add(next(blocks, []))
        grown = self._outputs.complete and next(blocks, None) is not None
        if grown or self._hash.hexdigest() != note["sha256"]:
            raise OutputError(
                f"{self._request.output}: expected the text of the interrupted run, found another: "
                f"{self._text}, by its first {number_of(note['lines'], 'line')}",
                advice="Use the same text to continue; --force without --resume starts over.",
            )
        self._translator.counts = Counts(**{key: note[key] for key in asdict(self._translator.counts)})

    def _add(self, block: list[Words]) -> None:
        self._blocks += 1
        self._hash.update(b"".join(b" ".join(line) + b"\n" for line in block))

    def _stop_if_requested(self) -> None:
        if self._should_stop():
            what_next = "a run through a pipe cannot be resumed: the same command starts over"
            if self._outputs.resumable:
                what_next = "the same command with --resume continues"
            raise Stopped(f"stopped after {number_of(self._done, 'line')}; {what_next}")

    def _write(self, block: list[Words], translations: list[Translation]) -> None:
        """Write a block to each file and save."""
        texts = _texts_of(self._request, self._feature, self._done - len(block), translations)
        self._add(block)
        for path, text in zip((self._request.output, *self._request.others), texts, strict=True):
            self._outputs.append(path, pack(text, path))
        counts = asdict(self._translator.counts)
        self._outputs.save({"sha256": self._hash.hexdigest(), "blocks": self._blocks, **counts})


def _texts_of(
    request: TranslationRequest, feature: str, first: int, translations: Sequence[Translation]
) -> list[bytes]:
    """Return what each output gets of a block, whose first line has the number `first`, from 0."""
    numbered = list(enumerate(translations, first))
    texts = [b"".join(translation.best.text + b"\n" for translation in translations)]
    if request.n_best is not None:
        texts.append(b"".join(_nbest_lines(request.text, feature, i, translation) for i, translation in numbered))
    if request.alignments is not None:
        texts.append(b"".join(format_alignment(i + 1, t.source, words(t.best.words), t.alpha) for i, t in numbered))
    return texts


def _nbest_lines(text: str, feature: str, sentence: int, translation: Translation) -> bytes:
    """Return the candidates of a line, numbered from 0, as lines of a Moses n-best list."""
    # caused by a word of the text that replaced an unknown one
    if parted := next((one.text for one in translation.candidates if SEPARATOR in one.text), None):
        raise FormatError(text, sentence + 1, "words without ||| for an n-best list", shown(parted))
    return b"".join(
        format_nbest_line(sentence, one.text, feature, one.log_prob, one.links) for one in translation.candidates
    )
