"""What can be chosen about cells, and a model of each cell from a table."""

import dataclasses
import json

import pytest

from moses_rnn.models import cells as models
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.training.cells import CELLS, cell_switches, check_cell
from moses_rnn.training.run import plan_of, train_phrase_model
from tests.training.small import never, phrase_request
from tests.training.texts import Listener

PLAIN = {"cell": "gru", "encoder_reset": None, "decoder_reset": None, "leaky_share": None, "forget_bias": None}
SWITCHES = {
    "as the paper": ({}, {}),
    "named as the paper": ({"encoder_reset": "before"}, {}),
    "gru": ({"encoder_reset": "after"}, {"cell": "gru", "encoder_reset": "after"}),
    "tanh": ({"cell": "tanh"}, {}),
    "leaky": ({"cell": "leaky"}, {"leaky_share": 0.25}),
    "no leak": ({"cell": "leaky", "leaky_share": 0.0}, {"leaky_share": 0.0}),
    "lstm": ({"cell": "lstm"}, {"forget_bias": 1.0}),
    "no bias": ({"cell": "lstm-peephole", "forget_bias": 0.0}, {"forget_bias": 0.0}),
}


def test_the_command_line_knows_the_cells():
    assert set(CELLS) == set(models.CELLS)
    assert CELLS[0] == "gru"


@pytest.mark.parametrize(("given", "expected"), SWITCHES.values(), ids=SWITCHES)
def test_a_switch_that_means_nothing_for_a_cell_is_none(given, expected):
    switches = cell_switches(phrase_request("t", **given))
    if "cell" not in {**given, **expected}:
        assert switches == {}
        return
    rest = {key: value for key, value in PLAIN.items() if key in switches}
    assert switches == {**rest, **given, **expected}


def test_what_a_cell_does_not_have_is_refused():
    for given, option in (
        ({"encoder_reset": "after", "cell": "tanh"}, "--encoder-reset: --cell tanh"),
        ({"decoder_reset": "after", "cell": "lstm"}, "--decoder-reset: --cell lstm"),
        ({"leaky_share": 0.0}, "--leaky-share: --cell gru"),
        ({"forget_bias": 0.0, "cell": "leaky"}, "--forget-bias: --cell leaky"),
    ):
        with pytest.raises(ValueError, match=option):
            check_cell(phrase_request("t", **given))
    check_cell(phrase_request("t", encoder_reset="after", decoder_reset="before"))
    check_cell(phrase_request("t", cell="lstm", forget_bias=0.0))


def test_the_papers_cell_stays_in_the_first_format():
    assert "cell" not in plan_of(phrase_request("t")).network
    assert plan_of(phrase_request("t")).kind.format == 1
    plan = plan_of(phrase_request("t", cell="lstm", variant="groundhog"))
    assert (plan.kind.format, plan.network["variant"], plan.network["decoder_reset"]) == (2, "groundhog", None)


@pytest.fixture
def table(tmp_path):
    """A table of 60 lines."""
    lines = [b"s%d s%d ||| t%d ||| 0.5 ||| 0-0\n" % (i % 13, i % 5, i % 7) for i in range(60)]
    (tmp_path / "table").write_bytes(b"".join(lines))
    return tmp_path / "table"


@pytest.mark.parametrize("cell", [*CELLS[1:], "gru after"])
def test_each_cell_learns_and_is_gone_on_with(table, cell):
    given = {"cell": "gru", "encoder_reset": "after"} if cell == "gru after" else {"cell": cell}
    requested = phrase_request(table, **given, learning_rate=0.01, batch_size=16, max_epochs=2)
    folder = table.with_name("model")
    outcome = train_phrase_model(requested, folder, Listener(), never)
    assert outcome.progress.finished == "2 epochs are done"
    more = dataclasses.replace(requested, max_epochs=12)
    history = train_phrase_model(more, folder, Listener(), never).progress.history
    assert history[-1]["nats_per_token"] < history[0]["nats_per_token"]
    config = load_checkpoint(folder, models.ENCDEC_OF_CELLS).model.config
    assert config.cell == given["cell"]
    assert json.loads((folder / "config.json").read_text())["variant"] == "paper"
