"""Raw text as Moses wants it: words parted by blanks, special characters escaped. The rules are those of sacremoses."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from moses_rnn.errors import FormatError, shown


def known_languages() -> list[str]:
    """Codes of the languages whose abbreviations are known: those that Moses's tokenizer.perl has files for."""
    from sacremoses.corpus import NonbreakingPrefixes  # noqa: PLC0415, half a second that --help does not need

    return sorted(set(NonbreakingPrefixes().available_langs.values()))


def tokenise_lines(lines: Iterable[bytes], name: str, *, language: str, processes: int = 1) -> Iterator[bytes]:
    """Tokenise lines, as ``sacremoses -l LANGUAGE -j PROCESSES tokenize`` does.

    Args:
        lines: UTF-8, each with its line feed.
        name: of the text, for messages.
        language: whose abbreviations and apostrophes are meant, as a code; of one that is unknown the abbreviations
            are those of English.
        processes: how many work at the same time.

    Yields:
        As many lines, in order.

    Raises:
        FormatError: a line is not UTF-8.
    """
    from sacremoses import MosesTokenizer  # noqa: PLC0415
    from sacremoses.corpus import NonbreakingPrefixes  # noqa: PLC0415
    from sacremoses.util import parallelize_preprocess  # noqa: PLC0415

    is_name = language in NonbreakingPrefixes().available_langs.keys() - known_languages()  # "french": Moses has none
    tokenise = functools.partial(MosesTokenizer(lang="" if is_name else language).tokenize, return_str=True)
    for words in parallelize_preprocess(tokenise, list(_decoded(lines, name)), processes):
        yield f"{words}\n".encode()


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError(name, number, "UTF-8", shown(line)) from None
