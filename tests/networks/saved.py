"""A small checkpoint to be saved, and changes to its folder."""

import json

from moses_rnn.models.open import save_model
from moses_rnn.networks.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.networks.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.networks.vocabulary import Vocabulary
from tests.networks.checkpoints import encdec_checkpoint, search_checkpoint

SOURCE = Vocabulary([b"<unk>", b"</s>", b"a", b"b"])
TARGET = Vocabulary([b"<unk>", b"</s>", "été".encode()])
H, E, M, R = 4, 3, 2, 5
SIZES = {"hidden_size": H, "embedding_size": E, "maxout_size": M, "output_rank": R}


def checkpoint(variant="paper", seed=1, **changes):
    model = EncDec(EncDecConfig(4, 3, **SIZES, variant=variant, **SWITCHES[variant]), seed=seed)
    return encdec_checkpoint(model, SOURCE, TARGET, **changes)


def saved_search(folder):
    sizes = {"hidden_size": H, "embedding_size": E, "alignment_size": 6, "maxout_size": M}
    model = RnnSearch(RnnSearchConfig(4, 3, **sizes), seed=1)
    save_model(folder, search_checkpoint(model, SOURCE, TARGET))
    return folder


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config = {key: value for key, value in {**config, **changes}.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config))
