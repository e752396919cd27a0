"""Every public name as a user's code would use it; mypy --strict reads this file, nothing runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import moses_rnn
from moses_rnn import (
    ArgumentError,
    CheckpointError,
    Explanation,
    Hypothesis,
    InputError,
    LanguageModel,
    Model,
    MosesRnnError,
    Row,
    Sample,
    Table,
    Translated,
    load,
    load_language_model,
    read_table,
)

Floats = npt.NDArray[np.float64]


def use_a_model(folder: Path) -> None:
    model = load(folder, device="cpu", precision="fp32", threads=2)
    assert_type(model, Model)
    assert_type(load([folder, "other"], combine="arithmetic"), Model)
    assert_type(model.score([("a", "b"), (b"a", b"b")]), Floats)
    assert_type(model.score([("a", "b", "0-0")]), Floats)
    assert_type(model.score(["a"], (target for target in [b"b"])), Floats)
    assert_type(model.score_iter(pairs(), chunk=100), Iterator[float])
    assert_type(model.score(read_table("phrase-table.gz")), Floats)
    assert_type(model.summaries(["a", b"b"]), Floats)
    assert_type((model.meaning, model.name, model.network, model.inverse), tuple[str, str, str, bool])
    assert_type(model.folders, tuple[Path, ...])


def use_what_it_writes(model: Model) -> None:
    samples = model.sample(["a"], 20, temperature=0.5, seed=2, max_words=9, unknown=False)
    assert_type(samples, list[list[Sample]])
    assert_type((samples[0][0].text, samples[0][0].log_prob, samples[0][0].times), tuple[str, float, int])
    translations = model.translate([b"a"], beam=3, n_best=2, length_score="mean", unknown="copy")
    assert_type(translations, list[Translated])
    assert_type(translations[0].hypotheses[0], Hypothesis)
    assert_type(translations[0].hypotheses[0].places, tuple[int, ...] | None)


def use_an_explanation(model: Model) -> None:
    explanation = model.explain("a", b"b", "0-0", table="phrase-table.gz")
    assert_type(explanation, Explanation)
    assert_type(explanation.log_prob, float)
    assert_type([(word.word, word.log_prob, word.known) for word in explanation.words], list[tuple[str, float, bool]])


def use_a_language_model() -> None:
    model = load_language_model("cslm", device="auto", precision="fp64", threads=None)
    assert_type(model, LanguageModel)
    assert_type(model.score(["a b"]), Floats)
    assert_type(model.score_iter([b"a b"], chunk=1), Iterator[float])
    assert_type(model.word_scores("a b"), Floats)
    assert_type((model.folder, model.name, model.network, model.meaning), tuple[Path, str, str, str])


def use_a_table() -> None:
    table = read_table("phrase-table.rnn.gz")
    assert_type(table, Table)
    assert_type((table.path, table.columns, table.scores), tuple[str, tuple[str, ...], tuple[str, ...]])
    assert_type(next(iter(table)), Row)
    assert_type(table.batches(rows=1000), Iterator[dict[str, list[str] | Floats]])
    assert_type(table.to_columns(), dict[str, list[str] | Floats])


def use_training() -> None:
    moses_rnn.train("phrase-table.gz", model="m", preset="small", max_minutes=30)
    moses_rnn.train(["a.fr", "b.fr"], model=Path("lm"), architecture="rnnlm")


def use_errors() -> str:
    try:
        moses_rnn.load("nowhere")
    except (ArgumentError, CheckpointError, InputError, MosesRnnError) as error:
        return error.advice
    return moses_rnn.__version__


def pairs() -> Iterator[tuple[str, str]]:
    yield "a", "b"
