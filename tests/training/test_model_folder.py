"""A model folder belongs to one run at a time, which continues after any death from what was saved and nothing else."""

import json
import random

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from moses_rnn.errors import CheckpointError, OutputError
from moses_rnn.models.open import open_model
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.networks.rnnlm import RNNLM
from moses_rnn.training.model_folder import ModelFolder, Progress, RunState, is_restarting
from tests.networks.saved import checkpoint

IDENTITY = {"corpus": "abc"}


def state_of(seed, **identity):
    model = EncDec(EncDecConfig(4, 3, 4, 3, 2, 5), seed=seed)
    optimiser = torch.optim.Adam(model.parameters())
    sum(p.sum() for p in model.parameters()).backward()
    optimiser.step()
    return RunState({**IDENTITY, **identity}, model, optimiser, Progress(), {})


def bits(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def saved(tmp_path):
    state = state_of(1)
    state.progress.examples = 77
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.save(state)
    return kept, bits(state.model)


def test_any_flipped_bit_is_noticed(saved):
    kept, weights = saved
    path = kept.arrays / "state.safetensors"
    data = path.read_bytes()
    draw = random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        place = draw.randrange(len(data) if draw.random() < 0.5 else 2500)  # the header is the more interesting half
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        state = state_of(2)
        try:
            kept.restore(state)
        except CheckpointError:
            continue
        assert (same(bits(state.model), weights), state.progress.examples) == (True, 77)


@pytest.mark.parametrize("size", [0, 1, 8, 100, -1])
def test_a_state_cut_short_is_refused(saved, size):
    path = saved[0].arrays / "state.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(
        CheckpointError, match="state.safetensors: expected a saved training state, found: .*\n  --force starts over"
    ):
        saved[0].restore(state_of(2))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("progress", "[]"),
        ("progress", '{"examples": 1, "evil": 2}'),
        ("progress", "1"),
        ("progress", "[" * 100_000),
        ("identity", "{"),
        ("sha256", ""),
        ("sha256", None),
    ],
)
def test_invalid_contents_are_refused(saved, key, value):
    path = saved[0].arrays / "state.safetensors"
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
    save_file(tensors, path, {k: v for k, v in {**metadata, key: value}.items() if v is not None})
    with pytest.raises(CheckpointError, match="expected (a saved training state|the table and options)"):
        saved[0].restore(state_of(2))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def start_falsely(folder):
    with ModelFolder(folder, ENCDEC) as kept:
        (kept.arrays / "source.tokens").touch()
        raise KeyboardInterrupt


def test_a_false_start_leaves_nothing_and_removes_no_other_files(tmp_path):
    (tmp_path / "mine").touch()
    for folder in (tmp_path / "new", tmp_path):
        with pytest.raises(KeyboardInterrupt):
            start_falsely(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_false_restart_leaves_the_run_as_it_was(saved, tmp_path):
    with pytest.raises(KeyboardInterrupt), ModelFolder(tmp_path, ENCDEC, force=True):
        raise KeyboardInterrupt
    assert is_restarting(tmp_path)
    with ModelFolder(tmp_path, ENCDEC):
        assert not is_restarting(tmp_path)
    state = state_of(2)
    assert saved[0].restore(state)
    assert same(bits(state.model), saved[1])


@pytest.mark.parametrize("name", ["training/log.jsonl", "training/corpus.json", "source.vocab", "model.safetensors"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / "training").mkdir()
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(OutputError, match=f"{name}: already exists, and training would replace it"):
        start_falsely(tmp_path)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"mine"


def test_a_restart_in_an_empty_folder_is_a_start(tmp_path):
    with ModelFolder(tmp_path, ENCDEC, force=True) as kept:
        kept.save(state_of(1))
    assert not is_restarting(tmp_path)


def test_an_evaluation_logged_without_its_state_is_logged_once(tmp_path):
    state = state_of(1)
    with ModelFolder(tmp_path, ENCDEC) as kept:
        for cost in (3.0, 2.0):
            state.progress.history.append({"nats_per_token": cost})
            kept.record(state.progress, is_best=False)
            if cost == 3.0:
                kept.save(state)
    with ModelFolder(tmp_path, ENCDEC) as kept:
        assert kept.restore(state_of(2))
    log = (tmp_path / "training" / "log.jsonl").read_text()
    assert log == '{"nats_per_token": 3.0, "best": false}\n'


def test_a_second_run_is_refused_until_the_first_has_ended(tmp_path):
    with ModelFolder(tmp_path, ENCDEC):
        for force in (False, True):
            with pytest.raises(OutputError, match="is being trained by another run"):
                ModelFolder(tmp_path, ENCDEC, force=force).__enter__()
    with ModelFolder(tmp_path, ENCDEC):
        pass


def test_the_best_weights_are_written_with_the_runs_history(tmp_path):
    progress = Progress(skipped_steps=2)
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint(provenance={"table": "t"})
        for cost, is_best in ((3.0, True), (4.0, False)):
            progress.history.append({"nats_per_token": cost})
            kept.record(progress, is_best=is_best)
    provenance = open_model(tmp_path).provenance
    assert provenance == {"table": "t", "history": [{"nats_per_token": 3.0}], "skipped_steps": 2}
    log = (tmp_path / "training" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in log] == [
        {"nats_per_token": 3.0, "best": True},
        {"nats_per_token": 4.0, "best": False},
    ]


@pytest.mark.parametrize("lost", ["model.safetensors", "config.json", "source.vocab"])
def test_a_run_whose_best_model_is_lost_does_not_continue(tmp_path, lost):
    state = state_of(1)
    state.progress.best = 3.0
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint(provenance={"table": "t"})
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)
        kept.save(state)
        assert kept.restore(state_of(2))
        (tmp_path / lost).unlink()
        with pytest.raises(CheckpointError, match=f"{lost}: expected a file .*\n  .* --force starts over"):
            kept.restore(state_of(2))


@pytest.fixture
def with_model(tmp_path):
    """A folder with a model, and no state of its run."""
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint(provenance={"table": "t"})
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)


@pytest.mark.usefixtures("with_model")
def test_a_model_without_its_run_is_refused_unless_it_is_to_be_replaced(tmp_path):
    with pytest.raises(CheckpointError, match="found a model without it\n  Replace it with --force"):
        ModelFolder(tmp_path, ENCDEC).__enter__()
    (tmp_path / "mine").touch()
    before = names(tmp_path)
    with ModelFolder(tmp_path, ENCDEC, force=True) as kept:
        assert not kept.restore(None)
        assert names(tmp_path) == sorted([*before, "training/restarting"])
        kept.save(state_of(1))
        assert names(tmp_path) == ["mine", "training/lock", "training/state.safetensors"]


def test_a_run_of_a_network_with_other_keys_is_another(tmp_path):
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.save(state_of(1, encoder_reset="after"))
        with pytest.raises(CheckpointError, match="encoder_reset 'after', now None"):
            kept.restore(state_of(1))


@pytest.mark.usefixtures("with_model")
def test_a_folder_of_another_network_is_named_and_removed_whole(tmp_path):
    (tmp_path / "training" / "state.safetensors").touch()
    message = "expected network to be 'rnnlm', found 'encdec'"
    with ModelFolder(tmp_path, RNNLM) as kept, pytest.raises(CheckpointError, match=message):
        kept.check_choices({"seed": 1})
    assert "source.vocab" in names(tmp_path)
    with ModelFolder(tmp_path, RNNLM, force=True) as kept:
        kept.check_choices({"seed": 1})
        assert not kept.restore(None)
        kept.save(state_of(1))
        assert names(tmp_path) == ["training/lock", "training/state.safetensors"]


def test_the_first_of_several_processes_alone_writes(tmp_path):
    with ModelFolder(tmp_path / "new", ENCDEC, force=True, leads=False) as kept:
        kept.check_choices({"seed": 1})
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)
        kept.save(None)
        assert not kept.restore(None)
    assert names(tmp_path) == []
