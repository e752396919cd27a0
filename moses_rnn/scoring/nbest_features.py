"""The features that a user asks for, made of models on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.files.streams import existing_input, read_lines
from moses_rnn.formats.arpa import parse_arpa
from moses_rnn.formats.nbest import NBestLine, segmentation_of
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cslm import load_cslm
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.producers.backoff import Backoff
from moses_rnn.producers.cslm import CslmProducer
from moses_rnn.producers.kenlm import KenlmProducer
from moses_rnn.producers.phrases import EncDecProducer, WordPenaltyProducer
from moses_rnn.scoring.fit import check_learned
from moses_rnn.scoring.nbest_lists import HypothesisScorer, Scorer, SegmentationScorer


@dataclass(frozen=True)
class FeatureRequest:
    """What shall be added to an n-best list."""

    cslm: Path | None = None
    backoff: str | None = None  # an ARPA file, for the words outside the CSLM's shortlist
    lm: str | None = None
    rnn: Path | None = None
    inverse_rnn: Path | None = None
    whole: bool = False  # sentences, not their phrases, for the RNNs
    word_penalty: Path | None = None  # a model's folder or a vocabulary file
    word_penalty_words: int | None = None  # only its so many most frequent words
    device: str = "cpu"
    precision: str = "fp32"
    allow_misfit: bool = False  # take an RNN that is no better than a unigram model, see `fit`


def scorers(first: NBestLine | None, name: str, request: FeatureRequest) -> Iterator[tuple[str, Scorer]]:
    """What gives each feature, with the feature's name.

    Args:
        first: line of the list; it tells whether segmentations are there.
        name: of the list, for messages.
        request: what is wanted.

    Raises:
        InputError: a model cannot be read, or is of another kind.
        FormatError: the list has no segmentation, and phrases are to be scored.
    """
    if request.cslm:
        yield "CSLM", HypothesisScorer(_cslm(request.cslm, request))
    if request.lm:
        yield "KENLM", HypothesisScorer(KenlmProducer(existing_input(request.lm)))
    if request.rnn:
        yield "RNN", _rnn(request.rnn, "--rnn", first, name, request)
    if request.inverse_rnn:
        yield "RNNInverse", _rnn(request.inverse_rnn, "--inverse-rnn", first, name, request)
    if request.word_penalty:
        yield "WP", HypothesisScorer(WordPenaltyProducer(_shortlist(request.word_penalty, request.word_penalty_words)))


def _cslm(model: Path, request: FeatureRequest) -> CslmProducer:
    checkpoint = load_cslm(model)
    backoff = None
    if request.backoff:
        path = existing_input(request.backoff)
        backoff = Backoff(parse_arpa(read_lines(path), path), KenlmProducer(path), checkpoint.vocabulary, path)
    return CslmProducer(checkpoint, request.device, request.precision, backoff)


def _rnn(model: Path, option: str, first: NBestLine | None, name: str, request: FeatureRequest) -> Scorer:
    """An RNN Encoder-Decoder, for the phrases of a hypothesis unless sentences are wanted."""
    checkpoint = load_checkpoint(model)
    if not request.allow_misfit:
        check_learned(model, checkpoint)
    found = "--inverse-rnn" if checkpoint.direction == "target-to-source" else "--rnn"
    if found != option:
        raise InputError(f"{model}: expected a model for {option}, found one for {found}")
    form = PhraseForm.from_record(checkpoint.provenance.get("phrases"))
    if form.hierarchical:
        raise InputError(f"{model}: expected a model of phrases, found one of rules, which no hypothesis shows")
    if form.is_factored:
        raise InputError(f"{model}: expected a model of plain words, found one of {form}")
    producer = EncDecProducer(checkpoint, request.device, request.precision)
    if request.whole or first is None:
        return HypothesisScorer(producer)
    if first.hypothesis and segmentation_of(first, name) is None:
        advice = (
            "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole, which a\n"
            "  network that learned phrases was not made for."
        )
        raise FormatError(name, 1, "a segmentation, for the phrases of a hypothesis", "none", advice)
    return SegmentationScorer(producer, name)


def _shortlist(path: Path, most: int | None) -> Vocabulary:
    """The words of a vocabulary file, or of a model's target side."""
    file = path / "target.vocab" if path.is_dir() else path
    try:
        known = Vocabulary.from_bytes(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: expected a vocabulary, found: {error.strerror}") from error
    except CheckpointError as error:
        raise InputError(f"{file}: {error}") from error
    return Vocabulary(known.words[: most + 2]) if most else known
