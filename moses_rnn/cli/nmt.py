"""moses-rnn nmt: networks that read whole sentences, with dictionaries for them and trees as texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    ProgramGroup,
    StopRequest,
    check_inputs,
    command,
    inputs_of,
    print_err,
)
from moses_rnn.cli.inputs import output_to, parallel_texts
from moses_rnn.cli.nmt_translate import translate
from moses_rnn.cli.training import check_options, print_next, run_training, shown_presets, takes_settings
from moses_rnn.errors import FormatError, InputError, number_of
from moses_rnn.options import Argument, Force, Option, Output
from moses_rnn.training.presets import networks_of
from moses_rnn.training.training_options import Learning, RunOptions, SentenceOptions

if TYPE_CHECKING:
    from moses_rnn.moses.lexicon import LinkCounts

    Counted = tuple[LinkCounts, tuple[str, ...]]  # and the files that were read

LINES = 1 << 14  # written together
EPILOG = """\b
Example: train a network, translate a text with it, and score given translations:
  moses-rnn nmt train corpus/train --source en --target fr --model search
  moses-rnn nmt translate test.en --model search > test.out
  paste test.en test.fr | moses-rnn-score - --format tsv --model search -o test.scored
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Train a network on whole sentences, and translate with it, without Moses."""


TRAIN_EPILOG = f"""\b
Example: train for at most an hour on a laptop, add an n-best feature, and translate:
  moses-rnn nmt train corpus/train --source en --target fr --dev corpus/dev --model search
  moses-rnn nbest dev.100best.gz --source corpus/dev.en --add search -o dev.search.gz
  moses-rnn nmt translate --model search < corpus/test.en > test.fr
On all GPUs of a machine (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn nmt train corpus/train --source en --target fr \\
    --dev corpus/dev --model search

{shown_presets(*networks_of("sentences"))}
Texts must be tokenised and escaped, as Moses sees them. After any interruption, even kill -9, run the same command
again: it continues where it stopped. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts or model rejected,
{STOPPED} stopped and resumable.
"""


@command(TRAIN_EPILOG)
@takes_settings
def train(texts: SentenceOptions, learning: Learning, run: RunOptions) -> None:
    """Train a network on parallel texts. The texts are PREFIX.SOURCE and PREFIX.TARGET."""
    options = check_options(texts, learning, run)
    dev, endings = texts.dev or texts.prefix, (texts.source, texts.target)
    sides = (f"{prefix}.{ending}" for prefix in (texts.prefix, dev) for ending in endings)
    check_inputs(*sides, texts.alignment, texts.dev_alignment)
    run_training(options)
    text = f"{dev}.{endings[texts.inverse]}"
    print_next("moses-rnn", "nmt", "translate", text, "--model", texts.model, quiet=run.quiet or texts.right_to_left)


DICTIONARY_EPILOG = """\b
Examples: from a corpus and its word alignment; from a phrase table's pairs with one source word:
  moses-rnn nmt dictionary corpus/train --source en --target fr --alignment aligned.grow-diag-final-and > words.en-fr
  moses-rnn nmt dictionary phrase-table.gz > words.en-fr

Each line is "source target p", likeliest first, as translate --dictionary reads it; p is the link's share of all links
of the source word. Luong et al. keep links seen more than 100 times (--dictionary-count 101). Exit codes: 0 done, 1
failure, 2 wrong command line, 3 texts or table rejected.
"""


@command(DICTIONARY_EPILOG)
def dictionary(
    corpus: Annotated[str, Argument("PREFIX|TABLE")],
    *,
    source: Annotated[str | None, Option("The source text is PREFIX.SOURCE, plain or compressed")] = None,
    target: Annotated[str | None, Option("The target text is PREFIX.TARGET")] = None,
    alignment: Annotated[
        str | None, Option("Word alignment, one line per sentence pair: 0-0 1-2 …", metavar="FILE")
    ] = None,
    dictionary_count: Annotated[int, Option("Leave out links seen fewer times than this", min=1)] = 2,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Count linked words in aligned texts or in a phrase table."""
    from moses_rnn.moses.lexicon import lexicon_of

    if source and target and alignment:
        counts, inputs = _count_in_texts(corpus, source, target, alignment)
    elif source or target or alignment:
        raise click.UsageError("texts need --source, --target and --alignment; a phrase table takes none of them")
    else:
        counts, inputs = _count_in_table(corpus)
    lexicon = lexicon_of(counts, dictionary_count)
    if not lexicon.entries:
        most = max((count for of_word in counts.values() for count in of_word.values()), default=0)
        raise InputError(
            f"{alignment or corpus}: expected a link seen at least {number_of(dictionary_count, 'time')} "
            "(--dictionary-count), "
            f"found at most {most:,g}"
        )
    with output_to(output, force, inputs) as file:
        file.commit(b"".join(lexicon.lines()))
    pairs = sum(map(len, lexicon.entries.values()))
    print_err(
        f"{number_of(len(lexicon.entries), 'word')} with {number_of(pairs, 'translation')}, of "
        f"{number_of(len(counts), 'linked word')}"
    )


def _count_in_texts(corpus: str, source: str, target: str, alignment: str) -> Counted:
    check_inputs(f"{corpus}.{source}", f"{corpus}.{target}", alignment)
    from moses_rnn.moses.lexicon import count_links
    from moses_rnn.training.materials import ParallelTexts, Watch

    texts = ParallelTexts.of_prefix(corpus, source, target, alignment)
    counts = count_links(texts.aligned_pairs(Watch(lambda *_: None, StopRequest())))
    return counts, inputs_of(texts.source, texts.target, texts.links)


def _count_in_table(table: str) -> Counted:
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.moses.lexicon import count_links_of_table
    from moses_rnn.table.phrase_table import parse_table

    name = find_input(table)
    return count_links_of_table(parse_table(read_lines(name), name), name), (name,)


LINEARISE_EPILOG = """\b
Examples: texts from bracketed trees and from dependencies; all sentences of a test set, for parsing:
  moses-rnn nmt linearise train.trees -o train
  moses-rnn nmt linearise en_ewt-ud-train.conllu -o train
  moses-rnn nmt linearise en_ewt-ud-test.conllu -o test --words-only

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
    from moses_rnn.files.outputs import output_files
    from moses_rnn.files.streams import find_input, without_compression_suffix

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
    from moses_rnn.analysis.trees import read_trees
    from moses_rnn.files.streams import read_text

    for tree in read_trees(read_text(name), name):
        yield b" ".join(tree.words), b" ".join(tree.tokens)


def _lines_of_dependencies(name: str, words_only: bool) -> Iterator[tuple[bytes, bytes] | None]:
    """Yield the words and the actions of each sentence; None where arcs cross."""
    from moses_rnn.analysis.dependencies import find_actions, read_conllu
    from moses_rnn.files.streams import read_text

    for sentence in read_conllu(read_text(name), name):
        actions = [] if words_only else find_actions(sentence)
        yield None if actions is None else (b" ".join(sentence.words), b" ".join(actions))


REBUILD_EPILOG = """\b
Examples: bracketed trees from linearised ones; relations as factors of a text for training Moses:
  moses-rnn nmt rebuild test.out --words test.words --as trees -o test.trees
  moses-rnn nmt rebuild corpus/train.actions --words corpus/train.en --as factors -o corpus/factored.en

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
    from moses_rnn.table.phrases import words as words_of

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
    from moses_rnn.analysis import trees
    from moses_rnn.analysis.dependencies import format_conllu, format_factors, run_actions

    if kind == "trees":
        tree, malformed = trees.rebuild(written, text)
        return trees.format_tree(tree) + b"\n", malformed
    made = run_actions(written, text)
    piece = format_conllu(made.sentence) if kind == "conllu" else format_factors(made.sentence) + b"\n"
    return piece, made.malformed


for subcommand in (train, translate, dictionary, linearise, rebuild):
    main.add_command(subcommand)
