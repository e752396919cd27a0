"""Compares RNNsearch or the Transformer with naive loops: scoring lists, learning and translating.

    python benchmarks/sentences.py PREFIX --source en --target fr [--architecture transformer] [--sentences N]
        [--list N] [--cpu-time] [--json FILE]

The naive loops pad 64 pairs to the longest, share nothing and run one operation after the other, in float32; those of
the Transformer are torch's modules. The naive search translates one sentence after the other. A list is a translation
and copies of it with a word or two changed, so that they share beginnings as a decoder's do. Weights are random, which
takes as long as trained ones. The lines take turns for several rounds, and the best time counts. Quote the ratios; on a
busy machine, those of CPU time with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import copy
import itertools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from stages import Stage, make_parser, padded, print_rates, texts_of, threads_of_each, time_in_turn, write_json
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding, linear, pad

from moses_rnn.networks.batches import flatten
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.config import Architecture
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.rnnsearch import RNNSEARCH, Decoder, Gru, RnnSearch
from moses_rnn.networks.transformer import TRANSFORMER, Transformer, TransformerConfig, position_codes
from moses_rnn.networks.tries import PairNetwork, SteppedPairs
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.materials import ParallelTexts, Watch
from moses_rnn.training.presets import NETWORKS, TrainingConfig
from moses_rnn.training.tasks import PhrasePairs, epoch_batches
from moses_rnn.training.trainer import Trainer
from moses_rnn.translation.search import BeamConfig, BeamSearch

IGNORED = -100  # by cross_entropy
BEAM = 12
DEVIATION = 0.1  # of the random weights
ARCHITECTURES = {"rnnsearch": RNNSEARCH, "transformer": TRANSFORMER}
IdPair = tuple[list[int], list[int]]


class Naive:
    """A network on padded minibatches."""

    model: nn.Module

    def score(self, pairs: Sequence[IdPair], at_once: int = 64) -> None:
        """Score as the authors' code did: 64 pairs at once, sorted over ten such batches."""
        self.model.eval()
        with torch.inference_mode():
            for first in range(0, len(pairs), 10 * at_once):
                group = sorted(pairs[first : first + 10 * at_once], key=lambda pair: -len(pair[1]))
                for start in range(0, len(group), at_once):
                    self.nats(group[start : start + at_once])
        self.model.train()

    def nats(self, pairs: Sequence[IdPair], smoothing: float = 0.0) -> Tensor:
        """Return -log p, or what smoothed labels cost, summed over all words."""
        raise NotImplementedError


class NaiveTransformer(Naive):
    """A Transformer of torch's modules."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        d, layers = config.hidden_size, config.layers
        sizes = (d, config.heads, config.feed_forward_size, dropout)
        how = {"batch_first": True, "norm_first": True}
        read, written = (of_side(*sizes, **how) for of_side in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
        self.encoder = nn.TransformerEncoder(read, layers, nn.LayerNorm(d), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(written, layers, nn.LayerNorm(d))
        self.source = nn.Embedding(config.source_vocabulary_size, d)
        self.target = nn.Embedding(config.target_vocabulary_size, d)
        self.output = nn.Linear(d, config.target_vocabulary_size)
        self.output.weight = self.target.weight
        self.dropout = nn.Dropout(dropout)
        self.model = nn.ModuleList([self.encoder, self.decoder, self.source, self.target, self.output, self.dropout])

    def nats(self, pairs: Sequence[IdPair], smoothing: float = 0.0) -> Tensor:
        """See `Naive`."""
        sources, there = padded([source for source, _ in pairs])
        targets, counted = padded([target for _, target in pairs])
        h = self.encoder(self._inputs(self.source, sources), src_key_padding_mask=~there)
        before = pad(targets[:, :-1], (1, 0), value=END_ID)
        later = nn.Transformer.generate_square_subsequent_mask(targets.shape[1], dtype=torch.bool)
        r = self.decoder(
            self._inputs(self.target, before),
            h,
            tgt_mask=later,
            tgt_is_causal=True,
            memory_key_padding_mask=~there,
        )
        words = targets.masked_fill(~counted, IGNORED)
        logits = self.output(r).flatten(0, 1)
        how = {"reduction": "sum", "ignore_index": IGNORED, "label_smoothing": smoothing}
        return cross_entropy(logits, words.flatten(), **how)

    def _inputs(self, side: nn.Embedding, ids: Tensor) -> Tensor:
        d = side.embedding_dim
        inputs: Tensor = self.dropout(d**0.5 * side(ids) + position_codes(ids.shape[1], d, side.weight))
        return inputs


class NaiveSearch(Naive):
    """The equations of `moses_rnn.networks.rnnsearch`."""

    def __init__(self, model: RnnSearch) -> None:
        self.model: RnnSearch = model

    def nats(self, pairs: Sequence[IdPair], smoothing: float = 0.0) -> Tensor:
        """See `Naive`."""
        sources, there = padded([source for source, _ in pairs])
        targets, counted = padded([target for _, target in pairs])
        model, decoder, align = self.model, self.model.decoder, self.model.align
        x = embedding(sources, model.encoder.embedding)
        layers = model.encoder.layers
        right = self._read(layers[0], x, there, range(x.shape[1]))
        left = self._read(layers[1], x, there, reversed(range(x.shape[1])))
        h = torch.cat([right, left], 2)  # pairs × N × 2H
        Uh = linear(h, align.U_a)
        s = torch.tanh(linear(left[:, 0], decoder.V, decoder.b_V))
        e, nats = torch.zeros(len(pairs), x.shape[2]), torch.zeros(())
        for t in range(targets.shape[1]):
            energies = torch.tanh(linear(s, align.W_a)[:, None] + Uh) @ align.v
            alpha = torch.softmax(energies.masked_fill(~there, -torch.inf), 1)
            c = (alpha[:, :, None] * h).sum(1)
            s = self._update(decoder, e, s, c)
            out = linear(s, decoder.O_h, decoder.b_O) + linear(e, decoder.O_y) + linear(c, decoder.O_c)
            logits = linear(out.view(len(pairs), -1, 2).amax(2), decoder.G, decoder.b_G)
            words = targets[:, t].masked_fill(~counted[:, t], IGNORED)
            nats = nats + cross_entropy(logits, words, reduction="sum", ignore_index=IGNORED, label_smoothing=smoothing)
            e = embedding(targets[:, t], decoder.embedding)
        return nats

    @staticmethod
    def _read(layer: Gru, x: Tensor, there: Tensor, steps: range | reversed[int]) -> Tensor:
        h = x.new_zeros(len(x), layer.U.shape[0])
        states = [h] * x.shape[1]
        for t in steps:
            z = torch.sigmoid(linear(x[:, t], layer.W_z, layer.b_z) + linear(h, layer.U_z))
            r = torch.sigmoid(linear(x[:, t], layer.W_r, layer.b_r) + linear(h, layer.U_r))
            new = torch.tanh(linear(x[:, t], layer.W, layer.b) + linear(r * h, layer.U))
            h = torch.where(there[:, t, None], z * h + (1 - z) * new, h)
            states[t] = h
        return torch.stack(states, 1)

    @staticmethod
    def _update(decoder: Decoder, e: Tensor, s: Tensor, c: Tensor) -> Tensor:
        z = torch.sigmoid(linear(e, decoder.W_z, decoder.b_z) + linear(s, decoder.U_z) + linear(c, decoder.C_z))
        r = torch.sigmoid(linear(e, decoder.W_r, decoder.b_r) + linear(s, decoder.U_r) + linear(c, decoder.C_r))
        new = torch.tanh(linear(e, decoder.W, decoder.b) + linear(r * s, decoder.U) + linear(c, decoder.C))
        return z * s + (1 - z) * new


def lists_of(pairs: Sequence[IdPair], size: int, words: int) -> list[IdPair]:
    """Make sorted lists of `size` hypotheses: the translation, and copies with one or two words changed."""
    random = np.random.default_rng(1)
    lists = []
    for source, target in pairs:
        hypotheses = {tuple(target)}
        for _ in range(size - 1):
            changed = list(target) or [2]
            for place in random.integers(len(changed), size=random.integers(1, 3)):
                changed[place] = int(random.integers(2, words))
            hypotheses.add(tuple(changed))
        lists += [(source, list(hypothesis)) for hypothesis in sorted(hypotheses)]
    return lists


def naive_of(model: RnnSearch | Transformer, dropout: float) -> Naive:
    """Return a naive network of the same sizes."""
    if isinstance(model, RnnSearch):
        return NaiveSearch(copy.deepcopy(model))
    return NaiveTransformer(model.config, dropout)


def scoring(kind: Architecture, model: RnnSearch | Transformer, lists: list[IdPair], few: list[IdPair]) -> list[Stage]:
    """Return the stages that score hypotheses."""
    naive, fewer = naive_of(model, 0.0), few[::8]
    stages = [
        Stage("naive: 64 pairs at once, nothing shared, fp32", lambda: naive.score(few), len(few)),
        Stage("naive: one pair at a time, fp32", lambda: naive.score(fewer, 1), len(fewer)),
    ]
    for precision in ("fp32", "bf16"):
        place = "cpu", Compute(precision=precision).dtype
        network = kind.pairs(model, *place, 0.0) if kind.pairs else SteppedPairs(kind.stepper(model, *place))

        def work(network: PairNetwork = network) -> None:
            for first in range(0, len(lists), 8192):
                sources, targets = zip(*lists[first : first + 8192], strict=True)
                network.log_probs(flatten(sources), flatten(targets))

        stages.append(Stage(f"each source and each prefix once, {precision}", work, len(lists)))
    return stages


def learning(model: RnnSearch | Transformer, corpus: Corpus, config: TrainingConfig, batches: int) -> list[Stage]:
    """Return the stages that learn sentence pairs."""
    rows = list(itertools.islice(epoch_batches(corpus, config, 0), batches))
    count = sum(int(corpus.target.lengths(batch).sum()) + len(batch) for batch in rows)

    naive = naive_of(model, config.dropout)
    optimiser = torch.optim.Adam(naive.model.parameters(), lr=config.learning_rate, foreach=False)
    ids = [pairs_in(corpus, batch) for batch in rows]

    def learn_naively() -> None:
        for pairs in ids:
            optimiser.zero_grad()
            (naive.nats(pairs, config.label_smoothing) / len(pairs)).backward()
            nn.utils.clip_grad_norm_(naive.model.parameters(), config.clip_norm, foreach=False)
            optimiser.step()

    stages = [Stage("naive: padded, fp32, Adam", learn_naively, count)]
    ways = {"nothing padded, by torch": replace(config, native="", threads=1)}
    if native := instructions_to_learn("cpu", "fp32"):
        ways["native core, fp32"] = replace(config, native=native, threads=1)
        shared = replace(config, native=native, threads=torch.get_num_threads())
        ways["native core, threads that share a minibatch"] = shared
    for name, chosen in ways.items():
        trainer = Trainer(PhrasePairs(copy.deepcopy(model), corpus, chosen))

        def work(trainer: Trainer = trainer) -> None:
            with threads_of_each(trainer.config.threads):
                for batch in rows:
                    trainer.learn(batch)

        stages.append(Stage(name, work, count))
    return stages


def translating(kind: Architecture, model: RnnSearch | Transformer, sources: list[list[int]]) -> list[Stage]:
    """Return the stages that translate sentences."""
    config = BeamConfig(BEAM, words_per_source_word=3)
    few = sources[:: max(len(sources) // 8, 1)][:8]
    search = BeamSearch(kind.stepper(model), config)
    return [
        Stage("naive: one sentence after the other", lambda: [search([source]) for source in few], len(few)),
        Stage("all sentences together", lambda: search(sources), len(sources)),
    ]


def pairs_in(corpus: Corpus, rows: Sequence[int]) -> list[IdPair]:
    """Return pairs of a corpus as lists of ids."""
    sides = [[text.tolist() for text in texts_of(side, np.asarray(rows))] for side in (corpus.source, corpus.target)]
    return list(zip(*sides, strict=True))


def main() -> None:
    """Print the three tables."""
    parser = make_parser(__doc__, "prefix")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--architecture", choices=ARCHITECTURES, default="rnnsearch")
    parser.add_argument("--preset", choices=["paper", "small"], default="small")
    parser.add_argument("--hidden-size", type=int, help="hidden units, in place of the preset's")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--list", type=int, default=100, help="hypotheses per sentence")
    parser.add_argument("--batches", type=int, default=8, help="minibatches to learn per round")
    parser.add_argument("--cpu-time", action="store_true", help="compare CPU time, on a busy machine")
    given = parser.parse_args()
    kind = ARCHITECTURES[given.architecture]
    preset = NETWORKS[given.architecture].presets[given.preset]
    texts = ParallelTexts.of_prefix(given.prefix, given.source, given.target)
    with tempfile.TemporaryDirectory() as folder:
        pairs = texts.pairs(Watch(lambda *_: None, lambda: False))
        known = preset.words_read or preset.shortlist, preset.shortlist
        sizes = CorpusConfig(*known, 1000, 50, repeated=True, min_count=preset.min_count)
        corpus = build_corpus(pairs, Path(folder), sizes)
        words = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
        network = {**preset.network, **({"hidden_size": given.hidden_size} if given.hidden_size else {})}
        model = kind.module(kind.config(*words, **network), seed=None)
        model.initialise(1, DEVIATION)
        chosen = pairs_in(corpus, corpus.held_out[: given.sentences])
        lists = lists_of(chosen, given.list, words[1])
        tables = {
            ("scoring lists", "hypotheses"): scoring(kind, model, lists, lists[:: max(len(lists) // 640, 1)][:640]),
            ("learning", "words"): learning(model, corpus, preset.training, given.batches),
            (f"translating, beam {BEAM}", "sentences"): translating(kind, model, [source for source, _ in chosen]),
        }
        every = [stage for stages in tables.values() for stage in stages]
        for stage in every:
            stage.clock = time.process_time if given.cpu_time else stage.clock
        time_in_turn(every, given.rounds)
    print(
        f"{model.config.description}, {words[1]:,} target words, {len(lists):,} hypotheses of "
        f"{len(chosen):,} sentences, {torch.get_num_threads()} threads, torch {torch.__version__}; "
        f"best of {given.rounds} rounds"
    )
    write_json(given, **{title: print_rates(title, unit, stages) for (title, unit), stages in tables.items()})


if __name__ == "__main__":
    main()
