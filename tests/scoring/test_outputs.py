"""The files of a run come into being together or not at all; what an error leaves can be resumed, or is gone."""

import pytest

from moses_rnn.errors import (
    CheckpointError,
    FormatError,
    InputError,
    MisfitError,
    MosesRnnError,
    OutputError,
    Stopped,
)
from moses_rnn.moses.ini_editing import IniEdit
from moses_rnn.scoring.outputs import open_outputs
from tests.scoring.tables import names, request_for

MANIFEST = {"program": "moses_rnn"}
KEPT = {  # and what the advice names
    "a bad line": (FormatError("t", 4, "a pair", "none"), "--on-bad-line skip"),
    "a misfit": (MisfitError("other words"), "--allow-misfit"),
    "a full disk": (OutputError("no room"), "--resume"),
    "any other failure": (MosesRnnError("a device"), "--resume"),
    "a stop": (Stopped("as requested"), None),
}
DISCARDED = {
    "a file that is not a table": FormatError("t", None, "a whole file", "an early end"),
    "a changed table": InputError("was changed"),
    "a damaged model": CheckpointError("no weights"),
}
ALL = {name: error for name, (error, _) in KEPT.items()} | DISCARDED
FOREIGN = {"memory": MemoryError("none is left"), "the system": OSError(5, "Input/output error")}


@pytest.fixture
def rejecting(here, models):
    """To score the table into files of all four kinds."""
    (here / "ini").write_text("[feature]\n")
    ini = IniEdit(str(here / "ini"), str(here / "new.ini"))
    return request_for(here, models, rejects=str(here / "scored.rejects"), ini=ini)


def write_block(outputs, lines=3):
    """A block of lines, with a line before its end that was rejected."""
    outputs.rejects.take(b"bad\n", FormatError("t", outputs.report.read + 1, "a pair", "none"))
    outputs.report.lines += lines
    outputs.report.read += lines + 1
    outputs.write(outputs.table.pack(b"line\n" * lines))


def run_into(request, error, *, blocks=1):
    """Write some blocks, meet an error, and give it back as it comes out."""
    try:
        with open_outputs(request) as outputs, outputs.kept_if_resumable():
            outputs.begin(MANIFEST)
            for _ in range(blocks):
                write_block(outputs)
            raise error
    except type(error) as caught:
        return caught


def hidden(name):
    return [f".{name}.journal", f".{name}.part"]


LEFT = sorted([*hidden("scored"), *hidden("scored.rejects"), "ini", "table"])


@pytest.mark.parametrize(("error", "option"), KEPT.values(), ids=KEPT)
def test_what_was_done_stays_after_what_can_be_mended(rejecting, here, error, option):
    error.advice = ""
    advice = run_into(rejecting, error).advice
    assert option in advice if option else advice == ""
    assert names(here) == LEFT


@pytest.mark.parametrize("error", DISCARDED.values(), ids=DISCARDED)
def test_what_was_done_goes_where_the_input_is_at_fault(rejecting, here, error):
    assert run_into(rejecting, error).advice == ""
    assert names(here) == ["ini", "table"]


@pytest.mark.parametrize("error", FOREIGN.values(), ids=FOREIGN)
def test_what_was_done_stays_after_failures_of_the_machine(rejecting, here, error):
    assert run_into(rejecting, error) is error
    assert names(here) == LEFT


@pytest.mark.parametrize("error", ALL.values(), ids=ALL)
def test_of_a_run_without_a_block_nothing_stays(rejecting, here, error):
    error.advice = ""
    assert run_into(rejecting, error, blocks=0).advice == ""
    assert names(here) == ["ini", "table"]


@pytest.mark.parametrize("error", ALL.values(), ids=ALL)
def test_of_a_table_from_a_pipe_nothing_stays(here, models, error):
    error.advice = ""
    piped = request_for(here, models, table="-", rejects=str(here / "scored.rejects"))
    assert run_into(piped, error).advice == ""
    assert names(here) == ["table"]


def test_a_leftover_survives_an_error_before_the_run_begins(rejecting, here):
    run_into(rejecting, KEPT["a stop"][0])
    with pytest.raises(CheckpointError), open_outputs(resumed(rejecting)) as outputs, outputs.kept_if_resumable():
        raise CheckpointError("a misspelt --model")
    assert names(here) == LEFT


def resumed(request):
    return type(request)(**{**vars(request), "resume": True})


def finish(outputs):
    outputs.rejects.write()
    outputs.commit(b"{}", b"[weight]\n")


def test_a_resumed_run_has_the_report_and_the_bytes_of_a_whole_one(rejecting, here):
    run_into(rejecting, KEPT["a stop"][0], blocks=2)
    with open_outputs(resumed(rejecting)) as outputs:
        outputs.begin(MANIFEST)
        assert (outputs.report.lines, outputs.report.read, outputs.table.blocks) == (6, 8, 2)
        write_block(outputs)
        finish(outputs)
    assert (here / "scored").read_bytes() == b"line\n" * 9
    assert (here / "scored.rejects").read_bytes() == b"bad\n" * 3
    assert (here / "scored.json").read_bytes() == b"{}"
    assert (here / "new.ini").read_bytes() == b"[weight]\n"
    assert names(here) == ["ini", "new.ini", "scored", "scored.json", "scored.rejects", "table"]


class NoRoom:
    """In place of the signature."""

    def commit(self, _):
        raise OutputError("no room")


def interrupt_after_the_table(request):
    """Give the table its name, and fail before the other files have theirs."""
    with open_outputs(request) as outputs:
        outputs.begin(MANIFEST)
        write_block(outputs)
        outputs.signature = NoRoom()
        finish(outputs)


def test_what_lacks_beside_a_finished_table_is_made_by_a_resumed_run(rejecting, here):
    with pytest.raises(OutputError, match="no room"):
        interrupt_after_the_table(rejecting)
    assert "scored" in names(here)
    assert not {"scored.json", "new.ini", "scored.rejects"} & set(names(here))
    with open_outputs(resumed(rejecting)) as outputs:
        outputs.begin(MANIFEST)
        assert outputs.table.published
        finish(outputs)
    assert names(here) == ["ini", "new.ini", "scored", "scored.json", "scored.rejects", "table"]
