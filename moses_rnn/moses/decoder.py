"""Verify that the decoder sees a table's scores, by running Moses with every kind of phrase dictionary.

Single phrases are translated as sentences. The features of each translation by a single phrase pair are compared with
the logarithms of the pair's scores.
"""

from __future__ import annotations

import math
import random
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from moses_rnn.errors import InputError, MosesRnnError, number_of
from moses_rnn.files.streams import read_blocks, read_lines
from moses_rnn.moses.decoding import Moses
from moses_rnn.moses.dictionaries import BINARY, KINDS, TEXT_TYPES
from moses_rnn.moses.ini import MosesIni, factor_list, is_readable_path
from moses_rnn.moses.nbest import NBestLine, parse_nbest
from moses_rnn.table.phrase_table import DEFAULT_FLOOR, Shape, TableLine, log_of, parse_table, read_first_line
from moses_rnn.table.phrases import PLAIN, PhraseForm, has_gaps, words
from moses_rnn.table.table_blocks import parse_blocks

EVERYTHING = 1_000_000  # of translation options, hypotheses and the like: none may be pruned
ONE_PHRASE = -100.0  # weight of the phrase penalty: translations by a single phrase come before all others
GLUE_RULES = 3  # needed besides a single rule: begin, append, end
SEED = 1
OWN = "ini"  # the kind of the user's own dictionary
TOLERANCE = 1e-4  # of a feature above -87
FULL_PRECISION = DEFAULT_FLOOR  # below it, probabilities are denormal as float32
DENORMAL_TOLERANCE = 0.03  # of the log of such a probability

Log = Callable[[str], None]
Pair = tuple[bytes, bytes]
Values = tuple[float, ...]


@dataclass(frozen=True)
class Dictionary:
    """A phrase dictionary for the decoder; `labels` are the left-hand sides of its rules, if any."""

    type: str
    path: Path
    columns: int
    decoder: str = "moses"
    factors: tuple[int, int] = (1, 1)  # of source and target words
    labels: tuple[bytes, ...] = ()


def translate_singly(
    moses: Moses, dictionary: Dictionary, sources: Sequence[bytes], most: int, folder: Path
) -> list[NBestLine]:
    """List all translations of sources by a single phrase pair; a source has at most `most`."""
    ini, nbest, glue = (folder / name for name in ("moses.ini", "nbest", "glue-grammar"))
    ini.write_text(_format_ini(dictionary, glue), encoding="utf-8", errors="surrogateescape")
    glue.write_bytes(_format_glue(dictionary.labels))
    nbest.unlink(missing_ok=True)
    command = [str(moses.program(dictionary.decoder)), "-f", str(ini), "-n-best-list", str(nbest), str(most)]
    command += ["-max-phrase-length", "1000", "-stack", str(EVERYTHING), "-v", "0"]  # nothing is pruned
    if dictionary.decoder == "moses":
        command += ["-max-trans-opt-per-coverage", str(EVERYTHING), "-beam-threshold", "0"]
    moses.run(command, folder, b"".join(source + b"\n" for source in sources))
    lines = parse_nbest(read_lines(str(nbest)), f"{dictionary.decoder}'s n-best list")
    used = 1.0 + (GLUE_RULES if dictionary.labels else 0)
    return [line for line in lines if line.values("PhrasePenalty0") == [used] and not _is_unknown(line, used)]


def _is_unknown(line: NBestLine, used: float) -> bool:
    """Whether the line copies a word that no phrase pair translates: only its penalty is not 0."""
    return not any(line.values("TranslationModel0")) and float(line.total) < (used + 0.5) * ONE_PHRASE


PHRASES_INI = "[mapping]\n0 T 0\n[distortion-limit]\n0", "Distortion", "Distortion0= 0"
RULES_INI = (
    f"[mapping]\n0 T 0\n1 T 1\n[non-terminals]\nX\n[search-algorithm]\n3\n[inputtype]\n3\n"
    f"[max-chart-span]\n1000\n1000\n[cube-pruning-pop-limit]\n{EVERYTHING}",
    "PhraseDictionaryMemory name=TranslationModel1 num-features=1 path={glue} input-factor=0 output-factor=0 "
    f"table-limit={EVERYTHING}",
    "TranslationModel1= 0",
)


def _format_ini(dictionary: Dictionary, glue: Path) -> str:
    """Return a moses.ini with a phrase dictionary and no other feature that ranks translations."""
    source, target = map(factor_list, dictionary.factors)
    weights = " ".join([f"{0.1 / dictionary.columns:g}"] * dictionary.columns)  # however many: less than a phrase costs
    search, features, of_features = RULES_INI if dictionary.labels else PHRASES_INI
    return f"""[input-factors]
{source.replace(",", chr(10))}
[output-factors]
{target.replace(",", chr(10))}
{search}
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
{dictionary.type} name=TranslationModel0 num-features={dictionary.columns} path={dictionary.path} \
input-factor={source} output-factor={target} table-limit={EVERYTHING}
{features.format(glue=glue)}
[weight]
UnknownWordPenalty0= 1
WordPenalty0= 0
PhrasePenalty0= {ONE_PHRASE:g}
TranslationModel0= {weights}
{of_features}
"""


def _format_glue(labels: Sequence[bytes]) -> bytes:
    """Return a glue grammar for rules with these left-hand sides, as train-model.perl writes it."""
    rules = [b"<s> [X] ||| <s> [S] ||| 1 ||| 0-0", b"[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 1-1"]
    rules += [b"[X][S] [X]%b [X] ||| [X][S] [X]%b [S] ||| 2.718 ||| 0-0 1-1" % (label, label) for label in labels]
    return b"".join(rule + b" ||| 0 ||| |||\n" for rule in rules)


@dataclass
class Comparison:
    """The result of comparing one kind of dictionary with the table."""

    kind: str
    pairs: int = 0
    values: int = 0
    largest_difference: float = 0.0  # among logarithms above -87
    values_below: int = 0  # logarithms below -87
    largest_difference_below: float = 0.0
    missing: list[Pair] = field(default_factory=list)
    surplus: list[Pair] = field(default_factory=list)  # that only the decoder has
    wrong: list[tuple[Pair, Values, Values]] = field(default_factory=list)  # expected, seen
    failure: str = ""  # output of a failed Moses program

    @property
    def good(self) -> bool:
        """Whether everything agrees with the table."""
        return bool(self.pairs) and not (self.missing or self.surplus or self.wrong or self.failure)

    def add(self, pair: Pair, expected: Values, seen: Values) -> None:
        """Count a pair."""
        good = len(expected) == len(seen)
        for a, b in zip(expected, seen, strict=False):
            self.values += 1
            difference = abs(a - b)
            if a > FULL_PRECISION + TOLERANCE:
                self.largest_difference = max(self.largest_difference, difference)
                good &= difference <= TOLERANCE
            else:
                self.values_below += 1
                self.largest_difference_below = max(self.largest_difference_below, difference)
                good &= difference <= (TOLERANCE if a > FULL_PRECISION - TOLERANCE else DENORMAL_TOLERANCE)
        if not good:
            self.wrong.append((pair, expected, seen))

    def summary(self) -> Iterator[str]:
        """Yield the lines of a summary."""
        if self.failure:
            yield f"{self.kind:<8} FAILED: {self.failure}"
            return
        there = f"; {self.values_below:,} at or below -87 (max |Δ| there {self.largest_difference_below:.2g})"
        below = there if self.values_below else ""
        verdict = "ok" if self.good else "WRONG"
        looked_at = f"{number_of(self.pairs, 'pair')}, {number_of(self.values, 'value')}"
        yield f"{self.kind:<8} {verdict}: {looked_at}, max |Δ| {self.largest_difference:.2g}{below}"
        for name, pairs in (
            ("not found by the decoder", self.missing),
            ("only in the decoder's dictionary", self.surplus),
            ("with other values", [w[0] for w in self.wrong]),
        ):
            if pairs:
                first = b" ||| ".join(pairs[0]).decode("utf-8", "replace")
                yield f"         {number_of(len(pairs), 'pair')} {name}, first: {first}"
        if self.wrong:
            expected, seen = (" ".join(f"{value:.6g}" for value in values) for values in self.wrong[0][1:])
            yield f"         expected {expected}, seen {seen}"


def feature_of(score: bytes) -> float:
    """Convert a score as Moses does: the logarithm of a float32, at least -100."""
    return log_of(float(np.float32(float(score))))


def compare(
    kind: str, table: Iterable[tuple[Pair, Sequence[bytes]]], seen: Iterable[tuple[Pair, Values]]
) -> Comparison:
    """Compare a table's scores with a decoder's features; of several lines for a pair, one must agree.

    Where a dictionary has more pairs of a source than the table, others of the source may not be `seen`.
    """
    comparison = Comparison(kind)
    expected: dict[Pair, list[Values]] = {}
    for pair, scores in table:
        expected.setdefault(pair, []).append(tuple(map(feature_of, scores)))
    met, surplus = set(), set()
    for pair, values in seen:
        if pair in expected:
            met.add(pair)
            comparison.add(pair, min(expected[pair], key=lambda scores: _distance(scores, values)), values)
        elif pair[1].strip():  # lines without target words are not compared
            surplus.add(pair)
    comparison.pairs, comparison.surplus = len(met), sorted(surplus)
    full = {source for source, _ in surplus}
    comparison.missing = [pair for pair in expected if pair not in met and pair[0] not in full]
    return comparison


def _distance(expected: Values, seen: Values) -> float:
    if len(expected) != len(seen):
        return math.inf
    return max(abs(a - b) for a, b in zip(expected, seen, strict=True))


def check_ini(table: str, name: str, dictionary: str | None = None) -> tuple[list[str], Dictionary]:
    """Check that a table's scores match its ini's weights; return the findings as text, and the ini's dictionary.

    If the ini has several, `dictionary` is the name or path of the one to check [default: the one for the table].
    """
    ini = MosesIni(Path(name).read_bytes(), name)
    feature = ini.choose(name=dictionary, table=table)
    declared, (first, form) = ini.declared(feature), read_first_line(table)
    shape = Shape.of(first)
    lines = sum(len(chunk) for chunk in parse_blocks(read_blocks(table), table, form=form))
    if declared != shape.columns:
        raise ini.error(feature.line, f"num-features={shape.columns}, the number of scores in {table}", f"{declared}")
    ini.weight_lines(feature, declared)
    ini.check_not_overridden(feature)
    ini.check_alone(feature)
    written = feature.options.get("path", "")
    suffix = ".minphr" if feature.type == "PhraseDictionaryCompact" and not written.endswith(".minphr") else ""
    places = ini.places(feature, suffix)
    if not places:
        raise ini.error(feature.line, "a dictionary at path=", f"nothing at {written}")
    if feature.type in TEXT_TYPES and not places[0].samefile(table):
        raise ini.error(feature.line, f"path={table}", f"path={written}")
    holds = [
        f"{table}: {number_of(lines, 'line')} with {number_of(shape.columns, 'score')}",
        f"{name}:{feature.line + 1}: {feature.name} has num-features={declared} and {declared} weights",
    ]
    if relative := ", ".join(path.text for path in ini.relative_paths):
        holds.append(f"{name}: relative paths ({relative}): run Moses in their folder")
    return holds, Dictionary(feature.type, places[0].absolute(), declared, "moses", shape.factors)


def verify(
    table: str,
    moses: Moses,
    kinds: Sequence[str],
    log: Log,
    *,
    sources: int = 300,
    whole: bool = False,
    own: Dictionary | None = None,
) -> list[Comparison]:
    """Translate single phrases with the decoder and compare its features with the table's scores.

    `sources` is the number to check; dictionaries are made from their lines or from the whole table; `own` is
    an existing dictionary of the user's ini. `log` gets a message before each step, which may take minutes.
    """
    first, form = read_first_line(table)
    possible = _choose_kinds(kinds, Shape.of(first), form, log)
    if not possible and own is None:
        raise InputError(f"{table}: expected a table that fits --kind {', '.join(kinds)}, found {form}")
    for kind in possible:
        type_name, decoder = KINDS[kind]
        moses.program(decoder)
        if type_name in BINARY:
            moses.program(BINARY[type_name].program)
    chosen = choose_lines(table, sources, SEED, form)
    shape = Shape.of(chosen[0])
    expected = [(_pair_of(line, form), words(line.scores)) for line in chosen]
    labels = {words(line.target)[-1] for line in chosen} if form.hierarchical else set()
    counts = Counter(source for (source, _), _ in expected)
    looked_up = list(counts)
    with tempfile.TemporaryDirectory(prefix="moses-rnn-verify-") as folder:
        text = Path(table).absolute() if whole else Path(folder) / "sample"
        if not is_readable_path(str(text)):
            raise InputError(f"{text}: expected a path without blanks and '#', as Moses needs it (see TMPDIR)")
        if not whole:
            text.write_bytes(b"".join(line.line.rstrip(b"\n") + b"\n" for line in chosen))

        def compare_kind(kind: str) -> Comparison:
            try:
                dictionary = own if own and kind == OWN else _make(kind, text, shape, moses, Path(folder), log)
                log(f"{kind}: {dictionary.decoder} translates {number_of(len(looked_up), 'source phrase')}")
                dictionary = replace(dictionary, labels=tuple(sorted(labels)))
                most = max(counts.values()) + 1  # one more than the table has
                lines = translate_singly(moses, dictionary, looked_up, most, Path(folder))
            except MosesRnnError as error:
                return Comparison(kind, failure=str(error))
            features = ((line, tuple(line.values("TranslationModel0"))) for line in lines)
            seen = [((looked_up[line.sentence], line.hypothesis), values) for line, values in features]
            comparison = compare(kind, expected, seen)
            comparison.surplus = _absent(comparison.surplus, table, form)
            return comparison

        return [compare_kind(kind) for kind in ([OWN] if own else []) + possible]


def _choose_kinds(kinds: Sequence[str], shape: Shape, form: PhraseForm, log: Log) -> list[str]:
    made = {kind: BINARY.get(KINDS[kind][0]) for kind in kinds}
    possible = [kind for kind, binary in made.items() if not (form.hierarchical and binary) or binary.holds_rules]
    if max(shape.factors) > 1 and "moses2" in possible:
        possible.remove("moses2")
    for kind in sorted(set(kinds) - set(possible)):
        log(f"{kind}: left out, because it cannot handle such tables ({form})")
    return possible


def _make(kind: str, text: Path, shape: Shape, moses: Moses, folder: Path, log: Log) -> Dictionary:
    """Return the dictionary of a text table, making it if needed."""
    type_name, decoder = KINDS[kind]
    path = text
    if type_name in BINARY:
        path = folder / f"dictionary{BINARY[type_name].suffix}"
        if not path.exists():
            command = BINARY[type_name].command_for(str(text), shape, str(path), shape.columns)
            log(f"{kind}: {command}")
            moses.run(shlex.split(command.replace("$MOSES_ROOT", shlex.quote(str(moses.root)))), folder)
    return Dictionary(type_name, path, shape.columns, decoder, shape.factors)


def choose_lines(table: str, count: int, seed: int, form: PhraseForm = PLAIN) -> list[TableLine]:
    """Return all lines of the sources of random lines, in the table's order.

    Up to a tenth as many sources with scores below e^-87 are added; and where a source's lines do not stand together, a
    line that parts them, because some dictionaries do not survive that.
    """
    generator = random.Random(seed)  # noqa: S311, a sample
    sample: list[bytes] = []
    low: list[bytes] = []
    for i, line in enumerate(_with_words(table, form)):
        if len(low) < max(count // 10, 1) and line.source not in low[-1:]:
            is_low = b"e-" in line.scores and any(feature_of(score) <= FULL_PRECISION for score in words(line.scores))
            low += [line.source] * is_low
        place = i if i < count else generator.randrange(i + 1)
        if place < count:
            sample[place : place + 1] = [line.source]
    chosen = {*sample, *low}
    if not chosen:
        raise InputError(f"{table}: expected a line with words on both sides and no non-terminals, found none")
    return list(_select_lines(chosen, _with_words(table, form)))


def _with_words(table: str, form: PhraseForm) -> Iterator[TableLine]:
    """Yield the lines that the decoder can be made to use: those with words on both sides and no gaps."""
    for line in parse_table(read_lines(table), table, form=form):
        if all(_pair_of(line, form)) and not (form.hierarchical and has_gaps(line.source)):
            yield line


def _absent(pairs: list[Pair], table: str, form: PhraseForm) -> list[Pair]:
    """Return the pairs that no line of a table has, not even with other blanks or left-hand sides."""
    there = {_pair_of(line, form) for line in _with_words(table, form)} if pairs else set()
    return [pair for pair in pairs if pair not in there]


def _pair_of(line: TableLine, form: PhraseForm) -> Pair:
    """Return the decoder's input and output for a line: words in single blanks, without left-hand sides."""
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
