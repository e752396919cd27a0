"""Large shortlists, and what becomes of rare words: BLEU of the systems of Jean et al. and of Luong et al. (2015).

    python benchmarks/rare_words.py PREFIX FOLDER --source en --target fr --alignment LINKS --test PREFIX...
        [--words 2000] [--seeds 1 2 3] [--more-seeds 1] [--at-once 2] [--train '--max-epochs 4'] [--beam 12]

RNNsearch with shortlists of --words words a side, whose unknown words are left, or replaced by what the network looked
at, or pointed to; and one that knows all words, learned with the whole softmax and by partitions. PREFIX.SOURCE and
PREFIX.TARGET are tokenised, LINKS their word alignment, --test the prefixes of test sets. The networks of the first
rows learn with all of --seeds, the others with those of --more-seeds. Each learns in one thread, --train are further
options for all; of a network without attention (--train '--architecture seq2seq'), rows that need it are left out and
named. The published figures follow ours. Networks and translations stay in FOLDER and are not made twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from stages import run, settings

from moses_rnn.analysis.lengths import KnownWords
from moses_rnn.analysis.published import format_published
from moses_rnn.analysis.results import compare_runs, together
from moses_rnn.files.streams import read_lines
from moses_rnn.formats.runs import Run
from moses_rnn.producers.base import HERE
from moses_rnn.producers.open import open_model
from moses_rnn.translation.alignments import has_attention

BASE, PARTITIONS, RESHUFFLED, WHOLE = "base", "partitions", "reshuffled", "whole"
# networks: options of moses-rnn-nmt train, and whether all seeds are wanted
SHORT = ("--source-words", "{words}", "--target-words", "{words}")
ANNOTATED = (*SHORT, "--alignment", "{alignment}", "--rare")
NETWORKS = {
    BASE: (SHORT, True),
    "noalign": ((*ANNOTATED, "noalign"), False),
    "copyable": ((*ANNOTATED, "copyable"), False),
    "posall": ((*ANNOTATED, "posall"), False),
    "posunk": ((*ANNOTATED, "posunk"), True),
    WHOLE: ((), False),
    PARTITIONS: ((), False),
    RESHUFFLED: ((), True),
}
# how they translate: options of moses-rnn-nmt translate
REPLACED = ("--unknown", "dictionary", "--dictionary", "{dictionary}")
AMONG_CANDIDATES = ("--candidates", "{words}", "{translations}", "--dictionary", "{dictionary}")


@dataclass(frozen=True)
class System:
    """A row: a network, and how it translates."""

    title: str
    network: str
    options: tuple[str, ...] = ()
    together: bool = False  # the networks of all seeds translate as one

    @property
    def needs_attention(self) -> bool:
        """Whether only attention says which source word takes the place of an unknown one."""
        return "--unknown" in self.options and LEFT[1] not in self.options and "--rare" not in NETWORKS[self.network][0]


LEFT = ("--unknown", "no")
LEFT_WORD = "<unk"  # so begin <unk> and pointers that were left
BASELINES = [
    System("base", BASE, LEFT),
    System("base, <unk> replaced: copy", BASE, ("--unknown", "copy")),
    System("base, <unk> replaced: dictionary", BASE, REPLACED),
    System("base, <unk> replaced: lowercase", BASE, ("--unknown", "lowercase", *REPLACED[2:])),
]
TABLES = {
    "luong": [
        *BASELINES[:3],
        System("NoAlign", "noalign", REPLACED),
        System("Copyable", "copyable", REPLACED),
        System("PosAll", "posall", REPLACED),
        System("PosUnk, pointers left", "posunk", LEFT),
        System("PosUnk, copies", "posunk", ("--unknown", "copy")),
        System("PosUnk, translations", "posunk", REPLACED),
        System("base, all seeds", BASE, LEFT, together=True),
        System("PosUnk, all seeds", "posunk", REPLACED, together=True),
    ],
    "jean": [
        *BASELINES,
        System("all words, whole softmax", WHOLE, LEFT),
        System("all words, partitions", PARTITIONS, LEFT),
        System("+ candidate lists", PARTITIONS, (*LEFT, *AMONG_CANDIDATES)),
        System("+ <unk> replaced", PARTITIONS, (*AMONG_CANDIDATES, *REPLACED[:2])),
        System("+ reshuffled", RESHUFFLED, (*AMONG_CANDIDATES, *REPLACED[:2])),
        System("+ ensemble", RESHUFFLED, (*AMONG_CANDIDATES, *REPLACED[:2]), together=True),
    ],
}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--alignment", required=True)
    parser.add_argument("--test", type=Path, nargs="+", required=True)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--partition-words", type=int, default=2000)
    parser.add_argument("--translations", type=int, default=10, help="of a source word among its candidates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--more-seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--train", type=shlex.split, default=[], metavar="OPTIONS")
    parser.add_argument("--beam", type=int, default=12)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--samples", type=int, default=1000, help="of the paired bootstrap")
    return parser.parse_args()


class Place:
    """Where networks and translations are, and the commands that make them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.dictionary = given.folder / "dictionary"

    def seeds(self, network: str) -> list[int]:
        """That a network learns with."""
        seeds: list[int] = self.given.seeds if NETWORKS[network][1] else self.given.more_seeds
        return seeds

    def model(self, network: str, seed: int) -> Path:
        """A network's folder."""
        folder: Path = self.given.folder / f"{network}.{seed}"
        return folder

    def train(self, network: str, seed: int) -> list[str]:
        """The command that trains, or goes on, or sees that it is done."""
        texts = self.given.prefix, "--source", self.given.source, "--target", self.given.target
        options = [option.format_map(vars(self.given)) for option in NETWORKS[network][0]]
        model = self.model(network, seed)
        file = settings(model.with_name(f"{model.name}.toml"), self.settings(network))
        of_all = "--seed", seed, "--threads", 1, "--quiet", *self.given.train
        return list(map(str, ("nmt", "train", *texts, "--model", model, *options, *file, *of_all)))

    def settings(self, network: str) -> dict[str, object]:
        """Of a network that knows all words."""
        values: dict[str, object] = {"min_count": 1} if network in (WHOLE, PARTITIONS, RESHUFFLED) else {}
        if network in (PARTITIONS, RESHUFFLED):
            values |= {"partition_words": self.given.partition_words, "reshuffle": network == RESHUFFLED}
        return values

    def count_words(self) -> list[str]:
        """The command that makes the dictionary."""
        texts = self.given.prefix, "--source", self.given.source, "--target", self.given.target
        files = "--alignment", self.given.alignment, "-o", self.dictionary, "--force", "--quiet"
        return list(map(str, ("nmt", "dictionary", *texts, *files)))

    def runs(self, system: System) -> list[int]:
        """The seeds of a row; of an ensemble the first."""
        seeds = self.seeds(system.network)
        return seeds[:1] if system.together else seeds

    def output(self, system: System, seed: int, test: Path) -> Path:
        """Where a translation is."""
        words = "".join(letter if letter.isalnum() else "-" for letter in system.title)
        path: Path = self.given.folder / "translations" / f"{words}.{seed}.{test.name}"
        return path

    def has_attention(self) -> bool:
        """Whether the networks, which are of one architecture, have attention."""
        return has_attention(open_model(self.model(BASE, self.seeds(BASE)[0])).make_stepper(HERE))

    def translate(self, system: System, seed: int, test: Path) -> list[str]:
        """The command that translates a test set."""
        of_options = vars(self.given) | {"dictionary": self.dictionary}
        seeds = self.seeds(system.network) if system.together else [seed]
        models = [self.model(system.network, each) for each in seeds]
        options = [option.format_map(of_options) for option in system.options]
        text = f"{test}.{self.given.source}"
        of_all = "--beam", self.given.beam, "--threads", 1, "--quiet", "-o", self.output(system, seed, test)
        return list(map(str, ("nmt", "translate", *models, text, *options, *of_all)))


def lines_of(path: Path) -> list[bytes]:
    """A text."""
    return [line.rstrip(b"\n") for line in read_lines(str(path))]


def run_of(place: Place, system: System, seed: int) -> Run:
    """The translations of a system."""
    hypotheses = {
        test.name: [line.decode("utf-8", "replace") for line in lines_of(place.output(system, seed, test))]
        for test in place.given.test
    }
    return Run(system.title, str(seed), hypotheses)


def touched(place: Place, network: str) -> Iterator[str]:
    """Of each test set, the share of sentences with a word that a network does not know; of a line."""
    model = open_model(place.model(network, place.seeds(network)[0]))
    known = KnownWords(model.source_vocabulary, model.target_vocabulary)
    for test in place.given.test:
        sides = [lines_of(test.with_name(f"{test.name}.{side}")) for side in (place.given.source, place.given.target)]
        pairs = list(zip(*sides, strict=True))
        yield f"{test.name} {mean(not known.know(*pair) for pair in pairs):.1%} of {len(pairs):,}"


def print_table(place: Place, all_systems: Sequence[System], *, attention: bool) -> None:
    """Markdown: BLEU, and against the first row, of the same seeds."""
    systems = [system for system in all_systems if attention or not system.needs_attention]
    names = [test.name for test in place.given.test]
    references = {
        test.name: [line.decode("utf-8", "replace") for line in lines_of(Path(f"{test}.{place.given.target}"))]
        for test in place.given.test
    }
    first = systems[0]
    print(f"| system | seeds | words left unknown |{''.join(f' {name} | Δ | p by seed |' for name in names)}")
    print("|---|---|---|" + "---|---|---|" * len(names))
    for system in systems:
        seeds = [seed for seed in place.runs(system) if seed in place.runs(first)]
        runs = [[run_of(place, one, seed) for one in (first, system)] for seed in seeds]
        scored = [compare_runs(of_seed, references, names, place.given.samples)[0] for of_seed in runs]
        words = Counter(word for _, run in runs for line in together(run.hypotheses, names) for word in line.split())
        left = sum(count for word, count in words.items() if word.startswith(LEFT_WORD)) / max(words.total(), 1)
        cells = [system.title, str(len(seeds)), f"{left:.2%}"]
        for name in names:
            cells += list(cells_of(scored, name, is_first=system is first))
        print(f"| {' | '.join(cells)} |")
    print()
    if left_out := [system.title for system in all_systems if system not in systems]:
        print(f"Left out, since the networks have no attention: {'; '.join(left_out)}")
    for network in dict.fromkeys((BASE, systems[-1].network)):
        if NETWORKS[network][0][: len(SHORT)] != SHORT or network == BASE:
            print(f"Sentences with a word that {network} does not know: {'; '.join(touched(place, network))}")


def cells_of(scored: Sequence[Sequence[Any]], name: str, *, is_first: bool) -> Iterator[str]:
    """BLEU on a test set; the gain over the first row, and its p."""
    values = [records[1][f"{name}_BLEU"] for records in scored]
    yield f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")
    gain = mean(records[1][f"{name}_BLEU"] - records[0][f"{name}_BLEU"] for records in scored)
    yield "" if is_first else f"{gain:+.2f}"
    yield "" if is_first else ", ".join(f"{records[1][f'{name}_p']:.3f}" for records in scored)


def main() -> None:
    """Train, translate, and print the tables."""
    given = arguments()
    place = Place(given)
    (given.folder / "translations").mkdir(parents=True, exist_ok=True)
    systems = list({system.title: system for name in given.tables for system in TABLES[name]}.values())
    wanted = dict.fromkeys([BASE, *(system.network for system in systems)])
    training = [place.train(network, seed) for network in wanted for seed in place.seeds(network)]
    with ProcessPoolExecutor(given.at_once, multiprocessing.get_context("spawn")) as pool:
        for commands in ([place.count_words()], training):
            list(pool.map(run, commands))
        attention = place.has_attention()
        translating = [
            place.translate(system, seed, test)
            for system in systems
            if attention or not system.needs_attention
            for seed in place.runs(system)
            for test in given.test
            if not place.output(system, seed, test).exists()
        ]
        list(pool.map(run, translating))
    for name in given.tables:
        print()
        print_table(place, TABLES[name], attention=attention)
        print("\n".join(format_published([name])))


if __name__ == "__main__":
    main()
