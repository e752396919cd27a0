"""A language of one text, what is to be learned of it, and who follows the training."""

import numpy as np


def sentences(count, seed=0):
    """A language to be learned: each word is the one before plus one or two."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        ids = random.integers(10) + np.append(0, np.cumsum(random.integers(1, 3, size=random.integers(1, 7))))
        yield b" ".join(b"w%d" % (i % 10) for i in ids)


class Listener:
    def __init__(self):
        self.figures = []

    def reading(self, lines, share):
        pass

    def corpus_read(self, description):
        self.description = description

    def starting(self, trainer):
        pass

    def stepped(self, trainer, loss):
        pass

    def evaluated(self, trainer, is_best):
        self.figures.append(trainer.progress.history[-1])


def never():
    return False


def text_options(text, folder, **changes):
    """To train a language model on a text in a moment; what is not given is the preset's."""
    learning = {"preset": "small", "optimiser": "adam", "batch_size": 32, "max_epochs": 1, "precision": "fp32"}
    where = {"texts": (str(text),), "model": folder, "device": "cpu", "threads": 1, "seed": 1, "shortlist": 6}
    return learning | where | {"quiet": True} | changes
