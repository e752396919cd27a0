"""Embeddings in word2vec's text, and networks that begin with them: frozen or not, resumed."""

import math
import struct

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError, FormatError
from moses_rnn.models.open import open_model
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.training.embeddings import RowsLeftOut, begin_as, embedding_lines, read_embeddings
from moses_rnn.training.train import train
from tests.contract.rows import FIRST
from tests.contract.training import after, write_material
from tests.training.small import Listener, never, phrase_options

TEXT = b"the 0.5 -1e-3 2\ncat .25 +1 7.\ndog 0 0 1E2\n"
ROWS = {b"the": [0.5, -0.001, 2.0], b"cat": [0.25, 1.0, 7.0], b"dog": [0.0, 0.0, 100.0]}


def read(text, width=3, wanted=(b"the", b"cat", b"dog", b"cow")):
    return dict(read_embeddings(text.splitlines(keepends=True), "w.vec", width, set(wanted), RowsLeftOut()))


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


def test_a_word_may_look_like_a_number_and_bytes_need_be_no_text():
    assert read(b"7 1 2\n\xff 3 4\n", 2, [b"7", b"\xff"]) == {b"7": [1.0, 2.0], b"\xff": [3.0, 4.0]}
    assert read(b"7 2\n", 1, [b"7"]) == {b"7": [2.0]}
    assert read(b"1 1\n7 2\n", 1, [b"7"]) == {b"7": [2.0]}


def test_what_is_written_is_read_again_to_the_bit():
    numbers = [struct.unpack("f", struct.pack("I", 12345 + 98765432 * i))[0] for i in range(12)]
    rows = [[x if math.isfinite(x) else 1.5 for x in numbers[i : i + 4]] for i in range(0, 12, 4)]
    lines = list(embedding_lines([b"a", b"b", b"7"], rows, 4))
    assert lines[0] == b"3 4\n"
    again = dict(read_embeddings(lines, "w.vec", 4, {b"a", b"b", b"7"}, RowsLeftOut()))
    assert [struct.pack("4f", *row) for row in again.values()] == [struct.pack("4f", *row) for row in rows]
    assert list(again) == [b"a", b"b", b"7"]


WORDS = Vocabulary([b"<unk>", b"</s>", b"a", b"b", b"c"])


WITH_EMBEDDINGS = [case for case in FIRST if "source" in getattr(case.make(), "embeddings", ())]


@pytest.mark.parametrize("case", WITH_EMBEDDINGS, ids=str)
def test_words_of_the_shortlist_take_their_rows_and_others_keep_theirs(case, tmp_path):
    model, vectors = case.make(torch.float32), tmp_path / "words.vec"
    width = model.embeddings["source"].shape[1]
    rows = {"c": 0.5, "elsewhere": 9, "b": 2, "<unk>": 8, "</s>": 7}
    vectors.write_text("".join(f"{word}{f' {number}' * width}\n" for word, number in rows.items()))
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    line = begin_as(str(vectors), model, "source", WORDS)
    assert line == f"source embeddings: 2 of 3 words from {vectors}; 1 random"
    embedding = model.embeddings["source"]
    assert embedding[[3, 4]].tolist() == [[2.0] * width, [0.5] * width]
    (changed,) = [key for key, tensor in model.state_dict().items() if not torch.equal(tensor, before[key])]
    kept = [i for i in range(len(embedding)) if i not in (3, 4)]
    assert torch.equal(embedding[kept], before[changed][kept])


PUBLISHED = b"""6 3
 0.1 0.2 0.3
c 0.5 -1 1
to name@example.org 9 9 9
\xef\xbb\xbf. . 7 7 7
b 2 3 4
c 5 5 5
"""


def test_rows_that_no_word_has_and_repeated_rows_are_left_out(tmp_path):
    path = tmp_path / "words.vec"
    path.write_bytes(PUBLISHED)
    model = WITH_EMBEDDINGS[0].make(torch.float32)
    line = begin_as(str(path), model, "source", WORDS)
    assert line == (
        f"source embeddings: 2 of 3 words from {path}; 1 random; left out: 3 rows of words with blanks, 1 row of words "
        "that have a row before"
    )
    assert model.embeddings["source"][[3, 4]].tolist() == [[2.0, 3.0, 4.0], [0.5, -1.0, 1.0]]


DAMAGED = {
    b"a 1 2 3\nb 1 2\n": "w.vec:2: expected a word and 3 numbers, the network's embedding size, found 2 after 'b'",
    b"a 1 2 3\nb 1 2 3 4\n": "w.vec:2: expected a word and 3 numbers, the network's embedding size, found 4 after 'b'",
    b"a 1 2 3\n 1 2\n": "w.vec:2: expected a word and 3 numbers, the network's embedding size, found 1 after '1'",
    b". . 1 nan 3\n": "w.vec:1: expected finite numbers in the range of float32, found 'nan' for '. .'",
    b". . 1 x 3\n": "w.vec:1: expected finite numbers in the range of float32, found 'x' for '. .'",
    b" 1 1e99 3\n": "w.vec:1: expected finite numbers in the range of float32, found '1e99' for ''",
    b"2 3\na 1 2 3\n": "w.vec: expected 2 rows, as its first line says, found 1",
    b"2 3\na 1 2 3\n. . 1 2 3\na 1 2 3\n": "w.vec: expected 2 rows, as its first line says, found 3",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_rows_are_refused(text):
    with pytest.raises(FormatError) as error:
        read(text)
    assert str(error.value).startswith(DAMAGED[text])


# --- in a training ------------------------------------------------------------------------------------------------------

HOW = {"max_epochs": 2, "learning_rate": 0.02, "batch_size": 16, "held_out": 9}


@pytest.fixture
def files(tmp_path):
    """A table, and embeddings of four of the six words of each side, in files s and t."""
    write_material(tmp_path)
    random = np.random.default_rng(1)
    rows = {letter: random.normal(size=(4, 4)).astype(np.float32) for letter in "st"}
    for letter, values in rows.items():
        names = [f"{letter}{i}".encode() for i in range(4)]
        (tmp_path / letter).write_bytes(b"".join(embedding_lines(names, values, 4)))
    return rows


def rows_of(folder, side, letter):
    model = open_model(folder)
    ids = model.vocabularies[side].ids([f"{letter}{i}".encode() for i in range(4)])
    return model.network.embeddings[side][ids].detach().numpy()


@pytest.mark.parametrize("inverse", [False, True])
def test_frozen_words_stay_as_the_file_of_their_side_has_them_also_after_a_stop(files, tmp_path, inverse):
    how = {**HOW, "source_embeddings": str(tmp_path / "s"), "target_embeddings": str(tmp_path / "t")}
    options = phrase_options(tmp_path / "table", **how, freeze_embeddings=True, inverse=inverse)
    listener = Listener()
    train(**options, model=tmp_path / "whole", observer=listener)
    for stop in (after(5), never):
        train(**options, model=tmp_path / "parts", should_stop=stop)
    own = {"source": "t", "target": "s"} if inverse else {"source": "s", "target": "t"}
    for side, letter in own.items():
        assert f"{side} embeddings: 4 of 6 words from {tmp_path / letter}, frozen; 2 random" in listener.description
        for folder in ("whole", "parts"):
            assert np.array_equal(rows_of(tmp_path / folder, side, letter), files[letter])
    whole, parts = (open_model(tmp_path / name) for name in ("whole", "parts"))
    assert all(
        torch.equal(tensor, parts.network.state_dict()[name]) for name, tensor in whole.network.state_dict().items()
    )
    assert whole.provenance["embeddings"] == own
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes().replace(b"s0", b"s5"))
    side = "target" if inverse else "source"
    with pytest.raises(CheckpointError, match=f"{side}_embeddings '[0-9a-f]{{64}}', now '[0-9a-f]{{64}}'"):
        train(**options, model=tmp_path / "whole")


def test_words_of_a_file_are_learned_unless_frozen(files, tmp_path):
    options = phrase_options(tmp_path / "table", **HOW, source_embeddings=str(tmp_path / "s"))
    train(**options, model=tmp_path / "m")
    assert 1e-4 < np.abs(rows_of(tmp_path / "m", "source", "s") - files["s"]).max() < 1
