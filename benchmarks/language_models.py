"""Perplexities of neural language models: rows of Bengio et al. (2003), Table 1, and Mikolov et al. (2010), Table 2.

    python benchmarks/language_models.py TRAIN FOLDER --dev DEV --test TEXT... --lm ARPA
        [--papers bengio mikolov] [--train '--max-epochs 4'] [--dynamic-rates 0.1 0.003] [--at-once 2]

Orders, sizes and how often a word must be seen are the papers'; all else is `--preset small`. All texts are tokenised;
networks are trained on TRAIN, judged by DEV while they learn, and share the words of the n-gram model ARPA, which is
both papers' companion. Each learns in one thread, --train are further options for all. 3xRNN are the last three,
evenly; they go on learning after each sentence at each of --dynamic-rates. The published figures follow ours. Networks
stay in FOLDER and are not trained twice.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

from stages import run, settings

from moses_rnn.analysis.published import format_published

Figures = dict[str, list[str]]  # of each row of a table, by its first cell

# by paper: settings of moses-rnn-cslm train
NETWORKS: dict[str, dict[str, dict[str, object]]] = {
    "bengio": {
        "MLP1": {"order": 5, "hidden_size": 50, "embedding_size": 60, "direct": True},
        "MLP3": {"order": 5, "hidden_size": 0, "embedding_size": 60, "direct": True},
        "MLP5": {"order": 5, "hidden_size": 50, "embedding_size": 30, "direct": True},
        "MLP7": {"order": 3, "hidden_size": 50, "embedding_size": 30, "direct": True},
        "MLP9": {"order": 5, "hidden_size": 100, "embedding_size": 30, "direct": False},
    },
    "mikolov": {
        "RNN-60-20": {"hidden_size": 60, "min_count": 20},
        "RNN-90-10": {"hidden_size": 90, "min_count": 10},
        "RNN-250-5": {"hidden_size": 250, "min_count": 5},
        "RNN-250-2": {"hidden_size": 250, "min_count": 2},
        "RNN-400-10": {"hidden_size": 400, "min_count": 10},
    },
}
KINDS = {"bengio": ("bengio", "NPLM"), "mikolov": ("rnnlm", "RNNLM")}  # --network, and how tables call it
COMPANION = {"bengio": 0.5, "mikolov": 0.25}  # the n-gram model's weight beside a network


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--test", nargs="+", default=[])
    parser.add_argument("--lm", required=True)
    parser.add_argument("--papers", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--train", type=shlex.split, default=[], metavar="OPTIONS")
    parser.add_argument("--dynamic-rates", type=float, nargs="*", default=[0.1, 0.003])
    parser.add_argument("--at-once", type=int, default=1)
    return parser.parse_args()


def train(given: argparse.Namespace, paper: str, name: str) -> list[str]:
    """The command that trains a network, or goes on, or sees that it is done."""
    places = given.text, "--dev", given.dev, "--model", given.folder / name
    file = settings(given.folder / f"{name}.toml", NETWORKS[paper][name])
    options = "--network", KINDS[paper][0], "--preset", "small", *file
    return list(map(str, ("cslm", "train", *places, *options, "--threads", 1, "--quiet", *given.train)))


def perplexities(given: argparse.Namespace, names: Sequence[str], *options: object) -> Figures:
    """The rows of moses-rnn-cslm perplexity: each network, the n-gram model, and what is interpolated."""
    models = [given.folder / name for name in names]
    with io.TextIOWrapper(io.BytesIO(), "utf-8") as printed, redirect_stdout(printed):
        run(list(map(str, ("cslm", "perplexity", *models, given.dev, *given.test, "--lm", given.lm, *options))))
        printed.seek(0)
        rows = [line.strip("|\n").split("|") for line in printed if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows[2:]}


def rows_of(figures: Figures, lm: str, paper: str, network: str) -> Iterator[list[str]]:
    """A network's figures alone, and beside the n-gram model."""
    share = COMPANION[paper]
    yield figures[network]
    yield figures[f"{1 - share:g} {network}, {share:g} {lm}"]


def bengio(given: argparse.Namespace) -> Iterator[list[str]]:
    """Ten rows, and the n-gram model's."""
    lm, names = Path(given.lm).name, list(NETWORKS["bengio"])
    figures = perplexities(given, names)
    yield [lm, *figures[lm]]
    for name in names:
        number = int(name.removeprefix("MLP"))
        alone, mixed = rows_of(figures, lm, "bengio", f"{name} ({KINDS['bengio'][1]})")
        yield [f"MLP{number}: {', '.join(f'{key} {value}' for key, value in NETWORKS['bengio'][name].items())}", *alone]
        yield [f"MLP{number + 1}: MLP{number}, mixed", *mixed]


def mikolov(given: argparse.Namespace) -> Iterator[list[str]]:
    """Each network and three together, static and dynamic; alone, and with the n-gram model."""
    lm, names = Path(given.lm).name, list(NETWORKS["mikolov"])
    figures = perplexities(given, names)
    yield [lm, *figures[lm]]
    for name in names:
        alone, mixed = rows_of(figures, lm, "mikolov", f"{name} ({KINDS['mikolov'][1]})")
        yield [name, *alone]
        yield [f"{name}, with {lm}", *mixed]
    three = "the 3 networks evenly"
    ways: dict[str, list[object]] = {"static": []}
    ways |= {f"dynamic, {rate:g}": ["--dynamic", "sentence", "--dynamic-rate", rate] for rate in given.dynamic_rates}
    for way, options in ways.items():
        alone, mixed = rows_of(perplexities(given, names[-3:], *options), lm, "mikolov", three)
        yield [f"3xRNN {way}", *alone]
        yield [f"3xRNN {way}, with {lm}", *mixed]


def main() -> None:
    """Train, and print the tables."""
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    training = [train(given, paper, name) for paper in given.papers for name in NETWORKS[paper]]
    with ProcessPoolExecutor(given.at_once, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(run, training))
    texts = [Path(text).name for text in (given.dev, *given.test)]
    for paper in given.papers:
        print(f"\n| {' | '.join(['model', *texts])} |\n|{'---|' * (1 + len(texts))}")
        for row in {"bengio": bengio, "mikolov": mikolov}[paper](given):
            print(f"| {' | '.join(row)} |", flush=True)
        print("\n".join(format_published([paper])))


if __name__ == "__main__":
    main()
