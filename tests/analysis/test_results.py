"""The comparison of systems, and its table."""

import json
import math

import pytest

from moses_rnn.analysis import results
from moses_rnn.analysis.results import (
    Place,
    System,
    as_json,
    compare_systems,
    format_table,
    list_warnings,
    odd_weights,
)
from moses_rnn.errors import InputError


def test_systems_are_compared(work):
    comparison = compare_systems(Place(work, "fr"), ["baseline", "rnn"], ["1", "2"], samples=100)
    assert json.loads(as_json(comparison)) == comparison
    rnn, baseline = comparison["systems"]["rnn"], comparison["systems"]["baseline"]
    assert rnn["test_BLEU"]["mean"] == pytest.approx(100)
    assert rnn["test_BLEU"]["sd"] == 0
    assert baseline["test_BLEU"]["mean"] < 90
    assert [run["p"] <= 0.01 for run in rnn["runs"]] == [True, True]
    assert [run["phrases_chosen_differently"] for run in rnn["runs"]] == [pytest.approx(2 / 3)] * 2
    assert [run["sentences_different"] for run in rnn["runs"]] == [pytest.approx(2 / 3)] * 2
    assert rnn["runs"][0]["weights"] == {"TranslationModel0": [0.1, 0.2, 0.00001], "LM0": [0.5]}
    assert "tok:none" in comparison["signatures"]["BLEU"]
    assert list(list_warnings(comparison)) == [
        f"rnn, seed {seed}: TranslationModel0 2: weight 1e-05: tuning hardly uses it, or it is constant"
        for seed in "12"
    ]


def test_a_tuning_that_kept_the_weights_it_began_with(work):
    ini = work / "tune" / "baseline.2" / "moses.ini"
    ini.write_text("# BLEU 0.1998 on dev dev.en\n# We were before running iteration 1\n" + ini.read_text())
    comparison = compare_systems(Place(work, "fr"), ["baseline"], ["1", "2"], samples=20)
    kept = "no round of tuning beat its starting weights on dev, so they were kept: try another tuner"
    assert list(list_warnings(comparison)) == [f"baseline, seed 2: {kept}"]


def test_a_network_that_translates_by_itself(work, monkeypatch):
    """It has neither weights of Moses nor phrases."""
    monkeypatch.setattr(results, "read_systems", lambda: {"nmt": System("nmt", "self", "NMT")})
    for path in (work / "decode").glob("rnn.*.fr"):
        path.rename(path.with_name(path.name.replace("rnn.", "nmt.")))
    comparison = compare_systems(Place(work, "fr"), ["baseline", "nmt"], ["1", "2"], samples=20)
    assert [run["phrases_chosen_differently"] for run in comparison["systems"]["nmt"]["runs"]] == [None, None]
    assert [run["weights"] for run in comparison["systems"]["nmt"]["runs"]] == [{}, {}]
    assert list(list_warnings(comparison)) == []
    line = list(format_table(comparison))[3]
    assert line.startswith("| NMT | 100.00 ± 0.00 |")
    assert line.endswith("|  |")


def test_missing_and_short_files_are_named(work):
    (work / "decode" / "rnn.2.test.fr").write_text("one line\n")
    with pytest.raises(InputError, match="rnn, seed 2: expected 60 lines of test, found 1"):
        compare_systems(Place(work, "fr"), ["baseline", "rnn"], ["1", "2"])
    with pytest.raises(InputError, match=r"tune/rnn.3/moses.ini: expected a file that the pipeline made"):
        compare_systems(Place(work, "fr"), ["rnn"], ["3"])


@pytest.mark.parametrize(
    ("weights", "warnings"),
    [
        ({"A": [0.5, -0.2]}, []),
        ({"A": [0.5, 0.0004]}, ["A 1: weight 0.0004: tuning hardly uses it, or it is constant"]),
        ({"A": [0.2, 0.0004], "UnknownWordPenalty0": [1.0]}, []),
        ({"A": [math.nan], "B": [1.0]}, ["A 0: weight nan: this tuning failed"]),
    ],
)
def test_odd_weights(weights, warnings):
    assert list(odd_weights(weights)) == warnings


def test_several_test_sets_have_columns_of_their_own(work):
    """One of them the second of two seeds gets right but for a line; together they are as many sentences."""
    for path in (work / "decode").glob("*.test.*"):
        path.with_name(path.name.replace(".test.", ".later.")).write_text(path.read_text())
    (work / "corpus" / "later.fr").write_text((work / "corpus" / "test.fr").read_text())
    for suffix in ("fr", "segments"):
        better = work / "decode" / f"rnn.1.later.{suffix}"
        better.write_text((work / "decode" / f"baseline.1.later.{suffix}").read_text())
    comparison = compare_systems(Place(work, "fr", ("test", "later")), ["baseline", "rnn"], ["1", "2"], samples=50)
    first, second = comparison["systems"]["rnn"]["runs"]
    assert (first["test_p"] <= 0.02, first["p"] <= 0.02) == (True, True)
    assert first["later_BLEU"] == comparison["systems"]["baseline"]["runs"][0]["later_BLEU"] < second["later_BLEU"]
    assert (first["phrases_chosen_differently"], second["phrases_chosen_differently"]) == (
        pytest.approx(1 / 3), pytest.approx(2 / 3),
    )  # fmt: skip
    lines = list(format_table(comparison))
    assert lines[0].startswith(
        "| system | dev BLEU | test BLEU | against Baseline | p by seed | later BLEU | against Baseline | p by seed | p, all"
    )
    assert {line.count("|") for line in lines[:4]} == {12}
    assert "; 60, 60 and 60 sentences;" in lines[-1]


def test_systems_on_lists_are_marked(work):
    """Their weights stand alone; the other systems' stand in a whole ini."""
    for ini in (work / "tune").glob("rnn.?/moses.ini"):
        ini.write_text("[weight]\nTranslationModel0= 0.1\n")
    lines = list(format_table(compare_systems(Place(work, "fr"), ["baseline", "rnn"], ["1"], samples=20)))
    assert lines[2].startswith("| Baseline |")
    assert lines[3].startswith("| +RNN* |")
    assert lines[-1].startswith("* The CSLM (and WP) chose from n-best lists")
