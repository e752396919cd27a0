"""What all commands share: errors and exit codes, output, stopping on signals, files that are read, devices."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, ParamSpec, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from moses_rnn.errors import MosesRnnError, Stopped, says_out_of_memory
from moses_rnn.native import native_core
from moses_rnn.options import (
    FIRST_SECTION,
    MOST_WHOLE,
    Argument,
    Option,
    OptionsOf,
    Section,
    is_pretrained,
    noted,
)
from moses_rnn.version import __version__

P = ParamSpec("P")
STOPPED = Stopped.exit_code
CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f]")
# Spellings that are understood, but not shown
AMERICAN = {
    "optimizer": "optimiser",
    "analyze": "analyse",
    "tokenize": "tokenise",
}
CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "token_normalize_func": lambda word: AMERICAN.get(word, word),
}


class _FiniteFloat(click.FloatRange):
    """A number within a range that is neither nan nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert, and refuse numbers that are not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        """Describe the range for --help; click shows "x<=None" for a range without limits."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class _Place(click.types.StringParamType):
    """Text that the shell completes as a file's name: most texts that commands take are names of files."""

    def shell_complete(
        self, _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]


class _Whole(click.IntRange):
    """A whole number within what the libraries behind the options hold; --help shows no end of many digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert, and refuse numbers that are too large."""
        number = super().convert(value, param, ctx)
        if self.max is None and number > MOST_WHOLE:
            self.fail(f"{number} is above {MOST_WHOLE}.", param, ctx)
        return number

    def _describe_range(self) -> str:
        if self.max is None or self.max <= MOST_WHOLE:
            return super()._describe_range()
        return f"{self.min}<=x<2^{self.max.bit_length()}"


def command(epilog: str, name: str | None = None) -> Callable[[Callable[..., None]], Program]:
    """Make a command from a function, and its arguments and options from the function's parameters.

    A parameter with an `Option` among its annotations is an option, another one an argument, and one whose type is a
    dataclass stands for all fields of that, which are declared in the same way. Type and default are Python's own: a
    bool is a flag, a tuple of any length is repeated, what has no default must be given. The last of several `Option`
    annotations counts::

        @command(EPILOG)
        def main(phrase_table: str, *, top: Annotated[int, Option("Targets of each", min=1)] = 3, force: Force = False):

    The package's exceptions become one message on stderr and an exit code. The epilog of --help has an example.
    """

    def decorate(function: Callable[..., None]) -> Program:
        declared = _parameters_of(function)
        records = {one.name: record for one in declared if (record := _record_of(one))}
        each = [inner for one in declared for inner in (records[one.name][1] if one.name in records else [one])]

        @functools.wraps(function)
        def filled(**given: Any) -> None:
            for record_name, (make, own) in records.items():
                given[record_name] = make(**{one.name: given.pop(one.name) for one in own})
            function(**given)

        parameters, section = [], FIRST_SECTION
        for one in each:
            notes = get_args(one.annotation)[1:] if get_origin(one.annotation) is Annotated else ()
            section = next((note.title for note in notes if isinstance(note, Section)), section)
            parameters.append(_parameter(one, section))
        make = click.command(name, cls=Program, context_settings=CONTEXT, epilog=epilog, params=parameters)
        return make(reports_errors(filled))

    return decorate


def _parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return a function's parameters, or a dataclass's fields, with the annotations of their types."""
    hints = get_type_hints(function, include_extras=True)
    return [one.replace(annotation=hints[name]) for name, one in inspect.signature(function).parameters.items()]


def _record_of(parameter: inspect.Parameter) -> tuple[Callable[..., Any], list[inspect.Parameter]] | None:
    """Return what combines several options into a parameter, and these options; None for a single option."""
    hint = parameter.annotation
    if is_dataclass(hint):
        return hint, _offered(_parameters_of(hint))  # type: ignore[return-value, arg-type]
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    for note in notes:
        if isinstance(note, OptionsOf):
            fields = [one.replace(default=None) for one in _parameters_of(note.record) if noted(one.annotation)[1]]
            return dict, _offered(fields)
    return None


def _offered(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters of the command line: the others can only be set in a file of settings."""
    with_options = ((one, noted(one.annotation)[1]) for one in parameters)
    return [one for one, option in with_options if option is None or option.help or option.spelling]


def _parameter(declared: inspect.Parameter, section: str) -> click.Parameter:
    name, hint, default = declared.name, declared.annotation, declared.default
    kind, option = noted(hint)
    repeated = get_args(kind)[1:] == (...,)
    attributes: dict[str, Any] = {"required": default is inspect.Parameter.empty}
    if default not in (inspect.Parameter.empty, None, ()):
        attributes["default"] = default
    attributes["type"] = _click_type(get_args(kind)[0] if repeated else kind, option or Option())
    if option is None:
        metavar = next((note.metavar for note in get_args(hint)[1:] if isinstance(note, Argument)), None)
        return click.Argument([name], nargs=-1 if repeated else 1, metavar=metavar, **attributes)
    attributes |= {"is_flag": True} if kind is bool else {"multiple": repeated, "metavar": option.metavar}
    attributes |= {"is_flag": False, "flag_value": option.bare} if option.bare else {}
    spellings = option.spelling.split() or [f"--{name.replace('_', '-')}"]
    made = click.Option([name, *spellings], help=option.help, show_default=bool(default), **attributes)
    vars(made).update(section=section, hint=hint)
    return made


def _click_type(kind: Any, option: Option) -> Any:
    if option.parse:
        return _reading(option.parse)
    if option.choices or get_origin(kind) is Literal:
        return click.Choice(option.choices or get_args(kind))
    if get_origin(kind) is tuple:
        return tuple(_click_type(one, option) for one in get_args(kind))
    if kind is int and (option.min, option.max) != (None, None):
        return _Whole(option.min, option.max)  # type: ignore[arg-type]
    if kind is float:
        return _FiniteFloat(option.min, option.max, option.min_open, option.max_open)
    return {Path: click.Path(path_type=Path), str: _Place()}.get(kind, kind)


def _reading(parse: Callable[[str], object]) -> Callable[[str], object]:
    def text(value: str) -> object:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return text


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    try:
        core: object = native_core() or "without the native core"
    except MosesRnnError as error:
        core = error
    click.echo(f"{context.command_path}, version {__version__} ({core})")
    context.exit()


shows_version = click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and whether the native core is available.",
)


class _Careful(click.Command):
    """A command that fails if its output cannot be written, --help and --version included."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and exit with 1 if standard output fails."""
        _occupy_closed_streams()
        code: Any = 0
        try:
            super().main(*args, **kwargs)
        except SystemExit as leaving:
            code = leaving.code
        except OSError as error:
            code = _failed(error)
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _failed(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try once more at exit
        sys.exit(code)


class Program(_Careful):
    """A command of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; refuse empty values, and a second value of an option that takes one: the first would be lost."""
        given, _, order = self.make_parser(ctx).parse_args([*args])
        for parameter in () if ctx.resilient_parsing else order:
            if "" in _texts(given.get(str(parameter.name))):
                raise click.BadParameter("expected a value, found an empty one.", ctx, parameter)
            takes_one = isinstance(parameter, click.Option) and not parameter.multiple and not parameter.is_flag
            if takes_one and order.count(parameter) > 1:
                raise click.UsageError(f"{parameter.opts[-1]} takes one value, but is given more than once", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by sections, those without one first."""
        sections: dict[str, list[tuple[str, str]]] = {FIRST_SECTION: []}
        for parameter in self.get_params(context):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
                sections.setdefault(getattr(parameter, "section", FIRST_SECTION), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _texts(given: Any) -> list[Any]:
    """Return the texts given to a parameter, which may take several at a time and be repeated."""
    return [text for one in given for text in _texts(one)] if isinstance(given, tuple | list) else [given]


class ProgramGroup(_Careful, click.Group):
    """A command with subcommands."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """List the commands in the order in which they were added, not by name."""
        return list(self.commands)


def _occupy_closed_streams() -> None:
    """Keep files that are opened later from taking the place of a standard stream that was closed."""
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    closed_output = sys.stdout is None
    if closed_output:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if closed_output:
        print_err(f"{program()}: standard output: is closed (redirect it to /dev/null to discard it)")
        os._exit(1)


def _failed(error: OSError) -> int:
    if not isinstance(error, BrokenPipeError):  # whose reader needs no telling
        print_err(f"{program()}: {error.filename or 'standard output'}: {error.strerror or error}")
    return 1


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn this package's exceptions into one message on stderr and their exit code."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see the package
            signal.signal(signal.SIGINT, signal.default_int_handler)  # closes and removes files
        try:
            command(*args, **kwargs)
        except MosesRnnError as error:
            print_err(f"{program()}: {error}")
            sys.exit(error.exit_code)
        except KeyboardInterrupt:  # where nothing has begun to listen for signals
            print_err(f"{program()}: interrupted")
            sys.exit(128 + signal.SIGINT)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            print_err(f"{program()}: out of memory")
            sys.exit(1)

    return reporting


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError | RuntimeError | ImportError):
        return says_out_of_memory(error)
    return isinstance(error, MemoryError)


def program() -> str:
    """Return the command's name as it was called."""
    return Path(sys.argv[0]).name


def harmless(text: str) -> str:
    """Escape what could command a terminal."""
    return CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def print_err(text: str) -> None:
    """Print lines on stderr, with any characters; what could command a terminal is escaped."""
    data = f"{harmless(text)}\n".encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    with contextlib.suppress(OSError):  # nowhere is left to complain to
        click.echo(data, nl=False, err=True)


def warn(*texts: str) -> None:
    """Print warnings on stderr."""
    for text in texts:
        print_err(f"warning: {text}")


def print_out(text: str) -> None:
    """Print lines on stdout as UTF-8 under any locale; the bytes of file names that are not UTF-8 stay as they are."""
    click.echo(f"{text}\n".encode("utf-8", "surrogateescape"), nl=False)


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record in one line of ASCII; numbers that are not finite are null, as JSON knows none."""
    print_out(json.dumps(_finite(record), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def end_cleanly_on_sigterm() -> None:
    """Have SIGTERM end the program as Ctrl-C does: what is temporary is removed, and programs that it started end."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def inputs_of(*paths: str | Path | None) -> tuple[str, ...]:
    """Return the files that are read, str, and those of model folders, Path: no output may be one of them."""
    from moses_rnn.files.streams import find_input

    files = [find_input(path) for path in paths if isinstance(path, str)]
    if folders := [path for path in paths if isinstance(path, Path)]:
        from moses_rnn.models.open import model_files

        files += [file for folder in folders for file in model_files(folder)]
    return tuple(files)


def given_options() -> dict[str, str]:
    """Return the options given on the command line, such as ``--output``, by the names of their parameters."""
    context = click.get_current_context()
    return {
        str(one.name): one.opts[0]
        for one in context.command.params
        if context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE
    }


def check_inputs(*paths: str | Path | None) -> None:
    """Find what will be read, before the seconds that torch takes: files, given as str, and model folders, as Path.

    A file that is plain text, whatever its name says, is warned of. Processes that train together look later: together,
    so that one of them speaks for all.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        return
    from moses_rnn.files.streams import STANDARD_STREAM, is_misnamed
    from moses_rnn.models.folder import check_folder

    if paths.count(STANDARD_STREAM) > 1:
        raise click.UsageError("only one input can be -")
    for file in inputs_of(*(path for path in paths if not isinstance(path, Path))):
        if is_misnamed(file):
            warn(f"{file}: is plain text, but Moses expects compressed text under this name")
    for folder in paths:
        if isinstance(folder, Path) and not is_pretrained(folder):
            check_folder(folder)


class StopRequest:
    """Becomes true at the first SIGINT, SIGTERM or SIGUSR1; the second one ends the process at once.

    A `patient` one ignores the second: the one who started the process kills it if it takes too long.
    """

    def __init__(self, *, quiet: bool = False, patient: bool = False) -> None:
        self._requested = False
        self._quiet, self._patient = quiet, patient
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._request)

    def _request(self, number: int, _frame: FrameType | None) -> None:
        if self._requested and not self._patient:
            os._exit(128 + number)
        if not self._requested and not self._quiet:
            again = "" if self._patient else " (interrupt again to stop at once)"
            print_err(f"{program()}: stopping after saving what is done{again}")
        self._requested = True

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        return self._requested


def choose_device(wanted: str, threads: int | None = None) -> str:
    """Return the torch device of --device, and set torch's CPU threads to --threads."""
    import torch

    from moses_rnn.networks import compute

    if threads:
        torch.set_num_threads(threads)
    return compute.choose_device(wanted, "--device")
