"""Options are declared once, in the annotation of a parameter or field; a command makes its command line from them.

`moses_rnn.cli.command.command` says how. Nothing here needs more than Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from moses_rnn.native import MOST_THREADS

MOST_WHOLE = 2**31 - 1  # largest number that the libraries behind the options hold
FIRST_SECTION = "Options"  # of --help; it has the options that most runs need


@dataclass(frozen=True)
class Option:
    """What a command line knows about a parameter, besides its name, type and default.

    Args:
        help: line in --help; without help and spelling, only a file of settings has the option.
        spelling: with blanks between: "-o --output"; by default, `max_words` is "--max-words".
        min: least number.
        max: largest number.
        min_open: whether the least number itself is refused.
        max_open: whether the largest number itself is refused.
        choices: values, where the type does not list them.
        parse: converts the text to the value; raises ValueError, whose text says what is wrong.
        metavar: name of the value in --help.
        bare: value of an option that is given without one.
    """

    help: str = ""
    spelling: str = ""
    _: KW_ONLY
    min: float | None = None
    max: float | None = None
    min_open: bool = False
    max_open: bool = False
    choices: Sequence[str] = ()
    parse: Callable[[str], object] | None = None
    metavar: str | None = None
    bare: str | None = None


@dataclass(frozen=True)
class OptionsOf:
    """The note of a mapping that holds all options of a record by name, None for those that are not given."""

    record: type


@dataclass(frozen=True)
class Section:
    """Heading of --help for this option and those after it."""

    title: str


@dataclass(frozen=True)
class Argument:
    """The note of a positional parameter that --help calls by another name."""

    metavar: str


def noted(hint: Any) -> tuple[Any, Option | None]:
    """Return a parameter's type without None, and its Option; the last of several counts."""
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if NoneType in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    options = [note for note in notes if isinstance(note, Option)]
    return kind, options[-1] if options else None


def expectation(hint: Any, value: object) -> str:
    """Say what an option accepts, unless it accepts `value`: names, text, true or false, or a number within bounds."""
    kind, option = noted(hint)
    option = option or Option()
    choices = option.choices or (get_args(kind) if get_origin(kind) is Literal else ())
    if choices:
        return "" if value in choices else f"one of {', '.join(choices)}"
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is str:
        return "" if isinstance(value, str) and "\0" not in value else "text"
    if kind not in (int, float):
        return ""
    least, most = option.min, MOST_WHOLE if option.max is None and kind is int else option.max
    if type(value) in (int, kind) and _is_finite(number := cast(float, value)):
        enough = least is None or number > least or (number == least and not option.min_open)
        if enough and (most is None or number < most or (number == most and not option.max_open)):
            return ""
    bounds = "" if least is None else f" {'above' if option.min_open else 'from'} {least}"
    bounds += "" if most is None else f" {'below' if option.max_open else 'to'} {most}"
    return f"a {'whole ' * (kind is int)}number{bounds}"


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False


# Options of several commands
Device = Annotated[str, Option("cpu, cuda, cuda:1 …")]
Force = Annotated[bool, Option("Replace existing outputs")]
Json = Annotated[bool, Option("Print the summary on stdout as one JSON object, not as text", "--json")]
LongPhrases = Annotated[
    str,
    Option(
        "If a phrase is too long for a CSTM or ranker: end the run, or score it -87 (e^-87 in a table)",
        "--long",
        choices=("refuse", "floor"),
    ),
]
ModelBeside = Annotated[
    Path | None,
    Option(
        "Model folder [default: the one that moses-rnn-train puts beside PHRASE_TABLE]", "--model", metavar="FOLDER"
    ),
]
ModelFolder = Annotated[Path, Option("Model folder", "--model", metavar="FOLDER")]
ModelFolders = Annotated[tuple[Path, ...], Option("Model folder; repeat it for several", "--model", metavar="FOLDER")]
Output = Annotated[str, Option("Output file; gzip if its name ends in .gz", "-o --output")]
AllowMisfit = Annotated[bool, Option("Accept a model that has learned nothing or does not fit the table")]
Quiet = Annotated[bool, Option("Print no summary and no progress on stderr", "-q --quiet")]
Ray = Annotated[
    str | None,
    Option(
        "Work on a Ray cluster: the one at ADDRESS, the one running here (auto, the default), or a new one for this "
        "run only (local). Without an ADDRESS, only another option may follow",
        metavar="[ADDRESS]",
        bare="auto",
    ),
]
Resume = Annotated[
    bool,
    Option("Continue an interrupted run, or start a new one; the output equals that of a single run, byte for byte"),
]
SourceFactor = Annotated[int | None, Option("Source factor to use, counted from 0, if the table is factored", min=0)]
TargetFactor = Annotated[int | None, Option("Target factor to use, counted from 0, if the table is factored", min=0)]
Threads = Annotated[int | None, Option("CPU threads [default: all cores]", min=1, max=MOST_THREADS)]


# Options of commands that score with a pretrained model
PRETRAINED = "hf:"  # before the folder of a pretrained model or its name on Hugging Face
DETOKENISED, TOKENISED, RAW = PRETRAINED_TEXTS = "detokenised", "tokenised", "raw"


def is_pretrained(model: Path | str) -> bool:
    """Whether a model is named as a pretrained one."""
    return str(model).startswith(PRETRAINED)


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """How to read a pretrained model, and how it reads text."""

    source_language: Annotated[
        str | None,
        Section("Pretrained models"),
        Option("Code of the source language, such as en or eng_Latn, for a pretrained model that asks for it"),
    ] = None
    target_language: Annotated[str | None, Option("The same for the target language")] = None
    pretrained_text: Annotated[
        str,
        Option(
            "What a pretrained model reads: detokenised and unescaped lines, tokenised and unescaped ones, or lines "
            "as they are",
            choices=PRETRAINED_TEXTS,
        ),
    ] = DETOKENISED
    allow_pickle: Annotated[
        bool, Option("Also read a pretrained model's pytorch_model.bin, which is a pickle; only its tensors are read")
    ] = False
