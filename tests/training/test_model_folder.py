"""A model folder belongs to one run at a time, and a false start leaves nothing in it."""

import json

import pytest

from moses_rnn.errors import CheckpointError, OutputError
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.networks.rnnlm import RNNLM
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.scorers.open import open_model
from moses_rnn.training.model_folder import ModelFolder, Progress
from tests.networks.checkpoints import encdec_checkpoint


def checkpoint():
    vocabulary = Vocabulary([b"<unk>", b"</s>", b"a"])
    return encdec_checkpoint(
        EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1), vocabulary, vocabulary, provenance={"table": "t"}
    )


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def start_falsely(folder):
    with ModelFolder(folder, ENCDEC) as kept:
        (kept.arrays / "source.tokens").touch()
        raise KeyboardInterrupt


def test_a_false_start_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        start_falsely(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_false_start_removes_no_other_files(tmp_path):
    (tmp_path / "mine").touch()
    with pytest.raises(KeyboardInterrupt):
        start_falsely(tmp_path)
    assert names(tmp_path) == ["mine"]


def test_a_second_run_is_refused_until_the_first_has_ended(tmp_path):
    with ModelFolder(tmp_path, ENCDEC):
        for restart in (False, True):
            with pytest.raises(OutputError, match="is being trained by another run"):
                ModelFolder(tmp_path, ENCDEC, restart=restart).__enter__()
    with ModelFolder(tmp_path, ENCDEC):
        pass


def test_the_best_weights_are_written_with_the_runs_history(tmp_path):
    progress = Progress(skipped_steps=2)
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint()
        for cost, is_best in ((3.0, True), (4.0, False)):
            progress.history.append({"nats_per_token": cost})
            kept.record(progress, is_best=is_best)
    provenance = open_model(tmp_path).provenance
    assert provenance == {"table": "t", "history": [{"nats_per_token": 3.0}], "skipped_steps": 2}
    log = (tmp_path / "training" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in log] == [
        {"nats_per_token": 3.0, "best": True},
        {"nats_per_token": 4.0, "best": False},
    ]


def test_a_model_without_its_run_is_refused_unless_it_is_to_be_replaced(tmp_path):
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint()
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)
    with pytest.raises(CheckpointError, match="found a model alone\n  --restart replaces it"):
        ModelFolder(tmp_path, ENCDEC).__enter__()
    (tmp_path / "mine").touch()
    with ModelFolder(tmp_path, ENCDEC, restart=True):
        assert names(tmp_path) == ["mine", "training/lock"]


def test_a_folder_of_another_network_is_named_and_removed_whole(tmp_path):
    with ModelFolder(tmp_path, ENCDEC) as kept:
        kept.checkpoint = checkpoint()
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)
        (kept.arrays / "state.safetensors").touch()
    with (
        ModelFolder(tmp_path, RNNLM) as kept,
        pytest.raises(CheckpointError, match="of network 'rnnlm', found 'encdec'"),
    ):
        kept.check_choices({"seed": 1})
    assert "source.vocab" in names(tmp_path)
    with ModelFolder(tmp_path, RNNLM, restart=True):
        assert names(tmp_path) == ["training/lock"]


def test_the_first_of_several_processes_alone_writes(tmp_path):
    with ModelFolder(tmp_path / "new", ENCDEC, restart=True, leads=False) as kept:
        kept.check_choices({"seed": 1})
        kept.record(Progress(history=[{"nats_per_token": 3.0}]), is_best=True)
        kept.save(None)
        assert not kept.restore(None)
    assert names(tmp_path) == []
