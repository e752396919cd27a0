"""Subwords: a sentencepiece model of byte-pair encoding (Sennrich et al. 2016) cuts each word into pieces."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from moses_rnn.errors import CheckpointError, InputError, MosesRnnError, number_of
from moses_rnn.networks.vocabulary import END, END_ID, UNKNOWN, UNKNOWN_ID, Phrase, Reader, Vocabulary, is_word
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Ints, Phrases

FILE = "subwords.model"  # in a model folder
MARK = "\N{LOWER ONE EIGHTH BLOCK}".encode()  # ▁ begins the first piece of a word
RESERVED = re.compile("\N{LOWER ONE EIGHTH BLOCK}|\N{LOWER FIVE EIGHTHS BLOCK}".encode())  # by sentencepiece
LONGEST = 100  # characters of a word
SPECIAL = 3  # <unk>, </s> and ▁
CACHED = 1 << 18  # distinct words


class Subwords(Vocabulary):
    """The pieces of a sentencepiece model by id; see `Vocabulary`.

    Each word is cut by itself. One with an unknown character or more than `LONGEST` characters, with ▁ or without
    UTF-8, is one ``<unk>``.
    """

    unit = "subword"

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = _library().SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise CheckpointError("expected a sentencepiece model, found something else") from error
        super().__init__([self._processor.IdToPiece(i).encode() for i in range(self._processor.GetPieceSize())])
        self._blank = self.id_of.get(MARK)
        self._cut = lru_cache(CACHED)(self._pieces_of)

    def __reduce__(self) -> tuple[type[Subwords], tuple[bytes]]:
        return Subwords, (self.model,)

    def __contains__(self, word: bytes) -> bool:
        return word == UNKNOWN or UNKNOWN_ID not in self._cut(word)

    def ids(self, words: Iterable[bytes]) -> list[int]:
        """Return the ids of the pieces of words, without an end symbol."""
        return list(chain.from_iterable(map(self._cut, words)))

    def _pieces_of(self, word: bytes) -> Phrase:
        if not _may_be_cut(word):
            return (UNKNOWN_ID,)
        ids = self._processor.EncodeAsIds(word.decode())
        return ids if self.spell(ids) == [word] and UNKNOWN_ID not in ids else (UNKNOWN_ID,)

    def reader(self) -> Reader:
        """See `Vocabulary`."""

        def read(phrases: Phrases) -> tuple[Ints, Ints]:
            of_each = [self.ids(words(phrase)) for phrase in phrases]
            lengths = np.fromiter(map(len, of_each), np.int64, len(of_each))
            return np.fromiter(chain.from_iterable(of_each), np.int64, int(lengths.sum())), lengths

        return read

    def spell(self, ids: Phrase) -> list[bytes]:
        """Join pieces to words."""
        return [word for _, word in self._words(ids)]

    def firsts(self, ids: Phrase) -> list[int]:
        """Return the position of each word's first piece."""
        return [first for first, _ in self._words(ids)]

    def _words(self, ids: Phrase) -> list[tuple[int, bytes]]:
        """Return each word and the position of its first piece; ``<unk>`` is a word, and a ▁ alone is none."""
        found, before = [], UNKNOWN_ID
        for at, number in enumerate(ids):
            piece = self.words[number]
            starts = UNKNOWN_ID in (before, number) or piece.startswith(MARK)
            if starts and before != self._blank:
                found.append((at, piece.removeprefix(MARK)))
            else:
                first, text = found.pop()
                found.append((first, text + piece.removeprefix(MARK)))
            before = number
        return [(first, word) for first, word in found if word]

    def sha256(self) -> str:
        """Return the hash of the sentencepiece model."""
        return hashlib.sha256(self.model).hexdigest()


def _may_be_cut(word: bytes) -> bool:
    return word != UNKNOWN and is_word(word) and not RESERVED.search(word) and len(word.decode()) <= LONGEST


def learn_subwords(counts: Mapping[bytes, int], size: int, min_count: int = 1) -> Subwords:
    """Learn up to `size` pieces from counted words; characters seen fewer than `min_count` times stay unknown."""
    texts = {word.decode(): count for word, count in counts.items() if _may_be_cut(word)}
    seen: Counter[str] = Counter()
    for text, count in texts.items():
        for character in text:
            seen[character] += count
    known = {character for character, count in seen.items() if count >= min_count}
    lines = [f"{text}\t{count}" for text, count in sorted(texts.items()) if known.issuperset(text)]
    if not lines:
        expected = f"words of characters seen at least {number_of(min_count, 'time')}"
        raise InputError(f"subwords: expected {expected}, to learn from, found none")
    if size < len(known) + SPECIAL:
        expected = f"at least {len(known) + SPECIAL:,}, for {number_of(len(known), 'character')} and three symbols"
        raise InputError(f"subwords: expected {expected}, found {size:,}")
    written = io.BytesIO()
    _library().SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        input_format="tsv",
        model_writer=written,
        model_type="bpe",
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_by_unicode_script=False,
        split_by_number=False,
        num_threads=1,
        minloglevel=2,
        unk_id=UNKNOWN_ID,
        unk_piece=UNKNOWN.decode(),
        eos_id=END_ID,
        eos_piece=END.decode(),
        bos_id=-1,
        pad_id=-1,
    )
    return Subwords(written.getvalue())


def _library() -> Any:
    try:
        import sentencepiece  # noqa: PLC0415, only models of subwords need it
    except ImportError as error:
        raise MosesRnnError("sentencepiece is not installed: pip install sentencepiece") from error
    return sentencepiece
