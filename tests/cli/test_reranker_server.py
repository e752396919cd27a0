"""moses-rnn reranker serve, with a stub in Moses's place."""

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from xmlrpc.client import Fault, ServerProxy, dumps

import pytest

from moses_rnn.errors import InputError
from moses_rnn.nbest.serving import Limits, Refusal, Service
from tests.cli.nbest.lists import REFERENCE, SOURCE
from tests.cli.test_reranker import INI, MADE
from tests.commands import start, zygote
from tests.nbest.stub_moses import put_stub
from tests.score.saved_models import save_models

TEXT, RIGHT = "s2 s3 s4 s5", "t2 t3 t4 t5"
EVERYTHING = {
    "nbest": 3,
    "nbest-distinct": "true",
    "align": "true",
    "word-align": "true",
    "add-score-breakdown": "1",
    "report-all-factors": "true",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    put_stub(folder)
    save_models(folder / "m")
    for name, text in (("moses.ini", INI.encode()), ("dev.en", SOURCE), ("dev.fr", REFERENCE)):
        (folder / name).write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOSES_ROOT", str(folder / "moses"))
        done = zygote("reranker", *MADE, "--add", "m/cslm", "--quiet", cwd=folder)
        assert done.returncode == 0, done.stderr
        yield folder


@contextmanager
def serving(folder, *arguments, moses="moses"):
    """A running server: the process and its URL."""
    environment = {**os.environ, "MOSES_ROOT": str(folder / (moses or "nowhere"))}
    command = ["serve", "made", "--port", "0", *arguments]
    process = start("reranker", *command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment)
    line = process.stderr.readline()
    assert line.startswith("listening on "), line + process.stderr.read()
    try:
        yield process, line.split()[-1]
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="module")
def url(made):
    with serving(made, "--max-words", "20", "--max-bytes", "5000") as (_, url):
        yield url


def ask(url, params):
    with ServerProxy(url) as server:
        return server.translate(params)


def post(url, path, data):
    request = urllib.request.Request(url + path, data=data)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_a_client_of_mosesserver_works(url):
    answer = ask(f"{url}/RPC2", {"text": TEXT, **EVERYTHING})
    assert (answer["text"], answer["decoder-text"]) == (RIGHT, "t2 x t4 t5")
    assert answer["align"][1] == {"src-start": 1, "src-end": 1, "tgt-start": 1, "tgt-end": 1}
    assert answer["word-align"][3] == {"source-word": 3, "target-word": 3}
    assert answer["nbest"][0]["hyp"] == RIGHT
    totals = [one["totalScore"] for one in answer["nbest"]]
    assert totals == sorted(totals, reverse=True)
    assert answer["nbest"][0]["fvals"].startswith("LM0= -2 CSLM0= -")
    assert answer["nbest"][0]["scores"]["LM0"] == [[-2], {}]
    assert ask(f"{url}/RPC2", {"text": TEXT}) == {"text": RIGHT, "decoder-text": "t2 x t4 t5"}


def test_json_and_health(url):
    assert post(url, "/translate", b'{"text": "s2 s3 s4 s5"}')["translation"] == RIGHT
    with urllib.request.urlopen(url + "/health") as answer:
        assert json.load(answer) == {"status": "ok"}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "Missing source text"),
        ({"text": 3}, "Missing source text"),
        ({"text": "s2", "nbest": "3"}, "nbest"),
        ({"text": "s2", "lambda": [0.5]}, "lambda"),
        ({"text": "s2 " * 21}, "20 words"),
        ({"text": "s" * 6000}, "5,000 bytes"),
        ({"text": "[X] s2"}, "Moses ended"),
        ({"text": "none s2"}, "no list"),
    ],
)
def test_what_cannot_be_answered_is_a_fault_with_a_reason(url, params, reason):
    with pytest.raises(Fault, match=reason):
        ask(f"{url}/RPC2", params)
    assert ask(f"{url}/RPC2", {"text": "s2"})["text"] == "t2"


@pytest.mark.parametrize("text", ["", " ", "s2 | s3", '<x y="z">s2</x>', "s2\ns3\r\n", "s\x7f2 \x85", "\u2028 s2"])
def test_odd_texts_are_answered(url, text):
    assert "text" in ask(f"{url}/RPC2", {"text": text})


@pytest.mark.parametrize(
    "data", [b"", b"<a>", b"<?xml version='1.0'?><methodCall><methodName>updater</methodName></methodCall>", b"\xff"]
)
def test_what_is_no_call_is_a_fault(url, data):
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("POST", "/RPC2", data)
    assert b"<fault>" in connection.getresponse().read()
    connection.request("POST", "/translate", data)
    assert connection.getresponse().status == 400
    connection.close()


def test_concurrent_requests_get_their_own_answers(url):
    def asked(i):
        words = [f"s{(i + k) % 9}" for k in range(1 + i % 7)]
        return " ".join(words), ask(f"{url}/RPC2", {"text": " ".join(words), "nbest": 3})

    with ThreadPoolExecutor(200) as pool:
        for text, answer in pool.map(asked, range(600)):
            right = text.replace("s", "t")
            assert right in [one["hyp"] for one in answer["nbest"]]


def children_of(process):
    """The processes that a process started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == process.pid:
                yield int(path.parent.name)


def test_a_killed_decoder_is_started_again(made):
    with serving(made) as (process, url):
        for decoder in children_of(process):
            os.kill(decoder, signal.SIGKILL)
        assert ask(f"{url}/RPC2", {"text": TEXT})["text"] == RIGHT


def test_a_decoder_is_not_started_again_with_changed_files(made):
    with serving(made) as (process, url):
        (made / "moses.ini").write_text(INI + "\n")
        try:
            for decoder in children_of(process):
                os.kill(decoder, signal.SIGKILL)
            with pytest.raises(Fault, match=r"moses\.ini: changed or missing"):
                ask(f"{url}/RPC2", {"text": TEXT})
            assert process.wait(60) == 1
        finally:
            (made / "moses.ini").write_text(INI)


def test_a_line_that_the_ended_decoder_never_took_is_answered_at_once():
    ending = threading.Event()

    class Ended:
        def decode(self, lines):
            ending.wait()
            raise InputError("gone")

    service = Service(Ended(), None, Limits(bytes=9, words=9, seconds=3600))
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(service.translate, "a")
        while not service._futures:
            time.sleep(0.01)
        ending.set()
        with pytest.raises(Refusal, match="the decoder has ended: gone"):
            waiting.result(60)
    with pytest.raises(Refusal, match="the decoder has ended: gone"):
        service.translate("b")


def test_a_client_that_goes_away_disturbs_nobody(url):
    address = url.removeprefix("http://").split(":")
    for data in (
        b"POST /RPC2 HTTP/1.1\r\nContent-Length: 100\r\n\r\n<x",
        b'POST /translate HTTP/1.0\r\nContent-Length: 14\r\n\r\n{"text": "s2"}',
        b"\x00",
    ):
        client = socket.create_connection((address[0], int(address[1])))
        client.sendall(data)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert ask(f"{url}/RPC2", {"text": TEXT})["text"] == RIGHT


def test_sigterm_finishes_what_has_begun(made):
    answers = []

    def note(url):
        try:
            answers.append(ask(f"{url}/RPC2", {"text": TEXT})["text"])
        except (OSError, http.client.HTTPException) as error:
            answers.append(type(error))

    with serving(made) as (process, url):
        threads = [threading.Thread(target=note, args=(url,)) for _ in range(100)]
        for thread in threads:
            thread.start()
        while not answers:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert process.wait() == 0
    assert len(answers) == 100
    assert {one for one in answers if isinstance(one, str)} == {RIGHT}


def test_sigterm_waits_for_no_connection_without_a_request(made):
    with serving(made, "--max-seconds", "3600") as (process, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as idle:
            assert ask(f"{url}/RPC2", {"text": TEXT})["text"] == RIGHT
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert idle.recv(1) == b""


@pytest.mark.parametrize("size", [6_000, 20_000_000])
def test_a_request_that_is_too_large_is_a_fault(url, size):
    with pytest.raises(Fault, match="expected at most 5,000 bytes, found "):
        ask(f"{url}/RPC2", {"text": "s" * size})


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1", ""])
def test_a_length_that_is_no_number_is_a_fault(url, length):
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /RPC2 HTTP/1.0\r\nContent-Length: %b\r\n\r\n" % length.encode("latin-1"))
        assert b"expected a Content-Length" in connection.makefile("rb").read()


def test_a_number_that_is_none_is_a_fault(url):
    data = b"<methodCall><methodName>translate</methodName><params><param><value><bigdecimal>x</bigdecimal></value>"
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("POST", "/RPC2", data + b"</param></params></methodCall>")
    assert b"expected an XML-RPC call" in connection.getresponse().read()
    connection.close()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n%b\r\n%b"
BAD_ANSWERS = [
    b"hello\r\n\r\n",
    ANSWER % (b"Transfer-Encoding: chunked\r\n", b"100\r\n<"),  # cut
    ANSWER % (b"", dumps(("no struct",), methodresponse=True).encode()),
    None,  # no answer until the client goes away
]


@contextmanager
def answering(answers):
    """A mosesserver that answers all with the last of the answers: its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_all():
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connection.recv(1 << 16)
                    if answers[-1] is None:
                        connection.recv(1)
                    else:
                        connection.sendall(answers[-1])
                    connection.close()

        threading.Thread(target=answer_all, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/RPC2"


def test_a_bad_answer_of_a_mosesserver_is_a_fault_of_one_request(made):
    answers = []
    with (
        answering(answers) as upstream,
        serving(made, "--moses-server", upstream, "--max-seconds", "2", moses=None) as (process, url),
    ):
        for answer in BAD_ANSWERS:
            answers.append(answer)
            for _ in range(2):
                with pytest.raises(Fault, match=r"no translation within 2 seconds|127\.0\.0\.1"):
                    ask(f"{url}/RPC2", {"text": TEXT})
        with urllib.request.urlopen(url + "/health") as answer:
            assert json.load(answer) == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_an_address_in_use_is_named(made, url):
    port = url.rpartition(":")[2]
    process = start("reranker", "serve", "made", "--port", port, cwd=made, stderr=subprocess.PIPE, text=True)
    assert f"127.0.0.1:{port}: cannot listen" in process.communicate()[1]
    assert process.returncode == 1
