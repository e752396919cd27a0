"""Moses's n-best lists: ``sentence ||| hypothesis ||| Name= v v Name= v ||| total [||| segmentation [||| …]]``.

Values are natural logarithms. Features are only appended to the third field (moses/Manager.cpp, OutputNBest).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from moses_rnn.errors import FormatError, number_of, shown
from moses_rnn.moses.alignments import Links, format_links, parse_links
from moses_rnn.table.phrase_table import NUMBER, SEPARATOR
from moses_rnn.table.phrases import ALIGNMENT_POINT, BLANKS, words

# A label for mert-moses.pl; labels with an underscore are those of sparse features
LABEL = re.compile(rb"(?:[^ \t]+_[^ \t]+|[A-Za-z][A-Za-z0-9]*)=")
SENTENCE = re.compile(rb"[0-9]{1,9}")
# ``0-1=0-1 2=2 …``: source words = target words, both from 0
SPAN = re.compile(rb"([0-9]{1,9})(?:-([0-9]{1,9}))?=([0-9]{1,9})(?:-([0-9]{1,20}))?")
SEGMENTATION = re.compile(rb"%b(?: %b)*" % (SPAN.pattern, SPAN.pattern))
MARKUP = re.compile(rb"""<[A-Za-z][^<> ]*(?: [A-Za-z-]+=(?:"[^"]*"|'[^']*'))+ ?/?>""")  # moses/XmlOption.cpp
ALIGNMENT = re.compile(rb"(?:%b(?: %b)*)?" % (ALIGNMENT_POINT.pattern, ALIGNMENT_POINT.pattern))


class NBestLine(NamedTuple):
    """One hypothesis and where its feature field ends."""

    number: int  # of the line in its list, from 1
    sentence: int  # from 0
    hypothesis: bytes
    features: bytes
    total: bytes
    further: tuple[bytes, ...]  # segmentation, alignment, …
    end_of_features: int
    line: bytes

    def with_features(self, added: Iterable[tuple[str, Sequence[bytes]]]) -> bytes:
        """Return the line with further features after its own; all other bytes are unchanged."""
        text = b""
        for name, values in added:
            text += b" %s= %s" % (name.encode(), b" ".join(values))
        return self.line[: self.end_of_features] + text + self.line[self.end_of_features :]

    def labels(self) -> list[tuple[str, list[float]]]:
        """Return each feature label with its values."""
        labels: list[tuple[str, list[float]]] = []
        for word in words(self.features):
            if word.endswith(b"="):
                labels.append((word[:-1].decode("utf-8", "surrogateescape"), []))
            else:
                labels[-1][1].append(float(word))
        return labels

    def values(self, name: str) -> list[float]:
        """Return the values of one feature; empty if it is missing."""
        return [value for label, values in self.labels() if label == name for value in values]


def parse_nbest(lines: Iterable[bytes], name: str) -> Iterator[NBestLine]:
    """Parse the lines of the n-best list `name`."""
    for number, line in enumerate(lines, 1):
        yield parse_nbest_line(line, name, number)


def parse_nbest_line(line: bytes, name: str, number: int) -> NBestLine:
    """Parse one line; see `parse_nbest`."""
    fields = line.rstrip(b"\r\n").split(SEPARATOR)
    if len(fields) < 4:
        raise FormatError(name, number, "at least 4 fields separated by '|||'", f"{len(fields)}: {shown(line)}")
    sentence, hypothesis, features, total = (field.strip(BLANKS) for field in fields[:4])
    if not SENTENCE.fullmatch(sentence):
        raise FormatError(name, number, "the number of a sentence in field 1", shown(sentence))
    if not NUMBER.fullmatch(total):
        raise FormatError(name, number, "the total score in field 4", shown(total))
    _check_features(features, name, number)
    before = len(fields[0]) + len(fields[1]) + 2 * len(SEPARATOR)
    end = before + len(fields[2].rstrip(BLANKS))
    further = tuple(field.strip(BLANKS) for field in fields[4:])
    return NBestLine(number, int(sentence), hypothesis, features, total, further, end, line)


def _check_features(features: bytes, name: str, number: int) -> None:
    """Raise FormatError unless the features are labels with at least one value each."""
    label, count = b"", 1
    for word in words(features):
        if NUMBER.fullmatch(word) and label:
            count += 1
        elif LABEL.fullmatch(word) and count:
            label, count = word, 0
        else:
            expected = "a number" if label and not count else "'Name=' or a number"
            advice = "Was the list made without labels?" if NUMBER.fullmatch(word) and not label else ""
            raise FormatError(name, number, f"{expected} in field 3", shown(word), advice)
    if not count:
        raise FormatError(name, number, f"a number after {shown(label)} in field 3", "none")


def format_nbest_line(
    sentence: int, hypothesis: bytes, feature: str, value: float, links: Sequence[int] | None = None
) -> bytes:
    """Format a line with a single feature of weight 1: its value, a natural logarithm, is also the total.

    It has six digits, as many as Moses's extractor keeps. `links` has the source word of each word, from 0,
    or less for none; it is written where Moses puts the alignment if there is no segmentation.
    """
    line = b"%d ||| %s ||| %s= %.6g ||| %.6g" % (sentence, hypothesis, feature.encode(), value, value)
    if links is not None:
        line += b" ||| " + format_links(tuple((j, i) for i, j in enumerate(links) if j >= 0))
    return line + b"\n"


def beyond_text(line: NBestLine, name: str, text: str, lines: int) -> FormatError:
    """Return the error for a hypothesis of a sentence that the source or reference lacks."""
    found = f"sentence {line.sentence} (counted from 0)"
    expected = f"a sentence that {text} has, with {number_of(lines, 'line')}"
    return FormatError(name, line.number, expected, found, "Is it the text of this list?")


def check_plain(line: NBestLine, name: str) -> None:
    """Raise FormatError for factors (``-report-all-factors-in-n-best``) or marks such as ``|0-1|`` in a hypothesis."""
    if b"|" in line.hypothesis:
        word = next(word for word in words(line.hypothesis) if b"|" in word)
        advice = (
            "Make the list without -report-all-factors-in-n-best and without marks of segments in the hypothesis\n"
            "(-include-segmentation-in-n-best uses a separate field). Write a plain '|' as &#124;."
        )
        raise FormatError(name, line.number, "a hypothesis of plain words, without '|'", shown(word), advice)


def check_source(line: NBestLine, source: bytes, name: str) -> None:
    """Raise FormatError if the decoder read another source sentence for this line, or did not read plain words.

    A segmentation covers each source word exactly once. Without one, only markup and factors can be noticed.
    """
    segments = segmentation_of(line, name)
    if b"|" in source or (segments is None and MARKUP.search(source)):
        expected = f"plain words in source sentence {line.sentence}, without factors and XML markup"
        raise FormatError(name, line.number, expected, shown(source))
    if segments is None:
        return
    count = len(words(source))
    spans = sorted((first, last + 1) for first, last, _, _ in segments)
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    if [0, *ends] != [*begins, count] or any(begin >= end for begin, end in spans):
        covered = sum(end - begin for begin, end in spans)
        expected = f"{covered} source words of sentence {line.sentence}, as many as the segmentation covers"
        advice = (
            "The source must be the text that the decoder read, line by line, with the same tokenisation and no XML "
            "markup."
        )
        raise FormatError(name, line.number, expected, f"{count}: {shown(source)}", advice)


def alignment_of(line: NBestLine, name: str) -> Links:
    """Return the links of a hypothesis, which Moses prints after the total and the segmentation, if any.

    Further fields may follow: the recovered input or a tree (moses/Manager.cpp, moses/ChartManager.cpp).
    """
    segmented = line.further and SEGMENTATION.fullmatch(line.further[0])
    fields = line.further[1:] if segmented else line.further
    if not fields or not ALIGNMENT.fullmatch(fields[0]):
        if not words(line.hypothesis):  # nothing is linked
            return ()
        expected = "the alignment of a hypothesis after its total"
        advice = "Make the list with -print-alignment-info-in-n-best."
        raise FormatError(name, line.number, expected, f"none: {shown(line.line)}", advice)
    return parse_links(fields[0])


def segmentation_of(line: NBestLine, name: str) -> list[tuple[int, int, int, int]] | None:
    """Return each phrase's first and last source word, first target word and end; None without a segmentation.

    All from 0. A phrase without target words (an unknown word under ``-drop-unknown``) is printed as if it had one, or
    2^64 of them at the beginning of the sentence (moses/TrellisPath.cpp, GetTargetWordsRange); but the next phrase
    begins where it does.
    """
    if not line.further or not SEGMENTATION.fullmatch(line.further[0]):
        return None
    text = line.further[0]
    spans = [(int(a), int(b or a), int(c), int(d or c)) for a, b, c, d in SPAN.findall(text)]
    begins = [*(begin for _, _, begin, _ in spans), len(words(line.hypothesis))]
    ends = [
        begin if begin == following else end + 1
        for (_, _, begin, end), following in zip(spans, begins[1:], strict=True)
    ]
    if [0, *ends] != begins:
        what = f"a segmentation of the {begins[-1]} target words"
        raise FormatError(name, line.number, what, f"{shown(text)}: {shown(line.line)}")
    return [(first, last, begin, end) for (first, last, begin, _), end in zip(spans, ends, strict=True)]
