import math

import pytest

from moses_rnn.analysis import results
from moses_rnn.analysis.results import System, compare_systems, format_table, list_warnings, odd_weights
from moses_rnn.errors import InputError

REFERENCES = ["the old man sleeps here .", "a dog runs over the green hill .", "two women walk home together ."] * 20
WORSE = [line.replace("sleeps", "sleeping").replace("runs over", "runs on") for line in REFERENCES]
INI = "[feature]\nKENLM name=LM0\n[weight]\nTranslationModel0= {}\nLM0= 0.5\n"


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


@pytest.fixture
def work(tmp_path):
    """What the pipeline leaves of a baseline that errs, and of a system that does not."""
    for name in ("dev", "test"):
        write(tmp_path / "corpus" / f"{name}.fr", REFERENCES)
        for seed in "12":
            for system, lines, weights in (("baseline", WORSE, "0.1 0.2"), ("rnn", REFERENCES, "0.1 0.2 0.00001")):
                stem = f"{system}.{seed}.{name}"
                write(tmp_path / "decode" / f"{stem}.fr", lines)
                segments = [f"{line} |0-{len(line.split()) - 1}| " for line in lines]
                write(tmp_path / "decode" / f"{stem}.segments", segments)
                write(tmp_path / "tune" / f"{system}.{seed}" / "moses.ini", [INI.format(weights)])
    return tmp_path


def compare(work, systems=("baseline", "rnn"), seeds="12", tests=("test",), samples=50):
    return compare_systems(work, "fr", tests, systems, seeds, samples)


def test_systems_are_compared(work):
    comparison = compare(work, samples=100)
    rnn, baseline = comparison["systems"]["rnn"], comparison["systems"]["baseline"]
    assert (rnn["test_BLEU"]["mean"], rnn["test_BLEU"]["sd"]) == (pytest.approx(100), 0)
    assert baseline["test_BLEU"]["mean"] < 90
    assert [run["p"] <= 0.01 for run in rnn["runs"]] == [True, True]
    assert [run["phrases_chosen_differently"] for run in rnn["runs"]] == [pytest.approx(2 / 3)] * 2
    assert [run["sentences_different"] for run in rnn["runs"]] == [pytest.approx(2 / 3)] * 2
    assert rnn["runs"][0]["weights"] == {"TranslationModel0": [0.1, 0.2, 0.00001], "LM0": [0.5]}
    assert list(list_warnings(comparison)) == [
        f"rnn, seed {seed}: TranslationModel0 2: weight 1e-05: tuning hardly uses it, or it is constant"
        for seed in "12"
    ]


def test_words_that_are_no_utf_8_differ(work):
    for name, byte in (("corpus/test", b"\xe9"), ("decode/rnn.1.test", b"\xe8")):
        path = work / f"{name}.fr"
        path.write_bytes(path.read_bytes().replace(b"old", b"\xff" + byte))
    assert compare(work, seeds="1")["systems"]["rnn"]["test_BLEU"]["mean"] < 99


def test_words_are_parted_at_blanks_alone(work):
    write(work / "decode" / "rnn.1.test.fr", [line.replace(" here", "\u00a0here") for line in REFERENCES])
    assert compare(work, seeds="1")["systems"]["rnn"]["test_BLEU"]["mean"] < 99


def test_a_signature_that_gives_another_bleu_is_explained(work):
    explanation = "sacreBLEU ends them there too, so it gives another BLEU"
    assert explanation not in "\n".join(format_table(compare(work, seeds="1")))
    path = work / "decode" / "rnn.1.test.fr"
    path.write_text(path.read_text().replace("old man", "old\u00a0man"))
    assert explanation in "\n".join(format_table(compare(work, seeds="1")))


def test_a_weight_that_is_no_number_is_null(work):
    write(work / "tune" / "rnn.1" / "moses.ini", [INI.format("0.1 nan")])
    comparison = compare(work, seeds="1")
    assert comparison["systems"]["rnn"]["runs"][0]["weights"]["TranslationModel0"] == [0.1, None]
    assert "rnn, seed 1: TranslationModel0 1: weight nan: this tuning failed" in list_warnings(comparison)


@pytest.mark.parametrize("twice", [{"seeds": "121"}, {"systems": ["baseline", "rnn", "baseline"]}, {"tests": ["dev"]}])
def test_nothing_counts_twice(work, twice):
    with pytest.raises(InputError, match="expected each (system|seed|set) once, found "):
        compare(work, **twice)


def test_a_tuning_that_kept_the_weights_it_began_with(work):
    ini = work / "tune" / "baseline.2" / "moses.ini"
    ini.write_text("# BLEU 0.1998 on dev dev.en\n# We were before running iteration 1\n" + ini.read_text())
    kept = "no round of tuning beat the starting weights on dev, so they were kept: try another tuner"
    assert list(list_warnings(compare(work, ["baseline"]))) == [f"baseline, seed 2: {kept}"]


def test_a_network_that_translates_by_itself(work, monkeypatch):
    monkeypatch.setattr(results, "read_systems", lambda: {"nmt": System("self", "NMT")})
    for path in (work / "decode").glob("rnn.*.fr"):
        path.rename(path.with_name(path.name.replace("rnn.", "nmt.")))
    comparison = compare(work, ["baseline", "nmt"])
    runs = comparison["systems"]["nmt"]["runs"]
    assert [(run["phrases_chosen_differently"], run["weights"], run["warnings"]) for run in runs] == [
        (None, {}, [])
    ] * 2
    line = list(format_table(comparison))[3]
    assert line.startswith("| NMT | 100.00 ± 0.00 |")
    assert line.endswith("|  |")


def test_missing_and_short_files_are_named(work):
    write(work / "decode" / "rnn.2.test.fr", ["one line"])
    with pytest.raises(InputError, match=r"decode/rnn.2.test.fr: expected 60 lines, as the references have, found 1"):
        compare(work)
    write(work / "decode" / "rnn.1.test.segments", ["one |0-0|"])
    with pytest.raises(InputError, match=r"rnn.1.test.segments: expected 60 lines, as the references have, found 1"):
        compare(work, seeds="1")
    with pytest.raises(InputError, match=r"tune/rnn.3/moses.ini: expected a file that the pipeline made"):
        compare(work, ["rnn"], "3")


def test_an_empty_reference_is_refused(work):
    for path in (work / "corpus" / "test.fr", *(work / "decode").glob("*.test.*")):
        path.write_text("")
    with pytest.raises(InputError, match=r"corpus/test.fr: expected sentences, found none$"):
        compare(work)


def test_a_row_of_other_columns_is_refused(monkeypatch, tmp_path):
    (tmp_path / "systems").write_text("# rows\nbaseline  table  -  -  -\n")
    monkeypatch.setattr(results, "shipped_file", tmp_path.joinpath)
    with pytest.raises(InputError, match=r"systems:2: expected 6 columns, found 5$"):
        results.read_systems()


@pytest.mark.parametrize(
    ("weights", "warnings"),
    [
        ({"A": [0.5, -0.2]}, []),
        ({"A": [0.2, 0.0004], "UnknownWordPenalty0": [1.0]}, []),
        ({"A": [math.nan], "B": [1.0]}, ["A 0: weight nan: this tuning failed"]),
    ],
)
def test_odd_weights(weights, warnings):
    assert list(odd_weights(weights)) == warnings


def test_several_test_sets_have_columns_of_their_own(work):
    for path in [*(work / "decode").glob("*.test.*"), work / "corpus" / "test.fr"]:
        path.with_name(path.name.replace("test", "later")).write_text(path.read_text())
    for suffix in ("fr", "segments"):
        better = work / "decode" / f"rnn.1.later.{suffix}"
        better.write_text((work / "decode" / f"baseline.1.later.{suffix}").read_text())
    comparison = compare(work, tests=("test", "later"))
    first, second = comparison["systems"]["rnn"]["runs"]
    assert (first["test_p"] <= 0.02, first["p"] <= 0.02) == (True, True)
    assert first["later_BLEU"] == comparison["systems"]["baseline"]["runs"][0]["later_BLEU"] < second["later_BLEU"]
    shares = [run["phrases_chosen_differently"] for run in (first, second)]
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    lines = list(format_table(comparison))
    assert lines[0].startswith(
        "| system | dev BLEU | test BLEU | against Baseline | p by seed | later BLEU | against Baseline | p by seed | p, all"
    )
    assert {line.count("|") for line in lines[:4]} == {12}
    assert "; 60, 60 and 60 sentences;" in lines[-1]


def test_systems_on_lists_are_marked(work):
    for ini in (work / "tune").glob("rnn.?/moses.ini"):
        ini.write_text("[weight]\nTranslationModel0= 0.1\n")
    lines = list(format_table(compare(work, seeds="1")))
    assert lines[3].startswith("| +RNN* |")
    assert lines[-1].startswith("* The CSLM (and WP) and sentence networks rescored n-best lists")
