"""A run that continues after any death continues from what was saved and from nothing else."""

import random

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.training.model_folder import Progress, RunState, load_state, save_state

IDENTITY = {"corpus": "abc"}


def state_of(seed):
    model = EncDec(EncDecConfig(4, 3, 4, 3, 2, 5), seed=seed)
    optimiser = torch.optim.Adam(model.parameters())
    sum(p.sum() for p in model.parameters()).backward()
    optimiser.step()
    return RunState(IDENTITY, model, optimiser, Progress(), {})


def bits(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def saved(tmp_path):
    state = state_of(1)
    state.progress.examples = 77
    save_state(tmp_path / "state", state)
    return tmp_path / "state", bits(state.model)


def test_any_flipped_bit_is_noticed(saved):
    path, weights = saved
    data = path.read_bytes()
    draw = random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        place = draw.randrange(len(data) if draw.random() < 0.5 else 2500)  # the header is the more interesting half
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        state = state_of(2)
        try:
            load_state(path, state)
        except CheckpointError:
            continue
        assert (same(bits(state.model), weights), state.progress.examples) == (True, 77)


@pytest.mark.parametrize("size", [0, 1, 8, 100, -1])
def test_a_state_cut_short_is_refused(saved, size):
    path, _ = saved
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(
        CheckpointError, match="state: expected a saved training state, found: .*\n  --restart starts over"
    ):
        load_state(path, state_of(2))


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
    path, _ = saved
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
    save_file(tensors, path, {k: v for k, v in {**metadata, key: value}.items() if v is not None})
    with pytest.raises(CheckpointError, match="expected (a saved training state|the table and options)"):
        load_state(path, state_of(2))


OLDER = {
    "epoch": 1, "batch": 2, "examples": 30, "tokens": 40, "steps": 5, "clipped_steps": 1, "skipped_steps": 0,
    "skipped_in_a_row": 0, "seconds": 1.5, "examples_at_evaluation": 20, "best": 3.25, "without_gain": 1,
    "learning_rate": 0.5, "finished": "1 epoch is done", "history": [{"pairs": 20, "nats_per_token": 3.25}],
}  # fmt: skip


def test_what_older_versions_saved_of_a_runs_progress_is_still_read():
    assert vars(Progress(**OLDER)) == OLDER


@pytest.mark.parametrize(("choice", "then", "now"), [("native", "", "avx2"), ("schedule", "plateau", "newbob"), ("partition_words", 0, 100), ("reshuffle", False, True)])  # fmt: skip
def test_what_older_states_do_not_name_is_what_it_was_then(saved, choice, then, now):
    assert load_state(saved[0], state_of(2)._replace(identity={**IDENTITY, choice: then}))
    with pytest.raises(CheckpointError, match=f"{choice} {then!r}, now {now!r}"):
        load_state(saved[0], state_of(2)._replace(identity={**IDENTITY, choice: now}))
