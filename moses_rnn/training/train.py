"""Train any network: from material to arrays, network and model folder."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from moses_rnn.files.streams import checked_path
from moses_rnn.models.model import Model
from moses_rnn.networks.compute import choose_device, choose_precision
from moses_rnn.networks.config import (
    PHRASES,
    SENTENCES,
    SOURCE_TO_TARGET,
    TARGET_TO_SOURCE,
    Architecture,
    Config,
    SettingError,
    find_architectures,
)
from moses_rnn.networks.measures import NATS, Measure
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.own_settings import training_settings
from moses_rnn.training import tasks
from moses_rnn.training.descent import rounds
from moses_rnn.training.embeddings import begin_as, sha256_of
from moses_rnn.training.learning_curves import Verdict, verdict
from moses_rnn.training.materials import (
    Material,
    SentencePairs,
    TablePairs,
    TextLines,
    Watch,
    build_on_first_rank,
    find_embeddings,
    rare_words_of,
)
from moses_rnn.training.model_folder import ModelFolder, Progress
from moses_rnn.training.presets import NETWORKS, TrainingConfig
from moses_rnn.training.ranks import ALONE, Ranks
from moses_rnn.training.tasks import Task, describe_partitions
from moses_rnn.training.trainer import NOBODY, Observer, Trainer
from moses_rnn.training.training_options import Options, UnfitOption, choose, refuse_unknown
from moses_rnn.version import __version__

STEPS = 3  # of an estimate, after a first one that warms up
LEAST_SECONDS = 5.0  # of training for an estimate
ROWS = 64  # minimum examples per thread and minibatch: smaller products are inefficient
LONG = 50  # words of a long sentence
NATIVE_ROWS = 16  # the same for the native core, whose products have less overhead


OTHER_NAMES = {"format": "layout", "network": "architecture", "optimizer": "optimiser"}  # as the commands spell them
MATERIAL_OPTIONS = {"table": ("phrase_table",), "sentences": ("prefix", "source", "target"), "text": ("texts",)}
MATERIALS: dict[str, Callable[..., Material]] = {"table": TablePairs, "sentences": SentencePairs, "text": TextLines}


class Outcome(NamedTuple):
    """The outcome of a run."""

    progress: Progress  # its `finished` is empty if the run was stopped
    baseline_cost: float | None  # cost of a unigram model of the targets, for example
    measure: Measure = NATS
    unit: str = "pairs"  # name of its examples

    @property
    def verdict(self) -> Verdict:
        """Verdict from the held-out costs."""
        return verdict(self.progress.history, self.baseline_cost, self.measure)


@dataclass(frozen=True)
class Plan:
    """The network, material and options of a training on this machine."""

    options: Options
    training: TrainingConfig
    learning: Mapping[str, float]  # further training options of a language model
    config: Mapping[str, Any]  # of the network, without vocabulary sizes
    kind: Architecture
    task: Callable[..., Task]
    embeddings: Mapping[str, str]  # files, by side


class Estimate(NamedTuple):
    """The expected speed of a training."""

    pairs: int  # per pass
    pairs_per_second: float
    passes: float  # within the budget; infinite without one


@training_settings()
def train(
    material: Path | str | Sequence[Path | str] | None = None,
    /,
    *,
    model: Path | str,
    observer: Observer = NOBODY,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks = ALONE,
    **options: Any,
) -> Outcome:
    """Train a network, or continue a run that was stopped, as the commands do.

    Args:
        material: a phrase table, the prefix of two texts, or the texts of a language model: what `architecture` learns
            from; another name for the option `phrase_table`, `prefix` or `texts`.
        model: the folder, which after every evaluation holds the best weights so far.
        observer: follows the run.
        should_stop: called while the material is read and after every step.
        ranks: the processes that train it together; all call this function with equal options.
        options: by name, those of the command line and of its file of settings, with _ in place of -; see
            `options.choose`.

    Raises:
        UnfitOption: options do not go together.
        InputError: the material cannot be read, is damaged or too small.
        CheckpointError: the folder holds a run with other choices, or a model without its run.
        OutputError: the folder cannot be made, or another run is training there.
        MosesRnnError: the training diverged.
        PeerFailed: another of the processes is gone.
        Stopped: while the material was read.
    """
    path = Path(checked_path("model", model))
    for other, name in OTHER_NAMES.items():
        if other in options:
            if name in options:
                raise UnfitOption(other, f"given twice: it is another name of {name}")
            options[name] = options.pop(other)
    options |= {name: os.fspath(value) for name, value in options.items() if isinstance(value, os.PathLike)}
    options["device"] = choose_device(str(options.get("device") or "auto"), "device")
    _set_material(options, material)
    plan, pairs = plan_of(options, Watch(observer.reading, should_stop), ranks.size)
    with ModelFolder(path, plan.kind, force=plan.options["force"], leads=ranks.leads) as folder:
        folder.check_choices({**plan.config, **plan.learning, **plan.training.course()})
        corpus = build_on_first_rank(ranks, folder.arrays, pairs, should_stop)
        task = begin(plan, pairs, corpus, observer)
        folder.checkpoint = Model(
            plan.kind,
            task.model,
            corpus.vocabularies,
            direction=TARGET_TO_SOURCE if plan.options.get("inverse") else SOURCE_TO_TARGET,
            provenance=_provenance(plan, pairs, corpus),
            right_to_left=bool(plan.options.get("right_to_left")),
        )
        progress = Trainer(task, ranks).run(folder, observer, should_stop)
        known = task.measure.baseline_cost
        return Outcome(progress, corpus.unigram_nats_per_token if known is None else known, task.measure, task.unit)


def _set_material(options: dict[str, Any], material: Path | str | Sequence[Path | str] | None) -> None:
    """Set the option that names an architecture's material; raise UnfitOption unless it is given once."""
    architecture = options.get("architecture") or "encdec"
    if not isinstance(architecture, str) or architecture not in NETWORKS:
        return  # refused later, as are options of other materials
    network = NETWORKS[architecture]
    name, *further = MATERIAL_OPTIONS[network.material]
    if material is not None and options.get(name) is not None:
        raise UnfitOption(name, "given twice: the first argument names it too")
    given = options.get(name) if material is None else material
    if given is None and any(options.get(other) is not None for other, *_ in MATERIAL_OPTIONS.values()):
        return
    several = () if given is None else given if isinstance(given, list | tuple) else (given,)
    names = tuple(checked_path(name, path) for path in several)
    if not names or (name != "texts" and len(names) > 1):
        raise UnfitOption(name, f"expected one, as the first argument, found {len(names)}")
    options[name] = names if name == "texts" else names[0]
    for other in further:
        if options.get(other) is None:
            raise UnfitOption(other, "expected a file suffix, found none")


def estimate_training(options: Options, observer: Observer, should_stop: Callable[[], bool]) -> Estimate:
    """Read the table and train for a few seconds without saving. Arguments are as in `train`."""
    plan, material = plan_of(options, Watch(observer.reading, should_stop))
    with tempfile.TemporaryDirectory(prefix="moses-rnn") as arrays:
        corpus = material.build(Path(arrays))
        return estimate(begin(plan, material, corpus, observer))


def plan_of(options: Options, watch: Watch, processes: int = 1) -> tuple[Plan, Material]:
    """Return the plan and the material that the options choose; set torch's number of threads."""
    every, preset = choose(options)
    embeddings = find_embeddings(every)
    digests: dict[str, Any] = {f"{side}_embeddings": sha256_of(path) for side, path in embeddings.items()}
    network = NETWORKS[every["architecture"]]
    kind, config = configure(every["architecture"], preset.network)
    settings = {name: getattr(config, name) for name in config.settings()}
    _check_slots(settings.get("slots", 0), every.get("max_length", 0))
    if hasattr(config, "unit"):
        settings["unit"] = PHRASES if network.material == "table" else SENTENCES
    if every.get("rare"):
        settings["rare"] = asdict(rare_words_of(every))
    training = replace(_on_this_machine(every, preset.training, config.width, processes), **digests)
    material = MATERIALS[network.material](every, preset, watch)
    task = getattr(tasks, network.task)
    return Plan(every, training, preset.learning, settings, kind, task, embeddings), material


def configure(name: str, settings: Options) -> tuple[Architecture, Config]:
    """Return a network's architecture, of the oldest format that can hold the settings, and a config for two words.

    Raise UnfitOption for a setting that the network does not have or allow.
    """
    key = NETWORKS[name].key or name
    kinds = sorted((kind for kind in find_architectures() if kind.key == key), key=lambda kind: kind.format)
    refuse_unknown(settings, kinds[-1].config.settings(), f"--architecture {name}")
    try:
        complete = kinds[-1].config.complete(settings)
        kind = next(kind for kind in kinds if complete.keys() <= {*kind.config.settings()})
        return kind, kind.config(*(2 for _ in kind.sides), **complete)
    except SettingError as error:
        raise UnfitOption(error.key, error.why) from error


def _check_slots(slots: int, max_length: int) -> None:
    if slots and max_length > slots:
        raise UnfitOption("max_length", f"expected at most {slots}, the number of slots, found {max_length}")


def _on_this_machine(options: Options, config: TrainingConfig, width: int, processes: int) -> TrainingConfig:
    """Return training options with those that the machine decides, for a network of that width."""
    device, material = options["device"], NETWORKS[options["architecture"]].material
    precision = choose_precision(options["precision"], device, width)
    native = "" if material == "text" else instructions_to_learn(device, precision)  # language models learn by torch
    fewest = config.batch_words // LONG or config.batch_size
    rows = fewest // (processes * rounds(config.accumulate, processes))  # that one computes together
    threads = share_cores(device, options["threads"], rows, native=bool(native))
    return replace(config, precision=precision, native=native, threads=threads)


def share_cores(device: str, wanted: int | None, examples: int, *, native: bool = False) -> int:
    """Return the number of threads per minibatch; set torch's threads to each one's cores, or to 1 if `native`."""
    if device.startswith("cuda"):
        return 1
    cores = wanted or torch.get_num_threads()
    count = max(min(cores, examples // (NATIVE_ROWS if native else ROWS)), 1)
    torch.set_num_threads(1 if native else max(cores // count, 1))
    return count


def begin(plan: Plan, material: Material, corpus: Any, observer: Observer) -> Task:
    """Create the task with a newly initialised network; report the material to the observer."""
    kind, sizes = plan.kind, map(len, corpus.vocabularies.values())
    model: Any = kind.module(kind.config(*sizes, **plan.config), seed=None)
    model.initialise(plan.training.seed, plan.training.initial_deviation)
    model = model.to(plan.options["device"])
    described = material.describe(corpus)
    unigram = corpus.unigram_nats_per_token
    if unigram is not None and kind.measure is NATS:
        described.append(f"unigram baseline: {unigram:.4f} held-out nats per target token")
    described += describe_partitions(corpus, plan.training)
    frozen = plan.training.freeze_embeddings
    for side, path in plan.embeddings.items():
        described.append(begin_as(path, model, side, corpus.vocabularies[side], frozen=frozen))
    observer.corpus_read(described)
    return plan.task(model, corpus, plan.training, **plan.learning)


def estimate(task: Task, seconds: float = LEAST_SECONDS) -> Estimate:
    """Train for at least `seconds` and extrapolate."""
    config, trainer = task.config, Trainer(task)
    batches = itertools.chain.from_iterable(task.batches(epoch, 0) for epoch in itertools.count())
    trainer.learn(next(batches))
    started, pairs, steps = time.monotonic(), 0, 0
    while steps < STEPS or time.monotonic() - started < seconds:
        rows = next(batches)
        trainer.learn(rows)
        steps, pairs = steps + 1, pairs + len(rows)
    rate = pairs / (time.monotonic() - started)
    by_time = 60 * config.max_minutes * rate / task.examples if config.max_minutes else math.inf
    return Estimate(task.examples, rate, min(by_time, config.max_epochs or math.inf))


def _provenance(plan: Plan, material: Material, corpus: Any) -> dict[str, Any]:
    unigram = corpus.unigram_nats_per_token
    return {
        "version": __version__,
        "torch": torch.__version__,
        **material.origin,
        "device": plan.options["device"],
        f"{material.name}_options": asdict(material.config),
        **({"learning": dict(plan.learning)} if plan.learning else {}),
        "training_options": asdict(plan.training),
        material.name: asdict(corpus.statistics),
        **({} if unigram is None else {"unigram_nats_per_token": unigram}),
    }
