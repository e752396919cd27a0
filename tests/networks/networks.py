"""Small networks with large weights, so that every term of every equation matters."""

import itertools

import numpy as np
import torch

from moses_rnn.networks.bengio import Bengio, BengioConfig
from moses_rnn.networks.cells import PLAIN, CellConfig, CellEncDec
from moses_rnn.networks.cslm import Cslm, CslmConfig
from moses_rnn.networks.cstm import Cstm, CstmConfig
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.ranker import Ranker, RankerConfig
from moses_rnn.networks.rnnlm import Rnnlm, RnnlmConfig
from moses_rnn.networks.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.networks.seq2seq import Seq2Seq, Seq2SeqConfig
from moses_rnn.networks.vocabulary import END_ID, Vocabulary

SIZES = {
    "source_vocabulary_size": 9,
    "target_vocabulary_size": 8,
    "hidden_size": 5,
    "embedding_size": 3,
    "maxout_size": 4,
    "output_rank": 3,
}
CUSTOM = [
    dict(zip(("summary", "first_step", "decoder_reset"), values, strict=True))
    for values in itertools.product(("tanh", "last"), ("zero-embedding", "initial-state"), ("after", "before"))
]
CSLM_CONFIG = CslmConfig(vocabulary_size=6, order=4, embedding_size=3, first_size=5, second_size=4)
CSLM_VOCABULARY = Vocabulary([b"<unk>", b"</s>", b"le", b"chat", b"dort", b"mal"])


def with_large_weights(model, scale=0.7):
    """The same network, its weights drawn from N(0, scale²); no bias is zero."""
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=random, dtype=torch.float64) * scale)
    return model


def made(module, config, dtype=torch.float64, scale=0.7):
    return with_large_weights(module(config, seed=1).to(dtype), scale)


def encdec_network(switches, *, scale=0.7, dtype=torch.float64):
    return made(EncDec, EncDecConfig(**SIZES, variant="custom", **switches), dtype, scale)


PAPERS = {  # other cells with the paper's first step and summary
    cell: {**CUSTOM[0], "cell": cell, "decoder_reset": None, "encoder_reset": None} for cell in PLAIN
}


def cell_network(switches, *, scale=0.7, dtype=torch.float64, **config):
    """An RNN Encoder-Decoder of `SIZES` and another cell; half of the units leak."""
    meant = {"leaky": {"leaky_share": 0.5}, "lstm": {"forget_bias": 1.0}, "lstm-peephole": {"forget_bias": 1.0}}
    config = CellConfig(**SIZES, variant="custom", **switches, **meant.get(switches["cell"], {}), **config)
    return made(CellEncDec, config, dtype, scale)


def weights_of(model):
    """Its tensors as nested lists, as `reference` takes them."""
    return {name: tensor.double().tolist() for name, tensor in model.state_dict().items()}


def cslm_network(config=CSLM_CONFIG, scale=50.0):
    """A CSLM whose weights are large enough for the layers to matter."""
    model = Cslm(config, seed=3)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.mul_(scale)
    return model.requires_grad_(False)


def some_n_grams(count, config=CSLM_CONFIG):
    """Contexts of words and ``<s>``, and the word after each; count × order."""
    random = np.random.default_rng(5)
    contexts = random.integers(config.vocabulary_size + 1, size=(count, config.order - 1))
    return np.column_stack([contexts, random.integers(config.vocabulary_size, size=count)])


def cstm_network():
    return made(Cstm, CstmConfig(9, 8, slots=4, embedding_size=3, first_size=6, second_size=5))


def ranker_network(dtype=torch.float64):
    return made(Ranker, RankerConfig(9, 8, slots=4, embedding_size=3, hidden_size=6), dtype)


def search_network(phases="paper", output_rank=0, *, scale=0.7, dtype=torch.float64):
    sizes = {**SIZES, "alignment_size": 4, "output_rank": output_rank}
    return made(RnnSearch, RnnSearchConfig(**sizes, phases=phases), dtype, scale)


def seq2seq_network(order="reversed", *, dtype=torch.float64):
    """A deep LSTM with the vocabularies of `SIZES`, five hidden units and embeddings of three numbers."""
    return made(Seq2Seq, Seq2SeqConfig(9, 8, hidden_size=5, embedding_size=3, layers=2, source_order=order), dtype)


def bengio_network(dtype=torch.float64):
    config = BengioConfig(len(CSLM_VOCABULARY), order=4, embedding_size=3, hidden_size=5)
    return made(Bengio, config, dtype).requires_grad_(False)


def language_model(words):
    config = BengioConfig(words, order=3, embedding_size=3, hidden_size=4)
    return made(Bengio, config, torch.float32).requires_grad_(False)


def rnnlm_network(hidden_size=5, words=CSLM_CONFIG.vocabulary_size, *, scale=0.7, dtype=torch.float64):
    return made(Rnnlm, RnnlmConfig(words, hidden_size), dtype, scale).requires_grad_(False)


def some_sentences(count, words=CSLM_CONFIG.vocabulary_size, seed=7, longest=9):
    """Lists of ids without ends, some of them empty, some equal, many with beginnings of others."""
    random = np.random.default_rng(seed)
    ids = [i for i in range(words) if i != END_ID]
    drawn = [random.choice(ids, random.integers(longest)).tolist() for _ in range(count)]
    return [*drawn, *(sentence[: len(sentence) // 2] for sentence in drawn[: count // 4]), []]
