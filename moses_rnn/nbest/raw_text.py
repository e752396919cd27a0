"""Raw text for a reranker: tokenised and escaped before, detokenised after, by sacremoses."""

from __future__ import annotations

from sacremoses import MosesDetokenizer, MosesTokenizer


class RawText:
    """Turns raw lines into words as the decoder reads them, and its words into raw lines. Not UTF-8: U+FFFD."""

    def __init__(self, source: str, target: str, *, lowercase: bool) -> None:
        self._tokeniser, self._detokeniser = MosesTokenizer(lang=source), MosesDetokenizer(lang=target)
        self._lowercase = lowercase

    def tokenise(self, line: bytes) -> bytes:
        """Tokenise, escape and perhaps lower-case a line."""
        text: str = self._tokeniser.tokenize(line.decode("utf-8", "replace"), return_str=True)
        return (text.lower() if self._lowercase else text).encode()

    def detokenise(self, line: bytes) -> bytes:
        """Detokenise and unescape a translation."""
        text: str = self._detokeniser.detokenize(line.decode("utf-8", "replace").split(" "))
        return text.encode()
