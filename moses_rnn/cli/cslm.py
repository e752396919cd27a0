"""moses-rnn cslm: train language models of the target side, compare them, export them for the decoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    ProgramGroup,
    check_inputs,
    choose_device,
    command,
    inputs_of,
    print_err,
    print_out,
    warn,
)
from moses_rnn.cli.training import check_options, print_next, run_training, shown_presets, takes_settings
from moses_rnn.errors import InputError, OutputError, number_of
from moses_rnn.options import Device, Force, ModelFolder, ModelFolders, Option, Threads
from moses_rnn.training.presets import networks_of
from moses_rnn.training.training_options import Learning, RunOptions, TextOptions

if TYPE_CHECKING:
    from moses_rnn.analysis.perplexity import Contender, Scored
    from moses_rnn.models.kenlm import KenlmScorer
    from moses_rnn.models.language_models import LanguageModel, Shares
    from moses_rnn.models.model import Model
    from moses_rnn.models.shares import ClosedVocabulary

EPILOG = """\b
Example: train on the corpus's target side, compare with the system's n-gram model, and export for the decoder:
  moses-rnn cslm train train.fr --model cslm --self-normalise 0.1
  moses-rnn cslm perplexity dev.fr test.fr --model cslm --lm lm.arpa
  moses-rnn cslm export-nplm cslm.nplm --model cslm --dev dev.fr
\b
A recurrent network for n-best lists instead:
  moses-rnn cslm train train.fr --network rnnlm --dev dev.fr --model rnnlm
  moses-rnn nbest add dev.nbest.gz --source dev.en --add rnnlm -o dev.more.gz
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Train and use neural language models: Schwenk's CSLM (as in the paper), Bengio's model and Mikolov's RNNLM."""


TRAIN_EPILOG = f"""\b
Examples:
  moses-rnn cslm train train.fr --model cslm --max-minutes 20
  moses-rnn cslm train train.fr --network rnnlm --dev dev.fr --model rnnlm
With several processes (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn cslm train train.fr --model cslm

{shown_presets(*networks_of("text"))}
Tokenise texts like the decoder's output, one sentence per line. After any interruption, run the same command again
to continue. Exit codes: 0 done, 1 failure, 2 usage error, 3 text or model refused,
{STOPPED} stopped and resumable.
"""


@command(TRAIN_EPILOG)
@takes_settings
def train(texts: TextOptions, learning: Learning, run: RunOptions) -> None:
    """Train a language model on tokenised TEXTS, joined into one."""
    options = check_options(texts, learning, run)
    check_inputs(*texts.texts, texts.dev)
    run_training(options)
    text = texts.dev or texts.texts[0]
    print_next("moses-rnn", "cslm", "perplexity", text, "--model", texts.model, quiet=run.quiet)


PERPLEXITY_EPILOG = """\b
Example: the first text sets the interpolation weights:
  moses-rnn cslm perplexity dev.fr test.fr --model cslm --lm lm.arpa
  moses-rnn cslm perplexity dev.fr test.fr --model rnnlm.1 --model rnnlm.2 --lm lm.arpa --dynamic sentence

\b
All models share one vocabulary: the words of the n-gram model and of the shortlists. Words outside a shortlist share
the probability of the network's <unk> as the n-gram model divides it, or evenly with --rare uniform. Without either,
only words in all shortlists count. --lm must be an ARPA file, plain or .gz, because a binary one does not list its
words. Models of subwords have no shortlist: measure them without --lm and --rare.
"""


DYNAMIC = "rnnlm"  # the network that learns from what it reads


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Texts, the models to compare on them, and how."""

    texts: tuple[str, ...]
    models: ModelFolders
    lm: Annotated[
        tuple[str, ...], Option("ARPA n-gram model for comparison, backoff and interpolation; repeat it for several")
    ] = ()
    rare: Annotated[
        str | None,
        Option("Share the probability of <unk> evenly among the words outside the shortlist", choices=("uniform",)),
    ] = None
    vocabulary: Annotated[
        str | None,
        Option(
            "With --rare: text whose words are added to those of all shortlists [default: TEXTS; with --lm, its words]"
        ),
    ] = None
    dynamic: Annotated[
        str | None,
        Option("Let RNNLMs learn from the text after each word or sentence", choices=("word", "sentence")),
    ] = None
    dynamic_rate: Annotated[
        float | None, Option("Learning rate of --dynamic; Mikolov et al. use 0.1 [default: 0.003]", min=0)
    ] = None
    device: Device = "auto"
    threads: Threads = None


@command(PERPLEXITY_EPILOG)
def perplexity(given: Judging) -> None:
    """Print the perplexities of tokenised TEXTS. Models are measured alone and interpolated."""
    _check_judging(given)
    check_inputs(*given.models, *given.texts, *given.lm, given.vocabulary)
    from moses_rnn.analysis.perplexity import score_text, sentences_of
    from moses_rnn.cli.progress import progress
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.models.open import check_shortlist, open_language_model
    from moses_rnn.models.shares import ClosedVocabulary, count_outside

    given = replace(given, device=choose_device(given.device, given.threads))
    models = [open_language_model(folder) for folder in given.models]
    if given.dynamic and not any(model.architecture.key == DYNAMIC for model in models):
        raise InputError(f"{models[0].folder}: expected an RNNLM for --dynamic, found: {models[0].title}")
    if given.lm or given.rare:
        for model in models:
            check_shortlist(model)
    texts = [(path, sentences_of(read_text(path))) for path in map(find_input, given.texts)]
    n_grams = _n_gram_models(given.lm)
    closed = ClosedVocabulary([model.target_vocabulary for model in models], n_grams[0]) if n_grams else None
    lines = [line for _, sentences in texts for line in sentences]
    sharing = _words_sharing(models, lines, given) if given.rare else set()
    outside = count_outside(lines, sharing) if given.rare else 0
    shares = list(_shares(models, sharing, outside, n_grams, given))
    names = _names([path for path, _ in texts])
    scored = []
    total, done = sum(len(sentences) for _, sentences in texts), 0
    with progress("sentences") as advanced:

        def observe(more: int) -> None:
            nonlocal done
            done += more
            advanced(done, done / total)

        for (path, sentences), name in zip(texts, names, strict=True):  # models that learn start anew for each text
            contenders = _contenders(models, shares, n_grams, closed, given)
            text = score_text(sentences, path, contenders, observe)
            scored.append(replace(text, name=name))
    _print_table(scored, contenders, shared=bool(given.lm or given.rare))
    if outside:
        print_out(f"\nTokens in no vocabulary: {outside:,}. They share as one word, like <unk> in an n-gram model.")
    if closed is not None and closed.strange:
        print_out(
            f"\nShortlist words that the n-gram model does not know: {len(closed.strange):,}. Each of them, and each "
            f"word that no model knows, gets an equal share of the n-gram model's <unk>.",
        )


def _check_judging(given: Judging) -> None:
    if given.vocabulary and not given.rare:
        raise click.UsageError("--vocabulary needs --rare uniform")
    if given.vocabulary and given.lm:
        raise click.UsageError("--vocabulary: with --lm the words are those of the n-gram model")
    if given.dynamic_rate is not None and not given.dynamic:
        raise click.UsageError("--dynamic-rate needs --dynamic")


def _print_table(scored: Sequence[Scored], contenders: Sequence[Contender], *, shared: bool) -> None:
    """Print the table of the models, alone and interpolated.

    `shared`: whether every model gives a probability to every word.
    """
    from moses_rnn.analysis.perplexity import as_table, interpolations

    counted = scored if shared else [text.only(~text.outside) for text in scored]
    print_out("\n".join([*as_table(counted, interpolations(contenders, counted[0])), ""]))
    left_out = "" if shared else ", which do not count"
    for text in scored:
        print_out(
            f"{text.name}: {number_of(text.outside.size, 'token')}, {text.outside.mean():.2%} outside a "
            f"shortlist{left_out}"
        )


def _n_gram_models(files: Sequence[str]) -> list[KenlmScorer]:
    """Open the n-gram models; all must know the words of the first."""
    from moses_rnn.files.streams import regular_file
    from moses_rnn.models.kenlm import KenlmScorer
    from moses_rnn.moses.arpa import check_same_words, words_of_arpa

    paths = list(map(regular_file, files))
    models = [KenlmScorer(path) for path in paths]
    if len(paths) > 1:
        check_same_words({path: words_of_arpa(path) for path in paths})
    return models


def _words_sharing(models: Sequence[Model], lines: Sequence[bytes], given: Judging) -> set[bytes]:
    """Return the words among which --rare uniform divides <unk>, with those in all shortlists."""
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.models.shares import types_of
    from moses_rnn.moses.arpa import words_of_arpa

    types = {word for model in models for word in model.target_vocabulary.words}
    if given.lm:
        return types | words_of_arpa(find_input(given.lm[0]))
    if not given.vocabulary:
        return types | types_of(lines)
    named = types_of(read_text(find_input(given.vocabulary)))
    if not named:
        raise InputError(f"{given.vocabulary}: expected a text with words, found none")
    return types | named


def _shares(
    models: Sequence[Model], sharing: set[bytes], outside: int, n_grams: Sequence[KenlmScorer], given: Judging
) -> Iterator[Shares | None]:
    """Yield how each model's <unk> is divided among the words outside its shortlist.

    `outside` is the number of tokens that --rare uniform finds in no vocabulary; these share as one word.
    """
    from moses_rnn.models.shares import even_shares, open_backoff

    vocabularies = [model.target_vocabulary for model in models]
    if given.rare:
        has_one = bool(given.lm or outside)
        yield from (even_shares(sharing, vocabulary, with_unknown=has_one) for vocabulary in vocabularies)
    elif n_grams:
        yield from (open_backoff(given.lm[0], vocabulary, n_grams[0]) for vocabulary in vocabularies)
    else:
        yield from [None] * len(models)


def _contenders(
    models: Sequence[Model],
    shares: Sequence[Shares | None],
    n_grams: Sequence[KenlmScorer],
    closed: ClosedVocabulary | None,
    given: Judging,
) -> list[Contender]:
    """Return the models to compare, all over one vocabulary."""
    from moses_rnn.analysis.perplexity import Contender
    from moses_rnn.models.dynamic import RATE, DynamicRnnlm
    from moses_rnn.networks.compute import Compute

    contenders, compute = [], Compute(given.device)
    folders, files = _names(list(map(str, given.models))), _names(given.lm)
    for folder, model, of_model in zip(folders, models, shares, strict=True):
        name = model.name
        network: LanguageModel = model.make_language_model(compute, of_model)
        if given.dynamic and model.architecture.key == DYNAMIC:
            name += f", dynamic by {given.dynamic}"
            rate = RATE if given.dynamic_rate is None else given.dynamic_rate
            network = DynamicRnnlm(model, given.dynamic, compute, of_model, rate=rate)
        if closed and not given.rare:  # that is even among all already
            network = closed.compare(network, model.target_vocabulary)
        contenders.append(Contender(f"{folder} ({name})", network, model.architecture.key))
    if closed:
        contenders += [Contender(file, closed.compare(lm), None) for file, lm in zip(files, n_grams, strict=True)]
    return contenders


def _names(paths: Sequence[str]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are equal or empty."""
    names = [Path(path).name for path in paths]
    return [name if name and names.count(name) == 1 else path for path, name in zip(paths, names, strict=True)]


NPLM_EPILOG = """\b
Example:
  moses-rnn cslm export-nplm cslm.nplm --model cslm --dev dev.fr

The result is for a Moses built with --with-nplm. Its NeuralLM does not normalise, so train with --self-normalise. The
mean of log Z on the --dev text is subtracted from the output biases.
"""
FAR_FROM_NORMAL = 0.5  # nats a word


@command(NPLM_EPILOG)
def export_nplm(
    output: str,
    *,
    model: ModelFolder,
    dev: Annotated[str, Option("Tokenised text on which to measure log Z, the log of the normaliser")],
    force: Force = False,
) -> None:
    """Write a CSLM as an NPLM text file. Print the moses.ini lines that load it."""
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.files.streams import STANDARD_STREAM, find_input, is_gzip, read_text

    if output == STANDARD_STREAM or is_gzip(output):
        raise OutputError(f"{output}: expected the name of a plain file, as NPLM reads it")
    check_inputs(model, dev)
    from moses_rnn.models.open import open_language_model
    from moses_rnn.moses.ini import is_readable_path
    from moses_rnn.moses.nplm import nplm_network
    from moses_rnn.networks.cslm import CSLM, normalisers

    cslm = open_language_model(model)
    if cslm.architecture is not CSLM or cslm.of_subwords:
        expected = "a CSLM of words, the network that NeuralLM computes"
        found = "one of subwords" if cslm.of_subwords else cslm.architecture.title
        raise InputError(f"{model}: expected {expected}, found: {found}")
    dev = find_input(dev)
    with OutputFile(output, force=force, inputs=inputs_of(dev, model)) as file:
        norms = normalisers(cslm.network, cslm.target_vocabulary, read_text(dev), dev)
        weights = {name: tensor.float().cpu().numpy() for name, tensor in cslm.network.named_parameters()}
        for line in nplm_network(cslm.config.order, cslm.target_vocabulary.words, weights, norms.mean).lines():
            file.append(line)
        file.commit()
    print_err(
        f"log Z on {number_of(norms.tokens, 'word')} of {dev}: mean {norms.mean:.4f}, which is subtracted; "
        "mean |log Z| "
        f"{norms.mean_abs:.4f} before, {norms.mean_abs_without_mean:.4f} after"
    )
    if norms.mean_abs_without_mean > FAR_FROM_NORMAL:
        warn("the scores are far from probabilities: train with --self-normalise 0.1, for example")
    path = str(Path(output).absolute())
    if not is_readable_path(path):
        warn(f"{path}: Moses cannot read paths with blanks or '#': move the file before using it")
    order = cslm.config.order
    print_out(f"[feature]\nNeuralLM name=CSLM0 order={order} path={path} factor=0\n\n[weight]\nCSLM0= 0.1")


for subcommand in (train, perplexity, export_nplm):
    main.add_command(subcommand)
