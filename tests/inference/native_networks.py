"""Networks of sizes that fill no panel and no vector, scored by the native core."""

import torch

from moses_rnn.inference.native import NativeEncDec
from moses_rnn.models.encdec import EncDec
from moses_rnn.models.variants import SWITCHES, EncDecConfig
from tests.inference.id_pairs import flat

SIZES = {"hidden_size": 100, "embedding_size": 35, "maxout_size": 45, "output_rank": 50}


def native_scores(model, pairs, core, precision):
    sources, targets = zip(*pairs, strict=True)
    return NativeEncDec(model, core, precision).log_probs(flat(sources), flat(targets))


def larger_network(switches=SWITCHES["paper"], scale=0.1, words=(40, 777)):
    """One that fills no panel and no vector: 100 hidden units, 777 target words."""
    model = EncDec(EncDecConfig(*words, **SIZES, variant="custom", **switches), seed=1)
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.randn(tensor.shape, generator=random) * scale)
    return model
