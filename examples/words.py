"""The words of the examples' grammar: nouns, adjectives and verbs with their forms, in English and French."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """Singular and plural in both languages; the gender is the French one's."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    feminine: bool


@dataclass(frozen=True)
class Adjective:
    """Its French forms, and whether it stands before the noun there."""

    en: str
    fr: tuple[str, str, str, str]  # m. sg., f. sg., m. pl., f. pl.
    before: bool = False


@dataclass(frozen=True)
class Verb:
    """Present tense."""

    en: str  # base form
    en_third: str
    fr: str
    fr_plural: str


def nouns(text: str) -> list[Noun]:
    """One noun a line: English, French, gender; plurals by rule or given behind a slash."""
    made = []
    for line in text.strip().splitlines():
        en, fr, gender = line.split()
        en, _, en_plural = en.partition("/")
        fr, _, fr_plural = fr.partition("/")
        made.append(Noun(en, en_plural or en + "s", fr, fr_plural or fr + "s", gender == "f"))
    return made


def adjectives(text: str, *, before: bool = False) -> list[Adjective]:
    """One adjective a line: English and the four French forms."""
    made = []
    for line in text.strip().splitlines():
        en, *forms = line.split()
        made.append(Adjective(en, (forms[0], forms[1], forms[2], forms[3]), before))
    return made


def verbs(text: str) -> list[Verb]:
    """One verb a line: English base, third person, French third persons; underscores join words."""
    return [Verb(*(form.replace("_", " ") for form in line.split())) for line in text.strip().splitlines()]


BEINGS = nouns("""
dog chien m
cat chat m
man/men homme m
woman/women femme f
girl fille f
boy garçon m
child/children enfant m
horse cheval/chevaux m
bird oiseau/oiseaux m
teacher professeur m
nurse infirmière f
farmer fermier m
neighbour voisin m
friend ami m
actress/actresses actrice f
student étudiant m
queen reine f
king roi m
mouse/mice souris/souris f
goat chèvre f
baker boulanger m
aunt tante f
uncle oncle m
singer chanteuse f
""")
THINGS = nouns("""
book livre m
apple pomme f
letter lettre f
ball balle f
car voiture f
bicycle vélo m
door porte f
window fenêtre f
hat chapeau/chapeaux m
shirt chemise f
flower fleur f
cake gâteau/gâteaux m
bread pain m
tree arbre m
picture image f
newspaper journal/journaux m
key clé f
umbrella parapluie m
guitar guitare f
chair chaise f
table table f
boat bateau/bateaux m
orange orange f
egg œuf m
""")
PLACES = nouns("""
house maison f
garden jardin m
school école f
street rue f
park parc m
kitchen cuisine f
church/churches église f
market marché m
river rivière f
forest forêt f
beach/beaches plage f
station gare f
hospital hôpital/hôpitaux m
village village m
bridge pont m
field champ m
""")
ADJECTIVES = adjectives("""
red rouge rouge rouges rouges
green vert verte verts vertes
blue bleu bleue bleus bleues
black noir noire noirs noires
white blanc blanche blancs blanches
yellow jaune jaune jaunes jaunes
happy heureux heureuse heureux heureuses
tired fatigué fatiguée fatigués fatiguées
quiet calme calme calmes calmes
strange étrange étrange étranges étranges
famous célèbre célèbre célèbres célèbres
heavy lourd lourde lourds lourdes
French français française français françaises
""") + adjectives(
    """
small petit petite petits petites
big grand grande grands grandes
young jeune jeune jeunes jeunes
pretty joli jolie jolis jolies
bad mauvais mauvaise mauvais mauvaises
good bon bonne bons bonnes
""",
    before=True,
)
PLURALS_BEFORE = {form for adjective in ADJECTIVES if adjective.before for form in adjective.fr[2:]}
ACTIONS = verbs("""
sleep sleeps dort dorment
run runs court courent
sing sings chante chantent
work works travaille travaillent
laugh laughs rit rient
wait waits attend attendent
walk walks marche marchent
arrive arrives arrive arrivent
dance dances danse dansent
play plays joue jouent
eat eats mange mangent
speak speaks parle parlent
""")
DEEDS = verbs("""
see sees voit voient
take takes prend prennent
buy buys achète achètent
like likes aime aiment
look_at looks_at regarde regardent
look_for looks_for cherche cherchent
carry carries porte portent
find finds trouve trouvent
sell sells vend vendent
give_back gives_back rend rendent
draw draws dessine dessinent
forget forgets oublie oublient
open opens ouvre ouvrent
want wants veut veulent
""")
PREPOSITIONS = {
    "in": "dans",
    "near": "près de",
    "behind": "derrière",
    "in front of": "devant",
    "at": "à",
    "far from": "loin de",
}
ADVERBS = {"slowly": "lentement", "often": "souvent", "quickly": "vite", "together": "ensemble", "here": "ici"}
OPENINGS = {
    "today": "aujourd'hui",
    "in the evening": "le soir",
    "this morning": "ce matin",
    "sometimes": "parfois",
    "on Sunday": "dimanche",
}
VOWELS = "aeiouéèêâàôœh"
NUMBERS = {"two": "deux", "three": "trois", "four": "quatre", "ten": "dix"}
