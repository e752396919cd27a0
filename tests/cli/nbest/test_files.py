"""What the commands read: files that are not there are named."""

import pytest

from moses_rnn.cli.nbest.files import content_of, parsed_list, text_of
from moses_rnn.errors import InputError


def test_lines_lose_their_ends_alone(tmp_path):
    (tmp_path / "t").write_bytes(b"a \r\n\nb")
    assert text_of(str(tmp_path / "t")) == [b"a ", b"", b"b"]
    assert content_of(str(tmp_path / "t")) == b"a \r\n\nb"


def test_a_list_has_a_name_and_lines(tmp_path):
    (tmp_path / "n").write_bytes(b"0 ||| a ||| F= 1 ||| 1\n")
    name, lines = parsed_list(str(tmp_path / "n"))
    assert (name, [line.hypothesis for line in lines]) == (str(tmp_path / "n"), [b"a"])


@pytest.mark.parametrize("read", [content_of, text_of, parsed_list])
def test_what_is_not_there_is_named(tmp_path, read):
    with pytest.raises(InputError, match="nothing"):
        read(str(tmp_path / "nothing"))
