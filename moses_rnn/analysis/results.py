"""The paper's Table 1 from tuned and decoded systems: BLEU, significance, weights, and what was chosen differently."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.formats.moses_ini import MosesIni

Json = dict[str, Any]
DEV = "dev"
TINY = 1e-3  # of the largest weight: what MERT made of a feature that it found nothing in
UNTUNED = "UnknownWordPenalty"  # whose weight MERT leaves at 1
SPAN = re.compile(r"\|([0-9]+)-([0-9]+)\|")
# BLEU on development and test set in Table 1 of the paper (WMT'14 English–French)
PAPER = {
    "baseline": (30.64, 33.30),
    "rnn": (31.20, 33.87),
    "cslm-rnn": (31.48, 34.64),
    "cslm-rnn-wp": (31.50, 34.54),
}
TITLES = {
    "baseline": "Baseline",
    "rnn": "+RNN",
    "rnn-wp": "+RNN+WP",
    "cslm": "+CSLM",
    "cslm-rnn": "+CSLM+RNN",
    "cslm-rnn-wp": "+CSLM+RNN+WP",
}


class Chosen(NamedTuple):
    """A phrase pair as the decoder used it: source words from `first` to `last` of a sentence became `target`."""

    sentence: int
    first: int
    last: int
    target: str


@dataclass(frozen=True)
class Run:
    """One tuning of one system and what it translated."""

    system: str
    seed: str
    weights: Mapping[str, list[float]]
    on_lists: bool  # whether features were added to n-best lists, not to the decoder
    hypotheses: Mapping[str, list[str]]  # by set
    phrases: frozenset[tuple[str, Chosen]]  # of each test set


@dataclass(frozen=True)
class Place:
    """Where the pipeline left everything; `target` is the target language's suffix, `tests` are the test sets."""

    folder: Path
    target: str
    tests: tuple[str, ...] = ("test",)

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets, the one that systems are tuned on first."""
        return DEV, *self.tests

    def references(self, name: str) -> list[str]:
        """The reference translations of a set."""
        return lines_of(self.folder / "corpus" / f"{name}.{self.target}")

    def run(self, system: str, seed: str) -> Run:
        """A run as the pipeline left it."""
        path = self.folder / "tune" / f"{system}.{seed}" / "moses.ini"
        ini = MosesIni(_read(path), str(path))
        decoded = {name: self.folder / "decode" / f"{system}.{seed}.{name}" for name in self.sets}
        segments = {name: lines_of(Path(f"{decoded[name]}.segments")) for name in self.tests}
        return Run(
            system,
            seed,
            ini.all_weights(),
            not ini.has_features,
            {name: lines_of(Path(f"{path}.{self.target}")) for name, path in decoded.items()},
            frozenset((name, chosen) for name in self.tests for chosen in chosen_phrases(segments[name])),
        )


def results(place: Place, systems: Sequence[str], seeds: Sequence[str], *, samples: int = 1000) -> Json:
    """Compare systems, each tuned several times; the first one is what the others are compared with.

    Args:
        place: of the pipeline's files.
        systems: names; the baseline first.
        seeds: of the tunings.
        samples: of the paired bootstrap.

    Returns:
        What `table` makes a table of; JSON.

    Raises:
        InputError: a file is missing or of another length than the references.
    """
    references = {name: place.references(name) for name in place.sets}
    runs = [[place.run(system, seed) for seed in seeds] for system in systems]
    for run in (run for of_system in runs for run in of_system):
        for name in place.sets:
            _check_length(run, name, references)
    scored = [_scores(list(of_seed), references, place.tests, samples) for of_seed in zip(*runs, strict=True)]
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


def _check_length(run: Run, name: str, references: Mapping[str, list[str]]) -> None:
    found, expected = len(run.hypotheses[name]), len(references[name])
    if found != expected:
        raise InputError(f"{run.system}, seed {run.seed}: expected {expected} lines of {name}, found {found}")


def _scores(
    runs: list[Run], references: Mapping[str, list[str]], tests: Sequence[str], samples: int
) -> tuple[list[Json], Json]:
    """Scores of one run of each system, compared with the first one; and the metrics' signatures."""
    try:
        from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415, an extra
        from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415
        from sacrebleu.significance import PairedTest  # noqa: PLC0415
    except ImportError as error:
        raise MosesRnnError("sacrebleu is not installed: pip install 'moses-rnn[eval]'") from error

    metrics = {"BLEU": BLEU(tokenize="none", force=True), "chrF": CHRF()}
    scored: list[Json] = [{"seed": run.seed} for run in runs]
    for name in references:
        for label, metric in metrics.items():
            for record, run in zip(scored, runs, strict=True):
                record[f"{name}_{label}"] = metric.corpus_score(run.hypotheses[name], [references[name]]).score
    signatures = {label: str(metric.get_signature()) for label, metric in metrics.items()}
    if len(runs) > 1:
        for key, names in {**{f"{name}_p": [name] for name in tests}, "p": tests}.items():
            named: list[Any] = [(f"{i} {run.system}", _together(run.hypotheses, names)) for i, run in enumerate(runs)]
            bleu = {"BLEU": metrics["BLEU"]}
            test = PairedTest(named, bleu, [_together(references, names)], "bs", n_samples=samples)
            compared: list[list[Any]] = [values for label, values in test()[1].items() if label != "System"]
            for record, result in zip(scored[1:], compared[0][1:], strict=True):
                record[key] = result.p_value
    return scored, signatures


def _together(texts: Mapping[str, list[str]], names: Sequence[str]) -> list[str]:
    """The lines of several sets one after the other."""
    return [line for name in names for line in texts[name]]


def _summary(runs: list[Run], baselines: list[Run], scores: list[Json], place: Place) -> Json:
    """All of one system."""
    summary: Json = {"on_lists": runs[0].on_lists, "runs": scores}
    for key in [f"{name}_{label}" for name in place.sets for label in ("BLEU", "chrF")]:
        values = [record[key] for record in scores]
        summary[key] = {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else None}
    for record, run, baseline in zip(scores, runs, baselines, strict=True):
        record["weights"] = dict(run.weights)
        record["warnings"] = list(odd_weights(run.weights))
        record["phrases_chosen_differently"] = share_different(run.phrases, baseline.phrases)
        record["sentences_different"] = mean(
            a != b
            for a, b in zip(
                _together(run.hypotheses, place.tests), _together(baseline.hypotheses, place.tests), strict=True
            )
        )
    return summary


def share_different(phrases: frozenset[Any], others: frozenset[Any]) -> float:
    """Share of the chosen phrase pairs that the other run did not choose, 0 to 1."""
    return len(phrases - others) / len(phrases) if phrases else 0.0


def chosen_phrases(lines: Sequence[str]) -> Iterator[Chosen]:
    """The phrase pairs of a translation with ``-report-segmentation``: ``target words |0-1| more |2-2|``."""
    for number, line in enumerate(lines):
        end = 0
        for span in SPAN.finditer(line):
            yield Chosen(number, int(span[1]), int(span[2]), line[end : span.start()].strip())
            end = span.end()


def odd_weights(weights: Mapping[str, list[float]]) -> Iterator[str]:
    """What should make a user doubt a tuning."""
    tuned = [w for name, values in weights.items() if not name.startswith(UNTUNED) for w in values]
    largest = max((abs(w) for w in tuned if math.isfinite(w)), default=0.0)
    for name, values in weights.items():
        for i, weight in enumerate(values):
            if not math.isfinite(weight):
                yield f"{name} {i}: weight {weight}: this tuning failed"
            elif abs(weight) < TINY * largest:
                yield f"{name} {i}: weight {weight:.2g}: hardly any use was found for it, or it is constant"


def table(found: Json) -> Iterator[str]:
    """The results as lines of Markdown, beside the paper's."""
    seeds, tests = len(found["seeds"]), found["tests"]
    first_name, first = next(iter(found["systems"].items()))
    compared_with = TITLES.get(first_name, first_name)
    header = ["system", "dev BLEU"]
    for test in tests:
        header += [f"{test} BLEU", f"against {compared_with}", "p by seed"]
    header += ["p, all sets"] * (len(tests) > 1) + ["chrF", "phrases chosen differently", "paper: dev, test"]
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for name, system in found["systems"].items():
        cells = [TITLES.get(name, name) + ("*" if system["on_lists"] else ""), _spread(system["dev_BLEU"])]
        for test in tests:
            difference = system[f"{test}_BLEU"]["mean"] - first[f"{test}_BLEU"]["mean"]
            ps = _ps(system, f"{test}_p")
            cells += [_spread(system[f"{test}_BLEU"]), f"{difference:+.2f}" if ps else "", ps]
        differing = mean(record["phrases_chosen_differently"] for record in system["runs"])
        cells += [_ps(system, "p")] * (len(tests) > 1) + [
            ", ".join(_spread(system[f"{test}_chrF"]) for test in tests),
            f"{differing:.0%}" if _ps(system, "p") else "",
            ", ".join(f"{value:.2f}" for value in PAPER[name]) if name in PAPER else "",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    sentences = [f"{found['sentences'][name]:,}" for name in (DEV, *tests)]
    yield (
        f"Mean ± standard deviation of {seeds} tunings; p: paired bootstrap of {found['bootstrap_samples']:,} samples "
        f"against {compared_with} of the same seed; {', '.join(sentences[:-1])} and {sentences[-1]} "
        f"sentences; {found['signatures']['BLEU']}"
    )
    if any(system["on_lists"] for system in found["systems"].values()):
        yield "* The CSLM (and WP) chose from n-best lists of the system without it; all else was in the decoder."


def _ps(system: Json, key: str) -> str:
    """Of all runs; nothing for the system that others are compared with."""
    return ", ".join(f"{record[key]:.3f}" for record in system["runs"] if key in record)


def warnings(found: Json) -> Iterator[str]:
    """What should make a user doubt the results."""
    for name, system in found["systems"].items():
        for record in system["runs"]:
            for text in record["warnings"]:
                yield f"{name}, seed {record['seed']}: {text}"


def as_json(found: Json) -> bytes:
    """As a file."""
    return (json.dumps(found, indent=2) + "\n").encode()


def _spread(value: Mapping[str, float | None]) -> str:
    sd = value["sd"]
    return f"{value['mean']:.2f}" + (f" ± {sd:.2f}" if sd is not None else "")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: expected a file that the pipeline made, found none") from None


def lines_of(path: Path) -> list[str]:
    """Lines of a text, parted at line feeds only."""
    return _read(path).decode("utf-8", "replace").removesuffix("\n").split("\n")
