"""A reranker: Moses's lists, features added to them, and tuned weights, in a folder that translates.

`reranker.toml` names the decoder, the features and the hashes of what the weights were tuned with. `weights.ini` has
the weights, `models/` the networks that were trained for it, and `lists/` what the weights were tuned on.
"""

from __future__ import annotations

import hashlib
import io
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from moses_rnn.errors import FormatError, InputError, PairError, number_of
from moses_rnn.files.outputs import replace_file
from moses_rnn.files.streams import fingerprint, reading
from moses_rnn.moses.decoding import Decoded, Decoder, DecoderOptions, Moses
from moses_rnn.moses.ini import KEYS, SUFFIXES, MosesIni
from moses_rnn.moses.nbest import NBestLine, parse_nbest_line
from moses_rnn.nbest.adding import ListFeatures
from moses_rnn.nbest.features import make_features
from moses_rnn.nbest.request import ListRequest
from moses_rnn.nbest.rerank import WeightedSum
from moses_rnn.nbest.weights import read_weights
from moses_rnn.options import PRETRAINED, is_pretrained
from moses_rnn.table.phrases import words
from moses_rnn.version import __version__

SETTINGS, WEIGHTS = "reranker.toml", "weights.ini"
MOST_WORDS = 1000  # a longer line keeps the decoder's choice: attention would take gigabytes
FIRST_LINE = b"0 ||| a ||| LM0= 0 ||| 0 ||| 0=0 ||| 0-0\n"  # such as the decoder's: segmented and aligned


@dataclass(frozen=True)
class Settings:
    """What reranker.toml says. Models in the folder are relative to it."""

    ini: str
    size: int  # of a list
    flags: Sequence[str]  # further ones of the decoder
    source: str  # languages
    target: str
    lowercase: bool  # whether the decoder reads lower-cased text
    features: Mapping[str, str]  # models by label, in the order of the list
    pretrained: Mapping[str, str | bool] = field(default_factory=dict)  # options of pretrained models
    hashes: Mapping[str, str] = field(default_factory=dict)  # of files, by path
    version: str = __version__

    def decoder(self, threads: int | None) -> DecoderOptions:
        """Return the options of the decoder."""
        return DecoderOptions(Path(self.ini), self.size, threads, self.flags)

    def write(self, folder: Path) -> None:
        """Write reranker.toml."""
        tables = {name: value for name, value in asdict(self).items() if isinstance(value, Mapping)}
        plain = {name: value for name, value in asdict(self).items() if name not in tables}
        lines = [f"{name} = {_toml(value)}" for name, value in plain.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{_toml(key)} = {_toml(value)}" for key, value in table.items())]
        path, data = folder / SETTINGS, "".join(f"{line}\n" for line in lines).encode()
        if not (path.is_file() and path.read_bytes() == data):  # a newer file would outdate finished translations
            replace_file(path, data)

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read reranker.toml."""
        path = folder / SETTINGS
        with reading(path):
            data = path.read_bytes()
        try:
            return cls(**tomllib.loads(data.decode()))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}: expected the settings of a reranker, found: {error}") from error

    def current_hashes(self, folder: Path) -> dict[str, str]:
        """Return the hashes that the files have now."""
        return {path: hash_of(folder / path) for path in (*self.hashes, WEIGHTS)}

    def open_decoder(self, folder: Path, threads: int | None, *, allow_changed: bool) -> Decoder:
        """Start the decoder; if it must be started again, its files must be those that it read before."""
        check = (lambda: None) if allow_changed else (lambda: self.check_unchanged(folder))
        return Decoder(self.decoder(threads).command(Moses.required()), Path(self.ini).parent, check)

    def check_unchanged(self, folder: Path) -> None:
        """Raise InputError if the weights, or a file with which they were tuned, have changed."""
        current = self.current_hashes(folder)
        changed = [path for path, value in self.hashes.items() if current[path] != value]
        if changed:
            raise InputError(
                f"{changed[0]}: changed or missing since the weights of {folder} were tuned"
                + (f", like {number_of(len(changed) - 1, 'other file')}" if len(changed) > 1 else ""),
                advice="The same 'moses-rnn reranker train' command tunes them again.\n"
                "--allow-changed uses them anyway.",
            )


def _toml(value: Any) -> str:
    """Format a text, number, bool or list; JSON's escapes of characters beyond U+FFFF are not TOML's."""
    return json.dumps(value, ensure_ascii=False)


def hash_of(path: Path) -> str:
    """Return a hash of a file's size and its first and last megabytes; "" if there is no file."""
    if not path.is_file():
        return ""
    identity = {name: value for name, value in fingerprint(str(path)).items() if name != "modified"}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _files_of(path: str | Path) -> list[Path]:
    """Return a file, or the files in a folder."""
    path = Path(str(path).removeprefix(PRETRAINED))
    return [file for file in (sorted(path.iterdir()) if path.is_dir() else [path]) if file.is_file()]


def hashes_of(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return the hashes of files and of those in folders, by path: relative if within `folder`."""
    inner = folder.absolute()
    files = ((file.absolute(), file) for path in paths for file in _files_of(path))
    return {
        str(absolute.relative_to(inner) if absolute.is_relative_to(inner) else absolute): hash_of(file)
        for absolute, file in files
    }


def contents_of(paths: Iterable[str | Path]) -> list[list[str]]:
    """Return the hashes of files and of those in folders, in order: the same wherever they are."""
    return [[hash_of(file) for file in _files_of(path)] for path in paths]


def decoder_files(ini: str) -> list[Path]:
    """Return an ini and the files that it names, for features and sparse weights."""
    with reading(ini):
        parsed = MosesIni(Path(ini).read_bytes(), ini)
    algorithm = [content for _, content in parsed.section("search-algorithm")]
    if algorithm and algorithm[0] in ("3", "4", "5", "6"):
        raise InputError(f"{ini}: expected a phrase-based system, found search-algorithm {algorithm[0]}")
    places = [
        parsed.places(feature, *SUFFIXES, key=key)
        for feature in parsed.features
        for key in feature.options
        if KEYS.search(key)
    ]
    return [
        *map(Path, read_weights(ini).files),
        *(place for found in places for place in found if place.parent == found[0].parent),
    ]


@dataclass(frozen=True)
class Reranked:
    """A line of the text and its hypotheses, best first, with their scores; none if Moses gave none.

    `problem` says why there are none, or why they have the decoder's order and scores.
    """

    source: bytes
    hypotheses: Sequence[tuple[float, NBestLine]] = ()
    decoder_choice: bytes = b""
    problem: str = ""

    @property
    def text(self) -> bytes:
        """The best hypothesis, or an empty line."""
        return self.hypotheses[0][1].hypothesis if self.hypotheses else b""


class Reranker:
    """A reranker's features and weights, opened from its folder.

    `features` are the options of features: device, threads.
    """

    def __init__(self, folder: Path, settings: Settings, **features: Any) -> None:
        models = tuple(Path(model) if is_pretrained(model) else folder / model for model in settings.features.values())
        first = parse_nbest_line(FIRST_LINE, str(folder), 1)
        given: dict[str, Any] = {**features, **settings.pretrained}
        request = ListRequest(nbest="-", add=models, long_phrases="floor", allow_misfit=True, **given)
        made = (feature for _, feature in make_features(first, str(folder), request))
        self._features = dict(zip(settings.features, made, strict=True))
        self._weights = read_weights(str(folder / WEIGHTS))

    def rerank(self, lists: Sequence[Decoded]) -> list[Reranked]:
        """Rerank the lists of several lines; one that cannot be scored keeps the decoder's order."""
        try:
            return self._rerank(lists)
        except (FormatError, PairError) as error:
            if len(lists) > 1:
                return [reranked for one in lists for reranked in self.rerank([one])]
            return [_in_decoder_order(lists[0], error.message)]

    def _rerank(self, lists: Sequence[Decoded]) -> list[Reranked]:
        scored: list[list[tuple[float, NBestLine]]] = [[] for _ in lists]
        short = [(i, one) for i, one in enumerate(lists) if len(words(one.source)) <= MOST_WORDS]
        lines = [parse_nbest_line(renumber(line, i), "list", 1) for i, one in short for line in one.nbest]
        added = ListFeatures("list", [one.source for one in lists], self._features, has_end=False, allow_misfit=True)
        for block in added.add(lines):
            extended = (parse_nbest_line(line, "list", 1) for line in io.BytesIO(block))
            weighted = WeightedSum("the decoder's list", self._weights)
            for score, line in weighted.score(extended):
                scored[line.sentence].append((score, line))
            weighted.check_used()
        return [
            Reranked(one.source, sorted(of_one, key=itemgetter(0), reverse=True), of_one[0][1].hypothesis)
            if of_one
            else _in_decoder_order(one, one.failure or _why_unscored(one))
            for one, of_one in zip(lists, scored, strict=True)
        ]


def _why_unscored(decoded: Decoded) -> str:
    if not words(decoded.source):
        return ""
    if len(words(decoded.source)) > MOST_WORDS:
        return f"expected at most {MOST_WORDS} words"
    return "Moses gave no list"


def _in_decoder_order(decoded: Decoded, problem: str) -> Reranked:
    lines = []
    with suppress(FormatError):  # the hypotheses may have ||| for a word
        lines = [parse_nbest_line(line, "list", 1) for line in decoded.nbest]
    choice = lines[0].hypothesis if lines else b""
    return Reranked(decoded.source, [(float(line.total), line) for line in lines], choice, problem)


def renumber(line: bytes, sentence: int) -> bytes:
    """Return a line of a list with another sentence number."""
    return b"%d" % sentence + line[line.index(b" ") :]
