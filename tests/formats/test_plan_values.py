"""The values of plans, each alone; what a plan makes of them is in test_plans.py."""

import re

import pytest

from moses_rnn.formats.plan_values import NAME, OF_PLACE, OF_TABLE, OF_TUNING, Unexpected, check_seeds, check_variable
from tests.pipeline import CONFIGS


def test_the_variables_are_those_of_the_pipeline():
    makefile = (CONFIGS / "pipeline.mk").read_text(encoding="utf-8")
    known = {*re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE), "MOSES_ROOT"}
    assert {*OF_TABLE, *OF_TUNING, *OF_PLACE} <= known


@pytest.mark.parametrize(("value", "words"), [("a b", "a b"), (3, "3"), (["a", 2], "a 2"), ("", "")])
def test_a_variable_is_words(value, words):
    assert check_variable(value) == words


@pytest.mark.parametrize("value", [True, 0.5, {"a": 1}, ["a", True], "a'b", "a\nb", "$a", "#", "a\\"])
def test_what_make_would_read_otherwise_is_no_variable(value):
    with pytest.raises(Unexpected):
        check_variable(value)


@pytest.mark.parametrize("value", [[], [True], [-1], [2**31], ["1"], 1, [1, 2, 1]])
def test_what_are_no_seeds(value):
    with pytest.raises(Unexpected):
        check_seeds(value)


def test_names_are_parts_of_file_names():
    assert all(NAME.fullmatch(name) for name in ("a", "h512-d0.3", "x1+2"))
    assert not any(NAME.fullmatch(name) for name in ("", ".", "..", "-a", "a b", "a/b", "é"))
