"""What a ranker learns from: corruptions, the loss, the held-out figure; and a training from table to scores."""

import dataclasses
import gzip
import json
import math

import numpy as np
import pytest
import torch

from moses_rnn.cli import nbest, score
from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.ranker import RANKER, Ranker, RankerConfig
from moses_rnn.producers.open import open_model
from moses_rnn.training import ranking
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.ranking import CORRUPTIONS, HELD_OUT, RankedPairs, corrupted, hashes_of
from moses_rnn.training.run import train_phrase_model
from moses_rnn.training.threads import Threads
from tests.models import reference_ranker as reference
from tests.models.networks import weights_of, with_large_weights
from tests.training.small import FAST, never, phrase_request
from tests.training.texts import Listener

NULL = 9
TARGETS = np.array([[2, 3, NULL], [5, NULL, NULL], [4, 0, 8], [6, 7, 0]])
LENGTHS = np.array([2, 1, 3, 3])


# --- corruptions --------------------------------------------------------------------------------------------------------


TIMES = 4000


def many_corruptions(*, last_only):
    """Of each target; times × targets × slots."""
    targets, lengths = np.tile(TARGETS, (TIMES, 1)), np.tile(LENGTHS, TIMES)
    result = corrupted(targets, lengths, hashes_of(np.arange(len(targets)), 1), NULL, last_only=last_only)
    return result.reshape(TIMES, *TARGETS.shape)


@pytest.mark.parametrize("last_only", [True, False])
def test_a_corruption_replaces_one_word_by_another_of_the_shortlist(last_only):
    result = many_corruptions(last_only=last_only)
    changed = result != TARGETS
    assert (changed.sum(2) == 1).all()
    assert ((result[changed] >= 2) & (result[changed] < NULL)).all()
    places = [np.flatnonzero(of_target).tolist() for of_target in changed.any(0)]
    assert places == ([[1], [0], [2], [2]] if last_only else [[0, 1], [0], [0, 1, 2], [0, 1, 2]])


def test_each_other_word_is_as_likely_and_each_place_too():
    drawn = many_corruptions(last_only=True)
    for_a_word, for_unknown = (np.bincount(drawn[:, i, LENGTHS[i] - 1], minlength=NULL) for i in (1, 3))
    assert for_a_word[[0, 1, 5]].tolist() == [0, 0, 0]
    assert for_a_word[[2, 3, 4, 6, 7, 8]].min() > TIMES / 6 - 110  # 4.6 standard deviations
    assert for_unknown[[0, 1]].tolist() == [0, 0]  # no word is replaced by <unk>
    assert for_unknown[2:].min() > TIMES / 7 - 105
    changed = (many_corruptions(last_only=False) != TARGETS).sum(0)
    assert np.abs(changed[2] - TIMES / 3).max() < 140


def test_two_words_replace_each_other():
    targets = np.array([[2], [3]])
    for seed in range(20):
        result = corrupted(targets, np.array([1, 1]), hashes_of(np.arange(2), seed), 4, last_only=True)
        assert result.tolist() == [[3], [2]]


def test_a_corruption_follows_from_its_pair_seed_and_step_alone():
    rows = np.array([7, 3, 12])
    assert hashes_of(rows, 1, 5, 0)[1] == hashes_of(np.array([3]), 1, 5, 0)[0]
    every = [hashes_of(rows, *seeds)[0] for seeds in ((1, 5, 0), (1, 6, 0), (2, 5, 0), (1, 5, 1))]
    assert len({*every, hashes_of(rows, 1, 5, 0)[2]}) == 5


# --- the task -----------------------------------------------------------------------------------------------------------


def task(corpus, scale=1.0, corrupt="last", **changes):
    config = RankerConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), 5, 4, 6, corrupt)
    model = with_large_weights(Ranker(config, seed=None), scale)
    return RankedPairs(model, corpus, dataclasses.replace(FAST, **changes))


def scalar_figures(learned, corpus, rows, seeds):
    """Losses of pairs and whether they are ranked wrong, number by number, of the corruptions that the seeds make."""
    weights, slots = weights_of(learned.model), 5
    losses, wrong = [], []
    for row, targets in zip(rows, corrupted_ids(learned, corpus, rows, seeds), strict=True):
        x, y = (side.take(np.array([row]))[0].tolist() for side in (corpus.source, corpus.target))
        losses.append(reference.loss(weights, x, y, targets, slots))
        wrong.append(reference.score(weights, x, y, slots) <= reference.score(weights, x, targets, slots))
    return losses, wrong


def corrupted_ids(learned, corpus, rows, seeds):
    _, targets, lengths = learned._slotted(rows)
    result = learned._corrupted(targets, lengths, hashes_of(rows, *seeds))
    return [line[:length].tolist() for line, length in zip(result, lengths, strict=True)]


@pytest.mark.parametrize("corrupt", ["last", "any"])
def test_loss_and_held_out_figure_are_the_scalar_ones(corpus, corrupt, monkeypatch):
    monkeypatch.setattr(ranking, "EVALUATION_PAIRS", 30)
    learned, rows = task(corpus, corrupt=corrupt), corpus.training[:16]
    losses, _ = scalar_figures(learned, corpus, rows, (FAST.seed, 3, ranking.LEARNING))
    cost = learned.cost(rows, 3)
    assert (cost.nats, cost.tokens) == (pytest.approx(sum(losses), rel=1e-4), 16)
    assert cost.objective.item() == cost.nats
    every = [scalar_figures(learned, corpus, corpus.held_out, (FAST.seed, n, HELD_OUT)) for n in range(CORRUPTIONS)]
    figures = learned.held_out(Threads(2))
    assert figures["hinge_per_pair"] == pytest.approx(np.mean([losses for losses, _ in every]), rel=1e-4)
    assert figures["ranked_wrong"] == pytest.approx(np.mean([wrong for _, wrong in every]), abs=1e-9)
    assert figures["ranked_right"] == 1 - figures["ranked_wrong"]
    assert learned.held_out(Threads()) == pytest.approx(figures)


def test_parts_of_a_minibatch_have_the_corruptions_of_the_whole(corpus):
    learned, rows = task(corpus), corpus.training[:16]
    parts = [learned.cost(rows[part::3], 5, part).nats for part in range(3)]
    assert sum(parts) == pytest.approx(learned.cost(rows, 5).nats, rel=1e-5)
    assert learned.cost(rows, 5).nats != learned.cost(rows, 6).nats


def test_dropout_leaves_the_same_units_out_of_a_pair_and_its_corruption(corpus):
    learned = task(corpus, scale=0.0, dropout=0.5)
    with torch.no_grad():
        learned.model.b_1.fill_(1.0)
        learned.model.w.fill_(1.0)
    assert learned.cost(corpus.training[:16], 1).nats == 16.0  # equal scores: the margin alone
    with_large_weights(learned.model)
    assert learned.cost(corpus.training[:16], 1).nats == learned.cost(corpus.training[:16], 1).nats


def test_a_score_that_is_no_number_is_no_success(corpus):
    learned = task(corpus)
    with torch.no_grad():
        learned.model.b_2.fill_(math.nan)
    assert math.isnan(learned.held_out(Threads())["ranked_wrong"])


def test_a_single_target_word_has_no_other(tmp_path):
    pairs = [(b"a", b"x"), (b"b", b"x x")]
    corpus = build_corpus(pairs, tmp_path, CorpusConfig(held_out_pairs=1))
    with pytest.raises(InputError, match="expected two target words at least, of which one can replace the other"):
        task(corpus)


# --- from a table to scores ---------------------------------------------------------------------------------------------

SIZES = {"hidden_size": 16, "embedding_size": 8, "maxout_size": None, "output_rank": None, "slots": 3}
LEARNING = {"learning_rate": 0.02, "batch_size": 16, "max_epochs": 10, "patience": 99, "held_out": 60}


def request(table, **changes):
    return phrase_request(table, **{**SIZES, **LEARNING, "architecture": "ranker", "max_length": 0, **changes})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Word s3 is translated by t3; and two pairs are too long for three slots."""
    random = np.random.default_rng(0)
    words = [random.integers(8, size=random.integers(1, 4)) for _ in range(600)]
    lines = [b"%b ||| %b ||| 0.5\n" % tuple(b" ".join(b"%c%d" % (c, i) for i in ids) for c in b"st") for ids in words]
    lines += [b"s0 s1 s2 s3 ||| t1 ||| 0.5\n", b"s0 ||| t1 t2 t3 t4 ||| 0.5\n"]
    path = tmp_path_factory.mktemp("ranker") / "table"
    path.write_bytes(b"".join(lines))
    return path


@pytest.fixture(scope="module")
def model(table):
    """A ranker that has learned the table."""
    listener = Listener()
    outcome = train_phrase_model(request(table), table.parent / "m", listener, never)
    assert outcome.progress.best < 0.1
    assert outcome.verdict.name != "learned nothing"
    assert any("2 pairs longer than --max-length" in line for line in listener.description)
    assert not any("unigram" in line for line in listener.description)
    return table.parent / "m"


def test_any_word_can_be_learned_from(table, tmp_path):
    outcome = train_phrase_model(request(table, corrupt="any"), tmp_path / "m", Listener(), never)
    assert outcome.progress.best < 0.15


def test_a_checkpoint_says_how_well_it_ranks(model):
    checkpoint = load_checkpoint(model, RANKER)
    assert (checkpoint.held_out_nats, checkpoint.rival_cost) == (None, 0.5)
    history = checkpoint.provenance["history"]
    assert checkpoint.held_out_cost == min(step["ranked_wrong"] for step in history) < 0.1
    assert all(step["ranked_right"] == 1 - step["ranked_wrong"] for step in history)
    assert checkpoint.model.config.corrupt == "last"


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_stopped_training_ends_with_the_same_weights(table, tmp_path, dropout):
    def after(steps):
        left = iter(range(steps))
        return lambda: next(left, None) is None

    options = {"max_epochs": 2, "dropout": dropout, "corrupt": "any"}
    for folder, stops in (("at-once", [never]), ("in-parts", [after(11), after(23), never])):
        for stop in stops:
            train_phrase_model(request(table, **options), tmp_path / folder, Listener(), stop)
    whole, parts = (load_checkpoint(tmp_path / name, RANKER).model for name in ("at-once", "in-parts"))
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, parts.state_dict()[name]), name
    with pytest.raises(CheckpointError, match="corrupt 'any', now 'last'"):
        train_phrase_model(request(table, **{**options, "corrupt": "last"}), tmp_path / "at-once", Listener(), never)


def run(main, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == code


TABLE = b"s1 s2 ||| t1 t2 ||| 0.5\ns1 s2 ||| t1 t3 ||| 0.5\ns1 s1 s1 s1 ||| t1 ||| 0.5\n"
PAIRS = [b"s1 s2"] * 2, [b"t1 t2", b"t1 t3"]


def column_of(path):
    return [float(line.split(b"|||")[2].split()[-1]) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_it_is_an_unbounded_column_of_a_table(model, tmp_path, capfd):
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    options = tmp_path / "t.gz", "--model", model
    run(score.main, *options, code=3)
    assert "expected phrases of at most 3 words, for which the network has slots, found 4" in capfd.readouterr().err
    run(score.main, *options, "--long", "floor", "--allow-misfit")
    right, wrong = open_model(model).make_producer().log_probs(*PAIRS)[:, 0]
    assert right > 0
    assert right > wrong + 0.5
    np.testing.assert_allclose(column_of(tmp_path / "t.rnn.gz"), np.exp([right, wrong, -87]), rtol=1e-5)
    (column,) = json.loads((tmp_path / "t.rnn.gz.json").read_text())["added_columns"]
    assert (column["name"], column["unbounded"]) == ("RANK", True)
    meaning = "s(source, target) of the ranker, unbounded and no log-probability, without </s>"
    assert column["meaning"] == meaning == open_model(model).describe().meaning
    assert column["highest"] == pytest.approx(right)
    run(score.main, *options, "--long", "floor", "--allow-misfit", "--log", "--force")
    np.testing.assert_allclose(column_of(tmp_path / "t.rnn.gz"), [right, wrong, -87], rtol=1e-5)


def test_it_is_a_feature_of_a_list(model, tmp_path):
    (tmp_path / "list").write_bytes(
        b"0 ||| t1 t2 t4 ||| LM0= -1 ||| -1 ||| 0-1=0-1 2-2=2-2 \n0 ||| t1 ||| LM0= -2 ||| -2 ||| 0-2=0-0 \n"
    )
    (tmp_path / "source").write_bytes(b"s1 s2 s4\n")
    options = "--source", tmp_path / "source", "--add", model, "-o", tmp_path / "new", "--quiet"
    run(nbest.main, tmp_path / "list", *options, "--allow-misfit")
    lines = (tmp_path / "new").read_bytes().splitlines()
    values = [float(line.split(b"RANK0= ")[1].split()[0]) for line in lines]
    pairs = [b"s1 s2", b"s4", b"s1 s2 s4"], [b"t1 t2", b"t4", b"t1"]
    first, second, whole = open_model(model).make_producer().log_probs(*pairs)[:, 0]
    np.testing.assert_allclose(values, [first + second, whole], rtol=1e-5)


def test_one_that_ranks_by_chance_is_refused(table, tmp_path, capfd):
    train_phrase_model(
        request(table, max_epochs=0.1, learning_rate=1e-9, held_out=500), tmp_path / "m", Listener(), never
    )
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["provenance"]["history"][0]["ranked_wrong"] = 0.5
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    run(score.main, table, "--model", tmp_path / "m", "-o", tmp_path / "new.gz", code=3)
    expected = "expected a model that costs less than guessing's 0.50 errors per corrupted pair, found 0.50"
    assert expected in capfd.readouterr().err
