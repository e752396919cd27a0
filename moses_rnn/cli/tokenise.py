"""moses-rnn tokenise: raw text in, words as Moses wants them out, and back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from moses_rnn.cli.command import command, print_err, warn
from moses_rnn.errors import FormatError, InputError, shown
from moses_rnn.files.streams import as_text
from moses_rnn.options import Option

EPILOG = """\b
Examples: as the pipeline calls it; translations as raw text:
  moses-rnn tokenise --language fr < raw.fr > train.fr
  moses-rnn tokenise --language fr --reverse < test.out > test.txt

Following the rules of sacremoses, this separates words and punctuation with blanks and escapes Moses's special
characters. --reverse joins and unescapes them. The number of lines stays the same. A language without a list of
abbreviations gets the English one, with a warning. Exit codes: 0 done, 1 failure, 2 usage error, 3 text
refused.
"""


@command(EPILOG)
def main(
    *,
    language: Annotated[str, Option("Code of the text's language, such as fr", "-l --language")] = "en",
    reverse: Annotated[bool, Option("Detokenise instead: words in, raw text out")] = False,
    processes: Annotated[int, Option("Number of processes", "-j --processes", min=1)] = 1,
) -> None:
    """Tokenise UTF-8 text from stdin to stdout."""
    from sacremoses import MosesDetokenizer, MosesTokenizer
    from sacremoses.corpus import NonbreakingPrefixes
    from sacremoses.util import parallelize_preprocess

    if sys.stdin is None:
        raise InputError("standard input: is closed")
    code_of = NonbreakingPrefixes().available_langs  # of a language's name or code
    known = sorted(set(code_of.values()))
    if language not in known:
        warn(f"language {language!r} has no list of abbreviations: using the English one")
        print_err(f"  known: {', '.join(known)}")
    is_name = language in code_of.keys() - known  # "french": Moses has none
    code = "" if is_name else language
    convert = functools.partial(MosesTokenizer(lang=code).tokenize, return_str=True)
    lines: list[Any] = list(_decode(sys.stdin.buffer))
    if reverse:
        convert = MosesDetokenizer(lang=code).detokenize
        lines = [line.split() for line in lines]
    for text in parallelize_preprocess(convert, lines, processes):
        sys.stdout.buffer.write(f"{text}\n".encode())


def _decode(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(as_text(lines, "standard input"), 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError("standard input", number, "UTF-8", shown(line)) from None
