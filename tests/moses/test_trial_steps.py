"""What make has to do for a plan: which folders, which variables, and what is shared."""

import json

import pytest

from moses_rnn.cli.plan_options import plan_options
from moses_rnn.formats.plans import read_plan
from moses_rnn.moses.trial_steps import SETTINGS_FILE, Steps, changed_settings
from tests.trials import PLAN, write_plan


@pytest.fixture
def steps_of(tmp_path):
    """The steps of a changed plan."""

    def made(*changes):
        plan = PLAN
        for old, new in changes:
            assert old in plan
            plan = plan.replace(old, new)
        return Steps(read_plan(write_plan(tmp_path, plan), plan_options()))

    return made


def test_what_trials_share_is_made_once(steps_of):
    steps = steps_of()
    names = [step.name for step in steps.in_order(steps.trials)]
    assert len(names) == len(set(names)) == 12
    assert names[:4] == ["texts and table", "baseline, mert", "network of plain, seed 1", "plain"]
    assert names[-4:] == [
        "network of pair, seed 2",
        "network of pair, seed 1, inverse",
        "network of pair, seed 2, inverse",
        "pair",
    ]
    plain, *_, pair = steps.chosen(())
    assert plain.networks[0].folder == pair.networks[0].folder
    assert [each.trial.name for each in steps.chosen(["pair"])] == ["pair"]
    needed = {step.folder for step in steps.in_order(steps.trials)}
    assert all(needed.issuperset(step.needs) for step in steps.in_order(steps.trials))


def test_variables_are_the_pipelines(steps_of, tmp_path):
    steps = steps_of(('MOSES_ROOT = "PLACE/moses"', 'MOSES_ROOT = "m"\nTHREADS = 2\nNBEST = 50'))
    base, (*_, pair) = steps.base, steps.trials
    assert base.targets == ("baseline", *(f"{base.folder}/done/{name}" for name in ("dev", "one", "two")))
    assert base.variables["TEST"] == f"{tmp_path}/data/one {tmp_path}/data/two"
    assert (base.variables["TOKENISED"], base.variables["THREADS"]) == ("yes", "2")
    given = pair.system.variables
    assert given["TEST"] == f"{base.folder}/corpus/one {base.folder}/corpus/two"
    assert (given["TUNER"], given["SEEDS"], given["NBEST"], given["MOSES_ROOT"]) == ("mert", "1 2", "50", "m")
    direct, other, inverse, last = (step.model for step in pair.networks)
    assert given["MODEL"] == str(direct)
    assert given["SCORE_FLAGS"] == (
        f"--model {other} --inverse-model {inverse} --inverse-model {last} --combine mean-log"
    )
    assert pair.networks[-1].variables["TRAIN_FLAGS"] == "--hidden-size=64 --seed=2 --inverse"
    assert pair.system.words[:2] == ["decode-rnn", f"WORK={pair.system.folder}"]


def test_a_corpus_gives_the_table_of_its_own(steps_of):
    corpus = (
        'PHRASE_TABLE = "PLACE/data/phrase-table.gz"\nBASELINE_INI = "PLACE/data/moses.ini"',
        'TRAIN = "t"\nORDER = 3',
    )
    steps = steps_of(corpus)
    assert (steps.base.variables["TRAIN"], steps.base.variables["ORDER"]) == ("t", "3")
    network = steps.trials[0].networks[0].variables
    assert network["PHRASE_TABLE"] == f"{steps.base.folder}/model/phrase-table.gz"
    assert network["BASELINE_INI"] == f"{steps.base.folder}/baseline/moses.ini"
    assert not {"TRAIN", "ORDER"} & network.keys()


def folders(steps):
    plain = steps.trials[0]
    return [step.folder.name for step in (steps.base, plain.baseline, plain.networks[0], plain.system)]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("seeds = [1, 2]", "seeds = [1, 2, 9]"), [True, True, True, True]),  # more of the same
        (('"PLACE/moses"', '"/elsewhere"\nTHREADS = 3'), [True, True, True, True]),  # where, and not what
        (("hidden-size = 64", "hidden-size = 32"), [True, True, False, False]),
        (("[every]", '[every]\ntuner = "mira"'), [True, False, True, False]),
        (("[every]", 'DECODER_FLAGS = "-search-algorithm 1"\n[every]'), [True, False, True, False]),
        (("[every]", '[every]\nscore = {precision = "bf16"}'), [True, True, True, False]),
        (("data/dev", "data/other"), [False, False, False, False]),
    ],
)
def test_folders_are_of_settings_that_decide_what_is_in_them(steps_of, change, same):
    assert [a == b for a, b in zip(folders(steps_of()), folders(steps_of(change)), strict=True)] == same


def test_changed_settings_are_named_with_what_they_were(steps_of):
    before, after = (steps_of(*changes).trials[0] for changes in ([], [("hidden-size = 64", "hidden-size = 32")]))
    assert list(changed_settings(after.system)) == []
    before.system.folder.mkdir(parents=True)
    (before.system.folder / SETTINGS_FILE).write_text(json.dumps(before.system.settings))
    (before.system.folder.parent / "plain.0123456789").mkdir()  # without a record
    (text,) = changed_settings(after.system)
    assert text == (
        'plain: the plan has changed, so this runs anew (train was [["--hidden-size=64", "--seed=1"]], is '
        f'[["--hidden-size=32", "--seed=1"]]); what was made before is in {before.system.folder}'
    )
    assert list(changed_settings(before.system)) == []  # which is there
    assert list(changed_settings(after.networks[0])) == []  # networks have no names to be known by
