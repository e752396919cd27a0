"""Every command names an input that is not there within the time that Python takes to start: before it imports torch."""

import json
import subprocess
import sys

import pytest

# Each input, @file or @folder/, is missing once, and there the other times
LINES = """
train @table --source-embeddings @vectors --target-embeddings @vectors2
score @table --model @model/ --model @model2/ --inverse-model @inverse/ --moses-ini @ini
score @table --model @model/ --format tsv
validate @table
merge new @shard @shard2
ini @ini --table @table
verify @table --moses-ini @ini
nbest add @list --source @text --add @model/ --ensemble @model2/,@model3/ --word-penalty @model4/ -o new
nbest add @list --source @text --add @arpa --backoff @arpa2 -o new
nbest tune @list --reference @text
nbest rerank @list @ini
cslm train @text @text2 --dev @text3 --model new
cslm perplexity @text @text2 --model @model/ --model @model2/ --lm @arpa
cslm export-nplm new --model @model/ --dev @text
nmt train prefix --source @en --target @fr --dev prefix2 --model new
nmt train prefix --source @en --target @fr --alignment @links --rare posunk --model new
nmt translate @text --model @model/ --model @model2/ --dictionary @words --unknown dictionary
nmt dictionary prefix --source @en --target @fr --alignment @links -o new
sample @text --model @model/ --table @table
extend @table --model @model/ --text @text --inverse-model @inverse/ --moses-ini @ini
analyse targets @table
analyse summary @table
analyse prune @table --keep 0.5 -o new
analyse map gates @table --model @model/
analyse map words --model @model/ --export new
analyse map phrases @table --model @model/ -o new.csv
analyse explain @table pair --model @model/ --moses-ini @ini
analyse map alignments @text @text2 --model @model/ --line 1
analyse map sentences @text --model @model/ -o new.csv
analyse lengths @text @text2 @text3 --model @model/ --by-rarity @text4
analyse gradients @text @text2 @model/ @model2/
analyse report @table --model @model/ --source-text @text --results @results -o new
""".strip().splitlines()
RUN_ALL = """
import contextlib, importlib, io, json, os, sys
from pathlib import Path
sys.modules["torch"] = None  # importing it fails
from moses_rnn.cli.main import main
for line in json.load(sys.stdin):
    words = line.split()
    inputs = [word.removeprefix("@") for word in line.replace(",", " ").split() if word.startswith("@")]
    for missing in inputs:
        for name in inputs:
            files = [f"prefix.{name}", f"prefix2.{name}"] if name in ("en", "fr") else [name]
            for file in map(Path, files):
                if name == missing and file.exists():
                    file.rmdir() if file.is_dir() else file.unlink()
                elif name != missing:
                    file.mkdir(exist_ok=True) if name.endswith("/") else file.write_text("a b 0.5\\n")
        sys.argv = ["moses-rnn"]
        said = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with contextlib.redirect_stderr(said):
            try:
                main([word.replace("@", "") for word in words])
            except BaseException as error:
                code = error.code if isinstance(error, SystemExit) else repr(error)
        print(json.dumps([line, missing.strip("/"), code, said.buffer.getvalue().decode()]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL], input=json.dumps(LINES), capture_output=True, text=True, check=True,
        cwd=tmp_path_factory.mktemp("here"),
    )  # fmt: skip
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("line", LINES)
def test_a_missing_input_is_named_before_torch_is_imported(outcomes, line):
    of_line = [outcome[1:] for outcome in outcomes if outcome[0] == line]
    assert len(of_line) == line.count("@")
    for missing, code, said in of_line:
        assert (code, missing in said) == (3, True), (missing, said)
