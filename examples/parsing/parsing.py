"""Parsing with sentence networks: trees as texts for training, trees from what a network wrote, and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

import click
import trees
from dependencies import find_actions, format_conllu, format_factors, read_conllu, run_actions
from evaluation import compare_parses

from moses_rnn.analysis.grids import LAYOUTS
from moses_rnn.cli.analyse_options import Layout, named_files
from moses_rnn.cli.command import CONTEXT, ProgramGroup, check_inputs, command, inputs_of, print_err, print_out
from moses_rnn.cli.inputs import output_to, parallel_texts, text_of
from moses_rnn.errors import FormatError, InputError, number_of
from moses_rnn.files.outputs import output_files
from moses_rnn.files.streams import find_input, read_text, without_compression_suffix
from moses_rnn.options import Argument, Force, Option, Output
from moses_rnn.table.phrases import words as words_of

LINES = 1 << 14  # written together


@click.group(cls=ProgramGroup, context_settings=CONTEXT)
def main() -> None:
    """Turn treebanks into texts for moses-rnn nmt train, and back."""


LINEARISE_EPILOG = """\b
Examples: texts from bracketed trees and from dependencies; all sentences of a test set, for parsing:
  python examples/parsing/parsing.py linearise train.trees -o train
  python examples/parsing/parsing.py linearise en_ewt-ud-train.conllu -o train
  python examples/parsing/parsing.py linearise en_ewt-ud-test.conllu -o test --words-only

A file whose name ends in .conllu, compressed or not, holds dependencies; any other file holds trees. This writes
PREFIX.words, and either PREFIX.brackets, with trees linearised as (S (NP XX XX )NP (VP XX )VP )S, or PREFIX.actions,
with the actions of an arc-standard parser: SH LA:det SH RA:root. moses-rnn nmt train learns these from words like any
translation. Empty elements (-NONE-) are no words; brackets around nothing else are left out. Sentences with crossing
arcs have no actions; they are left out and counted. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 treebank
rejected.
"""


@command(LINEARISE_EPILOG)
def linearise(
    treebank: str,
    *,
    words_only: Annotated[bool, Option("Write only PREFIX.words, even for sentences with crossing arcs")] = False,
    output: Annotated[str, Option("Prefix of the texts", "-o --output", metavar="PREFIX")],
    force: Force = False,
) -> None:
    """Write the trees of a treebank as sequences. A network can learn to write these from the sentences of TREEBANK."""
    name = find_input(treebank)
    dependencies = without_compression_suffix(name).suffix == ".conllu"
    lines = _lines_of_dependencies(name, words_only) if dependencies else _lines_of_trees(name)
    endings = ["words"] if words_only else ["words", "actions" if dependencies else "brackets"]
    paths = [f"{output}.{ending}" for ending in endings]
    written = left_out = 0
    with output_files(paths, force=force, inputs=(name,)) as files:
        while block := list(islice(lines, LINES)):
            whole = [pair for pair in block if pair is not None]
            written, left_out = written + len(whole), left_out + len(block) - len(whole)
            for file, text in zip(files, zip(*whole, strict=True), strict=False):
                file.append(b"".join(line + b"\n" for line in text))
        if not written:
            expected = "sentences without crossing arcs" if dependencies else "trees"
            raise InputError(f"{name}: expected {expected}, found none")
    crossing = f"; {left_out:,} with crossing arcs left out" if left_out else ""
    print_err(f"{number_of(written, 'sentence')} in {' and '.join(paths)}{crossing}")


def _lines_of_trees(name: str) -> Iterator[tuple[bytes, bytes] | None]:

    for tree in trees.read_trees(read_text(name), name):
        yield b" ".join(tree.words), b" ".join(tree.tokens)


def _lines_of_dependencies(name: str, words_only: bool) -> Iterator[tuple[bytes, bytes] | None]:
    """Yield the words and the actions of each sentence; None where arcs cross."""
    for sentence in read_conllu(read_text(name), name):
        actions = [] if words_only else find_actions(sentence)
        yield None if actions is None else (b" ".join(sentence.words), b" ".join(actions))


REBUILD_EPILOG = """\b
Examples: bracketed trees from linearised ones; relations as factors of a text for training Moses:
  python examples/parsing/parsing.py rebuild test.out --words test.words --as trees -o test.trees
  python examples/parsing/parsing.py rebuild train.actions --words train.en --as factors -o train.tagged

WRITTEN has one line for each line of --words: linearised trees for --as trees, arc-standard actions for conllu and
factors. Malformed lines are repaired and counted (see docs/nbest.md). Factors are word|relation; a | within either is
escaped. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts rejected.
"""


@command(REBUILD_EPILOG)
def rebuild(
    written: str,
    *,
    words: Annotated[str, Option("The parsed sentences, one for each line of WRITTEN")],
    kind: Annotated[
        Literal["trees", "conllu", "factors"],
        Option("Bracketed trees, one per line; dependencies as CoNLL-U; word|relation, as Moses reads factors", "--as"),
    ],
    output: Output = "-",
    force: Force = False,
) -> None:
    """Make trees or factors from a network's output. Each line of --words gives the words."""
    check_inputs(words, written)

    pieces, malformed = [], 0
    lines = zip(*parallel_texts(words, written), strict=True)
    with output_to(output, force, inputs_of(written, words)) as file:
        for number, (sentence, line) in enumerate(lines, 1):
            text = words_of(sentence)
            if kind == "conllu" and not text:  # CoNLL-U cannot represent it
                raise FormatError(words, number, "a sentence", "a blank line")
            piece, is_malformed = _rebuild(kind, words_of(line), text)
            pieces.append(piece)
            malformed += is_malformed
        file.commit(b"".join(pieces))
    print_err(f"{number_of(len(pieces), 'sentence')}; {malformed:,} malformed")


def _rebuild(kind: str, written: list[bytes], text: list[bytes]) -> tuple[bytes, bool]:
    """Return the rebuilt sentence, and whether the network's output is malformed."""
    if kind == "trees":
        tree, malformed = trees.rebuild(written, text)
        return trees.format_tree(tree) + b"\n", malformed
    made = run_actions(written, text)
    piece = format_conllu(made.sentence) if kind == "conllu" else format_factors(made.sentence) + b"\n"
    return piece, made.malformed


EVALUATE_EPILOG = """\b
Examples: two networks that learned words -> brackets, or words -> actions:
  python examples/parsing/parsing.py evaluate test.trees search.brackets lstm.brackets
  python examples/parsing/parsing.py evaluate test.conllu search.actions lstm.actions

OUTPUT has one line per tree of GOLD. The results end with two baselines that ignore the words.

If GOLD has bracketed trees, OUTPUT has linearised ones, (S (NP XX )NP (VP XX )VP )S, or bracketed ones. An output that
is not a tree is repaired and counted as malformed. All brackets count, including the root's and those of punctuation,
but empty elements (-NONE-) do not. The baselines, with the commonest labels of GOLD, are the root alone and a bracket
from each word to the end.

If GOLD is CoNLL-U, OUTPUT has arc-standard actions, SH LA:det RA:root ... Impossible actions are skipped, and leftover
words attach to the root; outputs with either are malformed. All words count, including punctuation. In the baselines,
each word attaches to the one before it, or to the next one, by the commonest relation of GOLD.
"""


@command(EVALUATE_EPILOG)
def evaluate(gold: str, outputs: Annotated[tuple[str, ...], Argument("OUTPUT...")], *, layout: Layout = "text") -> None:
    """Compare parses with gold trees. Show F1 for bracketed trees, UAS and LAS for CoNLL-U, and malformed outputs."""
    name = find_input(gold)
    lines = list(read_text(name))
    texts = {key: text_of(path) for key, path in named_files(outputs).items()}
    print_out(LAYOUTS[layout](compare_parses(lines, name, texts)))


for subcommand in (linearise, rebuild, evaluate):
    main.add_command(subcommand)

if __name__ == "__main__":
    main()
