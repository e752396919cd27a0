"""What is read of results.json, and what is refused."""

import json

import pytest

from moses_rnn.analysis.report.tuning import read_tuning
from moses_rnn.errors import InputError
from tests.analysis.report.small import RESULTS


def written(tmp_path, record):
    (tmp_path / "results.json").write_text(json.dumps(record))
    return str(tmp_path / "results.json")


def test_a_system_stands_beside_the_baseline(tmp_path):
    tuning = read_tuning(written(tmp_path, RESULTS))
    assert (tuning.system, [one.name for one in tuning.sets]) == ("rnn", ["near", "far"])
    assert [round(one.gain, 6) for one in tuning.sets] == [0.5, 0.25]
    assert [one.p for one in tuning.sets] == [(0.01, 0.02), (0.2, 0.3)]
    assert tuning.decisive
    assert tuning.weights[0]["TranslationModel0"] == [0.1, 0.1, 0.1, 0.1, 0.07]


def test_another_system_will_do(tmp_path):
    systems = {"baseline": RESULTS["systems"]["baseline"], "other": RESULTS["systems"]["rnn"]}
    assert read_tuning(written(tmp_path, {**RESULTS, "systems": systems})).system == "other"


def with_mean(value):
    baseline = RESULTS["systems"]["baseline"]
    return {**RESULTS, "systems": {**RESULTS["systems"], "baseline": {**baseline, "near_BLEU": {"mean": value}}}}


@pytest.mark.parametrize(
    "record",
    [[], {}, {"systems": {}, "tests": []}, {**RESULTS, "systems": {"baseline": {}}}, {**RESULTS, "tests": ["no such"]},
     {**RESULTS, "systems": {**RESULTS["systems"], "rnn": 5}},
     *map(with_mean, [float("nan"), float("inf"), 10**400, None])],
)  # fmt: skip
def test_what_is_no_result_is_refused(tmp_path, record):
    with pytest.raises(InputError, match="results.json: expected results of a baseline and of a system with the score"):
        read_tuning(written(tmp_path, record))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="nothing: cannot be read: No such file"):
        read_tuning(str(tmp_path / "nothing"))
