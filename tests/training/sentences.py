"""Two tiny texts, each line of one a translation of the other's, and what is to be learned of them."""

import numpy as np


def write_texts(folder, name, lines, *, seed=0, letters=12, turn=False, longest=8):
    """NAME.src and NAME.trg: 3 letters or more, and the same ones, in the same order or turned round."""
    random = np.random.default_rng(seed)
    sources = [[f"s{i}" for i in random.integers(letters, size=random.integers(3, longest + 1))] for _ in range(lines)]
    targets = [[word.replace("s", "t") for word in (source[::-1] if turn else source)] for source in sources]
    for ending, texts in (("src", sources), ("trg", targets)):
        (folder / f"{name}.{ending}").write_text("".join(" ".join(text) + "\n" for text in texts))
    return folder / name


def sentence_options(prefix, **changes):
    """To train on two texts in a moment; what is not given is the preset's."""
    sizes = {"hidden_size": 16, "embedding_size": 8, "maxout_size": 8, "min_count": 1}
    learning = {"preset": "small", "max_epochs": 1, "precision": "fp32", "held_out": 20, "max_length": 9}
    where = {"prefix": str(prefix), "source": "src", "target": "trg", "device": "cpu"}
    rest = {"quiet": True, "threads": 1, "seed": 1, "architecture": "rnnsearch"}
    if changes.get("architecture") == "seq2seq":
        sizes["maxout_size"] = None
    return sizes | learning | where | rest | changes
