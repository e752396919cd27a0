"""Two tiny texts with their word alignment, and nobody who watches how they are read."""

from moses_rnn.training.materials import Watch

LINES = [  # source, target, links
    (b"the cat zebra", b"le chat zebre", b"0-0 1-1 2-2"),
    (b"the dog gnu", b"le gnou chien", b"0-0 1-2 2-1"),
    (b"dog cat", b"chien chat", b"0-0 1-1"),
    (b"", b"le", b""),
    (b"the the the the the the the", b"le", b"0-0"),
    (b"the okapi", b"le okapi", b"1-1"),
    (b"dog the", b"chien le", b"0-0 1-1"),
]
WATCH = Watch(lambda *_: None, lambda: False)


def write_aligned(folder, name, lines=LINES):
    """NAME.src, NAME.trg and NAME.links; gives the prefix."""
    for ending, texts in zip(("src", "trg", "links"), zip(*lines, strict=True), strict=True):
        (folder / f"{name}.{ending}").write_bytes(b"".join(text + b"\n" for text in texts))
    return folder / name
