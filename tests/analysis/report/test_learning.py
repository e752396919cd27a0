"""Sections on training, costs and tuning."""

import json
from dataclasses import replace

from moses_rnn.analysis.report.document import write_report
from moses_rnn.analysis.report.tuning import read_tuning
from tests.analysis.report.small import NAMES, RESULTS, Reader


def test_a_training_is_drawn(findings):
    assert "fewer than two evaluations are recorded" in write_report(findings).decode()
    history = [{"nats_per_token": 3.0, "seconds": 60}, {"nats_per_token": 2.0, "seconds": 240}, {"nats_per_token": "x"}]
    provenance = {"history": history, "unigram_nats_per_token": 4.0}
    model = replace(findings.model, provenance=provenance)
    page = write_report(replace(findings, model=model)).decode()
    assert 'points="80.0,37.9 230.0,80.0"' in page
    assert 'class="beside"' in page
    odd = replace(findings.model, provenance=provenance | {"unigram_nats_per_token": 0})
    assert 'class="beside"' not in write_report(replace(findings, model=odd)).decode()


def test_bleu_and_weights(findings, tmp_path):
    assert "BLEU and weights" not in write_report(findings).decode()
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    tuned = replace(findings, tuning=read_tuning(str(tmp_path / "results.json")))
    page = write_report(tuned).decode()
    assert Reader(page).ids == [*NAMES[:3], "tuning", *NAMES[3:]]
    assert (
        '<td>near</td><td class="figure">58.50</td><td class="figure">59.00</td><td class="figure">+0.50</td>' in page
    )
    assert "Weight of the score in each tuning: 0.070, 0.070." in page


def test_when_and_how_it_was_made(findings):
    assert " on a day by: it &lt;b&gt;. The paper:" in write_report(findings, " on a day by: it <b>").decode()
