import hashlib
import json

import pytest

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats import validation
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.formats.validation import check_signature, validate

LINES = [
    b"a ||| b c ||| 0.5 1 ||| 0-0\n",
    b"a ||| b d ||| 0.25 1 ||| 0-0\n",
    b"b c d ||| b ||| 0.125 1 ||| 0-0\n",
    b"b c d ||| b ||| 0.5 1 ||| 0-0\n",
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"".join(LINES))
    return path


def check(path, **options):
    bad = []
    report = validate(str(path), bad.append, lambda *_: None, **options)
    assert bad == []
    return report


def test_what_a_table_holds(table):
    report = check(table)
    assert (report.lines, report.sources, report.longest_source, report.longest_target) == (4, 2, 3, 2)
    assert (report.repeated, report.unsorted, report.bad_lines, report.warnings) == (1, None, 0, [])
    assert report.ranges == [(0.125, 0.5), (1, 1)]
    assert list(report.summary()) == [
        f"{table}: 4 lines with 2 scores each",
        "  sources: 2, of up to 3 words (targets 2)",
        "  score 1: 0.125 to 0.5",
        "  score 2: 1 to 1 (constant: MERT cannot find a weight for it)",
        "  sorted as by LC_ALL=C sort: yes",
        "  lines that repeat the pair above: 1",
        "  signature: none beside it",
    ]


def test_bad_lines_are_named_before_the_table_is_refused(table):
    table.write_bytes(LINES[0] + b"bad\n" + LINES[1] + b"worse ||| b ||| x\n")
    bad = []
    with pytest.raises(InputError, match="t: expected only phrase pairs, found 2 good ones and 2 bad ones"):
        validate(str(table), bad.append, lambda *_: None)
    assert [line.partition(": expected")[0] for line in bad] == [f"{table}:2", f"{table}:4"]


def test_the_first_line_out_of_order(table):
    table.write_bytes(b"".join(reversed(LINES)))
    assert check(table).unsorted == 2
    with pytest.raises(FormatError, match=r"t:2: expected the order of LC_ALL=C sort, .*\n  cat .* \| LC_ALL=C sort"):
        check(table, must_be_sorted=True)


def test_progress_comes_now_and_then(table, monkeypatch):
    monkeypatch.setattr(validation, "LINES_BETWEEN_LOOKS", 2)
    calls = []
    validate(str(table), pytest.fail, lambda *call: calls.append(call))
    assert calls == [(2, 1.0), (4, 1.0)]


def test_odd_lines_are_warnings_or_errors(table):
    table.write_bytes(LINES[0] + b"b ||| ||| 0.5 1\n")
    assert [warning.split(": ")[1] for warning in check(table).warnings] == ["empty target (1 line)"]
    with pytest.raises(FormatError, match=r"t:2: expected no empty target \(--strict\)"):
        check(table, strict=True)


def test_a_form_is_heeded(table):
    table.write_bytes(b"a|N ||| b|V ||| 0.5\n")
    assert check(table, form=PhraseForm(0, 1)).lines == 1


def sign(table, **changes):
    data = table.read_bytes()
    file = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    record = {"program": "moses_rnn 1", "lines": 4, "columns": 2, "file": file} | changes
    table.with_name("t.json").write_text(json.dumps(record))


def test_a_signature_that_agrees(table):
    sign(table)
    size = table.stat().st_size
    assert check_signature(str(table)).startswith(f"{size} bytes, SHA-256 ")
    assert check(table).signature == check_signature(str(table))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lines": 5}, "t: expected 5 lines and 2 scores as in its signature, found 4 and 2"),
        ({"columns": 1}, "t: expected 4 lines and 1 scores as in its signature, found 4 and 2"),
        ({"file": {}}, "t.json: expected size and SHA-256 of the table, found none"),
        ({"file": {"bytes": 1, "sha256": "0"}}, "t: expected 1 bytes, SHA-256 0… as in its signature, found .*\n  The"),
    ],
)
def test_a_signature_that_does_not(table, changes, message):
    sign(table, **changes)
    with pytest.raises(InputError, match=message):
        check(table)


def test_no_signature_to_check(table):
    with pytest.raises(InputError, match="t.json: expected the signature that moses-rnn-score writes, found none"):
        check_signature(str(table))
    with pytest.raises(InputError, match="expected a regular file, whose content can be compared"):
        check_signature(str(table.parent))
