"""Lists that commands read: files that are not there are named."""

import pytest

from moses_rnn.cli.nbest.files import parsed_list
from moses_rnn.errors import InputError


def test_a_list_has_a_name_and_lines(tmp_path):
    (tmp_path / "n").write_bytes(b"0 ||| a ||| F= 1 ||| 1\n")
    name, lines = parsed_list(str(tmp_path / "n"))
    assert (name, [line.hypothesis for line in lines]) == (str(tmp_path / "n"), [b"a"])


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="nothing"):
        parsed_list(str(tmp_path / "nothing"))
