"""Training an RNN Encoder-Decoder: phrase table to arrays to network to model folder."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from moses_rnn import __version__
from moses_rnn.errors import InputError, Stopped
from moses_rnn.files.metered import Meter
from moses_rnn.files.streams import STANDARD_STREAM, read_blocks
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.formats.tab_separated import as_table_blocks
from moses_rnn.formats.table_blocks import TableLines, parse_blocks
from moses_rnn.networks.cells import ENCDEC_OF_CELLS, CellConfig, CellEncDec
from moses_rnn.networks.cstm import CSTM, Cstm, CstmConfig
from moses_rnn.networks.encdec import ENCDEC, SWITCHES, EncDec, EncDecConfig, variant_of
from moses_rnn.networks.folders import Architecture
from moses_rnn.networks.hardware import LARGE_TO_LEARN, choose_compiled, choose_precision
from moses_rnn.networks.learning_curves import NATS, Measure, Verdict, verdict
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.ranker import RANKER, Ranker, RankerConfig
from moses_rnn.networks.translation_network import NetworkOfPairs
from moses_rnn.producers.open import Model
from moses_rnn.training.architectures import INITIAL_RANGES, longest, slotted_network
from moses_rnn.training.cells import cell_switches
from moses_rnn.training.config import PRESETS, LearningRequest, PhraseModelRequest, Preset, TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.corpus_files import PAIRS, made_by_first
from moses_rnn.training.embeddings import GivenEmbeddings
from moses_rnn.training.estimate import Estimate, advice, estimate
from moses_rnn.training.gradients import rounds
from moses_rnn.training.model_folder import folder_of
from moses_rnn.training.pairs import describe_corpus
from moses_rnn.training.ranking import task_of
from moses_rnn.training.ranks import ALONE, Ranks
from moses_rnn.training.state import Progress
from moses_rnn.training.threads import share_cores
from moses_rnn.training.trainer import Observer, Trainer

LONG_MINUTES = 10  # of training: less would hardly win back what compiling takes


class Outcome(NamedTuple):
    """What has become of a run."""

    progress: Progress  # its `finished` is empty when the run was stopped
    rival_cost: float | None = None  # what a unigram model of the targets costs, say
    measure: Measure = NATS

    @property
    def verdict(self) -> Verdict:
        """What its held-out costs say of it."""
        return verdict(self.progress.history, self.rival_cost, self.measure)


@dataclass(frozen=True)
class Plan:
    """A preset with what the request overrides."""

    architecture: str
    network: Mapping[str, Any]  # sizes and switches of the config, without the vocabularies' sizes
    corpus: CorpusConfig
    training: TrainingConfig

    @property
    def kind(self) -> Architecture:
        """What the network is, as its folder names it: a gated cell as the paper's stays in the first format."""
        if self.architecture != ENCDEC.key:
            return {"cstm": CSTM, "ranker": RANKER}[self.architecture]
        return ENCDEC_OF_CELLS if "cell" in self.network else ENCDEC


def train_phrase_model(
    request: PhraseModelRequest,
    folder: Path,
    observer: Observer,
    should_stop: Callable[[], bool],
    ranks: Ranks = ALONE,
) -> Outcome:
    """Train a network on a phrase table, or continue a run that was stopped.

    Args:
        request: table and choices.
        folder: of the model; after every evaluation it holds the best weights so far.
        observer: follows the run.
        should_stop: called after every block of the table and every step.
        ranks: the processes that train it together; all call this function with equal arguments.

    Raises:
        InputError: the table cannot be read, is damaged or too small.
        CheckpointError: the folder holds a run with other choices, or a model without its run.
        OutputError: the folder cannot be made, or another run is training there.
        MosesRnnError: the training diverged.
        PeerFailed: another of the processes is gone.
        Stopped: while the table was read.
    """
    form, blocks = _open_table(request, observer, should_stop)
    plan = plan_of(request, ranks.size)
    with folder_of(ranks, folder, plan.kind, restart=request.restart) as kept:
        kept.check_choices({**plan.network, **plan.training.course()})
        corpus = made_by_first(
            ranks,
            kept.arrays,
            PAIRS,
            lambda: build_corpus(_pairs(blocks, request), kept.arrays, plan.corpus),
            should_stop,
        )
        model, described = _network(request, plan, corpus)
        observer.corpus_read([*describe_corpus(corpus, plan.kind.measure), *described, *_advice(request, plan, corpus)])
        task = task_of(model, corpus, plan.training)
        kept.checkpoint = Model(
            plan.kind,
            task.model,
            {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary},
            direction="target-to-source" if request.inverse else "source-to-target",
            provenance=_provenance(request, plan, corpus, form),
        )
        progress = Trainer(task, plan.training, ranks).run(kept, observer, should_stop)
        known = task.measure.baseline_cost
        return Outcome(progress, corpus.unigram_nats_per_token if known is None else known, task.measure)


def estimate_training(request: PhraseModelRequest, observer: Observer, should_stop: Callable[[], bool]) -> Estimate:
    """Read the table, learn for some seconds and forget it. Arguments as of `train_phrase_model`."""
    _, blocks = _open_table(request, observer, should_stop)
    plan = plan_of(request)
    with tempfile.TemporaryDirectory(prefix="moses-rnn") as arrays:
        corpus = build_corpus(_pairs(blocks, request), Path(arrays), plan.corpus)
        observer.corpus_read([*describe_corpus(corpus, plan.kind.measure), *_advice(request, plan, corpus)])
        return estimate(corpus, _network(request, plan, corpus)[0], plan.training)


def _open_table(
    request: PhraseModelRequest, observer: Observer, should_stop: Callable[[], bool]
) -> tuple[PhraseForm, Iterator[TableLines]]:
    """The form of a table's phrases, which its first block tells, and all its blocks."""
    table = request.phrase_table
    if table == STANDARD_STREAM:
        raise InputError("a table to train on must be a file: a stopped run reads it again")
    texts = read_watched([table], observer, should_stop)
    if request.layout == "tsv":
        texts = as_table_blocks(texts, table)
    blocks = parse_blocks(texts, table, form=PhraseForm(request.source_factor, request.target_factor))
    first = next(blocks)
    return first.form, itertools.chain([first], blocks)


def read_watched(paths: Sequence[str], observer: Observer, should_stop: Callable[[], bool]) -> Iterator[bytes]:
    """Files in blocks of whole lines, while the observer follows.

    Raises:
        Stopped: `should_stop` was true.
    """
    meter = Meter()
    for path in paths:
        for block in read_blocks(path, meter=meter):
            yield block
            observer.reading(meter.lines_read, meter.share)
            if should_stop():
                raise Stopped(f"stopped while reading {path}; run the same command again to start")


def _pairs(blocks: Iterator[TableLines], request: PhraseModelRequest) -> Iterator[tuple[bytes, bytes]]:
    for block in blocks:
        yield from zip(*block.pairs().sides(inverse=request.inverse), strict=True)


def plan_of(request: PhraseModelRequest, processes: int = 1) -> Plan:
    """The preset with what the request overrides; sets the number of threads that torch uses.

    Args:
        request: table and choices.
        processes: that share each minibatch.
    """
    preset = PRESETS[request.preset_name]
    size = request.shortlist or preset.shortlist
    network = _encdec(request, preset) if request.architecture == "encdec" else slotted_network(request)
    return Plan(
        architecture=request.architecture,
        network=network,
        corpus=CorpusConfig(size, size, request.held_out, longest(request), request.seed),
        training=_training(request, preset.training, network, processes),
    )


def _encdec(request: PhraseModelRequest, preset: Preset) -> dict[str, Any]:
    """Sizes and switches of an RNN Encoder-Decoder."""
    named = SWITCHES[request.variant]
    switches: dict[str, Any] = {**named, **request.given(*named), **cell_switches(request)}
    sizes = {**preset.network, **request.given(*preset.network)}
    return {**sizes, "variant": variant_of(switches), **switches}


def _training(
    request: PhraseModelRequest, preset: TrainingConfig, network: Mapping[str, Any], processes: int
) -> TrainingConfig:
    config, hidden_size = request.learning(preset), network.get("hidden_size") or network["first_size"]
    if request.architecture in INITIAL_RANGES:
        config = replace(config, initial_deviation=request.initial_deviation or INITIAL_RANGES[request.architecture])
    if request.variant == "groundhog":
        config = replace(config, reduction="sum")  # what the released code does
    long = (config.max_minutes or math.inf) >= LONG_MINUTES
    precision = choose_precision(request.precision, request.device, hidden_size)
    native = "" if request.compiled else instructions_to_learn(request.device, precision)
    compile_it = False if native else request.compiled
    return replace(
        config,
        **request.given("sampled_words"),
        **GivenEmbeddings.of(request).choices(),
        precision=precision,
        compiled=choose_compiled(compile_it, request.device, hidden_size, long=long, large=LARGE_TO_LEARN),
        native=native,
        threads=threads_for(request, rows_at_once(config, processes), native=bool(native)),
    )


def rows_at_once(config: TrainingConfig, processes: int) -> int:
    """Examples of a minibatch that one process computes together."""
    return config.batch_size // (processes * rounds(config.accumulate, processes))


def threads_for(request: LearningRequest, examples: int, *, native: bool = False) -> int:
    """Threads to share some examples: none beside the first for a GPU; torch gets the cores that are left for each."""
    cores = request.threads or torch.get_num_threads()
    return 1 if request.on_gpu else share_cores(cores, examples, native=native)


def _network(request: PhraseModelRequest, plan: Plan, corpus: Corpus) -> tuple[NetworkOfPairs, list[str]]:
    """With its initial weights, and what is to be said of those that come from files."""
    model = _unset(plan, (len(corpus.source_vocabulary), len(corpus.target_vocabulary)))
    model.initialise(plan.training.seed, plan.training.initial_deviation)
    model = model.to(request.device)
    known = {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary}
    return model, GivenEmbeddings.of(request).begin(model, known)


def _unset(plan: Plan, known: tuple[int, int]) -> NetworkOfPairs:
    if plan.kind is RANKER:
        return Ranker(RankerConfig(*known, **plan.network), seed=None)
    if plan.kind is CSTM:
        return Cstm(CstmConfig(*known, **plan.network), seed=None)
    if plan.kind is ENCDEC_OF_CELLS:
        return CellEncDec(CellConfig(*known, **plan.network), seed=None)
    return EncDec(EncDecConfig(*known, **plan.network), seed=None)


def _advice(request: PhraseModelRequest, plan: Plan, corpus: Corpus) -> list[str]:
    """How long the paper's preset would take here, where "small" was chosen for want of a GPU."""
    if request.quiet or request.preset or request.on_gpu or plan.architecture != "encdec":
        return []
    return [advice("paper", corpus, request.device, plan.training.threads)]


def _provenance(request: PhraseModelRequest, plan: Plan, corpus: Corpus, form: PhraseForm) -> dict[str, Any]:
    """What a checkpoint remembers of its run."""
    return {
        "version": __version__,
        "torch": torch.__version__,
        "table": Path(request.phrase_table).name,
        "embeddings": {side: Path(path).name for side, path in GivenEmbeddings.of(request).files.items()},
        "phrases": form.as_record(),
        "device": request.device,
        "corpus_options": asdict(plan.corpus),
        "training_options": asdict(plan.training),
        "corpus": asdict(corpus.statistics),
        "unigram_nats_per_token": corpus.unigram_nats_per_token,
    }
