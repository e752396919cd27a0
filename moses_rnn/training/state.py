"""What a run needs to continue after any death: weights, optimiser, position. One safetensors file, no pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from moses_rnn.errors import CheckpointError, shown_value
from moses_rnn.files.outputs import replace_file

RANDOM = "random.torch"
ADDED = {
    "native": "",
    "schedule": "plateau",
    "partition_words": 0,
    "reshuffle": False,
    "source_embeddings": "",
    "target_embeddings": "",
    "freeze_embeddings": False,
}  # choices that older states do not name, with what they were then


@dataclass
class Progress:
    """Where a run stands; all of it is saved and restored."""

    epoch: int = 0
    batch: int = 0  # within the epoch
    examples: int = 0  # seen in all epochs
    tokens: int = 0  # predicted words and end symbols, likewise
    steps: int = 0
    clipped_steps: int = 0
    skipped_steps: int = 0  # the gradient was not finite
    skipped_in_a_row: int = 0  # up to now
    seconds: float = 0.0
    examples_at_evaluation: int = 0
    best: float = math.inf  # held-out cost
    without_gain: int = 0  # evaluations
    learning_rate: float = 0.0
    finished: str = ""  # why, once it is
    history: list[dict[str, float]] = field(default_factory=list)


class RunState(NamedTuple):
    """All that decides how a run continues."""

    identity: Mapping[str, Any]  # what a run must share to continue from here
    model: nn.Module  # its weights are saved
    optimiser: torch.optim.Optimizer  # its accumulators are saved
    progress: Progress
    average: Mapping[str, Tensor]  # the averaged weights by name; empty if there are none


def save_state(path: Path, state: RunState) -> None:
    """Write the state; a death while writing leaves the previous one."""
    names = [name for name, _ in state.model.named_parameters()]
    tensors = {f"weights.{name}": tensor.detach() for name, tensor in state.model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in state.average.items()}
    for index, values in state.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{names[index]}.{key}": value for key, value in values.items()}
    tensors[RANDOM] = torch.get_rng_state()
    on_cpu = {name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}
    metadata = {
        "progress": json.dumps(dataclasses.asdict(state.progress)),
        "identity": json.dumps(dict(state.identity)),
    }
    metadata["sha256"] = _digest(metadata, on_cpu)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, save_tensors(on_cpu, metadata))


def load_state(path: Path, state: RunState) -> bool:
    """Restore a saved state in place; False when there is none.

    Raises:
        CheckpointError: the state is damaged, or of another corpus, network or optimiser.
    """
    if not path.exists():
        return False
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
        saved_identity, saved_progress = (dict(json.loads(metadata[key])) for key in ("identity", "progress"))
        _check_digest(metadata, tensors)
        _check_identity(path, saved_identity, state.identity)
        _restore(state, tensors, Progress(**saved_progress))
    except (SafetensorError, TypeError, KeyError, ValueError, RuntimeError, RecursionError) as error:
        advice = "--restart starts over; the model of the best evaluation so far is whole and can be used for scoring."
        raise CheckpointError(
            f"{path}: expected a saved training state, found: {shown_value(str(error))}",
            advice=advice,
        ) from error
    return True


def _restore(state: RunState, tensors: dict[str, Tensor], progress: Progress) -> None:
    state.model.load_state_dict(_with_prefix(tensors, "weights."))
    for name, tensor in state.average.items():
        tensor.copy_(tensors[f"average.{name}"])
    _restore_optimiser(state.optimiser, [name for name, _ in state.model.named_parameters()], tensors)
    torch.set_rng_state(tensors[RANDOM])
    vars(state.progress).update(vars(progress))


def check_choices(path: Path, choices: Mapping[str, Any]) -> None:
    """Refuse to continue a run with other choices; reads the file's header alone.

    Args:
        path: of the state; without one, and with a damaged one, there is nothing to refuse yet.
        choices: those of the run that would continue it.

    Raises:
        CheckpointError: the run began with others.
    """
    try:
        with safe_open(path, framework="pt") as file:
            saved = dict(json.loads(file.metadata()["identity"]))
    except (OSError, SafetensorError, TypeError, KeyError, ValueError, RecursionError):
        return
    _check_identity(path, saved, choices)


def _check_digest(metadata: dict[str, str], tensors: dict[str, Tensor]) -> None:
    digest = _digest(metadata, tensors)
    if metadata["sha256"] != digest:
        raise ValueError(f"SHA-256 {digest} of its contents, not {metadata['sha256'][:64]}")


def _digest(metadata: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """SHA-256 over everything; safetensors itself has no checksum."""
    digest = hashlib.sha256(f"{metadata['progress']}\n{metadata['identity']}\n".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_identity(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    then = {**ADDED, **saved}
    differing = [f"{key} {then.get(key)!r}, now {wanted[key]!r}" for key in wanted if then.get(key) != wanted[key]]
    if differing:
        raise CheckpointError(
            f"{path}: expected the input and options that this training began with, found others: "
            f"{'; '.join(differing)}",
            advice="Give the same ones to resume, or --restart (or another --model) to start over.",
        )


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _restore_optimiser(optimiser: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    state = optimiser.state_dict()
    state["state"] = {
        index: values for index, name in enumerate(names) if (values := _with_prefix(tensors, f"optimiser.{name}."))
    }
    optimiser.load_state_dict(state)
