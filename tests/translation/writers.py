"""A network that writes phrases, what samples from it and searches, and what its producer makes of them."""

import itertools

import torch

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.encdec import SWITCHES
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.sampling import Sampler, SamplingConfig
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.models.networks import SIZES, encdec_network
from tests.producers.pairs import SOURCE, TARGET

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


def phrase(ids, vocabulary):
    return b" ".join(vocabulary.words[i] for i in ids)


def scores(switches, sources, written, precision="fp64"):
    """The producer's log p of what was written for sources."""
    producer = make_producer(encdec_checkpoint(writer(switches), SOURCE, TARGET), precision=precision)
    pairs = [
        (phrase(source, SOURCE), phrase(h.words, TARGET))
        for source, of in zip(sources, written, strict=True)
        for h in of
    ]
    return producer.log_probs(*zip(*pairs, strict=True)).ravel()


def flat(written):
    """The hypotheses of all sources."""
    return [hypothesis for of_source in written for hypothesis in of_source]


def every_target(longest):
    """Of at most so many words."""
    return [words for length in range(longest + 1) for words in itertools.product(WORDS, repeat=length)]


def words_of(written):
    """All but the log-probabilities."""
    return [[(hypothesis.words, hypothesis.ended) for hypothesis in of_source] for of_source in written]
