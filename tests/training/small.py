"""A tiny network that learns a tiny language, and who follows its training."""

import dataclasses

from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.networks import TrainingConfig
from moses_rnn.training.tasks import PhrasePairs
from moses_rnn.training.trainer import Trainer

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=16, evaluate_every=400, max_minutes=0)


def network(corpus):
    return EncDec(EncDecConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), 24, 12, 12, 8), seed=1)


class Listener:
    def __init__(self):
        self.losses, self.evaluations = [], []

    def starting(self, trainer):
        pass

    def stepped(self, trainer, loss):
        self.losses.append(loss)

    def evaluated(self, trainer, is_best):
        self.evaluations.append((trainer.progress.history[-1]["nats_per_token"], is_best))


def never():
    return False


def trainer_of(corpus, config):
    return Trainer(PhrasePairs(network(corpus), corpus, config), config)


def train(corpus, folder, stop=never, **changes):
    listener = Listener()
    trainer = trainer_of(corpus, dataclasses.replace(FAST, **changes))
    with ModelFolder(folder, ENCDEC) as kept:
        trainer.run(kept, listener, stop)
    return trainer, listener


def phrase_options(table, **changes):
    """To train on a table in a moment; what is not given is the preset's."""
    sizes = {"hidden_size": 6, "embedding_size": 4, "maxout_size": 4, "output_rank": 3, "shortlist": 20}
    learning = {"preset": "small", "architecture": "encdec", "max_epochs": 1, "precision": "fp32", "compiled": False}
    where = {"phrase_table": str(table), "device": "cpu", "threads": 1, "seed": 1, "max_length": 9, "held_out": 5}
    return sizes | learning | where | {"quiet": True} | changes
