"""One pair explained, by any network, with a table and without."""

import re

import pytest

import moses_rnn
from moses_rnn.errors import InputError


@pytest.mark.parametrize("name", ["rnn", "inverse", "search"])
def test_words_sum_to_the_pair(models, name):
    model = moses_rnn.load(models / name, device="cpu")
    explanation = model.explain("s2 s3 s9", "t2 t3")
    assert sum(word.log_prob for word in explanation.words) == pytest.approx(explanation.log_prob, rel=1e-5)
    assert explanation.log_prob == pytest.approx(model.score([("s2 s3 s9", "t2 t3")])[0], rel=1e-5)
    text = str(explanation)
    assert text.startswith("s2 s3 s9 ||| t2 t3\n\n")
    assert "word by word" in text
    assert "table" not in text
    shown = model.explain("s2 <b>", "t2 <i>")._repr_html_()
    assert shown.startswith("<pre>s2 &lt;b&gt; ||| t2 &lt;i&gt;\n")
    assert re.search(r">&lt;[bi]&gt; \(&lt;unk&gt;\)<br>-\d", shown)
    assert shown.count("<td") == 3
    assert not re.search("<[bi]>", shown)


def test_an_ensemble_is_explained(models):
    both = moses_rnn.load([models / "search"] * 2, device="cpu")
    assert len(both.explain("s2", "t2 t8").words) == 3


def test_a_table_is_compared_with(models, encdec):
    explanation = encdec.explain("s2 s3", "t2 t3", table=models / "table")
    assert (explanation.in_table, explanation.targets) == (True, 2)
    assert [column.score for column in explanation.columns] == [0.5, 0.25, 0.125, 1]
    assert "one of 2 targets of its source in the table" in str(explanation)
    assert encdec.explain(" s2  s3", "t2 t3 ", table=models / "table") == explanation
    with pytest.raises(InputError, match="table:1: expected source words with a factor 1"):
        moses_rnn.load(models / "factored").explain("a|s2", "t2", table=models / "table")
