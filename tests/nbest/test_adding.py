"""Features added to n-best lists: every other byte stays, and a value depends on its hypothesis alone."""

import itertools
import re

import numpy as np
import pytest
import torch

from moses_rnn.errors import FormatError, InputError, MisfitError
from moses_rnn.models.phrases import WordPenaltyScorer
from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.nbest import adding as adding_module
from moses_rnn.nbest.adding import ListFeatures, label_features
from moses_rnn.nbest.features import Feature
from moses_rnn.networks.cslm import CslmConfig
from tests.models.pairs import TARGET, scorer
from tests.networks.checkpoints import cslm_checkpoint
from tests.networks.networks import cslm_network

SOURCES = [b"s2 s3 s9", b"s4\ts5", b""]
ADDED = re.compile(rb" (?:CSLM|WP|RNN)[01]= [-+.e0-9]+")


def cslm(**changed):
    model = cslm_network(CslmConfig(len(TARGET), order=3, embedding_size=4, first_size=8, second_size=4))
    with torch.no_grad():
        for name, value in changed.items():
            getattr(model, name).fill_(value)
    return cslm_checkpoint(model, TARGET).make_language_model()


def whole_sentences():
    return [("CSLM", of_targets(cslm())), ("WP", of_targets(WordPenaltyScorer(TARGET)))]


def of_targets(scorer):
    return Feature(scorer, of_sources=False)


def nbest(hypothesis, further=b"", sentence=0, features=b"LM0= -4 TM0= -1.5 -2"):
    return b"%d ||| %b  ||| %b ||| -4.5%b\n" % (sentence, hypothesis, features, further)


def parsed(lines):
    return list(parse_nbest(lines, "n"))


def added(lines, named, sources=SOURCES, **options):
    return adding(lines, named, sources, **options)[1]


def adding(lines, named, sources=SOURCES, **options):
    """What adds the features, when it has, and the list with them."""
    given_lines = parsed(lines)
    features = ListFeatures("n", sources, label_features(given_lines[0], named), **options)
    return features, b"".join(features.add(given_lines))


# The bytes of a list

ODD = {
    "Moses's": nbest(b"t2 t3"),
    "alignment": nbest(b"t2 t3", b" ||| 0-0 1-1 "),
    "segmentation and alignment": nbest(b"t2 t3", b" ||| 0=0 1-2=1 ||| 0-0 1-1 "),
    "further fields": nbest(b"t2", b" ||| 0-2=0 ||| ||| s2 s3 |||\t|||"),
    "CRLF": nbest(b"t2")[:-1] + b"\r\n",
    "no line end": nbest(b"t2")[:-1],
    "U+00A0": nbest("t2\u00a0t3 \u00a0 t2".encode()),
    "Windows-1252": nbest(b"caf\xe9 \x96 \xa0t2\xa0 \x93t3\x94"),
    "no text": nbest(b"\x00 \xff\xfe \x1b[1m \r t2"),
    "tabs and blanks": b"\t0  ||| \tt2\t t3 |||\tLM0=\t-4 \t |||  -4.5\t \n",
    "no blanks": b"0|||t2|||LM0= -4|||1\n",
    "empty hypothesis": nbest(b""),
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


@pytest.mark.parametrize(
    ("features", "names", "labels"),
    [
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


def test_a_later_line_must_not_have_the_feature_already():
    lines = [nbest(b"t2"), nbest(b"t2", features=b"LM0= -4\tWP0= -1")]
    with pytest.raises(FormatError, match="^n:2: expected the features of the first line, found also WP0="):
        added(lines, [("WP", of_targets(WordPenaltyScorer(TARGET)))])
    assert added(lines[::-1], [("WP", of_targets(WordPenaltyScorer(TARGET)))]).count(b" WP1= ") == 2


def test_values_have_the_precision_that_moses_prints():
    (line,) = parsed([added([nbest(b"t2 t3 x")], whole_sentences())])
    (value,) = of_targets(cslm()).scores([line], [b""], "n")
    assert line.values("CSLM0") == [float(f"{value:.6g}")] != [value]


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
    monkeypatch.setattr(adding_module, "LINES", together)
    report, _ = adding([nbest(text, sentence=sentence) for sentence, text in hypotheses], whole_sentences())
    assert report.constant == constant
    assert (report.lines, report.sentences) == (len(hypotheses), len({sentence for sentence, _ in hypotheses}))


# What is refused


@pytest.mark.parametrize("feature", [Feature(scorer()[0], summed=True), Feature(scorer()[0])])
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
    feature = Feature(scorer()[0], False, False, True, *knows)
    allowed, _ = adding([nbest(hypothesis)], [("RNN", feature)], [source], allow_misfit=True)
    assert allowed.unknown == {"RNN0": pytest.approx(share)}
    if side is None:
        assert added([nbest(hypothesis)], [("RNN", feature)], [source])
        return
    with pytest.raises(
        MisfitError, match=f"^n: expected a list that RNN0's model knows, found 66.7% of the {side} words"
    ):
        added([nbest(hypothesis)], [("RNN", feature)], [source])


def test_a_source_text_of_another_list_is_noticed_by_what_reads_sources():
    lines = [nbest(b"t2", sentence=1)]
    of_sources = [("RNN", Feature(scorer()[0]))]
    with pytest.raises(InputError, match=r"n: expected as many sentences as the source has, 3, found 2"):
        added(lines, of_sources)
    assert added(lines, of_sources, SOURCES[:2])
    assert added(lines, whole_sentences())


# The order of a list


def random_list(sentences=6, hypotheses=12, seed=4):
    """Lines with segmentations, and their sources; words are s0…s9 and t0…t9, of which some are outside shortlists."""
    random = np.random.default_rng(seed)
    sources = [b" ".join(b"s%d" % i for i in random.integers(0, 10, 8)) for _ in range(sentences)]
    lines = []
    for sentence, _ in itertools.product(range(sentences), range(hypotheses)):
        ends = [0, *sorted(set(random.integers(1, 8, 3).tolist())), 8]
        spans = [b"%d-%d=%d-%d" % (a, b - 1, a, b - 1) for a, b in itertools.pairwise(ends)]
        hypothesis = b" ".join(b"t%d" % i for i in random.integers(0, 10, 8))
        lines.append(nbest(hypothesis, b" ||| " + b" ".join(spans), sentence))
    return lines, sources


LINES, OF_LINES = random_list()
ORDERS = {
    "backwards": range(len(LINES))[::-1],
    "within sentences": np.random.default_rng(1).permuted(np.arange(len(LINES)).reshape(6, 12), axis=1).ravel(),
    "all": np.random.default_rng(2).permutation(len(LINES)),
}
SCORERS = {
    "CSLM": lambda: of_targets(cslm()),
    "WP": lambda: of_targets(WordPenaltyScorer(TARGET)),
    "RNN": lambda: Feature(scorer()[0], summed=True),
}


class Lengths:
    """A scorer of scores whose sums are rounded, as those of float32 numbers hardly ever are."""

    def log_probs(self, pairs):
        return np.array([-len(s) / 3 - len(t) / 7 for s, t in zip(pairs.sources, pairs.targets, strict=True)])


def test_a_sum_does_not_depend_on_the_lines_before():
    lines = parsed(LINES)
    sources = [OF_LINES[line.sentence] for line in lines]
    scorer = Feature(Lengths(), summed=True)
    alone = [scorer.scores([line], [source], "n") for line, source in zip(lines, sources, strict=True)]
    assert scorer.scores(lines, sources, "n").tobytes() == np.concatenate(alone).tobytes()


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_lines_in_another_order_are_the_same_lines(order):
    named = [(name, SCORERS[name]()) for name in ("CSLM", "WP", "RNN")]
    before = added(LINES, named, OF_LINES).splitlines()
    assert added([LINES[i] for i in order], named, OF_LINES).splitlines() == [before[i] for i in order]


def test_a_sentence_is_never_parted(monkeypatch):
    monkeypatch.setattr(adding_module, "LINES", 13)
    features = label_features(None, whole_sentences())
    blocks = list(ListFeatures("n", OF_LINES, features).add(parsed(LINES)))
    assert [block.count(b"\n") for block in blocks] == [24, 24, 24]
    monkeypatch.undo()
    assert b"".join(blocks) == added(LINES, whole_sentences(), OF_LINES)
