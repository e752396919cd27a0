"""Write a small English-French corpus from a grammar, tokenised as Moses wants it.

    python examples/make_corpus.py OUTPUT_FOLDER [--sentences 4000] [--seed 1]

The grammar has what a translation model must learn: gender and number agreement of determiners, adjectives and verbs,
adjectives before and after the noun, elision (l', d', n'), contraction (du, au), negation around the verb, and
words with more than one translation. Writes train, dev and test as .en and .fr, lower-cased and escaped by sacremoses.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacremoses import MosesTokenizer
from words import (
    ACTIONS,
    ADJECTIVES,
    ADVERBS,
    BEINGS,
    DEEDS,
    NUMBERS,
    OPENINGS,
    PLACES,
    PLURALS_BEFORE,
    PREPOSITIONS,
    THINGS,
    VOWELS,
    Noun,
)


@dataclass(frozen=True)
class Phrase:
    """The same in both languages."""

    en: str
    fr: str


def elide(word: str, following: str) -> str:
    """Le, la, de and ne before a vowel sound lose theirs."""
    if following[0] in VOWELS and word in ("le", "la", "de", "ne"):
        return word[:-1] + "'" + following
    return f"{word} {following}"


def contract(french: str) -> str:
    """De le, de les, à le, à les become one word."""
    for two, one in (("de les ", "des "), ("à les ", "aux "), ("de le ", "du "), ("à le ", "au ")):
        french = french.replace(f" {two}", f" {one}")
    return french


class Grammar:
    """Draws sentences; every choice comes from one random stream."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, share: float) -> bool:
        """Be true in that share of cases."""
        return self.random.random() < share

    def noun_phrase(self, pool: list[Noun], *, adjective: float = 0.45) -> Phrase:
        """Draw a determiner, a noun and perhaps an adjective, all in agreement."""
        noun = self.random.choice(pool)
        plural = self.chance(0.3)
        en, fr = (noun.en_plural, noun.fr_plural) if plural else (noun.en, noun.fr)
        if self.chance(adjective):
            chosen = self.random.choice(ADJECTIVES)
            form = chosen.fr[2 * plural + noun.feminine]
            en = f"{chosen.en} {en}"
            fr = f"{form} {fr}" if chosen.before else f"{fr} {form}"
        determine: Callable[[str, str, bool, bool], tuple[str, str]] = self.random.choice(
            [self.definite, self.definite, self.indefinite, self.demonstrative, self.possessive, self.counted]
        )
        return Phrase(*determine(en, fr, plural, noun.feminine))

    def definite(self, en: str, fr: str, plural: bool, feminine: bool) -> tuple[str, str]:
        """Give it the."""
        if plural:
            return f"the {en}", f"les {fr}"
        return f"the {en}", elide("la" if feminine else "le", fr)

    def indefinite(self, en: str, fr: str, plural: bool, feminine: bool) -> tuple[str, str]:
        """Give it a, an or some."""
        if plural:
            return f"some {en}", f"{'de' if fr.split(maxsplit=1)[0] in PLURALS_BEFORE else 'des'} {fr}"
        return f"{'an' if en[0] in 'aeiou' else 'a'} {en}", f"{'une' if feminine else 'un'} {fr}"

    def demonstrative(self, en: str, fr: str, plural: bool, feminine: bool) -> tuple[str, str]:
        """Give it this or these."""
        if plural:
            return f"these {en}", f"ces {fr}"
        vowel = fr[0] in VOWELS
        return f"this {en}", f"{'cette' if feminine else 'cet' if vowel else 'ce'} {fr}"

    def possessive(self, en: str, fr: str, plural: bool, feminine: bool) -> tuple[str, str]:
        """Give it my or our."""
        if self.chance(0.5):
            return f"our {en}", f"{'nos' if plural else 'notre'} {fr}"
        mine = "mes" if plural else "ma" if feminine and fr[0] not in VOWELS else "mon"
        return f"my {en}", f"{mine} {fr}"

    def counted(self, en: str, fr: str, plural: bool, feminine: bool) -> tuple[str, str]:
        """Give a plural noun a number, a singular one its article."""
        if not plural:
            return self.definite(en, fr, plural, feminine)
        number = self.random.choice(list(NUMBERS))
        return f"{number} {en}", f"{NUMBERS[number]} {fr}"

    def verb_phrase(self, subject: Phrase) -> Phrase:
        """Draw a verb that agrees, perhaps negated, with an object or an adverb."""
        plural = self.is_plural(subject)
        transitive = self.chance(0.6)
        verb = self.random.choice(DEEDS if transitive else ACTIONS)
        fr = verb.fr_plural if plural else verb.fr
        en = verb.en if plural else verb.en_third
        if self.chance(0.2):
            en = f"{'do' if plural else 'does'} not {verb.en}"
            fr = f"{elide('ne', fr)} pas"
        if transitive:
            thing = self.noun_phrase(THINGS if self.chance(0.7) else BEINGS)
            return Phrase(f"{en} {thing.en}", f"{fr} {thing.fr}")
        if self.chance(0.4):
            adverb = self.random.choice(list(ADVERBS))
            return Phrase(f"{en} {adverb}", f"{fr} {ADVERBS[adverb]}")
        return Phrase(en, fr)

    def is_plural(self, subject: Phrase) -> bool:
        """Whether the verb is plural: judged by the French determiner, which always shows it."""
        return subject.fr.split()[0] in {"les", "des", "de", "ces", "nos", "mes", *NUMBERS.values()}

    def place(self) -> Phrase:
        """Draw a prepositional phrase."""
        preposition = self.random.choice(list(PREPOSITIONS))
        where = self.noun_phrase(PLACES, adjective=0.25)
        *words, last = PREPOSITIONS[preposition].split()
        french = where.fr
        if last == "de":  # no article of indefinite plurals behind it
            french = french.removeprefix("des ").removeprefix("de ")
        return Phrase(f"{preposition} {where.en}", " ".join([*words, elide(last, french)]))

    def sentence(self) -> tuple[str, str]:
        """Draw a sentence and its translation."""
        subject = self.noun_phrase(BEINGS)
        verb = self.verb_phrase(subject)
        subject_en, subject_fr = subject.en, subject.fr
        if self.chance(0.15):
            inner = self.verb_phrase(subject)
            subject_en, subject_fr = f"{subject.en} who {inner.en}", f"{subject.fr} qui {inner.fr}"
        en, fr = f"{subject_en} {verb.en}", f"{subject_fr} {verb.fr}"
        if self.chance(0.5):
            where = self.place()
            en, fr = f"{en} {where.en}", f"{fr} {where.fr}"
        if self.chance(0.2):
            opening = self.random.choice(list(OPENINGS))
            en, fr = f"{opening} , {en}", f"{OPENINGS[opening]} , {fr}"
        return en + " .", contract(fr + " .")


def write_corpus(folder: Path, sizes: Sequence[int], draw: Callable[[str], tuple[str, str]]) -> None:
    """Write train, dev and test of these sizes; `draw` gives a sentence of the set of that name."""
    tokenise = {language: MosesTokenizer(lang=language) for language in ("en", "fr")}
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in zip(("train", "dev", "test"), sizes, strict=True):
        pairs = [draw(name) for _ in range(size)]
        for side, language in enumerate(("en", "fr")):
            text = [tokenise[language].tokenize(pair[side].lower(), return_str=True, escape=True) for pair in pairs]
            (folder / f"{name}.{language}").write_text("\n".join(text) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    grammar = Grammar(arguments.seed)
    write_corpus(arguments.folder, (arguments.sentences, 300, 300), lambda _: grammar.sentence())


if __name__ == "__main__":
    main()
