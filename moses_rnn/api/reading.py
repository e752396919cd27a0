"""Pairs as a network reads them: one factor of words, numbered gaps, the alignments by which rare words are annotated.

What a network cannot read is refused before anything is computed, by the name of the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moses_rnn.api.arguments import BytesPair
from moses_rnn.errors import ArgumentError, FormatError
from moses_rnn.formats.alignments import broken, check_links, parse_links
from moses_rnn.formats.phrase_forms import has_gaps, words
from moses_rnn.formats.text_phrases import AlignedPhrases
from moses_rnn.producers.ensembles import Writer
from moses_rnn.translation.proposals import Reading, parse_sources


class PairReading:
    """Pairs of Python code, for a network or several.

    Args:
        writer: what reads them.
    """

    def __init__(self, writer: Writer) -> None:
        self._reading = Reading(writer.models[0].checkpoint)
        self._needs_links = writer.rare is not None and writer.rare.needs_links

    def checked(self, pairs: Iterable[BytesPair]) -> Iterator[BytesPair]:
        """The pairs as they come, each as the network reads it.

        Raises:
            ArgumentError: it cannot be read, or lacks the alignment that the network needs.
        """
        for pair in pairs:
            try:
                yield self._checked(pair)
            except FormatError as error:
                raise argument_error(pair.name, error) from error

    def _checked(self, pair: BytesPair) -> BytesPair:
        form = self._reading.form
        if self._needs_links:
            _check_links(pair)
        if form.is_plain:
            return pair
        alignment = pair.alignment or b""
        if pair.alignment is None and form.hierarchical and (has_gaps(pair.source) or has_gaps(pair.target)):
            expected = "(source, target, alignment), which pairs the gaps of a rule"
            raise FormatError(pair.name, None, expected, "no alignment")
        form.check(pair.source, pair.target, alignment, pair.name, None)
        source, target = form.read(pair.source, pair.target, alignment)
        return pair._replace(source=source, target=target)

    def sides(self, pairs: Sequence[BytesPair]) -> tuple[Sequence[bytes], list[bytes]]:
        """Sources and targets of checked pairs, as producers take them."""
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        if not self._needs_links:
            return sources, targets
        return AlignedPhrases(sources, lambda: [pair.alignment or b"" for pair in pairs]), targets

    def sources(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        """Sources alone, in the network's words.

        Raises:
            ArgumentError: one is blank or cannot be read.
        """
        for number, text in enumerate(texts):
            name = f"sources[{number}]"
            try:
                yield from parse_sources([text], name, self._reading)
            except FormatError as error:
                raise argument_error(name, error) from error

    @property
    def inverse(self) -> bool:
        """Whether the network reads targets."""
        return self._reading.inverse


def argument_error(argument: str, error: FormatError) -> ArgumentError:
    """What a file would have been refused for, as an error about an argument."""
    return ArgumentError(argument, error.expected, error.finding, error.advice)


def _check_links(pair: BytesPair) -> None:
    if pair.alignment is None:
        expected = "(source, target, alignment), by which this model's rare words are annotated"
        raise FormatError(pair.name, None, expected, "no alignment", "Written as Moses does: 0-0 1-2 …")
    try:
        check_links(parse_links(pair.alignment), len(words(pair.source)), len(words(pair.target)))
    except ValueError as error:
        raise broken(pair.name, None, error) from error
