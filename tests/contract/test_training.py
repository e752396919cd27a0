"""Trainings of each network: they learn, cost what the equations say, and end with the same weights after any death."""

import dataclasses
import gzip
import itertools
import multiprocessing
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.models.open import open_model
from moses_rnn.native import SWITCH, native_core
from moses_rnn.networks.measures import NATS
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.training import tasks
from moses_rnn.training.materials import Watch
from moses_rnn.training.presets import NETWORKS
from moses_rnn.training.ranks import Threads
from moses_rnn.training.train import plan_of
from tests.contract.rows import ALL, ROWS
from tests.contract.training import (
    TRAININGS,
    after,
    lines_of,
    options_of,
    train,
    train_until_killed,
    write_material,
)
from tests.networks.networks import weights_of
from tests.training.small import Listener


def name(value):
    return value if isinstance(value, str) else "-".join(map(str, value.options.values())) or value.material


EACH = pytest.mark.parametrize(("key", "training"), TRAININGS, ids=name)
BY_MATERIAL = {
    training.material + " of subwords" * ("subwords" in training.options): (key, training)
    for key, training in TRAININGS
}
ONE_EACH = pytest.mark.parametrize(("key", "training"), BY_MATERIAL.values(), ids=BY_MATERIAL)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("material")
    write_material(folder)
    return folder


def learned(model):
    """The best weights, and all that a run would continue from."""
    best, state = load_file(model / "model.safetensors"), load_file(model / "training" / "state.safetensors")
    return {**best, **{f"state: {name}": tensor for name, tensor in state.items()}}


def check_equal(one, other):
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@EACH
def test_it_learns_and_remembers_how(here, tmp_path, key, training):
    listener = Listener()
    outcome = train(training, here, tmp_path / "m", listener=listener, max_epochs=8, dropout=0.0)
    assert outcome.progress.finished == "8 epochs are done"
    costs = [record[outcome.measure.key] for record in outcome.progress.history]
    assert min(costs) < costs[0]
    model = open_model(tmp_path / "m", of_pairs=False)
    assert model.architecture is ALL[key]
    assert model.held_out_cost == min(costs)
    assert model.provenance["training_options"]["learning_rate"] == 0.02
    config = vars(model.config)
    assert {name: config[name] for name in training.options if name in config}.items() <= training.options.items()
    scores = model.make_scorer().log_probs(Pairs([b"s1 s2", b"s1 s2"], [b"t1 t2", b"t4 t4 t4 t4"]))
    assert scores[0] > scores[1]
    assert listener.description


PATHS = ["torch"] + ["native"] * (native_core() is not None)


@pytest.mark.parametrize("path", PATHS)
@EACH
def test_a_stopped_training_ends_with_the_same_weights(here, tmp_path, monkeypatch, key, training, path):
    if path == "native" and training.material == "text":
        pytest.skip("language models learn by torch")
    if path == "torch":
        monkeypatch.setenv(SWITCH, "0")
    train(training, here, tmp_path / "whole")
    for stop in (after(3), after(4)):
        assert not train(training, here, tmp_path / "parts", stop).progress.finished
        torch.manual_seed(99)
    train(training, here, tmp_path / "parts")
    check_equal(learned(tmp_path / "whole"), learned(tmp_path / "parts"))


WAYS = {  # to learn, each by a network that can
    "adadelta": ("table", {"optimiser": "adadelta", "learning_rate": None}),
    "sgd, newbob": ("table", {"optimiser": "sgd", "schedule": "newbob", "max_epochs": 5, "cool_down": None}),
    "half-epochs": ("table", {"schedule": "half-epochs", "max_epochs": 7, "cool_down": None, "batch_size": 32}),
    "inverse-time": ("text", {"schedule": "inverse-time"}),
    "plateau": ("text", {"learning_rate": 1.0, "optimiser": "sgd"}),
    "warmed up, decaying": ("table", {"warm_up": 7, "weight_decay": 0.1}),
    "in parts": ("table", {"accumulate": 3}),
    "rounded": ("table", {"precision": "bf16"}),
    "partitions": ("sentences", {"partition_words": 7, "batch_size": 1, "max_epochs": 1}),
    "smoothed labels": ("sentences", {"label_smoothing": 0.2}),
    "words": ("sentences", {"batch_size": None, "batch_words": 40, "accumulate": 2}),
    "words of texts": (
        "text",
        {"architecture": "rnnlm", "batch_size": None, "batch_words": 40, **dict.fromkeys(("order", "embedding_size", "first_size", "second_size"))},
    ),
    "warmed up, falling, smoothed": ("sentences", {"schedule": "inverse-root", "warm_up": 4, "label_smoothing": 0.1}),
    "partitions, reshuffled": ("sentences", {"partition_words": 7, "batch_size": 1, "max_epochs": 2, "reshuffle": True}),
}  # fmt: skip


@pytest.mark.parametrize(("material", "changes"), WAYS.values(), ids=WAYS)
def test_a_stopped_training_ends_with_the_same_weights_in_every_way_to_learn(here, tmp_path, material, changes):
    training = next(training for _, training in TRAININGS if training.material == material)
    train(training, here, tmp_path / "whole", **changes)
    for stop in (after(3), after(5)):
        assert not train(training, here, tmp_path / "parts", stop, **changes).progress.finished
    train(training, here, tmp_path / "parts", **changes)
    check_equal(learned(tmp_path / "whole"), learned(tmp_path / "parts"))


@ONE_EACH
def test_a_killed_training_ends_with_the_same_weights(here, tmp_path, key, training):
    train(training, here, tmp_path / "whole")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.contract.training"])
    for renames in itertools.count():
        child = processes.Process(target=train_until_killed, args=(training, here, tmp_path / "m", renames))
        child.start()
        child.join()
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
    assert renames > 4
    check_equal(learned(tmp_path / "whole"), learned(tmp_path / "m"))


# --- what is learned ----------------------------------------------------------------------------------------------------


class Started(Listener):
    def starting(self, trainer):
        self.trainer = trainer


def started(training, here, folder, **changes):
    """A trainer that has learned nothing yet, but weights that are large enough for all terms to matter."""
    listener = Started()
    changes = {"dropout": 0.0, "averaging": 0.0, "cool_down": 0.0, **changes}
    train(training, here, folder, lambda: hasattr(listener, "trainer"), listener, **changes)
    shutil.rmtree(folder)
    listener.trainer.model.initialise(1, 0.5)
    return listener.trainer


def pairs_of(training, task, here):
    """What a task learns, and what it is judged by, as pairs of ids."""
    if training.material == "text":
        texts = [lines_of(here / name, training.options.get("subwords")) for name in ("train.trg", "dev.trg")]
        return tuple([([], ids) for ids in text] for text in texts)
    sides = task.corpus.source, task.corpus.target
    return tuple(
        [tuple(side.take(np.array([row]))[0].tolist() for side in sides) for row in rows]
        for rows in (task.corpus.training, task.corpus.held_out)
    )


AT_ONCE = [  # when nothing is learned: all, some, and one at a time
    (constant, at_once) for at_once in (4096, 7, 1) for constant in ("EVALUATION_WORDS", "EVALUATION_ROWS")
]


@pytest.mark.parametrize(("key", "training"), [each for each in TRAININGS if ALL[each[0]].measure is NATS], ids=name)
def test_minibatches_and_held_out_examples_cost_what_the_equations_say(here, tmp_path, monkeypatch, key, training):
    for dropout in (0.0, 0.5):
        trainer = started(training, here, tmp_path / str(dropout), dropout=dropout)
        task, weights = trainer.task, weights_of(trainer.model)
        learns, judges = (
            [-ROWS[key].log_prob(weights, *pair, dataclasses.asdict(trainer.model.config)) for pair in examples]
            for examples in pairs_of(training, task, here)
        )
        tokens = sum(len(target) + 1 for _, target in pairs_of(training, task, here)[1])
        for constant, at_once in AT_ONCE:
            monkeypatch.setattr(tasks, constant, at_once)
            for workers in (Threads(), Threads(2)):
                assert task.held_out(workers)["nats_per_token"] == pytest.approx(sum(judges) / tokens, rel=1e-4)
        costs = [task.cost(rows, step).nats for step, rows in enumerate(task.batches(0, 0))]
        assert (sum(costs) == pytest.approx(sum(learns), rel=1e-5)) == (dropout == 0)
        assert costs == [task.cost(rows, step).nats for step, rows in enumerate(task.batches(0, 0))]
        parts = [
            task.cost(rows[part::2], step, part).nats
            for step, rows in enumerate(task.batches(0, 0))
            for part in (0, 1)
            if part < len(rows)
        ]
        assert (sum(parts) == pytest.approx(sum(costs), rel=1e-5)) == (dropout == 0)
        other = [task.cost(rows, step + 1).nats for step, rows in enumerate(task.batches(0, 0))]
        assert (costs == other) == (dropout == 0)


SENTENCES = [(key, training) for key, training in TRAININGS if training.material == "sentences"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("key", "training"), SENTENCES, ids=name)
def test_smoothed_labels_count_in_what_is_minimised_alone(here, tmp_path, monkeypatch, key, training, path):
    if path == "torch":
        monkeypatch.setenv(SWITCH, "0")
    plain, smoothed = (
        started(training, here, tmp_path / str(share), label_smoothing=share).task for share in (0.0, 0.3)
    )
    rows = next(plain.batches(0, 0))
    costs = [task.cost(rows, 0) for task in (plain, smoothed)]
    assert costs[0].objective.item() == pytest.approx(costs[0].nats)
    assert costs[0].nats == pytest.approx(costs[1].nats)
    assert plain.held_out(Threads()) == smoothed.held_out(Threads())
    pairs = [
        [side.take(np.array([row]))[0].tolist() for side in (plain.corpus.source, plain.corpus.target)] for row in rows
    ]
    weights, config = weights_of(plain.model), dataclasses.asdict(plain.model.config)
    expected = -sum(ROWS[key].log_prob(weights, *pair, config, smoothing=0.3) for pair in pairs)
    assert costs[1].objective.item() == pytest.approx(expected, rel=1e-4)


@EACH
def test_an_epoch_has_each_example_once_and_can_be_entered_anywhere(here, tmp_path, key, training):
    task = started(training, here, tmp_path / "m").task
    epochs = [[rows.tolist() for rows in task.batches(epoch, 0)] for epoch in (0, 1)]
    first, second = (list(itertools.chain(*epoch)) for epoch in epochs)
    assert sorted(first) == sorted(second) == sorted({*first})
    assert (len(first), first == second) == (task.examples, False)
    for number in range(len(epochs[1]) + 1):
        assert [rows.tolist() for rows in task.batches(1, number)] == epochs[1][number:]


@EACH
def test_a_step_is_along_the_gradient_of_its_minibatch(here, tmp_path, key, training):
    trainer = started(
        training,
        here,
        tmp_path / "m",
        optimiser="sgd",
        learning_rate=0.5,
        clip_norm=0.0,
        weight_decay=0.0,
        reduction="pair-mean",
    )
    rows = next(trainer.task.batches(0, 0))
    weights = list(trainer.model.parameters())
    before = [tensor.detach().clone() for tensor in weights]
    gradients = torch.autograd.grad(
        trainer.task.cost(rows, trainer.progress.steps).objective, weights, materialize_grads=True
    )
    rate = trainer._learning_rate() / len(rows)
    trainer.learn(rows)
    for new, old, gradient in zip(weights, before, gradients, strict=True):
        torch.testing.assert_close(new.detach(), old - rate * gradient, rtol=1e-4, atol=1e-6)


# --- what is refused ----------------------------------------------------------------------------------------------------


@EACH
def test_other_choices_do_not_continue_a_training(here, tmp_path, key, training):
    train(training, here, tmp_path / "m", max_epochs=1)
    sizes = {name: value for name, value in training.options.items() if type(value) is int and name != "subwords"}
    sizes = sizes or {"hidden_size": 6}
    changed = [{name: value + 1} for name, value in sizes.items()]
    for change in ({"seed": 2}, {"batch_size": 8}, {"dropout": 0.1}, *changed):
        ((option, value),) = change.items()
        with pytest.raises(CheckpointError, match=f"{option} .*, now {value}"):
            train(training, here, tmp_path / "m", max_epochs=2, **change)


SUBWORDS = [each for each in TRAININGS if "subwords" in each[1].options]


@pytest.mark.parametrize(("key", "training"), SUBWORDS, ids=name)
def test_another_number_of_subwords_does_not_continue_a_training(here, tmp_path, key, training):
    train(training, here, tmp_path / "m", max_epochs=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir() if path.is_file()}
    size = training.options["subwords"]
    words = {"subwords": None, **({"shared": None} if "shared" in training.options else {})}
    for other in ({"subwords": size - 1}, words):
        with pytest.raises(CheckpointError, match=f"target_vocabulary_size {size}, now [0-9]+|shared True, now False"):
            train(training, here, tmp_path / "m", max_epochs=2, **other)
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir() if path.is_file()} == before
    train(training, here, tmp_path / "m", max_epochs=1, force=True, **words)
    assert not (tmp_path / "m" / "subwords.model").exists()


def options_of_network(name):
    """Settings of a network's newest format, and its other options that not all networks have."""
    kinds = [kind for kind in ALL.values() if kind.key == (NETWORKS[name].key or name)]
    return {*max(kinds, key=lambda kind: kind.format).config.settings(), *NETWORKS[name].own}


@EACH
def test_sizes_and_switches_of_other_networks_are_refused(here, tmp_path, key, training):
    asks, watch = options_of(training, here, tmp_path), Watch(lambda *_: None, after(0))
    plan_of(asks, watch)
    every = {option for name in NETWORKS for option in options_of_network(name)}
    wrong = {"dev_table", "source_vocabulary_size", "unit", "native"}
    for option in every - options_of_network(asks["architecture"]) | wrong:
        with pytest.raises(ValueError, match=f"{option}: --architecture {asks['architecture']} has no such option"):
            plan_of({**asks, option: 3}, watch)


@ONE_EACH
def test_material_that_was_cut_short_leaves_nothing_behind(here, tmp_path, key, training):
    for path in here.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / ("table" if training.material == "table" else "train.trg")
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(InputError, match=path.name):
        train(training, tmp_path, tmp_path / "m")
    assert not (tmp_path / "m").exists()
