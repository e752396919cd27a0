"""A network that writes phrases, what samples from it and searches, and what its scorer makes of them."""

import itertools
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch

from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.networks.networks import SIZES, encdec_network
from tests.scorers.pairs import SOURCE, TARGET

SOURCES = [[2, 3, 4], [], [6, 0], [7, 7, 7, 7], [2, 3]]
WORDS = [i for i in range(SIZES["target_vocabulary_size"]) if i != END_ID]


def writer(switches=SWITCHES["paper"], end=1.0):
    """A network whose phrases are neither all alike nor endless; `end` is the bias of ``</s>``."""
    model = encdec_network(switches)
    with torch.no_grad():
        model.decoder.G_l.mul_(0.25)
        model.decoder.b_G.zero_()[END_ID] = end
        model.decoder.b_G[UNKNOWN_ID] = 0.5
    return model


def stepper(switches=SWITCHES["paper"], dtype=torch.float64):
    return EncDecStepper(writer(switches), dtype=dtype)


def sampler(switches=SWITCHES["paper"], dtype=torch.float64, **config):
    return Sampler(stepper(switches, dtype), SamplingConfig(**config))


def search(switches=SWITCHES["paper"], dtype=torch.float64, **config):
    return BeamSearch(stepper(switches, dtype), BeamConfig(**config))


def flat(written):
    """The hypotheses of all sources."""
    return [hypothesis for of_source in written for hypothesis in of_source]


def every_target(longest):
    """Of at most so many words."""
    return [words for length in range(longest + 1) for words in itertools.product(WORDS, repeat=length)]


def words_of(written):
    """All but the log-probabilities."""
    return [[(hypothesis.words, hypothesis.ended) for hypothesis in of_source] for of_source in written]


def model_of(stepper):
    """What a translator needs of a model."""
    vocabularies = {"source_vocabulary": SOURCE, "target_vocabulary": TARGET}
    return SimpleNamespace(models=[], rare=None, make_stepper=lambda _: stepper, **vocabularies)


class Read(NamedTuple):
    """Sources, ended and padded by -1; rows × N."""

    words: torch.Tensor

    def take(self, rows):
        return Read(self.words[rows])


class Written(NamedTuple):
    sources: torch.Tensor
    last: torch.Tensor  # word of each prefix, </s> of an empty one

    def take(self, rows):
        return Written(self.sources[rows], self.last[rows])


class Attentive(Stepper):
    """log p = log softmax(Σ_j α_j B[x_j] + G[y_{t-1}]), α = softmax(A[y_{t-1}, x_j]): a network with attention."""

    def __init__(self, source_words=9, target_words=8):
        self.device = torch.device("cpu")
        self.vocabulary_size = target_words
        random = torch.Generator().manual_seed(4)
        shapes = (target_words, source_words), (source_words, target_words), (target_words, target_words)
        self.A, self.B, self.G = (2 * torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes)

    def read(self, ids, lengths):
        ends = np.cumsum(lengths)
        rows = [[*ids[end - length : end].tolist(), END_ID] for end, length in zip(ends, lengths, strict=True)]
        longest = max(map(len, rows))
        padded = [row + [-1] * (longest - len(row)) for row in rows]
        return Read(torch.tensor(padded)), np.arange(len(rows))

    def start(self, terms):
        sources = torch.arange(len(terms.words))
        return Written(sources, torch.full_like(sources, END_ID))

    def step(self, terms, prefixes, rows, words):
        return Written(prefixes.sources[rows], words)

    def alignment(self, terms, prefixes):
        sources = terms.words[prefixes.sources]
        looks = self.A[prefixes.last[:, None], sources.clamp(min=0)]
        return looks.masked_fill(sources < 0, -torch.inf).softmax(1)

    def next_log_probs(self, terms, prefixes, columns=None):
        sources = terms.words[prefixes.sources].clamp(min=0)
        seen = (self.alignment(terms, prefixes)[:, :, None] * self.B[sources]).sum(1)
        logits = seen + self.G[prefixes.last]
        if columns is not None:
            logits = logits[:, columns.words].masked_fill(~columns.allowed[prefixes.sources], -torch.inf)
        return torch.log_softmax(logits, 1)


def unsure():
    """The same network, which often writes ``<unk>``."""
    writer = Attentive()
    writer.G[:, END_ID] -= 5
    writer.G[:, UNKNOWN_ID] += 2
    writer.G[UNKNOWN_ID, END_ID] += 7
    return writer
