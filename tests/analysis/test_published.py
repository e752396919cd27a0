"""What papers report: each name of the pipeline's systems has its figures, and they stand under paper and test set."""

import re

import pytest

from moses_rnn.analysis.published import (
    CHO_2014,
    NAMES,
    PERPLEXITIES,
    PUBLISHED,
    PUBLISHED_TABLES,
    format_published,
)
from moses_rnn.formats.systems import read_systems


def test_every_published_row_has_its_system():
    assert {system.published for system in read_systems().values()} - {None} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_the_rows_of_cho_et_al():
    assert PUBLISHED[read_systems()["rnn"].published] == (31.20, 33.87, CHO_2014)


@pytest.mark.parametrize("table", [*PUBLISHED_TABLES.values()], ids=PUBLISHED_TABLES)
def test_tables_name_paper_and_test_set_and_have_whole_rows(table):
    assert "arXiv:" in table.source
    assert "WMT'14" in table.source
    assert {len(row) for row in table.rows} == {1 + len(table.columns)}


@pytest.mark.parametrize("table", [*PERPLEXITIES.values()], ids=PERPLEXITIES)
def test_tables_of_perplexities_name_paper_and_text_and_have_whole_rows(table):
    assert re.search(r" et al. \(20\d\d\), Table \d: perplexities of the ", table.source)
    assert {len(row) for row in table.rows} == {3}
    assert all(int(figure) > 100 for row in table.rows for figure in row[1:] if figure)


def test_each_table_is_printed_once_and_in_order():
    lines = list(format_published(["baseline", "sutskever-rescoring", None, "bahdanau", "sutskever-rescoring"]))
    sources = [line for line in lines if line.startswith("Published, not ours: ")]
    assert [source.split()[3] for source in sources] == ["Sutskever", "Bahdanau"]
    assert lines[:5] == [
        "",
        sources[0],
        "",
        "| system | BLEU |",
        "|---|---|",
    ]
    assert "| RNNenc-30 | 13.93 | 24.19 |" in lines


def test_of_rows_alone_nothing_stands_below():
    assert list(format_published(["baseline", "rnn", None])) == []


def test_perplexities_are_printed_likewise():
    lines = list(format_published(["mikolov"]))
    assert lines[1].startswith("Published, not ours: Mikolov et al. (2010), Table 2: ")
    assert lines[3:6] == ["| system | RNN | with KN5 |", "|---|---|---|", "| KN5 |  | 221 |"]
