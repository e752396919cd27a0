import pytest

from moses_rnn.errors import FormatError, InputError, MosesRnnError, number_of, shown

CASES = [
    (MosesRnnError("t.gz: is lost"), "t.gz: is lost"),
    (InputError("t.gz: is lost", advice="Find it."), "t.gz: is lost\n  Find it."),
    (InputError("t.gz: is lost", advice="Find it,\nor make it anew."), "t.gz: is lost\n  Find it,\n  or make it anew."),
    (FormatError("t.gz", 3, "a line", "none"), "t.gz:3: expected a line, found none"),
    (FormatError("t.gz", None, "a line", "none", "Write one."), "t.gz: expected a line, found none\n  Write one."),
]


@pytest.mark.parametrize(("error", "text"), CASES, ids=range(len(CASES)))
def test_as_text_an_error_is_its_message_and_its_advice(error, text):
    assert str(error) == text
    assert error.message == text.partition("\n")[0]


def test_a_layer_above_adds_advice_behind_what_is_there():
    error = FormatError("t.gz", 3, "a line", "none", "Write one.")
    error.add_advice("Two lines are kept.")
    error.add_advice("")
    assert str(error).endswith("found none\n  Write one.\n  Two lines are kept.")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("bâton\n".encode(), "'bâton'"),
        (b"b\xe2ton", r"'b\xe2ton'"),
        ("a\x1b[31m\u202eb".encode(), r"'a\x1b[31m\u202eb'"),
        ("é".encode() * 150, "'" + "é" * 100 + "' … (300 bytes)"),
        (b"x" + "é".encode() * 150, "'x" + "é" * 99 + "' … (301 bytes)"),
    ],
)
def test_bytes_are_shown_as_text_if_they_are_any_and_never_command_a_terminal(data, text):
    assert shown(data) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1, "line"), "1 line"),
        ((0, "line"), "0 lines"),
        ((2000, "line is", "lines are"), "2,000 lines are"),
        ((1, "line is", "lines are"), "1 line is"),
        ((1.0, "minute"), "1 minute"),
        ((0.5, "minute"), "0.5 minutes"),
    ],
)
def test_one_thing_is_no_plural(arguments, text):
    assert number_of(*arguments) == text
