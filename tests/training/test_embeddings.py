"""Embeddings in word2vec's text, and networks that begin with them: frozen or not, resumed."""

import itertools
import math
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.open import open_model
from moses_rnn.training.embeddings import begin_as, embedding_lines, read_embeddings
from moses_rnn.training.networks import choose
from moses_rnn.training.train import train
from tests.contract.rows import FIRST
from tests.training.small import Listener, never, phrase_options

TEXT = b"the 0.5 -1e-3 2\ncat .25 +1 7.\ndog 0 0 1E2\n"
ROWS = {b"the": [0.5, -0.001, 2.0], b"cat": [0.25, 1.0, 7.0], b"dog": [0.0, 0.0, 100.0]}


def read(text, width=3, wanted=(b"the", b"cat", b"dog", b"cow")):
    return dict(read_embeddings(text.splitlines(keepends=True), "w.vec", width, set(wanted)))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        b"3 3\n" + TEXT,
        TEXT.replace(b"\n", b" \n"),  # as word2vec itself ends lines
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b" ", b"\t"),
        TEXT.removesuffix(b"\n"),
    ],
)
def test_rows_are_read_with_or_without_a_header(text):
    assert read(text) == ROWS


def test_only_wanted_words_are_given_out():
    assert read(TEXT, wanted=[b"dog", b"cow"]) == {b"dog": ROWS[b"dog"]}
    assert read(TEXT, wanted=[]) == {}


def test_a_word_may_look_like_a_number_and_bytes_need_be_no_text():
    assert read(b"7 1 2\n\xff 3 4\n", 2, [b"7", b"\xff"]) == {b"7": [1.0, 2.0], b"\xff": [3.0, 4.0]}
    assert read(b"7 2\n", 1, [b"7"]) == {b"7": [2.0]}
    assert read(b"1 1\n7 2\n", 1, [b"7"]) == {b"7": [2.0]}


OFF = "expected finite numbers as float32 holds them, found"
REFUSED = [
    (b"2 4\nthe 1 2 3 4\n", 1, "expected 3 numbers for each word, the network's embedding size, found 4"),
    (b"the 1 2\n", 1, "expected a word and 3 numbers, the network's embedding size, found 2 after 'the'"),
    (TEXT + b"cow 1 2 3 4\n", 4, "expected a word and 3 numbers, the network's embedding size, found 4 after 'cow'"),
    (TEXT + b"\n", 4, "expected a word and 3 numbers, found an empty line"),
    (TEXT + b"cat 1 2 3\n", 4, "expected each word once, found 'cat' again"),
    (b"cow 1 2 3\nx 1 2 3\nx 1 2 3\n", 3, "expected each word once, found 'x' again"),
    *((b"the 1 %b 3\n" % text, 1, f"{OFF} '{text.decode()}' for 'the'") for text in
      (b"nan", b"-inf", b"1e39", b"0x1", b"1_0", b"one", b"1,5")),
    (TEXT + b"x 1 nan 3\n", 4, f"{OFF} 'nan' for 'x'"),
    (b"4 3\n" + TEXT, None, "expected 4 rows, as its first line says, found 3"),
    (b"2 3\n" + TEXT, None, "expected 2 rows, as its first line says, found 3"),
    (b"", None, "expected rows of a word and 3 numbers, found 0"),
    (b"%b 3\n" % (b"9" * 5000), 1, "expected a word and 3 numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED)
def test_what_is_refused_names_file_line_expectation_and_finding(text, line, message):
    with pytest.raises(FormatError) as refused:
        read(text)
    assert str(refused.value).startswith(f"w.vec:{line}: " if line else "w.vec: ")
    assert message in str(refused.value)


def test_a_file_is_read_a_line_at_a_time():
    endless = (b"w%d 1 2 3\n" % i for i in itertools.count())
    rows = read_embeddings(endless, "w.vec", 3, {b"w5", b"w9"})
    assert [next(rows)[0], next(rows)[0]] == [b"w5", b"w9"]


def test_what_is_written_is_read_again_to_the_bit():
    numbers = [struct.unpack("f", struct.pack("I", 12345 + 98765432 * i))[0] for i in range(12)]
    rows = [[x if math.isfinite(x) else 1.5 for x in numbers[i : i + 4]] for i in range(0, 12, 4)]
    lines = list(embedding_lines([b"a", b"b", b"7"], rows, 4))
    assert lines[0] == b"3 4\n"
    again = dict(read_embeddings(lines, "w.vec", 4, {b"a", b"b", b"7"}))
    assert [struct.pack("4f", *row) for row in again.values()] == [struct.pack("4f", *row) for row in rows]
    assert list(again) == [b"a", b"b", b"7"]


WORDS = Vocabulary([b"<unk>", b"</s>", b"a", b"b", b"c"])


@pytest.fixture
def vectors(tmp_path):
    """A row for b, c, a word that no shortlist has, and the special words."""
    path = tmp_path / "words.vec"
    path.write_bytes(b"c 0.5 -1 1\nelsewhere 9 9 9\nb 2 3 4\n<unk> 8 8 8\n</s> 7 7 7\n")
    return path


WITH_EMBEDDINGS = [case for case in FIRST if "source" in getattr(case.make(), "embeddings", ())]


@pytest.mark.parametrize("case", WITH_EMBEDDINGS, ids=str)
def test_words_of_the_shortlist_take_their_rows_and_others_keep_theirs(case, vectors):
    model = case.make(torch.float32)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    line = begin_as(str(vectors), model, "source", WORDS)
    assert line == f"source embeddings: 2 of 3 words from {vectors}; 1 random"
    embedding = model.embeddings["source"]
    assert embedding[[3, 4]].tolist() == [[2.0, 3.0, 4.0], [0.5, -1.0, 1.0]]
    (changed,) = [key for key, tensor in model.state_dict().items() if not torch.equal(tensor, before[key])]
    kept = [i for i in range(len(embedding)) if i not in (3, 4)]
    assert torch.equal(embedding[kept], before[changed][kept])
    (vectors.parent / "w").write_bytes(b"a 1 2\n")
    with pytest.raises(FormatError, match="w:1: expected a word and 3 numbers, the network's embedding size, found 2"):
        begin_as(str(vectors.parent / "w"), model, "source", WORDS)


# --- in a training ------------------------------------------------------------------------------------------------------

LEARNING = {"max_epochs": 2, "learning_rate": 0.02, "batch_size": 16, "held_out": 20}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Word s3 is translated by t3."""
    random = np.random.default_rng(0)
    words = [random.integers(8, size=random.integers(1, 4)) for _ in range(200)]
    lines = [b"%b ||| %b ||| 0.5\n" % tuple(b" ".join(b"%c%d" % (c, i) for i in ids) for c in b"st") for ids in words]
    path = tmp_path_factory.mktemp("table") / "table"
    path.write_bytes(b"".join(lines))
    return path


def vectors_of(path, letter, seed=1, width=4):
    random = np.random.default_rng(seed)
    path.write_bytes(b"".join(
        b"%c%d %b\n" % (letter, i, b" ".join(b"%.9g" % x for x in random.normal(size=width).astype(np.float32)))
        for i in range(6)
    ))  # fmt: skip
    return str(path)


def row_of(model, side, word):
    ids = model.vocabularies[side].id_of()
    return model.network.embeddings[side][ids[word]]


def rows_of(path):
    lines = Path(path).read_bytes().splitlines()
    wanted = {b"%c%d" % (c, i) for c in b"st" for i in range(8)}
    return {word: torch.tensor(row) for word, row in read_embeddings(lines, path, 4, wanted)}


@pytest.mark.parametrize("inverse", [False, True])
def test_frozen_words_stay_as_the_file_of_their_side_has_them(table, tmp_path, inverse):
    files = {
        f"{side}_embeddings": vectors_of(tmp_path / side, letter)
        for side, letter in zip(("source", "target"), b"st", strict=True)
    }
    listener = Listener()
    how = {**LEARNING, **files, "freeze_embeddings": True, "inverse": inverse}
    train(**phrase_options(table, model=tmp_path / "m", **how), observer=listener)
    model = open_model(tmp_path / "m")
    for side, letter in zip(("source", "target"), b"ts" if inverse else b"st", strict=True):
        path = files[f"{'source' if letter == ord('s') else 'target'}_embeddings"]
        assert f"{side} embeddings: 6 of 8 words from {path}, not learned; 2 random" in listener.description
        for word, row in rows_of(path).items():
            assert torch.equal(row_of(model, side, word), row)
    provenance = model.provenance
    assert provenance["embeddings"] == {
        "source": "target" if inverse else "source",
        "target": "source" if inverse else "target",
    }
    assert len(provenance["training_options"]["source_embeddings"]) == 64


def test_words_of_a_file_are_learned_unless_frozen(table, tmp_path):
    path = vectors_of(tmp_path / "w", ord("s"))
    options = phrase_options(table, model=tmp_path / "m", **LEARNING, source_embeddings=path)
    train(**options)
    row = row_of(open_model(tmp_path / "m"), "source", b"s3")
    moved = (row - rows_of(path)[b"s3"]).abs().max().item()
    assert 1e-4 < moved < 1


@pytest.mark.parametrize("architecture", ["encdec", "ranker"])
def test_a_stopped_training_goes_on_with_the_same_file_alone(table, tmp_path, architecture):
    def after(steps):
        left = iter(range(steps))
        return lambda: next(left, None) is None

    path = vectors_of(tmp_path / "w", ord("s"))
    network = {"maxout_size": None, "output_rank": None, "max_length": 0} if architecture == "ranker" else {}
    options = {
        **LEARNING,
        **network,
        "architecture": architecture,
        "source_embeddings": path,
        "freeze_embeddings": True,
    }
    for folder, stops in (("at-once", [never]), ("in-parts", [after(9), never])):
        for stop in stops:
            train(**phrase_options(table, model=tmp_path / folder, **options), should_stop=stop)
    whole, parts = (open_model(tmp_path / name).network.state_dict() for name in ("at-once", "in-parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    other = {**options, "source_embeddings": vectors_of(tmp_path / "other", ord("s"), seed=2)}
    with pytest.raises(CheckpointError, match="source_embeddings '[0-9a-f]{64}', now '[0-9a-f]{64}'"):
        train(**phrase_options(table, model=tmp_path / "at-once", **other))


def test_a_file_that_is_not_there_is_refused_before_the_table_is_read(table, tmp_path):
    listener = Listener()
    options = phrase_options(table, model=tmp_path / "m", source_embeddings=str(tmp_path / "none.vec"))
    with pytest.raises(InputError, match="none.vec"):
        train(**options, observer=listener)
    assert not (tmp_path / "m").exists()
    assert not hasattr(listener, "description")


CSTM = {"architecture": "cstm", "hidden_size": None, "maxout_size": None, "output_rank": None, "max_length": 0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"freeze_embeddings": True}, "freeze_embeddings: is for --source-embeddings and --target-embeddings"),
        (
            {"freeze_embeddings": True, "source_embeddings": "w", "weight_decay": 0.1},
            "freeze_embeddings: expected no weight_decay",
        ),
        ({**CSTM, "target_embeddings": "w"}, "target_embeddings: --architecture cstm has no embeddings for the side"),
        ({**CSTM, "source_embeddings": "w", "inverse": True}, "source_embeddings: --architecture cstm has no"),
    ],
)
def test_what_would_do_nothing_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        choose(phrase_options("t", **given))
    choose(phrase_options("t", **CSTM, target_embeddings="w", inverse=True))
