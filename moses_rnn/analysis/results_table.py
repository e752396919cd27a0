"""The comparison of systems as a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean
from typing import Any

from moses_rnn.analysis.runs import DEV
from moses_rnn.formats.systems import System, read_systems

Json = dict[str, Any]
ON_LISTS = (
    "* The CSLM (and WP) chose from n-best lists of the system without it, and so did networks of sentences; "
    "all else was in the decoder."
)
EXTENDED = (
    "the table of the system without it, with phrase pairs that the network proposed for each text, and that system's "
    "weights."
)
BY_THEMSELVES = (
    "without Moses; a seed is that of a network, which is trained and not tuned "
    "(an ensemble's networks are the same for all seeds)."
)


def format_table(results: Json) -> Iterator[str]:
    """The lines of the table, of the text below it included, from what `results.compare_systems` returns."""
    rows, tests = read_systems(), results["tests"]
    first_name, first = next(iter(results["systems"].items()))
    baseline = _title(rows.get(first_name), first_name)
    header = _header(tests, baseline)
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for name, system in results["systems"].items():
        yield f"| {' | '.join(_cells(rows.get(name), name, system, first, tests))} |"
    yield ""
    yield _caption(results, baseline)
    if any(system["on_lists"] for system in results["systems"].values()):
        yield ON_LISTS
    of_these = [rows[name] for name in results["systems"] if name in rows]
    if extended := [row.title for row in of_these if row.kind == "extended"]:
        yield f"{', '.join(extended)}: {EXTENDED}"
    if by_themselves := [row.title for row in of_these if row.kind == "self"]:
        yield f"{', '.join(by_themselves)}: {BY_THEMSELVES}"


def _title(row: System | None, name: str) -> str:
    return row.title if row else name


def _header(tests: list[str], baseline: str) -> list[str]:
    header = ["system", "dev BLEU"]
    for test in tests:
        header += [f"{test} BLEU", f"against {baseline}", "p by seed"]
    header += ["p, all sets"] * (len(tests) > 1)
    return [*header, "chrF", "phrases chosen differently"]


def _cells(row: System | None, name: str, system: Json, first: Json, tests: list[str]) -> list[str]:
    cells = [_title(row, name) + ("*" if system["on_lists"] else ""), _spread(system["dev_BLEU"])]
    for test in tests:
        difference = system[f"{test}_BLEU"]["mean"] - first[f"{test}_BLEU"]["mean"]
        ps = _ps(system, f"{test}_p")
        cells += [_spread(system[f"{test}_BLEU"]), f"{difference:+.2f}" if ps else "", ps]
    cells += [_ps(system, "p")] * (len(tests) > 1)
    return [
        *cells,
        ", ".join(_spread(system[f"{test}_chrF"]) for test in tests),
        _share_different(system),
    ]


def _ps(system: Json, key: str) -> str:
    """Of all runs; nothing for the system that others are compared with."""
    return ", ".join(f"{record[key]:.3f}" for record in system["runs"] if key in record)


def _share_different(system: Json) -> str:
    shares = [record["phrases_chosen_differently"] for record in system["runs"]]
    return f"{mean(shares):.0%}" if _ps(system, "p") and None not in shares else ""


def _spread(value: Mapping[str, float | None]) -> str:
    sd = value["sd"]
    return f"{value['mean']:.2f}" + (f" ± {sd:.2f}" if sd is not None else "")


def _caption(results: Json, baseline: str) -> str:
    sentences = [f"{results['sentences'][name]:,}" for name in (DEV, *results["tests"])]
    return (
        f"Mean ± standard deviation of {len(results['seeds'])} tunings; p: paired bootstrap of "
        f"{results['bootstrap_samples']:,} samples against {baseline} of the same seed; "
        f"{', '.join(sentences[:-1])} and {sentences[-1]} sentences; {results['signatures']['BLEU']}"
    )
