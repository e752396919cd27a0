"""Does the decoder see what the table says? Asked of real Moses, for every kind of phrase dictionary."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moses_rnn.errors import InputError
from moses_rnn.formats.dictionaries import BINARY, STORED_TARGETS
from moses_rnn.formats.moses_ini import MosesIni
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm, words
from moses_rnn.formats.phrase_table import TableLine, first_look, parse_table
from moses_rnn.formats.streams import read_blocks, read_lines
from moses_rnn.formats.table_blocks import parse_blocks
from moses_rnn.scoring.decoder import EVERYTHING, Dictionary, Moses

Pair = tuple[bytes, bytes]
Values = tuple[float, ...]
Said = Callable[[str], None]

LOWEST = -100.0  # Moses's own floor of a feature
FULL_PRECISION = -87.0  # below it, probabilities are denormal as float32
DENORMAL_TOLERANCE = 0.03  # and come back as inexactly as this
KINDS = {
    "text": ("PhraseDictionaryMemory", "moses"),
    "compact": ("PhraseDictionaryCompact", "moses"),
    "on-disk": ("PhraseDictionaryOnDisk", "moses"),
    "probing": ("ProbingPT", "moses"),
    "moses2": ("ProbingPT", "moses2"),
}


@dataclass(frozen=True)
class Verification:
    """What is to be verified.

    `sources` are how many source phrases are looked at; `whole` has the dictionaries made from the whole table instead
    of these phrases' lines.
    """

    table: str
    moses: Moses
    kinds: Sequence[str] = tuple(KINDS)
    sources: int = 300
    seed: int = 1
    whole: bool = False
    tolerance: float = 1e-4


@dataclass
class Comparison:
    """What a decoder saw of one kind of dictionary."""

    kind: str
    pairs: int = 0
    values: int = 0
    largest: float = 0.0  # |difference| where the logarithm is above -87
    below: int = 0  # values that are not
    largest_below: float = 0.0
    missing: list[Pair] = field(default_factory=list)
    wrong: list[tuple[Pair, Values, Values]] = field(default_factory=list)  # expected, seen

    @property
    def is_good(self) -> bool:
        """Whether all is as the table says."""
        return bool(self.pairs) and not self.missing and not self.wrong

    def summary(self) -> Iterator[str]:
        """As lines of text."""
        below = f"; {self.below:,} at or below -87 (there {self.largest_below:.2g})" if self.below else ""
        verdict = "ok" if self.is_good else "WRONG"
        looked_at = f"{self.pairs:,} pairs, {self.values:,} values"
        yield f"{self.kind:<8} {verdict}: {looked_at}, max |Δ| {self.largest:.2g}{below}"
        for name, pairs in (("not found by the decoder", self.missing), ("seen otherwise", [w[0] for w in self.wrong])):
            if pairs:
                first = b" ||| ".join(pairs[0]).decode("utf-8", "replace")
                yield f"         {len(pairs):,} pairs {name}, first: {first}"
        if self.wrong:
            _, expected, seen = self.wrong[0]
            yield f"         expected {_text(expected)}, seen {_text(seen)}"


def verify(wanted: Verification, said: Said) -> list[Comparison]:
    """Have the decoder translate single phrases and compare its features with the table's scores.

    Args:
        wanted: what to look at.
        said: told what is being done, which may take minutes.

    Raises:
        InputError: the table is none, or a program of Moses is not there.
        MosesRnnError: a program of Moses failed.
    """
    for kind in wanted.kinds:
        wanted.moses.program(KINDS[kind][1])
    _, form = first_look(wanted.table)
    if form.hierarchical:
        raise InputError(f"{wanted.table}: expected phrase pairs, found rules, which are not verified yet")
    kinds = [kind for kind in wanted.kinds if kind != "moses2" or not form.is_factored]
    if kinds != list(wanted.kinds):
        said("moses2: left out, because it does not survive factored tables")
    if not kinds:
        raise InputError(f"{wanted.table}: expected words without factors for moses2, found {form}")
    chosen = choose_lines(wanted.table, wanted.sources, wanted.seed, form)
    with tempfile.TemporaryDirectory(prefix="moses-rnn-verify-") as folder:
        return [_compare(wanted, kind, chosen, Path(folder), said) for kind in kinds]


def _compare(wanted: Verification, kind: str, chosen: list[TableLine], folder: Path, said: Said) -> Comparison:
    type_name, decoder = KINDS[kind]
    columns = len(words(chosen[0].scores))
    text = Path(wanted.table).absolute() if wanted.whole else folder / "sample"
    if not wanted.whole:
        text.write_bytes(b"".join(line.line.rstrip(b"\n") + b"\n" for line in chosen))
    path = text
    factors = _factors(chosen[0].source), _factors(chosen[0].target)
    if type_name in BINARY:
        path = folder / f"dictionary{BINARY[type_name].suffix}"
        if not path.exists():
            command = BINARY[type_name].command_for(str(text), columns, str(path), factors)
            said(f"{kind}: {command}")
            wanted.moses.shell(_for_everything(command, chosen[0]), folder)
    said(f"{kind}: {decoder} translates {len({line.source for line in chosen}):,} source phrases")
    counts = Counter(line.source for line in chosen)
    sources = list(counts)
    dictionary = Dictionary(type_name, path, columns, decoder, factors)
    seen = [
        ((sources[line.sentence], line.hypothesis), tuple(line.values("TranslationModel0")))
        for line in wanted.moses.single_phrases(dictionary, sources, max(counts.values()), folder)
    ]
    if kind not in ("probing", "moses2") and path != text:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return compare(kind, chosen, seen, wanted.tolerance)


def _for_everything(command: str, line: TableLine) -> str:
    """A binariser's command for a comparison: nothing may be pruned, and no alignments are needed."""
    has_alignment = line.line.count(b"|||") > 2 and bool(line.line.split(b"|||")[3].strip())
    without = " -encoding None" if "processPhraseTableMin" in command and not has_alignment else ""
    return command.replace(f" {STORED_TARGETS} ", f" {EVERYTHING} ") + without


def _factors(phrase: bytes) -> int:
    return words(phrase)[0].count(b"|") + 1 if phrase else 1


def choose_lines(table: str, count: int, seed: int, form: PhraseForm = PLAIN) -> list[TableLine]:
    """All lines of the sources of some random lines, in the table's order.

    Up to a tenth as many sources with scores below e^-87 are added.

    Raises:
        InputError: the table is none, or empty.
    """
    generator = random.Random(seed)  # noqa: S311, a sample
    sample: list[bytes] = []
    low: list[bytes] = []
    scorable = (line for line in parse_table(read_lines(table), table, form=form) if line.source and line.target)
    for i, line in enumerate(scorable):
        if len(low) < max(count // 10, 1) and line.source not in low[-1:] and _has_low(line.scores):
            low.append(line.source)
        place = i if i < count else generator.randrange(i + 1)
        if place < count:
            sample[place : place + 1] = [line.source]
    chosen = {*sample, *low}
    lines = parse_table(read_lines(table), table, form=form)
    return [line for line in lines if line.source in chosen and line.target]


def _has_low(scores: bytes) -> bool:
    return b"e-" in scores and any(_feature(score) <= FULL_PRECISION for score in words(scores))


def _feature(score: bytes) -> float:
    """What Moses makes of a score: the logarithm of a float32, not below -100."""
    value = float(np.float32(float(score)))
    return max(math.log(value), LOWEST) if value > 0.0 else LOWEST


def compare(kind: str, lines: Iterable[TableLine], seen: Iterable[tuple[Pair, Values]], tolerance: float) -> Comparison:
    """Compare a table's scores with a decoder's features.

    Of equal pairs on several lines, each that was seen must be one of them.
    """
    found = Comparison(kind)
    expected: dict[Pair, list[Values]] = {}
    for line in lines:
        pair = b" ".join(words(line.source)), b" ".join(words(line.target))
        expected.setdefault(pair, []).append(tuple(map(_feature, words(line.scores))))
    met = set()
    for (source, target), values in seen:
        pair = b" ".join(words(source)), target
        if pair not in expected:
            continue  # made of the source by other means
        met.add(pair)
        best = min(expected[pair], key=lambda wanted: _distance(wanted, values))
        _count(found, pair, best, values, tolerance)
    found.pairs = len(met)
    found.missing = [pair for pair in expected if pair not in met]
    return found


def _distance(expected: Values, seen: Values) -> float:
    if len(expected) != len(seen):
        return math.inf
    return max(abs(a - b) for a, b in zip(expected, seen, strict=True))


def _count(found: Comparison, pair: Pair, expected: Values, seen: Values, tolerance: float) -> None:
    good = len(expected) == len(seen)
    for a, b in zip(expected, seen, strict=False):
        found.values += 1
        difference = abs(a - b)
        if a > FULL_PRECISION + tolerance:
            found.largest = max(found.largest, difference)
            good &= difference <= tolerance
        else:
            found.below += 1
            found.largest_below = max(found.largest_below, difference)
            good &= difference <= max(tolerance, 0 if a > FULL_PRECISION - tolerance else DENORMAL_TOLERANCE)
    if not good:
        found.wrong.append((pair, expected, seen))


def _text(values: Values) -> str:
    return " ".join(f"{value:.6g}" for value in values)


def check_ini(table: str, ini_path: str, feature_name: str | None) -> Iterator[str]:
    """Whether all lines of a table have as many scores as its ini says, and the ini as many weights; without Moses.

    Raises:
        InputError: they have not.
    """
    ini = MosesIni(Path(ini_path).read_bytes(), ini_path)
    feature = ini.choose(name=feature_name, table=table)
    declared = ini.declared(feature)
    columns, form = first_look(table)
    lines = sum(len(block) for block in parse_blocks(read_blocks(table), table, form=form))
    yield f"{table}: {lines:,} lines with {columns} scores"
    if declared != columns:
        raise InputError(f"{ini_path}:{feature.line + 1}: expected num-features={columns}, found {declared}")
    weights = ini.weights(feature)
    yield f"{ini_path}:{feature.line + 1}: {feature.name} has num-features={declared} and {len(weights)} weights"
    if not ini.is_path_of(feature, table):
        if feature.type in BINARY:
            yield f"{ini_path}:{feature.line + 1}: {feature.type}: its content is not looked at without the decoder"
        else:
            raise InputError(
                f"{ini_path}:{feature.line + 1}: expected path={table}, found path={feature.options.get('path', '')}"
            )
