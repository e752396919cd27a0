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


def encdec_network(switches, *, scale=0.7, dtype=torch.float64):
    """An RNN Encoder-Decoder of `SIZES`; biases are no zeros."""
    return with_large_weights(EncDec(EncDecConfig(**SIZES, variant="custom", **switches), seed=None).to(dtype), scale)


PAPERS = {  # other cells with the paper's first step and summary
    cell: {
        "summary": "tanh",
        "first_step": "zero-embedding",
        "cell": cell,
        "decoder_reset": None,
        "encoder_reset": None,
    }
    for cell in PLAIN
}


def cell_network(switches, *, scale=0.7, dtype=torch.float64, **config):
    """An RNN Encoder-Decoder of `SIZES` and another cell; biases are no zeros, and half of the units leak."""
    meant = {"leaky": {"leaky_share": 0.5}, "lstm": {"forget_bias": 1.0}, "lstm-peephole": {"forget_bias": 1.0}}
    config = CellConfig(**SIZES, variant="custom", **switches, **meant.get(switches["cell"], {}), **config)
    return with_large_weights(CellEncDec(config, seed=1).to(dtype), scale)


def with_large_weights(model, scale=0.7):
    """The same network, its weights drawn from N(0, scale²)."""
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=random, dtype=torch.float64) * scale)
    return model


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


def cstm_network(slots=4, *, scale=0.7, dtype=torch.float64):
    """A continuous-space translation model with the vocabularies of `SIZES`; biases are no zeros."""
    config = CstmConfig(9, 8, slots=slots, embedding_size=3, first_size=6, second_size=5)
    return with_large_weights(Cstm(config, seed=None).to(dtype), scale)


def ranker_network(slots=4, *, corrupt="last", scale=0.7, dtype=torch.float64):
    """A ranker with the vocabularies of `SIZES`; biases are no zeros."""
    config = RankerConfig(9, 8, slots=slots, embedding_size=3, hidden_size=6, corrupt=corrupt)
    return with_large_weights(Ranker(config, seed=None).to(dtype), scale)


SEARCH_SIZES = {
    "source_vocabulary_size": 9,
    "target_vocabulary_size": 8,
    "hidden_size": 5,
    "embedding_size": 3,
    "alignment_size": 4,
    "maxout_size": 4,
}


def search_network(phases="paper", output_rank=0, *, scale=0.7, dtype=torch.float64):
    """An RNNsearch of `SEARCH_SIZES`; biases and v are no zeros."""
    model = RnnSearch(RnnSearchConfig(**SEARCH_SIZES, output_rank=output_rank, phases=phases), seed=None).to(dtype)
    return with_large_weights(model, scale)


SEQ2SEQ_SWITCHES = [
    {"source_order": order, "peepholes": peepholes, "layers": layers}
    for order in ("reversed", "forward")
    for peepholes in (True, False)
    for layers in (1, 2, 3)
]
TWO_LAYERS = {"source_order": "reversed", "peepholes": True, "layers": 2}


def seq2seq_network(switches=TWO_LAYERS, *, scale=0.7, dtype=torch.float64):
    """A deep LSTM with the vocabularies of `SIZES`, five hidden units and embeddings of three numbers."""
    model = Seq2Seq(Seq2SeqConfig(9, 8, hidden_size=5, embedding_size=3, **switches), seed=None)
    return with_large_weights(model.to(dtype), scale)


def bengio_network(dtype=torch.float64):
    """Bengio's network of 4-grams for CSLM_VOCABULARY; biases are no zeros."""
    model = Bengio(BengioConfig(len(CSLM_VOCABULARY), order=4, embedding_size=3, hidden_size=5), seed=None)
    return with_large_weights(model.to(dtype)).requires_grad_(False)


def language_model(words):
    """Bengio's network for another number of words."""
    model = Bengio(BengioConfig(words, order=3, embedding_size=3, hidden_size=4), seed=None)
    return with_large_weights(model).requires_grad_(False)


def rnnlm_network(hidden_size=5, words=CSLM_CONFIG.vocabulary_size, *, scale=0.7, dtype=torch.float64):
    """A recurrent language model, for CSLM_VOCABULARY."""
    model = Rnnlm(RnnlmConfig(words, hidden_size), seed=None)
    return with_large_weights(model.to(dtype), scale).requires_grad_(False)


def some_sentences(count, words=CSLM_CONFIG.vocabulary_size, seed=7, longest=9):
    """Lists of ids without ends, some of them empty, some equal, many with beginnings of others."""
    random = np.random.default_rng(seed)
    ids = [i for i in range(words) if i != END_ID]
    drawn = [random.choice(ids, random.integers(longest)).tolist() for _ in range(count)]
    return [*drawn, *(sentence[: len(sentence) // 2] for sentence in drawn[: count // 4]), []]
