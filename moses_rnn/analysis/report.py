"""A report on a scored table and its model, as one page of HTML.

`write_report` fills report.html.jinja with findings. The page stands alone: it fetches nothing and runs nothing. All
text that the template fills in is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import math
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from moses_rnn.analysis import alignment_maps, verdicts
from moses_rnn.analysis.findings import SAMPLES, TOP, Findings
from moses_rnn.analysis.grids import readable, unescaped
from moses_rnn.translation.proposals import Totals
from moses_rnn.version import __version__

MOST_CHARACTERS = 300  # of a recorded value
LEAST = 0.0005  # probability that three decimals can show


def write_report(findings: Findings, made: str = "") -> bytes:
    """Return the page; `made` says when and how it was made. Equal findings give equal bytes."""
    page = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=_shown, trim_blocks=True, lstrip_blocks=True
    )
    page.filters |= {
        "phrase": _phrase,
        "base64": lambda data: base64.b64encode(data).decode(),
        "sha256": lambda text: hashlib.sha256(text.encode()).digest(),
        "exp": math.exp,
        "signed": lambda value: "–" if value is None else f"{value:+.2f}",
        "fixed": lambda value, digits: "–" if value is None else f"{value:z.{digits}f}",
        "probability": lambda value: f"{value:.3f}" if value >= LEAST else f"{value:.0e}",
        "share": lambda value: "–" if value is None else f"{value:.1%}",
        "common": lambda counts, most: sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most],
    }
    template = page.from_string(files("moses_rnn.analysis").joinpath("report.html.jinja").read_text("utf-8"))
    totals = Totals()
    for proposals in findings.proposals:
        totals.add(proposals)
    has_pictures = "matplotlib" not in findings.missing
    text = template.render(
        f=findings,
        name=Path(findings.table.path).name,
        verdicts=verdicts,
        facts=list(_facts(findings)),
        weights=list(_weights(findings)),
        totals=totals,
        top=TOP,
        samples=SAMPLES,
        plots=importlib.import_module("moses_rnn.analysis.plots") if has_pictures else None,
        alignment_grid=alignment_maps.as_grid,
        made=f"{__version__}{made}",
    )
    return text.encode()


def _phrase(text: str | bytes) -> Markup:
    """Format a phrase without Moses's escapes, for left-to-right and right-to-left scripts."""
    return Markup("<bdi>{}</bdi>").format(unescaped(readable(text)))


def _shown(value: Any) -> Any:
    """Format a value for the template: phrases as they are, figures short."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, bytes):
        return _phrase(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    return readable(str(value))


def _facts(findings: Findings) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield how the table was scored: titles, each with names and values."""
    table, model, pairs = findings.table, findings.model, findings.pairs
    lines, sources = len(pairs.source), len(pairs.source_words)
    yield (
        "The table",
        [
            ("file", Path(table.path).name),
            ("pairs (lines)", lines),
            ("source phrases", sources),
            ("pairs per source", lines / sources),
            ("form of phrases", str(table.form)),
            ("scores", f"{table.scores}, of which number {table.column + 1} is the RNN's"),
        ],
    )
    yield (
        "The model",
        [
            ("network", model.title),
            *_scalars(vars(model.config)),
            ("parameters", sum(tensor.numel() for tensor in model.network.parameters())),
        ],
    )
    recorded = {name: value for name, value in model.provenance.items() if name != "history"}
    yield "Its training", list(_scalars(recorded))
    yield "The scoring, by the signature beside the table", list(_scalars(table.signature.record))


def _scalars(record: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a nested, untrusted record."""
    if isinstance(record, Mapping):
        for key, value in record.items():
            yield from _scalars(value, f"{name} {key}".strip())
    elif isinstance(record, list | tuple):
        for number, value in enumerate(record, start=1):
            yield from _scalars(value, f"{name} {number}" if len(record) > 1 else name)
    elif record is not None and record != "":
        text = record if isinstance(record, bool | float) else str(record)[:MOST_CHARACTERS]
        yield name.replace("_", " ")[:60], text


def _weights(findings: Findings) -> Iterator[float]:
    """Yield the weight of the score in each tuning, if exactly one feature has as many scores as the table."""
    table = findings.table
    for weights in findings.tuning.weights if findings.tuning else ():
        features = [
            values
            for name, values in weights.items()
            if isinstance(values, list) and len(values) == table.scores and not name.startswith("LexicalReordering")
        ]
        if len(features) == 1 and all(isinstance(value, int | float) for value in features[0]):
            yield features[0][table.column]
