"""Shards of a table, scored apart and laid end to end, are the table scored in one run; what is wrong is named."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from moses_rnn.errors import FormatError, InputError, MisfitError, Stopped
from moses_rnn.files.shards import Shard
from moses_rnn.files.streams import show_nothing
from moses_rnn.score.merging import merge
from moses_rnn.score.score import score
from moses_rnn.table.signatures import read_signature
from tests.same_scores import check_same_scores
from tests.score.tables import names, never, options_for

COUNT = 4


def score_shards(here, models, count=COUNT, /, **changes):
    paths = []
    for number in range(1, count + 1):
        output = str(here / f"scored.{number}-of-{count}")
        request = options_for(here, models, new_table=output, shard=Shard(number, count), **changes)
        score(request, show_nothing, never)
        paths.append(output)
    return paths


def merged(here, shards, *, name="merged", advanced=show_nothing, should_stop=never, **options):
    options = {"force": False, "allow_misfit": True, **options}
    return merge([*shards], str(here / name), advanced=advanced, should_stop=should_stop, **options)


def words_of(record):
    """A signature whose numbers stand between blanks."""
    return json.dumps(record, indent=1, separators=(" ,", " : ")).encode()


@pytest.mark.parametrize("count", [1, 4, 12, 47])  # the last with empty shards
def test_merged_they_are_the_whole_table(here, models, count):
    changes = {"inverse_models": (models / "inverse",), "allow_misfit": True}
    of_whole = score(options_for(here, models, **changes), show_nothing, never)
    shards = score_shards(here, models, count, **changes)
    result = merged(here, reversed(shards))
    check_same_scores((here / "merged").read_bytes(), (here / "scored").read_bytes())
    assert (result.counts.lines, result.counts.rejected) == (30, 0)
    assert result.warnings == of_whole.warnings
    assert result.warnings[0].startswith("RNNInverse: 100.0% of the pairs have a word outside the model's shortlists")
    whole, again = (json.loads((here / f"{name}.json").read_bytes()) for name in ("scored", "merged"))
    assert again.pop("merged_from") == count
    assert (whole.pop("output"), again.pop("output")) == ("scored", "merged")
    for record, name in ((whole, "scored"), (again, "merged")):
        data = (here / name).read_bytes()
        assert record.pop("file") == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    check_same_scores(words_of(again), words_of(whole))
    assert "num-features=4" in result.ini.lines[0]


def test_logarithms_are_refused(here, models):
    shards = score_shards(here, models, 2)
    for shard in shards:
        record = read_signature(shard).record
        record["added_columns"][0]["written_as"] = "natural logarithm"
        Path(f"{shard}.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="scored.1-of-2: expected probabilities in score 3, found logarithms"):
        merged(here, shards)


def test_a_second_run_keeps_what_is_recorded_of_the_first(here, models):
    score(options_for(here, models, word_penalty=True, allow_misfit=True), show_nothing, never)
    second = {
        "phrase_table": str(here / "scored"),
        "models": (),
        "inverse_models": (models / "inverse",),
        "allow_misfit": True,
    }
    score(options_for(here, models, new_table=str(here / "twice"), **second), show_nothing, never)
    merged(here, score_shards(here, models, 2, **second))
    for name in ("twice", "merged"):
        signature = read_signature(str(here / name))
        assert signature.names == {2: "RNN", 3: "WordPenalty", 4: "RNNInverse"}
        assert [model["direction"] for model in signature.record["models"]] == ["source-to-target", "target-to-source"]
        assert set(signature.record["earlier_columns"][0]) == {"index", "name", "meaning", "written_as", "floor"}


def test_rejected_lines_come_together(here, models):
    lines = (here / "table").read_bytes().splitlines(keepends=True)
    lines[3] = b"bad\n"
    lines[20] = b"bad too\n"
    (here / "table").write_bytes(b"".join(lines))
    shards = []
    for number in range(1, 3):
        output = str(here / f"scored.{number}")
        changes = {"new_table": output, "shard": Shard(number, 2), "on_bad_line": "skip"}
        score(options_for(here, models, **changes), show_nothing, never)
        shards.append(output)
    assert merged(here, shards).counts.rejected == 2
    assert (here / "merged.rejects").read_bytes() == b"bad\nbad too\n"
    (here / "table").write_bytes(b"".join(lines[:3]))
    merged(here, score_shards(here, models, 1), force=True)
    assert not (here / "merged.rejects").exists()


def test_shards_skip_the_lines_that_a_whole_run_skips(here, models):
    lines = (here / "table").read_bytes().splitlines(keepends=True)
    lines[7:15] = [b"bad %d\n" % i for i in range(8)]
    lines[22] = lines[22].replace(b" 0.25", b" 0.25 0.5")
    (here / "table").write_bytes(b"".join(lines))
    score(options_for(here, models, on_bad_line="skip"), show_nothing, never)
    assert merged(here, score_shards(here, models, on_bad_line="skip")).counts.rejected == 9
    check_same_scores((here / "merged").read_bytes(), (here / "scored").read_bytes())
    assert (here / "merged.rejects").read_bytes() == (here / "scored.rejects").read_bytes()
    assert read_signature(str(here / "scored.2-of-4")).record["lines"] == 0


@pytest.mark.parametrize(("lines", "found"), [(b"", "an empty file"), (b"bad\n" * 3, "none")])
def test_a_table_without_a_pair_is_refused_in_shards_too(here, models, lines, found):
    (here / "table").write_bytes(lines)
    with pytest.raises(FormatError, match=f"table: expected at least one .*line, found {found}$"):
        score_shards(here, models, 2, on_bad_line="skip")


def test_only_a_merge_knows_whether_most_lines_are_bad(here, models):
    lines = (here / "table").read_bytes().splitlines(keepends=True)
    (here / "table").write_bytes(b"".join([*lines[:10], *[b"bad\n"] * (len(lines) - 11), lines[-1]]))
    shards = score_shards(here, models, 2, on_bad_line="skip")
    with pytest.raises(FormatError, match="table: expected more good lines than bad ones, found 11 good and 19 bad"):
        merged(here, shards)


def test_only_a_merge_knows_whether_the_model_fits(here, models):
    (here / "table").write_bytes((here / "table").read_bytes().upper())
    shards = score_shards(here, models)
    with pytest.raises(MisfitError, match=r"table: expected a table that RNN's model knows, found 100.0% of the pairs"):
        merged(here, shards, allow_misfit=False)
    assert not (here / "merged").exists()
    assert merged(here, shards).counts.unknown == [30]


def change_signature(path, **changes):
    """Change what a signature says; None removes it."""
    beside = path.with_name(f"{path.name}.json")
    record = json.loads(beside.read_bytes()) | changes
    beside.write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


def shard_of(path):
    return json.loads(path.with_name(f"{path.name}.json").read_bytes())["shard"]


COUNTS = "unknown", "floored", "lowest", "highest"
OF_ANOTHER = {"models": [{"direction": "source-to-target", "sha256": {"x": "y"}}]}
WRONG = {  # what becomes of the second shard's file and signature; tests/refusals.txt has what is wrong with their list
    "changed": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), "scored.2-of-4: expected the file that its signature describes, found other bytes\n  The file was changed or cut"),
    "of another model": (lambda path: change_signature(path, **OF_ANOTHER), "scored.2-of-4: expected the same models as .*scored.1-of-4, found"),
    "no shard": (lambda path: change_signature(path, shard=None), "scored.2-of-4.json: expected the signature of a shard, as .* writes it, found one without 'shard'"),
    "shorter": (lambda path: change_signature(path, lines=0), r"scored.2-of-4.json: expected the signature of a shard, .* found \d lines instead of"),
    "of other factors": (lambda path: change_signature(path, shard=shard_of(path) | {"factors": [2, 1]}), r"scored.2-of-4: expected the same number of factors as .*, found \(2, 1\) here and \(1, 1\) there"),
    "no numbers": (lambda path: change_signature(path, added_columns=[{"name": "RNN", **dict.fromkeys(COUNTS, "x")}]), "scored.2-of-4.json: expected the signature of a shard, .* found invalid literal"),
    "of anything": (lambda path: change_signature(path, shard=[], added_columns=7), "scored.2-of-4.json: expected the signature of a shard, as moses-rnn-score --shard writes it"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), WRONG.values(), ids=WRONG)
def test_a_shard_that_is_not_as_it_should_be_is_named_and_nothing_is_left(here, models, spoil, message):
    shards = score_shards(here, models)
    spoil(here / "scored.2-of-4")
    before = names(here)
    with pytest.raises(InputError, match=message):
        merged(here, shards)
    assert names(here) == before


def test_shards_of_another_table_are_refused(here, models):
    shards = score_shards(here, models)
    other = here / "other"
    other.mkdir()
    (other / "table").write_bytes((here / "table").read_bytes().replace(b"0.5", b"0.4"))
    foreign = score_shards(other, models)
    with pytest.raises(InputError, match="scored.4-of-4: expected the same table as"):
        merged(here, [*shards[:3], foreign[3]])


def test_tables_that_differ_in_the_middle_alone_are_told_apart(here, models, monkeypatch):
    monkeypatch.setattr("moses_rnn.files.streams.IDENTITY_BYTES", 100)
    (here / "table").write_bytes((here / "table").read_bytes() * 2)
    shards = score_shards(here, models, 2)
    data = bytearray((here / "table").read_bytes())
    data[data.index(b"0.", len(data) // 2) + 2] += 1
    (here / "table").write_bytes(data)
    score(options_for(here, models, new_table=shards[1], shard=Shard(2, 2), force=True), show_nothing, never)
    with pytest.raises(InputError, match="scored.2-of-2: expected the same table as"):
        merged(here, shards)


def test_a_copy_on_another_machine_is_the_same_table(here, models):
    shards = score_shards(here, models)
    other = here / "other"
    other.mkdir()
    shutil.copyfile(here / "table", other / "table")
    copies = score_shards(other, models)
    assert merged(here, [*shards[:2], *copies[2:]]).counts.lines == 30


def test_a_merge_that_was_stopped_leaves_nothing(here, models, monkeypatch):
    monkeypatch.setattr("moses_rnn.score.merging.PIECE_BYTES", 100)
    shards = score_shards(here, models)
    before, done = names(here), []
    with pytest.raises(Stopped, match="the same command starts over"):
        merged(here, shards, should_stop=lambda: len(done) == 3, advanced=lambda *given: done.append(given))
    assert names(here) == before
    merged(here, shards, advanced=lambda *given: done.append(given))
    assert done[-1][1] == 1.0


def test_cores_that_differ_are_told(here, models):
    shards = score_shards(here, models)
    change_signature(here / "scored.2-of-4", native="native core, a")
    (warning,) = merged(here, shards).warnings
    assert "the shards were computed by native core, a and " in warning
