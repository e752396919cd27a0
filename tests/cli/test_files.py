"""What commands read: files that are not there are named; where results go."""

import pytest

from moses_rnn.cli.files import content_of, inputs_of, output_to, text_of
from moses_rnn.errors import InputError, OutputError


def test_lines_lose_their_ends_alone(tmp_path):
    (tmp_path / "t").write_bytes(b"a \r\n\nb")
    assert text_of(str(tmp_path / "t")) == [b"a ", b"", b"b"]
    assert content_of(str(tmp_path / "t")) == b"a \r\n\nb"


@pytest.mark.parametrize("read", [content_of, text_of, inputs_of])
def test_what_is_not_there_is_named(tmp_path, read):
    with pytest.raises(InputError, match="nothing"):
        read(str(tmp_path / "nothing"))


def test_what_was_not_named_is_no_input(tmp_path):
    (tmp_path / "t").touch()
    assert inputs_of(str(tmp_path / "t"), None) == (str(tmp_path / "t"),)


def test_an_input_is_no_output(tmp_path):
    (tmp_path / "t").touch()
    with pytest.raises(OutputError, match="is the input"):
        output_to(str(tmp_path / "t"), True, inputs_of(str(tmp_path / "t")))
