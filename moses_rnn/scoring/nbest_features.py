"""The features that a user asks for, made of models on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.streams import existing_input
from moses_rnn.formats.nbest import NBestLine, alignment_of, segmentation_of
from moses_rnn.producers.backoff import open_backoff
from moses_rnn.producers.base import Compute, ScoreProducer, Wanted
from moses_rnn.producers.ensembles import GEOMETRIC, Ensemble, Writer, open_ensemble
from moses_rnn.producers.kenlm import KenlmProducer
from moses_rnn.producers.language_models import NetworkLanguageModel, text
from moses_rnn.producers.mixtures import ARITHMETIC, Mixture, check_mixture
from moses_rnn.producers.open import OpenModel, needs_alignments, open_model
from moses_rnn.producers.phrases import WordPenaltyProducer, read_shortlist
from moses_rnn.scoring.fit import check_learned
from moses_rnn.scoring.hypotheses import AlignedHypothesis, Feature, KnownWords, PhraseSum, WholeHypothesis
from moses_rnn.scoring.nbest_request import ListRequest


def make_features(first: NBestLine | None, name: str, request: ListRequest) -> Iterator[tuple[str, Feature]]:
    """The features, each with its name.

    Args:
        first: line of the list; it tells whether segmentations are there.
        name: of the list, for messages.
        request: what is wanted.

    Raises:
        InputError: a model cannot be read.
        CheckpointError: models cannot be an ensemble.
        FormatError: the list has no segmentation, and phrases are to be scored.
    """
    _check_before(first, name, request)
    for path in request.add:
        if not path.is_dir():
            yield KenlmProducer.name, _of_n_grams(path)
            continue
        model = open_model(path, of_pairs=False)
        if not request.allow_misfit:
            check_learned(model)
        yield model.name, _know(_feature(model, first, name, request), model)
    for folders in request.ensembles:
        if _are_language_models(folders):
            yield Mixture.name, _of_mixture(folders, request)
            continue
        if request.shares:
            raise InputError("--shares: expected an ensemble of language models, found one of networks of pairs")
        ensemble = open_ensemble(folders, request.combine or GEOMETRIC)
        yield ensemble.name, _know(_of_ensemble(ensemble, first, name, request), ensemble)
    if request.word_penalty:
        shortlist = read_shortlist(request.word_penalty)
        yield "WP", WholeHypothesis(WordPenaltyProducer(shortlist))


def _of_n_grams(path: Path) -> Feature:
    producer = KenlmProducer(existing_input(str(path)))
    feature = WholeHypothesis(producer)
    feature.known = KnownWords(target=_knows(producer))
    return feature


def _knows(producer: KenlmProducer) -> Callable[[bytes], bool]:
    return lambda word: text(word) in producer.model


def _know(feature: Feature, model: Writer) -> Feature:
    """The feature of a model, with the words that the model knows."""
    written = model.target_vocabulary.id_of().__contains__
    read = model.source_vocabulary.id_of().__contains__ if feature.of_sources else None
    feature.known = KnownWords(written, read) if model.inverse else KnownWords(read, written)
    return feature


def _feature(model: OpenModel, first: NBestLine | None, name: str, request: ListRequest) -> Feature:
    """Of the phrases of a hypothesis if the network learned from phrases, unless sentences are wanted."""
    if not model.reads_sources:
        return WholeHypothesis(_language_model(model, request))
    _check_form(model)
    producer = model.make_producer(_compute(model, request))
    if model.rare is not None and model.rare.needs_links:
        return AlignedHypothesis(producer, name)
    return _of_pairs(producer, first, name, whole=request.whole or model.learned_sentences)


def _of_ensemble(ensemble: Ensemble, first: NBestLine | None, name: str, request: ListRequest) -> Feature:
    for model in ensemble.models:
        _check_form(model)
        if not request.allow_misfit:
            check_learned(model)
    producer = ensemble.make_producer(Compute(request.device))
    if ensemble.rare is not None and ensemble.rare.needs_links:
        return AlignedHypothesis(producer, name)
    return _of_pairs(producer, first, name, whole=request.whole or ensemble.learned_sentences)


def _of_pairs(producer: ScoreProducer, first: NBestLine | None, name: str, *, whole: bool) -> Feature:
    """Of whole hypotheses, or of their phrases.

    Args:
        producer: of pairs.
        first: line of the list; None if it is empty.
        name: of the list, for messages.
        whole: whether hypotheses are scored as sentences.
    """
    if whole or first is None:
        return WholeHypothesis(producer, of_sources=True)
    if first.hypothesis and segmentation_of(first, name) is None:
        advice = (
            "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole, which a\n"
            "  network that learned phrases was not made for."
        )
        raise FormatError(name, 1, "a segmentation, for the phrases of a hypothesis", "none", advice)
    return PhraseSum(producer, name)


def _are_language_models(paths: tuple[Path, ...]) -> bool:
    """Whether the first model, and so all of an ensemble, reads no sources."""
    return not paths[0].is_dir() or not open_model(paths[0], of_pairs=False).reads_sources


def _of_mixture(paths: tuple[Path, ...], request: ListRequest) -> Feature:
    """Of networks, and of n-gram models if there are files among them."""
    models = {path: open_model(path, of_pairs=False) for path in paths if path.is_dir()}
    if 0 < len(models) < len(paths) and not request.backoff:
        raise InputError(
            "--ensemble: expected --backoff for a network beside an n-gram model, found none\n"
            "  Without it every word outside the shortlist would have all that the network gives to <unk>."
        )
    combination = request.combine or ARITHMETIC
    check_mixture(list(models.values()), combination)
    n_grams = {path: KenlmProducer(existing_input(str(path))) for path in paths if path not in models}
    members = [_language_model(models[path], request) if path in models else n_grams[path] for path in paths]
    try:
        mixture = Mixture(members, combination, request.shares or None)
    except ValueError as error:
        raise InputError(f"--shares: {error}") from error
    feature = WholeHypothesis(mixture)
    knows: list[Callable[[bytes], bool]] = [model.target_vocabulary.id_of().__contains__ for model in models.values()]
    knows = knows or [_knows(producer) for producer in n_grams.values()]
    feature.known = KnownWords(target=lambda word: any(known(word) for known in knows))
    return feature


def _language_model(model: OpenModel, request: ListRequest) -> NetworkLanguageModel:
    backoff = open_backoff(request.backoff, model.target_vocabulary) if request.backoff else None
    return model.make_language_model(_compute(model, request), backoff)


def _compute(model: OpenModel, request: ListRequest) -> Compute:
    floors_long = request.long_phrases == "floor"
    return model.choose_compute(Wanted(request.device, "fp32", floors_long=floors_long))


def _check_before(first: NBestLine | None, name: str, request: ListRequest) -> None:
    """Refuse what would fail before models are loaded."""
    if request.backoff and all(open_model(folder, of_pairs=False).reads_sources for folder in request.folders):
        raise InputError("--backoff: expected a language model among the networks, whose <unk> it shares, found none")
    if first is not None and any(map(needs_alignments, request.folders)):
        alignment_of(first, name)


def _check_form(model: OpenModel) -> None:
    if model.form.hierarchical:
        raise InputError(f"{model.folder}: expected a model of phrases, found one of rules, which no hypothesis shows")
    if model.form.is_factored:
        raise InputError(f"{model.folder}: expected a model of plain words, found one of {model.form}")
