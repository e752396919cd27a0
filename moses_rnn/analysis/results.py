"""The paper's Table 1 from tuned and decoded systems: BLEU, significance, weights, and what was chosen differently."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from moses_rnn.analysis.runs import Place, Run
from moses_rnn.errors import InputError, MosesRnnError

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

Json = dict[str, Any]
TINY = 1e-3  # of the largest weight: what MERT made of a feature that it found nothing in
UNTUNED = "UnknownWordPenalty"  # whose weight MERT leaves at 1
UNTUNED_RUN = (
    "no round of tuning was better on dev than the weights that it began with, which were kept: try another tuner"
)


def compare_systems(place: Place, systems: Sequence[str], seeds: Sequence[str], *, samples: int = 1000) -> Json:
    """Compare systems, each tuned several times; the first one is what the others are compared with.

    Args:
        place: of the pipeline's files.
        systems: names; the baseline first.
        seeds: of the tunings.
        samples: of the paired bootstrap.

    Returns:
        What `results_table` makes a table of; JSON.

    Raises:
        InputError: a file is missing or of another length than the references.
    """
    references = {name: place.references(name) for name in place.sets}
    runs = [[place.run(system, seed) for seed in seeds] for system in systems]
    for run in (run for of_system in runs for run in of_system):
        for name in place.sets:
            check_length(run, name, references)
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


def check_length(run: Run, name: str, references: Mapping[str, list[str]]) -> None:
    """Raise InputError if a run has not a translation for each reference of a set."""
    lines, expected = len(run.hypotheses[name]), len(references[name])
    if lines != expected:
        raise InputError(f"{run.system}, seed {run.seed}: expected {expected} lines of {name}, found {lines}")


def compare_runs(
    runs: Sequence[Run], references: Mapping[str, list[str]], tests: Sequence[str], samples: int
) -> tuple[list[Json], Json]:
    """Scores of one run of each system, all of one seed, compared with the first one; and the metrics' signatures.

    Of each run these are its seed, ``SET_BLEU`` and ``SET_chrF`` of every set and, of all but the first, the p-values
    ``SET_p`` of each test set and ``p`` of all together.

    Raises:
        MosesRnnError: sacreBLEU is not installed.
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
            named: list[Any] = [(f"{i} {run.system}", together(run.hypotheses, names)) for i, run in enumerate(runs)]
            test = PairedTest(named, {"BLEU": bleu}, [together(references, names)], "bs", n_samples=samples)
            compared: list[list[Any]] = [values for label, values in test()[1].items() if label != "System"]
            for record, result, (_, lines) in zip(scored[1:], compared[0][1:], named[1:], strict=True):
                record[key] = result.p_value if lines != named[0][1] else 1.0  # where sacreBLEU says 1 / samples
    return scored, signatures


def open_bleu() -> BLEU:
    """BLEU of text that is tokenised.

    Raises:
        MosesRnnError: sacreBLEU is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415, an extra
    except ImportError as error:
        raise MosesRnnError("sacrebleu is not installed: pip install 'moses-rnn[eval]'") from error
    return BLEU(tokenize="none", force=True)


def together(texts: Mapping[str, list[str]], names: Sequence[str]) -> list[str]:
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
        record["warnings"] = [UNTUNED_RUN] * run.is_untuned + list(odd_weights(run.weights))
        record["phrases_chosen_differently"] = share_different(run.phrases, baseline.phrases)
        record["sentences_different"] = mean(
            a != b
            for a, b in zip(
                together(run.hypotheses, place.tests), together(baseline.hypotheses, place.tests), strict=True
            )
        )
    return summary


def share_different(phrases: frozenset[Any] | None, others: frozenset[Any] | None) -> float | None:
    """Share of the chosen phrase pairs that the other run did not choose, 0 to 1; None where a run has no phrases."""
    if phrases is None or others is None:
        return None
    return len(phrases - others) / len(phrases) if phrases else 0.0


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


def list_warnings(results: Json) -> Iterator[str]:
    """What should make a user doubt the results."""
    for name, system in results["systems"].items():
        for record in system["runs"]:
            for text in record["warnings"]:
                yield f"{name}, seed {record['seed']}: {text}"


def as_json(results: Json) -> bytes:
    """As a file."""
    return (json.dumps(results, indent=2) + "\n").encode()
