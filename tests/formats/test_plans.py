"""Plans of trials as they are read: what they come to, and what is refused and where."""

import pytest

from moses_rnn.cli.plan_options import plan_options
from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.plans import read_plan
from tests.commands import ROOT

HEAD = """seeds = [4, 5]
[pipeline]
SRC = "en"
TRG = "fr"
TRAIN = "data/train"
DEV = "data/dev"
TEST = "data/test"
"""
EVERY = """[every]
tuner = "mira"
train = {preset = "small", hidden-size = 64}
"""


@pytest.fixture
def read(tmp_path):
    """Reads a text as a plan."""

    def reading(text):
        (tmp_path / "my.toml").write_text(text)
        return read_plan(tmp_path / "my.toml", plan_options())

    return reading


def test_a_trial_has_the_settings_of_every_one_but_for_its_own(read):
    plan = read(
        HEAD + EVERY + '[[trial]]\nname = "a"\n[[trial]]\nname = "b"\ninverse = true\nseeds = [7]\n'
        "networks = [3, 1]\ncombine = 'columns'\nscore = {word-penalty = true, native = false, precision = 'bf16'}\n"
        "train.hidden-size = 32\ntrain.dropout = 0.5\n"
    )
    assert (str(plan.work), plan.tests, plan.pipeline["TRAIN"]) == ("my", ("test",), "data/train")
    first, second = plan.trials
    assert first.train == ("--hidden-size=64", "--preset=small")
    assert (first.networks, first.combine, first.inverse, first.tuner, first.seeds) == (
        (1,),
        "mean-log",
        False,
        "mira",
        (4, 5),
    )
    assert first.own == {}
    assert second.train == ("--dropout=0.5", "--hidden-size=32", "--preset=small")
    assert second.score == ("--no-native", "--precision=bf16", "--word-penalty")
    assert (second.networks, second.combine, second.inverse, second.seeds) == ((3, 1), "columns", True, (7,))
    assert second.own["train.dropout"] == 0.5


def test_a_grid_is_a_trial_for_each_combination(read):
    plan = read(
        HEAD + '[[trial]]\nname = "g"\ntrain.dropout = 0.1\n[trial.grid]\ntrain = {hidden-size = [8, 16]}\n'
        "inverse = [false, true]\nnetworks = [[1], [1, 2]]\n"
    )
    assert [trial.name for trial in plan.trials][:3] == ["g-8-no-inverse-1", "g-8-no-inverse-1+2", "g-8-inverse-1"]
    assert len(plan.trials) == 8
    last = plan.trials[-1]
    assert (last.train, last.inverse, last.networks) == (("--dropout=0.1", "--hidden-size=16"), True, (1, 2))


def test_several_test_sets_are_called_by_their_names(read):
    plan = read(HEAD.replace('"data/test"', '["data/one", "more/two"]') + '[[trial]]\nname = "a"\n')
    assert (plan.tests, plan.pipeline["TEST"]) == (("one", "two"), "data/one more/two")


def test_a_table_may_take_the_place_of_a_corpus(read):
    given = HEAD.replace('TRAIN = "data/train"', 'PHRASE_TABLE = "t.gz"\nBASELINE_INI = "moses.ini"')
    assert "TRAIN" not in read(given + '[[trial]]\nname = "a"\n').pipeline


def test_the_example_has_a_dozen_trials_that_differ():
    plan = read_plan(ROOT / "examples" / "trials.toml", plan_options())
    assert len(plan.trials) >= 12
    settings = {(t.train, t.score, t.networks, t.combine, t.inverse, t.tuner) for t in plan.trials}
    assert len(settings) == len(plan.trials)


TRIAL = '[[trial]]\nname = "a"\n'
REFUSED = {
    "no trial": (HEAD, "my.toml: expected at least one [[trial]], found none"),
    "not TOML": (HEAD + "TUNER =\n", "my.toml:8: expected TOML, found Invalid value"),
    "an unknown key": ("sedes = [1]\n" + HEAD + TRIAL, "my.toml:1: expected one of work, seeds, pipeline, every, trial, found sedes"),
    "an unknown variable": (HEAD + "ODER = 3\n" + TRIAL, "my.toml:8: expected in [pipeline] one of SRC, TRG, TRAIN,"),
    "a variable of the harness": (HEAD + 'TUNER = "mira"\n' + TRIAL, "THREADS, found TUNER"),
    "no SRC": (HEAD.replace('SRC = "en"', "") + TRIAL, "my.toml:2: expected in [pipeline] SRC, found none"),
    "half a start": (HEAD + 'PHRASE_TABLE = "t"\n' + TRIAL, "my.toml:2: expected in [pipeline] BASELINE_INI, found none"),
    "what make would expand": (HEAD + 'LM_FLAGS = "$(x)"\n' + TRIAL, "my.toml:8: expected in [pipeline] LM_FLAGS to be integers, or texts without quotes"),
    "a command": (HEAD + 'THREADS = "1; touch x"\n' + TRIAL, "my.toml:8: expected in [pipeline] THREADS to be an integer, found '1; touch x'"),
    "another file": (HEAD.replace("data/dev", "a$(x)") + TRIAL, "my.toml:6: expected in [pipeline] DEV to be a text without blanks, quotes"),
    "a quote in an option": (HEAD + TRIAL + "train.source-embeddings = \"a'b\"\n", "my.toml:10: expected in [[trial]] 1 train.source-embeddings to be a text without blanks, quotes"),
    "no name": (HEAD + "[[trial]]\ninverse = true\n", "my.toml:8: expected in [[trial]] 1 a name, found none"),
    "a path as a name": (HEAD + '[[trial]]\nname = "a/b"\n', "my.toml:9: expected in [[trial]] 1 name to be a name of letters, digits"),
    "two of a name": (HEAD + TRIAL + TRIAL, "my.toml: expected trials of different names, found 2 named a"),
    "an unknown setting": (HEAD + TRIAL + TRIAL.replace('"a"', '"b"') + "dropout = 1\n", "my.toml:12: expected in [[trial]] 2 one of train, score, networks, combine, inverse, tuner, seeds, found dropout"),
    "an unknown option": (HEAD + EVERY.replace("preset", "prset") + TRIAL, "my.toml:10: expected in [every] train.prset to be an option of moses-rnn-train that a trial may have, found --prset"),
    "an option of the harness": (HEAD + TRIAL + "train.seed = 3\n", "train.seed to be an option of moses-rnn-train that a trial may have, found --seed"),
    "a value out of range": (HEAD + TRIAL + "train.hidden-size = 0\n", "my.toml:10: expected in [[trial]] 1 train.hidden-size to be what moses-rnn-train --hidden-size takes, found 0: 0 is not in the range x>=1."),
    "a switch that is a text": (HEAD + TRIAL + 'score = {word-penalty = "yes"}\n', "my.toml:10: expected in [[trial]] 1 score.word-penalty to be true or false, found 'yes'"),
    "what a shell would expand": (HEAD + TRIAL + "train.source-embeddings = 'a b'\n", "to be a text without blanks, quotes or other characters that make or a shell treats specially, found 'a b'"),
    "no such tuner": (HEAD + TRIAL + 'tuner = "pro"\n', "my.toml:10: expected in [[trial]] 1 tuner to be one of mert, mira, found 'pro'"),
    "a seed twice": (HEAD + TRIAL + "networks = [1, 1]\n", "networks to be a list of different integers from 0 to below 2^31, found [1, 1]"),
    "a truth that is none": (HEAD + TRIAL + "inverse = 1\n", "inverse to be true or false, found 1"),
    "a grid of nothing": (HEAD + TRIAL + "grid = {inverse = true}\n", "my.toml:10: expected in [[trial]] 1 grid.inverse to be a list of values, found True"),
    "a grid with a bad value": (HEAD + TRIAL + "[trial.grid.train]\ndropout = [0.5, 7]\n", "my.toml:11: expected in [[trial]] 1 train.dropout to be what"),
    "a trial that is a text": (HEAD.replace("seeds = [4, 5]", 'trial = ["a"]'), "trial to be a table, found 'a'"),
    "trials that are none": (HEAD.replace("seeds = [4, 5]", "trial = 3"), "my.toml:1: expected trial to be tables, each [[trial]], found 3"),
    "a folder with blanks": ('work = "a b"\n' + HEAD + TRIAL, "my.toml:1: expected work to be a text without blanks, quotes or other characters that make or a shell treats specially, found 'a b'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plan_is_refused(read, text, message):
    with pytest.raises(FormatError) as error:
        read(text)
    assert message in str(error.value)


def test_the_name_of_the_plan_is_its_folder_and_so_no_command_either(tmp_path):
    (tmp_path / "a;b.toml").write_text(HEAD + TRIAL)
    with pytest.raises(FormatError, match=r"a;b.toml: expected work to be a text without .*, found 'a;b'"):
        read_plan(tmp_path / "a;b.toml", plan_options())


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing.toml: expected a plan, found: No such file"):
        read_plan(tmp_path / "nothing.toml", plan_options())
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="bytes.toml: expected UTF-8, found"):
        read_plan(tmp_path / "bytes.toml", plan_options())
