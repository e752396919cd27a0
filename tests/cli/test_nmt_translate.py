"""moses-rnn nmt translate: in this process where that is enough; killed and resumed as a process of its own."""

import re

import pytest
import torch
from click.testing import CliRunner

from moses_rnn.cli.nmt_translate import translate
from moses_rnn.models.open import open_model, save_model
from moses_rnn.networks.compute import HERE
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.translation.search import BeamConfig
from moses_rnn.translation.translate import Translator
from tests.commands import run
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import encdec_checkpoint
from tests.translation.sentences import network, saved_model, sentences, text

LINES = sentences(40)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved_model(tmp_path / "model")
    (tmp_path / "in").write_bytes(text(LINES))
    return tmp_path


def translated(*arguments, code=0):
    done = CliRunner().invoke(translate, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def expected(folder, unknown=None, **config):
    beam = BeamConfig(**{"width": 12, "words_per_source_word": 3, "length_score": "mean", **config})
    ours = Translator(open_model(folder / "model"), HERE, beam, unknown=unknown)
    return text(found.best.words for found in ours(LINES, "in"))


OPTIONS = {
    "default": ([], {}),
    "greedy": (["--beam", "1"], {"width": 1}),
    "sum": (["--length-score", "sum"], {"length_score": "sum"}),
    "no <unk>": (["--unknown", "never"], {"unknown": "never"}),
    "short": (["--max-words-factor", "1"], {"words_per_source_word": 1}),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_are_the_searchs(here, case):
    options, config = OPTIONS[case]
    assert translated("in", "--model", "model", *options, "--threads", 1).stdout_bytes == expected(here, **config)


def test_lines_come_from_files_and_pipes_alike_and_empty_ones_stay(here):
    done = translated("in", "--model", "model", "-o", "out")
    out = (here / "out").read_bytes()
    piped = run("nmt", "translate", "--model", "model", given=text(LINES).decode(), cwd=here)
    assert piped.stdout.encode() == out
    assert run("nmt", "translate", "-", "--model", "model", given=text(LINES).decode(), cwd=here).stdout.encode() == out
    lines = out.split(b"\n")[:-1]
    assert len(lines) == len(LINES)
    assert [line for line, source in zip(lines, LINES, strict=True) if not source] == [b""] * LINES.count(b"")
    words = b" ".join(LINES).split()
    said = f"40 lines, {LINES.count(b'')} of them empty; {words.count(b's9')} of {len(words)} words read as <unk>\n"
    assert said in done.stderr
    assert said in piped.stderr
    assert "<unk>" not in translated("in", "--model", "model", "-q").stderr


def test_what_met_the_limit_is_counted(here):
    done = translated("in", "--model", "model", "--beam", 1, "--length-score", "mean", "--max-words-factor", 1, "-q")
    assert re.search(r"warning: translations cut at the length limit: [1-9]\d*\n", done.stderr)


def test_a_network_that_writes_nothing_is_noticed(here):
    model = network(torch.float32)
    with torch.no_grad():
        model.decoder.b_G[END_ID] = 500.0
    save_model(here / "silent", encdec_checkpoint(model, SOURCE, TARGET, provenance={"unit": "sentences"}))
    assert translated("in", "--model", "silent").stdout_bytes == b"\n" * len(LINES)
    for model in ("silent", "model"):
        done = translated("in", "--model", model)
        written = done.stdout_bytes.split(b"\n")[:-1]
        empty = sum(source != b"" == line for source, line in zip(LINES, written, strict=True))
        assert f"warning: empty translations of lines with words: {empty}\n" in done.stderr


@pytest.mark.parametrize(
    ("dictionary", "is_noticed"), [(b"s5 t7 1\n", False), (b"t7 s5 1\n", True), (b"a b 1\n", False)]
)
def test_columns_in_the_other_order_are_noticed(here, dictionary, is_noticed):
    (here / "words").write_bytes(dictionary)
    done = translated("in", "--model", "model", "--candidates", 2, 1, "--dictionary", "words", "-q")
    assert ("warning: words: " in done.stderr) == is_noticed


def test_null_in_a_dictionary_takes_no_words_place(here):
    given = "in", "--model", "model", "--candidates", 2, 1, "--dictionary", "words"
    lines = b"".join(b"s%d t7 0.2\n" % i for i in range(9))
    (here / "words").write_bytes(lines)
    without = translated(*given)
    (here / "words").write_bytes(lines + lines.replace(b"t7 0.2", b"NULL 0.8") + b"NULL t7 1\n")
    done = translated(*given)
    assert done.stdout_bytes == without.stdout_bytes
    assert "words: 10 lines left out, with NULL for no word\n" in done.stderr
    assert "NULL" not in without.stderr
