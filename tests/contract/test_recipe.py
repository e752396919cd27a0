"""A network that is added as docs/architecture.md says: one file and one row. The commands then do everything with it."""

import gzip
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from moses_rnn.errors import InputError
from tests.commands import ROOT, settings
from tests.contract.training import write_material

ROW = '    "{name}": NetworkRow("table", "PhrasePairs", _of_phrases({{"embedding_size": 32}})),\n'
COMMANDS = """
import json, sys
from moses_rnn.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(words, prog_name="moses-rnn")
    except SystemExit as left:
        print("exit", left.code, flush=True)
"""


@pytest.fixture(params=["aaa", "zzz"])
def name(request):
    """Of the network: it sorts before or after all others."""
    return request.param


@pytest.fixture
def commands(tmp_path, name):
    """Runs commands of a copy of the package to which the network is added; returns their exit codes and messages."""
    package = tmp_path / "changed" / "moses_rnn"
    shutil.copytree(ROOT / "moses_rnn", package)
    example = (ROOT / "tests" / "contract" / "bag.py").read_text(encoding="utf-8")
    (package / "networks" / f"{name}.py").write_text(example.replace('"bag"', f'"{name}"'), encoding="utf-8")
    presets = package / "training" / "presets.py"
    before, start, after = presets.read_text(encoding="utf-8").partition("NETWORKS = {\n")
    presets.write_text(before + start + ROW.format(name=name) + after, encoding="utf-8")
    write_material(tmp_path)
    (tmp_path / "list").write_bytes(b"0 ||| t2 t3 ||| LM0= -1 ||| -1 ||| 0-0=0-0 1-1=1-1 \n")
    (tmp_path / "source").write_bytes(b"s2 s3\n")

    def call(*lines):
        program = [sys.executable, "-c", COMMANDS, json.dumps([line.split() for line in lines])]
        done = subprocess.run(
            program, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(package.parent)}
        )
        codes = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("exit ")]
        return codes, done.stdout, done.stderr

    return call


def test_it_trains_resumes_scores_is_a_feature_and_is_sampled(commands, tmp_path, name):
    options = "--config settings.toml --embedding-size 8 --learning-rate 0.05 --device cpu --threads 1"
    settings(tmp_path, biased=False, evaluate_every=40, held_out=9, batch_size=16)
    train = f"train table --model m --architecture {name} {options}"
    codes, found, messages = commands(
        f"{train} --max-epochs 1",
        f"{train} --max-epochs 8",
        "score table --model m -o scored.gz",
        "nbest add list --source source --add m -o more",
        "sample --model m --source s3 --beam 99 --top 99 --format tsv",
    )
    assert codes == [0] * 5, messages
    assert "network: bag of words, E 8" in messages
    assert "\nresuming after " in messages
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["network"], config["embedding_size"], config["biased"]) == (name, 8, False)
    scored = [line.split(b" ||| ") for line in gzip.decompress((tmp_path / "scored.gz").read_bytes()).splitlines()]
    scores = {tuple(pair[:2]): math.log(float(pair[2].split()[-1])) for pair in scored}
    assert all(np.isfinite(score) and score < 0 for score in scores.values())
    assert b"BAG0= -" in (tmp_path / "more").read_bytes()
    (sampled,) = (line.split("\t") for line in found.splitlines() if "\tt3\t" in line)
    assert float(sampled[3]) == pytest.approx(scores[b"s3", b"t3"], abs=1e-4)


@pytest.mark.parametrize("name", ["aaa"], indirect=True)
def test_its_settings_are_those_of_its_config(commands, tmp_path, name):
    lines = []
    for number, wrong in enumerate(({"biased": 3}, {"output_rank": 3}, {"target_vocabulary_size": 3})):
        file = Path(settings(tmp_path, **wrong)[1])
        file.rename(tmp_path / f"{number}.toml")
        lines.append(f"train table --model m --architecture {name} --config {number}.toml")
    codes, _, messages = commands(*lines)
    assert codes == [InputError.exit_code] * 3
    assert "0.toml: biased: expected true or false, found 3\n" in messages
    assert f"found output_rank: --architecture {name} has no such option\n" in messages
    assert f"found target_vocabulary_size: --architecture {name} has no such option\n" in messages
    assert not (tmp_path / "m").exists()
