"""Every network that can be trained: how, what it learns from, its presets, and what the options of a training choose.

An option is one of the run, of the material, of how a network learns or of its config; it has no use elsewhere, and is
refused there. Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from moses_rnn.errors import MosesRnnError, shown_value
from moses_rnn.scorers.rare_words import COPYABLE, KINDS, NOALIGN
from moses_rnn.training.schedules import SCHEDULES

MINUTES_OF_THREE_DAYS = 3 * 24 * 60.0
EACH_EPOCH = 1 << 40  # examples between two evaluations, of which there is one an epoch at least


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser, loss, batches and stopping.

    `reduction` scales the gradient: "pair-mean" is the paper's equation 4 (log-likelihood averaged over the phrase
    pairs of a batch), "token-mean" averages over target words, "sum" is what the released code does. `clip_norm` bounds
    the gradient's global L2 norm (0: no bound; the released code: 1). `sort_batches` batches are drawn together and cut
    by length, so that phrases of one batch are about equally long.
    """

    optimiser: str = "adadelta"  # or another of CUSTOMARY_RATES
    learning_rate: float = 1.0
    rho: float = 0.95  # Adadelta
    epsilon: float = 1e-6  # Adadelta; inside both roots
    schedule: str = "plateau"  # how the learning rate falls, see training/schedules.py
    decay_on_plateau: float = 1.0  # the schedule plateau's factor after an evaluation without gain
    batch_size: int = 64  # phrase pairs
    sort_batches: int = 10
    warm_up: int = 0  # minibatches over which the learning rate rises to its value
    cool_down: float = 0.0  # the last share of the budget, over which the learning rate falls to zero
    averaging: float = 0.0  # the last share of the steps whose weights are averaged, about; 0: the last weights alone
    weight_decay: float = 0.0  # Adam and SGD; of matrices, times the learning rate
    dropout: float = 0.0  # share of units left out in a step: of embeddings and maxout, or a CSLM's layers
    initial_deviation: float = 0.01  # of the matrices that are not recurrent
    sampled_words: int = 0  # drawn for each minibatch to estimate the normalisation by; 0: all words
    partition_words: int = 0  # words that are normalised over at most, see training/tasks.py; 0: all of them
    reshuffle: bool = False  # partitions: a new order of the pairs in each epoch, and so new ones
    reduction: str = "pair-mean"
    clip_norm: float = 1.0
    precision: str = "fp32"  # of matrix products; or "bf16": weights, states, gates and losses stay float32
    compiled: bool = False  # whether torch.compile fuses the work between products; changes the last digits
    native: str = ""  # the native core's instruction set if it computes, which changes the last digits too; "": torch
    seed: int = 1
    max_epochs: float = 0.0  # 0: no limit
    max_minutes: float = MINUTES_OF_THREE_DAYS  # 0: no limit
    evaluate_every: int = 500_000  # pairs
    patience: int = 20  # evaluations without gain before stopping
    save_minutes: float = 10.0
    threads: int = 1  # that share a minibatch, see training/ranks.py; changes the last digits
    accumulate: int = 1  # parts of a minibatch, one after the other, see training/descent.py; likewise
    source_embeddings: str = ""  # SHA-256 of the file that they begin as, see training/embeddings.py; "": random
    target_embeddings: str = ""
    freeze_embeddings: bool = False  # those of a file are not learned

    def describe(self, unit: str = "pairs") -> str:
        """The choices in words, for a log."""
        limits = [f"{self.max_epochs:g} epoch{'s' * (self.max_epochs != 1)}"] * bool(self.max_epochs)
        limits += [f"{self.max_minutes:g} minutes"] * bool(self.max_minutes)
        limits += [f"{self.patience} evaluations without gain"]
        also = [f"schedule {self.schedule}"] * (self.schedule != "plateau")
        also += [f"risen over {self.warm_up:,} minibatches"] * bool(self.warm_up)
        also += [f"falling in the last {self.cool_down:.0%}"] * bool(self.cool_down)
        also += [f"weights averaged over about the last {self.averaging:.0%} of the steps"] * bool(self.averaging)
        also += [f"dropout {self.dropout:g}"] * bool(self.dropout)
        also += [f"weight decay {self.weight_decay:g}"] * bool(self.weight_decay)
        also += [f"partitions of {self.partition_words:,} words" + ", reshuffled" * self.reshuffle] * (
            self.partition_words > 0
        )
        return (
            f"{', '.join([self.optimiser, f'learning rate {self.learning_rate:g}', *also])}, "
            f"{self.batch_size} {unit} per minibatch{f' in {self.accumulate} parts' if self.accumulate > 1 else ''}, "
            f"{self.reduction} gradient clipped at {self.clip_norm:g}, {self.precision}, seed {self.seed}; "
            f"evaluated {self._describe_evaluations(unit)}; ends after {' or '.join(limits)}"
            f"{f'; by the native core, {self.native}' if self.native else ''}"
        )

    def _describe_evaluations(self, unit: str) -> str:
        return "after each epoch" if self.evaluate_every == EACH_EPOCH else f"every {self.evaluate_every:,} {unit}"

    def course(self) -> dict[str, object]:
        """The choices that decide the weights after a given number of steps: a resumed run must share them."""
        return {key: value for key, value in asdict(self).items() if key not in LIMITS}


# may change when a run is resumed
LIMITS = {"max_epochs", "max_minutes", "patience", "save_minutes", "threads", "accumulate"}


ALL = 1 << 30  # words: of a shortlist that only `min_count` bounds
LETTERS = {"hidden_size": "H", "embedding_size": "E", "alignment_size": "A", "maxout_size": "M", "output_rank": "R"}
LETTERS |= {"layers": "L"}


@dataclass(frozen=True)
class Preset:
    """Sizes and switches of a network, as its config has them, with the training that suits them."""

    network: Mapping[str, Any]
    training: TrainingConfig
    shortlist: int = ALL  # words at most
    words_read: int = 0  # in the shortlist of the side that is read; 0: as many
    min_count: int = 1  # of a word that is in it
    learning: Mapping[str, float] = field(default_factory=dict)  # how a language model learns, beside the optimiser

    def __str__(self) -> str:
        sizes = ", ".join(f"{LETTERS.get(name, name)} {value}" for name, value in self.network.items())
        training = self.training
        limit = f", at most {training.max_minutes / 60:g} hours" if training.max_minutes else ""
        return f"{sizes}; {self._shortlists}; {training.optimiser}, {training.batch_size} a minibatch{limit}"

    @property
    def _shortlists(self) -> str:
        if self.shortlist == ALL:
            return f"words seen {self.min_count} times"
        return " and ".join(f"{most:,}" for most in (self.words_read, self.shortlist) if most) + " words"


# Zeiler (2012) has none; Kingma and Ba (2015), algorithm 1; Sutskever et al. (2014), section 3.4
CUSTOMARY_RATES = {"adadelta": 1.0, "adam": 1e-3, "sgd": 0.7}


def for_optimiser(config: TrainingConfig, optimiser: str) -> TrainingConfig:
    """The same training with another optimiser, and the learning rate that is customary for it."""
    if optimiser == config.optimiser:
        return config
    rate = CUSTOMARY_RATES[optimiser]
    decay = 1.0 if optimiser == "adadelta" else 0.5  # Adadelta finds its own steps
    return replace(config, optimiser=optimiser, learning_rate=rate, decay_on_plateau=decay)


# --- networks ---------------------------------------------------------------------------------------------------------


Options = Mapping[str, Any]  # by name; one that is None or missing is left to the preset

CELLS = "gru", "tanh", "relu", "leaky", "lstm", "lstm-peephole"
CORRUPT = "last", "any"  # which word of a target a ranker sees replaced
CELL_SWITCHES = {  # those of a cell; the others have none
    "gru": ("encoder_reset", "decoder_reset"),
    "leaky": ("leaky_share",),
    "lstm": ("forget_bias",),
    "lstm-peephole": ("forget_bias",),
}
# What --preset small cost on held-out pairs of Multi30k after some passes over the table, on the way through its 30
# minutes (docs/results.md)
SHARES_OF_UNIGRAMS = ((0.5, 0.18), (1.0, 0.15), (2.0, 0.13), (3.0, 0.12), (4.2, 0.11))


class UnfitOption(MosesRnnError, ValueError):
    """An option that does not go with the others.

    Args:
        name: of the option.
        why: what is wrong with it.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name, self.why = name, why


class Values(NamedTuple):
    """What an option may be: one of some names, true or false, or a number within limits."""

    kind: type  # str, bool, int or float
    least: Any = None  # of that type
    most: Any = None
    above: bool = False  # whether the least itself is none
    below: bool = False  # the same of the most
    names: Sequence[str] = ()

    def have(self, value: object) -> bool:
        """Whether it is one of them; a whole number is a number too."""
        if self.names:
            return value in self.names
        if self.kind is bool:
            return type(value) is bool
        if not isinstance(value, int | float) or type(value) not in (int, self.kind) or not math.isfinite(value):
            return False
        least, most = self.least, self.most
        enough = least is None or value > least or (value == least and not self.above)
        return enough and (most is None or value < most or (value == most and not self.below))

    def __str__(self) -> str:
        if self.names:
            return f"one of {', '.join(self.names)}"
        if self.kind is bool:
            return "true or false"
        least = "" if self.least is None else f" {'above' if self.above else 'from'} {self.least:g}"
        most = "" if self.most is None else f" {'below' if self.below else 'up to'} {self.most:g}"
        return f"a {'whole ' * (self.kind is int)}number{least}{most}"


def _names(*names: str) -> Values:
    return Values(str, names=names)


def _whole(least: int, most: int | None = None) -> Values:
    return Values(int, least, most)


def _number(least: float, most: float | None = None, *, above: bool = False, below: bool = False) -> Values:
    return Values(float, least, most, above, below)


FLAG = Values(bool)
# what users may give that is neither a file nor a device
VALUES = {
    "preset": _names("paper", "small"),
    # of the network
    "variant": _names("paper", "groundhog"),
    "summary": _names("tanh", "last"),
    "first_step": _names("zero-embedding", "initial-state"),
    "decoder_reset": _names("after", "before"),
    "cell": _names(*CELLS),
    "encoder_reset": _names("before", "after"),
    "leaky_share": _number(0, 1),
    "forget_bias": _number(-1000, 1000),
    "hidden_size": _whole(0),
    "embedding_size": _whole(1),
    "alignment_size": _whole(1),
    "maxout_size": _whole(1),
    "output_rank": _whole(0),
    "layers": _whole(1, 64),
    "slots": _whole(1, 64),
    "order": _whole(2, 64),
    "first_size": _whole(1),
    "second_size": _whole(1),
    "corrupt": _names(*CORRUPT),
    "direct": FLAG,
    "phases": _names("paper", "groundhog"),
    "source_order": _names("reversed", "forward"),
    "peepholes": FLAG,
    # of what is learned
    "shortlist": _whole(1),
    "source_words": _whole(1),
    "target_words": _whole(1),
    "min_count": _whole(1),
    "max_length": _whole(0),
    "held_out": _whole(1),
    "partition_words": _whole(3),
    "reshuffle": FLAG,
    "sampled_words": _whole(0),
    "rare": _names(*KINDS),
    "rare_window": _whole(1, 1000),
    "freeze_embeddings": FLAG,
    "inverse": FLAG,
    # of learning
    "optimiser": _names(*CUSTOMARY_RATES),
    "learning_rate": _number(0, above=True),
    "schedule": _names(*SCHEDULES),
    "batch_size": _whole(1),
    "accumulate": _whole(1),
    "warm_up": _whole(0),
    "cool_down": _number(0, 1),
    "averaging": _number(0, 1),
    "weight_decay": _number(0),
    "dropout": _number(0, 1, below=True),
    "clip_norm": _number(0),
    "initial_deviation": _number(0, above=True),
    "bptt": _whole(0),
    "self_normalise": _number(0),
    "seed": _whole(0, (1 << 63) - 1),
    # of the run
    "precision": _names("auto", "fp32", "bf16"),
    "compiled": FLAG,
    "max_epochs": _number(0),
    "max_minutes": _number(0),
    "evaluate_every": _whole(1),
    "patience": _whole(1),
    "threads": _whole(1, 1024),
}


@dataclass(frozen=True)
class Network:
    """A network that can be trained.

    `switches` are what its config has beside the preset's sizes, as they are without an option; `also` are further
    options.
    """

    material: str  # of MATERIALS
    presets: Mapping[str, Preset]
    switches: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """What a training is to do."""

    options: dict[str, Any]  # all of the run and of the material
    preset: Preset  # with what the options override


# --- presets ----------------------------------------------------------------------------------------------------------

PHRASES = {
    # section 4.1 of the paper: 1000 hidden units, rank-100 matrices, 15 000 words, Adadelta, 64 pairs, three days
    "paper": Preset(
        {"hidden_size": 1000, "embedding_size": 100, "maxout_size": 500, "output_rank": 100}, TrainingConfig(), 15_000
    ),
    # for two CPU cores and half an hour; chosen by the sweep in docs/results.md
    "small": Preset(
        {"hidden_size": 256, "embedding_size": 64, "maxout_size": 128, "output_rank": 64},
        TrainingConfig(
            optimiser="adam",
            learning_rate=4e-3,
            decay_on_plateau=0.5,
            cool_down=0.5,
            averaging=0.1,
            initial_deviation=0.1,
            batch_size=128,
            max_minutes=30.0,
            evaluate_every=100_000,
            patience=6,
            save_minutes=2.0,
        ),
        5_000,
    ),
}
SENTENCES = TrainingConfig(batch_size=80, sort_batches=20, max_minutes=5 * 24 * 60.0)
# Multi30k, five minutes of one core, rnnsearch; held-out nats per token: 2.17 with rate 0.001 halved on a plateau and
# neither cooling down nor averaging, 1.23 with rate 0.003, 1.21 with 0.006
SMALL_SENTENCES = TrainingConfig(
    optimiser="adam",
    learning_rate=4e-3,
    decay_on_plateau=0.5,
    cool_down=0.5,
    averaging=0.1,
    dropout=0.3,
    initial_deviation=0.1,
    batch_size=64,
    sort_batches=20,
    max_epochs=12.0,
    max_minutes=60.0,
    evaluate_every=EACH_EPOCH,
    patience=5,
    save_minutes=2.0,
)
TEXT = TrainingConfig(
    optimiser="adam",
    learning_rate=1e-3,
    decay_on_plateau=0.5,
    batch_size=128,
    evaluate_every=20_000_000,  # or after each epoch, if that is shorter
    patience=10,
)
SMALL_CSLM = replace(TEXT, initial_deviation=0.1, dropout=0.3, max_minutes=30.0, save_minutes=2.0)
SMALL_TEXT = replace(SMALL_CSLM, evaluate_every=EACH_EPOCH, cool_down=0.5, averaging=0.1, patience=3)
# α of a penalty α (log Z)² (Devlin et al. 2014), without which a decoder that does not normalise sees arbitrary values
UNPENALISED = {"self_normalise": 0.0}


def _slotted(network: dict[str, Any], **training: Any) -> dict[str, Preset]:
    """The presets of a network of phrases in slots, whose sizes are a choice of ours."""
    return {
        name: replace(preset, network=network, training=replace(preset.training, **training))
        for name, preset in PHRASES.items()
    }


OF_RARE_WORDS = "rare", "rare_window", "alignment", "dev_alignment"

NETWORKS = {
    "encdec": Network(
        "table",
        PHRASES,
        {
            "variant": "paper",
            **dict.fromkeys(("summary", "first_step", "decoder_reset")),  # the variant's
            "cell": "gru",
            **dict.fromkeys(("encoder_reset", "leaky_share", "forget_bias")),  # the cell's
        },
        ("sampled_words",),
    ),
    "cstm": Network(
        "table",
        _slotted({"slots": 7, "embedding_size": 128, "first_size": 512, "second_size": 256}),
        also=("sampled_words",),
    ),
    "ranker": Network(
        "table",
        # from the paper's ±0.01 some did not begin to learn
        _slotted({"slots": 7, "embedding_size": 64, "hidden_size": 256}, initial_deviation=0.1),
        {"corrupt": CORRUPT[0]},
    ),
    # Bahdanau et al. 2015, appendix A.2.3 and B: 30 000 words, Adadelta, 80 sentences, five days
    "rnnsearch": Network(
        "sentences",
        {
            "paper": Preset(
                {
                    "hidden_size": 1000,
                    "embedding_size": 620,
                    "alignment_size": 1000,
                    "maxout_size": 500,
                    "output_rank": 0,
                },
                SENTENCES,
                30_000,
            ),
            "small": Preset(
                {
                    "hidden_size": 256,
                    "embedding_size": 128,
                    "alignment_size": 256,
                    "maxout_size": 128,
                    "output_rank": 0,
                },
                SMALL_SENTENCES,
                min_count=2,
            ),
        },
        {"phases": "paper"},
        OF_RARE_WORDS,
    ),
    # Sutskever et al. 2014, sections 3.1 and 3.4; sorted widely, for batches of similar length
    "seq2seq": Network(
        "sentences",
        {
            "paper": Preset(
                {"layers": 4, "hidden_size": 1000, "embedding_size": 1000},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=0.7,
                    schedule="half-epochs",
                    initial_deviation=0.08,
                    batch_size=128,
                    sort_batches=20,
                    clip_norm=5.0,
                    max_epochs=7.5,
                    max_minutes=0.0,
                ),
                80_000,
                words_read=160_000,
            ),
            "small": Preset(
                {"layers": 2, "hidden_size": 256, "embedding_size": 128},
                # Without attention or a summary at each step, what the paper's ±0.08 starts learns slowly at this
                # width: held-out nats after two epochs 2.64, with ±0.16 2.51, ±0.25 2.40, ±0.4 2.59
                replace(SMALL_SENTENCES, initial_deviation=0.25, clip_norm=5.0, max_epochs=18.0),
                min_count=2,
            ),
        },
        {"source_order": "reversed", "peepholes": True},
        OF_RARE_WORDS,
    ),
    # Bahdanau's RNNenc: the network of the phrase model, as the released code has it
    "rnnenc": Network(
        "sentences",
        {
            "paper": Preset(
                {"hidden_size": 1000, "embedding_size": 620, "maxout_size": 500, "output_rank": 620}, SENTENCES, 30_000
            ),
            "small": Preset(
                {"hidden_size": 256, "embedding_size": 128, "maxout_size": 128, "output_rank": 128},
                SMALL_SENTENCES,
                min_count=2,
            ),
        },
    ),
    "cslm": Network(
        "text",
        {
            # section 4.1.2 of the paper, which does not name the optimiser
            "paper": Preset(
                {"order": 7, "embedding_size": 512, "first_size": 1536, "second_size": 1024},
                TEXT,
                15_000,
                learning=UNPENALISED,
            ),
            # for two CPU cores and tens of thousands of sentences, which the paper's network would learn by heart
            "small": Preset(
                {"order": 7, "embedding_size": 128, "first_size": 256, "second_size": 256},
                SMALL_CSLM,
                15_000,
                learning=UNPENALISED,
            ),
        },
    ),
    # Bengio et al. 2003, sections 3.2 and 4: MLP1 on the Brown corpus; steps along sums, as if one after each word
    "bengio": Network(
        "text",
        {
            "paper": Preset(
                {"order": 5, "embedding_size": 60, "hidden_size": 50, "direct": True},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=1e-3,
                    schedule="inverse-time",
                    weight_decay=1e-4,
                    reduction="sum",
                    clip_norm=0.0,
                    evaluate_every=EACH_EPOCH,
                    patience=10,
                ),
                learning=UNPENALISED,
                min_count=4,
            ),
            "small": Preset(
                {"order": 5, "embedding_size": 64, "hidden_size": 128, "direct": False},
                replace(SMALL_TEXT, learning_rate=3e-3, max_epochs=12.0),
                learning=UNPENALISED,
                min_count=2,
            ),
        },
    ),
    # Mikolov et al. 2010, section 3: 250/5, which has the words seen five times; a step after each sentence
    "rnnlm": Network(
        "text",
        {
            "paper": Preset(
                {"hidden_size": 250},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=0.1,
                    schedule="newbob",
                    initial_deviation=0.1,
                    batch_size=1,
                    clip_norm=0.0,
                    evaluate_every=EACH_EPOCH,
                    max_minutes=0.0,
                ),
                learning={"bptt": 1},
                min_count=5,
            ),
            "small": Preset(
                {"hidden_size": 256},
                replace(
                    SMALL_TEXT,
                    learning_rate=4e-3,
                    initial_deviation=0.1,
                    batch_size=64,
                    sort_batches=20,
                    max_epochs=12.0,
                ),
                learning={"bptt": 0},
                min_count=2,
            ),
        },
    ),
}


def networks_of(material: str) -> list[str]:
    """The names of those that learn from it."""
    return [name for name, network in NETWORKS.items() if network.material == material]


# --- options ----------------------------------------------------------------------------------------------------------

# of every training, with what they are if not given
RUN: Options = {
    "model": None,  # the folder
    "architecture": "encdec",
    "preset": None,  # "paper" on a GPU, else "small"
    "optimiser": None,
    "precision": "auto",
    "seed": 1,
    "device": "cpu",
    "threads": None,  # one for each core
    "restart": False,
    "quiet": True,  # what a command shows
}
# what is learned, likewise
MATERIALS: dict[str, Options] = {
    "table": {
        "phrase_table": None,
        "layout": "moses",  # see table/tab_separated.py
        "source_factor": None,
        "target_factor": None,
        "inverse": False,  # reads the target and writes the source
        "shortlist": None,
        "max_length": 0,  # words of a side; longer pairs are left out; 0: no limit
        "held_out": 5000,
        "source_embeddings": None,
        "target_embeddings": None,
        "freeze_embeddings": None,
        "compiled": None,
    },
    "sentences": {
        "prefix": None,
        "source": None,  # ending of the source's file
        "target": None,
        "dev": None,  # a prefix; None: some of the pairs are held out
        "inverse": False,
        "source_words": None,
        "target_words": None,
        "min_count": None,
        "max_length": 50,
        "held_out": 1000,
        "partition_words": None,
        "reshuffle": None,
    },
    "text": {"texts": (), "dev": None, "shortlist": None, "min_count": None, "held_out": None},
}
OF_SOME = {"sampled_words", *(name for material in MATERIALS.values() for name in material)}
LEARNING = {each.name for each in fields(TrainingConfig)} - OF_SOME  # options of that name override a preset's
# by the optimiser, the machine and files
DECIDED_LATER = {"optimiser", "precision", "native", "compiled", "threads", "source_embeddings", "target_embeddings"}


def choose(options: Options) -> Chosen:
    """The preset that some options name, with what they override.

    Raises:
        UnfitOption: something is given that the network does not have, or that does nothing.
    """
    given = {name: value for name, value in options.items() if value is not None}
    name = given.get("architecture", RUN["architecture"])
    if name not in NETWORKS:
        raise UnfitOption("architecture", f"expected one of {', '.join(NETWORKS)}, found {shown_value(name)}")
    network = NETWORKS[name]
    every = {**RUN, **MATERIALS[network.material], **given}
    on_gpu = str(every["device"]).startswith("cuda")
    named = every["preset"] or ("paper" if on_gpu else "small")
    _check_value("preset", named)
    preset = network.presets[named]
    config = {**network.switches, **preset.network}
    own = {*RUN, *MATERIALS[network.material], *LEARNING, *config, *preset.learning, *network.also}
    _refuse(given, own, f"--architecture {name}")
    for key in sorted(given.keys() & VALUES.keys()):
        _check_value(key, given[key])
    config |= {key: given[key] for key in config.keys() & given.keys()}
    _check_embeddings(name, every)
    _check_cell(config, given)
    _check_sizes(config, every)
    _check_partitions(given)
    _check_rare(given)
    learning = {key: given.get(key, value) for key, value in preset.learning.items()}
    training = _training(preset.training, config, every)
    sizes = {key: given[key] for key in ("shortlist", "min_count") if key in given}
    return Chosen(every, replace(preset, network=config, training=training, learning=learning, **sizes))


def _check_value(name: str, value: object) -> None:
    if not VALUES[name].have(value):
        raise UnfitOption(name, f"expected {VALUES[name]}, found {shown_value(value)}")


def _refuse(given: Iterable[str], own: Collection[str], whose: str) -> None:
    for name in sorted(given):
        if name not in own:
            raise UnfitOption(name, f"{whose} has no such option")


def _training(preset: TrainingConfig, config: Options, every: Options) -> TrainingConfig:
    """How the network learns, but for what the machine decides."""
    training = for_optimiser(preset, every["optimiser"] or preset.optimiser)
    if every.get("weight_decay") and training.optimiser == "adadelta":
        raise UnfitOption("weight_decay", "expected the optimiser adam or sgd, found adadelta")
    if config.get("variant") == "groundhog":  # what the released code does
        training = replace(training, reduction="sum")
    names = {each.name for each in fields(TrainingConfig)} - DECIDED_LATER
    return replace(training, **{name: every[name] for name in names if every.get(name) is not None})


def _check_cell(config: Options, given: Options) -> None:
    if "cell" in config:
        switches = {name for of_cell in CELL_SWITCHES.values() for name in of_cell} & given.keys()
        _refuse(switches, CELL_SWITCHES.get(config["cell"], ()), f"cell {config['cell']}")


def _check_sizes(config: Options, every: Options) -> None:
    slots = config.get("slots", 0)
    if slots and every["max_length"] > slots:
        raise UnfitOption("max_length", f"expected at most the {slots} slots, found {every['max_length']}")
    if not config.get("hidden_size", True) and not config.get("direct"):
        raise UnfitOption("hidden_size", "only --network bengio with direct connections predicts by 0 hidden units")


def _check_embeddings(name: str, every: Options) -> None:
    written = "source_embeddings" if every.get("inverse") else "target_embeddings"
    if name == "cstm" and every[written]:
        raise UnfitOption(written, "--architecture cstm has no embeddings of what it writes")
    if every.get("freeze_embeddings"):
        if not (every["source_embeddings"] or every["target_embeddings"]):
            raise UnfitOption("freeze_embeddings", "is for --source-embeddings and --target-embeddings")
        if every.get("weight_decay"):
            raise UnfitOption("freeze_embeddings", "expected no weight_decay, which would change them")


def _check_partitions(given: Options) -> None:
    if given.get("reshuffle") and not given.get("partition_words"):
        raise UnfitOption("reshuffle", "is for partition_words: without, each epoch has its own order")


def _check_rare(given: Options) -> None:
    rare = given.get("rare")
    if rare is None:
        for name in given.keys() & {*OF_RARE_WORDS}:
            raise UnfitOption(name, "is for --rare")
    elif "rare_window" in given and rare in (NOALIGN, COPYABLE):
        raise UnfitOption("rare_window", f"--rare {rare} writes no distances")
    elif "dev_alignment" in given and "dev" not in given:
        raise UnfitOption("dev_alignment", "is for --dev")
    elif rare != NOALIGN:
        for option, needed in (("alignment", True), ("dev_alignment", "dev" in given)):
            if needed and option not in given:
                needs = f"{rare} needs --{option.replace('_', '-')}, by which words are annotated"
                raise UnfitOption("rare", needs)
