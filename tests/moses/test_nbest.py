import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.moses.nbest import alignment_of, check_source, format_nbest_line, parse_nbest_line, segmentation_of

LINE = b"0 ||| le chat  ||| Distortion0= 0 LM0= -43.02 TM0= -1.5 -2e-3 W_a|b= 1 ||| -4.456 ||| 0-0 1-1 \n"


def test_the_parts_of_a_line():
    line = parse_nbest_line(LINE, "n", 1)
    assert (line.sentence, line.hypothesis, line.total, line.further) == (0, b"le chat", b"-4.456", (b"0-0 1-1",))
    assert line.values("TM0") == [-1.5, -0.002]
    assert line.values("TM") == []


def test_features_are_added_at_the_end_of_the_field():
    line = parse_nbest_line(LINE, "n", 1)
    assert line.with_features([("RNN0", [b"-7.25"]), ("X0", [b"1", b"2"])]) == LINE.replace(
        b" ||| -4.456", b" RNN0= -7.25 X0= 1 2 ||| -4.456"
    )
    assert line.with_features([]) == LINE


@pytest.mark.parametrize(
    ("label", "is_one"),
    [
        *((label, True) for label in ("word-pairs_the~le=", "1_a=b=", "_a_b=", "é_|=", "Name9=")),
        *((label, False) for label in ("word-pairs=", "_a=", "a_=", "9=", "a_b", "é=")),
    ],
)
def test_labels_are_those_of_mert_moses(label, is_one):
    line = b"0 ||| a ||| LM0= -1 %b 2 ||| 1\n" % label.encode()
    if is_one:
        assert parse_nbest_line(line, "n", 1).values("LM0") == [-1]
        return
    with pytest.raises(FormatError, match="n:1: expected 'Name=' or a number in field 3, found "):
        parse_nbest_line(line, "n", 1)


@pytest.mark.parametrize(
    ("features", "is_unlabelled"),
    [(b"-1 -2", True), (b"0.5", True), (b"LM0= x", False), (b"LM0= nan", False), (b"LM0= -1 x", False), (b"x", False)],
    ids=str,
)
def test_missing_labels_are_guessed_where_numbers_come_first(features, is_unlabelled):
    with pytest.raises(FormatError) as caught:
        parse_nbest_line(b"0 ||| a ||| %b ||| 1\n" % features, "n", 1)
    assert caught.value.advice == "Was the list made without labels?" * is_unlabelled


SOURCES = {  # segmentation, source, whether they belong together
    "every word once": (b"0-1=0 2=1", b"a b c", True),
    "in another order": (b"2=0 0-1=1", b"a b c", True),
    "too long": (b"0-1=0 2=1", b"a b c d", False),
    "nothing": (b"0-1=0 2=1", b"", False),
    "a word twice": (b"0-1=0 1=1", b"a b", False),
    "a word left out": (b"0=0 2=1", b"a b c", False),
    "markup": (b"0-1=0 2=1", b'a <n translation="x">b</n> c', False),
    "factors": (b"0-1=0 2=1", b"a|x b|y c|z", False),
    "no segmentation": (b"0-0", b"a b c d", True),
    "no segmentation, markup": (b"0-0", b'a <n translation="x y" prob="0.8">b</n> c', False),
}


@pytest.mark.parametrize(("field", "source", "fits"), SOURCES.values(), ids=SOURCES)
def test_a_segmentation_covers_each_word_of_its_source_once(field, source, fits):
    line = parse_nbest_line(b"7 ||| x y ||| F= 1 ||| 2 ||| %b\n" % field, "n", 4)
    if fits:
        check_source(line, source, "n")
        return
    with pytest.raises(FormatError, match="^n:4: expected .* sentence 7") as caught:
        check_source(line, source, "n")
    assert caught.value.finding.startswith(("'", f"{len(source.split())}: "))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_carriage_return_belongs_to_the_line_end(end):
    line = parse_nbest_line(b"0 ||| a ||| F= 1 ||| 2" + end, "n", 1)
    assert (line.total, line.further) == (b"2", ())
    line = parse_nbest_line(b"0 ||| a ||| F= 1 ||| 2 ||| 0=0" + end, "n", 1)
    assert segmentation_of(line, "n") == [(0, 0, 0, 1)]


def segmented(hypothesis, *further):
    fields = [b"7", hypothesis, b"F= 1", b"2", *further]
    return segmentation_of(parse_nbest_line(b" ||| ".join(fields), "n", 1), "n")


@pytest.mark.parametrize(
    ("hypothesis", "fields", "phrases"),
    [
        (b"a", [b"0=0"], [(0, 0, 0, 1)]),
        (b"a b c", [b"2-4=0-1 0=2", b"0-0 "], [(2, 4, 0, 2), (0, 0, 2, 3)]),
        (b"a b", [b"0-1=0-1", b"", b"a 0=0 tree"], [(0, 1, 0, 2)]),
        (b"a b", [b"0-0 1-1", b"0-1=0-1"], None),  # the recovered input
        (b"a b", [b"0-0 1-1"], None),  # an alignment
        (b"a b", [b"0=0  1=1"], None),
        (b"a", [b""], None),
        (b"a", [], None),
        (b"", [b""], None),
        # Phrases without target words: at the begin, between, at the end, alone
        (b"a", [b"0=0-18446744073709551615 1=0"], [(0, 0, 0, 0), (1, 1, 0, 1)]),
        (b"a b", [b"0=0 1=1 2=1"], [(0, 0, 0, 1), (1, 1, 1, 1), (2, 2, 1, 2)]),
        (b"a b", [b"0=0-1 1=2 2=2"], [(0, 0, 0, 2), (1, 1, 2, 2), (2, 2, 2, 2)]),
        (b"", [b"0=0-18446744073709551615"], [(0, 0, 0, 0)]),
    ],
)
def test_the_phrases_of_a_hypothesis(hypothesis, fields, phrases):
    assert segmented(hypothesis, *fields) == phrases


@pytest.mark.parametrize("segmentation", [b"0=1", b"0=0 1=2", b"0=0-2", b"0=0-1 1=1-2", b"1=1 0=0", b"0=0-1 0=1"])
def test_phrases_that_are_not_the_hypothesis(segmentation):
    with pytest.raises(FormatError) as caught:
        segmented(b"a b", segmentation)
    found = f"'{segmentation.decode()}': '7 ||| a b ||| F= 1 ||| 2 ||| {segmentation.decode()}'"
    assert str(caught.value) == f"n:1: expected a segmentation of the 2 target words, found {found}"


@pytest.mark.parametrize(("links", "further"), [(None, ()), ((1, 0), (b"1-0 0-1",)), ((), (b"",))])
def test_a_written_line_is_read_again(links, further):
    hypothesis = b"le chat" if links != () else b""
    line = parse_nbest_line(format_nbest_line(7, hypothesis, "SEARCH0", -12.345678, links), "n", 1)
    assert (line.sentence, line.hypothesis, line.total) == (7, hypothesis, b"-12.3457")
    assert (line.values("SEARCH0"), line.further) == ([-12.3457], further)
    assert segmentation_of(line, "n") is None
    if links:
        assert alignment_of(line, "n") == ((1, 0), (0, 1))


@given(st.binary(max_size=80))
def test_any_bytes_are_parsed_or_refused(noise):
    for data in (noise, LINE[:30] + noise + LINE[30:]):
        try:
            line = parse_nbest_line(data, "n", 1)
        except FormatError:
            continue
        assert line.with_features([]) == data
        again = parse_nbest_line(line.with_features([("Z9", [b"-1.5"])]), "n", 1)
        assert again.values("Z9")[-1] == -1.5
        assert again.hypothesis == line.hypothesis


HYPOTHESIS = b"3 ||| le chat ||| LM0= -4 ||| -4.5%b\n"
ALIGNMENTS = {
    "alone, as without a segmentation": (b" ||| 0-0 2-1 ", ((0, 0), (2, 1))),
    "behind a segmentation": (b" ||| 0-1=0-1 ||| 0-0 1-1", ((0, 0), (1, 1))),
    "behind a segmentation of single words": (b" ||| 0=0 1=1 ||| 1-0", ((1, 0),)),
    "nothing is linked": (b" ||| 0-1=0-1 ||| ", ()),
    "no segmentation, nothing is linked": (b" |||", ()),
    "before the recovered input": (b" ||| 0-1=0-1 ||| 0-0 1-1 ||| a well-known 3-4 state-of-the-art", ((0, 0), (1, 1))),
    "before a recovered input that looks like links": (b" ||| 0-0 1-1 ||| 2-1", ((0, 0), (1, 1))),
    "before a tree": (b" ||| 1-0 ||| [S [X-2 le-1] [X chat=2]]", ((1, 0),)),
    "nothing is linked, before the recovered input": (b" ||| 0-1=0-1 ||| ||| the-cat", ()),
}


@pytest.mark.parametrize("case", ALIGNMENTS)
def test_links_are_read_from_where_moses_puts_them(case):
    further, expected = ALIGNMENTS[case]
    assert alignment_of(parse_nbest_line(HYPOTHESIS % further, "n", 1), "n") == expected
    assert alignment_of(parse_nbest_line(b"0 ||| ||| LM0= -4 ||| -4.5\n", "n", 1), "n") == ()  # it has no words


@pytest.mark.parametrize(
    "further",
    [b"", b" ||| 0-1=0-1", b" ||| 0=0 1=1 ", b" ||| 0-1=0-1 ||| well-known", b" ||| 0-0 1-x", b" ||| x ||| 0-0"],
)
def test_a_list_without_links_names_the_switch(further):
    with pytest.raises(FormatError) as caught:
        alignment_of(parse_nbest_line(HYPOTHESIS % further, "n", 5), "n")
    assert str(caught.value).startswith("n:5: expected the alignment of a hypothesis after its total, found none: ")
    assert "-print-alignment-info-in-n-best" in caught.value.advice
