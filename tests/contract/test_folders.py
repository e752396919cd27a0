"""Folders of each network: they give back what was saved, and nothing that does not fit is taken for a model."""

import dataclasses
import json
import math

import pytest
import torch
from safetensors.torch import load, save_file

from moses_rnn.errors import CheckpointError
from moses_rnn.models.open import open_language_model, open_model, save_model
from moses_rnn.networks.compute import Compute
from tests.contract.rows import CASES, FIRST
from tests.models.pairs import of_pairs, random_pairs
from tests.networks.saved import edit_config

EACH = pytest.mark.parametrize("case", FIRST, ids=str)
PAIRS = random_pairs(30)
UNCHECKED = {"cslm": {"vocabulary_size"}}  # the file of words decides


@pytest.fixture
def folder(tmp_path, case):
    save_model(tmp_path / "m", case.opened())
    return tmp_path / "m"


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_folder_gives_back_what_was_saved(case, folder):
    row, model = case.architecture, case.opened()
    assert {path.name for path in folder.iterdir()} == {*row.files}
    known = {"format": row.format, **dataclasses.asdict(model.config)}
    if row.format == 2:
        known |= {"network": row.key, "direction": "source-to-target", "rare": None}
    assert known.items() <= config_of(folder).items()
    opened = open_model(folder, of_pairs=False)
    assert (opened.architecture, opened.unit) == (row, known.get("unit", "phrases"))
    assert opened.config == model.config
    tensors = opened.network.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in model.network.state_dict().items())
    scorer, saved = case.opened().make_scorer(), opened.make_scorer()
    assert of_pairs(saved, PAIRS).tobytes() == of_pairs(scorer, PAIRS).tobytes()
    assert (saved.name, saved.meaning, saved.unbounded) == (opened.name, opened.meaning, opened.unbounded)
    assert (saved.name, saved.unbounded) == (case.architecture.name, case.architecture.unbounded)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    save_model(folder, opened)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("case", [case for case in FIRST if case.architecture.reads_sources], ids=str)
def test_a_model_of_the_other_direction_reads_targets(case, folder):
    edit_config(folder, direction="target-to-source")
    inverse = open_model(folder, direction="target-to-source").make_scorer()
    turned = [(target, source) for source, target in PAIRS]
    assert of_pairs(inverse, turned).tobytes() == of_pairs(case.opened().make_scorer(), PAIRS).tobytes()
    assert inverse.name == f"{case.architecture.name}Inverse"
    with pytest.raises(CheckpointError, match="expected a model of direction source-to-target, found target-to-source"):
        open_model(folder, direction="source-to-target")


def wrong_values(value):
    """What is refused in place of a value: of another type, or beyond all bounds."""
    if isinstance(value, bool):
        return [1, None, "true"]
    if isinstance(value, int):
        return [-1, True, 1.5, str(value), 1 << 40, None]
    if isinstance(value, float):
        return [math.nan, math.inf, True, str(value), 10**400, None]
    return ["other", 3, [], {}] + [None] * isinstance(value, str)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_config_that_does_not_fit_is_refused_with_its_key(case, folder):
    config = config_of(folder)
    keys = {*config} - {"files", "provenance"} - UNCHECKED.get(case.key, set())
    for key in sorted(keys):
        for wrong in (value for value in wrong_values(config[key]) if value != config[key]):
            (folder / "config.json").write_text(json.dumps({**config, key: wrong}))
            with pytest.raises(CheckpointError, match=rf"config\.json: expected {key} to be .*, found ") as caught:
                open_model(folder, of_pairs=False)
            assert len(str(caught.value)) < 1000
    for missing in keys & {"format", *case.row.config, *case.switches} - {key for key in keys if config[key] is None}:
        (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key != missing}))
        with pytest.raises(CheckpointError, match=rf"config\.json: expected {missing} to be "):
            open_model(folder, of_pairs=False)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sizes_and_switches_of_other_tensors_are_refused(case, folder):
    config = config_of(folder)
    for key in (*case.row.config, *case.switches):
        value = config[key]
        if type(value) not in (bool, int) or key in case.row.shapeless:
            continue
        (folder / "config.json").write_text(
            json.dumps({**config, key: not value if type(value) is bool else value + 1})
        )
        with pytest.raises(
            CheckpointError,
            match="expected .* to be float32|expected the tensors of this network|without direct|of heads|is shared",
        ):
            open_model(folder, of_pairs=False)


@EACH
def test_tensors_that_do_not_fit_are_refused(case, folder):
    """However they came there: config.json has no hashes of them."""
    edit_config(folder, files={})
    path = folder / "model.safetensors"
    whole = load(path.read_bytes())  # not from the file, which is written again
    others = "expected the tensors of this network .*, found missing or unknown ones: "
    for name, tensor in whole.items():
        nan = tensor.clone().flatten()
        nan[-1] = math.nan
        for changed, message in (
            ({}, f"{others}.*{name}"),
            ({name: tensor[..., None]}, f"expected {name} to be float32"),
            ({name: tensor.half()}, f"expected {name} to be float32"),
            ({name: nan.view_as(tensor)}, f"expected finite weights, found NaN or infinity in {name}"),
        ):
            save_file({key: value for key, value in whole.items() if key != name} | changed, path)
            with pytest.raises(CheckpointError, match=f"model.safetensors: {message}"):
                open_model(folder, of_pairs=False)
    save_file(whole | {"extra": tensor.clone()}, path)
    with pytest.raises(CheckpointError, match=rf"model.safetensors: {others}\['extra'\]"):
        open_model(folder, of_pairs=False)


@EACH
def test_a_damaged_or_missing_file_is_refused_by_its_name(case, folder):
    for path in list(folder.iterdir()):
        content = path.read_bytes()
        for cut in (b"", content[: len(content) // 2], content[:-2], content[:-2] + b"~" + content[-1:]):
            path.write_bytes(cut)
            with pytest.raises(CheckpointError, match=path.name):
                open_model(folder, of_pairs=False)
        path.unlink()
        with pytest.raises(CheckpointError, match=f"{path.name}: expected a file of a model folder, found: No such"):
            open_model(folder, of_pairs=False)
        path.write_bytes(content)


@EACH
def test_no_network_is_taken_for_another(case, folder):
    for other in FIRST:
        if other.architecture is not case.architecture:
            edit_config(folder, network=other.architecture.key, format=other.architecture.format)
            with pytest.raises(CheckpointError, match="expected"):
                open_model(folder, of_pairs=False)
    edit_config(folder, network="magic")
    with pytest.raises(CheckpointError, match="expected network to be bengio or .*, found 'magic'"):
        open_model(folder, of_pairs=False)


@EACH
def test_it_is_what_it_is(case, folder):
    row = case.architecture
    if not row.reads_sources:
        with pytest.raises(CheckpointError, match="expected a network of sources and targets, found: "):
            open_model(folder)
        assert not open_model(folder, of_pairs=False).architecture.reads_sources
    else:
        with pytest.raises(CheckpointError, match="expected a language model, found: "):
            open_language_model(folder)
        with pytest.raises(CheckpointError, match=f"m: expected a language model, found: {row.title}"):
            open_model(folder).make_language_model()
    if row.stepper is None:
        with pytest.raises(
            CheckpointError, match=f"m: expected a network that writes word by word, found: {row.title}"
        ):
            open_model(folder, of_pairs=False).make_stepper(Compute())
