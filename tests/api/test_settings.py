"""Whatever the caller has set in torch and numpy, results equal those of a fresh process, bit by bit."""

import contextlib
import functools
import json
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import moses_rnn
from tests.api.calls import CALLS, PAIRS, all_results, load, write_material
from tests.commands import ROOT


@pytest.fixture(scope="module")
def expected(models, tmp_path_factory):
    write_material(models)
    command = [sys.executable, "-m", "tests.api.calls", models, tmp_path_factory.mktemp("fresh")]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


@contextlib.contextmanager
def set_to(value, change, read):
    before = read()
    change(value)
    try:
        yield
    finally:
        change(before)


@contextlib.contextmanager
def errors_for_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def flushed_denormals():
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


SETTINGS = {
    "bfloat16 autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64 by default": lambda: set_to(torch.float64, torch.set_default_dtype, torch.get_default_dtype),
    "another device by default": lambda: set_to("meta", torch.set_default_device, lambda: None),
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "saved tensors on the CPU": torch.autograd.graph.save_on_cpu,
    "deterministic algorithms": lambda: set_to(
        True, torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled
    ),
    "flushed denormals": flushed_denormals,
    "imprecise products": lambda: set_to(
        "medium", torch.set_float32_matmul_precision, torch.get_float32_matmul_precision
    ),
    "without oneDNN": lambda: set_to(
        False,
        functools.partial(setattr, torch.backends.mkldnn, "enabled"),
        lambda: torch.backends.mkldnn.enabled,
    ),
    "torch's seed": lambda: set_to(7, torch.manual_seed, torch.initial_seed),
    "numpy's errors": lambda: np.errstate(all="raise"),
    "numpy's seed": lambda: set_to(7, np.random.seed, lambda: None),
    "warnings as errors": errors_for_warnings,
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_settings_of_the_caller_change_nothing(setting, models, expected, tmp_path):
    before = torch.get_num_threads(), torch.get_default_dtype(), torch.is_anomaly_enabled()
    loaded = load(models, "rnn"), load(models, "search")
    scores = [model.score(PAIRS).tolist() for model in loaded]
    with SETTINGS[setting]():
        within = torch.get_default_dtype(), torch.is_anomaly_enabled(), torch.is_grad_enabled()
        assert all_results(models, tmp_path) == expected
        assert [model.score(PAIRS).tolist() for model in loaded] == scores
        assert (torch.get_default_dtype(), torch.is_anomaly_enabled(), torch.is_grad_enabled()) == within
    assert (torch.get_num_threads(), torch.get_default_dtype(), torch.is_anomaly_enabled()) == before


def test_the_callers_iterators_run_under_the_callers_settings(models):
    seen = []

    def pairs():
        for pair in PAIRS:
            seen.append(
                (torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled())
            )
            yield pair

    with SETTINGS["float64 by default"](), torch.autocast("cpu"), torch.inference_mode():
        model = load(models, "search")
        model.score(pairs())
        list(model.score_iter(pairs(), chunk=3))
        model.translate(source for source, _ in pairs())
        model.sample((source for source, _ in pairs()), 2)
        model.nearest((source for source, _ in pairs()), among=(source for source, _ in pairs()))
    assert set(seen) == {(torch.float64, True, True)}


def test_calls_in_threads_that_overlap_restore_the_settings(models):
    """The first call to begin is not the first to end."""
    model = load(models, "search")
    scores = model.score(PAIRS).tolist()
    with SETTINGS["float64 by default"]():
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: model.score(PAIRS).tolist(), range(40)))
        assert torch.get_default_dtype() is torch.float64
    assert results == [scores] * 40


def test_training_restores_torchs_threads(models, expected, tmp_path):
    torch.set_num_threads(2)
    try:
        first = CALLS["train in threads"](models, tmp_path / "first")
        assert torch.get_num_threads() == 2
        assert CALLS["train in threads"](models, tmp_path / "second") == first == expected["train in threads"]
        with pytest.raises(moses_rnn.MosesRnnError):
            moses_rnn.train(models / "missing", model=tmp_path / "third")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
