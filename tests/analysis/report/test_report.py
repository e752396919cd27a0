"""A report stands alone, shows every word as text, and says what it lacks."""

import base64
import hashlib
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from moses_rnn.analysis.extras import missing_libraries
from moses_rnn.analysis.findings import costs_by_class, measure_coverage
from moses_rnn.analysis.report import write_report
from moses_rnn.analysis.results import read_tuning
from moses_rnn.models.open import open_model, save_model
from moses_rnn.table.signatures import read_signature
from moses_rnn.translation.proposals import Proposal, Proposals
from tests.analysis.report.small import NAMES, RESULTS, TABLE, Reader
from tests.analysis.scored import line as small_line
from tests.analysis.scored import scored
from tests.analysis.tiny import checkpoint

HOSTILE = ["<script>alert(1)</script>", "<img/src=x> &", "u \\xff", "\\u202ex"]  # as the table's phrases are shown


def test_a_page_stands_alone(findings):
    text = write_report(findings).decode()
    found = Reader(text)
    assert found.open == []
    assert found.ids == NAMES
    assert {address for address in found.addresses if not address.startswith("data:")} == {f"#{n}" for n in NAMES[1:]}
    assert not {"script", "link", "iframe", "object", "base", "form"} & found.tags
    assert not re.search("https?:|@import|url\\(", text)
    style = re.search("<style>(.*?)</style>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert found.metas["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no Chromium here")
def test_a_browser_shows_hostile_phrases_as_text(findings, tmp_path):
    pictured = replace(findings, missing=missing_libraries())
    (tmp_path / "page.html").write_bytes(write_report(pictured))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
               "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}/profile", "--dump-dom",
               f"file://{tmp_path}/page.html"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    before, after = Reader(write_report(pictured).decode()), Reader(done.stdout)
    assert after.tags - {"tbody"} == before.tags - {"tbody"}  # nothing became an element
    assert {*HOSTILE} <= {part.strip() for part in after.texts}
    assert after.ids == NAMES


def test_every_word_is_shown_as_text(findings):
    text = write_report(findings, " on a day by: it <b>").decode()
    assert {*HOSTILE, "t<1>"} <= {part.strip() for part in Reader(text).texts}
    assert "moses_rnn &lt;b&gt;" in text  # of the signature
    assert "by: it &lt;b&gt;" in text
    named = replace(
        findings, proposals=[Proposals(b"<i> &apos;", [Proposal(b"", -0.004, 3, True)], 1, [b"<b>"], False)]
    )
    text = write_report(named).decode()
    assert "<bdi>&lt;i&gt; &#39;</bdi>" in text
    assert "<bdi>&lt;b&gt;</bdi>" in text
    assert "(nothing)" in text
    assert "-0.00" not in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"missing": ["scikit-learn", "matplotlib"]}, "Points are laid out by PCA"),
        ({"maps": {}}, "There are no such phrases."),
        ({"gates": None}, "There are no phrases."),
        ({"disputes": []}, "There are no such pairs."),
        ({"proposals": []}, "None."),
    ],
)
def test_what_is_lacking_is_said(findings, change, told):
    text = write_report(replace(findings, **change)).decode()
    assert told in text
    assert told not in write_report(findings).decode()
    assert Reader(text).ids == NAMES


def test_every_row_has_a_cell_in_each_column(findings, search_findings):
    for text in (write_report(findings).decode(), write_report(search_findings).decode()):
        for table in re.findall("<table>(.*?)</table>", text, re.DOTALL):
            rows = [re.findall(r'<t[hd]\b(?:[^>]*colspan="(\d+)")?', row) for row in table.split("<tr")[1:]]
            assert len({sum(int(span or 1) for span in row) for row in rows}) == 1, table


def test_words_outside_the_shortlists_are_counted(findings):
    n = findings.coverage
    # each line counts: `a <script>…` five times with one unknown word, and \xff, <img/src=x> &amp; and \u202ex
    assert (n.source_words, sum(n.target_words)) == (5 * 4 + 3 * 4 + 5, 12)
    assert (n.source_unknown.total(), n.target_unknown.total(), n.pairs_unknown) == (5, 4, 5)
    assert n.source_unknown == {b"<script>alert(1)</script>": 5}
    assert n.target_unknown == {b"\xff": 1, b"<img/src=x>": 1, b"&amp;": 1, b"\xe2\x80\xaex": 1}


def test_pairs_in_dispute_are_the_worst_of_frequent_sources(findings):
    assert [one[:3] for one, _ in findings.disputes] == [("table", 5, 40), ("RNN", 5, 40)]
    assert [explanation.target for _, explanation in findings.disputes] == ["\\u202ex", "u \\xff"]


def test_of_another_network_gates_and_disputes_are_not_known(findings, search_findings):
    assert (search_findings.gates, search_findings.disputes) == (None, [])
    assert search_findings.maps["phrases"].labels == findings.maps["phrases"].labels
    text = write_report(search_findings).decode()
    page = Reader(text)
    assert page.open == []
    assert page.ids == [*NAMES[:-2], "alignments"]
    for told in ("by the state from which the decoder starts", "RNNsearch", "Gates and pairs in dispute are left out"):
        assert told in text
    assert "<dt>alignment size</dt><dd>4</dd>" in text


def test_a_network_with_attention_translates_the_first_lines(search_findings):
    one, two = search_findings.alignments  # a blank line and a long one are left out
    assert [(one.line, one.source), (two.line, two.source)] == [(1, [b"a", b"<b>", b"&apos;c"]), (4, [b"g"])]
    assert one.alpha.shape == (len(one.rows), 4)
    assert '<th scope="col" class="n"><bdi>&lt;b&gt;</bdi></th>' in write_report(search_findings).decode()


def test_a_training_and_its_bleu_are_shown(findings, tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    steps = [{"nats_per_token": 3.0, "seconds": 60}, {"nats_per_token": 2.0, "seconds": 240}, {"nats_per_token": "x"}]
    provenance = {"history": steps, "unigram_nats_per_token": 4.0}
    model = replace(findings.model, provenance=provenance)
    tuned = replace(
        findings, model=model, tuning=read_tuning(str(tmp_path / "results.json")), missing=missing_libraries()
    )
    assert tuned.history == [(1.0, 3.0), (4.0, 2.0)]
    text = write_report(tuned).decode()
    assert Reader(text).ids == [*NAMES[:4], "tuning", *NAMES[4:]]
    assert '<td class="n">58.50</td><td class="n">59.00</td><td class="n">+0.50</td>' in text
    assert "Weight of the score in each tuning: 0.070, 0.070." in text
    results = json.dumps(RESULTS).replace("TranslationModel0", "LexicalReordering0")
    (tmp_path / "results.json").write_text(results)
    other = replace(tuned, tuning=read_tuning(str(tmp_path / "results.json")))
    assert "Weight of the score" not in write_report(other).decode()


ABSURD = ["-1e400", "NaN", "9" * 400, "true", "null", '"<b>"', "[1]", "{}"]
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
    table = replace(findings.table, signature=signature)
    text = write_report(replace(findings, model=model, table=table)).decode()
    assert not re.search(r"[^a-z](inf|nan)[^a-z]", text)
    assert "<b>" not in text


def test_costs_of_classes(tmp_path):
    table = scored(tmp_path / "t", TABLE)
    lengths = table.pairs().target_words.astype(int)
    classes = {one.name: one for one in costs_by_class(table.pairs(), lengths)}
    assert list(classes) == ["all", "1 word", "2 words", "seen once", "seen 2 to 9 times"]
    assert [one.pairs for one in classes.values()] == [9, 6, 3, 4, 5]
    rnn = [0.3, 0.29, 0.28, 0.27, 0.26, 0.001, 0.001, 0.001, 0.2]
    assert classes["all"].nats == pytest.approx(-sum(map(math.log, rnn)))
    assert classes["all"].words == (3 + 2 + 2 + 3 + 2) + 3 * 2 + 3
    assert classes["all"].bins[:7] == [0, 6, 0, 0, 0, 0, 3]
    scores = ["2.718", 1, 2.3e-9, "1e-38"]  # e is no probability, but old tables have it
    (tmp_path / "other").mkdir()
    other = scored(tmp_path / "other" / "t", [small_line("a", "x", 1, score) for score in scores])
    odd = costs_by_class(other.pairs(), np.ones(4, np.int64))
    assert (odd[0].bins[0], odd[0].bins[-1]) == (2, 2)


def test_the_left_hand_side_of_a_rule_is_a_word_of_the_network(tmp_path):
    rule = b"a [X][X] [X] ||| [X][X] u v [X] ||| .1 .1 .5 .1 .5 ||| 1-0 ||| 1 1 1\n"
    table = scored(tmp_path / "t", [rule])
    learned = replace(checkpoint(), provenance={"phrases": {"hierarchical": True}})
    coverage = measure_coverage(table, learned)
    assert (coverage.source_words, coverage.target_words) == (3, [4])
