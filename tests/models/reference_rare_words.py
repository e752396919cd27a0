"""The annotation of rare words once more, word by word, by the table of its kinds (Luong et al. 2015, section 3).

Positions count from 1 here, as in the paper; shares no code with the package.
"""


def link_of(i, links):
    """d of the i-th target word, or None: the nearest link, of two equally near ones the left."""
    distances = [j + 1 - i for j, target in links if target + 1 == i]
    return min(distances, key=lambda d: (abs(d), d)) if distances else None


def numbers(source, known):
    """Unknown words of a source by first appearance, each with its token."""
    tokens = {}
    for word in source:
        if word not in known and word not in tokens:
            tokens[word] = f"<unk{len(tokens) + 1}>".encode() if len(tokens) < 9 else b"<unk0>"
    return tokens


def annotate(kind, window, source, target, links, known_source, known_target):
    tokens = numbers(source, known_source)
    read = [w if w in known_source else (tokens[w] if kind == "copyable" else b"<unk>") for w in source]
    written = []
    for i, word in enumerate(target, 1):
        d = link_of(i, links)
        shown = b"n" if d is None or not -window <= d <= window else str(d).encode()
        rare = word not in known_target
        if kind == "posall":
            written += [b"<unk>" if rare else word, b"<p:" + shown + b">"]
        elif not rare:
            written.append(word)
        elif kind == "noalign":
            written.append(b"<unk>")
        elif kind == "posunk":
            written.append(b"<unk:" + shown + b">")
        else:
            linked = None if d is None else source[i + d - 1]
            written.append(tokens.get(linked, b"<unk0>"))
    return read, written
