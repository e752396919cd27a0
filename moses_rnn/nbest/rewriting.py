"""Translate a text with a reranker, in a stream: Moses decodes the next lines while lists are scored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from moses_rnn.errors import AlreadyComplete, InputError, OutputError, Stopped, number_of
from moses_rnn.files.outputs import Note, pack
from moses_rnn.files.resumable import ResumableOutputs, check_finished
from moses_rnn.files.streams import STANDARD_STREAM, as_text, find_input, read_lines, read_text
from moses_rnn.moses.alignments import format_links
from moses_rnn.moses.decoding import Decoder
from moses_rnn.moses.nbest import alignment_of
from moses_rnn.nbest.raw_text import RawText
from moses_rnn.nbest.request import RerankingRequest
from moses_rnn.nbest.reranker import SETTINGS, Reranked, Reranker, Settings
from moses_rnn.table.phrase_table import SEPARATOR
from moses_rnn.table.phrases import words

Warn = Callable[[str], None]
STDIN = 0  # its descriptor
LINES_CHECKED = 5  # of a finished output


def translate_text(
    request: RerankingRequest, settings: Settings, reranker: Reranker, should_stop: Callable[[], bool], warn: Warn
) -> tuple[int, int]:
    """Translate the text; return the number of lines, and how many of them were not reranked."""
    problems = 0
    raw = RawText(settings.source, settings.target, lowercase=settings.lowercase) if request.raw else None
    with ExitStack() as stack:
        outputs = stack.enter_context(_open(request, settings, reranker, raw))
        lines = _lines(request.input)
        note = outputs.begin(_manifest(request, settings))
        digest = hashlib.sha256()
        if note:
            _skip(lines, note, digest, request.output)
        done = note["lines"] if note else 0

        def stop_if_requested() -> None:
            if should_stop():
                then = "--resume continues" if outputs.resumable else "the same command starts over"
                raise Stopped(f"stopped after {number_of(done, 'line')}; {then}")

        decoder = stack.enter_context(_decoder(request, settings))
        read: list[bytes] = []  # lines as they were given, whose translations are not written yet
        for lists in decoder.decode(_given(lines, read, raw), stop_if_requested):
            translated = reranker.rerank(lists)
            for number, one in enumerate(translated, done):
                if one.problem:
                    problems += 1
                    warn(f"line {number + 1}: {one.problem}; {'the decoder chose' if one.text else 'left empty'}")
                for path, data in _texts(request, number, one, raw).items():
                    outputs.append(path, pack(data, path))
            digest.update(b"".join(line + b"\n" for line in read[: len(translated)]))
            del read[: len(translated)]
            done += len(translated)
            outputs.save({"lines": done, "sha256": digest.hexdigest()})
        outputs.commit()
    return done, problems


def _open(request: RerankingRequest, settings: Settings, reranker: Reranker, raw: RawText | None) -> ResumableOutputs:
    text = () if request.input == STANDARD_STREAM else (find_input(request.input),)
    inputs = (*text, *(str(request.folder / path) for path in (SETTINGS, *settings.hashes)))
    try:
        return ResumableOutputs(request.outputs, resume=request.resume, force=request.force, inputs=inputs)
    except AlreadyComplete:
        _check_finished(request, settings, reranker, raw)
        raise


def _decoder(request: RerankingRequest, settings: Settings) -> Decoder:
    return settings.open_decoder(request.folder, request.threads, allow_changed=request.allow_changed)


def _check_finished(request: RerankingRequest, settings: Settings, reranker: Reranker, raw: RawText | None) -> None:
    """Raise OutputError unless an output begins with this run's translations and has as many lines as the text.

    Scores are not compared: their last digits depend on which lines are scored together.
    """
    if request.input == STANDARD_STREAM or not Path(find_input(request.input)).is_file():
        raise OutputError(f"{request.output}: already exists; use --force to replace it")
    lines = [*_lines(request.input)]
    with _decoder(request, settings) as decoder:
        lists = decoder.decode(_given(iter(lines[:LINES_CHECKED]), [], raw))
        translated = [one for some in lists for one in reranker.rerank(some)]
    texts = [raw.detokenise(one.text) if raw else one.text for one in translated]
    if request.json:
        if _translations_in(request.output, len(texts)) != [*map(_decode, texts)]:
            raise OutputError(
                f"{request.output}: already exists, but this run writes other lines; use --force to replace it"
            )
        check_finished(request.output, len(lines), {})
    else:
        check_finished(request.output, len(lines), {request.output: b"".join(text + b"\n" for text in texts)})


def _translations_in(output: str, count: int) -> list[object]:
    """Return the translations in the first records of an output; none if it has no such records."""
    with suppress(InputError, ValueError, TypeError, KeyError):
        return [json.loads(line)["translation"] for line in islice(read_lines(output), count)]
    return []


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a text as they come."""
    if path == STANDARD_STREAM:
        # Not sys.stdin: a thread that waits for it would disturb Python's exit
        text = as_text(open(STDIN, "rb", closefd=False), "standard input")  # noqa: SIM115, closed at exit
    else:
        text = read_text(find_input(path))
    return (line.rstrip(b"\r\n") for line in text)


def _given(lines: Iterator[bytes], read: list[bytes], raw: RawText | None) -> Iterator[bytes]:
    for line in lines:
        read.append(line)
        yield raw.tokenise(line) if raw else line


def _skip(lines: Iterator[bytes], note: Note, digest: Any, output: str) -> None:
    for line in islice(lines, note["lines"]):
        digest.update(line + b"\n")
    if digest.hexdigest() != note["sha256"]:
        raise OutputError(
            f"{output}: expected the text of the interrupted run, found another in its first "
            f"{number_of(note['lines'], 'line')}",
            advice="Use the same text to continue; --force without --resume starts over.",
        )


def _manifest(request: RerankingRequest, settings: Settings) -> Note:
    """Return everything that determines the output, except the text."""
    kinds = {"n_best": request.n_best and request.n_best[0], "json": request.json, "raw": request.raw}
    used = {**asdict(settings), **settings.current_hashes(request.folder)}
    del used["hashes"]  # of files that may have changed since
    return {**used, **kinds, "alignments": request.alignments is not None}


def _texts(request: RerankingRequest, number: int, one: Reranked, raw: RawText | None) -> dict[str, bytes]:
    """Return what each output gets of a line, numbered from 0."""
    text = raw.detokenise(one.text) if raw else one.text
    texts = [(json.dumps(describe(one, text)).encode() if request.json else text) + b"\n"]
    if request.n_best:
        texts.append(b"".join(format_hypotheses(number, one, request.n_best[0])))
    if request.alignments:
        links = alignment_of(one.hypotheses[0][1], "list") if one.hypotheses else ()
        texts.append(format_links(links) + b"\n")
    return dict(zip(request.outputs, texts, strict=True))


def format_hypotheses(number: int, one: Reranked, most: int) -> Iterator[bytes]:
    """Yield the best hypotheses as lines of an n-best list, whose totals are the new scores."""
    for score, line in one.hypotheses[:most]:
        fields = line.line.split(SEPARATOR)
        yield SEPARATOR.join([b"%d " % number, *fields[1:3], b" %.6g " % score, *fields[4:]])


def describe(one: Reranked, text: bytes) -> Mapping[str, Any]:
    """Describe a translation for JSON."""
    score, best = one.hypotheses[0] if one.hypotheses else (None, None)
    return {
        "source": _decode(one.source),
        "translation": _decode(text),
        "decoder": _decode(one.decoder_choice),
        "score": score,
        "features": dict(best.labels()) if best else {},
        **({"problem": one.problem} if one.problem else {}),
    }


def _decode(text: bytes) -> str:
    return b" ".join(words(text)).decode("utf-8", "replace")
