"""The head of a report warns of models that do not fit the table and of those that learned nothing."""

import contextlib
import json
import re
from dataclasses import replace

import pytest

from moses_rnn.analysis.report.document import write_report
from moses_rnn.analysis.report.head import warnings
from moses_rnn.errors import CheckpointError
from moses_rnn.formats.signatures import read_signature, recorded_floor
from moses_rnn.producers.open import open_model, save_model
from moses_rnn.scoring.checks import check_learned
from tests.analysis.report.small import SIGNATURE


def with_provenance(findings, provenance):
    """The same of a model that remembers something else."""
    return replace(findings.model, provenance=dict(provenance))


def headed(findings, signature=(), provenance=()):
    """The warnings above a report."""
    model = with_provenance(findings, provenance)
    return list(warnings(replace(findings, signature={**SIGNATURE, **dict(signature)}, model=model)))


def test_a_model_that_does_not_fit_is_flagged(findings):
    before = headed(findings)
    column = {"index": 4, "name": "RNN", "unknown_share": 0.205, "floored_share": 0.5}
    assert headed(findings, {"added_columns": [column]}) == [
        *before[:-1],
        "20.5% of the pairs have a word that RNN's model reads as <unk>: it was trained on another table, or its "
        "shortlists are too small.",
        "50.0% of the scores of RNN are at the floor: its model does not fit this table.",
        *before[-1:],
    ]
    assert headed(findings, {"added_columns": [{**column, "unknown_share": 0.2, "floored_share": "1"}]}) == before


def test_a_model_that_learned_nothing_is_flagged(findings):
    history = [{"nats_per_token": 6.5, "seconds": 9.0}]
    told = headed(findings, provenance={"history": history, "unigram_nats_per_token": 6.25})
    assert told[-2] == (
        "The model costs 6.50 nats a held-out target token, a unigram model 6.25: it has learned nothing, and its column "
        "says nothing."
    )
    assert headed(findings, provenance={"history": history, "unigram_nats_per_token": 7}) == headed(findings)


def test_the_head_says_how_training_went(findings):
    history = [{"nats_per_token": 1 / i, "seconds": i} for i in range(1, 8)]
    model = with_provenance(findings, {"history": history})
    assert (
        "still falling: the held-out cost fell from 0.250 to 0.143"
        in write_report(replace(findings, model=model)).decode()
    )


ABSURD = ["1e400", "-1e400", "NaN", "9" * 400, "-9", "1e300", "true", "null", '"<b>"', "[1]", "{}"]
EVALUATION = '{"nats_per_token": %s, "seconds": %s, "epochs": %s}'
PROVENANCE = '{"table": %s, "corpus": {"training_pairs": %s}, "unigram_nats_per_token": %s, "phrases": {"source_factor": %s}, "history": [%s]}'
COLUMN = '{"index": 4, "name": %s, "floor": %s, "floored": %s, "lowest": %s, "highest": %s, "unknown_share": %s, "floored_share": %s}'
RECORDED = (
    '{"program": "moses_rnn 1", "lines": %s, "added_columns": [%s], "pruned": [{"keep": %s, "lines_before": %s}]}'
)


def filled(template, value):
    return template % ((value,) * template.count("%s"))


@pytest.mark.parametrize("value", ABSURD)
def test_what_is_recorded_absurdly_is_shown_harmlessly(findings, tmp_path, value):
    save_model(tmp_path / "m", findings.model)
    evaluations = ", ".join([filled(EVALUATION, value), EVALUATION % (2.5, 60, 1), filled(EVALUATION, value)])
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["provenance"] = "HERE"
    provenance = filled(PROVENANCE.replace("[%s]", f"[{evaluations}]"), value)
    (tmp_path / "m" / "config.json").write_text(json.dumps(config).replace('"HERE"', provenance))
    (tmp_path / "t.json").write_text(filled(RECORDED.replace("[%s]", f"[{filled(COLUMN, value)}]"), value))
    model, signature = open_model(tmp_path / "m"), read_signature(str(tmp_path / "t"))
    text = write_report(replace(findings, model=model, signature=signature)).decode()
    assert not re.search(r"[^a-z](inf|nan)[^a-z]", text)
    recorded_floor(signature, 4)
    with contextlib.suppress(CheckpointError):
        check_learned(model)


@pytest.mark.parametrize("apart", [0.05, 0.2])
def test_a_column_of_another_model_is_noticed(findings, apart):
    (disagreement, explanation), *_ = findings.explained
    near = replace(explanation, log_prob=explanation.columns[4].log + apart)
    text = write_report(replace(findings, explained=[(disagreement, near)])).decode()
    assert ("another model scored it" in text) == (apart > 0.1)


def test_the_network_is_named_with_its_sizes(findings, search_findings):
    text = write_report(search_findings).decode()
    for fact in (
        "RNNsearch of sentences",
        "<dt>units of the alignment</dt><dd>4</dd>",
        "<dt>phases</dt><dd>paper</dd>",
    ):
        assert fact in text
    left_out = "Of this network (RNNsearch), gates and pairs in dispute are left out"
    assert left_out in text
    assert "<dt>variant</dt>" not in text
    assert left_out not in write_report(findings).decode()
    assert "<dt>variant</dt><dd>custom</dd>" in write_report(findings).decode()
