"""Who scores a table: threads shared among devices, and workers elsewhere that give the same bytes."""

import dataclasses
import json
import pickle
import shutil

import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.files.streams import show_nothing
from moses_rnn.networks.compute import Compute
from moses_rnn.score.score import score
from moses_rnn.score.workers import MOST_CPU_WORKERS, WORKERS_OF_A_GPU, ThreadWorkers, share_threads
from tests.score.tables import names, never, options_for

pytestmark = pytest.mark.usefixtures("in_small_chunks")


@pytest.mark.parametrize("names", [["rnn"], ["rnn", "groundhog"]], ids=len)
def test_a_job_scores_as_the_open_models_do(here, models, monkeypatch, names):
    monkeypatch.setattr("moses_rnn.score.workers.RayWorkers", in_thread)
    folders = tuple(models / name for name in names)
    threads = options_for(here, models, models=folders, new_table=str(here / "threads"), word_penalty=True)
    elsewhere = dataclasses.replace(threads, new_table=str(here / "elsewhere"), ray="auto")
    for request in (threads, elsewhere):
        score(request, show_nothing, never)
    assert (here / "elsewhere").read_bytes() == (here / "threads").read_bytes()
    one, other = (json.loads((here / f"{name}.json").read_bytes()) for name in ("threads", "elsewhere"))
    assert one | {"output": ""} == other | {"output": ""}


def in_thread(begin, *_):
    return ThreadWorkers([pickle.loads(pickle.dumps(begin))()])


def test_a_model_that_was_changed_meanwhile_is_refused(here, models, monkeypatch):
    def of_another_model(begin, *_):
        shutil.copytree(models / "groundhog", here / "model", dirs_exist_ok=True)
        return in_thread(begin)

    monkeypatch.setattr("moses_rnn.score.workers.RayWorkers", of_another_model)
    shutil.copytree(models / "rnn", here / "model")
    before = names(here)
    with pytest.raises(CheckpointError, match="model: was changed after this run began"):
        score(options_for(here, models, models=(here / "model",), ray="auto"), show_nothing, never)
    assert names(here) == before


@pytest.mark.parametrize(
    ("devices", "threads", "native", "of_each", "of_torch"),
    [
        (["cpu"], 20, True, 20, 3),
        (["cpu", "cpu"], 5, True, 2, 3),
        (["cpu"], 2 * MOST_CPU_WORKERS, False, MOST_CPU_WORKERS, 2),
        (["cpu", "cpu"], 4, False, 1, 2),
        (["cuda:0", "cuda:1"], 4, False, WORKERS_OF_A_GPU, 3),
        (["cpu"], None, True, 3, 3),
    ],
)
def test_threads_are_shared_among_workers(devices, threads, native, of_each, of_torch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert share_threads(devices, threads, Compute(native=native)) == of_each
        assert torch.get_num_threads() == of_torch
    finally:
        torch.set_num_threads(before)
