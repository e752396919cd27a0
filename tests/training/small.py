"""Small networks that learn tiny languages, what they learn from, and who follows it."""

import dataclasses

import numpy as np

from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.presets import NETWORKS, TrainingConfig
from moses_rnn.training.tasks import PhrasePairs
from moses_rnn.training.trainer import Observer, Trainer

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=16, evaluate_every=400, max_minutes=0)


def network(corpus):
    return EncDec(EncDecConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), 24, 12, 12, 8), seed=1)


class Listener(Observer):
    def __init__(self):
        self.losses, self.figures, self.evaluations = [], [], []

    def corpus_read(self, description):
        self.description = description

    def stepped(self, trainer, loss):
        self.losses.append(loss)

    def evaluated(self, trainer, is_best):
        self.figures.append(trainer.progress.history[-1])
        self.evaluations.append((self.figures[-1].get("nats_per_token"), is_best))


def never():
    return False


def trainer_of(corpus, config):
    return Trainer(PhrasePairs(network(corpus), corpus, config))


def train(corpus, folder, stop=never, **changes):
    listener = Listener()
    trainer = trainer_of(corpus, dataclasses.replace(FAST, **changes))
    with ModelFolder(folder, ENCDEC) as kept:
        trainer.run(kept, listener, stop)
    return trainer, listener


def phrase_options(table, **changes):
    """To train on a table in a moment; what is not given is the preset's."""
    sizes = {"hidden_size": 6, "embedding_size": 4, "maxout_size": 4, "output_rank": 3, "shortlist": 20}
    learning = {"preset": "small", "architecture": "encdec", "max_epochs": 1, "precision": "fp32"}
    where = {"phrase_table": str(table), "device": "cpu", "threads": 1, "seed": 1, "max_length": 9, "held_out": 5}
    return sizes | learning | where | {"quiet": True} | changes


def sentences(count, seed=0):
    """A language to be learned: each word is the one before plus one or two."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        ids = random.integers(10) + np.append(0, np.cumsum(random.integers(1, 3, size=random.integers(1, 7))))
        yield b" ".join(b"w%d" % (i % 10) for i in ids)


def text_options(text, folder, **changes):
    """To train a language model on a text in a moment; what is not given is the preset's."""
    learning = {"preset": "small", "optimiser": "adam", "batch_size": 32, "max_epochs": 1, "precision": "fp32"}
    where = {"texts": (str(text),), "model": folder, "device": "cpu", "threads": 1, "seed": 1, "shortlist": 6}
    return learning | where | {"quiet": True} | changes


def write_texts(folder, name, lines, *, seed=0, letters=12):
    """NAME.src and NAME.trg: 3 to 8 letters, and the same ones in the same order."""
    random = np.random.default_rng(seed)
    sources = [[f"s{i}" for i in random.integers(letters, size=random.integers(3, 9))] for _ in range(lines)]
    targets = [[word.replace("s", "t") for word in source] for source in sources]
    for ending, texts in (("src", sources), ("trg", targets)):
        (folder / f"{name}.{ending}").write_text("".join(" ".join(text) + "\n" for text in texts))
    return folder / name


def sentence_options(prefix, **changes):
    """To train on two texts in a moment; what is not given is the preset's."""
    sizes = {"hidden_size": 16, "embedding_size": 8, "maxout_size": 8, "min_count": 1}
    learning = {"preset": "small", "max_epochs": 1, "precision": "fp32", "held_out": 20, "max_length": 9}
    where = {"prefix": str(prefix), "source": "src", "target": "trg", "device": "cpu"}
    rest = {"quiet": True, "threads": 1, "seed": 1, "architecture": "rnnsearch"}
    own = NETWORKS[changes.get("architecture", "rnnsearch")].own | {"hidden_size", "min_count"}
    sizes = {name: size for name, size in sizes.items() if name in own}
    return sizes | learning | where | rest | changes
