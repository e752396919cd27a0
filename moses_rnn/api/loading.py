"""Model folders loaded from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from moses_rnn.api.arguments import PathLike, check_choice
from moses_rnn.api.language_models import LanguageModel
from moses_rnn.api.models import Model
from moses_rnn.api.options import Options
from moses_rnn.errors import ArgumentError, CheckpointError
from moses_rnn.models.folders import read_network
from moses_rnn.producers.ensembles import COMBINATIONS, GEOMETRIC, open_writer
from moses_rnn.producers.open import NETWORKS, open_language_model


def load(
    folder: PathLike | Sequence[PathLike],
    *,
    device: str | torch.device = "auto",
    precision: str = "fp32",
    threads: int | None = None,
    combine: str | None = None,
) -> Model:
    """Load a network of pairs, or several as one, from what moses-rnn-train or moses-rnn nmt train has written.

    Args:
        folder: of the model; a list of several makes an ensemble of networks that write the same words.
        device: "cpu", "cuda", "cuda:1" …; "auto" is CUDA if there is one.
        precision: of matrix products: "fp32", "bf16", "fp64", or "auto", bf16 where it is faster and the network
            large.
        threads: of the processor; for all of torch in this process. None: all cores.
        combine: how several are one: "geometric" (the default), "mean-log" or "arithmetic".

    Raises:
        ArgumentError: an option is not possible; it is named.
        CheckpointError: a folder cannot be read, is of a language model, or does not go with the first one.
    """
    options = Options.checked(device, precision, threads)
    folders = _folders(folder)
    if combine is not None:
        check_choice("combine", combine, COMBINATIONS)
        if len(folders) == 1:
            raise ArgumentError("combine", "several folders, of which it makes one network", f"{folders[0]} alone")
    for path in folders:
        _check_pairs(path)
    model = Model(open_writer(folders, combine or GEOMETRIC), options)
    _set_threads(options)
    return model


def load_language_model(
    folder: PathLike, *, device: str | torch.device = "auto", precision: str = "fp32", threads: int | None = None
) -> LanguageModel:
    """Load a language model from what moses-rnn cslm train has written.

    Args:
        folder: of the model.
        device: see `load`.
        precision: see `load`.
        threads: see `load`.

    Raises:
        ArgumentError: an option is not possible; it is named.
        CheckpointError: the folder cannot be read, or is of a network of pairs.
    """
    options = Options.checked(device, precision, threads)
    path = Path(folder)
    network = read_network(path)
    if network in NETWORKS and NETWORKS[network].language_model is None:
        found = f"a network of pairs ({NETWORKS[network].title})"
        raise CheckpointError(f"{path}: expected a language model, found {found}", advice="moses_rnn.load loads it.")
    model = LanguageModel(open_language_model(path), options)
    _set_threads(options)
    return model


def _folders(folder: PathLike | Sequence[PathLike]) -> list[Path]:
    folders = [Path(folder)] if isinstance(folder, str | os.PathLike) else [Path(path) for path in folder]
    if not folders:
        raise ArgumentError("folder", "a folder, or a list of at least one", "an empty list")
    return folders


def _check_pairs(path: Path) -> None:
    network = read_network(path)
    if isinstance(network, str) and network in NETWORKS and NETWORKS[network].language_model is not None:
        raise CheckpointError(
            f"{path}: expected a network of pairs, found a language model ({NETWORKS[network].title})",
            advice="moses_rnn.load_language_model loads it.",
        )


def _set_threads(options: Options) -> None:
    if options.threads:
        torch.set_num_threads(options.threads)
