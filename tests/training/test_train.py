"""From material to a model folder: what is planned, what is read, what is refused, what is left."""

import dataclasses
import gzip
import json
import math
import shutil

import pytest
import torch

import moses_rnn
from moses_rnn.cli.analyse_options import open_phrase_network
from moses_rnn.errors import CheckpointError, InputError, MosesRnnError, Stopped
from moses_rnn.models.open import open_model
from moses_rnn.models.rare_words import RareWords
from moses_rnn.training import train as trainings
from moses_rnn.training.materials import Watch, read_watched
from moses_rnn.training.presets import NETWORKS
from moses_rnn.training.tasks import PhrasePairs
from moses_rnn.training.train import estimate
from tests.training.small import (
    FAST,
    network,
    never,
    phrase_options,
    sentence_options,
    sentences,
    text_options,
    write_texts,
)


@pytest.fixture
def table(tmp_path):
    lines = [b"s%d s%d ||| t%d ||| 0.5 ||| 0-0\n" % (i % 13, i % 5, i % 7) for i in range(60)]
    (tmp_path / "table").write_bytes(b"".join(lines))
    return tmp_path / "table"


@pytest.mark.parametrize(
    ("limits", "passes"),
    [({}, math.inf), ({"max_epochs": 3}, 3), ({"max_minutes": 1e9, "max_epochs": 3}, 3), ({"max_minutes": 1e-6}, None)],
)
def test_an_estimate_ends_at_the_smaller_limit(corpus, limits, passes):
    found = estimate(PhrasePairs(network(corpus), corpus, dataclasses.replace(FAST, **limits)), seconds=0.0)
    assert (found.pairs, 0 < found.pairs_per_second < math.inf) == (len(corpus.training), True)
    assert found.passes == pytest.approx(60e-6 * found.pairs_per_second / found.pairs if passes is None else passes)


def test_python_spells_options_as_the_commands_do(table, tmp_path):
    with pytest.raises(moses_rnn.ArgumentError, match="format: given twice"):
        moses_rnn.train(table, model=tmp_path / "m", format="tsv", layout="moses")
    with pytest.raises(moses_rnn.ArgumentError, match="layout: expected one of moses, tsv, found 'csv'"):
        moses_rnn.train(table, model=tmp_path / "m", format="csv")


def test_files_are_read_until_somebody_stops(table):
    shares, paths = [], [str(table), str(table)]
    watch = Watch(lambda lines, share: shares.append((lines, share)), never)
    assert b"".join(read_watched(paths, watch)) == 2 * table.read_bytes()
    assert shares[-1][0] == 120
    with pytest.raises(Stopped, match="table; run the same command again to start"):
        list(read_watched(paths, Watch(watch.reading, lambda: True)))


def test_python_trains_on_each_material_as_the_commands_do(table, tmp_path):
    write_texts(tmp_path, "t", 30)
    for material, options in (
        (table, phrase_options(table)),
        (tmp_path / "t", sentence_options(tmp_path / "t")),
        ([tmp_path / "t.trg"], text_options(tmp_path / "t.trg", None, architecture="rnnlm")),
    ):
        named = "phrase_table", "prefix", "texts", "model"
        here = {name: value for name, value in options.items() if name not in named}
        for _ in range(2):  # the second time, there is nothing to continue
            trained = moses_rnn.train(material, model=tmp_path / "by-place", **here)
            assert trained.progress.finished == "1 epoch is done"
            left = {path.name for path in (tmp_path / "by-place" / "training").iterdir()}
            assert left == {"lock", "log.jsonl", "state.safetensors"}
        moses_rnn.train(**options | {"model": tmp_path / "by-name"})
        one, other = (
            open_model(tmp_path / name, of_pairs=False).network.state_dict() for name in ("by-place", "by-name")
        )
        assert equal(one, other)
        for name in ("by-place", "by-name"):
            shutil.rmtree(tmp_path / name)


WRONG = {
    "architecture": "cnn",
    "cell": "lstn",
    "dropout": 1.0,
    "learning_rate": math.nan,
    "seed": True,
}


def test_a_size_that_a_network_cannot_have_is_refused_before_anything_is_read(tmp_path):
    for name, value in (("output_rank", 0), ("hidden_size", 1 << 30)):
        with pytest.raises(MosesRnnError, match=f"^{name}: expected a whole number from 1 to"):
            moses_rnn.train("no-table", model=tmp_path / "m", **{name: value})


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_from_python_is_refused_by_name_before_anything_is_read(tmp_path, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        moses_rnn.train("no-table", model=tmp_path / "m", **{name: WRONG[name]})
    assert not (tmp_path / "m").exists()


SENTENCES = {"architecture": "rnnsearch", "source": "src", "target": "trg"}
MATERIALS = {
    "none": ((), {}, "phrase_table: expected one, as the first argument, found 0"),
    "an empty list": (([],), {}, "phrase_table: .* found 0"),
    "two tables": ((["a", "b"],), {}, "phrase_table: .* found 2"),
    "two prefixes": ((["a", "b"],), SENTENCES, "prefix: .* found 2"),
    "a table twice": (("a",), {"phrase_table": "b"}, "phrase_table: given twice"),
    "texts twice": (("a",), {"architecture": "cslm", "texts": ("b",)}, "texts: given twice"),
    "texts of another network": ((), {"texts": ("a",)}, "texts: --architecture encdec has no such option"),
    "another network's": ((), {"architecture": "cnn", "texts": ("a",)}, "architecture: expected one of"),
    "a prefix without suffixes": (("a",), {"architecture": "rnnsearch"}, "source: expected a file suffix"),
}


@pytest.mark.parametrize("name", MATERIALS)
def test_material_that_is_not_given_once_is_refused(tmp_path, name):
    material, options, message = MATERIALS[name]
    with pytest.raises(moses_rnn.ArgumentError, match=f"^{message}"):
        moses_rnn.train(*material, model=tmp_path / "m", **options)


def test_files_may_be_paths(tmp_path):
    write_texts(tmp_path, "t", 30)
    options = text_options(tmp_path / "t.trg", None, architecture="rnnlm")
    options |= {"texts": tmp_path / "t.trg", "dev": tmp_path / "t.trg", "model": tmp_path / "m"}
    assert moses_rnn.train(**options).progress.finished == "1 epoch is done"


# --- language models ----------------------------------------------------------------------------------------------------


CSLM_SIZES = {"order": 3, "embedding_size": 4, "first_size": 6, "second_size": 5}


def train_on(folder, lines, **changes):
    folder.joinpath("a.fr").write_bytes(b"".join(line + b"\n" for line in lines))
    options = text_options(folder / "a.fr", folder / "model", architecture="cslm", **CSLM_SIZES, **changes)
    trainings.train(**options)


def test_what_no_decoder_writes_is_no_word(tmp_path):
    train_on(tmp_path, [*sentences(100), b"<s> <null> rare"])
    words = open_model(tmp_path / "model", of_pairs=False).target_vocabulary.words
    assert len(words) == 6 + 2
    assert not {b"<s>", b"<null>"} & set(words)


def test_several_texts_compressed_or_not_are_one(tmp_path):
    lines = [line + b"\n" for line in sentences(60)]
    (tmp_path / "whole").write_bytes(b"".join(lines))
    (tmp_path / "a").write_bytes(b"".join(lines[:20]))
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"".join(lines[20:])))
    for model, texts in (("one", ["whole"]), ("other", ["a", "b"])):  # `b` is found as b.gz
        options = text_options(None, tmp_path / model, architecture="cslm", **CSLM_SIZES)
        trainings.train(**options | {"texts": tuple(str(tmp_path / text) for text in texts)})
    one, other = (open_model(tmp_path / name, of_pairs=False) for name in ("one", "other"))
    assert equal(one.network.state_dict(), other.network.state_dict())
    assert other.provenance["texts"] == ["a", "b"]


EMPTY = [
    ([b"<s>"], {}, "expected a text to train on, found no word"),
    ([b"w1"], {}, "expected at least two lines with words, one of them to hold out, found one"),
    ([*sentences(60)], {"min_count": 1000}, r"a\.fr: expected words seen at least 1,000 times, found none"),
]


@pytest.mark.parametrize(("lines", "changes", "message"), EMPTY)
def test_texts_without_words_to_learn_are_refused_and_leave_nothing(tmp_path, lines, changes, message):
    with pytest.raises(InputError, match=message):
        train_on(tmp_path, lines, **changes)
    assert not (tmp_path / "model").exists()


# --- sentences ----------------------------------------------------------------------------------------------------------


def train(prefix, folder, stop=never, **changes):
    return trainings.train(**sentence_options(prefix, model=folder, **changes), should_stop=stop)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder, "dev", 30, seed=1)
    return write_texts(folder, "train", 300)


@pytest.mark.parametrize("inverse", [False, True])
def test_shortlists_are_of_the_texts_and_a_presets_of_what_is_read_and_written(prefix, tmp_path, monkeypatch, inverse):
    few = dataclasses.replace(NETWORKS["seq2seq"].presets["small"], words_read=5, shortlist=7)
    monkeypatch.setitem(NETWORKS["seq2seq"].presets, "small", few)
    for name, given, sizes in (
        ("preset", {}, (5, 7)),
        ("given", {"source_words": 3, "target_words": 4}, (4, 3) if inverse else (3, 4)),
    ):
        train(prefix, tmp_path / name, architecture="seq2seq", inverse=inverse, **given)
        checkpoint = open_model(tmp_path / name)
        assert (len(checkpoint.source_vocabulary) - 2, len(checkpoint.target_vocabulary) - 2) == sizes
        assert checkpoint.source_vocabulary.words[-1][:1] == (b"t" if inverse else b"s")


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_of_rare_words_goes_on_and_remembers_how(tmp_path):
    for name, lines, seed in (("train", 100, 0), ("dev", 30, 1)):
        text = write_texts(tmp_path, name, lines, seed=seed, letters=200)
        sources = text.with_suffix(".src").read_text().splitlines()
        links = (" ".join(f"{i}-{i}" for i in range(len(source.split()))) for source in sources)
        text.with_suffix(".links").write_text("".join(line + "\n" for line in links))
    how = {"rare": "posunk", "rare_window": 3, "dev": str(tmp_path / "dev"), "min_count": 3, "max_epochs": 2}
    how |= {"alignment": str(tmp_path / "train.links"), "dev_alignment": str(tmp_path / "dev.links")}
    prefix = tmp_path / "train"
    train(prefix, tmp_path / "whole", **how)
    answers = iter([False] * 4 + [True] * 99)
    train(prefix, tmp_path / "m", stop=lambda: next(answers), **how)
    plain = {"rare": None, "rare_window": None, "alignment": None, "dev_alignment": None}
    for other in ({"rare_window": 4}, {"rare": "posall"}, plain):
        with pytest.raises(CheckpointError, match="expected the input and options that this training started with"):
            train(prefix, tmp_path / "m", **how | other)
    train(prefix, tmp_path / "m", **how)
    whole, model = open_model(tmp_path / "whole"), open_model(tmp_path / "m")
    assert equal(whole.network.state_dict(), model.network.state_dict())
    assert model.rare == RareWords("posunk", 3)
    assert {*RareWords("posunk", 3).written_tokens} <= {*model.target_vocabulary.words}
    assert model.provenance["alignment"] == "train.links"
    assert model.provenance["corpus"]["held_out_pairs"] == 30


@pytest.mark.parametrize("architecture", ["rnnsearch", "seq2seq", "rnnenc"])
@pytest.mark.parametrize("inverse", [False, True])
def test_a_network_from_right_to_left_is_one_of_reversed_texts(prefix, tmp_path, architecture, inverse):
    how = {"architecture": architecture, "inverse": inverse}
    written, read = (".src", ".trg") if inverse else (".trg", ".src")
    for name in ("train", "dev"):
        lines = prefix.with_name(name + written).read_text().splitlines()
        turned = "".join(" ".join(reversed(line.split())) + "\n" for line in lines)
        (tmp_path / name).with_suffix(written).write_text(turned)
        (tmp_path / name).with_suffix(read).write_bytes(prefix.with_name(name + read).read_bytes())
    train(prefix, tmp_path / "m", dev=str(prefix.with_name("dev")), right_to_left=True, **how)
    train(tmp_path / "train", tmp_path / "turned", dev=str(tmp_path / "dev"), **how)
    one, other = (moses_rnn.load(tmp_path / name, device="cpu") for name in ("m", "turned"))
    pairs = [("t1 t2 t3", "s3 s5"), ("t4", "s1 s2 s1")] if inverse else [("s1 s2 s3", "t3 t5"), ("s4", "t1 t2 t1")]
    turned = [(source, " ".join(reversed(target.split()))) for source, target in pairs]
    if inverse:
        pairs, turned = [[(read, written) for written, read in some] for some in (pairs, turned)]
    assert one.score(pairs).tolist() == other.score(turned).tolist()
    assert one.score(pairs).tolist() != other.score(pairs).tolist()
    assert "the last word comes first" in one.meaning


def test_a_network_from_right_to_left_only_scores(prefix, tmp_path):
    with pytest.raises(MosesRnnError, match="right_to_left: does not go with --rare"):
        train(prefix, tmp_path / "m", rare="noalign", right_to_left=True)
    for name, right_to_left in (("m", True), ("n", False)):
        train(prefix, tmp_path / name, right_to_left=right_to_left)
    with pytest.raises(CheckpointError, match="expected the input and options that this training started with"):
        train(prefix, tmp_path / "m", max_epochs=2)
    with pytest.raises(CheckpointError, match="m: expected a network that writes from left to right"):
        list(moses_rnn.load(tmp_path / "m", device="cpu").translate(["s1 s2"]))
    both = [tmp_path / "n", tmp_path / "m"]
    with pytest.raises(CheckpointError, match="m: expected a network that writes in the order of .*n, found the other"):
        moses_rnn.load(both)
    pairs = [("s1 s2 s3", "t3 t5 t1")]
    alone = sum(moses_rnn.load(folder, device="cpu").score(pairs) for folder in both)
    together = moses_rnn.load(both, device="cpu", combine="mean-log")
    assert together.score(pairs) == pytest.approx(alone / 2)
    with pytest.raises(CheckpointError, match="from left to right"):
        list(together.translate(["s1 s2"]))
    train(prefix, tmp_path / "e", architecture="rnnenc", right_to_left=True)
    with pytest.raises(CheckpointError, match="e: expected a network that writes from left to right"):
        open_phrase_network(tmp_path / "e", of_any_cell=True)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["right_to_left"], "right_to_left" in (tmp_path / "n" / "config.json").read_text()) == (True, False)
