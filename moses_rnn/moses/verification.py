"""Does the decoder see what the table says? Real Moses is run with every kind of phrase dictionary."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.files.streams import read_blocks, read_lines
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm, has_gaps, words
from moses_rnn.formats.phrase_table import Shape, TableLine, first_look, parse_table
from moses_rnn.formats.table_blocks import parse_blocks
from moses_rnn.moses.comparison import FULL_PRECISION, Comparison, Pair, compare, feature_of
from moses_rnn.moses.dictionaries import BINARY, KINDS, OF_RULES, TEXT_TYPES
from moses_rnn.moses.ini import MosesIni, is_readable_path
from moses_rnn.moses.programs import EVERYTHING, Dictionary, Moses

Log = Callable[[str], None]
SEED = 1
TOLERANCE = 1e-4  # of a feature above -87


@dataclass(frozen=True)
class Verification:
    """What is to be verified.

    `sources` are how many source phrases are looked at; `whole` has the dictionaries made from the whole table instead
    of these phrases' lines. `own` is a dictionary that is there already, of the user's ini, to be looked at too.
    """

    table: str
    moses: Moses
    kinds: Sequence[str] = tuple(KINDS)
    sources: int = 300
    whole: bool = False
    own: Dictionary | None = None


def check_ini(table: str, name: str, feature_name: str | None) -> tuple[list[str], Dictionary]:
    """Check that all lines of a table have as many scores as its ini says, and the ini as many weights.

    Returns:
        What holds, as lines of text, and the dictionary that the ini names.

    Raises:
        InputError: they have not, or the ini names no dictionary that is there.
    """
    ini = MosesIni(Path(name).read_bytes(), name)
    feature = ini.choose(name=feature_name, table=table)
    declared, (first, form) = ini.declared(feature), first_look(table)
    shape = Shape.of(first)
    lines = sum(len(chunk) for chunk in parse_blocks(read_blocks(table), table, form=form))
    if declared != shape.columns:
        raise ini.error(feature.line, f"num-features={shape.columns}, as {table} has scores", f"{declared}")
    ini.weight_lines(feature, declared)
    ini.check_not_overridden(feature)
    ini.check_alone(feature)
    written, places = feature.options.get("path", ""), ini.places(feature, "")
    if not places:
        raise ini.error(feature.line, "a dictionary at path=", f"nothing at {written}")
    if feature.type in TEXT_TYPES and not places[0].samefile(table):
        raise ini.error(feature.line, f"path={table}", f"path={written}")
    holds = [
        f"{table}: {lines:,} lines with {shape.columns} scores",
        f"{name}:{feature.line + 1}: {feature.name} has num-features={declared} and {declared} weights",
    ]
    if relative := ", ".join(path.text for path in ini.relative_paths if path.folder):
        holds.append(f"{name}: relative paths ({relative}): run Moses in their folder")
    return holds, Dictionary(feature.type, places[0].absolute(), declared, "moses", shape.factors)


def verify(request: Verification, log: Log) -> list[Comparison]:
    """Have the decoder translate single phrases and compare its features with the table's scores.

    Args:
        request: what to look at.
        log: called with what is being done, which may take minutes.

    Raises:
        InputError: the table is not valid, or a program of Moses is not there.
    """
    first, form = first_look(request.table)
    kinds = _choose_kinds(request, Shape.of(first), form, log)
    chosen = choose_lines(request.table, request.sources, SEED, form)
    with tempfile.TemporaryDirectory(prefix="moses-rnn-verify-") as folder:
        session = _Session(request, form, chosen, Path(folder), log)
        own = [session.compare("ini", request.own)] if request.own is not None else []
        return own + [session.compare(kind) for kind in kinds]


def _choose_kinds(request: Verification, shape: Shape, form: PhraseForm, log: Log) -> list[str]:
    """The kinds of the request that such a table can be; all programs that they need are there."""
    kinds = [kind for kind in request.kinds if not form.hierarchical or kind in OF_RULES]
    if max(shape.factors) > 1 and "moses2" in kinds:
        kinds.remove("moses2")
    for kind in sorted(set(request.kinds) - set(kinds)):
        log(f"{kind}: left out, because it does not survive such tables ({form})")
    if not kinds and request.own is None:
        raise InputError(f"{request.table}: expected a table for {', '.join(request.kinds)}, found {form}")
    for kind in kinds:
        type_name, decoder = KINDS[kind]
        request.moses.program(decoder)
        if type_name in BINARY:
            request.moses.program(BINARY[type_name].program)
    return kinds


class _Session:
    """The chosen lines and a folder in which dictionaries come and go."""

    def __init__(
        self, request: Verification, form: PhraseForm, chosen: list[TableLine], folder: Path, log: Log
    ) -> None:
        self._request, self._chosen, self._folder, self._log = request, chosen, folder, log
        self._pairs = [_pair_of(line, form) for line in chosen]
        labels = {words(line.target)[-1] for line in chosen} if form.hierarchical else set()
        self._labels = tuple(sorted(labels))
        self._shape = Shape.of(chosen[0])
        self._text = Path(request.table).absolute() if request.whole else folder / "sample"
        if not is_readable_path(str(self._text)):
            raise InputError(f"{self._text}: expected a path without blanks and '#', as Moses needs it (see TMPDIR)")
        if not request.whole:
            self._text.write_bytes(b"".join(line.line.rstrip(b"\n") + b"\n" for line in chosen))

    def compare(self, kind: str, dictionary: Dictionary | None = None) -> Comparison:
        """Compare a dictionary, which is made if need be, with the table."""
        counts = Counter(source for source, _ in self._pairs)
        sources = list(counts)
        try:
            dictionary = replace(dictionary or self._make(kind), labels=self._labels)
            self._log(f"{kind}: {dictionary.decoder} translates {len(sources):,} source phrases")
            lines = self._request.moses.translate_singly(dictionary, sources, max(counts.values()), self._folder)
        except MosesRnnError as error:
            return Comparison(kind, failure=str(error))
        seen = [((sources[line.sentence], line.hypothesis), tuple(line.values("TranslationModel0"))) for line in lines]
        expected = [(pair, words(line.scores)) for pair, line in zip(self._pairs, self._chosen, strict=True)]
        return compare(kind, expected, seen, TOLERANCE)

    def _make(self, kind: str) -> Dictionary:
        type_name, decoder = KINDS[kind]
        path = self._text
        if type_name in BINARY:
            path = self._folder / f"dictionary{BINARY[type_name].suffix}"
            if not path.exists():
                command = BINARY[type_name].command_for(str(self._text), self._shape, str(path), EVERYTHING)
                self._log(f"{kind}: {command}")
                self._request.moses.shell(command, self._folder)
        return Dictionary(type_name, path, self._shape.columns, decoder, self._shape.factors)


def choose_lines(table: str, count: int, seed: int, form: PhraseForm = PLAIN) -> list[TableLine]:
    """All lines of the sources of some random lines, in the table's order.

    Up to a tenth as many sources with scores below e^-87 are added; and where a source's lines do not stand together, a
    line that parts them, because some dictionaries do not survive that.

    Raises:
        InputError: the table is not valid, or has no line with words on both sides.
    """
    generator = random.Random(seed)  # noqa: S311, a sample
    sample: list[bytes] = []
    low: list[bytes] = []
    for i, line in enumerate(_with_words(table, form)):
        if len(low) < max(count // 10, 1) and line.source not in low[-1:] and _has_low(line.scores):
            low.append(line.source)
        place = i if i < count else generator.randrange(i + 1)
        if place < count:
            sample[place : place + 1] = [line.source]
    chosen = {*sample, *low}
    if not chosen:
        raise InputError(f"{table}: expected a line with words on both sides, found none")
    return list(_select_lines(chosen, _with_words(table, form)))


def _with_words(table: str, form: PhraseForm) -> Iterator[TableLine]:
    """The lines that the decoder can be made to use: those with words on both sides, and without gaps."""
    for line in parse_table(read_lines(table), table, form=form):
        if all(_pair_of(line, form)) and not (form.hierarchical and has_gaps(line.source)):
            yield line


def _pair_of(line: TableLine, form: PhraseForm) -> Pair:
    """What the decoder is given and what it then prints: words parted by single blanks, without left-hand sides."""
    source, target = words(line.source), words(line.target)
    if form.hierarchical:
        source, target = source[:-1], target[:-1]
    return b" ".join(source), b" ".join(target)


def _select_lines(sources: Collection[bytes], lines: Iterable[TableLine]) -> Iterator[TableLine]:
    before: TableLine | None = None
    met: set[bytes] = set()
    for line in lines:
        if line.source in sources:
            if before is not None and before.source not in sources and line.source in met:
                yield before
            met.add(line.source)
            yield line
        before = line


def _has_low(scores: bytes) -> bool:
    return b"e-" in scores and any(feature_of(score) <= FULL_PRECISION for score in words(scores))
