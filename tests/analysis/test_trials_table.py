"""Trials as a table."""

from moses_rnn.analysis.trials_table import format_trials


def run(seed, baseline, system, p):
    """Scores of two sets, the second a point better than the first; all figures are made up."""
    both = [{"dev_BLEU": x + 5, "one_BLEU": x, "two_BLEU": x + 1, "all_BLEU": x + 0.5} for x in (baseline, system)]
    return {
        "seed": seed,
        "baseline": both[0],
        "system": both[1] | {"one_p": p, "two_p": p / 2, "p": p / 4},
        "signature": "sig",
    }


def record(name, tuner="mira", nats=1.25, settings=None, gain=1.0):
    runs = [run("1", 50.0, 50.0 + gain, 0.04), run("2", 52.0, 52.0 + gain, 0.2)]
    return {
        "name": name,
        "tuner": tuner,
        "settings": settings or {},
        "held_out_nats": nats,
        "minutes": 59.6,
        "runs": runs,
    }


def test_each_tuner_has_its_baseline_and_what_failed_comes_last():
    records = [
        record("a"),
        record("m", "mert", None),
        record("b", settings={"networks": (1, 2), "inverse": True}, gain=-0.25),
    ]
    lines = list(format_trials(records, ["one", "two"], 100, {"c": "failed: network of c"}))
    assert lines[0] == (
        "| trial | tuner | held-out nats | minutes | dev BLEU | one BLEU | Δ | p by seed | two BLEU | Δ | p by seed | "
        "Δ, all sets | p by seed, all sets | settings |"
    )
    baseline = "| 56.00 ± 1.41 | 51.00 ± 1.41 |  |  | 52.00 ± 1.41 |  |  |  |  |  |"
    assert lines[2] == f"| Baseline | mira |  |  {baseline}"
    assert lines[3] == (
        "| a | mira | 1.250 | 60 | 57.00 ± 1.41 | 52.00 ± 1.41 | +1.00 | 0.040, 0.200 | 53.00 ± 1.41 | +1.00 | "
        "0.020, 0.100 | +1.00 | 0.010, 0.050 |  |"
    )
    assert lines[4].startswith("| b | mira | ")
    assert lines[4].endswith(" | -0.25 | 0.010, 0.050 | networks 1+2, inverse true |")
    assert lines[5] == f"| Baseline | mert |  |  {baseline}"
    assert lines[6].startswith("| m | mert |  | 60 |")
    assert lines[7].startswith("| c | failed: network of c |  |")
    assert {line.count("|") for line in lines[:8]} == {15}
    assert lines[-1].endswith("; sig")
    assert "paired bootstrap of 100 samples" in lines[-1]


def test_a_single_set_and_a_single_seed():
    one = record("a")
    one["runs"] = one["runs"][:1]
    lines = list(format_trials([one], ["one"], 100))
    assert "all sets" not in lines[0]
    assert lines[3] == "| a | mira | 1.250 | 60 | 56.00 | 51.00 | +1.00 | 0.040 |  |"


def test_without_any_that_is_done_there_is_a_table_all_the_same():
    lines = list(format_trials([], ["one"], 100, {"a": "not done"}))
    assert lines[2].startswith("| a | not done |")
    assert len(lines) == 3
