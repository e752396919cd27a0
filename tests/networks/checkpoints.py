"""Checkpoints of networks that stand in a test, and what scores with them."""

from moses_rnn.models.model import Model
from moses_rnn.networks.bengio import BENGIO
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.cslm import CSLM
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.rnnlm import RNNLM
from moses_rnn.networks.rnnsearch import RNNSEARCH


def encdec_checkpoint(model, source, target, direction="source-to-target", provenance=()):
    return Model(ENCDEC, model, {"source": source, "target": target}, direction, dict(provenance))


def cslm_checkpoint(model, vocabulary, provenance=()):
    return Model(CSLM, model, {"target": vocabulary}, provenance=dict(provenance))


def bengio_checkpoint(model, vocabulary, provenance=()):
    return Model(BENGIO, model, {"target": vocabulary}, provenance=dict(provenance))


def rnnlm_checkpoint(model, vocabulary, provenance=()):
    return Model(RNNLM, model, {"target": vocabulary}, provenance=dict(provenance))


def search_checkpoint(model, source, target, direction="source-to-target", provenance=()):
    return Model(RNNSEARCH, model, {"source": source, "target": target}, direction, dict(provenance))


def make_scorer(model, device="cpu", precision="fp32"):
    return model.make_scorer(Compute(device, precision))
