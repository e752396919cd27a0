"""A further network, as somebody would add one: what would be a file in `models`, and one in `inference`.

log p(y_t | y_{t-1}, e) = log softmax(G[y_{t-1}] + n b), where n is the number of source words and ``</s>`` stands before
the first word too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from moses_rnn.networks.config import Architecture, Config, Size, Unit
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.vocabulary import END_ID

# -- models/bigrams.py


@dataclass(frozen=True)
class BigramConfig(Config):
    source_vocabulary_size: Size
    target_vocabulary_size: Size
    unit: Unit = "phrases"
    rare: None = None
    width = 1  # of what stands for hidden units


class Bigrams(nn.Module):
    def __init__(self, config, *, seed):
        super().__init__()
        self.config = config
        words = config.target_vocabulary_size
        self.G, self.b = nn.Parameter(torch.empty(words, words)), nn.Parameter(torch.empty(words))


# -- inference/bigrams.py


class Lengths(NamedTuple):
    words: torch.Tensor  # of each source


class LastWords(NamedTuple):
    sources: torch.Tensor
    words: torch.Tensor


class BigramStepper(Stepper):
    def __init__(self, model, device, dtype):
        self.device = torch.device(device)
        self.vocabulary_size = model.config.target_vocabulary_size
        self._G, self._b = model.G.to(device, torch.float64), model.b.to(device, torch.float64)

    def encode(self, ids, lengths):
        distinct = torch.unique(torch.from_numpy(lengths), return_inverse=True)
        return Lengths(distinct[0].to(self.device)), distinct[1].numpy()

    def start(self, encoded):
        sources = torch.arange(len(encoded.words), device=self.device)
        return LastWords(sources, torch.full_like(sources, END_ID))

    def step(self, encoded, prefixes, rows, words):
        return LastWords(prefixes.sources[rows], words)

    def next_log_probs(self, encoded, prefixes, columns=None):
        n = encoded.words[prefixes.sources, None]
        logits = self._G[prefixes.words] + n * self._b
        if columns is not None:
            logits = logits[:, columns.words].masked_fill(~columns.allowed[prefixes.sources], -torch.inf)
        return torch.log_softmax(logits, 1)


BIGRAMS = Architecture("bigrams", "bigram network", "BIGRAM", BigramConfig, Bigrams, stepper=BigramStepper, format=2)

# -- for tests


def random_network(source_words, target_words):
    model = Bigrams(BigramConfig(source_words, target_words), seed=None).requires_grad_(False)
    random = torch.Generator().manual_seed(1)
    for tensor in model.parameters():
        tensor.copy_(torch.randn(tensor.shape, generator=random))
    return model


def random_stepper(source_words, target_words):
    return BigramStepper(random_network(source_words, target_words), "cpu", torch.float64)


def log_prob(weights, source, target, _config):
    total, last = 0.0, END_ID
    for word in [*target, END_ID]:
        logits = [g + len(source) * b for g, b in zip(weights["G"][last], weights["b"], strict=True)]
        total += logits[word] - math.log(sum(map(math.exp, logits)))
        last = word
    return total
