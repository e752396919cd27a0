import math

import pytest

from moses_rnn.formats.ini_lines import (
    code_of,
    encode_lines,
    format_weights,
    is_readable_path,
    sections_of,
    tokens,
    weight_of,
    with_options,
    with_type,
    with_weights,
)


def test_each_line_belongs_to_the_section_above_it():
    lines = ["before", "[feature] LM0= 1", "KENLM name=LM0 # [weight]", "", "# only this", "[weight]\r", "LM0= 1"]
    assert sections_of(lines) == [None, None, "feature", None, None, None, "weight"]


def test_code_ends_at_the_comment():
    assert code_of(" \tLM0= 1 # two\r") == "LM0= 1"


def test_words_part_at_blanks_and_tabs_only():
    assert tokens(" a\u00a0b\tc  d\x0c ") == ["a\u00a0b", "c", "d\x0c"]


@pytest.mark.parametrize(
    ("word", "weight"), [("1", 1), ("-.5", -0.5), ("+2.e-3", 0.002), ("1E2", 100), ("nan", None), ("1_0", None), ("", None)]
)  # fmt: skip
def test_a_weight_is_a_number_as_moses_reads_it(word, weight):
    assert weight_of(word) == weight if weight is not None else math.isnan(weight_of(word))


@pytest.mark.parametrize("path", ["a b", "a\tb", "a#b", "a\nb"])
def test_paths_that_moses_cannot_read(path):
    assert not is_readable_path(path)
    assert is_readable_path("/a/b-c_d.gz")


def test_only_the_settings_that_are_named_and_there_change():
    line = "T name=n  num-features=4 xnum-features=4 path=/t # num-features=4"
    edits = {"num-features": lambda old: str(int(old) + 1), "path": lambda _: "/new", "other": lambda _: "x"}
    assert with_options(line, edits) == "T name=n  num-features=5 xnum-features=4 path=/new # num-features=4"


def test_another_type_and_a_setting_before_the_comment():
    assert with_type("T path=T # T\r", "T", "ProbingPT", " name=T0") == "ProbingPT path=T name=T0 # T\r"


@pytest.mark.parametrize(
    ("weights", "line"),
    [([], "T= 1 2 # two"), ([0.25], "T= 1 2 0.25 # two"), ([0.5, -1e-7], "T= 1 2 0.5 -1e-07 # two")],
)
def test_further_weights_stand_behind_the_others(weights, line):
    assert with_weights("T= 1 2 # two", weights) == line
    assert with_weights("T= 1\r", [2.0]) == "T= 1 2\r"


def test_weights_have_six_digits():
    assert format_weights([1 / 3, 2.0, -1e9]) == "0.333333 2 -1e+09"


def test_bytes_that_are_no_utf8_stay():
    data = b"a \xff\r\n\n b"
    assert encode_lines(data.decode("utf-8", "surrogateescape").split("\n")) == data
