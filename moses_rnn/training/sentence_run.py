"""Training networks that read whole sentences: two texts to arrays to network to model folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from moses_rnn import __version__
from moses_rnn.formats.rare_words import WINDOW, RareWords
from moses_rnn.networks.config import SENTENCES
from moses_rnn.networks.encdec import ENCDEC, SWITCHES, EncDec, EncDecConfig
from moses_rnn.networks.folders import SOURCE_TO_TARGET, TARGET_TO_SOURCE, Architecture
from moses_rnn.networks.hardware import choose_compiled, choose_precision
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.rnnsearch import RNNSEARCH, RnnSearch, RnnSearchConfig
from moses_rnn.networks.seq2seq import SEQ2SEQ, Seq2Seq, Seq2SeqConfig
from moses_rnn.networks.translation_network import TranslationNetwork
from moses_rnn.producers.open import Model
from moses_rnn.training.config import Preset, TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.corpus_files import PAIRS, made_by_first
from moses_rnn.training.model_folder import folder_of
from moses_rnn.training.pairs import PhrasePairs, epoch_batches
from moses_rnn.training.parallel import ParallelTexts, describe_sentences, turned
from moses_rnn.training.partitions import check_partitions, describe_partitions
from moses_rnn.training.ranks import ALONE, Ranks
from moses_rnn.training.rare_corpus import AlignedTexts, Annotation, Watch
from moses_rnn.training.run import LONG_MINUTES, Outcome, rows_at_once, threads_for
from moses_rnn.training.sentence_config import SentenceRequest
from moses_rnn.training.trainer import Observer, Trainer


class Recipe(NamedTuple):
    """A network that can be trained: its architecture, and how it is made of all its sizes and switches."""

    architecture: Architecture
    make: Callable[[int, int, Mapping[str, Any]], TranslationNetwork]


def _make_rnnsearch(source_words: int, target_words: int, network: Mapping[str, Any]) -> RnnSearch:
    return RnnSearch(RnnSearchConfig(source_words, target_words, **network), seed=None)


def _make_seq2seq(source_words: int, target_words: int, network: Mapping[str, Any]) -> Seq2Seq:
    return Seq2Seq(Seq2SeqConfig(source_words, target_words, **network), seed=None)


def _make_rnnenc(source_words: int, target_words: int, network: Mapping[str, Any]) -> EncDec:
    switches: Mapping[str, Any] = {"variant": "groundhog", **SWITCHES["groundhog"]}
    return EncDec(EncDecConfig(source_words, target_words, **network, **switches), seed=None)


ARCHITECTURES = {
    "rnnsearch": Recipe(RNNSEARCH, _make_rnnsearch),
    "seq2seq": Recipe(SEQ2SEQ, _make_seq2seq),
    "rnnenc": Recipe(ENCDEC, _make_rnnenc),
}


def train_sentence_model(
    request: SentenceRequest,
    folder: Path,
    observer: Observer,
    should_stop: Callable[[], bool],
    ranks: Ranks = ALONE,
) -> Outcome:
    """Train a network on two texts, or continue a run that was stopped.

    Args:
        request: texts and choices.
        folder: of the model; after every evaluation it holds the best weights so far.
        observer: follows the run.
        should_stop: called while the texts are read and after every step.
        ranks: the processes that train it together; all call this function with equal arguments.

    Raises:
        InputError: a text cannot be read, they have not equally many lines, or are too small.
        CheckpointError: the folder holds a run with other choices, or a model without its run.
        OutputError: the folder cannot be made, or another run is training there.
        MosesRnnError: the training diverged.
        PeerFailed: another of the processes is gone.
        Stopped: while the texts were read.
    """
    texts = ParallelTexts.of_prefix(request.prefix, request.source, request.target)
    dev = ParallelTexts.of_prefix(request.dev, request.source, request.target) if request.dev else None
    for both in filter(None, (texts, dev) if ranks.leads else ()):
        both.check_lengths()
    annotation = _annotation(request, texts, dev)
    preset = request.chosen_preset()
    preset = replace(preset, training=_training(request, preset, ranks.size))
    architecture, make = ARCHITECTURES[request.architecture]
    switches = {**preset.network, **_rare_switch(annotation)}
    with folder_of(ranks, folder, architecture, restart=request.restart) as kept:
        kept.check_choices({**switches, **preset.training.course()})
        watch = observer.reading, should_stop

        def build() -> Corpus:
            if annotation is None:
                return _corpus(request, preset, (texts, dev), kept.arrays, watch)
            return annotation.build(kept.arrays, _corpus_config(request, preset), watch)

        corpus = made_by_first(ranks, kept.arrays, PAIRS, build, should_stop)
        described = describe_sentences(corpus, dev=dev is not None)
        observer.corpus_read([*described, *_describe_partitions(corpus, preset.training)])
        model = make(len(corpus.source_vocabulary), len(corpus.target_vocabulary), switches)
        model.initialise(preset.training.seed, preset.training.initial_deviation)
        task = PhrasePairs(model.to(request.device), corpus, preset.training)
        kept.checkpoint = Model(
            architecture,
            task.model,
            {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary},
            direction=TARGET_TO_SOURCE if request.inverse else SOURCE_TO_TARGET,
            provenance=_provenance(request, preset, corpus),
        )
        progress = Trainer(task, preset.training, ranks).run(kept, observer, should_stop)
        return Outcome(progress, corpus.unigram_nats_per_token)


def _corpus(
    request: SentenceRequest,
    preset: Preset,
    texts: tuple[ParallelTexts, ParallelTexts | None],
    folder: Path,
    watch: Watch,
) -> Corpus:
    to_learn, held_out = (
        None if both is None else turned(both.pairs(*watch), inverse=request.inverse) for both in texts
    )
    assert to_learn is not None
    return build_corpus(to_learn, folder, _corpus_config(request, preset), held_out=held_out)


def _annotation(request: SentenceRequest, texts: ParallelTexts, dev: ParallelTexts | None) -> Annotation | None:
    """How rare words are to be annotated, if they are."""
    if request.rare is None:
        return None
    return Annotation(
        RareWords(request.rare, request.rare_window or WINDOW),
        AlignedTexts.of(texts, request.alignment),
        None if dev is None else AlignedTexts.of(dev, request.dev_alignment),
        request.inverse,
    )


def _rare_switch(annotation: Annotation | None) -> dict[str, Any]:
    """What the network's config says of rare words, if they are annotated."""
    return {} if annotation is None else {"rare": asdict(annotation.rare)}


def _describe_partitions(corpus: Corpus, config: TrainingConfig) -> list[str]:
    """What partitions there are, in lines for a log.

    Raises:
        InputError: a minibatch has too many words for one.
    """
    if not 0 < config.partition_words < len(corpus.target_vocabulary):
        return []
    sizes = check_partitions(corpus, epoch_batches(corpus, config, 0), config.partition_words)
    return [describe_partitions(sizes)]


def _corpus_config(request: SentenceRequest, preset: Preset) -> CorpusConfig:
    read, written = request.source_words, request.target_words
    if request.inverse:
        read, written = written, read
    return CorpusConfig(
        read or preset.words_read or preset.shortlist,
        written or preset.shortlist,
        held_out_pairs=request.held_out,
        max_length=request.max_length,
        seed=request.seed,
        repeated=True,
        min_count=preset.min_count,
    )


def _training(request: SentenceRequest, preset: Preset, processes: int) -> TrainingConfig:
    """The preset's training as this machine does it."""
    config, width = preset.training, int(str(preset.network["hidden_size"]))
    precision = choose_precision(request.precision, request.device, width)
    native = instructions_to_learn(request.device, precision)
    long = (config.max_minutes or math.inf) >= LONG_MINUTES
    return replace(
        config,
        precision=precision,
        compiled=False if native else choose_compiled(None, request.device, width, long=long),
        native=native,
        threads=threads_for(request, rows_at_once(config, processes), native=bool(native)),
    )


def _provenance(request: SentenceRequest, preset: Preset, corpus: Corpus) -> dict[str, Any]:
    """What a checkpoint remembers of its run."""
    return {
        "version": __version__,
        "torch": torch.__version__,
        "unit": SENTENCES,
        "texts": [f"{Path(request.prefix).name}.{ending}" for ending in (request.source, request.target)],
        "dev": request.dev and Path(request.dev).name,
        "alignment": request.alignment and Path(request.alignment).name,
        "device": request.device,
        "corpus_options": asdict(_corpus_config(request, preset)),
        "training_options": asdict(preset.training),
        "corpus": asdict(corpus.statistics),
        "unigram_nats_per_token": corpus.unigram_nats_per_token,
    }
