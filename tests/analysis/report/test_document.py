"""A report stands alone, escapes every word, and says what it lacks."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from moses_rnn.analysis.plots import missing_libraries
from moses_rnn.analysis.report.document import write_report
from moses_rnn.analysis.report.findings import gather
from tests.analysis.report.small import NAMES, OPTIONS, SIGNATURE, Producer, Reader


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


def test_every_word_is_escaped(findings):
    text = write_report(findings).decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<bdi>u \\xff</bdi>" in text
    assert "<bdi>&lt;img/src=x&gt; &amp;</bdi>" in text
    assert "<bdi>\\u202ex</bdi>" in text
    assert "t&lt;1&gt;" in text
    assert "moses_rnn &lt;b&gt;" in text


def test_equal_findings_give_equal_bytes(findings):
    again = gather(findings.table, findings.model, Producer(), OPTIONS, lambda *_: lambda *_: None)
    assert write_report(again) == write_report(findings)


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


def test_pictures_are_there_if_the_libraries_are(findings):
    pictures = {"scatter", "words", "phrases"} if "matplotlib" not in missing_libraries() else set()
    assert set(findings.pictures) == pictures
    assert write_report(findings).count(b"data:image/svg+xml;base64,") == len(pictures)


def test_a_page_on_another_network_leaves_out_what_is_not_known(findings, search_findings):
    text = write_report(search_findings).decode()
    page = Reader(text)
    assert page.open == []
    assert page.ids == [*NAMES[:-2], "alignments"]
    assert "by what the decoder begins with" in text
    assert "by their summary c" in write_report(findings).decode()


def test_heat_maps_are_there_in_per_cent_too(search_findings):
    pictured = {"line-1", "line-4"} if "matplotlib" not in missing_libraries() else set()
    assert {name for name in search_findings.pictures if name.startswith("line-")} == pictured
    text = write_report(search_findings).decode()
    assert "Line 1: a &lt;b&gt; &#x27;c → " in text
    for word in ("&lt;b&gt;", "&#x27;c"):
        assert f'<th scope="col" class="figure">{word}</th>' in text
    without = write_report(replace(search_findings, pictures={}, missing=["matplotlib"])).decode()
    assert "Line 4 in per cent" in without
    nothing = write_report(replace(search_findings, alignments=())).decode()
    assert "There are no such lines." in nothing
    assert "Alignments" not in write_report(replace(search_findings, options=OPTIONS, alignments=())).decode()
