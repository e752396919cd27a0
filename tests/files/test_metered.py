import contextlib
import gzip
import io
import os

import pytest

from moses_rnn.errors import Stopped
from moses_rnn.files.metered import Meter
from moses_rnn.files.streams import read_lines

TEXT = b"un\ndeux\n"
LINES = [b"un\n", b"deux\n"]


def test_waiting_at_a_pipe_can_be_interrupted(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def waiting():
        raise Stopped("enough")

    with pytest.raises(Stopped, match="enough"):  # no writer
        list(read_lines(str(tmp_path / "pipe"), meter=Meter(waiting=waiting)))
    with contextlib.closing(io.FileIO(tmp_path / "pipe", "r+")) as writer:
        writer.write(b"a ||| b")
        with pytest.raises(Stopped, match="enough"):  # a writer that has fallen silent
            list(read_lines(str(tmp_path / "pipe"), meter=Meter(waiting=waiting)))


def test_the_meter_follows_the_reading(tmp_path):
    meter = Meter()
    (tmp_path / "t.gz").write_bytes(gzip.compress(TEXT))
    assert list(read_lines(str(tmp_path / "t.gz"), meter=meter)) == LINES
    assert (meter.share, meter.bytes_read) == (1, (tmp_path / "t.gz").stat().st_size)
