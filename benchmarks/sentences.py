"""Compares RNNsearch with naive loops: scoring lists, learning and translating.

    python benchmarks/sentences.py PREFIX --source en --target fr [--sentences N] [--list N] [--json FILE]

The naive loops pad 64 pairs to the longest, share nothing and run one operation after the other, in float32; the naive
search translates one sentence after the other. A list is a translation and copies of it with a word or two changed, so
that they share beginnings as a decoder's do. Weights are random, which takes as long as trained ones. The lines take
turns for several rounds, and the best time counts. Quote the ratios.
"""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from stages import Stage, make_parser, padded, print_rates, texts_of, threads_of_each, time_in_turn, write_json
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding, linear

from moses_rnn.networks.batches import flatten
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.rnnsearch import Decoder, Gru, RnnSearch, RnnSearchConfig, RnnSearchStepper
from moses_rnn.networks.tries import SteppedPairs
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.materials import ParallelTexts, Watch
from moses_rnn.training.presets import NETWORKS, TrainingConfig
from moses_rnn.training.tasks import PhrasePairs, epoch_batches
from moses_rnn.training.trainer import Trainer
from moses_rnn.translation.search import BeamConfig, BeamSearch

IGNORED = -100  # by cross_entropy
BEAM = 12
DEVIATION = 0.1  # of the random weights
IdPair = tuple[list[int], list[int]]


class Naive:
    """The equations of `moses_rnn.networks.rnnsearch` on padded minibatches."""

    def __init__(self, model: RnnSearch) -> None:
        self.model = model

    def score(self, pairs: Sequence[IdPair]) -> None:
        """Score as the authors' code did: 64 pairs at once, sorted over ten such batches."""
        with torch.inference_mode():
            for first in range(0, len(pairs), 640):
                group = sorted(pairs[first : first + 640], key=lambda pair: -len(pair[1]))
                for start in range(0, len(group), 64):
                    self.nats(group[start : start + 64])

    def nats(self, pairs: Sequence[IdPair]) -> Tensor:
        """Return -log p, summed over all words."""
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
            nats = nats + cross_entropy(logits, words, reduction="sum", ignore_index=IGNORED)
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


def scoring(model: RnnSearch, lists: list[IdPair], few: list[IdPair]) -> list[Stage]:
    """Return the stages that score hypotheses."""
    stages = [Stage("naive: 64 pairs at once, nothing shared, fp32", lambda: Naive(model).score(few), len(few))]
    for precision in ("fp32", "bf16"):
        compute = Compute(precision=precision)
        network = SteppedPairs(RnnSearchStepper(model, dtype=compute.dtype))

        def work(network: SteppedPairs = network) -> None:
            for first in range(0, len(lists), 8192):
                sources, targets = zip(*lists[first : first + 8192], strict=True)
                network.log_probs(flatten(sources), flatten(targets))

        stages.append(Stage(f"each source and each prefix once, {precision}", work, len(lists)))
    return stages


def learning(model: RnnSearch, corpus: Corpus, config: TrainingConfig, batches: int) -> list[Stage]:
    """Return the stages that learn sentence pairs."""
    rows = list(itertools.islice(epoch_batches(corpus, config, 0), batches))
    count = sum(map(len, rows))

    naive = Naive(copy.deepcopy(model))
    optimiser = torch.optim.Adam(naive.model.parameters(), lr=config.learning_rate, foreach=False)
    ids = [pairs_in(corpus, batch) for batch in rows]

    def learn_naively() -> None:
        for pairs in ids:
            optimiser.zero_grad()
            (naive.nats(pairs) / len(pairs)).backward()
            torch.nn.utils.clip_grad_norm_(naive.model.parameters(), config.clip_norm, foreach=False)
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


def translating(model: RnnSearch, sources: list[list[int]]) -> list[Stage]:
    """Return the stages that translate sentences."""
    config = BeamConfig(BEAM, words_per_source_word=3)
    few = sources[:: max(len(sources) // 8, 1)][:8]
    search = BeamSearch(RnnSearchStepper(model), config)
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
    parser.add_argument("--preset", choices=["paper", "small"], default="small")
    parser.add_argument("--hidden-size", type=int, help="hidden units, in place of the preset's")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--list", type=int, default=100, help="hypotheses per sentence")
    parser.add_argument("--batches", type=int, default=8, help="minibatches to learn per round")
    given = parser.parse_args()
    preset = NETWORKS["rnnsearch"].presets[given.preset]
    texts = ParallelTexts.of_prefix(given.prefix, given.source, given.target)
    with tempfile.TemporaryDirectory() as folder:
        pairs = texts.pairs(Watch(lambda *_: None, lambda: False))
        known = preset.words_read or preset.shortlist, preset.shortlist
        sizes = CorpusConfig(*known, 1000, 50, repeated=True, min_count=preset.min_count)
        corpus = build_corpus(pairs, Path(folder), sizes)
        words = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
        network = {**preset.network, **({"hidden_size": given.hidden_size} if given.hidden_size else {})}
        model = RnnSearch(RnnSearchConfig(*words, **network), seed=None)
        model.initialise(1, DEVIATION)
        chosen = pairs_in(corpus, corpus.held_out[: given.sentences])
        lists = lists_of(chosen, given.list, words[1])
        tables = {
            ("scoring lists", "hypotheses"): scoring(model, lists, lists[:: max(len(lists) // 640, 1)][:640]),
            ("learning", "pairs"): learning(model, corpus, preset.training, given.batches),
            (f"translating, beam {BEAM}", "sentences"): translating(model, [source for source, _ in chosen]),
        }
        time_in_turn([stage for stages in tables.values() for stage in stages], given.rounds)
    print(
        f"RNNsearch, H {model.config.hidden_size}, {words[1]:,} target words, {len(lists):,} hypotheses of "
        f"{len(chosen):,} sentences, {torch.get_num_threads()} threads, torch {torch.__version__}; "
        f"best of {given.rounds} rounds"
    )
    write_json(given, **{title: print_rates(title, unit, stages) for (title, unit), stages in tables.items()})


if __name__ == "__main__":
    main()
