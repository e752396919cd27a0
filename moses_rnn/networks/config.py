"""Base classes for networks: architectures, and configs (sizes and switches in config.json) checked by type."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType
from typing import Annotated, Any, Literal, NoReturn, get_args, get_type_hints

from torch import nn

from moses_rnn.errors import shown_value
from moses_rnn.networks.measures import NATS, Measure
from moses_rnn.options import Option, expectation

MAX_SIZE = 1 << 24  # largest size in a network, checked before anything is allocated
SENTENCES, PHRASES = "sentences", "phrases"  # units of training data
FORMAT = 1
CONFIG, MODEL = "config.json", "model.safetensors"
PENDING_CONFIG = ".config.json.new"
STATE_FOLDER = "training"  # inside the model folder; only needed to continue training
FIRST_NETWORK = "encdec"  # its config.json has no key "network"
SOURCE_TO_TARGET, TARGET_TO_SOURCE = DIRECTIONS = "source-to-target", "target-to-source"

Json = dict[str, Any]
Size = Annotated[int, Option(min=1, max=MAX_SIZE)]
SizeOrNone = Annotated[int, Option(min=0, max=MAX_SIZE)]  # 0: the network has no such part
Unit = Literal["sentences", "phrases"]
Rare = Mapping[str, Any]  # kind and window of rare-word annotation


OF_MATERIAL = "unit", "rare"  # fields that the training material decides


class SettingError(ValueError):
    """A value that the type of its field or the other values of a config do not allow."""

    def __init__(self, key: str, expected: str, value: object) -> None:
        self.key, self.why = key, f"expected {expected}, found {shown_value(value)}"
        super().__init__(f"expected {key} to be {expected}, found {shown_value(value)}")


@dataclass(frozen=True)
class Config(ABC):
    """Base of the networks' configs: checks every field against its type, or raises SettingError.

    The first fields are the vocabulary sizes of the architecture's sides. Fields with a default are settings of its
    training, by the same name, except those that the material decides.
    """

    def __post_init__(self) -> None:
        for key, hint in get_type_hints(type(self), include_extras=True).items():
            if expected := _expectation(hint, getattr(self, key)):
                self.refuse(key, expected)

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise SettingError for a field."""
        raise SettingError(key, expected, getattr(self, key))

    @classmethod
    def settings(cls) -> list[str]:
        """Return the names of the settings."""
        return [one.name for one in fields(cls) if one.default is not MISSING and one.name not in OF_MATERIAL]

    @classmethod
    def complete(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the settings that the given ones imply, if these are not the defaults."""
        return given

    @property
    @abstractmethod
    def width(self) -> int:
        """Units of the first hidden layer, which decide how to compute efficiently."""

    @property
    def description(self) -> str:
        """Description for logs; by default, the settings."""
        return ", ".join(f"{name} {getattr(self, name)}" for name in self.settings())


def _expectation(hint: Any, value: Any) -> str:
    """Say what a type expects if it refuses `value`; see `expectation`, which lacks None and `Rare`."""
    if value is None and NoneType in (hint, *get_args(hint)):
        return ""
    if hint is NoneType:
        return "null"
    kind = get_args(hint)[0] if NoneType in get_args(hint) else hint
    if kind == Rare:
        known = isinstance(value, Mapping) and isinstance(value.get("kind"), str)
        return "" if known and not expectation(Size, value.get("window")) else 'a "kind" and a "window"'
    return expectation(kind, value)


# --- kinds of network -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Architecture:
    """A kind of network.

    Its stepper serves scoring and search; `pairs` or `words` may replace it for scoring.
    """

    key: str  # in config.json
    title: str  # in messages
    name: str  # of its score
    config: type[Config]
    module: Callable[..., nn.Module]  # takes a config and the seed of the initial weights
    sides: tuple[str, ...] = ("source", "target")  # sides with a vocabulary
    stepper: Callable[..., Any] | None = None  # makes a `Stepper` from a module, a device and the type of products
    pairs: Callable[..., Any] | None = None  # makes a `PairNetwork` from the same and the score of too long pairs
    words: Callable[..., Any] | None = None  # makes a `WordNetwork` from the same as `stepper`
    native: Callable[..., Any] | None = None  # makes a `PairNetwork` from a module, the native core and a precision
    ends: str = "both </s> included"  # end symbols that count in a score of pairs
    unbounded: bool = False  # whether the score is not a log-probability
    format: int = FORMAT  # of config.json
    measure: Measure = NATS  # measure of held-out cost

    @property
    def reads_sources(self) -> bool:
        """Whether it is a network of pairs, not only of targets."""
        return "source" in self.sides

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files in a folder."""
        return (CONFIG, MODEL, *map(vocabulary_file, self.sides))


def find_architectures() -> list[Architecture]:
    """Return the architectures of all networks: each file of this package may end with one."""
    package = importlib.import_module(str(__package__))
    files = [importlib.import_module(f"{__package__}.{file.name}") for file in pkgutil.iter_modules(package.__path__)]
    return [value for file in files for value in vars(file).values() if isinstance(value, Architecture)]


def vocabulary_file(side: str) -> str:
    """Return the name of a vocabulary's file."""
    return f"{side}.vocab"
