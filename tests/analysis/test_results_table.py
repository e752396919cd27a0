"""The comparison of systems as a table."""

import pytest

from moses_rnn.analysis import runs
from moses_rnn.analysis.results import compare_systems
from moses_rnn.analysis.results_table import format_table
from moses_rnn.analysis.runs import Place
from moses_rnn.formats.systems import System


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


def test_a_network_that_translates_by_itself(work, monkeypatch):
    """The table names it as its folder does, with no phrases."""
    monkeypatch.setattr(runs, "read_systems", lambda: {"nmt": System("nmt", "self", "NMT")})
    for path in (work / "decode").glob("rnn.*.fr"):
        path.rename(path.with_name(path.name.replace("rnn.", "nmt.")))
    lines = list(format_table(compare_systems(Place(work, "fr"), ["baseline", "nmt"], ["1", "2"], samples=20)))
    assert lines[3].startswith("| nmt | 100.00 ± 0.00 |")
    assert lines[3].endswith("|  |")


def test_a_table_extended_is_said_to_have_the_weights_of_another(work):
    for path in (work / "decode").glob("rnn.*"):
        path.rename(path.with_name(path.name.replace("rnn.", "rnn-extended.")))
    (work / "tune" / "rnn.1").rename(work / "tune" / "rnn-extended.1")
    lines = list(format_table(compare_systems(Place(work, "fr"), ["baseline", "rnn-extended"], ["1"], samples=20)))
    assert lines[3].startswith("| +RNN+extended |")
    assert lines[-1].startswith("+RNN+extended: the table of the system without it, with phrase pairs")


def test_systems_that_translate_by_themselves_are_named(work):
    for path in (work / "decode").glob("rnn.*.fr"):
        path.rename(path.with_name(path.name.replace("rnn.", "rnnsearch.")))
    lines = list(format_table(compare_systems(Place(work, "fr"), ["baseline", "rnnsearch"], ["1"], samples=20)))
    assert lines[3].startswith("| RNNsearch | 100.00 |")
    assert lines[3].endswith("|  |")  # no phrases
    assert lines[6].startswith("RNNsearch: without Moses; a seed is that of a network,")
