"""The head of a report: what was looked at, and whether all of it belongs together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moses_rnn.analysis.explain import Explanation
from moses_rnn.analysis.report import page
from moses_rnn.analysis.report.decision import decide
from moses_rnn.analysis.report.findings import Findings
from moses_rnn.analysis.report.page import Markup
from moses_rnn.errors import printable
from moses_rnn.formats.signatures import FLOORED_REFUSAL, UNKNOWN_WARNING, column_records, records_of
from moses_rnn.networks.learning_curves import verdict
from moses_rnn.producers.open import Model

Facts = list[tuple[str, str | bytes]]
HASH_DIGITS = 12
MEANING = 300  # characters of what a score means
LEFT_OUT = "gates and pairs in dispute are left out: they are known of an RNN Encoder-Decoder alone."
SIZES = {
    "layers": "layers",
    "hidden_size": "hidden units",
    "embedding_size": "word embedding",
    "alignment_size": "units of the alignment",
    "maxout_size": "maxout units",
    "output_rank": "rank of the output matrix",
}
SWITCHES = {"variant": "variant", "phases": "phases", "source_order": "order of the source"}
TOLERANCE = 0.1  # nats; bfloat16 may be off by hundredths


def head(findings: Findings) -> list[Markup]:
    """The answers, what else must be known first, then table, model and signature."""
    answers = (page.answer(one.kind, one.question, one.word, one.text) for one in decide(findings))
    return [
        page.element("div", *answers, class_="answers"),
        *(page.element("p", text, class_="warning") for text in warnings(findings)),
        page.element("h2", "The table"),
        page.facts(_table(findings)),
        page.element("h2", "The model"),
        page.facts([*_model(findings.model), *_training(findings.model)]),
        *[page.note(f"Of this network ({findings.model.network_title}), {LEFT_OUT}")] * (not findings.knows_gates),
        page.element("h2", "How it was scored"),
        *_signature(findings.signature),
    ]


def warnings(findings: Findings) -> Iterator[str]:
    """What a reader must know first."""
    models = [model.get("sha256") for model in records_of(findings.signature, "models")]
    if findings.signature and dict(findings.model.hashes) not in models:
        yield (
            "The signature beside the table names another model than this one: what the page says of targets, scores "
            "and preferences is about the table's own column, the rest about this model."
        )
    lines = findings.signature.get("lines")
    if isinstance(lines, int) and lines != findings.coverage.lines:
        yield f"The signature beside the table tells of {lines:,} lines, the table has {findings.coverage.lines:,}."
    model = findings.model
    learned, unigram = model.held_out_nats, model.unigram_nats
    if learned is not None and unigram is not None and learned >= unigram:
        yield (
            f"The model costs {learned:.2f} nats a held-out target token, a unigram model {unigram:.2f}: it has "
            "learned nothing, and its column says nothing."
        )
    yield from _misfits(findings.signature)
    if any(_differs(findings, explanation) for _, explanation in findings.explained):
        yield "The table's RNN column is not what this model gives for the pairs in dispute: another model scored it."


def _misfits(signature: Mapping[str, Any]) -> Iterator[str]:
    """Of columns whose model hardly knows the table, as the signature records it."""
    for column in column_records(signature):
        unknown, floored = (
            share if isinstance(share := column.get(key), int | float) else 0.0
            for key in ("unknown_share", "floored_share")
        )
        if unknown > UNKNOWN_WARNING:
            yield (
                f"{unknown:.1%} of the pairs have a word that {printable(column.get('name'))}'s model reads as <unk>: "
                "it was trained on another table, or its shortlists are too small."
            )
        if floored >= FLOORED_REFUSAL:
            yield (
                f"{floored:.1%} of the scores of {printable(column.get('name'))} are at the floor: its model does not "
                "fit this table."
            )


def _differs(findings: Findings, explanation: Explanation) -> bool:
    """Whether a pair's score is another one in the table: by more than any precision would explain."""
    in_table = explanation.columns[findings.table.column].log
    return abs(max(explanation.log_prob, findings.scatter.floor) - in_table) > TOLERANCE


def _table(findings: Findings) -> Facts:
    n = findings.coverage
    return [
        ("file", findings.name),
        ("pairs (lines)", f"{n.lines:,}"),
        ("source phrases", f"{n.sources:,}"),
        ("pairs a source", f"{n.lines / n.sources:.2f}" if n.sources else "–"),
        ("form of phrases", str(findings.table.form)),
        ("scores", f"{findings.table.scores}, of which number {findings.table.column + 1} is the RNN's"),
    ]


def _model(model: Model) -> Facts:
    """Sizes and switches, as far as a network has them."""
    config = vars(model.config)
    parameters = sum(tensor.numel() for tensor in model.network.parameters())
    sizes: Facts = [(title, f"{config[key]:,}") for key, title in SIZES.items() if key in config]
    return [
        ("network", model.title),
        *sizes,
        *((title, str(config[key])) for key, title in SWITCHES.items() if key in config),
        ("parameters", f"{parameters:,}"),
        ("source shortlist", f"{len(model.source_vocabulary) - 2:,} words"),
        ("target shortlist", f"{len(model.target_vocabulary) - 2:,} words"),
    ]


def _training(model: Model) -> Iterator[tuple[str, str]]:
    """What training has recorded; a folder may hold anything there, so nothing is taken for granted."""
    provenance = model.provenance
    corpus = _mapping(provenance.get("corpus"))
    figures = [step for step in records_of(provenance, "history") if "nats_per_token" in step]
    if "table" in provenance:
        yield "learned from", printable(provenance["table"])
    for name, key in (("training pairs", "training_pairs"), ("held-out pairs", "held_out_pairs")):
        if isinstance(corpus.get(key), int):
            yield name, f"{corpus[key]:,}"
    if model.held_out_nats is not None:
        yield "held-out cost, best", f"{model.held_out_nats:.3f} nats a target token"
    if figures:
        yield "training", str(verdict(figures, model.unigram_nats))
    if model.unigram_nats is not None:
        yield "cost of unigrams", f"{model.unigram_nats:.3f} nats a target token"
    if figures and isinstance(figures[-1].get("epochs"), int | float):
        yield "epochs", f"{figures[-1]['epochs']:.2f}"


def _signature(signature: Mapping[str, Any]) -> Iterator[Markup]:
    if not signature:
        yield page.paragraph("There is no signature of moses-rnn-score beside the table, or it is of another table.")
        return
    yield page.facts(list(_run(signature)))
    for column in column_records(signature):
        yield page.paragraph(
            f"Score {_number(column.get('index'), 1)}, {printable(column.get('name'))}: "
            f"{printable(column.get('meaning'), MEANING)}; " + _range(column)
        )
    for record in records_of(signature, "pruned"):
        yield page.paragraph(
            f"Pruned by {printable(record.get('by'))}: {_number(record.get('keep'))} of "
            f"{_number(record.get('lines_before'))} lines were to stay."
        )


def _range(column: Mapping[str, Any]) -> str:
    """Of the values of a column; a table that was pruned has no record of it."""
    floor = _number(column.get("floor"))
    if "lowest" not in column:
        return f"the floor is {floor}."
    limits = f"from {_number(column['lowest'])} to {_number(column.get('highest'))}"
    return f"{limits}, {_number(column.get('floored'))} raised to the floor {floor}."


def _run(signature: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Hashes, versions and options; those of later versions too, whatever they are called."""
    for name, value in signature.items():
        if isinstance(value, str | int | float):
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(value)
            yield name.replace("_", " ")[:40], {"True": "yes", "False": "no"}.get(shown, shown)
    digest = _mapping(signature.get("file"))
    if "sha256" in digest:
        yield "SHA-256 of the table", f"{printable(digest['sha256'])[:HASH_DIGITS]}…"
    for record in records_of(signature, "models"):
        hashes = _mapping(record.get("sha256"))
        yield from ((f"SHA-256 of {printable(name)}", f"{printable(h)[:HASH_DIGITS]}…") for name, h in hashes.items())


def _number(value: object, more: int = 0) -> str:
    return f"{value + more:,.6g}" if isinstance(value, int | float) else "–"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
