"""The scripts that the pipeline's recipes call, each alone."""

import gzip
import os
import subprocess
import sys

import pytest

from tests.pipeline import CONFIGS


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


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


MARKED = 'sed "s/^/$3: /"'  # a tokeniser that marks its lines
TEXTS = {  # variables, what the tokeniser does, the texts or the message
    "tokenised": ({}, MARKED, ("en: A b\nen: C d\n", "fr: É f\nfr: G h\n")),
    "lower case": ({"LOWERCASE": "yes"}, MARKED, ("en: a b\nen: c d\n", "fr: é f\nfr: g h\n")),
    "given so": ({"TOKENISED": "yes", "LOWERCASE": "yes"}, "exit 1", ("A b\nC d\n", "É f\nG h\n")),
    "a failure": ({}, "echo no such language >&2; exit 1", "no such language\nfailed; full log: {work}/log/tokenise-dev.log\n"),
    "lost lines": ({}, "head -n 1", "{work}/corpus/dev.en: expected 2 lines, found 1\n"),
    "carriage returns": ({"TOKENISED": "yes"}, "exit 1", ("A b\nC d\n", "É f\nG h\n")),
    "no last line end": ({}, "cat", ("A b\nC d\n", "É f\nG h\n")),
    "a truncated file": ({}, MARKED, "\ngzip: {here}/small.fr.gz: unexpected end of file\n"),
    "other lengths": ({}, MARKED, "{here}/small: expected as many lines in both languages, found 1 en and 2 fr\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_texts_are_tokenised_or_it_is_said_why_not(tmp_path, work, case):
    changed, tokeniser, expected = TEXTS[case]
    executable(tmp_path / "bin" / "moses-rnn", tokeniser)
    (tmp_path / "small.en").write_text("A b\n" + "C d\n" * (case != "other lengths"))
    if case == "no last line end":
        (tmp_path / "small.en").write_text("A b\nC d")
    end = "\n"
    if case == "carriage returns":
        end = "\r\n"
        (tmp_path / "small.en").write_text("A b\nC d\n", newline=end)
    compressed = gzip.compress(f"É f{end}G h{end}".encode())
    (tmp_path / "small.fr.gz").write_bytes(compressed[:-8] if case == "a truncated file" else compressed)
    given = {"SRC": "en", "TRG": "fr", "TOKENISED": "no", "LOWERCASE": "no", "THREADS": 1, **changed}
    done = script("text.sh", tmp_path / "small", "dev", BIN=tmp_path / "bin", WORK=work, **given)
    if isinstance(expected, str):
        assert (done.returncode, done.stderr) == (1, expected.format(work=work, here=tmp_path))
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert tuple((work / "corpus" / f"dev.{language}").read_text() for language in ("en", "fr")) == expected


MOSES = {  # one that filters nothing and translates by copying
    "scripts/training/filter-model-given-input.pl": 'mkdir "$1"; cp "$2" "$1/moses.ini"; echo filtering',
    "bin/moses": 'cat "$2"; shift 2; echo "$*"; cat; echo decoding >&2',
}


@pytest.mark.parametrize("failing", ["", *MOSES])
def test_decoding_is_of_the_filtered_model_and_its_failures_show_their_log(tmp_path, work, failing):
    for name, commands in MOSES.items():
        executable(tmp_path / name, "echo this is why >&2; exit 1" if name == failing else commands)
    ini, text = tmp_path / "moses.ini", tmp_path / "dev.en"
    ini.write_text("the ini\n")
    text.write_text("a b\n")
    variables = {"MOSES_ROOT": tmp_path, "WORK": work, "THREADS": 3, "FILTER_FLAGS": ""}
    done = script("decode.sh", ini, text, "dev", "-search-algorithm", "1", **variables)
    if failing:
        message = f"this is why\nfailed; full logs: {work}/log/dev.log and {work}/log/filter-dev.log\n"
        assert (done.returncode, done.stderr) == (1, message)
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the ini\n-threads 3 -search-algorithm 1\na b\n"
    assert not list((work / "filtered").iterdir())
    logs = [(work / "log" / name).read_text() for name in ("filter-dev.log", "dev.log")]
    assert logs == ["filtering\n", "decoding\n"]


def test_a_model_starts_over_if_its_text_has_changed(tmp_path):
    old, new, config = (tmp_path / name for name in ("old", "new", "config.json"))
    for path, seconds in ((old, 1000), (new, 3000)):
        path.touch()
        os.utime(path, (seconds, seconds))
    assert script("restart.sh", tmp_path, new).stdout == ""  # nothing yet
    state = tmp_path / "training" / "state.safetensors"
    state.parent.mkdir()
    state.touch()
    os.utime(state, (2000, 2000))
    assert [script("restart.sh", tmp_path, text).stdout for text in (old, new)] == ["", "--force\n"]
    config.touch()
    os.utime(config, (2000, 2000))
    assert script("restart.sh", tmp_path, old).stdout == ""
    done = script("restart.sh", tmp_path, old, new)
    assert (done.returncode, done.stdout) == (0, "--force\n")


def test_a_feature_and_its_weight_are_put_into_an_ini(tmp_path):
    (tmp_path / "lines").write_text("[feature]\nNeuralLM name=CSLM0\n\n[weight]\nCSLM0= 0.5\n")
    command = ["awk", "-f", CONFIGS / "insert-lines.awk", tmp_path / "lines", tmp_path / "ini"]
    for feature, weight in (("[feature]", "[weight]"), ("[feature] # all", " [weight]\r")):
        (tmp_path / "ini").write_text(f"# an ini\n{feature}\nA\n\n{weight}\nA0= 0.3\n[weight]\n", newline="")
        assert subprocess.run(command, capture_output=True, check=True).stdout.decode() == (
            f"# an ini\n{feature}\nNeuralLM name=CSLM0\nA\n\n{weight}\nCSLM0= 0.5\nA0= 0.3\n[weight]\n"
        )
    (tmp_path / "none").touch()
    nothing = [*command[:3], tmp_path / "none", tmp_path / "ini"]
    done = subprocess.run(nothing, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}/none: expected lines below headings, found none\n")
    (tmp_path / "ini").write_text("[feature]\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}/ini: expected a section [weight], found none\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("align.py", "usage: {script} SOURCE_TEXT TARGET_TEXT\n"),
        ("align.py no.en no.fr", "no.en: No such file or directory\n"),
        ("moore_lewis.py 0.5 --lmplz x --domain no --corpus no --output o", "no: No such file or directory\n"),
        (
            "moore_lewis.py 1 --lmplz x --domain a b --corpus a --output a",
            "expected as many files after --domain, --cor",
        ),
    ],
)
def test_what_a_script_cannot_read_is_named(tmp_path, words, message):
    pytest.importorskip("thot" if words.startswith("align") else "kenlm")
    script, *given = words.split()
    command = [sys.executable, CONFIGS / script, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message.format(script=CONFIGS / script) in done.stderr
    assert "Traceback" not in done.stderr
