"""Findings of a small table, of either network gathered once."""

from dataclasses import replace

import pytest
import torch

from moses_rnn.analysis import findings as module
from moses_rnn.analysis.findings import gather
from moses_rnn.table.signatures import Signature
from tests.analysis.report.small import LIMITS, SIGNATURE, TABLE, Scorer
from tests.analysis.scored import scored
from tests.analysis.tiny import VOCABULARIES, checkpoint
from tests.networks.checkpoints import search_checkpoint
from tests.networks.networks import search_network


@pytest.fixture(scope="session", autouse=True)
def few():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LIMITS.items():
            patch.setattr(module, name, value)
        yield


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    steps = []

    def step(title, _unit):
        steps.append(title)
        return lambda done, share: None

    opened = replace(scored(tmp_path_factory.mktemp("report") / "t<1>", TABLE), signature=Signature(SIGNATURE))
    gathered = gather(opened, checkpoint(), Scorer(), None, None, step)
    assert steps[0] == "reading the table"
    return replace(gathered, missing=("matplotlib",))  # pictures take a second each


@pytest.fixture(scope="session")
def search_findings(findings, tmp_path_factory):
    """The same of an RNNsearch and a source text."""
    text = tmp_path_factory.mktemp("text") / "text"
    text.write_bytes(b"a <b> &apos;c\n\n" + b"a " * 39 + b"\ng")
    model = search_checkpoint(search_network(dtype=torch.float32), *VOCABULARIES)
    table = replace(findings.table, signature=Signature())
    gathered = gather(table, model, Scorer(), str(text), None, lambda *_: lambda *_: None)
    return replace(gathered, missing=("matplotlib",))
