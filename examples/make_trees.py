"""Write a treebank of English sentences like those of make_corpus.py, as trees of phrases and as dependencies.

    python examples/make_trees.py OUTPUT_FOLDER [--sentences 4000] [--seed 1]

Writes train, dev and test as .trees, bracketed, one a line, and as .conllu with the relations of Universal
Dependencies. The rules mirror the English side of make_corpus.py, over the same words, lower-cased; the random stream
is another one, so that sentences differ. Places belong to the verb, relative clauses to the subject: a sentence has one
tree.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from words import (
    ACTIONS,
    ADJECTIVES,
    ADVERBS,
    BEINGS,
    DEEDS,
    NUMBERS,
    OPENINGS,
    PLACES,
    PREPOSITIONS,
    THINGS,
    Noun,
)

PARTICLES = {"back"}  # which belong to the verb, unlike the prepositions of "look at" and "look for"


@dataclass(eq=False)
class Word:
    """A word with its part of speech; `head` is the word that it depends on, None of the sentence's own."""

    text: str
    tag: str
    relation: str = "root"
    head: Word | None = None

    def under(self, head: Word, relation: str) -> Word:
        """Make it depend on another one."""
        self.head, self.relation = head, relation
        return self


@dataclass
class Phrase:
    """A bracket; of its words, all but `core` depend on another one of them."""

    label: str
    core: Word
    parts: list[Phrase | Word] = field(default_factory=list)

    def bracketed(self) -> str:
        """As the Penn Treebank writes it."""
        texts = [part.bracketed() if isinstance(part, Phrase) else f"({part.tag} {part.text})" for part in self.parts]
        return f"({self.label} {' '.join(texts)})"

    def words(self) -> Iterator[Word]:
        """From left to right."""
        for part in self.parts:
            if isinstance(part, Phrase):
                yield from part.words()
            else:
                yield part


def conllu(phrase: Phrase) -> str:
    """The dependencies of a sentence."""
    words = list(phrase.words())
    number = {id(word): i for i, word in enumerate(words, 1)}
    lines = [
        f"{number[id(word)]}\t{word.text}\t_\t_\t{word.tag}\t_\t{number.get(id(word.head), 0)}\t{word.relation}\t_\t_\n"
        for word in words
    ]
    return "".join(lines) + "\n"


class TreeGrammar:
    """Draws sentences with their trees; every choice comes from one random stream."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"trees {seed}")

    def chance(self, share: float) -> bool:
        """Be true in that share of cases."""
        return self.random.random() < share

    def noun_phrase(self, pool: list[Noun], *, adjective: float = 0.45) -> tuple[Phrase, bool]:
        """Draw a determiner, a noun and perhaps an adjective; also whether it is plural."""
        noun = self.random.choice(pool)
        plural = self.chance(0.3)
        core = Word(noun.en_plural, "NNS") if plural else Word(noun.en, "NN")
        parts: list[Phrase | Word] = [core]
        if self.chance(adjective):
            parts.insert(0, Word(self.random.choice(ADJECTIVES).en.lower(), "JJ").under(core, "amod"))
        parts.insert(0, self.determiner(parts[0], core, plural))
        return Phrase("NP", core, parts), plural

    def determiner(self, following: Word, core: Word, plural: bool) -> Word:
        """Draw one that fits."""
        kind = self.random.choice(["definite", "definite", "indefinite", "demonstrative", "possessive", "counted"])
        if kind == "possessive":
            return Word(self.random.choice(["our", "my"]), "PRP$").under(core, "nmod:poss")
        if kind == "counted" and plural:
            return Word(self.random.choice(list(NUMBERS)), "CD").under(core, "nummod")
        article = "some" if plural else "an" if following.text[0] in "aeiou" else "a"
        text = {"indefinite": article, "demonstrative": "these" if plural else "this"}.get(kind, "the")
        return Word(text, "DT").under(core, "det")

    def verb_phrase(self, plural: bool) -> tuple[Phrase, Phrase]:
        """Draw a verb, perhaps negated, with an object or an adverb; the whole phrase, and the innermost one."""
        transitive = self.chance(0.6)
        verb = self.random.choice(DEEDS if transitive else ACTIONS)
        negated = self.chance(0.2)
        text, *particle = (verb.en if plural or negated else verb.en_third).split()
        core = Word(text, "VB" if negated else "VBP" if plural else "VBZ")
        inner = Phrase("VP", core, [core])
        if transitive:
            inner.parts += self.complement(core, particle)
        elif self.chance(0.4):
            adverb = Word(self.random.choice(list(ADVERBS)), "RB").under(core, "advmod")
            inner.parts.append(Phrase("ADVP", adverb, [adverb]))
        if not negated:
            return inner, inner
        does = Word("do" if plural else "does", "VBP" if plural else "VBZ").under(core, "aux")
        return Phrase("VP", core, [does, Word("not", "RB").under(core, "advmod"), inner]), inner

    def complement(self, verb: Word, particle: list[str]) -> list[Phrase | Word]:
        """Draw what the verb is about, behind its particle or preposition."""
        thing, _ = self.noun_phrase(THINGS if self.chance(0.7) else BEINGS)
        if particle and particle[0] not in PARTICLES:
            thing.core.under(verb, "obl")
            return [Phrase("PP", thing.core, [Word(particle[0], "IN").under(thing.core, "case"), thing])]
        thing.core.under(verb, "obj")
        behind = [Word(text, "RP").under(verb, "compound:prt") for text in particle]
        return [*(Phrase("PRT", word, [word]) for word in behind), thing]

    def place(self, verb: Word) -> Phrase:
        """Draw a prepositional phrase."""
        texts = self.random.choice(list(PREPOSITIONS)).split()
        where, _ = self.noun_phrase(PLACES, adjective=0.25)
        where.core.under(verb, "obl")
        first, *further = [Word(text, "IN") for text in texts]
        first.under(where.core, "case")
        return Phrase("PP", where.core, [first, *(word.under(first, "fixed") for word in further), where])

    def opening(self, verb: Word) -> Phrase:
        """Draw when it is."""
        texts = self.random.choice(list(OPENINGS)).lower().split()
        tags = {"in": "IN", "on": "IN", "the": "DT", "this": "DT", "sometimes": "RB"}
        words = [Word(text, tags.get(text, "NN")) for text in texts]
        core = words[-1].under(verb, "advmod" if texts == ["sometimes"] else "obl" if len(texts) > 1 else "obl:tmod")
        for word in words[:-1]:
            word.under(core, "case" if word.tag == "IN" else "det")
        if core.tag == "RB":
            return Phrase("ADVP", core, [core])
        if words[0].tag != "IN":
            return Phrase("NP", core, [*words])
        return Phrase("PP", core, [words[0], Phrase("NP", core, [*words[1:]])])

    def sentence(self) -> Phrase:
        """Draw a sentence."""
        subject, plural = self.noun_phrase(BEINGS)
        whole, inner = self.verb_phrase(plural)
        verb = whole.core
        subject.core.under(verb, "nsubj")
        if self.chance(0.15):
            subject = self.relative(subject, plural)
        if self.chance(0.5):
            inner.parts.append(self.place(verb))
        parts: list[Phrase | Word] = [subject, whole, Word(".", ".").under(verb, "punct")]
        if self.chance(0.2):
            parts = [self.opening(verb), Word(",", ",").under(verb, "punct"), *parts]
        return Phrase("S", verb, parts)

    def relative(self, subject: Phrase, plural: bool) -> Phrase:
        """Draw what the subject does besides."""
        clause, _ = self.verb_phrase(plural)
        clause.core.under(subject.core, "acl:relcl")
        who = Word("who", "WP").under(clause.core, "nsubj")
        inner = Phrase("S", clause.core, [clause])
        return Phrase("NP", subject.core, [subject, Phrase("SBAR", clause.core, [Phrase("WHNP", who, [who]), inner])])


def main() -> None:
    """Write the treebank."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    grammar = TreeGrammar(arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("train", arguments.sentences), ("dev", 300), ("test", 300)):
        sentences = [grammar.sentence() for _ in range(size)]
        for ending, text in (
            ("trees", "".join(sentence.bracketed() + "\n" for sentence in sentences)),
            ("conllu", "".join(map(conllu, sentences))),
        ):
            (arguments.folder / f"{name}.{ending}").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
