"""moses-rnn tokenise: raw text in, words as Moses wants them out."""

from __future__ import annotations

import sys
from typing import Annotated

from moses_rnn.cli.command import command, print_err
from moses_rnn.errors import InputError
from moses_rnn.options import Option

EPILOG = """\b
Example, as `make corpus` calls it:
  moses-rnn tokenise --language fr < raw.fr > train.fr

Words and punctuation are parted by blanks and Moses's special characters escaped, by the rules of sacremoses; lines
stay as many as they were. A language whose abbreviations are not known has those of English, with a warning. Exit
codes: 0 done, 1 failure, 2 wrong command line, 3 text rejected.
"""


@command(EPILOG)
def main(
    *,
    language: Annotated[str, Option("Code of the text's language, as fr", "-l --language")] = "en",
    processes: Annotated[int, Option("How many work", "-j --processes", min=1)] = 1,
) -> None:
    """Tokenise UTF-8 text from stdin to stdout."""
    from moses_rnn.moses.tokenising import known_languages, tokenise_lines

    if sys.stdin is None:
        raise InputError("standard input: is closed")
    if language not in (known := known_languages()):
        print_err(f"warning: language {language!r} has no list of abbreviations: the English one is used")
        print_err(f"  known: {', '.join(known)}")
    for line in tokenise_lines(sys.stdin.buffer, "standard input", language=language, processes=processes):
        sys.stdout.buffer.write(line)
