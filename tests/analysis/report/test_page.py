"""Markup: what is escaped, and cells that several rows share."""

import re

import pytest

from moses_rnn.analysis.report.page import Markup, answer, curve, element, markup, page, phrase, profile, table
from moses_rnn.formats.grids import Grid


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


def test_a_curve_goes_from_the_first_point_to_the_last_and_falls():
    drawn = curve([(5, 3.0), (10, 1.0)], 4.0, "nats")
    assert '<polyline points="130.0,22.9 230.0,80.0">' in drawn  # 72 · log(4/3) / log 4 below the top
    assert '<polyline points="30.0,8.0 230.0,8.0" class="beside">' in drawn
    assert ">4.00<" in drawn
    assert "beside" not in curve([(5, 3.0), (10, 3.0)], None, "flat")


def test_a_profile_has_a_column_for_each_count():
    drawn = profile([0, 5, 10], "how many")
    assert [float(h) for h in re.findall('height="([0-9.]+)"></rect>', drawn)] == [0, 8, 16]
    assert 'aria-label="how many"' in drawn
    assert profile([0, 0], "nothing").count("<rect") == 2


def test_a_page_without_sections():
    assert page("t", [], [], "f").startswith(b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')


def test_what_an_answer_quotes_does_not_break_within_itself():
    shown = answer("good", "Is it <good>?", "Yes", "Give `--results results.json` to see.")
    assert shown == (
        '<div class="answer good"><h2>Is it &lt;good&gt;?</h2><p><strong>Yes. </strong>Give '
        "<code>--results results.json</code> to see.</p></div>"
    )
