"""What becomes of the words that a network cannot write: replaced by what the source has in their places.

Either the network's attention says which source word belongs to an ``<unk>`` (Jean et al. 2015, section 3.4), or the
tokens that it learned to write in place of rare words do (Luong et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.scorers.rare_words import RareWords, Restored, WordFor, Words, Written, restore_words

NO, NEVER, COPY, DICTIONARY, LOWERCASE = RULES = "no", "never", "copy", "dictionary", "lowercase"
WITH_LEXICON = DICTIONARY, LOWERCASE
Places = Sequence[int | None]  # of each word that was written the place of its source word, from 0
Finish = Callable[[Words, Words, Places | None], Restored]  # of source, what was written, and where the network looked


def word_for(rule: str, lexicon: Lexicon | None) -> WordFor:
    """What is written for a source word.

    "copy": the word itself; "dictionary": its likeliest translation, or else itself; "lowercase": the same for words
    that begin with a lower-case letter, and others themselves.
    """
    if rule == COPY or lexicon is None:
        return lambda word: word
    if rule == DICTIONARY:
        return lambda word: lexicon.best(word) or word
    return lambda word: (_is_lower(word) and lexicon.best(word)) or word


def _is_lower(word: bytes) -> bool:
    return word.decode("utf-8", "replace")[:1].islower()


def replace_by_places(source: Words, written: Words, places: Places | None, chosen: WordFor) -> Restored:
    """Each ``<unk>`` replaced by what is chosen for the source word in its place; without a place it stays."""
    both = zip(written, places or [None] * len(written), strict=True)
    return restore_words((Written(word, place, at) for at, (word, place) in enumerate(both)), source, chosen)


def by_attention(chosen: WordFor) -> Finish:
    """Replace each ``<unk>`` by what is chosen for the source word that it looks at most."""
    return lambda source, written, places: replace_by_places(source, written, places, chosen)


def by_tokens(rare: RareWords, shortlist: frozenset[bytes], chosen: WordFor) -> Finish:
    """Restore what tokens stand for; `shortlist` has the words that were read."""
    return lambda source, written, _: rare.restore(written, source, shortlist, chosen)
