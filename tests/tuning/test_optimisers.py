import pytest

from moses_rnn.tuning.optimisers import OPTIMISERS
from moses_rnn.tuning.tune import tune
from tests.tuning.lists import LINES, NAMES, read


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_name_is_of_an_optimiser(false_moses, name):
    """Where all features are constant no optimiser has anything to do; an unknown one is refused before that."""
    points = read(LINES[:2])
    assert points.constant == NAMES
    tuned = tune(points, [1, 2, 3], name, seed=1, moses=false_moses("mert", "9 9 9", "weights.txt"))
    assert tuned.weights.tolist() == [1, 2, 3]


def test_other_names_are_refused():
    with pytest.raises(ValueError, match=f"expected an optimiser of {', '.join(OPTIMISERS)}, found 'pro'"):
        tune(read(), [1, 1, 1], "pro", seed=1)
