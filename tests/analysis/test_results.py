"""The comparison of systems: quality, significance, phrases chosen differently, and weights that look odd."""

import json
import math

import pytest

from moses_rnn.analysis import runs
from moses_rnn.analysis.results import as_json, compare_systems, list_warnings, odd_weights, share_different
from moses_rnn.analysis.runs import Chosen, Place, chosen_phrases
from moses_rnn.errors import InputError
from moses_rnn.formats.systems import System


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
        f"rnn, seed {seed}: TranslationModel0 2: weight 1e-05: hardly any use was found for it, or it is constant"
        for seed in "12"
    ]


def test_a_tuning_that_kept_the_weights_it_began_with(work):
    ini = work / "tune" / "baseline.2" / "moses.ini"
    ini.write_text("# BLEU 0.1998 on dev dev.en\n# We were before running iteration 1\n" + ini.read_text())
    comparison = compare_systems(Place(work, "fr"), ["baseline"], ["1", "2"], samples=20)
    kept = (
        "no round of tuning was better on dev than the weights that it began with, which were kept: try another tuner"
    )
    assert list(list_warnings(comparison)) == [f"baseline, seed 2: {kept}"]


def test_a_network_that_translates_by_itself(work, monkeypatch):
    """It has neither weights of Moses nor phrases."""
    monkeypatch.setattr(runs, "read_systems", lambda: {"nmt": System("nmt", "self", "NMT")})
    for path in (work / "decode").glob("rnn.*.fr"):
        path.rename(path.with_name(path.name.replace("rnn.", "nmt.")))
    comparison = compare_systems(Place(work, "fr"), ["baseline", "nmt"], ["1", "2"], samples=20)
    assert [run["phrases_chosen_differently"] for run in comparison["systems"]["nmt"]["runs"]] == [None, None]
    assert [run["weights"] for run in comparison["systems"]["nmt"]["runs"]] == [{}, {}]
    assert list(list_warnings(comparison)) == []


def test_missing_and_short_files_are_named(work):
    (work / "decode" / "rnn.2.test.fr").write_text("one line\n")
    with pytest.raises(InputError, match="rnn, seed 2: expected 60 lines of test, found 1"):
        compare_systems(Place(work, "fr"), ["baseline", "rnn"], ["1", "2"])
    with pytest.raises(InputError, match=r"tune/rnn.3/moses.ini: expected a file that the pipeline made"):
        compare_systems(Place(work, "fr"), ["rnn"], ["3"])


def test_phrases_of_a_segmented_translation():
    line = "le vieil homme |0-2| dort |3-3| . |4-4| "
    assert list(chosen_phrases(["", line])) == [
        Chosen(1, 0, 2, "le vieil homme"),
        Chosen(1, 3, 3, "dort"),
        Chosen(1, 4, 4, "."),
    ]


def test_share_of_other_phrases():
    a, b, c = (Chosen(0, i, i, "x") for i in range(3))
    assert share_different(frozenset({a, b}), frozenset({b, c})) == 0.5
    assert share_different(frozenset(), frozenset({a})) == 0.0


@pytest.mark.parametrize(
    ("weights", "warnings"),
    [
        ({"A": [0.5, -0.2]}, []),
        ({"A": [0.5, 0.0004]}, ["A 1: weight 0.0004: hardly any use was found for it, or it is constant"]),
        ({"A": [0.2, 0.0004], "UnknownWordPenalty0": [1.0]}, []),
        ({"A": [math.nan], "B": [1.0]}, ["A 0: weight nan: this tuning failed"]),
    ],
)
def test_odd_weights(weights, warnings):
    assert list(odd_weights(weights)) == warnings
