"""The options of training runs, and how they choose a network, its preset and its overrides.

An option belongs to the run, the material, the training or a network's config, and is an error where it has no effect.
Options without a help text can only be set in a file of settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from moses_rnn.errors import ArgumentError, MosesRnnError, shown_value
from moses_rnn.models.rare_words import COPYABLE, KINDS, NOALIGN
from moses_rnn.options import (
    FIRST_SECTION,
    Device,
    ModelFolder,
    Option,
    OptionsOf,
    Quiet,
    Section,
    SourceFactor,
    TargetFactor,
    Threads,
    expectation,
)
from moses_rnn.table.tab_separated import TableFormat
from moses_rnn.training.presets import (
    NETWORKS,
    OF_RARE_WORDS,
    Preset,
    TrainingConfig,
    for_optimiser,
    networks_of,
)

Options = Mapping[str, Any]  # by name; None or a missing option means the preset's value

HiddenSize = Annotated[int | None, Section("Network"), Option("Hidden units H", min=1)]
EmbeddingSize = Annotated[int | None, Option("Embedding dimensions E", min=1)]
Shortlist = Annotated[int | None, Option("Shortlist size per side; other words are <unk>", min=1)]
Count = Annotated[int | None, Option(min=1)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of every training run."""

    preset: Annotated[
        str,
        Section(FIRST_SECTION),
        Option("Network sizes and training options, shown below", choices=("small", "paper")),
    ] = "small"
    device: Device = "auto"
    threads: Threads = None
    precision: Annotated[str, Option(choices=("auto", "fp32", "bf16"))] = "auto"
    force: Annotated[bool, Section("Run"), Option("Delete the model in the folder and start over")] = False
    quiet: Quiet = False


Learning = Annotated[Options, OptionsOf(TrainingConfig)]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of a training on a phrase table."""

    phrase_table: str
    model: Annotated[
        Path | None, Option("Model folder [default: phrase-table.rnn-model for phrase-table.gz]", metavar="FOLDER")
    ] = None
    architecture: Annotated[
        str,
        Option(
            "encdec: the RNN Encoder-Decoder; for comparison, networks for phrases of up to 7 words: cstm, a "
            "feed-forward network, or ranker, whose score is not a log-probability",
            choices=tuple(networks_of("table")),
        ),
    ] = "encdec"
    inverse: Annotated[bool, Option("Learn p(source | target) instead, for moses-rnn-score --inverse-model")] = False

    hidden_size: HiddenSize = None
    embedding_size: EmbeddingSize = None
    shortlist: Shortlist = None
    source_embeddings: Annotated[
        str | None, Option("Initial source embeddings, in word2vec's text format", metavar="FILE")
    ] = None
    target_embeddings: Annotated[
        str | None, Option("Initial target embeddings, in word2vec's text format", metavar="FILE")
    ] = None

    layout: Annotated[TableFormat, Section("Phrase table")] = "moses"
    source_factor: SourceFactor = None
    target_factor: TargetFactor = None

    max_length: Annotated[int, Option(min=0)] = 0  # words of a side; longer pairs are left out; 0: no limit
    held_out: Annotated[int, Option(min=1)] = 5000


@dataclass(frozen=True, kw_only=True)
class SentenceOptions:
    """Options of a training on two parallel texts."""

    prefix: str
    source: Annotated[str, Option("The source text is PREFIX.SOURCE, plain or gzip")]
    target: Annotated[str, Option("The target text is PREFIX.TARGET, its translation line by line")]
    dev: Annotated[str | None, Option("Held-out texts DEV.SOURCE and DEV.TARGET [default: some of the pairs]")] = None
    model: ModelFolder
    architecture: Annotated[
        str,
        Option(
            "rnnsearch: with attention (Bahdanau et al.); seq2seq: deep LSTMs (Sutskever et al.); transformer "
            "(Vaswani et al.); rnnenc: the phrase network, on sentences",
            choices=tuple(networks_of("sentences")),
        ),
    ] = "rnnsearch"
    inverse: Annotated[bool, Option("Learn p(source | target) instead")] = False
    right_to_left: Annotated[bool, Option("Learn to write the last word first, for a second n-best feature")] = False

    hidden_size: HiddenSize = None
    embedding_size: EmbeddingSize = None
    source_words: Annotated[int | None, Option("Source shortlist size; other words are <unk>", min=1)] = None
    target_words: Annotated[int | None, Option("Target shortlist size; other words are <unk>", min=1)] = None

    subwords: Annotated[
        int | None,
        Option("Cut words into at most N subwords, which both sides share", metavar="N", min=1, max=1_000_000),
    ] = None

    rare: Annotated[
        str | None,
        Section("Rare words"),
        Option(
            "Annotate words outside the shortlists, to restore them in translations (Luong et al.)",
            choices=KINDS,
        ),
    ] = None
    alignment: Annotated[
        str | None, Option("Word alignment of the texts, one line per pair: 0-0 1-2 …", metavar="FILE")
    ] = None
    dev_alignment: Annotated[str | None, Option("Word alignment of the --dev texts", metavar="FILE")] = None

    min_count: Count = None
    rare_window: Annotated[int | None, Option(min=1, max=1000)] = None
    max_length: Annotated[int, Option(min=0)] = 50
    held_out: Annotated[int, Option(min=1)] = 1000


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Options of the training of a language model on a text."""

    texts: tuple[str, ...]
    model: ModelFolder
    architecture: Annotated[
        str,
        Option(
            "cslm: n-grams, two rectified layers (Schwenk); bengio: n-grams, one layer, optional direct connections "
            "(Bengio et al.); rnnlm: whole sentences, recurrent (Mikolov et al.)",
            "--network --architecture",
            choices=tuple(networks_of("text")),
        ),
    ] = "cslm"
    dev: Annotated[str | None, Option("Held-out text [default: some lines of TEXTS, left out of training]")] = None

    hidden_size: Annotated[HiddenSize, Option("Hidden units H; 0 only with bengio", min=0)] = None
    order: Annotated[int | None, Option("Order n of the n-grams, for cslm [7] and bengio [5]", min=2, max=64)] = None
    embedding_size: EmbeddingSize = None
    shortlist: Annotated[Shortlist, Option("Shortlist size; other words are <unk>", min=1)] = None
    subwords: Annotated[
        int | None,
        Option("Cut words into at most N subwords, in place of a shortlist", metavar="N", min=1, max=1_000_000),
    ] = None
    self_normalise: Annotated[
        float | None,
        Section("Learning"),
        Option(
            "Weight α of a penalty α (log Z)² on the softmax's normaliser Z, for decoders that do not normalise; "
            "for cslm and bengio",
            min=0,
        ),
    ] = None

    min_count: Count = None
    bptt: Annotated[int | None, Option(min=0)] = None
    held_out: Count = None  # lines


OPTIONS: dict[str, Any] = {"table": TableOptions, "sentences": SentenceOptions, "text": TextOptions}
OF_SOME = {name for network in NETWORKS.values() for name in network.own}
NEEDED = {  # without which a setting has no effect
    "rho": ("optimiser", "adadelta"),
    "epsilon": ("optimiser", "adadelta"),
    "beta_2": ("optimiser", "adam"),
    "decay_on_plateau": ("schedule", "plateau"),
}
# by the optimiser, the machine and files
DECIDED_LATER = {"optimiser", "precision", "native", "threads", "source_embeddings", "target_embeddings"}


class UnfitOption(ArgumentError):
    """An option that is invalid or conflicts with the others."""

    def __init__(self, name: str, why: str) -> None:
        MosesRnnError.__init__(self, f"{name}: {why}")
        self.name, self.why = name, why


def choose(options: Options) -> tuple[dict[str, Any], Preset]:
    """Return the options of the run and material, and the preset with its overrides.

    Raise UnfitOption if options conflict.
    """
    given = {name: value for name, value in options.items() if value is not None}
    name = given.get("architecture", TableOptions.architecture)
    if not isinstance(name, str) or name not in NETWORKS:
        raise UnfitOption("architecture", f"expected one of {', '.join(NETWORKS)}, found {shown_value(name)}")
    network = NETWORKS[name]
    types = _types(network.material)
    settings = {key: given.pop(key) for key in given.keys() - types.keys()}  # which the network's config checks
    refuse_unknown(given, (types.keys() - OF_SOME) | network.own, f"--architecture {name}")
    for key in sorted(given):
        if expected := expectation(types[key], given[key]):
            raise UnfitOption(key, f"expected {expected}, found {shown_value(given[key])}")
    records = RunOptions, OPTIONS[network.material]
    defaults = {one.name: one.default for record in records for one in fields(record)}
    every = {key: None if value is MISSING else value for key, value in defaults.items()} | given
    preset = network.presets[str(every["preset"])]
    config = {**preset.network, **settings}
    if given.get("subwords") and "shared" in preset.network:
        config["shared"] = settings.get("shared", True)
    config |= {key: given[key] for key in config.keys() & given.keys()}
    _check_embeddings(name, every)
    _check_needs(given, config if "shared" in preset.network else {})
    _check_rare(given)
    if "sort_batches" in given and network.task == "NGrams":
        raise UnfitOption("sort_batches", "has no effect on n-grams, which all have the same length")
    for name, others in EXCLUSIVE.items():
        if given.get(name) and (excluded := [other for other in others if other in given]):
            raise UnfitOption(name, f"does not go with --{excluded[0].replace('_', '-')}")
    learning = {key: given.get(key, value) for key, value in preset.learning.items()}
    training = _training(preset.training, every, groundhog=settings.get("variant") == "groundhog")
    sizes = {key: given[key] for key in ("shortlist", "min_count") if key in given}
    return every, replace(preset, network=config, training=training, learning=learning, **sizes)


def _types(material: str) -> dict[str, Any]:
    """Return the types of the options for a material's networks."""
    elsewhere = {one.name for record in OPTIONS.values() for one in fields(record)}
    learning = get_type_hints(TrainingConfig, include_extras=True)
    own = [get_type_hints(record, include_extras=True) for record in (RunOptions, OPTIONS[material])]
    return {name: hint for name, hint in learning.items() if name not in elsewhere | {"native"}} | own[0] | own[1]


def refuse_unknown(given: Iterable[str], own: Collection[str], whose: str) -> None:
    """Raise UnfitOption for an option that is not among a network's own."""
    for name in sorted(given):
        if name not in own:
            raise UnfitOption(name, f"{whose} has no such option")


def _training(preset: TrainingConfig, every: Options, *, groundhog: bool) -> TrainingConfig:
    """Return the training options, except those that the machine decides."""
    training = for_optimiser(preset, every.get("optimiser", preset.optimiser))
    if every.get("weight_decay") and training.optimiser == "adadelta":
        raise UnfitOption("weight_decay", "expected the optimiser adam or sgd, found adadelta")
    if groundhog:  # what the released code does
        training = replace(training, reduction="sum", clip_norm=1.0)
    if every.get("batch_size"):
        if every.get("batch_words"):
            raise UnfitOption("batch_words", "does not go with --batch-size")
        training = replace(training, batch_words=0)
    names = {each.name for each in fields(TrainingConfig)} - DECIDED_LATER
    training = replace(training, **{name: every[name] for name in names if every.get(name) is not None})
    for name, (key, needed) in NEEDED.items():
        if every.get(name) is not None and getattr(training, key) != needed:
            raise UnfitOption(name, f"needs {key} {needed}, found {getattr(training, key)}")
    return training


def _check_embeddings(name: str, every: Options) -> None:
    written = "source_embeddings" if every.get("inverse") else "target_embeddings"
    if name == "cstm" and every.get(written):
        raise UnfitOption(written, "--architecture cstm has no embeddings for the side that it writes")
    if every.get("freeze_embeddings"):
        if not (every["source_embeddings"] or every["target_embeddings"]):
            raise UnfitOption("freeze_embeddings", "needs --source-embeddings or --target-embeddings")
        if every.get("weight_decay"):
            raise UnfitOption("freeze_embeddings", "expected no weight_decay, which would change the embeddings")


EXCLUSIVE = {"subwords": ("rare", "shortlist", "source_words", "target_words"), "right_to_left": ("rare",)}
IDLE_WITH = {NOALIGN: ("alignment", "dev_alignment", "rare_window"), COPYABLE: ("rare_window",)}


def _check_needs(given: Options, config: Mapping[str, object]) -> None:
    if given.get("reshuffle") and not given.get("partition_words"):
        raise UnfitOption("reshuffle", "needs partition_words: without it, each epoch has its own order")
    if config.get("shared") and not given.get("subwords"):
        raise UnfitOption("shared", "needs --subwords: without them, each side has its own words")


def _check_rare(given: Options) -> None:
    rare = given.get("rare")
    if rare is None:
        for name in given.keys() & {*OF_RARE_WORDS}:
            raise UnfitOption(name, "needs --rare")
    elif idle := given.keys() & IDLE_WITH.get(rare, ()):
        raise UnfitOption(min(idle), f"has no effect with --rare {rare}")
    elif "dev_alignment" in given and "dev" not in given:
        raise UnfitOption("dev_alignment", "needs --dev")
    elif rare != NOALIGN:
        for option, needed in (("alignment", True), ("dev_alignment", "dev" in given)):
            if needed and option not in given:
                needs = f"{rare} needs --{option.replace('_', '-')}, which says how to annotate words"
                raise UnfitOption("rare", needs)
