"""Moses's own programs, run to see what they make of a table: binarisers and decoders."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.files.streams import read_lines
from moses_rnn.formats.nbest import NBestLine, parse_nbest
from moses_rnn.moses.dictionaries import factor_list

SHOWN_LINES = 8  # of what a program printed before it failed
EVERYTHING = 1_000_000  # of translation options, hypotheses and the like: none may be pruned
ONE_PHRASE = -100.0  # weight of the phrase penalty: translations by a single phrase come before all others
GLUE_RULES = 3  # that a translation by a single rule needs besides: begin, append, end


@dataclass(frozen=True)
class Dictionary:
    """A phrase dictionary for the decoder to load; `labels` are the left-hand sides of rules, if it has such."""

    type: str
    path: Path
    columns: int
    decoder: str = "moses"
    factors: tuple[int, int] = (1, 1)  # of source and target words
    labels: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Moses:
    """A built Moses.

    Raises:
        InputError: on use, a program is not there.
    """

    root: Path

    def program(self, name: str) -> Path:
        """Where one of its programs is."""
        path = self.root / "bin" / name
        if not os.access(path, os.X_OK):
            raise InputError(
                f"{path}: expected a program of Moses, found none",
                advice="MOSES_ROOT must be the folder of a built Moses (github.com/moses-smt/mosesdecoder, ./bjam "
                "-j4); compact tables need --with-cmph.",
            )
        return path

    def shell(self, command: str, folder: Path) -> None:
        """Run a command that begins with one of its programs."""
        self.run(shlex.split(command.replace("$MOSES_ROOT", shlex.quote(str(self.root)))), b"", folder)

    def run(self, command: Sequence[str], given: bytes, folder: Path) -> bytes:
        """Run one of its programs; returns what it printed.

        Raises:
            MosesRnnError: it failed; the message has the end of what it printed.
        """
        self.program(Path(command[0]).name)
        done = subprocess.run(command, input=given, capture_output=True, cwd=folder, check=False)  # noqa: S603, Moses's
        if done.returncode:
            printed = (done.stderr or done.stdout).decode("utf-8", "replace").rstrip("\n").split("\n")
            end = "\n    ".join(printed[-SHOWN_LINES:])
            raise MosesRnnError(f"{shlex.join(command)}\n  ended with code {done.returncode}:\n    {end}")
        return done.stdout

    def translate_singly(
        self, dictionary: Dictionary, sources: Sequence[bytes], most: int, folder: Path
    ) -> list[NBestLine]:
        """Translate sources, each by a single phrase pair, in all ways; as the decoder lists them.

        Args:
            dictionary: what is loaded, and nothing else.
            sources: each translated as a sentence.
            most: phrase pairs that one of them has at most.
            folder: for files that come and go.
        """
        ini, nbest, glue = (folder / name for name in ("moses.ini", "nbest", "glue-grammar"))
        ini.write_text(_format_ini(dictionary, glue), encoding="utf-8", errors="surrogateescape")
        glue.write_bytes(_format_glue(dictionary.labels))
        nbest.unlink(missing_ok=True)
        command = [str(self.program(dictionary.decoder)), "-f", str(ini), "-n-best-list", str(nbest), str(most)]
        self.run([*command, *_flags(dictionary)], b"".join(source + b"\n" for source in sources), folder)
        lines = parse_nbest(read_lines(str(nbest)), f"{dictionary.decoder}'s n-best list")
        used = 1.0 + (GLUE_RULES if dictionary.labels else 0)
        return [line for line in lines if line.values("PhrasePenalty0") == [used] and not _is_unknown(line, used)]


def _flags(dictionary: Dictionary) -> list[str]:
    """Options of the decoder by which nothing is pruned."""
    flags = ["-max-phrase-length", "1000", "-stack", str(EVERYTHING), "-v", "0"]
    if dictionary.decoder == "moses":
        flags += ["-max-trans-opt-per-coverage", str(EVERYTHING), "-beam-threshold", "0"]
    return flags


def _is_unknown(line: NBestLine, used: float) -> bool:
    """Whether a word went through that no phrase pair translates; its features are all 0, its penalty is not."""
    return not any(line.values("TranslationModel0")) and float(line.total) < (used + 0.5) * ONE_PHRASE


def _format_ini(dictionary: Dictionary, glue: Path) -> str:
    """A moses.ini with a phrase dictionary and nothing else that prefers one translation to another."""
    source, target = map(factor_list, dictionary.factors)
    weights = " ".join([f"{0.1 / dictionary.columns:g}"] * dictionary.columns)  # however many: less than a phrase costs
    search, features, of_features = _chart(glue) if dictionary.labels else _stacks()
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
{features}
[weight]
UnknownWordPenalty0= 1
WordPenalty0= 0
PhrasePenalty0= {ONE_PHRASE:g}
TranslationModel0= {weights}
{of_features}
"""


def _stacks() -> tuple[str, str, str]:
    """Phrase-based search: its settings, features and their weights."""
    return "[mapping]\n0 T 0\n[distortion-limit]\n0", "Distortion", "Distortion0= 0"


def _chart(glue: Path) -> tuple[str, str, str]:
    """Search by rules: its settings, features and their weights."""
    settings = {
        "mapping": "0 T 0\n1 T 1",
        "non-terminals": "X",
        "search-algorithm": "3",
        "inputtype": "3",
        "max-chart-span": "1000\n1000",
        "cube-pruning-pop-limit": str(EVERYTHING),
    }
    path = f"path={glue} input-factor=0 output-factor=0 table-limit={EVERYTHING}"
    return (
        "\n".join(f"[{name}]\n{value}" for name, value in settings.items()),
        f"PhraseDictionaryMemory name=TranslationModel1 num-features=1 {path}",
        "TranslationModel1= 0",
    )


def _format_glue(labels: Sequence[bytes]) -> bytes:
    """A glue grammar for rules with these left-hand sides, as train-model.perl writes it."""
    rules = [b"<s> [X] ||| <s> [S] ||| 1 ||| 0-0", b"[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 1-1"]
    rules += [b"[X][S] [X]%b [X] ||| [X][S] [X]%b [S] ||| 2.718 ||| 0-0 1-1" % (label, label) for label in labels]
    return b"".join(rule + b" ||| 0 ||| |||\n" for rule in rules)
