"""Findings of a small table, gathered once."""

import pytest

from moses_rnn.analysis.report.findings import gather
from tests.analysis.report.small import CONFIG, SIGNATURE, TABLE, Producer
from tests.analysis.scored import scored
from tests.analysis.tiny import checkpoint


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    steps = []

    def step(title, _unit):
        steps.append(title)
        return lambda done, share: None

    opened = scored(tmp_path_factory.mktemp("report") / "t<1>", TABLE)
    gathered = gather(opened, checkpoint(), Producer(), SIGNATURE, CONFIG, step)
    assert steps[:3] == ["counting and choosing", "comparing preferences", "comparing scores"]
    return gathered
