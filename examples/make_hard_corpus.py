"""Write a corpus like that of make_corpus.py, but one on which frequencies of phrases go wrong.

    python examples/make_hard_corpus.py OUTPUT_FOLDER [--sentences 2000] [--slips 0.35] [--seed 1]

Adjectives and verbs of one English form have two French ones, and which it is depends on what they stand beside: a
bright baker is brillant, a bright flower vive; to take a letter is prendre, to take a friend emmener. Most phrases are
seen a few times or once, and whoever has translated the training text was careless: each choice of a form, of gender
and number too, is a slip in that share of cases. So p(target | source) is 1 for many a wrong pair, and the language
model has read the same slips; what is right is a rule over all phrases together. Dev and test have no slips. What is
drawn depends on the seed alone.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from make_corpus import Grammar, Phrase, elide, write_corpus
from words import ACTIONS, ADJECTIVES, ADVERBS, BEINGS, DEEDS, THINGS, Adjective, Noun, Verb
from words import adjectives as read_adjectives
from words import verbs as read_verbs

# Each twice: beside a living being, and beside anything else
BESIDE_BEINGS = read_adjectives("""
bright brillant brillante brillants brillantes
old âgé âgée âgés âgées
hard sévère sévère sévères sévères
plain franc franche francs franches
fair juste juste justes justes
dull ennuyeux ennuyeuse ennuyeux ennuyeuses
""")
BESIDE_THINGS = read_adjectives("""
bright vif vive vifs vives
old ancien ancienne anciens anciennes
hard dur dure durs dures
plain simple simple simples simples
fair clair claire clairs claires
dull terne terne ternes ternes
""")
DONE_TO_BEINGS = read_verbs("""
take takes emmène emmènent
bring brings amène amènent
leave leaves quitte quittent
keep keeps retient retiennent
know knows connaît connaissent
miss misses regrette regrettent
raise raises élève élèvent
join joins rejoint rejoignent
""")
DONE_TO_THINGS = read_verbs("""
take takes prend prennent
bring brings apporte apportent
leave leaves laisse laissent
keep keeps garde gardent
know knows sait savent
miss misses rate ratent
raise raises lève lèvent
join joins assemble assemblent
""")


class HardGrammar(Grammar):
    """Draws sentences with those words; slips come from a random stream of their own.

    Args:
        seed: of both streams.
        slips: in which share of choices the translator is wrong; may be set anew before each sentence.
    """

    def __init__(self, seed: int, slips: float) -> None:
        super().__init__(seed)
        self.slips = slips
        self._slipping = random.Random(f"slips {seed}")

    def slip(self) -> bool:
        """Whether the translator is wrong now."""
        return self._slipping.random() < self.slips

    def noun_phrase(self, pool: list[Noun], *, adjective: float = 0.9) -> Phrase:
        """Draw a determiner, a noun and mostly an adjective; the last may be one of the wrong sense or form."""
        noun = self.random.choice(pool)
        plural = self.chance(0.3)
        en, fr = (noun.en_plural, noun.fr_plural) if plural else (noun.en, noun.fr)
        if self.chance(adjective):
            chosen = self.adjective(pool is BEINGS)
            form = chosen.fr[self._slipping.randrange(4) if self.slip() else 2 * plural + noun.feminine]
            en = f"{chosen.en} {en}"
            fr = f"{form} {fr}" if chosen.before else f"{fr} {form}"
        determine = self.random.choice(
            [self.definite, self.definite, self.indefinite, self.demonstrative, self.possessive, self.counted]
        )
        return Phrase(*determine(en, fr, plural, noun.feminine))

    def adjective(self, of_beings: bool) -> Adjective:
        """Draw one; of those with two senses, the one that fits, or by a slip the other."""
        if not self.chance(0.7):
            return self.random.choice(ADJECTIVES)
        place = self.random.randrange(len(BESIDE_BEINGS))
        return (BESIDE_BEINGS if of_beings != self.slip() else BESIDE_THINGS)[place]

    def verb_phrase(self, subject: Phrase) -> Phrase:
        """Draw a verb, perhaps negated, with an object or an adverb; it may be of the wrong sense or number."""
        plural = self.is_plural(subject)
        transitive = self.chance(0.7)
        pool = THINGS if self.chance(0.5) else BEINGS
        verb = self.deed(pool is BEINGS) if transitive else self.random.choice(ACTIONS)
        fr = verb.fr_plural if plural != self.slip() else verb.fr
        en = verb.en if plural else verb.en_third
        if self.chance(0.2):
            en, fr = f"{'do' if plural else 'does'} not {verb.en}", f"{elide('ne', fr)} pas"
        if transitive:
            thing = self.noun_phrase(pool)
            return Phrase(f"{en} {thing.en}", f"{fr} {thing.fr}")
        if self.chance(0.4):
            adverb = self.random.choice(list(ADVERBS))
            return Phrase(f"{en} {adverb}", f"{fr} {ADVERBS[adverb]}")
        return Phrase(en, fr)

    def deed(self, to_beings: bool) -> Verb:
        """Draw a verb with an object; of those with two senses, the one that fits, or by a slip the other."""
        if not self.chance(0.7):
            return self.random.choice(DEEDS)
        place = self.random.randrange(len(DONE_TO_BEINGS))
        return (DONE_TO_BEINGS if to_beings != self.slip() else DONE_TO_THINGS)[place]


def main() -> None:
    """Write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=2000, help="to train on")
    parser.add_argument("--held-out", type=int, default=300, help="to tune on, and as many to test on")
    parser.add_argument("--slips", type=float, default=0.35, help="share of choices in which the translator was wrong")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    grammar = HardGrammar(arguments.seed, arguments.slips)

    def draw(name: str) -> tuple[str, str]:
        grammar.slips = arguments.slips if name == "train" else 0.0
        return grammar.sentence()

    write_corpus(arguments.folder, (arguments.sentences, arguments.held_out, arguments.held_out), draw)


if __name__ == "__main__":
    main()
