"""What every network is made of: its kind, and its sizes and switches as in config.json, checked by type."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from torch import nn

from moses_rnn.errors import shown_value
from moses_rnn.networks.learning_curves import NATS, Measure

MAX_SIZE = 1 << 24  # no size of a network is larger; refused before anything is allocated
SENTENCES, PHRASES = "sentences", "phrases"  # that a network learned from
FORMAT = 1
CONFIG, MODEL = "config.json", "model.safetensors"
PENDING_CONFIG = ".config.json.new"
FIRST_NETWORK = "encdec"  # whose config.json has no key "network"
SOURCE_TO_TARGET, TARGET_TO_SOURCE = DIRECTIONS = "source-to-target", "target-to-source"

Json = dict[str, Any]


class Limits(NamedTuple):
    """Of a number, both included."""

    least: float
    most: float


Size = Annotated[int, Limits(1, MAX_SIZE)]
SizeOrNone = Annotated[int, Limits(0, MAX_SIZE)]  # 0: the network has no such part
Unit = Literal["sentences", "phrases"]
Rare = Mapping[str, Any]  # kind and window of what stands for rare words


@dataclass(frozen=True)
class Config:
    """Base of the networks' configs: every field is checked against its type whenever one is made; else ValueError."""

    def __post_init__(self) -> None:
        own: Any = type(self)
        for key, hints in _hints(own).items():
            if not any(_fits(getattr(self, key), hint) for hint in hints):
                self.refuse(key, " or ".join(map(_description, hints)))

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise ValueError for a value."""
        raise ValueError(f"expected {key} to be {expected}, found {shown_value(getattr(self, key))}")

    @property
    def width(self) -> int:
        """Units of the first hidden layer, which decide what pays on a processor."""
        own: Any = self
        return int(own.hidden_size if hasattr(own, "hidden_size") else own.first_size)


@functools.cache
def _hints(config: Any) -> dict[str, tuple[Any, ...]]:
    """The types that each field may have."""
    every = get_type_hints(config, include_extras=True)
    return {key: get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,) for key, hint in every.items()}


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is Annotated:
        number, limits = get_args(hint)
        is_number = type(value) is int or (number is float and type(value) is float)
        return is_number and limits.least <= value <= limits.most
    if hint == Rare:
        known = isinstance(value, Mapping) and isinstance(value.get("kind"), str)
        return known and _fits(value.get("window"), Size)
    return type(value) is hint  # bool, or nothing


def _description(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is Annotated:
        number, limits = get_args(hint)
        return f"a {'whole ' * (number is int)}number from {limits.least} to {limits.most}"
    return {bool: "true or false", NoneType: "null"}.get(hint, 'a "kind" and a "window"')


# --- kinds of network -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Architecture:
    """A kind of network: a row of NETWORKS.

    It has a stepper, from which scoring and search follow; pairs, or words of targets alone, may be scored by something
    else.
    """

    key: str  # in config.json
    title: str  # in messages
    name: str  # of its score
    config: type[Config]
    module: Callable[..., nn.Module]  # of a config and the seed of its initial weights
    sides: tuple[str, ...] = ("source", "target")  # that have a vocabulary
    stepper: Callable[..., Any] | None = None  # a `Stepper` of a module, a device and the type of products
    pairs: Callable[..., Any] | None = None  # a `PairNetwork` of the same, and of what too long pairs score
    words: Callable[..., Any] | None = None  # a `WordNetwork` of the same as a stepper
    native: Callable[..., Any] | None = None  # a `PairNetwork` of a module, the native core and a precision
    ends: str = "both </s> included"  # which end symbols count in a score of pairs
    unbounded: bool = False  # whether that is no log-probability
    format: int = FORMAT  # of config.json
    measure: Measure = NATS  # what it is judged by

    reads_sources: bool = field(init=False)  # whether it is a network of pairs, not of targets alone
    files: tuple[str, ...] = field(init=False)  # names of all files of a folder

    def __post_init__(self) -> None:
        """Say once what follows from the sides."""
        names = (CONFIG, MODEL, *map(vocabulary_file, self.sides))
        vars(self).update(reads_sources="source" in self.sides, files=names)


def vocabulary_file(side: str) -> str:
    """The name of a vocabulary's file."""
    return f"{side}.vocab"
