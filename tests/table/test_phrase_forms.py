from dataclasses import asdict

import numpy as np
import pytest

from moses_rnn.errors import FormatError
from moses_rnn.table.phrase_table import Shape, parse_table, read_first_line
from moses_rnn.table.phrases import PLAIN, PhraseForm
from moses_rnn.table.table_blocks import TableLines, append_scores, parse_blocks

RULE = b"le [X][X] noir [X][X] [X] ||| the [X][X] black [X][X] [X] ||| 0.5 1 ||| 0-0 1-3 2-2 3-1 ||| 1 1 1 ||| |||\n"
RULES = [
    b"chat [X] ||| cat [X] ||| 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n",
    RULE,
    RULE.replace(b"1-3 2-2 3-1", b"1-1 2-2 3-3"),
    b"[X][NP] dort [S] ||| [X][NP] sleeps [S] ||| 1 1 ||| 0-0 1-1\n",
]
READ = [
    (b"chat [X]", b"cat [X]"),
    (b"le [X][X]1 noir [X][X]2 [X]", b"the [X][X]2 black [X][X]1 [X]"),
    (b"le [X][X]1 noir [X][X]2 [X]", b"the [X][X]1 black [X][X]2 [X]"),
    (b"[X][NP]1 dort [S]", b"[X][NP]1 sleeps [S]"),
]
FACTORED = [
    b"la|DT|x maison|NN|y ||| house|N ||| 0.5 1 ||| 1-0\n",
    b"la|DT|x ||| the|D big|A ||| 0.5 1\n",
    b"\xc3\xa9t\xc3\xa9|NN| |||summer|N|||1 1\n",
]


def blocks_of(lines, form=PLAIN, size=1000):
    return TableLines.joined(
        list(parse_blocks([b"".join(lines[i : i + size]) for i in range(0, len(lines), size)], "t", form=form))
    )


def pairs_of(block, *, inverse=False):
    return list(zip(*block.pairs().sides(inverse=inverse), strict=True))


def test_rules_are_seen_and_their_gaps_numbered():
    for size in (1, 3, 1000):
        block = blocks_of(RULES, size=size)
        assert pairs_of(block) == READ
        assert block.form == PhraseForm(hierarchical=True)
        assert pairs_of(block[1:3]) == READ[1:3]
        assert pairs_of(block.after(2), inverse=True) == [(target, source) for source, target in READ[2:]]


def test_scores_are_added_to_rules_and_nothing_else_changes():
    block = blocks_of(RULES)
    scored = append_scores(block.text, block.spans, np.full((len(RULES), 1), 0.25))
    assert scored.replace(b" 0.25", b"") == b"".join(RULES)
    assert [line.scores.split()[-1] for line in parse_table(scored.splitlines(keepends=True), "t")] == [b"0.25"] * 4


@pytest.mark.parametrize(
    ("form", "read"),
    [
        (PhraseForm(0, 0), [(b"la maison", b"house"), (b"la", b"the big"), ("été".encode(), b"summer")]),
        (PhraseForm(1, 1), [(b"DT NN", b"N"), (b"DT", b"D A"), (b"NN", b"N")]),
        (PhraseForm(2, 0), [(b"x y", b"house"), (b"x", b"the big"), (b"", b"summer")]),
    ],
)
def test_one_factor_of_each_side_is_read(form, read):
    assert pairs_of(blocks_of(FACTORED, form)) == read
    assert [form.read(line.source, line.target, b"") for line in parse_table(FACTORED, "t", form=form)] == read


def test_only_one_side_may_have_factors():
    assert pairs_of(blocks_of([b"la ||| the|D ||| 1\n"], PhraseForm(None, 0))) == [(b"la", b"the")]
    with pytest.raises(FormatError, match=r"t:1: expected source words without factors, found 'la\|DT'"):
        blocks_of([b"la|DT ||| the|D ||| 1\n"], PhraseForm(None, 0))


REFUSED = {
    "phrase pair among rules": ([RULE, b"le ||| the ||| 1 1\n"], PLAIN, r"t:2: expected a left-hand side such as \[X\] at the end of the source, as on the first line, found 'le'"),
    "rule among phrase pairs": ([b"le ||| the ||| 1 1\n", RULE], PLAIN, r"t:2: expected words without brackets, found 'le \[X\]\[X\] noir"),
    "no alignment": ([b"le [X][X] [X] ||| the [X][X] [X] ||| 1\n"], PLAIN, "t:1: expected an alignment that pairs the 1 and 1 non-terminals one to one, found ''"),
    "twice aligned": ([RULE.replace(b"3-1", b"3-3")], PLAIN, "pairs the 2 and 2 non-terminals"),
    "too few factors": (FACTORED, PhraseForm(3, 0), r"t:1: expected source words with a factor 3 \(counted from 0\), found 3 in 'la\|DT\|x maison\|NN\|y'"),
    "factors in some words of a rule": ([b"a b|c [X] ||| x|y [X] ||| 1 ||| 0-0\n"], PhraseForm(0, 0), r"expected the same number of factors in every source word, found 'a b\|c'"),
    "a label with a bar": ([b"a|b|c [P|Q][X] [X] ||| x|y|z [X][X] [X] ||| 1 ||| 1-1\n"], PhraseForm(2, 2), "same number of factors in every source word"),
    "fewer factors than before": ([*FACTORED, b"la|DT ||| the|D ||| 1 1\n"], PhraseForm(0, 0), "t:4: expected 3 factors in source words, as on the lines before, found 2"),
    "plain words behind factors": ([*FACTORED, b" ||| the ||| 1 1\n"], PhraseForm(0, 0), "t:4: expected 2 factors in target words"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses(case):
    lines, form, message = case
    with pytest.raises(FormatError, match=message):
        list(parse_table(lines, "t", form=form))
    with pytest.raises(FormatError, match=message):
        list(parse_blocks([b"".join(lines)], "t", form=form))


def test_a_look_at_the_first_line(tmp_path):
    (tmp_path / "rules").write_bytes(RULE)
    line, form = read_first_line(str(tmp_path / "rules"))
    assert (line.line, form) == (RULE, PhraseForm(hierarchical=True))
    (tmp_path / "factored").write_bytes(FACTORED[0])
    line, form = read_first_line(str(tmp_path / "factored"))
    assert (Shape.of(line), form) == (Shape(2, (3, 2), aligned=True), PhraseForm(0, 0))
    (tmp_path / "both").write_bytes(b"[X][X] a|A [X] ||| [X][X] b [X] ||| 1 ||| 0-0\n")
    assert Shape.of(read_first_line(str(tmp_path / "both"))[0]) == Shape(1, (2, 1), aligned=True)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(FormatError, match="empty"):
        read_first_line(str(tmp_path / "empty"))


@pytest.mark.parametrize("form", [PLAIN, PhraseForm(0, 1), PhraseForm(None, 2, hierarchical=True)])
def test_a_form_goes_through_a_record(form):
    assert PhraseForm.from_record(asdict(form)) == form


@pytest.mark.parametrize("record", [None, 3, {}, {"source_factor": -1, "target_factor": "0", "hierarchical": 1}])
def test_other_records_are_plain(record):
    assert PhraseForm.from_record(record) == PLAIN
