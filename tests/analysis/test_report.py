import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from moses_rnn.analysis.grids import Grid
from moses_rnn.analysis.plots import missing_libraries
from moses_rnn.analysis.preferences import Preferences, Summary
from moses_rnn.analysis.report.document import write_report
from moses_rnn.analysis.report.findings import ReportConfig, gather
from moses_rnn.analysis.report.head import warnings
from moses_rnn.analysis.report.page import Markup, element, markup, page, phrase, table
from moses_rnn.analysis.report.survey import Literalness
from moses_rnn.analysis.report.verdicts import literal, shorter, verdicts
from moses_rnn.errors import InputError
from moses_rnn.formats.signatures import recorded_column, recorded_floor, recorded_names
from tests.analysis.scored import scored
from tests.analysis.tiny import checkpoint

NAMES = ["coverage", "targets", "samples", "preferences", "scores", "words", "phrases", "gates", "explained"]
CONFIG = ReportConfig(sources=1, min_words=2, samples=5, phrases=20, points=8)
SIGNATURE = {
    "program": "moses_rnn <b>",
    "lines": 9,
    "odd": {"a": [1]},
    "added_columns": [{"index": 4, "name": "RNN", "floor": -5.0, "floored": 1}, "odd"],
    "models": [{"sha256": {}}, 3],
}


def line(source, target, direct, rnn, counts):
    return b"%b ||| %b ||| .1 .1 %g .1 %g ||| 0-0 ||| %b ||| |||\n" % (source, target, direct, rnn, counts)


TABLE = [
    *(line(b"a <script>alert(1)</script>", target, 0.2 + 0.01 * i, 0.3 - 0.01 * i, b"9 40 %d" % (5 + i))
      for i, target in enumerate([b"u \xff", b"v", b"w", b"<img/src=x> &amp;", b"\xe2\x80\xaex"])),
    *(line(b"b c d e", target, 0.33, 0.001, b"9 3 1") for target in [b"u", b"v", b"w"]),
    line(b"c d e f g", b"u v", 1, 0.2, b"9 1 1"),
]  # fmt: skip


class Producer:
    """Scores by the length of the target."""

    name, num_scores, meaning = "RNN", 1, "minus bytes and a half"

    def log_probs(self, sources, targets, tally=None):
        return -np.array([[0.5 + len(target)] for target in targets])


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    steps = []

    def step(title, _unit):
        steps.append(title)
        return lambda done, share: None

    opened = scored(tmp_path_factory.mktemp("report") / "t<1>", TABLE)
    found = gather(opened, checkpoint(), Producer(), SIGNATURE, CONFIG, step)
    assert steps[:3] == ["counting and choosing", "comparing preferences", "comparing scores"]
    return found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (b"c &apos;est", "c &#x27;est"),
        ("&quot; &#91;X&#93; &#124;", "&quot; [X] |"),
        (b"&lt;script&gt;", "&lt;script&gt;"),
        (b"&amp;lt; &eacute; &lt \xff", "&amp;lt; &amp;eacute; &amp;lt \\xff"),  # once, and only what Moses escapes
    ],
)
def test_phrases_are_shown_without_the_escapes_of_moses(given, shown):
    assert phrase(given) == f"<bdi>{shown}</bdi>"


class Reader(HTMLParser):
    """Notes what a page fetches, and that all its elements end in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses, self.ids, self.metas = [], set(), [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert not {"style", "onclick", "onload", "onerror", "srcset"} & set(given)
        self.tags.add(tag)
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag == "meta":
            self.metas[given.get("name") or given.get("http-equiv")] = given.get("content")
        elif tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_stands_alone(findings):
    text = write_report(findings).decode()
    found = Reader(text)
    assert found.open == []
    assert found.ids == NAMES
    assert {address for address in found.addresses if not address.startswith("data:")} == {f"#{n}" for n in NAMES}
    assert not {"script", "link", "iframe", "object", "base", "form"} & found.tags
    assert not re.search("https?:|@import|url\\(", text)
    style = re.search("<style>(.*?)</style>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert found.metas["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert found.metas["viewport"] == "width=device-width, initial-scale=1"


def headed(findings, signature=(), provenance=()):
    """The warnings above a report."""
    checkpoint = replace(findings.checkpoint, provenance=dict(provenance))
    return list(warnings(replace(findings, signature={**SIGNATURE, **dict(signature)}, checkpoint=checkpoint)))


def test_a_model_that_does_not_fit_is_flagged(findings):
    before = headed(findings)
    column = {"index": 4, "name": "RNN", "unknown_share": 0.205, "floored_share": 0.5}
    assert headed(findings, {"added_columns": [column]}) == [
        *before[:-1],
        "20.5% of the pairs have a word that RNN's model reads as <unk>: it was trained on another table, or its "
        "shortlists are too small.",
        "50.0% of the scores of RNN are at the floor: its model does not fit this table.",
        *before[-1:],
    ]
    assert headed(findings, {"added_columns": [{**column, "unknown_share": 0.2, "floored_share": "1"}]}) == before


def test_a_model_that_learned_nothing_is_flagged(findings):
    history = [{"nats_per_token": 6.5, "seconds": 9.0}]
    told = headed(findings, provenance={"history": history, "unigram_nats_per_token": 6.25})
    assert told[-2] == (
        "The model costs 6.50 nats a held-out target token, a unigram model 6.25: it has learned nothing, and its column "
        "says nothing."
    )
    assert headed(findings, provenance={"history": history, "unigram_nats_per_token": 7}) == headed(findings)


def test_the_head_says_how_training_went(findings):
    history = [{"nats_per_token": 1 / i, "seconds": i} for i in range(1, 8)]
    checkpoint = replace(findings.checkpoint, provenance={"history": history})
    assert (
        "still falling: the held-out cost fell from 0.250 to 0.143"
        in write_report(replace(findings, checkpoint=checkpoint)).decode()
    )


def test_every_word_is_escaped(findings):
    text = write_report(findings).decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<bdi>u \\xff</bdi>" in text
    assert "<bdi>&lt;img/src=x&gt; &amp;</bdi>" in text
    assert "<bdi>\\u202ex</bdi>" in text
    assert "t&lt;1&gt;" in text
    assert "moses_rnn &lt;b&gt;" in text


def test_equal_findings_give_equal_bytes(findings):
    again = gather(findings.table, findings.checkpoint, Producer(), SIGNATURE, CONFIG, lambda *_: lambda *_: None)
    assert write_report(again) == write_report(findings)


@pytest.mark.parametrize(
    "told",
    [
        "3 of 9 pairs (33.33%) have an RNN score at the floor, log p = -5; none has a score of 0.",  # log 0.001 < -5
        "seen 40 times, 5 targets",
        "(section 4.1:",
        "Table 2 (section 4.3):",
        "Table 3 (section 4.3):",
        "Figure 4 (section 4.4):",
        "Section 2.3:",
        "The RNN prefers shorter targets (section 4.3): Not to be decided here.",
        "Score 5, RNN:",
        "is number 5 of 5 with the RNN",
    ],
)
def test_what_is_told(findings, told):
    assert told in write_report(findings).decode()


def test_the_survey(findings):
    n = findings.coverage
    # each line counts: `a <script>…` five times with one unknown word, and \xff, <img/src=x> &amp; and \u202ex
    assert (n.lines, n.sources, n.source_words, n.source_unknown) == (9, 3, 5 * 2 + 3 * 4 + 5, 5)
    assert (n.target_words, n.target_unknown, n.pairs_unknown) == (2 + 1 + 1 + 2 + 1 + 3 + 2, 1 + 2 + 1, 5)
    by_table, by_rnn = (found for found, _ in findings.explained)
    assert (by_table.by, by_table.rank, by_rnn.by, by_rnn.rank) == ("table", 5, "RNN", 5)


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({"signature": {**SIGNATURE, "lines": 8}}, "tells of 8 lines, the table has 9"),
        ({"signature": {**SIGNATURE, "models": []}}, "names another model than this one"),
        ({"signature": {**SIGNATURE, "pruned": [{"by": "<both>", "keep": 0.5, "lines_before": 1800}]}},
         "Pruned by &lt;both&gt;: 0.5 of 1,800 lines were to stay."),
        ({"signature": {**SIGNATURE, "added_columns": [{"index": 4, "floor": -5, "floored": 1, "lowest": -5, "highest": -1}]}},
         "from -5 to -1, 1 raised to the floor -5."),
        ({"signature": {}}, "There is no signature of moses-rnn-score"),
        ({"pictures": {}, "missing": ["matplotlib"]}, "Pictures need matplotlib. pip install &#x27;moses-rnn[plot]&#x27;"),
        ({"missing": ["scikit-learn"]}, "Points are laid out by PCA"),
        ({"maps": {}}, "There are no such phrases."),
        ({"gates": None}, "There are no phrases."),
        ({"explained": []}, "There are no such pairs."),
        ({"proposals": []}, "None."),
    ],
)  # fmt: skip
def test_what_is_lacking_is_said(findings, change, warned):
    assert warned not in write_report(findings).decode()
    text = write_report(replace(findings, **change)).decode()
    assert warned in text
    assert Reader(text).ids == NAMES


@pytest.mark.parametrize("apart", [0.05, 0.2])
def test_a_column_of_another_model_is_noticed(findings, apart):
    (disagreement, explanation), *_ = findings.explained
    near = replace(explanation, log_prob=explanation.columns[4].log + apart)
    text = write_report(replace(findings, explained=[(disagreement, near)])).decode()
    assert ("another model scored it" in text) == (apart > 0.1)


def test_pictures_are_there_if_the_libraries_are(findings):
    pictures = {"scatter", "words", "phrases"} if "matplotlib" not in missing_libraries() else set()
    assert set(findings.pictures) == pictures
    assert write_report(findings).count(b"data:image/svg+xml;base64,") == len(pictures)


def test_an_inverse_model_is_refused(findings):
    inverse = checkpoint(direction="target-to-source")
    with pytest.raises(InputError, match=r"expected a model of p\(target \| source\) to report on, found direction"):
        gather(findings.table, inverse, Producer(), {}, CONFIG, lambda *_: lambda *_: None)


def test_the_column_is_the_recorded_one():
    columns = [{"name": "RNN", "index": 4}, {"name": "RNNInverse", "index": 5}, {"name": "RNN", "index": "odd"}]
    assert recorded_column({"added_columns": columns}, "RNN", 6) == 4
    assert recorded_column({"added_columns": columns}, "RNN", 4) is None  # the table has no such score
    assert recorded_column({"added_columns": "odd"}, "RNN", 6) is None
    assert recorded_names({"added_columns": columns}) == ["RNN", "RNNInverse", "RNN"]


def test_the_floor_is_the_recorded_one():
    columns = [{"index": 4, "floor": -20}, {"index": 5, "floor": None}, "odd"]
    assert [recorded_floor({"added_columns": columns}, column) for column in (4, 5, 6)] == [-20, -87, -87]


def preferred(shorter_share, longer_share, *, sources=100, with_count=None, there=(50, 0.6, 0.1)):
    apart, shorter_there, longer_there = there
    return Preferences("all", sources, 0.5, 0.5, 3, 2, 3, shorter_share, longer_share, apart, shorter_there, longer_there,
                       sources, with_count)  # fmt: skip


# shares of 100 sources; two deviations of so many that differ: 0.3 and 0.1 are 40, of which 20 > 2 * sqrt(40)
@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (preferred(0.3, 0.1), "Holds here"),
        (preferred(0.3, 0.1, there=(0, None, None)), "Holds in part"),  # it only chooses among equally good ones
        (preferred(0.3, 0.1, there=(50, 0.1, 0.6)), "Holds in part"),
        (preferred(0.3, 0.2), "Holds in part"),
        (preferred(0.1, 0.3, there=(50, 0.1, 0.6)), "Does not hold here"),
        (preferred(0.1, 0.3, there=(50, 0.3, 0.2)), "Does not hold here"),
        (preferred(0.3, 0.2, there=(50, 0.3, 0.2)), "Not to be decided here"),
        (preferred(1.0, 0.0, sources=29), "Not to be decided here"),
        (preferred(None, None, sources=0), "Not to be decided here"),
    ],
)
def test_shorter(found, verdict):
    assert shorter(found)[0] == verdict


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [(60, 20, "Holds here"), (20, 60, "Does not hold here"), (41, 39, "Not to be decided here")],
)
def test_literal(more, less, verdict):
    assert literal(Literalness(80, more, less))[0] == verdict


@pytest.mark.parametrize(
    ("over_pairs", "within", "verdict", "told"),
    [
        (0.05, -0.02, "Holds here", "practically no rank correlation"),
        (0.2, 0.0, "Holds in part", "a weak rank correlation"),
        (-0.05, 0.4, "Not seen here", "need not come from counts"),
        (0.6, None, "Not seen here", "Short pairs are both frequent and likely"),
        (None, None, "Not to be decided here", "Of 100 pairs of sources with several targets, all have one count"),
    ],
)
def test_insensitive(over_pairs, within, verdict, told):
    summary = Summary([preferred(0.3, 0.1, with_count=within)], 100, 0.5, over_pairs)
    assert verdicts(summary, Literalness())[2][1] == verdict
    assert told in verdicts(summary, Literalness())[2][2]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<b>", "&lt;b&gt;"),
        (b"\xff", "\\xff"),
        ("\udcff", "\\xff"),
        ("\"'", "&quot;&#x27;"),
        (Markup("<b>"), "<b>"),
        (element("p", "<", id='"'), '<p id="&quot;">&lt;</p>'),
    ],
)
def test_markup(content, expected):
    assert markup(content) == expected


def test_cells_that_rows_share_stand_once():
    grid = Grid("", ("a", "b"), [("x", 1), ("x", 2), ("y", 3)], group_columns=1)
    body = table(grid).partition("<tbody>")[2].partition("</tbody>")[0]
    assert body == (
        '<tr class="group"><th scope="rowgroup" colspan="1">x</th></tr>'
        '<tr><td class="figure">1</td></tr><tr><td class="figure">2</td></tr>'
    )


def test_a_page_without_sections():
    assert page("t", [], [], "f").startswith(b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')
