"""What a run reads is opened once, checked before anything is written, and is all there."""

import json
import re

import pytest
import torch

from moses_rnn.errors import CheckpointError, FormatError, InputError
from moses_rnn.native import native_core
from moses_rnn.score.checks import check_form, check_new
from moses_rnn.score.reading import InputTable
from moses_rnn.score.score import manifest_of, open_models
from moses_rnn.table.phrase_table import PLAIN
from moses_rnn.table.signatures import PROGRAM, added_names, fitting_signature
from tests.score.tables import LINES, options_for
from tests.scorers.rare import save_rare_model


@pytest.fixture
def opened(here, models):
    """The table and the models of a run, checked, and what decides its bytes, with changes of the options."""

    def open_changed(**changes):
        options = options_for(here, models, **changes)
        opened, columns, compute = open_models(options)
        names = [column.name for column in columns]
        check_new(options, added_names(fitting_signature(options.table)), names)
        table = InputTable(options, opened[0].form, lambda: None)
        check_form(table, opened)
        return table, opened, manifest_of(options, table, opened, names, compute)

    return open_changed


@pytest.mark.parametrize("number", [0, 1, 17, 29, 30])
def test_the_chunks_after_a_line_are_the_rest(opened, number):
    table, *_ = opened()
    assert b"".join(chunk.text for chunk in table.chunks(after=number)) == b"".join(LINES[number:])


@pytest.mark.usefixtures("either_path")
def test_the_manifest_is_json_of_all_that_decides_the_bytes(opened, here):
    _, models, manifest = opened(word_penalty=True, floor=-50.0)
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest.pop("input")["bytes"] == (here / "table").stat().st_size
    core = native_core()
    assert manifest.pop("threads") == 1 or core is None  # the core computes a chunk in one
    assert manifest == {
        "program": PROGRAM, "torch": torch.__version__, "resumable": True,
        "models": [{"direction": "source-to-target", "sha256": models[0].hashes}],
        "columns": ["RNN", "WordPenalty"], "floor": -50.0, "logarithms": False, "chunk": [8192, 16777216], "level": 2,
        "device": ["cpu"], "precision": "fp32", "native": core and str(core), "shard": None, "phrases": "plain words",
    }  # fmt: skip


def signed(here, columns):
    file = {"bytes": (here / "table").stat().st_size}
    record = {"program": PROGRAM, "file": file, "added_columns": [{"name": name} for name in columns]}
    (here / "table.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ["RNN", "Other"],
            "expected a table without RNN, found it added already, according to the signature beside it",
        ),
        (["WordPenalty", "RNN"], "expected a table without RNN and WordPenalty, found them added already"),
    ],
)
def test_a_column_that_is_there_is_added_again_only_on_request(opened, here, columns, message):
    signed(here, columns)
    with pytest.raises(InputError, match=re.escape(message)):
        opened(word_penalty=True)
    assert opened(word_penalty=True, again=True)[0].shape.columns == 2
    signed(here, ["RNNInverse", "Other"])
    assert opened(word_penalty=True)[0].shape.columns == 2


def test_a_network_of_rare_words_needs_a_tables_alignments(opened, here, tmp_path):
    model = save_rare_model(tmp_path / "rare")
    assert opened(models=(model,))[1][0].folder == model
    (here / "table").write_bytes(b"s2 ||| t2 ||| 0.5\n")
    with pytest.raises(FormatError, match="table:1: expected a word alignment in field 4"):
        opened(models=(model,))
    assert opened(models=(save_rare_model(tmp_path / "none", "noalign"),))[0].form == PLAIN
    (here / "table").write_bytes(b"s2 [X] ||| t2 [X] ||| 0.5 ||| 0-0\n")
    with pytest.raises(
        CheckpointError, match=r"expected a table of plain words, in which to annotate rare words, found one"
    ):
        opened(models=(model,))
