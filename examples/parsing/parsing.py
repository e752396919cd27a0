"""Turn treebanks into texts from which a network learns to parse, and its outputs into trees (see README.md).

    python examples/parsing/parsing.py linearise TREEBANK -o PREFIX [--words-only]
    python examples/parsing/parsing.py evaluate TREEBANK OUTPUT...
    python examples/parsing/parsing.py rebuild OUTPUT --words WORDS --as trees|conllu|factors > FILE

A TREEBANK whose name ends in .conllu holds dependencies, any other bracketed trees.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dependencies import Dependencies, find_actions, format_conllu, format_factors, read_conllu, run_actions
from evaluation import Table, compare_attachments, compare_brackets
from trees import Tree, format_tree, read_trees, rebuild, split

from moses_rnn import InputError


def read_lines(path: Path) -> list[bytes]:
    """Read the lines of a text, without their ends."""
    lines = path.read_bytes().split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.rstrip(b"\r") for line in lines]


def read_treebank(path: Path) -> list[Tree] | list[Dependencies]:
    """Read trees or, if the name ends in .conllu, dependencies."""
    data, name = path.read_bytes(), str(path)
    trees = list(read_conllu(data, name)) if path.suffix == ".conllu" else list(read_trees(data, name))
    if not trees:
        raise InputError(f"{path}: expected trees, found none")
    return trees


def linearise(given: argparse.Namespace) -> None:
    """Write the words of a treebank, and its trees as sequences that a network can learn to write."""
    trees = read_treebank(given.treebank)
    if given.words_only:
        texts = {"words": [tree.words for tree in trees]}
    else:
        pairs = [(tree.words, sequence) for tree in trees if (sequence := _sequence_of(tree)) is not None]
        if not pairs:
            raise InputError(f"{given.treebank}: expected trees without crossing arcs, found none")
        ending = "brackets" if isinstance(trees[0], Tree) else "actions"
        texts = dict(zip(["words", ending], map(list, zip(*pairs, strict=True)), strict=True))
    paths = [Path(f"{given.output}.{ending}") for ending in texts]
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists already")
    for path, lines in zip(paths, texts.values(), strict=True):
        path.write_bytes(b"".join(b" ".join(line) + b"\n" for line in lines))
    written = len(texts["words"])
    print(f"{written:,} sentences; {len(trees) - written:,} with crossing arcs left out", file=sys.stderr)


def _sequence_of(tree: Tree | Dependencies) -> Sequence[bytes] | None:
    return tree.tokens if isinstance(tree, Tree) else find_actions(tree)


def evaluate(given: argparse.Namespace) -> None:
    """Compare what networks wrote with a treebank: F1, or UAS and LAS."""
    trees = read_treebank(given.treebank)
    outputs = [(str(path), read_lines(path)) for path in given.outputs]
    compare: Callable[..., Table] = compare_brackets if isinstance(trees[0], Tree) else compare_attachments
    print(compare(trees, outputs))


def rebuild_all(given: argparse.Namespace) -> None:
    """Print trees, dependencies or factors for what a network wrote."""
    sentences, outputs = read_lines(given.words), read_lines(given.written)
    if len(outputs) != len(sentences):
        raise InputError(f"{given.written}: expected {len(sentences):,} lines, as --words has, found {len(outputs):,}")
    pieces, malformed = [], 0
    for number, (sentence, output) in enumerate(zip(sentences, outputs, strict=True), 1):
        words = split(sentence)
        if given.kind == "conllu" and not words:  # which CoNLL-U cannot represent
            raise InputError(f"{given.words}:{number}: expected a sentence, found a blank line")
        piece, is_malformed = _rebuild(given.kind, split(output), words)
        pieces.append(piece)
        malformed += is_malformed
    sys.stdout.buffer.write(b"".join(pieces))
    print(f"{len(pieces):,} sentences; {malformed:,} malformed", file=sys.stderr)


def _rebuild(kind: str, written: list[bytes], words: list[bytes]) -> tuple[bytes, bool]:
    """Return the text of a sentence, and whether the network's output is malformed."""
    if kind == "trees":
        tree, malformed = rebuild(written, words)
        return format_tree(tree) + b"\n", malformed
    made = run_actions(written, words)
    piece = format_conllu(made.sentence) if kind == "conllu" else format_factors(made.sentence) + b"\n"
    return piece, made.malformed


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("linearise", help=linearise.__doc__, description=linearise.__doc__)
    command.add_argument("treebank", type=Path, help="trees in brackets or, if the name ends in .conllu, dependencies")
    endings = "write PREFIX.words, and PREFIX.brackets or PREFIX.actions"
    command.add_argument("-o", "--output", required=True, metavar="PREFIX", help=endings)
    command.add_argument("--words-only", action="store_true", help="write only PREFIX.words, of all sentences")
    command.set_defaults(run=linearise)

    command = commands.add_parser("evaluate", help=evaluate.__doc__, description=evaluate.__doc__)
    command.add_argument("treebank", type=Path, help="the right trees")
    command.add_argument("outputs", type=Path, nargs="+", metavar="OUTPUT", help="one line for each tree")
    command.set_defaults(run=evaluate)

    command = commands.add_parser("rebuild", help=rebuild_all.__doc__, description=rebuild_all.__doc__)
    command.add_argument("written", type=Path, metavar="OUTPUT", help="what the network wrote")
    command.add_argument("--words", type=Path, required=True, help="the sentences, one for each line of OUTPUT")
    command.add_argument("--as", dest="kind", choices=["trees", "conllu", "factors"], required=True, help="the form")
    command.set_defaults(run=rebuild_all)

    given = parser.parse_args()
    try:
        given.run(given)
    except (OSError, InputError) as error:
        sys.exit(f"parsing.py: {error}")


if __name__ == "__main__":
    main()
