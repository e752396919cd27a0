"""A text, its lists and its alignments, written together; and what is refused."""

import json
import os

import numpy as np
import pytest
import torch

from moses_rnn.errors import AlreadyComplete, FormatError, OutputError, Stopped
from moses_rnn.files.streams import show_nothing
from moses_rnn.models.ensembles import GEOMETRIC, open_models
from moses_rnn.models.open import open_model, save_model
from moses_rnn.models.rare_words import KINDS
from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.translation import translate
from moses_rnn.translation.requests import TranslationRequest
from moses_rnn.translation.run import translate_text
from tests.models.pairs import SOURCE, TARGET
from tests.models.rare import READ, save_rare_model
from tests.networks.checkpoints import encdec_checkpoint
from tests.translation.sentences import network, sentences, text
from tests.translation.writers import attentive

LINES = sentences(30)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a text of four blocks, which commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(translate, "LINES", 8)
    (tmp_path / "in").write_bytes(text(LINES))
    return tmp_path


def request(output="out", **options):
    if isinstance(options.get("n_best"), str):
        options["n_best"] = 3, options["n_best"]
    given = {"input": "in", "models": ("model",), "beam": 4, "length_score": "sum", "device": "cpu", **options}
    return TranslationRequest(**given, output=output)


def run(model, asked, advanced=show_nothing, stops=lambda: False, lexicon=None):
    return translate_text(asked, model, lexicon, advanced, stops)


ALL = {"n_best": "list.gz", "alignments": "alpha"}


def test_text_list_and_alignments_say_the_same(here):
    counts = run(attentive(), request(n_best="list", alignments="alpha"))
    translated = (here / "out").read_bytes().split(b"\n")[:-1]
    records = [json.loads(line) for line in (here / "alpha").read_bytes().splitlines()]
    hypotheses = list(parse_nbest((here / "list").read_bytes().splitlines(keepends=True), "list"))
    assert counts.lines == len(translated) == len(records) == len(LINES)
    assert counts.empty == LINES.count(b"") > 0
    for number, (line, words, record) in enumerate(zip(LINES, translated, records, strict=True)):
        of_line = [h for h in hypotheses if h.sentence == number]
        assert of_line[0].hypothesis == words
        assert (record["line"], record["source"], record["target"]) == (
            number + 1,
            line.decode().split(),
            words.decode().split(),
        )
        assert len(of_line) == (3 if line else 1)
        assert all(h.values("SEARCH0") == [float(h.total)] for h in of_line)
        if line:
            alpha = np.array(record["alpha"])
            assert alpha.shape == (len(record["target"]) + 1, len(record["source"]) + 1)
            np.testing.assert_allclose(alpha.sum(1), 1, atol=1e-3)
            pairs = " ".join(f"{j}-{i}" for i, j in enumerate(alpha[:-1, :-1].argmax(1)))
            assert of_line[0].further == (pairs.encode(),)
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("after", [1, 3, 5, 7])
def test_stopped_and_resumed_it_gives_the_same_bytes(here, after):
    whole = run(attentive(), request(output="whole", n_best="whole.list.gz", alignments="whole.alpha"))
    model, looks = attentive(), iter(range(100))
    with pytest.raises(Stopped, match="lines; the same command with --resume continues"):
        run(model, request(**ALL), stops=lambda: next(looks) == after)
    assert not (here / "out").exists()
    shares = []
    asked = request(**ALL, resume=True)
    counts = run(model, asked, advanced=lambda done, share: shares.append((done, share)))
    assert counts == whole
    for name, other in (("out", "whole"), ("list.gz", "whole.list.gz"), ("alpha", "whole.alpha")):
        assert (here / name).read_bytes() == (here / other).read_bytes()
    assert shares == sorted(shares)
    assert shares[-1][1] == 1
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def stop_half_way(model, asked, lexicon=None):
    looks = iter(range(100))
    with pytest.raises(Stopped):
        run(model, asked, stops=lambda: next(looks) == 5, lexicon=lexicon)


def members(folder, *names):
    """Folders of models that write alike, one of them with other weights in the end symbol's bias."""
    for name in names:
        model = network(torch.float32)
        with torch.no_grad():
            model.decoder.b_G[END_ID] -= 2.0 * (name == "other")
        save_model(folder / name, encdec_checkpoint(model, SOURCE, TARGET, provenance={"unit": "sentences"}))
    return [folder / name for name in names]


def test_lists_of_several_models_name_them_together(here):
    copies = members(here, "one", "two")
    for name, folders in (("alone", copies[:1]), ("both", copies)):
        run(open_models(folders), request(output=name, n_best=f"{name}.list"))
    assert (here / "both").read_bytes() == (here / "alone").read_bytes()
    both, alone = ((here / name).read_bytes() for name in ("both.list", "alone.list"))
    assert both.replace(b"ENS0= ", b"RNN0= ") == alone
    assert b"ENS0= " in both


ENSEMBLES = {
    "other members": ["other", "other"],
    "another combination": ["one", "other"],
}


@pytest.mark.parametrize("case", ENSEMBLES)
def test_other_models_or_another_combination_do_not_go_on(here, case):
    begun = open_models(members(here, "one", "other"))
    stop_half_way(begun, request())
    combination = "arithmetic" if case == "another combination" else GEOMETRIC
    with pytest.raises(
        OutputError, match="expected the inputs and options of the interrupted run, found others: model "
    ):
        run(open_models([here / name for name in ENSEMBLES[case]], combination), request(resume=True))
    assert run(begun, request(resume=True)).lines == len(LINES)
    with pytest.raises(AlreadyComplete):
        run(begun, request(resume=True))


def test_of_what_is_complete_a_run_that_makes_the_same_does_nothing(here):
    asked = request(**ALL, resume=True)
    run(attentive(), asked)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in here.iterdir()}
    with pytest.raises(AlreadyComplete, match="^out: already complete"):
        run(attentive(), asked)
    for changes in ({"beam": 1}, {"length_score": "mean", "beam": 12}, {"n_best": (2, "list.gz")}, {"unknown": "copy"}):
        with pytest.raises(OutputError, match="already exists, but this run writes other lines; use --force"):
            run(attentive(), request(**ALL | {"resume": True} | changes))
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in here.iterdir()} == before
    with pytest.raises(OutputError, match="out: already exists, but this run writes other lines"):
        run(encdec_checkpoint(network(torch.float32), SOURCE, TARGET), request(resume=True))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"s5 s5", *LINES[1:]], "this run writes other lines"),
        ([*LINES, b"s5"], "has 30 lines and the text has 31"),
        (LINES[:9], "has 30 lines and the text has 9"),
    ],
    ids=["another line", "a line more", "fewer lines"],
)
def test_what_is_complete_may_be_of_another_text(here, lines, message):
    run(attentive(), request())
    (here / "in").write_bytes(text(lines))
    with pytest.raises(OutputError, match="out: already exists, and in has changed since"):
        run(attentive(), request(resume=True))
    os.utime(here / "in", ns=(0, 0))
    with pytest.raises(OutputError, match=f"out: already exists, but .*{message}"):
        run(attentive(), request(resume=True))


def test_an_empty_file_is_not_the_translation(here):
    (here / "out").touch()
    os.utime(here / "in", ns=(0, 0))
    with pytest.raises(OutputError, match="out: already exists"):
        run(attentive(), request(resume=True))


def test_another_text_is_not_gone_on_with(here):
    stop_half_way(attentive(), request(**ALL))
    (here / "in").write_bytes(text([b"s5 s5", *LINES[1:]]))
    with pytest.raises(OutputError, match="expected the text of the interrupted run, found another: in, by"):
        run(attentive(), request(**ALL, resume=True))
    (here / "in").write_bytes(text([*LINES[:16], b"s5 s5"]))  # which may differ behind
    assert run(attentive(), request(**ALL, resume=True)).lines == 17


def test_a_line_without_end_is_refused_and_what_was_done_is_kept(here):
    (here / "in").write_bytes(text([*LINES[:20], b"s2 " * 1001, *LINES[20:]]))
    with pytest.raises(FormatError, match=r"in:21: expected at most 1,000 words .*, found 1,001") as caught:
        run(attentive(), request(**ALL))
    assert "Does the file lack line ends?" in caught.value.advice
    assert "Correct the line, then continue with --resume." in caught.value.advice
    (here / "in").write_bytes(text(LINES))
    assert run(attentive(), request(**ALL, resume=True)).lines == 30


def test_of_a_bad_first_block_nothing_stays(here):
    (here / "in").write_bytes(b"s2 " * 500_000)
    with pytest.raises(FormatError, match="in:1: expected a line of at most 1,048,576 bytes") as caught:
        run(attentive(), request(**ALL))
    assert caught.value.advice == "Does the file lack line ends?"
    assert {path.name for path in here.iterdir()} == {"in"}


def test_a_word_in_place_of_an_unknown_one_parts_no_fields_of_a_list(here):
    lexicon = Lexicon({b"s%d" % i: [(b"T|||%d" % i, 1.0)] for i in range(10)})
    run(attentive(), request(output="plain", unknown="dictionary"), lexicon=lexicon)
    parted = [b"|||" in line for line in (here / "plain").read_bytes().splitlines()].index(True)
    with pytest.raises(
        FormatError, match=rf"^in:{parted + 1}: expected words without \|\|\| for an n-best list, found '"
    ):
        run(attentive(), request(n_best=(1, "list"), unknown="dictionary"), lexicon=lexicon)
    assert not (here / "list").exists()


WORDS, OTHER_WORDS = (Lexicon({b"s2": [(word, 1.0)]}) for word in (b"t2", b"t3"))
GIVEN = {**ALL, "unknown": "dictionary", "candidates": (3, 1)}
CHANGES = {
    "beam {": ({"n_best": (2, "list.gz")}, WORDS),
    "alignments True, now False": ({"alignments": None}, WORDS),
    "candidates [3, 1], now [4, 1]": ({"candidates": (4, 1)}, WORDS),
    "lexicon ": ({}, OTHER_WORDS),
}


@pytest.mark.parametrize("difference", CHANGES)
def test_other_options_do_not_continue_a_run(here, monkeypatch, difference):
    run(attentive(), request(output="whole", **GIVEN | {"n_best": "w", "alignments": "a"}), lexicon=WORDS)
    change, lexicon = CHANGES[difference]
    stop_half_way(attentive(), request(**GIVEN), WORDS)
    with pytest.raises(
        OutputError, match="expected the inputs and options of the interrupted run, found others: "
    ) as caught:
        run(attentive(), request(**GIVEN | change, resume=True), lexicon=lexicon)
    assert difference in str(caught.value)
    with monkeypatch.context() as patched:
        patched.setattr("torch.get_num_threads", lambda: 3)
        with pytest.raises(OutputError, match=r"threads \d+, now 3"):
            run(attentive(), request(**GIVEN, resume=True), lexicon=WORDS)
    run(attentive(), request(**GIVEN, resume=True), lexicon=WORDS)  # nothing was lost
    assert (here / "out").read_bytes() == (here / "whole").read_bytes()


RARE = b"s2 zork s3\nzork bork\ns4\n\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_of_rare_words_reads_tokens_and_what_it_writes_is_restored(here, kind):
    (here / "in").write_bytes(RARE)
    model = open_model(save_rare_model(here / "model", kind))
    asked = {"beam": 30, "max_words_factor": 2}
    run(model, request(output="raw", n_best=(9, "raw.list"), unknown="no", **asked))
    counts = run(model, request(n_best=(9, "list"), **asked))
    rare, sources = model.rare, RARE.splitlines()
    raw, restored = (list(parse_nbest((here / f).read_bytes().splitlines(), f)) for f in ("raw.list", "list"))
    for before, after in zip(raw, restored, strict=True):
        source = sources[before.sentence].split()
        expected = rare.restore(before.hypothesis.split(), source, frozenset(READ), lambda word: word)
        assert after.hypothesis.split() == expected.words
        assert before.features == after.features
    assert counts.lines == 4
    tokens = {word for line in raw for word in line.hypothesis.split()} & {*rare.written_tokens}
    assert tokens or kind == "noalign"
    assert not {word for line in restored for word in line.hypothesis.split()} & {*rare.written_tokens}


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_of_rare_words_can_be_kept_from_writing_any(here, kind):
    (here / "in").write_bytes(RARE)
    model = open_model(save_rare_model(here / "model", kind))
    run(model, request(n_best=(9, "list"), unknown="never", beam=30, max_words_factor=2))
    written = {
        word
        for line in parse_nbest((here / "list").read_bytes().splitlines(), "list")
        for word in line.hypothesis.split()
    }
    assert written
    assert not written & {*model.rare.unknown_tokens}
