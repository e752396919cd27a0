"""Serve a reranker over HTTP: the XML-RPC protocol of mosesserver, and JSON.

All requests go through one stream of lines, so those that wait together are scored together.
"""

from __future__ import annotations

import json
import queue
import re
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc import client

from moses_rnn.errors import MosesRnnError, shown_value
from moses_rnn.moses.decoding import ListStream
from moses_rnn.moses.nbest import NBestLine, alignment_of, segmentation_of
from moses_rnn.nbest.reranker import Reranked, Reranker
from moses_rnn.nbest.rewriting import describe

KNOWN = {
    "text",
    "nbest",
    "nbest-distinct",
    "align",
    "word-align",
    "add-score-breakdown",
    "report-all-factors",
}
FLAGS = (True, "true", "True", "TRUE", "1")
NOT_IN_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
MOST_WAITING = 256  # connections
MOST_DIGITS = 16  # of a Content-Length
BLOCK, MOST_DROPPED = 1 << 16, 1 << 26  # bytes of a request that is too large, which are read and dropped

Json = Mapping[str, Any]


class Refusal(Exception):
    """A request that is not answered, and why."""


@dataclass(frozen=True)
class Limits:
    """Limits of a request."""

    bytes: int
    words: int
    seconds: float


class Service:
    """Reranks the texts of concurrent requests in one stream. `failure` says why it has ended, if it has."""

    def __init__(self, decoder: ListStream, reranker: Reranker, limits: Limits) -> None:
        self._decoder, self._reranker, self.limits = decoder, reranker, limits
        self._given: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._futures: deque[Future[Reranked]] = deque()  # of the lines given, in their order
        self._lock = threading.Lock()  # held while a line is given, and while the end is noted
        self.failure: Exception | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def translate(self, text: str) -> Reranked:
        """Translate a text of one line; raise Refusal if it is beyond the limits, or nothing translates it."""
        line = b" ".join(text.encode("utf-8", "replace").split(b"\n")).replace(b"\r", b" ")
        if len(line.split()) > self.limits.words:
            raise Refusal(f"expected at most {self.limits.words} words, found {len(line.split())}")
        future: Future[Reranked] = Future()
        with self._lock:
            if self.failure:
                raise Refusal(f"the decoder has ended: {self.failure}")
            self._futures.append(future)
            self._given.put(line)
        try:
            result = future.result(self.limits.seconds)
        except TimeoutError:
            raise Refusal(f"no translation within {self.limits.seconds:g} seconds") from None
        except MosesRnnError as error:
            raise Refusal(error.message) from error
        if result.problem and not result.hypotheses:
            raise Refusal(result.problem)
        return result

    def _lines(self) -> Iterator[bytes]:
        while True:
            yield self._given.get()

    def _run(self) -> None:
        try:
            for lists in self._decoder.decode(self._lines()):
                try:
                    results = self._reranker.rerank(lists)
                except MosesRnnError as error:
                    for _ in lists:
                        self._futures.popleft().set_exception(error)
                else:
                    for result in results:
                        self._futures.popleft().set_result(result)
        except Exception as error:
            with self._lock:
                self.failure = error
            while self._futures:
                self._futures.popleft().set_exception(MosesRnnError(f"the decoder has ended: {error}"))


def answer(service: Service, params: Json) -> Json:
    """Answer mosesserver's method `translate`."""
    if not isinstance(params.get("text"), str):
        raise Refusal("Missing source text")
    if unknown := sorted(params.keys() - KNOWN):
        raise Refusal(f"expected parameters among {', '.join(sorted(KNOWN))}, found {shown_value(unknown[0])}")
    size = params.get("nbest", 0)
    if type(size) is not int or size < 0:
        raise Refusal(f"nbest: expected a whole number from 0, found {shown_value(size)}")
    wanted = {name for name in KNOWN if params.get(name) in FLAGS}
    result = service.translate(params["text"])
    best = _describe(result.hypotheses[0], wanted) if result.hypotheses else {"hyp": ""}
    answered = {"text": best["hyp"], "decoder-text": _text(result.decoder_choice)}
    answered |= {name: best[name] for name in ("align", "word-align") if name in best}
    if size:
        answered["nbest"] = [_describe(one, wanted) for one in result.hypotheses[:size]]
    return answered


def _describe(scored: tuple[float, NBestLine], wanted: set[str]) -> dict[str, Any]:
    """Describe a hypothesis as mosesserver does; its total is the new score."""
    score, line = scored
    described: dict[str, Any] = {"hyp": _text(line.hypothesis), "totalScore": score}
    if "align" in wanted:
        described["align"] = [
            {"src-start": first, "src-end": last, "tgt-start": begin, "tgt-end": end - 1}
            for first, last, begin, end in segmentation_of(line, "list") or []
        ]
    if "word-align" in wanted:
        links = alignment_of(line, "list")
        described["word-align"] = [{"source-word": source, "target-word": target} for source, target in links]
    if "add-score-breakdown" in wanted:
        described |= {
            "fvals": _text(line.features),
            "scores": {label: [values, {}] for label, values in line.labels()},
        }
    return described


def _text(data: bytes) -> str:
    return NOT_IN_XML.sub("\ufffd", data.decode("utf-8", "replace"))


class Server(ThreadingHTTPServer):
    """An HTTP server; closing it waits for the requests that have begun."""

    daemon_threads = False
    request_queue_size = MOST_WAITING

    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        self.idle: set[socket.socket] = set()  # connections without a request
        super().__init__(address, Handler)

    def server_close(self) -> None:
        """Wait for the requests that have begun; expect no others."""
        for connection in self.idle.copy():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers POST /RPC2 (XML-RPC), POST /translate (JSON) and GET /health."""

    server: Server

    def setup(self) -> None:
        """Limit the seconds that a client may take to send its request."""
        super().setup()
        self.connection.settimeout(self.server.service.limits.seconds)
        self.server.idle.add(self.connection)

    def parse_request(self) -> bool:
        """Read the headers."""
        self.server.idle.discard(self.connection)
        return super().parse_request()

    def finish(self) -> None:
        """Close the connection's files."""
        self.server.idle.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        """Say whether the service works."""
        failure = self.server.service.failure
        if self.path == "/health":
            record = {"status": "failed", "reason": str(failure)} if failure else {"status": "ok"}
            self._send(503 if failure else 200, json.dumps(record), "application/json")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Translate."""
        if self.path == "/translate":
            status, text = self._answered(_answer_json, lambda reason: (400, json.dumps({"error": reason})))
            self._send(status, text, "application/json")
        elif self.path in ("/RPC2", "/"):
            status, text = self._answered(_answer_xml, lambda reason: (200, client.dumps(client.Fault(1, reason))))
            self._send(status, text, "text/xml")
        else:
            self.send_error(404)

    def _answered(
        self, make: Callable[[Service, bytes], str], refuse: Callable[[str], tuple[int, str]]
    ) -> tuple[int, str]:
        try:
            return 200, make(self.server.service, self._read())
        except Refusal as refusal:
            return refuse(NOT_IN_XML.sub("\ufffd", str(refusal)))

    def _read(self) -> bytes:
        length, most = self.headers.get("Content-Length", ""), self.server.service.limits.bytes
        if not (length.isascii() and length.isdigit() and len(length) < MOST_DIGITS):
            raise Refusal("expected a Content-Length")
        left = int(length)
        if left > most:
            for _ in range(min(left, MOST_DROPPED) // BLOCK + 1):  # clients read no answer before they have sent all
                left -= len(self.rfile.read(min(left, BLOCK)))
            raise Refusal(f"expected at most {most:,} bytes, found {int(length):,}")
        return self.rfile.read(left)

    def _send(self, status: int, text: str, kind: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing: texts may be private."""


def _answer_xml(service: Service, data: bytes) -> str:
    try:
        params, method = client.loads(data)
    except (ExpatError, client.Error, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise Refusal(f"expected an XML-RPC call, found: {error}") from error
    if method != "translate" or len(params) != 1 or not isinstance(params[0], dict):
        raise Refusal(f"expected translate with one struct, found {shown_value(method)}")
    return client.dumps((dict(answer(service, params[0])),), methodresponse=True, encoding="utf-8")


def _answer_json(service: Service, data: bytes) -> str:
    try:
        params = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"expected JSON, found: {error}") from error
    if not isinstance(params, dict) or not isinstance(params.get("text"), str):
        raise Refusal('expected a JSON object with a "text"')
    result = service.translate(params["text"])
    return json.dumps(describe(result, result.text))
