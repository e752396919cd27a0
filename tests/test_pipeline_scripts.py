"""The scripts that the pipeline's recipes call, each alone."""

import gzip
import os
import subprocess

import pytest

from tests.commands import ROOT

CONFIGS = ROOT / "moses_configs"


@pytest.mark.parametrize("path", [p for p in sorted(CONFIGS.iterdir()) if p.suffix != ".ini"], ids=lambda p: p.name)
def test_no_line_is_long(path):
    """But those of an ini, which Moses wants in one."""
    lines = path.read_text(encoding="utf-8").expandtabs(4).split("\n")
    assert [line for line in lines if len(line) > 120] == []


def script(name, *arguments, **environment):
    command = ["sh", CONFIGS / name, *map(str, arguments)]
    environment = {**os.environ, **{key: str(value) for key, value in environment.items()}}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def work(tmp_path):
    """The pipeline's folder before its first step."""
    for name in ("log", "corpus"):
        (tmp_path / "work" / name).mkdir(parents=True)
    return tmp_path / "work"


TEXT = {"SRC": "en", "TRG": "fr", "TOKENISED": "no", "LOWERCASE": "no", "THREADS": 1, "BIN": "bin"}


@pytest.fixture
def text(tmp_path, work):
    """Runs text.sh on a small corpus, with a tokeniser that marks its lines."""
    tokeniser = tmp_path / "bin" / "moses-rnn"
    tokeniser.parent.mkdir()
    tokeniser.write_text('#!/bin/sh\nsed "s/^/$3: /"\n')
    tokeniser.chmod(0o755)
    (tmp_path / "small.en").write_text("A b\nC d\n")
    (tmp_path / "small.fr.gz").write_bytes(gzip.compress("É f\nG h\n".encode()))

    def tokenised(**changed):
        return script(
            "text.sh", tmp_path / "small", "dev", **{**TEXT, "BIN": tokeniser.parent, "WORK": work, **changed}
        )

    return tokenised


@pytest.mark.parametrize(
    ("changed", "source", "target"),
    [
        ({}, "en: A b\nen: C d\n", "fr: É f\nfr: G h\n"),
        ({"LOWERCASE": "yes"}, "en: a b\nen: c d\n", "fr: é f\nfr: g h\n"),
        ({"TOKENISED": "yes", "LOWERCASE": "yes"}, "A b\nC d\n", "É f\nG h\n"),
    ],
)
def test_texts_are_tokenised(text, work, changed, source, target):
    done = text(**changed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [(work / "corpus" / f"dev.{language}").read_text() for language in ("en", "fr")] == [source, target]


def test_texts_of_different_length_are_refused(text, tmp_path):
    (tmp_path / "small.en").write_text("A b\n")
    done = text()
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/small: expected as many lines in both languages, found 1 en and 2 fr\n"


def test_a_tokeniser_that_fails_shows_its_log(text, tmp_path, work):
    (tmp_path / "bin" / "moses-rnn").write_text("#!/bin/sh\necho no such language >&2\nexit 1\n")
    done = text()
    assert done.returncode == 1
    assert done.stderr == f"no such language\nfailed; the whole log: {work}/log/tokenise-dev.log\n"


def test_warnings_of_a_tokeniser_are_seen(text, tmp_path):
    (tmp_path / "bin" / "moses-rnn").write_text("#!/bin/sh\necho warning: language $3 >&2\ncat\n")
    done = text()
    assert (done.returncode, done.stderr) == (0, "warning: language en\nwarning: language fr\n")


def test_a_tokeniser_that_loses_lines_is_noticed(text, tmp_path, work):
    (tmp_path / "bin" / "moses-rnn").write_text("#!/bin/sh\nhead -n 1\n")
    done = text()
    assert (done.returncode, done.stderr) == (1, f"{work}/corpus/dev.en: expected 2 lines, found 1\n")


MOSES = {
    "scripts/training/filter-model-given-input.pl": 'mkdir "$1"; cp "$2" "$1/moses.ini"; echo filtering',
    "bin/moses": 'cat "$2"; shift 2; echo "$*"; cat; echo decoding >&2',
}


@pytest.fixture
def fake_moses(tmp_path):
    """A Moses that filters nothing and translates by copying."""
    for name, commands in MOSES.items():
        program = tmp_path / "moses" / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{commands}\n")
        program.chmod(0o755)
    return tmp_path / "moses"


def test_decoding_is_of_the_filtered_model(fake_moses, tmp_path, work):
    (tmp_path / "moses.ini").write_text("the ini\n")
    (tmp_path / "dev.en").write_text("a b\n")
    words = [tmp_path / "moses.ini", tmp_path / "dev.en", "dev", "-search-algorithm", "1"]
    done = script("decode.sh", *words, MOSES_ROOT=fake_moses, WORK=work, THREADS=3)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the ini\n-threads 3 -search-algorithm 1\na b\n"
    assert not list((work / "filtered").iterdir())
    assert [(work / "log" / name).read_text() for name in ("filter-dev.log", "dev.log")] == [
        "filtering\n",
        "decoding\n",
    ]


@pytest.mark.parametrize("failing", MOSES)
def test_decoding_that_fails_shows_its_log(fake_moses, tmp_path, work, failing):
    (fake_moses / failing).write_text("#!/bin/sh\necho this is why >&2\nexit 1\n")
    for name in ("moses.ini", "dev.en"):
        (tmp_path / name).write_text("a\n")
    done = script(
        "decode.sh", tmp_path / "moses.ini", tmp_path / "dev.en", "dev", MOSES_ROOT=fake_moses, WORK=work, THREADS=1
    )
    assert done.returncode == 1
    assert done.stderr == f"this is why\nfailed; the whole logs: {work}/log/dev.log and {work}/log/filter-dev.log\n"


def test_a_model_starts_over_if_its_text_has_changed(tmp_path):
    old, new, config = (tmp_path / name for name in ("old", "new", "config.json"))
    for path, seconds in ((old, 1000), (new, 3000)):
        path.touch()
        os.utime(path, (seconds, seconds))
    assert script("restart.sh", tmp_path, new).stdout == ""  # no model yet
    config.touch()
    os.utime(config, (2000, 2000))
    assert script("restart.sh", tmp_path, old).stdout == ""
    assert script("restart.sh", tmp_path, old, new).stdout == "--restart\n"
    assert script("restart.sh", tmp_path, old, new).returncode == 0


def test_a_feature_and_its_weight_are_put_into_an_ini(tmp_path):
    (tmp_path / "lines").write_text("[feature]\nNeuralLM name=CSLM0\n\n[weight]\nCSLM0= 0.5\n")
    (tmp_path / "ini").write_text("# an ini\n[feature]\nDistortion\n\n[weight]\nDistortion0= 0.3\n")
    command = ["awk", "-f", CONFIGS / "insert-lines.awk", tmp_path / "lines", tmp_path / "ini"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == (
        "# an ini\n[feature]\nNeuralLM name=CSLM0\nDistortion\n\n[weight]\nCSLM0= 0.5\nDistortion0= 0.3\n"
    )
