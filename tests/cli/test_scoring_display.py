"""What is said at the end of a scoring."""

import pytest

from moses_rnn.cli.scoring_display import show_ini_lines, summary
from moses_rnn.scoring.phrase_tables import ScoringReport
from moses_rnn.scoring.request import IniRequest, ScoringRequest, ScoringResult

REPORT = ScoringReport(lines=1000, unknown=[250], floored=[1], lowest=[-87.0], highest=[-0.5])
RESULT = ScoringResult(REPORT, "PhraseDictionaryMemory …", "TranslationModel0= 1", ("RNN",), 0, (), "torch, fp32")


def request(output="t.gz", ini=None):
    return ScoringRequest(table="t", output=output, models=(), ini=ini)


def test_a_summary_names_every_file_and_the_scores():
    assert list(summary(request(ini=IniRequest("moses.ini", "new.ini")), RESULT)) == [
        "1,000 lines in and out: t.gz",
        "signature: t.gz.json",
        "ini: new.ini",
        "computed by: torch, fp32",
        "RNN: log values from -87 to -0.5",
        "RNN: 25.0% of the pairs have <unk>, 0.1% of the scores were raised to the floor",
    ]


def test_an_empty_shard_has_no_scores():
    empty = ScoringResult(ScoringReport(), "", "", ("RNN",), 2, (), "torch, fp32")
    assert list(summary(request("-"), empty)) == ["0 lines, 2 left out: -", "computed by: torch, fp32"]


@pytest.mark.parametrize("on_stderr", [False, True])
def test_lines_of_an_ini_go_where_the_table_does_not(capsys, on_stderr):
    show_ini_lines(RESULT, on_stderr=on_stderr)
    out, messages = capsys.readouterr()
    printed = "[feature]\nPhraseDictionaryMemory …\n\n[weight]\nTranslationModel0= 1\n"
    assert (out, messages) == (("", printed) if on_stderr else (printed, ""))
