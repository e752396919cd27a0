"""moses-rnn cslm perplexity: what language models make of texts, alone and together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    FiniteFloat,
    Program,
    check_inputs,
    choose_device,
    model_option,
    print_out,
    reports_errors,
    takes,
    threads_option,
)
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.perplexity import Contender, Scored
    from moses_rnn.scorers.kenlm import KenlmScorer
    from moses_rnn.scorers.language_models import LanguageModel, Shares
    from moses_rnn.scorers.open import Model
    from moses_rnn.scorers.shares import ClosedVocabulary

EPILOG = """\b
Example: the first text decides the interpolation's weights:
  moses-rnn cslm perplexity dev.fr test.fr --model cslm --lm lm.arpa
  moses-rnn cslm perplexity dev.fr test.fr --model rnnlm.1 --model rnnlm.2 --lm lm.arpa --dynamic sentence

\b
All models share one vocabulary, that of the n-gram model and the shortlists together: words outside a shortlist get
their n-gram model's share of what the network gives to <unk>, or with --rare uniform all as much. Without either only
words of all shortlists count. --lm must be an ARPA file, plain or .gz: a binary one does not say which words it knows.
"""


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Options of `perplexity`."""

    texts: tuple[str, ...]
    models: tuple[Path, ...]
    lm: tuple[str, ...]
    rare: str | None
    vocabulary: str | None
    dynamic: str | None
    dynamic_rate: float | None
    device: str
    threads: int | None


@dataclass(frozen=True)
class Text:
    """A text to be scored."""

    path: str
    name: str  # in tables
    sentences: list[bytes]  # without empty lines


@click.command("perplexity", cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("texts", nargs=-1, required=True)
@model_option("models", multiple=True, required=True, text="Model folder; repeat it for several")
@click.option("--lm", multiple=True, help="An n-gram model to compare, to back off to and to interpolate with; ARPA")
@click.option("--rare", type=click.Choice(["uniform"]), help="Share <unk> evenly among the words outside the shortlist")
@click.option(
    "--vocabulary",
    help="With --rare: a text that has these words [default: TEXTS; with --lm its words]; those of all shortlists "
    "are among them",
)
@click.option(
    "--dynamic",
    type=click.Choice(["word", "sentence"]),
    help="RNNLMs learn from the text that they read, after each word or each sentence",
)
@click.option(
    "--dynamic-rate", type=FiniteFloat(0), help="Learning rate of --dynamic; the paper's is 0.1 [default: 0.003]"
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@threads_option
@reports_errors
@takes(Judging)
def perplexity(given: Judging) -> None:
    """Print perplexities of tokenised TEXTS by each model, by n-gram models, and by all together."""
    _check(given)
    check_inputs(*given.models, *given.texts, *given.lm, given.vocabulary)
    import torch

    from moses_rnn.analysis.perplexity import score_text
    from moses_rnn.scorers.open import open_language_model
    from moses_rnn.scorers.shares import ClosedVocabulary

    if given.threads:
        torch.set_num_threads(given.threads)

    models = [open_language_model(folder) for folder in given.models]
    if given.dynamic and not any(_learns(model, given) for model in models):
        raise InputError(f"{models[0].folder}: expected an RNNLM for --dynamic, found: {models[0].title}")
    texts = _read(given.texts)
    n_grams = _n_gram_models(given.lm)
    closed = ClosedVocabulary([model.target_vocabulary for model in models], n_grams[0]) if n_grams else None
    shares = list(_shares(models, n_grams, given))
    scored = []
    with _progress(texts) as show:
        for text in texts:  # models that learn begin each text anew
            contenders = _contenders(models, shares, n_grams, closed, given)
            scored.append(replace(score_text(text.sentences, text.path, contenders, show), name=text.name))
    if [model.name for model in models] == ["CSLM"] and len(n_grams) < 2 and not given.rare:
        _put_cslm_table(scored, shares[0])
    else:
        _put_table(scored, contenders, shared=bool(given.lm or given.rare))
    if closed is not None and closed.strange:
        print_out(
            f"\nWords of the shortlists that the n-gram model does not know: {len(closed.strange):,}. They, and all "
            "that no model knows, have an even share each of its <unk>.",
        )


def _check(given: Judging) -> None:
    """Refuse what does not go together."""
    if given.vocabulary and not given.rare:
        raise click.UsageError("--vocabulary is for --rare uniform")
    if given.vocabulary and given.lm:
        raise click.UsageError("--vocabulary: with --lm the words are those of the n-gram model")
    if given.rare and not given.vocabulary and not given.lm and "-" in given.texts:
        raise click.UsageError("--rare uniform reads standard input twice: name a --vocabulary")
    if given.dynamic_rate is not None and not given.dynamic:
        raise click.UsageError("--dynamic-rate is for --dynamic")


def _put_cslm_table(scored: Sequence[Scored], backoff: Shares | None) -> None:
    """A CSLM by itself, and perhaps an n-gram model."""
    from moses_rnn.analysis.perplexity import as_cslm_table, best_weights
    from moses_rnn.scorers.backoff import Backoff

    weight = best_weights(scored[0])[0] if backoff else None
    print_out("\n".join(as_cslm_table(scored, weight)))
    if isinstance(backoff, Backoff):
        print_out(
            f"\nThe weight is the best for {scored[0].name}. Outside the shortlist: {backoff.words:,} words of the "
            f"n-gram model, <unk> among them, with a mass of {backoff.outside:.4f} without context.",
        )


def _put_table(scored: Sequence[Scored], contenders: Sequence[Contender], *, shared: bool) -> None:
    """Any models, each alone and together; `shared` is whether all give a probability to every word."""
    from moses_rnn.analysis.perplexity import as_table, interpolations

    counted = scored if shared else [text.only(~text.outside) for text in scored]
    print_out("\n".join([*as_table(counted, interpolations(contenders, counted[0])), ""]))
    left_out = "" if shared else ", which do not count"
    for text in scored:
        print_out(f"{text.name}: {text.outside.size:,} tokens, {text.outside.mean():.2%} outside a shortlist{left_out}")


def _n_gram_models(files: Sequence[str]) -> list[KenlmScorer]:
    """N-gram models, which must all know the words of the first.

    Raises:
        InputError: one does not, or cannot be read.
    """
    from moses_rnn.files.streams import find_input
    from moses_rnn.scorers.kenlm import KenlmScorer

    paths = [find_input(file) for file in files]
    models = [KenlmScorer(path) for path in paths]
    if len(models) > 1:
        words = [_words_of_arpa(path) for path in paths]
        for path, known in zip(paths, words, strict=True):
            if known != words[0]:
                different = len(known ^ words[0])
                raise InputError(f"{path}: expected the words of {paths[0]}, found {different:,} different ones")
    return models


def _words_of_arpa(path: str) -> set[bytes]:
    from moses_rnn.files.streams import read_lines
    from moses_rnn.moses.arpa import parse_arpa

    return {n_gram[0] for n_gram in parse_arpa(read_lines(path), path) if len(n_gram) == 1}


def _shares(models: Sequence[Model], n_grams: Sequence[KenlmScorer], given: Judging) -> Iterator[Shares | None]:
    """What the words outside each model's shortlist get of its <unk>."""
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.scorers.backoff import open_backoff
    from moses_rnn.scorers.shares import even_shares, types_of

    vocabularies = [model.target_vocabulary for model in models]
    if given.rare:
        types = {word for vocabulary in vocabularies for word in vocabulary.words}
        if given.lm:
            types |= _words_of_arpa(find_input(given.lm[0]))
        else:
            named = [given.vocabulary] if given.vocabulary else given.texts
            types.update(*(types_of(read_lines(find_input(text))) for text in named))
        yield from (even_shares(types, vocabulary, with_unknown=bool(given.lm)) for vocabulary in vocabularies)
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
    """The models to be compared, all over one vocabulary."""
    from moses_rnn.analysis.perplexity import Contender

    contenders = []
    for model, of_model in zip(models, shares, strict=True):
        network = _language_model(model, of_model, given)
        if closed and not given.rare:  # that is even among all already
            network = closed.compare(network, model.target_vocabulary)
        contenders.append(Contender(_shown(model, given), network, model.architecture.key))
    if closed:
        of_lm = zip(given.lm, n_grams, strict=True)
        contenders += [Contender(Path(path).name, closed.compare(lm), None) for path, lm in of_lm]
    return contenders


def _read(files: Sequence[str]) -> list[Text]:
    """The texts, called by their files' names in tables, or by paths where two have the same name."""
    from moses_rnn.analysis.perplexity import sentences_of
    from moses_rnn.files.streams import find_input, read_lines

    paths = [find_input(file) for file in files]
    names = [Path(path).name for path in paths]
    shown = [path if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
    return [Text(path, name, sentences_of(read_lines(path))) for path, name in zip(paths, shown, strict=True)]


@contextmanager
def _progress(texts: Sequence[Text]) -> Iterator[Callable[[int], None]]:
    """Shows how far the scoring of all texts is; to be called with how many more sentences are scored."""
    from moses_rnn.cli.progress import Display

    display = Display("sentences")
    total, done = sum(len(text.sentences) for text in texts), 0

    def show(more: int) -> None:
        nonlocal done
        done += more
        display.show(done, done / total)

    try:
        yield show
    finally:
        display.close()


def _learns(model: Model, given: Judging) -> bool:
    """Whether a model learns from the text that it reads."""
    return given.dynamic is not None and model.architecture.key == "rnnlm"


def _shown(model: Model, given: Judging) -> str:
    dynamic = f", dynamic by {given.dynamic}" if _learns(model, given) else ""
    return f"{model.folder.name} ({model.name}{dynamic})"


def _language_model(model: Model, shares: Shares | None, given: Judging) -> LanguageModel:
    from moses_rnn.networks.dynamic import RATE
    from moses_rnn.networks.hardware import Compute
    from moses_rnn.scorers.dynamic import DynamicRnnlm

    compute = Compute(choose_device(given.device))
    if given.dynamic and _learns(model, given):
        rate = RATE if given.dynamic_rate is None else given.dynamic_rate
        return DynamicRnnlm(model, given.dynamic, compute, shares, rate=rate)
    return model.make_language_model(compute, shares)
