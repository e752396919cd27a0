"""The values of plans, each alone; what a plan makes of them is in test_plans.py."""

import re

import pytest

from moses_rnn.formats.plan_values import NAME, VARIABLES, Unexpected, check_seeds
from tests.pipeline import CONFIGS


def test_the_variables_are_those_of_the_pipeline():
    makefile = (CONFIGS / "pipeline.mk").read_text(encoding="utf-8")
    assert VARIABLES.keys() <= {*re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE)}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("LM_FLAGS", "a b", "a b"), ("TEST", ["a", 2], "a 2"), ("LM_FLAGS", "", ""), ("TRAIN", "é/a,b", "é/a,b"),
     ("ORDER", 3, "3"), ("ORDER", "3", "3")],
)  # fmt: skip
def test_what_a_variable_is(name, value, words):
    assert VARIABLES[name](value) == words


@pytest.mark.parametrize(
    ("name", "value"),
    [("TEST", True), ("TEST", 0.5), ("TEST", {"a": 1}), ("TEST", ["a", True]), ("TRAIN", "a b"), ("TRAIN", ["a"]),
     ("TRAIN", ""), ("THREADS", "1; touch x"), ("THREADS", True), ("THREADS", "1 2"), ("THREADS", -1), ("ORDER", "²"),
     *(("DECODER_FLAGS", f"-a {sign}") for sign in ("$(x)", "`x`", "'b", '"', "a;b", "#", "\\", "|x", "&", ">x", "\n"))],
)  # fmt: skip
def test_what_make_or_a_shell_would_act_upon_is_no_variable(name, value):
    with pytest.raises(Unexpected):
        VARIABLES[name](value)


@pytest.mark.parametrize("value", [[], [True], [-1], [2**31], ["1"], 1, [1, 2, 1]])
def test_what_are_no_seeds(value):
    with pytest.raises(Unexpected):
        check_seeds(value)


def test_names_are_parts_of_file_names():
    assert all(NAME.fullmatch(name) for name in ("a", "h512-d0.3", "x1+2"))
    assert not any(NAME.fullmatch(name) for name in ("", ".", "..", "-a", "a b", "a/b", "é"))
