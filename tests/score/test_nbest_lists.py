"""Features added to n-best lists: every other byte stays, and a value depends on its hypothesis alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError, InputError, MisfitError, ScoreError
from moses_rnn.score import nbest_lists
from moses_rnn.score.nbest_features import Feature, phrases, whole
from moses_rnn.score.nbest_lists import label_features
from moses_rnn.scorers.phrases import WordPenaltyScorer
from tests.score.nbest_lists import ADDED, SOURCES, added, adding, cslm, nbest, of_targets, parsed, whole_sentences
from tests.scorers.pairs import TARGET, of_pairs, scorer

# The bytes of a list

ODD = {
    "Moses's": nbest(b"t2 t3"),
    "alignment": nbest(b"t2 t3", b" ||| 0-0 1-1 "),
    "segmentation": nbest(b"t2 t3", b" ||| 0=0 1-2=1"),
    "segmentation and alignment": nbest(b"t2 t3", b" ||| 0=0 1-2=1 ||| 0-0 1-1 "),
    "further fields": nbest(b"t2", b" ||| 0-2=0 ||| ||| s2 s3 |||\t|||"),
    "CRLF": nbest(b"t2")[:-1] + b"\r\n",
    "CRLF behind more": nbest(b"t2", b" ||| 0-2=0")[:-1] + b"\r\n",
    "no line end": nbest(b"t2")[:-1],
    "U+00A0": nbest("t2\u00a0t3 \u00a0 t2".encode()),
    "U+2028 and U+0085": nbest("t2\u2028t3 \u0085".encode()),
    "Windows-1252": nbest(b"caf\xe9 \x96 \xa0t2\xa0 \x93t3\x94"),
    "no text": nbest(b"\x00 \xff\xfe \x1b[1m \r t2"),
    "tabs and blanks": b"\t0  ||| \tt2\t t3 |||\tLM0=\t-4 \t |||  -4.5\t \n",
    "no blanks": b"0|||t2|||LM0= -4|||1\n",
    "empty hypothesis": nbest(b""),
    "nothing between": b"0 ||| ||| LM0= 1 ||| 0\n",
    "no features": nbest(b"t2", features=b""),
    "sparse features": nbest(b"t2", features=b"LM0= -4 LM0_a|b= 1 LM0_\xff= 2"),
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_without_what_was_added_the_list_is_as_it_was(line):
    found = added([line], whole_sentences())
    assert ADDED.sub(b"", found) == line
    assert len(ADDED.findall(found)) == 2
    (again,) = parsed([found])
    (before,) = parsed([line])
    assert [len(again.values(name)) for name in ("CSLM0", "WP0")] == [1, 1]
    assert (again.hypothesis, again.total, again.further) == (before.hypothesis, before.total, before.further)


@given(st.lists(st.binary(max_size=12), max_size=5))
def test_any_words(phrase):
    line = nbest(b" ".join(phrase).replace(b"|", b"").replace(b"\n", b""))
    assert ADDED.sub(b"", added([line], whole_sentences())) == line


@pytest.mark.parametrize(
    ("features", "names", "labels"),
    [
        (b"LM0= 1", ["CSLM"], ["CSLM0"]),
        (b"CSLM0= 1 LM0= 1", ["CSLM"], ["CSLM1"]),
        (b"CSLM0= 1 CSLM1= 2", ["CSLM"], ["CSLM2"]),
        (b"CSLM1= 1", ["CSLM", "CSLM"], ["CSLM0", "CSLM2"]),
        (b"LM0= 1", ["CSLM", "RNN", "CSLM"], ["CSLM0", "RNN0", "CSLM1"]),
        (b"CSLM0_a= 1 CSLM= 1", ["CSLM"], ["CSLM0"]),
        (b"", ["WP"], ["WP0"]),
    ],
)
def test_labels_have_the_next_free_number(features, names, labels):
    feature_of_words = of_targets(WordPenaltyScorer(TARGET))
    (first,) = parsed([nbest(b"t2", features=features)])
    assert list(label_features(first, [(name, feature_of_words) for name in names])) == labels
    assert list(label_features(None, [("WP", feature_of_words)])) == ["WP0"]


# The values


def test_values_have_the_precision_that_moses_prints():
    (line,) = parsed([added([nbest(b"t2 t3 x")], whole_sentences())])
    (value,) = of_targets(cslm()).scores([line], [b""], "n")
    assert line.values("CSLM0") == [float(f"{value:.6g}")] != [value]


def test_a_value_of_a_whole_hypothesis_is_written_as_it_was_given():
    assert b" WP0= -0 " in added([nbest(b"t2 t3")], whole_sentences())  # minus no words


class Counting:
    """A scorer that remembers what it was asked."""

    def __init__(self, of):
        self.of, self.asked = of, []

    def log_probs(self, pairs):
        self.asked += zip(pairs.sources, pairs.targets, strict=True)
        return self.of.log_probs(pairs)


def test_equal_phrase_pairs_are_scored_once():
    counting = Counting(scorer()[0])
    lines = parsed([nbest(b"t2 t2", b" ||| 0=0 1=1"), nbest(b"t2 t3", b" ||| 0=0 1=1"), nbest(b"")])
    scores = Feature(counting, phrases).scores(lines, [b"s2 s2", b"s2 s2", b""], "n")
    assert counting.asked == [(b"s2", b"t2"), (b"s2", b"t3")]
    once, other = of_pairs(counting.of, [(b"s2", b"t2"), (b"s2", b"t3")])
    assert scores.tolist() == [once + once, once + other, 0]


# What is reported


@pytest.mark.parametrize(
    ("hypotheses", "constant"),
    [
        ([(0, b"t2"), (0, b"t3"), (1, b"x")], ["WP0"]),
        ([(0, b"t2"), (0, b"t2 t3 x"), (1, b"x")], []),
        ([(0, b"t2"), (1, b"x"), (2, b"t2 t3")], ["CSLM0", "WP0"]),  # one each: nothing to choose
        ([(0, b"t2"), (0, b"t2")], ["CSLM0", "WP0"]),
        ([(0, b"t2"), (1, b"t2"), (0, b"t3 x"), (1, b"t2")], []),  # apart
        ([(0, b"t2"), (1, b"t3 x"), (0, b"t2")], ["CSLM0", "WP0"]),
    ],
)
@pytest.mark.parametrize("together", [1, 20_000])
def test_features_that_can_choose_nothing_are_reported(monkeypatch, hypotheses, constant, together):
    monkeypatch.setattr(nbest_lists, "LINES", together)
    report, _ = adding([nbest(text, sentence=sentence) for sentence, text in hypotheses], whole_sentences())
    assert (report.constant, list(report.choosing)) == (constant, ["CSLM0", "WP0"])
    assert (report.lines, report.sentences) == (len(hypotheses), len({sentence for sentence, _ in hypotheses}))


# What is refused


@pytest.mark.parametrize("hypothesis", [b"t2 |0-1| t3 |2-2|", b"t2|X t3|Y", b"t2 | t3"])
def test_hypotheses_that_are_not_plain_words_are_refused_for_any_feature(hypothesis):
    with pytest.raises(FormatError, match=r"^n:2: expected a hypothesis of plain words"):
        added([nbest(b"t2"), nbest(hypothesis)], [("WP", of_targets(WordPenaltyScorer(TARGET)))])


@pytest.mark.parametrize("feature", [Feature(scorer()[0], phrases), Feature(scorer()[0])])
def test_a_source_that_the_segmentation_does_not_cover_is_refused_by_all_that_read_it(feature):
    lines = [nbest(b"t2", b" ||| 0-2=0"), nbest(b"t3", b" ||| 0-3=0", sentence=1)]
    with pytest.raises(FormatError, match=r"^n:2: expected 4 source words of sentence 1, .*, found 3: 's3 s4 s5'"):
        added(lines, [("RNN", feature)], [b"s2 s3 s4", b"s3 s4 s5"])
    assert added(lines, [("RNN", feature)], [b"s2 s3 s4", b"s3 s4 s5 s6"])
    language_model = [("CSLM", of_targets(cslm()))]
    assert added(lines, language_model, [b"s2", b"s3"]) == added(lines, language_model, None)  # reads no source


@pytest.mark.parametrize(
    ("source", "hypothesis", "side", "share"),
    [
        (b"s2 s3", b"t2 t2 x", None, 1 / 3),
        (b"s2 s3", b"t2 x", None, 1 / 2),
        (b"s2 s3", b"t2 x x", "hypothesis", 2 / 3),
        (b"s2 x x", b"t2", "source", 0),
    ],
)
def test_a_model_that_knows_less_than_half_of_the_words_is_refused_unless_it_is_allowed(
    source, hypothesis, side, share
):
    knows = [frozenset(known).__contains__ for known in ([b"s2", b"s3"], [b"t2"])]
    feature = Feature(scorer()[0], whole, True, *knows)
    allowed, _ = adding([nbest(hypothesis)], [("RNN", feature)], [source], allow_misfit=True)
    assert allowed.unknown == {"RNN0": pytest.approx(share)}
    if side is None:
        assert added([nbest(hypothesis)], [("RNN", feature)], [source])
        return
    with pytest.raises(
        MisfitError, match=f"^n: expected a list that RNN0's model knows, found 66.7% of the {side} words"
    ):
        added([nbest(hypothesis)], [("RNN", feature)], [source])


def test_scores_that_are_not_finite_are_an_error_that_names_the_hypothesis():
    lines = [nbest(b"t3 \xff"), nbest(b"t2")]
    with pytest.raises(ScoreError) as caught:
        added(lines, [("CSLM", of_targets(cslm(b_G=float("nan"))))])
    of_line = "CSLM0, line 2 of the list: CSLM: "  # which comes first among the distinct ones
    assert caught.value.message == f"{of_line}expected a log-probability, found nan for 't2' in 't2'"


def test_a_phrase_that_has_no_score_is_named_with_its_line():
    class Broken(type(scorer()[0])):
        def log_probs(self, pairs, tally=None):
            raise ScoreError("no score", pairs.targets.index(b"t4"))

    broken = Broken.__new__(Broken)
    lines = [nbest(b"t2 t3", b" ||| 0-1=0 2=1"), nbest(b"t2 t4", b" ||| 0-1=0 2=1")]
    with pytest.raises(ScoreError, match="^RNN0, line 2 of the list: no score"):
        added(lines, [("RNN", Feature(broken, phrases))])


def test_a_source_text_of_another_list_is_noticed_by_what_reads_sources():
    lines = [nbest(b"t2", sentence=1)]
    of_sources = [("RNN", Feature(scorer()[0]))]
    with pytest.raises(InputError, match=r"n: expected as many sentences as the source has, 3, found 2"):
        added(lines, of_sources)
    assert added(lines, of_sources, SOURCES[:2])
    assert added(lines, whole_sentences())
