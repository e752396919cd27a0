"""A whole run: all columns, what it says of itself while it works and at its end, stopped and resumed."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from moses_rnn.analysis.scored_table import ScoredTable
from moses_rnn.errors import MisfitError, OutputError, Stopped
from moses_rnn.files import resumable
from moses_rnn.files.shards import Shard
from moses_rnn.files.streams import show_nothing
from moses_rnn.models.open import open_model
from moses_rnn.native import native_core
from moses_rnn.score import score as score_module
from moses_rnn.score.score import score
from moses_rnn.table.signatures import read_signature
from moses_rnn.table.table_blocks import Pairs
from tests.models.rare import ALIGNED, save_rare_model
from tests.score.tables import LINES, names, never, options_for

pytestmark = pytest.mark.usefixtures("in_small_chunks")


def log_columns(path, old=2):
    """The added columns of a scored table, in natural logarithms; lines × columns."""
    lines = path.read_bytes().splitlines()
    return np.log([[float(x) for x in line.split(b" ||| ")[2].split()[old:]] for line in lines])


def test_several_models_give_the_mean_of_their_columns(here, models):
    folders = (models / "rnn", models / "groundhog")
    for folder in folders:
        score(options_for(here, models, models=(folder,), new_table=str(here / folder.name)), show_nothing, never)
    result = score(options_for(here, models, models=folders), show_nothing, never)
    one, other = (log_columns(here / folder.name) for folder in folders)
    np.testing.assert_allclose(log_columns(here / "scored"), (one + other) / 2, rtol=1e-5)
    assert not np.allclose(one, other, rtol=1e-2)
    assert result.column_names == ("ENS",)
    assert result.computed_by.startswith(str(native_core() or "torch"))
    signature = json.loads((here / "scored.json").read_bytes())
    (column,) = signature["added_columns"]
    assert column["meaning"].startswith("mean of 2 models' log p(target | source) of the RNN Encoder-Decoder")
    weights = [model["sha256"]["model.safetensors"] for model in signature["models"]]
    assert weights == [hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() for folder in folders]


def test_several_models_of_both_directions_are_two_means_or_a_column_each(here, models):
    folders = {
        "models": (models / "rnn", models / "groundhog"),
        "inverse_models": (models / "inverse",) * 2,
        "allow_misfit": True,
    }
    means = score(options_for(here, models, **folders), show_nothing, never)
    assert means.column_names == ("ENS", "ENSInverse")
    each = options_for(here, models, **folders, combine="columns", new_table=str(here / "each"))
    expected = "RNN", "RNN1", "RNNInverse", "RNNInverse1"
    assert score(each, show_nothing, never).column_names == expected
    assert tuple(read_signature(str(here / "each")).names.values()) == expected
    columns = log_columns(here / "each")
    expected = np.stack([columns[:, :2].mean(1), columns[:, 2:].mean(1)], axis=1)
    np.testing.assert_allclose(log_columns(here / "scored"), expected, rtol=1e-5)


def test_columns_added_again_are_told_apart_by_their_names(here, models):
    table = here / "table"
    table.write_bytes(table.read_bytes().replace(b"0.5 0.25", b"0.1 0.2 0.3 0.4"))
    folders = (models / "rnn", models / "groundhog")
    added = {"models": folders, "combine": "columns", "again": True, "word_penalty": True}
    for output in ("once", "twice"):
        result = score(options_for(here, models, phrase_table=str(table), **added | {"new_table": str(here / output)}),
                       show_nothing, never)  # fmt: skip
        table = here / output
    assert result.column_names == ("RNN2", "RNN3", "WordPenalty1")
    named = read_signature(str(here / "twice")).names
    assert [*named.items()] == [
        (4, "RNN"), (5, "RNN1"), (6, "WordPenalty"), (7, "RNN2"), (8, "RNN3"), (9, "WordPenalty1")
    ]  # fmt: skip
    assert ScoredTable.open(str(here / "twice")).column == 4
    assert ScoredTable.open(str(here / "twice"), name="RNN3").column == 8
    columns = log_columns(here / "twice", old=4)
    assert (columns[:, :3] == columns[:, 3:]).all()
    assert not np.allclose(columns[:, 0], columns[:, 1])


@pytest.mark.parametrize("after", [1, 3])
def test_stopped_and_resumed_it_ends_with_the_same_bytes(here, models, after):
    (here / "table").write_bytes(b"".join([LINES[0].replace(b"\n", b"\r\n"), *LINES[1:]]))
    whole = score(options_for(here, models, new_table=str(here / "whole")), show_nothing, never)
    calls, stopped, resumed = iter(range(100)), [], []
    with pytest.raises(Stopped, match="; the same command with --resume continues"):
        score(options_for(here, models), lambda done, _: stopped.append(done), lambda: next(calls) >= after)
    assert "scored" not in names(here)
    result = score(options_for(here, models, resume=True), lambda done, _: resumed.append(done), never)
    assert stopped[-1] < resumed[0]
    assert result.counts.lines == 30
    assert "CRLF line end" in result.warnings[0]
    assert result.warnings == whole.warnings
    assert (here / "scored").read_bytes() == (here / "whole").read_bytes()
    assert names(here) == ["scored", "scored.json", "table", "whole", "whole.json"]


@pytest.mark.parametrize("changes", [{"floor": -50.0}, {"word_penalty": True}, {"precision": "bf16"}], ids=str)
def test_it_is_not_resumed_with_what_gives_other_bytes(here, models, changes):
    calls = iter(range(100))
    with pytest.raises(Stopped):
        score(options_for(here, models), show_nothing, lambda: next(calls) >= 1)
    (change,) = changes
    with pytest.raises(OutputError, match=f"found others: .*{'columns' if change == 'word_penalty' else change} "):
        score(options_for(here, models, resume=True, **changes), show_nothing, never)
    assert score(options_for(here, models, resume=True), show_nothing, never).counts.lines == 30


def test_a_misfit_is_noticed_at_the_latest_at_the_end(here, models, monkeypatch):
    (here / "table").write_bytes(b"".join(line.replace(b"t", b"x") for line in LINES))
    found = "found 100.0% of the pairs with a word outside its shortlists in 30 lines"
    with pytest.raises(MisfitError, match=f"{found}\n(.*\n)+.* Continue with --resume --allow-misfit"):
        score(options_for(here, models), show_nothing, never)
    result = score(options_for(here, models, resume=True, allow_misfit=True), show_nothing, never)
    assert [warning[:10] for warning in result.warnings] == ["RNN: 100.0"]
    monkeypatch.setattr(score_module, "FIRST_CHECK", 10)
    with pytest.raises(MisfitError, match="in 10 lines"):
        score(options_for(here, models, force=True), show_nothing, never)
    score(options_for(here, models, shard=Shard(1, 1), force=True), show_nothing, never)  # merging checks


class Death(BaseException):
    """What no part of the program catches."""


@pytest.mark.parametrize("renames", range(4))
def test_a_death_right_before_the_end_counts_nothing_twice(here, models, monkeypatch, renames):
    (here / "table").write_bytes(b"bad\n" + b"".join(LINES) + b"worse\n")
    request = options_for(here, models, on_bad_line="skip")
    names_given = iter(range(9))

    def publish(part):
        if next(names_given) == renames:
            raise Death
        publish_as_ever(part)

    publish_as_ever = resumable.Part.publish
    with monkeypatch.context() as patch:
        patch.setattr(resumable.Part, "publish", publish)
        patch.setattr(resumable.ResumableOutputs, "_discard", lambda _: None)
        if renames < 3:
            with pytest.raises(Death):
                score(request, show_nothing, never)
        else:
            score(request, show_nothing, never)
    assert ".scored.state" in names(here)
    monkeypatch.setattr("moses_rnn.score.workers.ChunkScorer.__call__", lambda *_: pytest.fail("scored again"))
    resumed = score(dataclasses.replace(request, resume=True), show_nothing, never)
    assert (resumed.counts.rejected, resumed.counts.lines) == (2, 30)
    assert json.loads((here / "scored.json").read_bytes())["rejected_lines"] == 2
    assert (here / "scored.rejects").read_bytes() == b"bad\nworse\n"
    assert names(here) == ["scored", "scored.json", "scored.rejects", "table"]


def test_rare_words_of_a_table_are_told_apart_by_its_alignments(here, models, tmp_path):
    model = save_rare_model(tmp_path / "rare")
    lines = [b"%s ||| %s ||| 0.5 ||| %s ||| 1 1 1\n" % pair for pair in ALIGNED if pair[0]]
    (here / "table").write_bytes(b"".join(lines))
    request = options_for(here, models, models=(model,), allow_misfit=True)
    result = score(request, show_nothing, never)
    assert result.column_names == ("SEARCH",)
    values = [float(line.split(b" ||| ")[2].split()[1]) for line in (here / "scored").read_bytes().splitlines()]
    assert len({*values}) == len(lines)
    sources, targets, links = map(list, zip(*ALIGNED[:4], strict=True))
    expected = open_model(model).make_scorer().log_probs(Pairs(sources, targets, links))
    assert np.log(values) == pytest.approx(expected, rel=1e-5)
    assert "rare words by posunk" in json.loads((here / "scored.json").read_bytes())["added_columns"][0]["meaning"]
