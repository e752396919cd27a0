"""A network that writes phrases, what samples from it and searches, and what its scorer makes of them."""

import itertools
from types import SimpleNamespace

import torch

from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import search_checkpoint
from tests.networks.networks import SIZES, encdec_network, search_network

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
    return [hypothesis for of_source in written for hypothesis in of_source]


def every_target(longest):
    """Of at most so many words."""
    return [words for length in range(longest + 1) for words in itertools.product(WORDS, repeat=length)]


def words_of(written):
    return [[(hypothesis.words, hypothesis.ended) for hypothesis in of_source] for of_source in written]


def model_of(stepper):
    vocabularies = {"source_vocabulary": SOURCE, "target_vocabulary": TARGET}
    return SimpleNamespace(models=[], rare=None, make_stepper=lambda _: stepper, **vocabularies)


def attentive():
    """An RNNsearch, which often writes ``<unk>``."""
    return search_checkpoint(search_network(scale=1.8), SOURCE, TARGET)
