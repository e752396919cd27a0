"""What a loaded network writes by itself: samples of targets, and translations."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from moses_rnn.api.arguments import as_str
from moses_rnn.api.reading import PairReading
from moses_rnn.errors import ArgumentError, placing
from moses_rnn.formats.phrase_forms import words
from moses_rnn.producers.base import Compute, ScoreProducer
from moses_rnn.producers.ensembles import Writer
from moses_rnn.scoring.fit import unit_warnings
from moses_rnn.translation.sampling import Sampler, SamplingConfig
from moses_rnn.translation.translate import FEW_LINE_ENDS, LINES, MOST_WORDS, Translation, Translator, Words

SOURCES = 64  # sampled together
DRAWING = "fp64"  # in float32, one of some ten thousand samples would depend on what else is sampled


@dataclass(frozen=True)
class Sample:
    """A target that the network wrote, its log p given the source, and how often it was drawn."""

    text: str
    log_prob: float
    times: int


@dataclass(frozen=True)
class Hypothesis:
    """A translation: log p of its words and ``</s>``; of one that has not `ended` within the limit, of the words.

    `places` are the places, from 0, of the source word that each word looks at most; None of a network without
    attention.
    """

    text: str
    log_prob: float
    ended: bool
    places: tuple[int, ...] | None


@dataclass(frozen=True)
class Translated:
    """A sentence and its likeliest translations, best first; at least one."""

    source: str
    hypotheses: tuple[Hypothesis, ...]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    @property
    def log_prob(self) -> float:
        """Of the best translation."""
        return self.hypotheses[0].log_prob


def draw_samples(
    writer: Writer, producer: ScoreProducer, device: str, texts: Iterable[bytes], config: SamplingConfig
) -> list[list[Sample]]:
    """The distinct samples of each source, the likeliest first.

    Args:
        writer: the network.
        producer: of its score.
        device: on which it writes.
        texts: sources.
        config: how to draw.

    Raises:
        ArgumentError: a source cannot be read.
        ScoreError: the network gives no log p of what it writes for one.
    """
    reading = PairReading(writer)
    sources = list(reading.sources(texts))
    sampler = Sampler(writer.make_stepper(Compute(device, DRAWING)), config)
    drawn: list[list[Sample]] = []
    for first in range(0, len(sources), SOURCES):
        block = sources[first : first + SOURCES]
        with placing(lambda row: f"sources[{len(drawn) + row}]"):
            hypotheses = sampler([writer.source_vocabulary.ids(words(source)) for source in block])
        counts = [Counter(h.words for h in of_source if h.ended) for of_source in hypotheses]
        drawn.extend(_judged(writer, producer, block, counts))
    return drawn


def _judged(
    writer: Writer, producer: ScoreProducer, sources: Sequence[bytes], counts: Sequence[Counter[tuple[int, ...]]]
) -> Iterator[list[Sample]]:
    """What was drawn of each source, with the producer's log p."""
    known = writer.target_vocabulary.words
    read = [source for source, of_source in zip(sources, counts, strict=True) for _ in of_source]
    written = [b" ".join(known[i] for i in target) for of_source in counts for target in of_source]
    scores = producer.log_probs(*((written, read) if writer.inverse else (read, written)))[:, 0].tolist()
    log_probs, texts = iter(scores), iter(written)
    for of_source in counts:
        samples = [Sample(as_str(next(texts)), next(log_probs), times) for times in of_source.values()]
        yield sorted(samples, key=lambda sample: (-sample.log_prob, sample.text))


def translate(writer: Writer, translator: Translator, texts: Iterator[bytes]) -> Iterator[Translated]:
    """Translations of sentences, in order; some hundred are searched together.

    Args:
        writer: the network.
        translator: made of it.
        texts: sentences.

    Raises:
        ArgumentError: when its turn comes: a sentence is too long.
    """
    for model in writer.models:
        for text in unit_warnings(model, on_sentences=True):
            warnings.warn(text, stacklevel=3)
    return (_translated(translation) for block in _blocks(texts) for translation in translator.translate(block))


def _blocks(texts: Iterator[bytes]) -> Iterator[list[Words]]:
    sentences = _short(texts)
    while block := list(islice(sentences, LINES)):
        yield block


def _short(texts: Iterator[bytes]) -> Iterator[Words]:
    for number, text in enumerate(texts):
        sentence = words(text)
        if len(sentence) > MOST_WORDS:
            expected = f"at most {MOST_WORDS:,} words to translate"
            raise ArgumentError(f"sentences[{number}]", expected, f"{len(sentence):,}", FEW_LINE_ENDS)
        yield sentence


def _translated(translation: Translation) -> Translated:
    hypotheses = []
    for place, candidate in enumerate(translation.candidates):
        links, text = translation.links(place), as_str(translation.text(place))
        places = None if links is None else tuple(links)
        hypotheses.append(Hypothesis(text, candidate.log_prob, candidate.ended, places))
    return Translated(as_str(b" ".join(translation.source)), tuple(hypotheses))
