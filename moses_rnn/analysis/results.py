"""The paper's Table 1 from tuned and decoded systems: BLEU, significance, weights, and what was chosen differently.

For each system, the pipeline leaves weights, translations, and the phrase pairs of which these are made.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.files.shipped import shipped_file
from moses_rnn.moses.ini import MosesIni

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

Json = dict[str, Any]
TINY = 1e-3  # of the largest weight: what MERT made of a feature that it found nothing in
UNTUNED = "UnknownWordPenalty"  # whose weight MERT leaves at 1
UNTUNED_RUN = "no round of tuning beat its starting weights on dev, so they were kept: try another tuner"
DEV = "dev"
SPAN = re.compile(r"\|([0-9]+)-([0-9]+)\|")
FIRST_ROUND = b"# We were before running iteration 1"  # of whose weights mert-moses.pl made a tuned ini
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


class Chosen(NamedTuple):
    """A phrase pair as the decoder used it: source words from `first` to `last` of a sentence became `target`."""

    text: str
    sentence: int
    first: int
    last: int
    target: str


class System(NamedTuple):
    """A row of moses_configs/systems, which pipeline.mk reads too and which says what the kinds are."""

    name: str
    kind: str
    title: str  # in tables of results


def read_systems() -> dict[str, System]:
    """The systems that the pipeline builds, by name, in the order of the file."""
    lines = shipped_file("systems").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {name: System(name, kind, title) for name, kind, _base, _added, _decoder, title in rows}


class Run(NamedTuple):
    """One tuning of one system and what it translated; a network that translates by itself has only that."""

    system: str
    seed: str
    hypotheses: Mapping[str, list[str]]  # by set
    weights: Mapping[str, list[float]] = {}
    on_lists: bool = False  # whether features were added to n-best lists, not to the decoder
    phrases: frozenset[Chosen] | None = None
    is_untuned: bool = False  # whether no round of tuning was better on dev than the weights that it began with


class Place(NamedTuple):
    """Where the pipeline left everything; `target` is the target language's suffix, `tests` are the test sets."""

    folder: Path
    target: str
    tests: tuple[str, ...] = ("test",)

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets; the tuning set is first."""
        return DEV, *self.tests


def read_run(place: Place, system: str, seed: str) -> Run:
    """A run as the pipeline left it; an InputError names a file that is missing."""
    row = read_systems().get(system)
    path = place.folder / "tune" / f"{system}.{seed}" / "moses.ini"
    tuned = None if row is not None and row.kind == "self" else _read(path)
    stem = str(place.folder / "decode" / f"{system}.{seed}")
    hypotheses = {name: _lines(Path(f"{stem}.{name}.{place.target}")) for name in place.sets}
    if tuned is None:
        return Run(system, seed, hypotheses)
    ini = MosesIni(tuned, str(path))
    phrases = frozenset(one for name in place.tests for one in chosen_phrases(name, Path(f"{stem}.{name}.segments")))
    is_untuned = FIRST_ROUND in tuned.splitlines()
    return Run(system, seed, hypotheses, ini.all_weights(), not ini.has_features, phrases, is_untuned)


def chosen_phrases(text: str, path: Path) -> Iterator[Chosen]:
    """The phrase pairs of a translation with ``-report-segmentation``: ``target words |0-1| more |2-2|``."""
    for number, line in enumerate(_lines(path)):
        end = 0
        for span in SPAN.finditer(line):
            yield Chosen(text, number, int(span[1]), int(span[2]), line[end : span.start()].strip())
            end = span.end()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: expected a file that the pipeline made, found none") from None


def _lines(path: Path) -> list[str]:
    """Lines of a text, parted at line feeds only."""
    return _read(path).decode("utf-8", "replace").removesuffix("\n").split("\n")


def compare_systems(place: Place, systems: Sequence[str], seeds: Sequence[str], *, samples: int = 1000) -> Json:
    """Compare systems, each tuned several times, with the first one, by a paired bootstrap of so many samples.

    Returns what `format_table` makes a table of, as JSON. An InputError names a file that is missing, or of another
    length than the references.
    """
    references = {name: _lines(place.folder / "corpus" / f"{name}.{place.target}") for name in place.sets}
    runs = [[read_run(place, system, seed) for seed in seeds] for system in systems]
    for run in (run for of_system in runs for run in of_system):
        for name in place.sets:
            lines, expected = len(run.hypotheses[name]), len(references[name])
            if lines != expected:
                raise InputError(f"{run.system}, seed {run.seed}: expected {expected} lines of {name}, found {lines}")
    scored = [compare_runs(list(of_seed), references, place.tests, samples) for of_seed in zip(*runs, strict=True)]
    return {
        "sentences": {name: len(references[name]) for name in place.sets},
        "tests": list(place.tests),
        "seeds": list(seeds),
        "signatures": scored[0][1],
        "bootstrap_samples": samples,
        "systems": {
            system: _summary(runs[i], runs[0], [of_seed[i] for of_seed, _ in scored], place)
            for i, system in enumerate(systems)
        },
    }


def compare_runs(
    runs: Sequence[Run], references: Mapping[str, list[str]], tests: Sequence[str], samples: int
) -> tuple[list[Json], Json]:
    """Scores of one run of each system, all of one seed, compared with the first one; and the metrics' signatures.

    Of each run these are its seed, ``SET_BLEU`` and ``SET_chrF`` of every set and, of all but the first, the p-values
    ``SET_p`` of each test set and ``p`` of all together.
    """
    bleu = open_bleu()
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415, an extra
    from sacrebleu.significance import PairedTest  # noqa: PLC0415

    metrics = {"BLEU": bleu, "chrF": CHRF()}
    scored: list[Json] = [{"seed": run.seed} for run in runs]
    for name in references:
        for label, metric in metrics.items():
            for record, run in zip(scored, runs, strict=True):
                record[f"{name}_{label}"] = metric.corpus_score(run.hypotheses[name], [references[name]]).score
    signatures = {label: str(metric.get_signature()) for label, metric in metrics.items()}
    if len(runs) > 1:
        for key, names in {**{f"{name}_p": [name] for name in tests}, "p": tests}.items():
            named: list[Any] = [(f"{i} {run.system}", _joined(run.hypotheses, names)) for i, run in enumerate(runs)]
            test = PairedTest(named, {"BLEU": bleu}, [_joined(references, names)], "bs", n_samples=samples)
            compared: list[list[Any]] = [values for label, values in test()[1].items() if label != "System"]
            for record, result, (_, lines) in zip(scored[1:], compared[0][1:], named[1:], strict=True):
                record[key] = result.p_value if lines != named[0][1] else 1.0  # where sacreBLEU says 1 / samples
    return scored, signatures


def open_bleu() -> BLEU:
    """BLEU of text that is tokenised; refused if sacreBLEU is not installed."""
    try:
        from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415, an extra
    except ImportError as error:
        raise MosesRnnError("sacrebleu is not installed: pip install sacrebleu") from error
    return BLEU(tokenize="none", force=True)


def _joined(texts: Mapping[str, list[str]], names: Sequence[str]) -> list[str]:
    """The lines of several sets one after the other."""
    return [line for name in names for line in texts[name]]


def _summary(runs: list[Run], baselines: list[Run], scores: list[Json], place: Place) -> Json:
    """Return all results of one system."""
    summary: Json = {"on_lists": runs[0].on_lists, "runs": scores}
    for key in [f"{name}_{label}" for name in place.sets for label in ("BLEU", "chrF")]:
        values = [record[key] for record in scores]
        summary[key] = {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else None}
    for record, run, baseline in zip(scores, runs, baselines, strict=True):
        texts = (_joined(one.hypotheses, place.tests) for one in (run, baseline))
        record["weights"] = dict(run.weights)
        record["warnings"] = [UNTUNED_RUN] * run.is_untuned + list(odd_weights(run.weights))
        record["phrases_chosen_differently"] = share_different(run.phrases, baseline.phrases)
        record["sentences_different"] = mean(a != b for a, b in zip(*texts, strict=True))
    return summary


def share_different(phrases: frozenset[Any] | None, others: frozenset[Any] | None) -> float | None:
    """Share of the chosen phrase pairs that the other run did not choose, 0 to 1; None where a run has no phrases."""
    if phrases is None or others is None:
        return None
    return len(phrases - others) / len(phrases) if phrases else 0.0


def odd_weights(weights: Mapping[str, list[float]]) -> Iterator[str]:
    """Yield reasons to doubt a tuning."""
    tuned = [w for name, values in weights.items() if not name.startswith(UNTUNED) for w in values]
    largest = max((abs(w) for w in tuned if math.isfinite(w)), default=0.0)
    for name, values in weights.items():
        for i, weight in enumerate(values):
            if not math.isfinite(weight):
                yield f"{name} {i}: weight {weight}: this tuning failed"
            elif abs(weight) < TINY * largest:
                yield f"{name} {i}: weight {weight:.2g}: tuning hardly uses it, or it is constant"


def list_warnings(results: Json) -> Iterator[str]:
    """Yield reasons to doubt the results."""
    for name, system in results["systems"].items():
        for record in system["runs"]:
            yield from (f"{name}, seed {record['seed']}: {text}" for text in record["warnings"])


def as_json(results: Json) -> bytes:
    """Format the results as a JSON file."""
    return (json.dumps(results, indent=2) + "\n").encode()


def format_table(results: Json) -> Iterator[str]:
    """The lines of the table, of the text below it included, from what `compare_systems` returns."""
    rows, systems = read_systems(), results["systems"]
    titles = {name: rows[name].title if name in rows else name for name in systems}
    first = next(iter(systems))
    columns = {name: list(_columns(titles, systems, name, results["tests"])) for name in systems}
    yield f"| {' | '.join(header for header, _ in columns[first])} |"
    yield "|" + "---|" * len(columns[first])
    for cells in columns.values():
        yield f"| {' | '.join(cell for _, cell in cells)} |"
    yield ""
    yield _caption(results, titles[first])
    if any(system["on_lists"] for system in systems.values()):
        yield ON_LISTS
    for kind, text in (("extended", EXTENDED), ("self", BY_THEMSELVES)):
        if named := [titles[name] for name in systems if name in rows and rows[name].kind == kind]:
            yield f"{', '.join(named)}: {text}"


def _columns(titles: Mapping[str, str], systems: Json, name: str, tests: list[str]) -> Iterator[tuple[str, str]]:
    """The headers of a system's cells, and the cells; the first system is what others are compared with."""
    system, (baseline, first) = systems[name], next(iter(systems.items()))
    is_compared = any("p" in record for record in system["runs"])
    yield "system", titles[name] + "*" * system["on_lists"]
    yield "dev BLEU", _spread(system["dev_BLEU"])
    for test in tests:
        difference = system[f"{test}_BLEU"]["mean"] - first[f"{test}_BLEU"]["mean"]
        yield f"{test} BLEU", _spread(system[f"{test}_BLEU"])
        yield f"against {titles[baseline]}", f"{difference:+.2f}" if is_compared else ""
        yield "p by seed", _ps(system, f"{test}_p")
    if len(tests) > 1:
        yield "p, all sets", _ps(system, "p")
    yield "chrF", ", ".join(_spread(system[f"{test}_chrF"]) for test in tests)
    shares = [record["phrases_chosen_differently"] for record in system["runs"]]
    yield "phrases chosen differently", f"{mean(shares):.0%}" if is_compared and None not in shares else ""


def _ps(system: Json, key: str) -> str:
    """Of all runs; nothing for the system that others are compared with."""
    return ", ".join(f"{record[key]:.3f}" for record in system["runs"] if key in record)


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
