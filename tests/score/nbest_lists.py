"""N-best lists with features, for tests."""

import re

import torch

from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.networks.cslm import CslmConfig
from moses_rnn.score.nbest_features import Feature
from moses_rnn.score.nbest_lists import ListFeatures, label_features
from moses_rnn.scorers.phrases import WordPenaltyScorer
from tests.networks.checkpoints import cslm_checkpoint
from tests.networks.networks import cslm_network
from tests.scorers.pairs import TARGET

SOURCES = [b"s2 s3 s9", b"s4\ts5", b""]
ADDED = re.compile(rb" (?:CSLM|WP|RNN)[01]= [-+.e0-9]+")


def cslm(**changed):
    model = cslm_network(CslmConfig(len(TARGET), order=3, embedding_size=4, first_size=8, second_size=4))
    with torch.no_grad():
        for name, value in changed.items():
            getattr(model, name).fill_(value)
    return cslm_checkpoint(model, TARGET).make_language_model()


def whole_sentences():
    return [("CSLM", of_targets(cslm())), ("WP", of_targets(WordPenaltyScorer(TARGET)))]


def of_targets(scorer):
    return Feature(scorer, of_sources=False)


def nbest(hypothesis, further=b"", sentence=0, features=b"LM0= -4 TM0= -1.5 -2"):
    return b"%d ||| %b  ||| %b ||| -4.5%b\n" % (sentence, hypothesis, features, further)


def parsed(lines):
    return list(parse_nbest(lines, "n"))


def added(lines, named, sources=SOURCES, **options):
    """The list with features, as bytes."""
    return adding(lines, named, sources, **options)[1]


def adding(lines, named, sources=SOURCES, **options):
    """What adds the features, when it has, and the list with them."""
    given_lines = parsed(lines)
    features = ListFeatures("n", sources, label_features(given_lines[0], named), **options)
    return features, b"".join(features.add(given_lines))
