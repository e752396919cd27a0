"""What came of trials: held-out nats and time of their networks, and BLEU against the baseline of the same seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from moses_rnn.analysis.results import check_length, compare_runs, open_bleu, together
from moses_rnn.files.outputs import OutputFile
from moses_rnn.files.records import parse_json
from moses_rnn.formats.runs import Place, Run

Json = dict[str, Any]
ALL = "all"  # sets together
COMPARISON = "comparison.json"  # beside what was compared
LOG = Path("training", "log.jsonl")


@dataclass(frozen=True)
class Tried:
    """A trial that was tuned and decoded.

    Attributes:
        name: of the trial.
        tuner: of it and of its baseline.
        settings: in which it differs from others, by key.
        baseline: where the pipeline left the baseline.
        system: and where the system with the networks' scores.
        seeds: of the tunings.
        networks: model folders of p(target | source).
        inverse_networks: and of p(source | target).
    """

    name: str
    tuner: str
    settings: Mapping[str, object]
    baseline: Place
    system: Place
    seeds: Sequence[str]
    networks: Sequence[Path]
    inverse_networks: Sequence[Path] = ()


def compare_trial(tried: Tried, samples: int) -> Json:
    """All figures of a trial.

    Args:
        tried: the trial.
        samples: of the paired bootstrap.

    Returns:
        its name, tuner and settings; "held_out_nats" per target token, the mean of its networks of p(target | source);
        "minutes" of training, of all its networks together; "runs", of each seed the scores of baseline and system;
        see `compare_runs`.

    Raises:
        InputError: a file is missing or of another length than the references.
        MosesRnnError: sacreBLEU is not installed.
    """
    histories = [read_history(model) for model in (*tried.networks, *tried.inverse_networks)]
    costs = [min(costs) for history in histories[: len(tried.networks)] if (costs := _of(history, "nats_per_token"))]
    seconds = [max(_of(history, "seconds"), default=0.0) for history in histories]
    return {
        "name": tried.name,
        "tuner": tried.tuner,
        "settings": dict(tried.settings),
        "held_out_nats": mean(costs) if costs else None,
        "minutes": sum(seconds) / 60,
        "runs": [_compare_seed(tried, seed, samples) for seed in tried.seeds],
    }


def read_history(model: Path) -> list[Json]:
    """The evaluations that training left in a model's folder, in order; none if there is no such record."""
    try:
        lines = (model / LOG).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [record for line in lines if isinstance(record := _parsed(line), dict)]


def _parsed(line: str) -> object:
    try:
        return parse_json(line)
    except ValueError:  # cut off by a death
        return None


def _of(history: Iterable[Json], key: str) -> list[float]:
    return [value for record in history if isinstance(value := record.get(key), int | float)]


def _compare_seed(tried: Tried, seed: str, samples: int) -> Json:
    """Baseline and system of one seed; what has been compared before is not compared again."""
    place = tried.system
    runs = [tried.baseline.run("baseline", seed), place.run("rnn", seed)]
    references = {name: place.references(name) for name in place.sets}
    for run in runs:
        for name in place.sets:
            check_length(run, name, references)
    path = place.folder / "decode" / f"{seed}.{COMPARISON}"
    digest = _digest(runs, references, samples)
    try:
        before = json.loads(path.read_bytes())
        if before["digest"] == digest:
            return dict(before["scores"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    scores = _compared(runs, references, place.tests, samples)
    with OutputFile(str(path), force=True) as file:
        file.commit(json.dumps({"digest": digest, "scores": scores}).encode())
    return scores


def _digest(runs: Sequence[Run], references: Mapping[str, list[str]], samples: int) -> str:
    texts = [references, *(run.hypotheses for run in runs), samples]
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def _compared(runs: Sequence[Run], references: Mapping[str, list[str]], tests: Sequence[str], samples: int) -> Json:
    """As JSON: the seed, the scores of "baseline" and "system", and the BLEU of all sets together in each."""
    (baseline, system), signatures = compare_runs(runs, references, tests, samples)
    bleu = open_bleu()
    for record, run in ((baseline, runs[0]), (system, runs[1])):
        record[f"{ALL}_BLEU"] = bleu.corpus_score(together(run.hypotheses, tests), [together(references, tests)]).score
    return {"seed": runs[0].seed, "baseline": baseline, "system": system, "signature": signatures["BLEU"]}
