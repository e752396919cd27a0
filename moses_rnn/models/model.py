"""A network with its vocabularies, and the scorers made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from moses_rnn.errors import CheckpointError, MosesRnnError
from moses_rnn.models.annotated import make_pair_scorer
from moses_rnn.models.base import Scorer
from moses_rnn.models.language_models import CUT, NetworkLanguageModel, Shares, meaning_of_targets
from moses_rnn.models.rare_words import RareWords
from moses_rnn.native import native_core
from moses_rnn.networks.batches import flatten, row_slices
from moses_rnn.networks.compute import HERE, Compute, choose_precision
from moses_rnn.networks.config import PHRASES, SENTENCES, SOURCE_TO_TARGET, TARGET_TO_SOURCE, Architecture
from moses_rnn.networks.finite import Floats, finite_array
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.subwords import Subwords
from moses_rnn.networks.tries import PairNetwork, SteppedPairs
from moses_rnn.networks.vocabulary import END, UNKNOWN, Phrase, Vocabulary
from moses_rnn.table.phrase_table import DEFAULT_FLOOR as LONG_FLOOR
from moses_rnn.table.phrases import PhraseForm

SUMMARISED = 512  # phrases read together


@dataclass
class Model:
    """A network of any kind with its vocabularies, as stored in a folder.

    `vocabularies` are by side: the network reads "source" and writes "target". `direction` relates them to a table's
    sides: "source-to-target" gives p(target | source), "target-to-source" p(source | target). `provenance` is the
    record of training.
    """

    architecture: Architecture
    network: Any  # the architecture's module
    vocabularies: Mapping[str, Vocabulary]
    direction: str = SOURCE_TO_TARGET
    provenance: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)  # of its files
    folder: Path = Path()
    right_to_left: bool = False  # whether it writes a target's last word first

    def __post_init__(self) -> None:
        """Derive the other attributes."""
        kind, config = self.architecture, self.network.config
        self.config: Any = config  # sizes and options of its network
        # words that the network reads, none of a language model, and that it writes
        self.source_vocabulary = self.vocabularies.get("source") or Vocabulary([UNKNOWN, END])
        self.target_vocabulary = self.vocabularies["target"]
        self.of_subwords = isinstance(self.target_vocabulary, Subwords)
        self.inverse = self.direction == TARGET_TO_SOURCE  # whether it reads target phrases and writes source phrases
        # SENTENCES or PHRASES; format 1 has it in its provenance
        self.unit: str = getattr(config, "unit", self.provenance.get("unit", PHRASES))
        self.learned_sentences = self.unit == SENTENCES
        self.form = PhraseForm.from_record(self.provenance.get("phrases"))  # of the phrases that it learned from
        rare, cell = getattr(config, "rare", None), getattr(config, "cell", None)
        self.rare = None if rare is None else RareWords.from_record(rare)  # None: rare words are <unk>
        self.name = f"{kind.name}Inverse" if self.inverse else kind.name  # of its score
        self.unbounded = kind.unbounded  # whether its score is not a log-probability and may be above 0
        self.network_title = f"{kind.title} with {cell} cells" if cell else kind.title  # cells that are not its paper's
        self.title = f"{self.network_title} of sentences" if self.learned_sentences else self.network_title
        self.meaning = self.describe_score(self.title)

    @property
    def models(self) -> Sequence[Model]:
        """The model itself; an ensemble has several."""
        return (self,)

    @property
    def held_out_cost(self) -> float | None:
        """Best held-out cost recorded in training, in the measure of the architecture."""
        key, history = self.architecture.measure.key, self.provenance.get("history")
        steps = [step for step in history if isinstance(step, dict)] if isinstance(history, list) else []
        costs = [step[key] for step in steps if isinstance(step.get(key), int | float)]
        return min(costs, default=None)

    @property
    def baseline_cost(self) -> float | None:
        """Cost, in the same measure, of a network that has learned nothing."""
        known = self.architecture.measure.baseline_cost
        return self.unigram_nats if known is None else known

    @property
    def unigram_nats(self) -> float | None:
        """Cost of a unigram model of the training targets, in nats per token, as recorded in training."""
        cost = self.provenance.get("unigram_nats_per_token")
        return cost if isinstance(cost, int | float) else None

    def describe_score(self, title: str) -> str:
        """Describe the score of this network, or of an ensemble of the same kind with another title."""
        if not self.architecture.reads_sources:
            return meaning_of_targets(self.architecture.title, of_subwords=self.of_subwords)
        read, written = ("target", "source") if self.inverse else ("source", "target")
        score = f"log p({written} | {read}) of the {title}, natural"
        if self.unbounded:
            score = f"s({read}, {written}) of the {title}, unbounded and no log-probability"
        order = "; the last word comes first" if self.right_to_left else ""
        rare = f"; rare words by {self.rare.kind}, window {self.rare.window}" if self.rare else ""
        cut = f"; {CUT}" if self.of_subwords else ""
        return f"{score}, {self.architecture.ends}{order}{rare}{cut}"

    def choose_compute(
        self, device: str = "cpu", precision: str | None = None, *, floors_long: bool = False
    ) -> Compute:
        """Choose how to compute this network on a device: in the native core where possible; see `Compute`.

        The precision "auto" uses bf16 products for large networks where they are faster; None means fp32.
        """
        precision = choose_precision(precision, device, self.config.width) if precision else "fp32"
        core = native_core() if device == "cpu" and self.architecture.native is not None else None
        native = core is not None and core.multiplies(precision)
        return Compute(device, precision, native, floors_long)

    def make_stepper(self, compute: Compute, *, any_order: bool = False) -> Stepper:
        """Prepare the network for scoring and search; raise CheckpointError if it does not write word by word.

        The words must come from left to right, unless `any_order` is set.
        """
        if not any_order:
            self.check_order()
        if self.architecture.stepper is None:
            raise CheckpointError(
                f"{self.folder}: expected a network that writes word by word, found: {self.network_title}"
            )
        stepper: Stepper = self.architecture.stepper(self.network, compute.device, compute.dtype)
        return stepper

    def check_order(self) -> None:
        """Raise CheckpointError unless the network writes from left to right."""
        if self.right_to_left:
            raise CheckpointError(
                f"{self.folder}: expected a network that writes from left to right, found one with --right-to-left",
                advice="Such a network only scores: tables, pairs and n-best lists.",
            )

    def summaries(self, phrases: Sequence[Phrase], compute: Compute = HERE) -> Floats:
        """Return the decoder's initial vector for each phrase or sentence, given as ids; phrases × size.

        That is c of an RNN Encoder-Decoder, h of all layers of a deep LSTM (Sutskever et al. 2014, Figure 2), or s_0 of
        an RNNsearch; raise CheckpointError for other networks.
        """
        stepper, some, blocks = self.make_stepper(compute, any_order=True), phrases or [[]], []
        for rows in row_slices(len(some), SUMMARISED):
            vectors = stepper.summaries(*flatten(some[rows]))
            if vectors is None:
                expected = "a network that represents a sentence as one vector"
                raise CheckpointError(f"{self.folder}: expected {expected}, found: {self.network_title}")
            blocks.append(finite_array(vectors))
        return np.concatenate(blocks)[: len(phrases)]

    def make_scorer(self, compute: Compute = HERE) -> Scorer:
        """Make the scorer of this model."""
        if not self.architecture.reads_sources:
            return self.make_language_model(compute)
        return make_pair_scorer(self, self.make_pair_network(compute))

    def make_language_model(self, compute: Compute = HERE, shares: Shares | None = None) -> NetworkLanguageModel:
        """Make the scorer of a network that reads only targets; `shares` divide ``<unk>`` among unknown words."""
        if self.architecture.words is None:
            raise CheckpointError(f"{self.folder}: expected a language model, found: {self.network_title}")
        network = self.architecture.words(self.network, compute.device, compute.dtype)
        return NetworkLanguageModel(network, self.target_vocabulary, self.name, self.architecture.title, shares)

    def make_pair_network(self, compute: Compute) -> PairNetwork:
        """Prepare the network for scoring pairs of ids."""
        network: PairNetwork
        if self.architecture.pairs is not None:
            floor = LONG_FLOOR if compute.floors_long else None
            network = self.architecture.pairs(self.network, compute.device, compute.dtype, floor)
        elif not compute.native:
            network = SteppedPairs(self.make_stepper(compute, any_order=True))
        else:
            core = native_core()
            if core is None or self.architecture.native is None:
                raise MosesRnnError(f"{self.folder}: expected the native core to compute it, found {core or 'none'}")
            network = self.architecture.native(self.network, core, compute.precision)
        return network
