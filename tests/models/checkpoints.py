"""Checkpoints of networks that stand in a test, and what scores with them."""

from moses_rnn.models.bengio import BENGIO
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.rnnlm import RNNLM
from moses_rnn.models.rnnsearch import RNNSEARCH
from moses_rnn.producers.base import Compute
from moses_rnn.producers.open import OpenModel


def encdec_checkpoint(model, source, target, direction="source-to-target", provenance=()):
    return Checkpoint(ENCDEC, model, {"source": source, "target": target}, direction, dict(provenance))


def cslm_checkpoint(model, vocabulary, provenance=()):
    return Checkpoint(CSLM, model, {"target": vocabulary}, provenance=dict(provenance))


def bengio_checkpoint(model, vocabulary, provenance=()):
    return Checkpoint(BENGIO, model, {"target": vocabulary}, provenance=dict(provenance))


def rnnlm_checkpoint(model, vocabulary, provenance=()):
    return Checkpoint(RNNLM, model, {"target": vocabulary}, provenance=dict(provenance))


def search_checkpoint(model, source, target, direction="source-to-target", provenance=()):
    return Checkpoint(RNNSEARCH, model, {"source": source, "target": target}, direction, dict(provenance))


def make_producer(checkpoint, device="cpu", precision="fp32"):
    return OpenModel(None, checkpoint).make_producer(Compute(device, precision))
