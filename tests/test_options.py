from typing import Annotated

import pytest

from moses_rnn.options import Option, expectation

WHOLE, SHARE = Annotated[int, Option(min=1)], Annotated[float | None, Option(min=0, max=1, max_open=True)]


@pytest.mark.parametrize(("hint", "good", "bad", "expected"), [
    (WHOLE, [1, 2**31 - 1], [0, 2**31, 1.0, True, "1", None, 10**400], "a whole number from 1 to 2147483647"),
    (SHARE, [0, 0.5], [1, -0.1, float("nan"), float("inf"), True, "0", 10**400, -(10**400)], "a number from 0 below 1"),
])  # fmt: skip
def test_a_number_is_within_its_bounds_or_refused(hint, good, bad, expected):
    assert {expectation(hint, value) for value in good} == {""}
    assert {expectation(hint, value) for value in bad} == {expected}
