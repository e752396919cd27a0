"""What a worker makes of a chunk, in this process and from what other processes are told."""

import dataclasses
import pickle

import numpy as np
import pytest

from moses_rnn.errors import CheckpointError, FormatError, MosesRnnError, OutputError, Stopped
from moses_rnn.files.outputs import Packing
from moses_rnn.formats.signatures import ColumnCounts
from moses_rnn.formats.table_blocks import TableLines, parse_blocks
from moses_rnn.producers.base import HERE
from moses_rnn.producers.open import ModelOnDisk, open_model
from moses_rnn.scoring.workers import ChunkScorer, ColumnOptions, ScoringJob, lines_of, make_producers
from tests.scoring.tables import LINES


def chunk():
    return TableLines.joined(list(parse_blocks([b"".join(LINES)], "t")))


def job_for(models, **changes):
    opened = [open_model(models / "rnn"), open_model(models / "inverse")]
    given = {"name": "t", "models": tuple(map(ModelOnDisk.of, opened)), "compute": HERE, "word_penalty": True,
             "columns": ColumnOptions(), "pack": Packing()}  # fmt: skip
    return opened, ScoringJob(**given | changes)


def test_a_job_makes_what_open_models_make(models):
    opened, job = job_for(models)
    here = ChunkScorer(make_producers(opened, HERE, word_penalty=True), "t", ColumnOptions(), Packing())
    again = pickle.loads(pickle.dumps(job))
    assert (again, hash(again)) == (job, hash(job))
    assert again.begin("cpu")(pickle.loads(pickle.dumps(chunk()))) == here(chunk())


def test_counts_of_a_chunk(models):
    _, job = job_for(models)
    scored = job.begin("cpu")(chunk())
    assert scored.block.count(b"\n") == scored.counts.lines == 30
    assert len(scored.counts.lowest) == 3
    values = np.log([[float(x) for x in line.split(b" ||| ")[2].split()[2:]] for line in scored.block.splitlines()])
    np.testing.assert_allclose(values.min(0), scored.counts.lowest, atol=1e-8)
    np.testing.assert_allclose(values.max(0), scored.counts.highest, atol=1e-8)


def test_a_model_that_was_changed_meanwhile_is_refused(models):
    on_disk = ModelOnDisk.of(open_model(models / "rnn"))
    assert on_disk.open_again().name == "RNN"
    with pytest.raises(CheckpointError, match="rnn: was changed after this run began"):
        dataclasses.replace(on_disk, hashes=(("model.safetensors", "0"),)).open_again()


def test_lines_are_named_by_their_numbers():
    assert lines_of(chunk()[3:7]) == "lines 4 to 7"


@pytest.mark.parametrize(
    "error",
    [
        MosesRnnError("m", advice="a"),
        FormatError("n", 3, "this", "that", "advice"),
        Stopped("s"),
        OutputError("o"),
    ],
)
def test_errors_survive_the_way_between_processes(error):
    error.add_advice("more")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_counts_add_up():
    counts = ColumnCounts()
    counts.add(ColumnCounts(2, [1], [0], [-3.0], [-1.0]))
    counts.add(ColumnCounts(3, [2], [1], [-2.0], [-0.5]))
    counts.add(ColumnCounts())
    assert counts == ColumnCounts(5, [3], [1], [-3.0], [-0.5])
