"""What make has to do for a plan of trials: folders, targets and variables of the pipeline.

What is shared is made once: the texts and the table, the baseline for each tuner, a network for all trials that train
it alike. The name of a folder has the hash of the settings that made it, so that other settings have another folder and
what is done stays done.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_rnn.formats.plan_values import OF_PLACE, OF_TABLE, OF_TUNING
from moses_rnn.formats.plans import Plan, Trial

BASELINE, RNN = "baseline", "rnn"  # the systems of the pipeline
HASH_LENGTH = 10
SETTINGS_FILE = "settings.json"
NETWORKS = "networks"  # the folder of all; none of them has a name of its own


@dataclass(frozen=True)
class Step:
    """A run of make.

    Attributes:
        name: for people.
        folder: the pipeline's WORK.
        targets: of the pipeline.
        variables: of the pipeline.
        needs: folders of the steps that come before.
        settings: what decides the folder's content.
    """

    name: str
    folder: Path
    targets: tuple[str, ...]
    variables: Mapping[str, str]
    needs: tuple[Path, ...]
    settings: Mapping[str, Any]

    @property
    def words(self) -> list[str]:
        """Targets and variables, as make takes them."""
        return [*self.targets, f"WORK={self.folder}", *(f"{name}={value}" for name, value in self.variables.items())]

    @property
    def model(self) -> Path:
        """The network, if the step trains one."""
        return self.folder / "rnn" / "model"


@dataclass(frozen=True)
class TrialSteps:
    """A trial with its steps; `networks` are those of p(target | source), then those of the other direction."""

    trial: Trial
    baseline: Step
    networks: tuple[Step, ...]
    system: Step

    @property
    def of_trial(self) -> tuple[Step, ...]:
        """All of them, in order."""
        return (self.baseline, *self.networks, self.system)


class Steps:
    """The steps of a plan.

    Args:
        plan: that was read.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._work = Path(os.path.abspath(plan.work))  # noqa: PTH100, as make makes it: links stay
        self.base = self._base()
        self.trials = tuple(self._trial(trial) for trial in plan.trials)

    def chosen(self, names: Sequence[str]) -> list[TrialSteps]:
        """The trials of these names; without names all."""
        return [steps for steps in self.trials if not names or steps.trial.name in names]

    def in_order(self, trials: Sequence[TrialSteps]) -> Iterator[Step]:
        """All steps of some trials, each once."""
        first: dict[Path, Step] = {}
        for step in [self.base, *(step for of_one in trials for step in of_one.of_trial)]:
            first.setdefault(step.folder, step)
        yield from first.values()

    def _base(self) -> Step:
        """Texts, table and the ini of the baseline, or what was given of them."""
        variables = self._given(OF_TABLE)
        folder = self._folder("base", variables)
        texts = [f"{folder}/done/{name}" for name in ("dev", *self._plan.tests)]
        return Step(
            name="texts and table",
            folder=folder,
            targets=("baseline", *texts),
            variables={**variables, **self._given(OF_PLACE)},
            needs=(),
            settings=variables,
        )

    def _trial(self, trial: Trial) -> TrialSteps:
        seeds = sorted({seed for each in self._plan.trials if each.tuner == trial.tuner for seed in each.seeds})
        tuning = {"TUNER": trial.tuner, **self._given(OF_TUNING)}
        baseline = self._step(
            name=f"baseline, {trial.tuner}",
            place=f"baseline.{trial.tuner}",
            target=f"decode-{BASELINE}",
            variables={**tuning, "SEEDS": _joined(seeds)},
            settings=tuning,
        )
        networks = tuple(
            self._network(trial, seed, inverse=inverse)
            for inverse in (False, True)[: 1 + trial.inverse]
            for seed in trial.networks
        )
        return TrialSteps(trial, baseline, networks, self._system(trial, networks, tuning))

    def _system(self, trial: Trial, networks: Sequence[Step], tuning: Mapping[str, str]) -> Step:
        """The table scored by the networks, and the tunings with it."""
        folders = [f"--{'inverse-' * ('--inverse' in step.settings['train'])}model {step.model}" for step in networks]
        combine = [f"--combine {trial.combine}"] * (len(trial.networks) > 1)
        flags = [*folders[1:], *combine, *trial.score]  # the first network is the pipeline's MODEL
        return self._step(
            name=trial.name,
            place=f"trials/{trial.name}",
            target=f"decode-{RNN}",
            variables={
                **tuning,
                "MODEL": str(networks[0].model),
                "SCORE_FLAGS": " ".join(flags),
                "SEEDS": _joined(trial.seeds),
            },
            settings={
                **tuning,
                "train": [step.settings["train"] for step in networks],
                "score": [*combine, *trial.score],
            },
            needs=tuple(step.folder for step in networks),
        )

    def _network(self, trial: Trial, seed: int, *, inverse: bool) -> Step:
        flags = [*trial.train, f"--seed={seed}", *["--inverse"] * inverse]
        return self._step(
            name=f"network of {trial.name}, seed {seed}{', inverse' * inverse}",
            place=f"{NETWORKS}/network",
            target="train-rnn",
            variables={"TRAIN_FLAGS": " ".join(flags)},
            settings={"train": flags},
        )

    def _step(
        self,
        *,
        name: str,
        place: str,
        target: str,
        variables: Mapping[str, str],
        settings: Mapping[str, Any],
        needs: tuple[Path, ...] = (),
    ) -> Step:
        """A step that begins with the base's texts, table and ini."""
        base = self.base.folder
        given = self.base.variables.get("PHRASE_TABLE")
        corpus = {
            **{name: self.base.variables[name] for name in ("SRC", "TRG")},
            "TOKENISED": "yes",
            "DEV": f"{base}/corpus/dev",
            "TEST": " ".join(f"{base}/corpus/{name}" for name in self._plan.tests),
            "PHRASE_TABLE": os.path.abspath(given) if given else f"{base}/model/phrase-table.gz",  # noqa: PTH100
            "BASELINE_INI": f"{base}/baseline/moses.ini",
            **self._given(OF_PLACE),
        }
        of_table = {"table": self.base.folder.name, **settings}
        folder = self._folder(place, of_table)
        return Step(name, folder, (target,), {**corpus, **variables}, (base, *needs), of_table)

    def _given(self, names: Sequence[str]) -> dict[str, str]:
        """Variables of the plan, in the order of the names."""
        return {name: self._plan.pipeline[name] for name in names if name in self._plan.pipeline}

    def _folder(self, place: str, settings: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        return self._work / f"{place}.{digest[:HASH_LENGTH]}"


def _joined(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def changed_settings(step: Step) -> Iterator[str]:
    """What a folder of the same name has been made with, as long as there is none for the present settings.

    Yields:
        a sentence for each such folder, with the settings that differ.
    """
    if step.folder.exists() or step.folder.parent.name == NETWORKS:
        return
    stem = step.folder.name[: -HASH_LENGTH - 1]
    for folder in sorted(step.folder.parent.glob(f"{stem}.{'?' * HASH_LENGTH}")):
        try:
            before = json.loads((folder / SETTINGS_FILE).read_bytes())
        except (OSError, ValueError):
            continue
        keys = [key for key in {**before, **step.settings} if before.get(key) != step.settings.get(key)]
        changes = "; ".join(f"{key} was {_shown(before.get(key))}, is {_shown(step.settings.get(key))}" for key in keys)
        yield f"{step.name}: the plan has changed, so this runs anew ({changes}); what was made before is in {folder}"


def _shown(value: object) -> str:
    return "not given" if value is None else value if isinstance(value, str) else json.dumps(value)
