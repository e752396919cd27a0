"""Figures of a trial: of its networks, and of its system against the baseline of the same seed."""

import dataclasses
import json
import shutil

import pytest

from moses_rnn.analysis import trials
from moses_rnn.analysis.trials import Tried, compare_trial, read_history
from moses_rnn.errors import InputError
from moses_rnn.formats.runs import Place

LOG = [
    {"seconds": 60, "nats_per_token": 2.0},
    {"seconds": 180, "nats_per_token": 1.5},
    {"seconds": 240, "nats_per_token": 1.75},
]


def save_log(model, lines):
    (model / "training").mkdir(parents=True)
    (model / "training" / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def tried(work, tmp_path_factory):
    """A trial in a folder of its own; its second network's log was cut off."""
    place = tmp_path_factory.mktemp("trial") / "system"
    shutil.copytree(work, place)
    networks = [place / name for name in ("one", "two", "inverse")]
    for network, costs in zip(
        networks, (LOG, [*LOG[:1], {"nats_per_token": "?"}], [{"seconds": 60, "nats_per_token": 9}]), strict=True
    ):
        save_log(network, map(json.dumps, costs))
    with (networks[1] / "training" / "log.jsonl").open("a") as log:
        log.write('{"seconds": 99')
    return Tried(
        name="pair", tuner="mira", settings={"inverse": True}, baseline=Place(work, "fr"), system=Place(place, "fr"),
        seeds=("1", "2"), networks=networks[:2], inverse_networks=networks[2:],
    )  # fmt: skip


def test_a_trial_is_compared_seed_by_seed(tried):
    record = compare_trial(tried, samples=50)
    assert json.loads(json.dumps(record)) == record
    assert (record["name"], record["tuner"], record["settings"]) == ("pair", "mira", {"inverse": True})
    assert record["held_out_nats"] == (1.5 + 2) / 2
    assert record["minutes"] == 4 + 1 + 1
    assert [run["seed"] for run in record["runs"]] == ["1", "2"]
    for run in record["runs"]:
        assert run["system"]["test_BLEU"] == run["system"]["all_BLEU"] == pytest.approx(100)
        assert run["baseline"]["test_BLEU"] == run["baseline"]["all_BLEU"] < 90
        assert max(run["system"]["test_p"], run["system"]["p"]) < 0.05
        assert "p" not in run["baseline"]


def test_what_was_compared_before_is_not_compared_again(tried, monkeypatch):
    before = compare_trial(tried, samples=20)
    monkeypatch.setattr(trials, "compare_runs", lambda *_: pytest.fail("compared again"))
    assert compare_trial(tried, samples=20) == before
    with pytest.raises(pytest.fail.Exception):
        compare_trial(tried, samples=21)
    changed = tried.baseline.folder / "decode" / "baseline.2.test.fr"
    changed.write_text(changed.read_text().replace("old", "young"))
    with pytest.raises(pytest.fail.Exception):
        compare_trial(tried, samples=20)
    (tried.system.folder / "decode" / "1.comparison.json").write_text("[]")  # of something else
    with pytest.raises(pytest.fail.Exception):
        compare_trial(dataclasses.replace(tried, seeds=("1",)), samples=20)


def test_equal_translations_do_not_differ_by_chance(tried):
    record = compare_trial(dataclasses.replace(tried, baseline=tried.system, seeds=("1",)), samples=20)
    assert record["runs"][0]["system"]["p"] < 1  # a better one than the baseline of that name
    for name in ("dev", "test"):
        same = (tried.baseline.folder / "decode" / f"baseline.1.{name}.fr").read_text()
        (tried.system.folder / "decode" / f"rnn.1.{name}.fr").write_text(same)
    record = compare_trial(dataclasses.replace(tried, seeds=("1",)), samples=20)
    assert (record["runs"][0]["system"]["test_p"], record["runs"][0]["system"]["p"]) == (1.0, 1.0)


def test_a_missing_translation_is_named(tried):
    (tried.system.folder / "decode" / "rnn.2.dev.fr").write_text("one line\n")
    with pytest.raises(InputError, match="rnn, seed 2: expected 60 lines of dev, found 1"):
        compare_trial(tried, samples=20)


def test_without_a_log_there_is_no_history(tmp_path):
    assert read_history(tmp_path) == []
    save_log(tmp_path / "odd", ["[1]", "\u00e9", '{"seconds": 1}'])
    assert read_history(tmp_path / "odd") == [{"seconds": 1}]
