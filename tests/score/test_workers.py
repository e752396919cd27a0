"""What a worker makes of a chunk, in this process and from what other processes are told."""

import pickle

import pytest

from moses_rnn.errors import FormatError, MosesRnnError, OutputError, Stopped
from moses_rnn.table.signatures import ColumnCounts


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
    assert counts == ColumnCounts(5, [3], [1], [-3.0], [-0.5])
