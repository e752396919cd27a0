import stat

import pytest

from moses_rnn.moses.programs import Moses


@pytest.fixture
def false_moses(tmp_path):
    """A folder with a mert and a kbmira that keep their arguments and files, and answer as they were made to."""
    (tmp_path / "bin").mkdir()

    def answering(program, answer, output, code=0):
        path = tmp_path / "bin" / program
        path.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncp * {tmp_path}\n'
            + (f"echo '{answer}' > {output}\n" if answer else "")
            + f"echo what went wrong >&2\nexit {code}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Moses(tmp_path)

    return answering
