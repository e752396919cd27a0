"""moses-rnn-cslm perplexity: what language models make of texts, alone and together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, FiniteFloat, Program, choose_device, put, reports_errors, takes
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.mixtures import Contender
    from moses_rnn.models.vocabulary import Vocabulary
    from moses_rnn.producers.backoff import Backoff
    from moses_rnn.producers.base import Compute
    from moses_rnn.producers.kenlm import KenlmProducer
    from moses_rnn.producers.language_models import LanguageModel, Shares
    from moses_rnn.producers.open import OpenModel
    from moses_rnn.producers.shares import ClosedVocabulary

EPILOG = """\b
Example: the first text decides the interpolation's weights:
  moses-rnn-cslm perplexity cslm dev.fr test.fr --lm lm.arpa
  moses-rnn-cslm perplexity rnnlm.1 rnnlm.2 rnnlm.3 dev.fr test.fr --lm lm.arpa --dynamic sentence

\b
All models share one vocabulary, that of the n-gram model and the shortlists together: words outside a shortlist get
their n-gram model's share of what the network gives to <unk>, or with --rare uniform all as much. Without either only
words of all shortlists count. --lm must be an ARPA file, plain or .gz: a binary one does not say which words it knows.
"""


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Options of `perplexity`."""

    model: Path
    texts: tuple[str, ...]
    lm: tuple[str, ...]
    rare: str | None
    vocabulary: str | None
    dynamic: str | None
    dynamic_rate: float | None
    bptt: int | None
    device: str
    threads: int | None

    @property
    def models(self) -> list[Path]:
        """All model folders."""
        return [self.model, *(Path(text) for text in self.texts if Path(text).is_dir())]

    @property
    def files(self) -> list[str]:
        """The texts."""
        return [text for text in self.texts if not Path(text).is_dir()]


@click.command("perplexity", cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, required=True)
@click.option(
    "--lm", "--with", multiple=True, help="An n-gram model to compare, to back off to and to interpolate with; ARPA"
)
@click.option("--rare", type=click.Choice(["uniform"]), help="Share <unk> evenly among the words outside the shortlist")
@click.option("--vocabulary", help="With --rare: a text that has these words [default: TEXTS; with --lm its words]")
@click.option(
    "--dynamic",
    type=click.Choice(["word", "sentence"]),
    help="RNNLMs go on learning, after each word or each sentence of a text",
)
@click.option(
    "--dynamic-rate", type=FiniteFloat(0), help="They do so at this rate; the paper's is 0.1 [default: 0.003]"
)
@click.option(
    "--bptt",
    type=click.IntRange(0),
    help="With --dynamic: steps back that the error of a word is followed [default: 0, to its sentence's begin]",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@click.option("--threads", type=click.IntRange(1), help="CPU threads [default: all cores]")
@reports_errors
@takes(Judging)
def perplexity(given: Judging) -> None:
    """Print perplexities of tokenised TEXTS: the MODEL's, n-gram models', and of all together.

    Folders among TEXTS are further models.
    """
    _check(given)
    import torch

    from moses_rnn.producers.open import open_language_model

    if given.threads:
        torch.set_num_threads(given.threads)

    models = [open_language_model(folder) for folder in given.models]
    if given.dynamic and not any(model.row.dynamic for model in models):
        raise InputError(f"{models[0].folder}: expected an RNNLM for --dynamic, found: {models[0].title}")
    alone = len(models) == 1 and models[0].name == "CSLM"
    if alone and len(given.lm) < 2 and not given.rare:
        _judge_cslm(models[0], given)
    else:
        _compare(models, given)


def _check(given: Judging) -> None:
    """Refuse what does not go together."""
    if not given.files:
        raise click.UsageError("Missing argument 'TEXTS...'.")
    if given.vocabulary and not given.rare:
        raise click.UsageError("--vocabulary is for --rare uniform")
    if given.vocabulary and given.lm:
        raise click.UsageError("--vocabulary: with --lm the words are those of the n-gram model")
    if given.rare and not given.vocabulary and not given.lm and "-" in given.files:
        raise click.UsageError("--rare uniform reads standard input twice: name a --vocabulary")
    for option, value in (("--dynamic-rate", given.dynamic_rate), ("--bptt", given.bptt)):
        if value is not None and not given.dynamic:
            raise click.UsageError(f"{option} is for --dynamic")


def _judge_cslm(model: OpenModel, given: Judging) -> None:
    """A CSLM by itself, and perhaps an n-gram model."""
    from moses_rnn.analysis.perplexity import as_markdown, best_weight, judge
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.producers.cslm import CslmProducer

    closed = backoff = n_grams = None
    if given.lm:
        kenlm = _n_gram_models(given.lm)[0]
        backoff = _backing_off(given.lm[0], kenlm, model.target_vocabulary)
        closed = _closed_by([model], kenlm)
        n_grams = closed.compare(kenlm)
    cslm = CslmProducer(model.checkpoint, _compute(given), backoff)
    paths = [existing_input(text) for text in given.files]
    judged = [
        judge(read_lines(path), path, cslm, n_grams).named(name)
        for path, name in zip(paths, _names(paths), strict=True)
    ]
    weight = best_weight(judged[0]) if n_grams else None
    put("\n".join(as_markdown(judged, weight)))
    if backoff and weight is not None:
        put(
            f"\nThe weight is the best for {judged[0].name}. Outside the shortlist: {backoff.words:,} words of the "
            f"n-gram model, <unk> among them, with a mass of {backoff.outside:.4f} without context.",
            fold=True,
        )
    _put_strange(closed)


def _compare(models: Sequence[OpenModel], given: Judging) -> None:
    """Any models, each alone and together."""
    from moses_rnn.analysis.mixtures import as_table, interpolations, score_text
    from moses_rnn.files.streams import existing_input, read_lines

    paths = [existing_input(text) for text in given.files]
    n_grams = _n_gram_models(given.lm)
    closed = _closed_by(models, n_grams[0]) if n_grams else None
    contenders = _contenders(models, n_grams, closed, given)
    texts = [
        score_text(read_lines(path), path, contenders()).named(name)
        for path, name in zip(paths, _names(paths), strict=True)
    ]
    counted = texts if given.lm or given.rare else [text.known() for text in texts]
    put("\n".join(as_table(counted, interpolations(contenders(), counted[0]))))
    left_out = "" if given.lm or given.rare else ", which do not count"
    put("")
    for text in texts:
        put(f"{text.name}: {len(text.outside):,} tokens, {text.outside.mean():.2%} outside a shortlist{left_out}")
    _put_strange(closed)


def _contenders(
    models: Sequence[OpenModel], n_grams: Sequence[KenlmProducer], closed: ClosedVocabulary | None, given: Judging
) -> Callable[[], list[Contender]]:
    """What makes the models to be compared, for each text anew those that learn from it."""
    from moses_rnn.analysis.mixtures import Contender

    shares = list(_shares(models, n_grams, given))
    fixed = [
        Contender(Path(path).name, closed.compare(lm), None)
        for path, lm in zip(given.lm, n_grams, strict=True)
        if closed is not None
    ]

    def make() -> list[Contender]:
        networks = []
        for model, of_model in zip(models, shares, strict=True):
            network = _language_model(model, of_model, given)
            if closed and not given.rare:  # that is even among all already
                network = closed.compare(network, model.target_vocabulary)
            networks.append(Contender(_shown(model, given), network, model.checkpoint.kind.network))
        return [*networks, *fixed]

    return make


def _names(paths: Sequence[str]) -> list[str]:
    """What tables call files: by their names, or paths where two have the same name."""
    names = [Path(path).name for path in paths]
    return [path if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]


def _closed_by(models: Sequence[OpenModel], n_grams: KenlmProducer) -> ClosedVocabulary:
    from moses_rnn.producers.shares import ClosedVocabulary

    return ClosedVocabulary([model.target_vocabulary for model in models], n_grams)


def _put_strange(closed: ClosedVocabulary | None) -> None:
    if closed is not None and closed.strange:
        put(
            f"\nWords of the shortlists that the n-gram model does not know: {len(closed.strange):,}. They, and all "
            "that no model knows, have an even share each of its <unk>.",
            fold=True,
        )


def _shown(model: OpenModel, given: Judging) -> str:
    dynamic = f", dynamic by {given.dynamic}" if given.dynamic and model.row.dynamic else ""
    return f"{model.folder.name} ({model.name}{dynamic})"


def _language_model(model: OpenModel, shares: Shares | None, given: Judging) -> LanguageModel:
    from moses_rnn.inference.dynamic import RATE
    from moses_rnn.producers.dynamic import DynamicRnnlm, Reader

    if given.dynamic and model.row.dynamic:
        rate = RATE if given.dynamic_rate is None else given.dynamic_rate
        learning = DynamicRnnlm(model.checkpoint, _compute(given), shares, rate=rate, reach=given.bptt or 0)
        return Reader(learning, given.dynamic)
    return model.make_language_model(_compute(given), shares)


def _shares(models: Sequence[OpenModel], n_grams: Sequence[KenlmProducer], given: Judging) -> Iterator[Shares | None]:
    """Of words outside each model's shortlist."""
    from moses_rnn.producers.shares import even_shares

    vocabularies = [model.target_vocabulary for model in models]
    if given.rare:
        types = _closed_vocabulary(vocabularies, given)
        yield from (even_shares(types, vocabulary, with_unknown=bool(given.lm)) for vocabulary in vocabularies)
    elif n_grams:
        yield from (_backing_off(given.lm[0], n_grams[0], vocabulary) for vocabulary in vocabularies)
    else:
        yield from [None] * len(models)


def _closed_vocabulary(vocabularies: Sequence[Vocabulary], given: Judging) -> set[bytes]:
    """The words that all models share: those of all shortlists, and of the n-gram model or else of the texts."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.producers.shares import types_of

    types = {word for vocabulary in vocabularies for word in vocabulary.words}
    if given.lm:
        return types | _words_of_arpa(existing_input(given.lm[0]))
    texts = [given.vocabulary] if given.vocabulary else given.files
    return types.union(*(types_of(read_lines(existing_input(text))) for text in texts))


def _words_of_arpa(name: str) -> set[bytes]:
    from moses_rnn.files.streams import read_lines
    from moses_rnn.formats.arpa import parse_arpa

    return {n_gram[0] for n_gram in parse_arpa(read_lines(name), name) if len(n_gram) == 1}


def _n_gram_models(paths: Sequence[str]) -> list[KenlmProducer]:
    """N-gram models, which must all know the words of the first.

    Raises:
        InputError: one does not, or cannot be read.
    """
    from moses_rnn.files.streams import existing_input
    from moses_rnn.producers.kenlm import KenlmProducer

    models = [KenlmProducer(existing_input(path)) for path in paths]
    if len(models) > 1:
        names = [existing_input(path) for path in paths]
        words = [_words_of_arpa(name) for name in names]
        for name, known in zip(names, words, strict=True):
            if known != words[0]:
                different = len(known ^ words[0])
                raise InputError(f"{name}: expected the words of {names[0]}, found {different:,} different ones")
    return models


def _backing_off(lm: str, model: KenlmProducer, vocabulary: Vocabulary) -> Backoff:
    """What an n-gram model needs to share out <unk>."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.arpa import parse_arpa
    from moses_rnn.producers.backoff import Backoff

    path = existing_input(lm)
    return Backoff(parse_arpa(read_lines(path), path), model, vocabulary, path)


def _compute(given: Judging) -> Compute:
    from moses_rnn.producers.base import Compute

    return Compute(choose_device(given.device))
