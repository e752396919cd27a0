"""Tiny models on disk, as the options of moses-rnn nbest name them."""

import torch

from moses_rnn.models.open import save_model
from moses_rnn.networks.cslm import CslmConfig
from moses_rnn.networks.encdec import SWITCHES
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import (
    bengio_checkpoint,
    cslm_checkpoint,
    encdec_checkpoint,
    rnnlm_checkpoint,
    search_checkpoint,
)
from tests.networks.networks import cslm_network, encdec_network, language_model, rnnlm_network, search_network

ARPA = """\\data\\
ngram 1=6
ngram 2=2

\\1-grams:
-1\t<unk>
0\t<s>\t-0.3
-0.75\t</s>
-0.5\tt2\t-0.25
-0.875\tt9
-1.25\tt8

\\2-grams:
-0.25\t<s> t2
-0.5\tt2 t9

\\end\\
"""


def save_models(folder):
    """Tiny models: ``cslm``, ``rnn``, ``groundhog``, ``inverse``, ``search``, ``nplm``, two ``rnnlm``, and three that fit no n-best list.

    And a vocabulary file, a text, an ARPA file.
    """
    config = CslmConfig(len(TARGET), order=3, embedding_size=4, first_size=8, second_size=4)
    save_model(folder / "cslm", cslm_checkpoint(cslm_network(config), TARGET))
    network = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    save_model(folder / "rnn", encdec_checkpoint(network, SOURCE, TARGET))
    groundhog = encdec_network(SWITCHES["groundhog"], dtype=torch.float32)
    save_model(folder / "groundhog", encdec_checkpoint(groundhog, SOURCE, TARGET))
    save_model(folder / "inverse", encdec_checkpoint(network, SOURCE, TARGET, "target-to-source"))
    for name, phrases in (("rules", {"hierarchical": True}), ("factored", {"source_factor": 1})):
        save_model(folder / name, encdec_checkpoint(network, SOURCE, TARGET, provenance={"phrases": phrases}))
    unlearned = {"history": [{"nats_per_token": 3.0}], "unigram_nats_per_token": 2.0}
    save_model(folder / "unlearned", encdec_checkpoint(network, SOURCE, TARGET, provenance=unlearned))
    save_model(folder / "search", search_checkpoint(search_network(dtype=torch.float32), SOURCE, TARGET))
    of_sentences = encdec_checkpoint(network, SOURCE, TARGET, provenance={"unit": "sentences"})
    save_model(folder / "sentences", of_sentences)
    save_model(folder / "nplm", bengio_checkpoint(language_model(len(TARGET)), TARGET))
    for name, scale in (("rnnlm", 0.7), ("rnnlm2", 0.4)):
        model = rnnlm_network(words=len(TARGET), scale=scale, dtype=torch.float32)
        save_model(folder / name, rnnlm_checkpoint(model, TARGET))
    (folder / "text").write_bytes(b"t2 t8 t9\nt9 other\n")
    (folder / "words").write_bytes(TARGET.to_bytes())
    (folder / "lm.arpa").write_text(ARPA, encoding="utf-8")
    return folder
