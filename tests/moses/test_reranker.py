"""moses-rnn reranker with the real Moses, which MOSES_ROOT names."""

import json
import os
import random
import socket
import subprocess
import sys
import time

import pytest

from tests.cli.test_reranker import MADE
from tests.cli.test_reranker_server import EVERYTHING, ask, serving
from tests.commands import kill_group, run, start, zygote
from tests.moses.decoding import ran
from tests.score.saved_models import save_models

pytestmark = pytest.mark.moses

TARGETS = {2: "t2 t4", 3: "t3 t5 x", 4: "t4 t2", 5: "t5 t3", 6: "t6 t8"}
TABLE = [
    f"s{source} ||| {target} ||| 0.{5 - k} 0.{3 + k} ||| 0-0\n"
    for source, targets in TARGETS.items()
    for k, target in enumerate(targets.split())
]
TABLE += ["s4 s5 ||| t4 t5 ||| 0.2 0.3 ||| 0-0 1-1\n"]
INI = """\
[input-factors]
0
[mapping]
0 T 0
[distortion-limit]
6
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=2 path=table input-factor=0 output-factor=0
Distortion
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.1
PhrasePenalty0= 0.2
TranslationModel0= 0.3 0.2
Distortion0= 0.3
"""
WANTED = str.maketrans({"s": "t", "2": "4", "3": "5", "4": "2", "5": "3"})  # what the table thinks second best
ADDED = ["--add", "m/search", "--add", "m/rnn", "--allow-misfit"]


def sentences(count, seed):
    generator = random.Random(seed)
    return "".join(
        " ".join(f"s{generator.choice([2, 3, 4, 5, 6, 9])}" for _ in range(generator.randint(1, 7))) + "\n"
        for _ in range(count)
    )


@pytest.fixture(scope="module")
def system(tmp_path_factory, moses_root):
    """A small system, its dev texts and models."""
    folder = tmp_path_factory.mktemp("system")
    dev = sentences(60, 1)
    for name, text in (
        ("table", "".join(TABLE)),
        ("moses.ini", INI),
        ("dev.en", dev),
        ("dev.fr", dev.translate(WANTED)),
    ):
        (folder / name).write_text(text)
    save_models(folder / "m")
    run("reranker", *MADE, "--add", "m/search", "--add", "m/rnn", "--quiet", cwd=folder)
    return folder


def by_hand(moses_root, system, folder, text):
    """Moses, nbest add and nbest rerank."""
    source, lists, more = (folder / name for name in ("source", "list", "more"))
    source.write_bytes(text)
    flags = ["-n-best-list", lists, 200, "distinct", "-include-segmentation-in-n-best", "-threads", 2]
    ran(moses_root / "bin" / "moses", "-f", "moses.ini", *flags, "-i", source, cwd=system)
    run("nbest add", lists, "--source", source, *ADDED, "-o", more, "--quiet", cwd=system)
    return zygote("nbest", "rerank", more, "made/weights.ini", cwd=system).stdout


def translate(system, text, *options):
    done = zygote("reranker", "translate", "made", *options, cwd=system, given=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_choice_is_that_of_the_steps(moses_root, system, tmp_path):
    text = sentences(2000, 2).encode()
    translated = translate(system, text)
    assert translated == by_hand(moses_root, system, tmp_path, text)
    first = ran(moses_root / "bin" / "moses", "-f", "moses.ini", cwd=system, input=text.decode()).stdout
    assert translated.decode() != "".join(line.rstrip() + "\n" for line in first.splitlines())


def test_odd_lines_shift_nothing(moses_root, system, tmp_path):
    odd = [
        b"",
        b" ",
        b"s2|s3 s4",
        b"|",
        b"s2 ||| s3",
        b"[X] s2",
        b'<x translation="a">s2</x> s3',
        b"\x01 \x85\xa0 s2\r",
        b"\xff\xfe s3",
    ]
    odd += [b"s2 " * 10_000, b"s" * 1_000_000, b"[X][X] [X]", b"<s> s2 </s>", b"\0"]
    lines = [line for one in odd for line in (one, b"s4 s5 s6")]
    right = translate(system, b"s4 s5 s6\n")
    translated = translate(system, b"".join(line + b"\n" for line in lines)).split(b"\n")
    assert len(translated) == len(lines) + 1
    assert {line + b"\n" for line in translated[1::2]} == {right}


STEPS = ["decode dev", "add dev", "tune", "decode test", "add test", "test"]


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_build_continues_to_the_same_weights(system, tmp_path, step):
    command = [word if word != "made" else tmp_path / "made" for word in MADE]
    command += ["--add", "m/search", "--add", "m/rnn", "--quiet", "--test", "dev"]
    running = start("reranker", *command, cwd=system, start_new_session=True)
    steps = tmp_path / "made" / "steps.json"
    while running.poll() is None and step not in (json.loads(steps.read_bytes()) if steps.exists() else {}):
        time.sleep(0.002)
    kill_group(running)
    run("reranker", *command, cwd=system)
    for name in ("weights.ini", "lists/dev.gz", "lists/dev.more.gz"):
        assert (tmp_path / "made" / name).read_bytes() == (system / "made" / name).read_bytes(), name


@pytest.fixture
def mosesserver(moses_root, system):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [moses_root / "bin" / "mosesserver", "-f", "moses.ini", "--server-port", str(port)]
    process = subprocess.Popen(command, cwd=system, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/RPC2"
    while process.poll() is None:
        try:
            ask(url, {"text": "s2"})
            break
        except OSError:
            time.sleep(0.1)
    yield url
    process.kill()
    process.wait()


def test_a_mosesserver_behind_gives_the_same(system, mosesserver):
    asked = [*sentences(50, 3).splitlines(), "s2 s9 s4"]
    flags = {name: value for name, value in EVERYTHING.items() if name != "report-all-factors"}  # kills a mosesserver
    by_moses = [ask(mosesserver, {"text": text, **flags}) for text in asked]
    with serving(system, "--moses-server", mosesserver, moses=None) as (_, url):
        there = [ask(f"{url}/RPC2", {"text": text, **flags}) for text in asked]
        assert ask(f"{url}/RPC2", {"text": " "}) == {"text": "", "decoder-text": ""}
    with serving(system, moses=os.environ["MOSES_ROOT"]) as (_, url):
        here = [ask(f"{url}/RPC2", {"text": text, **flags}) for text in asked]
    assert [one["text"] for one in there] == [one["text"] for one in here]
    assert [one["nbest"][:1] for one in there] == [one["nbest"][:1] for one in here]
    for ours, theirs in zip(here, by_moses, strict=True):
        assert ours["decoder-text"] == " ".join(word for word in theirs["text"].split() if "|" not in word)
        assert theirs.keys() <= ours.keys() | {"scores"}
        for one in theirs["nbest"][:1] if ours["nbest"] else ():
            assert one.keys() == ours["nbest"][0].keys()


def test_memory_stays_flat(system):
    """Ten times the lines, and not much more memory."""
    program = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    peaks = []
    for count in (500, 5000):
        (system / "big").write_text(sentences(count, 4))
        command = [
            sys.executable,
            "-m",
            "moses_rnn",
            "reranker",
            "translate",
            "made",
            "big",
            "-o",
            f"big.{count}",
            "--force",
            "--quiet",
        ]
        done = subprocess.run(
            [sys.executable, "-c", program, *command], cwd=system, capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 50_000
