"""The networks that can be trained, with their materials, presets and training configs.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from moses_rnn.errors import number_of
from moses_rnn.options import FIRST_SECTION, Option, Section
from moses_rnn.training.schedules import SCHEDULES

EACH_EPOCH = 1 << 40  # examples between two evaluations; there is at least one per epoch
# Zeiler (2012) has none; Kingma and Ba (2015), algorithm 1; Sutskever et al. (2014), section 3.4
CUSTOMARY_RATES = {"adadelta": 1.0, "adam": 1e-3, "sgd": 0.7}


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser, loss, batches and stopping; only a file of settings sets the fields without a help text.

    `reduction` scales the gradient: "pair-mean" is the paper's equation 4 (log-likelihood averaged over the phrase
    pairs of a batch), "token-mean" averages over target words, "sum" is what the released code does. `sort_batches`
    batches are drawn together and cut by length, so that phrases of one batch are about equally long.
    """

    optimiser: Annotated[
        str,
        Section("Learning"),
        Option("Algorithm that updates the weights", choices=tuple(CUSTOMARY_RATES)),
    ] = "adadelta"
    learning_rate: Annotated[
        float,
        Option("Step size [default: the preset's; with another --optimiser, its usual one]", min=0, min_open=True),
    ] = 1.0
    rho: Annotated[float, Option(min=0, max=1, max_open=True)] = 0.95  # Adadelta
    epsilon: Annotated[float, Option(min=0, min_open=True)] = 1e-6  # Adadelta; inside both roots
    beta_2: Annotated[float, Option(min=0, max=1, max_open=True)] = 0.999  # Adam
    schedule: Annotated[str, Option(choices=tuple(SCHEDULES))] = "plateau"  # how the learning rate falls
    # factor of the schedule "plateau" after an evaluation without gain
    decay_on_plateau: Annotated[float, Option(min=0, max=1, min_open=True)] = 1.0
    batch_size: Annotated[int, Option("Pairs, n-grams or sentences per minibatch", min=1)] = 64
    # target words and ends per minibatch, about, in place of `batch_size`; 0: `batch_size` decides
    batch_words: Annotated[int, Option(min=0)] = 0
    sort_batches: Annotated[int, Option(min=1)] = 10
    warm_up: Annotated[int, Option(min=0)] = 0  # minibatches over which the learning rate rises to its value
    cool_down: Annotated[float, Option(min=0, max=1)] = 0.0  # the last share of the budget: the rate falls to zero
    averaging: Annotated[float, Option(min=0, max=1)] = 0.0  # about the last share of the steps: weights are averaged
    weight_decay: Annotated[float, Option(min=0)] = 0.0  # Adam and SGD; of matrices, times the learning rate
    # of embeddings and maxout, or of a CSLM's layers
    dropout: Annotated[float, Option("Share of units to drop during training", min=0, max=1, max_open=True)] = 0.0
    initial_deviation: Annotated[float, Option(min=0, min_open=True)] = 0.01  # of matrices that are not recurrent
    # share of a label that is spread over all words; held-out costs have none
    label_smoothing: Annotated[float, Option(min=0, max=1, max_open=True)] = 0.0
    # maximum number of words in a normalisation, see training/tasks.py; 0: all words
    partition_words: Annotated[int, Option(min=3)] = 0
    reshuffle: bool = False  # use a new order of pairs in each epoch, and so new partitions
    reduction: Annotated[str, Option(choices=("pair-mean", "token-mean", "sum"))] = "pair-mean"
    clip_norm: Annotated[float, Option(min=0)] = 1.0  # bound on the gradient's L2 norm; 0: none
    precision: str = "fp32"  # of matrix products; or "bf16": weights, states, gates and losses stay float32
    native: str = ""  # the native core's instruction set if it computes, which changes the last digits too; "": torch
    seed: Annotated[
        int,
        Option(
            "Seed for the held-out split, the initial weights and the order of minibatches [default: 1]",
            min=0,
            max=2**63 - 1,
        ),
    ] = 1
    max_epochs: Annotated[
        float,
        Section(FIRST_SECTION),
        Option("Stop after this many passes over the training data; 0 for no limit", min=0),
    ] = 0.0
    max_minutes: Annotated[float, Option("Stop after this many minutes; 0 for no limit", min=0)] = 3 * 24 * 60.0
    evaluate_every: Annotated[int, Option(min=1)] = 500_000  # pairs
    patience: Annotated[int, Option(min=1)] = 20  # evaluations without gain before stopping
    save_minutes: Annotated[float, Option(min=0)] = 10.0
    threads: int = 1  # that share a minibatch, see training/ranks.py; changes the last digits
    accumulate: Annotated[int, Option(min=1)] = 1  # parts of a minibatch, one after the other; likewise
    source_embeddings: str = ""  # SHA-256 of the file that they begin as, see training/embeddings.py; "": random
    target_embeddings: str = ""
    freeze_embeddings: bool = False  # those of a file are not learned

    def describe(self, unit: str = "pairs") -> str:
        """Describe the options for a log."""
        reshuffled = ", reshuffled" if self.reshuffle else ""
        learning = _true_ones(
            (True, self.optimiser),
            (True, f"learning rate {self.learning_rate:g}"),
            (self.schedule != "plateau", f"schedule {self.schedule}"),
            (self.warm_up, f"warm-up over {number_of(self.warm_up, 'minibatch', 'minibatches')}"),
            (self.cool_down, f"falling in the last {self.cool_down:.0%}"),
            (self.averaging, f"weights averaged over about the last {self.averaging:.0%} of the steps"),
            (self.dropout, f"dropout {self.dropout:g}"),
            (self.label_smoothing, f"label smoothing {self.label_smoothing:g}, not in the nats shown"),
            (self.weight_decay, f"weight decay {self.weight_decay:g}"),
            (self.partition_words, f"partitions of {number_of(self.partition_words, 'word')}{reshuffled}"),
        )
        limits = _true_ones(
            (self.max_epochs, f"{self.max_epochs:g} {'epoch' if self.max_epochs == 1 else 'epochs'}"),
            (self.max_minutes, number_of(self.max_minutes, "minute")),
            (True, f"{number_of(self.patience, 'evaluation')} without gain"),
        )
        parts = f" in {self.accumulate} parts" if self.accumulate > 1 else ""
        clipped = f" clipped at {self.clip_norm:g}" if self.clip_norm else ""
        evaluated = "after each epoch" if self.evaluate_every == EACH_EPOCH else f"every {self.evaluate_every:,} {unit}"
        native = f"; computed by the native core, {self.native}" if self.native else ""
        return (
            f"{', '.join(learning)}, {self.minibatch(unit)}{parts}, "
            f"{self.reduction} gradient{clipped}, {self.precision}, seed {self.seed}; "
            f"evaluated {evaluated}; ends after {' or '.join(limits)}{native}"
        )

    def minibatch(self, unit: str = "") -> str:
        """Describe the size of a minibatch."""
        size = f"{self.batch_words:,} target words" if self.batch_words else f"{self.batch_size} {unit}".rstrip()
        return f"{size} per minibatch"

    def course(self) -> dict[str, object]:
        """Return the options that determine the weights after a number of steps, which must not change on resume."""
        return {key: value for key, value in asdict(self).items() if key not in LIMITS}


def _true_ones(*texts: tuple[object, str]) -> list[str]:
    """Return the texts whose condition is true."""
    return [text for condition, text in texts if condition]


# may change when a run is resumed
LIMITS = {"max_epochs", "max_minutes", "patience", "save_minutes", "threads", "accumulate"}


ALL = 1 << 30  # words of a shortlist that only `min_count` limits
SHOWN = {"hidden_size": "H", "embedding_size": "E", "direct": "direct connections"}  # in --help; others by name


@dataclass(frozen=True)
class Preset:
    """Sizes and switches of a network's config, with suitable training options."""

    network: Mapping[str, Any]
    training: TrainingConfig
    shortlist: int = ALL  # maximum number of words
    words_read: int = 0  # words in the shortlist of the side that is read; 0: `shortlist`
    min_count: int = 1  # of words in the shortlists
    learning: Mapping[str, float] = field(default_factory=dict)  # further training options of a language model

    def __str__(self) -> str:
        shown = ((SHOWN.get(name, name), value) for name, value in self.network.items() if value)
        sizes = ", ".join(name if value is True else f"{name} {value}" for name, value in shown)
        training, minutes = self.training, self.training.max_minutes
        budget = number_of(minutes, "minute") if minutes < 120 else number_of(minutes / 60, "hour")
        limit = f", at most {budget}" if minutes else ""
        words = " and ".join(f"{most:,}" for most in (self.words_read, self.shortlist) if most) + " words"
        if self.shortlist == ALL:
            words = f"words seen at least {number_of(self.min_count, 'time')}"
        return f"{sizes}; {words}; {training.optimiser}, {training.minibatch()}{limit}"


def for_optimiser(config: TrainingConfig, optimiser: str) -> TrainingConfig:
    """Return the config with another optimiser and its customary learning rate."""
    if optimiser == config.optimiser:
        return config
    rate = CUSTOMARY_RATES[optimiser]
    if optimiser == "adadelta":  # it finds its own steps, and does not decay weights
        return replace(config, optimiser=optimiser, learning_rate=rate, decay_on_plateau=1.0, weight_decay=0.0)
    return replace(config, optimiser=optimiser, learning_rate=rate, decay_on_plateau=0.5)


# --- networks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkRow:
    """A network that can be trained: what it learns from, how, and with which presets."""

    material: str  # table, sentences or text
    task: str  # its class in training/tasks
    presets: Mapping[str, Preset]
    also: tuple[str, ...] = ()  # options that only some networks have, besides the presets' sizes
    key: str = ""  # of its architectures; "": its name

    @property
    def own(self) -> set[str]:
        """Options of this network that not all networks of its material have."""
        presets = (key for preset in self.presets.values() for key in (*preset.network, *preset.learning))
        return {*self.also, *presets}


# --- presets ----------------------------------------------------------------------------------------------------------

SMALL = TrainingConfig(  # chosen by the sweeps in docs/results.md
    optimiser="adam",
    learning_rate=4e-3,
    decay_on_plateau=0.5,
    cool_down=0.5,
    averaging=0.1,
    initial_deviation=0.1,
    save_minutes=2.0,
)
PHRASES = {
    # section 4.1 of the paper: 1000 hidden units, rank-100 matrices, 15 000 words, Adadelta, 64 pairs, three days; it
    # mentions no clipping, which slows learning down (docs/results.md)
    "paper": Preset(
        {"hidden_size": 1000, "embedding_size": 100, "maxout_size": 500, "output_rank": 100},
        TrainingConfig(clip_norm=0.0),
        15_000,
    ),
    # for two CPU cores and a quarter of an hour; longer runs gained no BLEU
    "small": Preset(
        {"hidden_size": 256, "embedding_size": 64, "maxout_size": 128, "output_rank": 64},
        replace(SMALL, batch_size=128, max_minutes=15.0, evaluate_every=100_000, patience=6),
        5_000,
    ),
}
SENTENCES = TrainingConfig(batch_size=80, sort_batches=20, max_minutes=5 * 24 * 60.0)
# Multi30k, five minutes of one core, rnnsearch; held-out nats per token: 2.17 with rate 0.001 halved on a plateau and
# neither cooling down nor averaging, 1.23 with rate 0.003, 1.21 with 0.006
SMALL_SENTENCES = replace(
    SMALL,
    dropout=0.3,
    batch_size=64,
    sort_batches=20,
    max_epochs=12.0,
    max_minutes=60.0,
    evaluate_every=EACH_EPOCH,
    patience=5,
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


def _of_phrases(network: dict[str, Any], **training: Any) -> dict[str, Preset]:
    """Return the presets of another network of phrases, whose sizes we chose."""
    return {
        name: replace(preset, network=network, training=replace(preset.training, **training))
        for name, preset in PHRASES.items()
    }


OF_RARE_WORDS = "rare", "rare_window", "alignment", "dev_alignment"
PARTITIONED = "partition_words", "reshuffle"
OF_SENTENCES = "batch_words", "label_smoothing"
GROUNDHOG = {"variant": "groundhog"}

NETWORKS = {
    "encdec": NetworkRow("table", "PhrasePairs", PHRASES, ("freeze_embeddings",)),
    "cstm": NetworkRow(
        "table",
        "PhrasePairs",
        _of_phrases({"slots": 7, "embedding_size": 128, "first_size": 512, "second_size": 256}),
        ("freeze_embeddings",),
    ),
    "ranker": NetworkRow(
        "table",
        "RankedPairs",
        # from the paper's ±0.01 some did not begin to learn
        _of_phrases({"slots": 7, "embedding_size": 64, "hidden_size": 256}, initial_deviation=0.1),
        ("freeze_embeddings",),
    ),
    # Bahdanau et al. 2015, appendix A.2.3 and B: 30 000 words, Adadelta, 80 sentences, five days
    "rnnsearch": NetworkRow(
        "sentences",
        "PhrasePairs",
        {
            "paper": Preset(
                {"hidden_size": 1000, "embedding_size": 620, "alignment_size": 1000, "maxout_size": 500},
                SENTENCES,
                30_000,
            ),
            "small": Preset(
                {"hidden_size": 256, "embedding_size": 128, "alignment_size": 256, "maxout_size": 128},
                SMALL_SENTENCES,
                min_count=2,
            ),
        },
        (*OF_SENTENCES, *PARTITIONED, *OF_RARE_WORDS),
    ),
    # Sutskever et al. 2014, sections 3.1 and 3.4; sorted widely, for batches of similar length
    "seq2seq": NetworkRow(
        "sentences",
        "PhrasePairs",
        {
            "paper": Preset(
                {"layers": 4, "hidden_size": 1000, "embedding_size": 1000},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=0.7,
                    schedule="half-epochs",
                    decay_on_plateau=0.5,
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
        (*OF_SENTENCES, *PARTITIONED, *OF_RARE_WORDS),
    ),
    # Vaswani et al. 2017, Table 3, base; "small" is for 30 000 pairs (Wu et al. 2021), with one vocabulary of subwords
    "transformer": NetworkRow(
        "sentences",
        "PhrasePairs",
        {
            "paper": Preset(
                {"layers": 6, "hidden_size": 512, "feed_forward_size": 2048, "heads": 8, "shared": False},
                replace(
                    SENTENCES,
                    optimiser="adam",
                    learning_rate=(512 * 4000) ** -0.5,
                    beta_2=0.98,
                    schedule="inverse-root",
                    decay_on_plateau=0.5,
                    warm_up=4000,
                    batch_words=25_000,
                    dropout=0.1,
                    label_smoothing=0.1,
                    initial_deviation=512**-0.5,
                    reduction="token-mean",
                    clip_norm=0.0,
                ),
                37_000,
            ),
            "small": Preset(
                {"layers": 4, "hidden_size": 128, "feed_forward_size": 256, "heads": 4, "shared": False},
                replace(
                    SMALL_SENTENCES,
                    learning_rate=5e-3,
                    beta_2=0.98,
                    warm_up=1000,
                    cool_down=0.6,
                    batch_words=3000,
                    dropout=0.2,
                    label_smoothing=0.1,
                    initial_deviation=128**-0.5,
                    reduction="token-mean",
                    max_epochs=40.0,
                ),
                min_count=2,
            ),
        },
        (*OF_SENTENCES, *OF_RARE_WORDS),
    ),
    # Bahdanau's RNNenc: the network of the phrase model, as the released code has it
    "rnnenc": NetworkRow(
        "sentences",
        "PhrasePairs",
        {
            "paper": Preset(
                {**GROUNDHOG, "hidden_size": 1000, "embedding_size": 620, "maxout_size": 500, "output_rank": 620},
                SENTENCES,
                30_000,
            ),
            "small": Preset(
                {**GROUNDHOG, "hidden_size": 256, "embedding_size": 128, "maxout_size": 128, "output_rank": 128},
                SMALL_SENTENCES,
                min_count=2,
            ),
        },
        (*OF_SENTENCES, *PARTITIONED),
        key="encdec",
    ),
    "cslm": NetworkRow(
        "text",
        "NGrams",
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
    "bengio": NetworkRow(
        "text",
        "NGrams",
        {
            "paper": Preset(
                {"order": 5, "embedding_size": 60, "hidden_size": 50, "direct": True},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=1e-3,
                    schedule="inverse-time",
                    decay_on_plateau=0.5,
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
    "rnnlm": NetworkRow(
        "text",
        "Sentences",
        {
            "paper": Preset(
                {"hidden_size": 250},
                TrainingConfig(
                    optimiser="sgd",
                    learning_rate=0.1,
                    schedule="newbob",
                    decay_on_plateau=0.5,
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
                replace(SMALL_TEXT, learning_rate=4e-3, batch_size=64, sort_batches=20, max_epochs=12.0),
                learning={"bptt": 0},
                min_count=2,
            ),
        },
        ("batch_words",),
    ),
}

# Held-out cost of --preset small on Multi30k, relative to unigrams, by passes over the table within 30 minutes
# (docs/results.md)
SHARES_OF_UNIGRAMS = ((0.5, 0.18), (1.0, 0.15), (2.0, 0.13), (3.0, 0.12), (4.2, 0.11))


def networks_of(material: str) -> list[str]:
    """Return the names of the networks that train on a material."""
    return [name for name, network in NETWORKS.items() if network.material == material]
