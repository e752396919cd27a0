"""Each network through the commands: a column of a table, a feature of a list, what is sampled from it."""

import gzip
import itertools
import json

import numpy as np
import pytest

from moses_rnn.cli import nbest, sample, score
from moses_rnn.models.open import save_model
from moses_rnn.native import native_core
from moses_rnn.networks.vocabulary import END_ID
from tests.contract.rows import FIRST, SOURCE, TARGET
from tests.networks.saved import edit_config

OF_PAIRS = [case for case in FIRST if case.architecture.reads_sources]
TABLE = b"s2 ||| t2 t3 ||| 0.5\ns2 s3 ||| t2 t3 ||| 0.5\ns2 s3 |||  ||| 0.5\ns2 s3 ||| x ||| 0.5\n"
LIST = b"0 ||| t2 t3 ||| LM0= -1 ||| -1 ||| 0-0=0-0 1-1=1-1 \n0 ||| t2 ||| LM0= -2 ||| -2 ||| 0-1=0-0 \n"


@pytest.fixture
def here(tmp_path, monkeypatch, case):
    save_model(tmp_path / "m", case.opened())
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    (tmp_path / "list").write_bytes(LIST)
    (tmp_path / "source").write_bytes(b"s2 s3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(main, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == code


def last_numbers(table):
    return [float(line.split(b"|||")[2].split()[-1]) for line in gzip.decompress(table.read_bytes()).splitlines()]


def expected(case, *pairs):
    return case.expected(case.opened().network, [(SOURCE.ids(s.split()), TARGET.ids(t.split())) for s, t in pairs])


@pytest.mark.parametrize("case", OF_PAIRS, ids=str)
def test_it_is_a_column_of_a_table(case, here, capfd):
    run(score.main, "t.gz", "--model", "m", "--allow-misfit")
    values = np.log(last_numbers(here / "t.rnn.gz"))
    pairs = [line.split(b" ||| ")[:2] for line in TABLE.splitlines()]
    np.testing.assert_allclose(values, expected(case, *pairs), rtol=1e-5)
    (column,) = json.loads((here / "t.rnn.gz.json").read_text())["added_columns"]
    described = case.opened()
    assert (column["name"], column["meaning"]) == (described.name, described.meaning)
    assert column.get("unbounded", False) == case.architecture.unbounded
    native = case.architecture.native and native_core()
    assert f"computed by: {'native' if native else 'torch, fp32'}" in "".join(capfd.readouterr())


@pytest.mark.parametrize("case", OF_PAIRS, ids=str)
def test_one_that_has_learned_nothing_is_refused(case, here, capfd):
    measure = case.architecture.measure
    learned = {"unigram_nats_per_token": 5.0, "history": [{measure.key: measure.baseline_cost or 5.0}]}
    edit_config(here / "m", provenance=learned)
    run(score.main, "t.gz", "--model", "m", code=3)
    assert "m: expected a model that costs less than" in capfd.readouterr().err


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_it_is_a_feature_of_a_list(case, here):
    options = "--add", "m", "-o", "more", "--quiet", "--allow-misfit"
    run(nbest.main, "add", "list", "--source", "source", *options)
    feature = f"{case.opened().name}0= ".encode()
    values = [float(line.split(feature)[1].split()[0]) for line in (here / "more").read_bytes().splitlines()]
    if case.row.config.get("unit") == "sentences" or case.architecture.words:
        sums = expected(case, (b"s2 s3", b"t2 t3"), (b"s2 s3", b"t2"))
    else:
        first, second, whole = expected(case, (b"s2", b"t2"), (b"s3", b"t3"), (b"s2 s3", b"t2"))
        sums = [first + second, whole]
    np.testing.assert_allclose(values, sums, rtol=1e-5)


@pytest.mark.parametrize("case", [case for case in FIRST if case.architecture.stepper], ids=str)
def test_its_likeliest_targets_are_found(case, here, capfd):
    source = ("--source", "s2 s3") if case.architecture.reads_sources else ()
    run(sample.main, "--model", "m", *source, "--beam", 60, "--top", 3, "--format", "tsv")
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()[1:]]
    found = expected(case, *((b"s2 s3", target.encode()) for _, _, target, *_ in rows))
    np.testing.assert_allclose([float(row[3]) for row in rows], found, atol=1e-5)
    words = [word for word in TARGET.words if word != TARGET.words[END_ID]]
    every = [b" ".join(some) for length in range(3) for some in itertools.product(words, repeat=length)]
    best = sorted(expected(case, *((b"s2 s3", target) for target in every)), reverse=True)[:3]  # of two words at most
    assert all(np.array(found) >= np.array(best) - 1e-5)


@pytest.mark.parametrize("case", [case for case in FIRST if "slots" in case.switches], ids=str)
def test_a_line_without_a_slot_is_refused_or_scores_the_floor(case, here, capfd):
    (here / "t.gz").write_bytes(gzip.compress(TABLE + b"s2 ||| t2 t2 t2 t2 t2 t2 t2 ||| 0.5\n"))
    run(score.main, "t.gz", "--model", "m", code=3)
    message = capfd.readouterr().err
    assert "t.gz:5: expected phrases of at most 6 words, the network's slots, found 7" in message
    assert "--long floor gives them a score of -87" in message
    assert not (here / "t.rnn.gz").exists()
    run(score.main, "t.gz", "--model", "m", "--long", "floor", "--allow-misfit", "--force")
    assert np.log(last_numbers(here / "t.rnn.gz")[4]) == pytest.approx(-87)
    (here / "list").write_bytes(b"0 ||| t2 t2 t2 t2 t2 t2 t2 ||| LM0= -1 ||| -1 ||| 0-1=0-6 \n")
    options = "--source", "source", "--add", "m", "-o", "more", "--quiet", "--allow-misfit"
    run(nbest.main, "add", "list", *options, code=3)
    message = capfd.readouterr().err
    assert f"{case.architecture.name}0, line 1 of the list: expected phrases of at most 6 words" in message
    (here / "tsv").write_bytes(b"s2\tt2\n" * 3 + b"s2 s3\tt2 t2 t2 t2 t2 t2 t2\n" + b"s2\tt2\n" * 9)
    run(score.main, "tsv", "--format", "tsv", "--model", "m", "-o", "-", "--allow-misfit", code=3)
    assert "tsv:4: expected phrases of at most 6 words" in capfd.readouterr().err
    run(nbest.main, "add", "list", *options, "--long", "floor", "--force")
    assert f"{case.architecture.name}0= -87".encode() in (here / "more").read_bytes()
