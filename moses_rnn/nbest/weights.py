"""Weights of the features of an n-best list, as Moses and mert-moses.pl read and write them in an ini."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moses_rnn.errors import FormatError, InputError, number_of, printable, shown
from moses_rnn.files.streams import reading
from moses_rnn.moses.ini import MosesIni, weight_of
from moses_rnn.nbest.bleu import Floats
from moses_rnn.nbest.lists import SPARSE
from moses_rnn.nbest.totals import PENALTY, UNKNOWN_WORDS


@dataclass(frozen=True)
class Weights:
    """Weights of dense features by label, with those components that MERT tunes and lists show; and of sparse ones.

    A sparse feature has an underscore in its label. One without a weight weighs 0, as in Moses.
    """

    files: Sequence[str]  # that were read: the ini and perhaps its weight file
    dense: Mapping[str, Sequence[float]] = field(default_factory=dict)
    tuneable: Mapping[str, Sequence[bool]] = field(default_factory=dict)  # of features with tuneable-components
    sparse: Mapping[str, float] = field(default_factory=dict)
    unlisted: Collection[str] = (UNKNOWN_WORDS,)  # penalties of unknown words, which Moses lists only where told to
    hidden: Collection[str] = ()  # features with sparse weights that lists lack: they are not tuneable
    declared: Collection[str] = ()  # features of the ini, with or without weights

    def hidden_penalty(self, names: Sequence[str]) -> float:
        """Return the penalty of an unknown word in totals of a list with these features; 0 if they show it."""
        if count_values(names).keys() & self.unlisted:
            return 0.0
        given = [values[0] for label, values in self.dense.items() if label in self.unlisted and values]
        return PENALTY * abs(given[0] if given and math.isfinite(given[0]) else 1.0)  # 1 as in Moses

    def of(self, label: str, count: int) -> list[float]:
        """Return the weights of a dense feature's values; raise an error unless they are `count` finite numbers."""
        values = list(self.dense.get(label, ()))
        tuneable = self.tuneable.get(label, ())
        if len(values) != count and len(values) == len(tuneable):
            values = [value for value, is_tuneable in zip(values, tuneable, strict=True) if is_tuneable]
        if len(values) != count or not all(map(math.isfinite, values)):
            found = f"{label}= {' '.join(map(str, values))}" if values else "none"
            raise InputError(
                f"{self.files[0]}: expected {number_of(count, 'weight')} of {label}, as many as values in the "
                f"list, found {found}"
            )
        return values


def read_weights(path: str) -> Weights:
    """Read the weights of an ini.

    Those of its ``[weight-file]`` count too; the decoder looks for it where it is run, and so do we, and then in the
    ini's folder.
    """
    ini = MosesIni(_content(path), path)
    of_ini = ini.all_weights()
    files, sparse = [path], {}
    for _, written in ini.section("weight-file")[:1]:
        places = (Path(written), Path(path).parent / written)
        sparse_file = str(next((place for place in places if place.exists()), written))
        of_file = parse_sparse_weights(_content(sparse_file), sparse_file)
        sparse = {label: weight for label, weight in of_file.items() if "_" in label}  # Moses ignores the others
        files.append(sparse_file)
    sparse |= {label: values[0] if len(values) == 1 else math.nan for label, values in of_ini.items() if "_" in label}
    dense = {label: values for label, values in of_ini.items() if "_" not in label}
    unlisted = {UNKNOWN_WORDS, *(feature.name for feature in ini.features if feature.type == "UnknownWordPenalty")}
    prefixes = tuple(f"{name}_" for name in ini.untuneable())
    shown = {label: weight for label, weight in sparse.items() if not label.startswith(prefixes)}
    hidden = {label.partition("_")[0] for label in sparse.keys() - shown.keys() if sparse[label]}
    declared = [feature.name for feature in ini.features]
    return Weights(files, dense, ini.tuneable_components(), shown, unlisted, sorted(hidden), declared)


def parse_sparse_weights(data: bytes, name: str) -> dict[str, float]:
    """Parse sparse weights by label: lines of a label and a number, and comments (moses/FeatureVector.cpp)."""
    weights = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        label, *values = (part.decode("utf-8", "surrogateescape") for part in line.split() or [b"#"])
        if label.startswith("#"):
            continue
        weight = weight_of(values[0]) if len(values) == 1 else math.nan
        if not math.isfinite(weight):
            raise FormatError(name, number, "a sparse feature and its weight", shown(line))
        weights[label] = weight
    return weights


def _content(path: str) -> bytes:
    with reading(path):
        return Path(path).read_bytes()


def select_weights(names: Sequence[str], weights: Weights) -> Floats:
    """Return the weights of a list's features; the weight of the sum of sparse features is 1."""
    selected: list[float] = []
    for label, count in count_values(names).items():
        selected += [1.0] if label == SPARSE and weights.sparse else weights.of(label, count)
    return np.array(selected)


def unused_weights(names: Sequence[str], weights: Weights) -> list[str]:
    """Return the dense features that have a weight but no value in a list, except the penalty of unknown words.

    Of features with tuneable-components, a list may lack single values.
    """
    counts = count_values(names)
    there = {*counts, *weights.unlisted}
    whole = [label for label, values in weights.dense.items() if any(values) and label not in there]
    single = [
        f"{label} (value {number})"
        for label, flags in weights.tuneable.items()
        if counts.get(label) == sum(flags) and len(weights.dense.get(label, ())) == len(flags)
        for number, (weight, is_tuneable) in enumerate(zip(weights.dense[label], flags, strict=True), 1)
        if weight and not is_tuneable
    ]
    return whole + single + [f"{name} (sparse)" for name in weights.hidden]


def format_ini(
    names: Sequence[str], weights: Sequence[float] | Floats, sparse_weights: Mapping[str, float] | None = None
) -> bytes:
    """Format a ``[weight]`` section for Moses and its scripts/nbest-rescore/rescore.py, which knows no comments.

    `sparse_weights` are those that were given when the list was read; each is written times the weight of their sum.
    """
    left = [float(weight) for weight in weights]
    lines = ["[weight]"]
    for label, count in count_values(names).items():
        values, left = left[:count], left[count:]
        if label == SPARSE and sparse_weights:
            given = ((name, weight) for name, weight in sparse_weights.items() if weight and math.isfinite(weight))
            lines += [f"{name}= {weight * values[0]:.9g}" for name, weight in given]
        else:
            lines.append(f"{label}= {' '.join(f'{value:.9g}' for value in values)}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def check_labels(weights: Weights) -> None:
    """Raise InputError if an ini cannot hold a sparse feature's weight."""
    for label, weight in weights.sparse.items():
        if "#" in label and weight:
            expected = f"sparse features without '#', which begins a comment in an ini, found {printable(label)}"
            raise InputError(f"{weights.files[-1]}: expected {expected}", advice="Remove its weight.")


def count_values(names: Sequence[str]) -> dict[str, int]:
    """Count the values of each label, in order."""
    return dict(Counter(name.rpartition("_")[0] for name in names))
