"""A network whose rare words are annotated, with the words that it knows, and pairs with links."""

import dataclasses

import torch

from moses_rnn.models.model import Model
from moses_rnn.models.open import save_model
from moses_rnn.models.rare_words import RareWords
from moses_rnn.networks.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.networks.seq2seq import SEQ2SEQ, Seq2Seq, Seq2SeqConfig
from moses_rnn.networks.vocabulary import Vocabulary
from tests.networks.checkpoints import search_checkpoint
from tests.networks.networks import with_large_weights

READ = [b"s2", b"s3", b"s4"]
WRITTEN = [b"t2", b"t3", b"t4"]
ALIGNED = [  # source, target, links; words of 8 and 9 are rare
    (b"s2 s8 s3", b"t2 t8 t3", b"0-0 1-1 2-2"),
    (b"s8 s9", b"t9 t8", b"0-1 1-0"),
    (b"s8 s9", b"t9 t8", b"0-0 1-1"),
    (b"s2", b"t8 t9", b""),
    (b"", b"", b""),
]


def rare_vocabularies(rare):
    """With the tokens of a kind before the words."""
    special = [b"<unk>", b"</s>"]
    return Vocabulary([*special, *rare.read_tokens, *READ]), Vocabulary([*special, *rare.written_tokens, *WRITTEN])


def rare_model(kind="posunk", window=2, direction="source-to-target"):
    """An RNNsearch of a kind of annotation; scores of the same word by different tokens differ."""
    rare = RareWords(kind, window)
    source, target = rare_vocabularies(rare)
    sizes = {"hidden_size": 5, "embedding_size": 4, "alignment_size": 4, "maxout_size": 4}
    config = RnnSearchConfig(len(source), len(target), **sizes, rare=dataclasses.asdict(rare))
    model = with_large_weights(RnnSearch(config, seed=None).to(torch.float32))
    return search_checkpoint(model, source, target, direction)


def deep_lstm(kind="posunk", **changes):
    """A deep LSTM of a kind of annotation."""
    rare = RareWords(kind, 2)
    source, target = rare_vocabularies(rare)
    sizes = {"hidden_size": 5, "embedding_size": 4, "layers": 1}
    config = Seq2SeqConfig(len(source), len(target), **sizes, **changes, rare=dataclasses.asdict(rare))
    network = with_large_weights(Seq2Seq(config, seed=None).to(torch.float32))
    return Model(SEQ2SEQ, network, {"source": source, "target": target})


def save_rare_model(folder, kind="posunk"):
    """It in a folder; gives the folder."""
    save_model(folder, rare_model(kind))
    return folder
