"""The pipeline's networks of sentences: trained once for all systems that use them, on lists and by themselves."""

import gzip
import itertools
import json
import re

import pytest

from tests.commands import run
from tests.conftest import EXAMPLES
from tests.pipeline import make

SIZES = "--hidden-size 16 --embedding-size 8 --batch-size 8 --threads 1 --quiet"
LEARNED = "--learning-rate 0.02 --max-epochs 3"  # enough to be better than a unigram model
FLAGS = [
    f"SEARCH_FLAGS={SIZES} {LEARNED}",
    f"LSTM_FLAGS={SIZES} {LEARNED}",
    f"RNNENC_FLAGS={SIZES} {LEARNED}",
    "TRANSLATE_FLAGS=--beam 2 --threads 1 --quiet",
]
CLEAN = """#!/bin/sh
for language in $2 $3; do cp "$1.$language" "$4.$language"; done
"""
# a moses-rnn nmt that learns nothing and puts the names of its models before each line
NMT = """#!/bin/sh
command=$2; shift 2; models=
case $command in
train)
    while [ "$1" != --model ]; do shift; done
    mkdir "$2"
    ;;
translate)
    for word; do [ ! -d "$word" ] || models="$models$(basename "$word") "; done
    echo "$models" >> "$0.log"
    sed "s/^/$models/"
    ;;
esac
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """300 sentences to learn from, 20 to tune on, 20 to test with."""
    folder = tmp_path_factory.mktemp("corpus")
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            (folder / f"train.{language}").write_text("".join(itertools.islice(lines, 300)))
        for name in ("dev", "test"):
            lines = (EXAMPLES / "corpus" / f"{name}.{language}").read_text().splitlines(keepends=True)
            (folder / f"{name}.{language}").write_text("".join(lines[:20]))
    return folder


@pytest.fixture
def given(tmp_path, corpus):
    """Variables for these texts and a Moses that cleans no corpus and can do nothing else."""
    executable(tmp_path / "moses" / "scripts" / "training" / "clean-corpus-n.perl", CLEAN)
    texts = [f"{name.upper()}={corpus / name}" for name in ("train", "dev", "test")]
    # which would miss the rest of Moses
    without_moses = ["-o", "pipeline-tools"]
    (tmp_path / "work" / "log").mkdir(parents=True)
    (tmp_path / "work" / "done").mkdir()
    return [f"WORK={tmp_path}/work", f"MOSES_ROOT={tmp_path}/moses", "TOKENISED=yes", *texts, *without_moses]


def planned(*arguments):
    """The commands that make would run, each in one line."""
    text = make("-n", *arguments, "MOSES_ROOT=/nowhere").stdout.replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line) for line in text.split("\n")]


def trained(commands):
    """Network and seed of each model in the order of training."""
    return [re.search(r"--model \S*/nmt/(\S+)", line)[1] for line in commands if "moses-rnn nmt train" in line]


def test_a_network_is_trained_once_for_all_systems(tmp_path):
    systems = "SYSTEMS=baseline nbest-search nbest-lstm nbest-ensemble rnnsearch rnnsearch-x4 seq2seq rnnenc"
    commands = planned("results", f"WORK={tmp_path}", systems, "SEEDS=1 2", "ENSEMBLE_SEEDS=2 3 4 5")
    models = trained(commands)
    assert len(models) == len(set(models))
    assert set(models) == {
        *(f"rnnsearch.{seed}" for seed in "12345"), *(f"seq2seq.{seed}" for seed in "12"), "rnnenc.1", "rnnenc.2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("network", "flags"), [("rnnsearch", "SEARCH_FLAGS"), ("seq2seq", "LSTM_FLAGS"), ("rnnenc", "RNNENC_FLAGS")]
)
def test_a_network_is_trained_on_the_corpus_for_each_seed(tmp_path, network, flags):
    commands = planned(f"train-{network}", f"WORK={tmp_path}", "SEEDS=7 8", f"{flags}=--max-epochs 3")
    trainings = [line for line in commands if "moses-rnn nmt train" in line]
    for seed, training in zip("78", trainings, strict=True):
        assert f"train {tmp_path}/corpus/train --source en --target fr --dev {tmp_path}/corpus/dev --model" in training
        assert f"/nmt/{network}.{seed} --architecture {network} --seed {seed} --max-epochs 3 $restart" in training


@pytest.mark.parametrize(
    ("system", "option"),
    [
        ("nbest-search", "--add {}/nmt/rnnsearch.4"),
        ("nbest-lstm", "--add {}/nmt/seq2seq.4"),
        ("nbest-ensemble", "--ensemble {0}/nmt/rnnsearch.8,{0}/nmt/rnnsearch.9"),
    ],
)
def test_a_network_of_the_first_seed_adds_to_lists(tmp_path, system, option):
    given = [f"tune-{system}", f"WORK={tmp_path}", "SEEDS=4 5", "ENSEMBLE_SEEDS=8 9", "NBEST_FLAGS=--threads 3"]
    commands = planned(*given)
    for seed in "45":
        (features,) = [line for line in commands if f"-o {tmp_path}/nbest/{system}.{seed}.$set.gz" in line]
        assert f"moses-rnn nbest {tmp_path}/nbest/rnn.{seed}.$set.gz --source {tmp_path}/corpus/$set.en" in features
        assert f" {option.format(tmp_path)} --threads 3 -o " in features


@pytest.mark.parametrize(("system", "network"), [("nbest-rnnlm", "rnnlm"), ("nbest-bengio", "bengio")])
def test_a_language_model_is_trained_once_and_adds_to_lists(tmp_path, system, network):
    flags = [f"{network.upper()}_FLAGS=--max-epochs 3", "NBEST_FLAGS=--threads 3"]
    commands = planned(f"tune-{system}", f"WORK={tmp_path}", "SEEDS=4 5", *flags)
    (training,) = [line for line in commands if "moses-rnn cslm train" in line]
    text = f"{tmp_path}/corpus/train.fr --network {network} --dev {tmp_path}/corpus/dev.fr"
    assert f"moses-rnn cslm train {text} --model {tmp_path}/nlm/{network} --max-epochs 3 $restart" in training
    for seed in "45":
        (features,) = [line for line in commands if f"-o {tmp_path}/nbest/{system}.{seed}.$set.gz" in line]
        assert f" --add {tmp_path}/nlm/{network} --threads 3 -o " in features


def test_language_models_learn_from_the_text_of_a_cslm(tmp_path):
    commands = planned("train-rnnlm", f"WORK={tmp_path}", "CSLM_TEXT=README.md")
    assert [line for line in commands if "moses-rnn cslm train README.md --network rnnlm" in line]
    table = ["PHRASE_TABLE=README.md", "BASELINE_INI=README.md", "TRAIN=", "MOSES_ROOT=/nowhere"]
    for given, needs in (([], True), (["CSLM_TEXT=README.md"], False)):
        done = make("results", f"WORK={tmp_path}/work", *table, *given, "SYSTEMS=baseline nbest-bengio", check=False)
        assert ("missing: CSLM_TEXT, for systems with a language model" in done.stderr) == needs


@pytest.mark.parametrize(
    ("given", "base"),
    [
        (["SYSTEMS=baseline nbest-search"], "baseline"),
        (["SYSTEMS=baseline rnn nbest-search"], "rnn"),
        (["SYSTEMS=baseline rnn nbest-search", "LIST_BASE=cslm-rnn", "CSLM_IN=nbest"], "cslm-rnn"),
        (["BASE_nbest-search=nbest-ensemble"], "nbest-ensemble"),
    ],
)
def test_the_system_whose_lists_are_chosen_from(tmp_path, given, base):
    commands = planned("tune-nbest-search", f"WORK={tmp_path}", "SEEDS=4", *given)
    assert [line for line in commands if f"moses-rnn nbest {tmp_path}/nbest/{base}.4.$set.gz" in line]


@pytest.mark.parametrize("base", ["magic", "nbest-search", "rnnsearch", "rnn baseline", ""])
def test_a_base_without_lists_is_refused(tmp_path, base):
    done = make("results", f"WORK={tmp_path}/work", "MOSES_ROOT=/nowhere", f"LIST_BASE={base}", check=False)
    assert done.returncode == 2
    assert f"LIST_BASE={base}: expected one " in done.stderr


def test_networks_need_a_corpus_beside_a_table(tmp_path):
    table = ["PHRASE_TABLE=README.md", "BASELINE_INI=README.md", "TRAIN=", "MOSES_ROOT=/nowhere"]
    needed = "missing: TRAIN, the prefix of a corpus"
    for systems, needs in (("baseline", False), ("baseline nbest-search", True), ("rnnsearch-x4", True)):
        done = make("results", f"WORK={tmp_path}/work", *table, f"SYSTEMS={systems}", check=False)
        assert (needed in done.stderr) == needs


def test_an_ensemble_translates_once(given, tmp_path):
    commands = executable(tmp_path / "bin" / "moses-rnn", NMT).parent
    ours = [f"BIN={commands}", "SEEDS=1 2", "ENSEMBLE_SEEDS=5 6", "TRANSLATE_FLAGS=--beam 2"]
    make("decode-rnnsearch-x4", "decode-rnnsearch", *given, *ours)
    test = (tmp_path / "work" / "corpus" / "test.en").read_text().splitlines()
    for name, models in {
        "rnnsearch-x4.1": "rnnsearch.5 rnnsearch.6", "rnnsearch-x4.2": "rnnsearch.5 rnnsearch.6",
        "rnnsearch.1": "rnnsearch.1", "rnnsearch.2": "rnnsearch.2",
    }.items():  # fmt: skip
        translated = (tmp_path / "work" / "decode" / f"{name}.test.fr").read_text().splitlines()
        assert translated == [f"{models} {line}" for line in test]
    calls = (commands / "moses-rnn.log").read_text().splitlines()
    assert calls.count("rnnsearch.5 rnnsearch.6 ") == 2  # dev and test


@pytest.mark.timeout(600)
@pytest.mark.release
def test_a_network_that_translates_by_itself_ends_in_results(given, tmp_path):
    work = tmp_path / "work"
    ours = ["SYSTEMS=rnnsearch", "SEEDS=1", *FLAGS]
    done = make("results", *given, *ours)
    results = json.loads((work / "results.json").read_text())
    assert [system["runs"][0]["weights"] for system in results["systems"].values()] == [{}]
    assert [path.name for path in (work / "nmt").iterdir()] == ["rnnsearch.1"]
    for text in ("| RNNsearch |", "RNNsearch: without Moses;"):
        assert text in done.stdout
    lengths = (work / "lengths.test.md").read_text()
    assert lengths in done.stdout
    for text in ("No UNK |\n", "| sentences |", "| rnnsearch.1.test.fr |"):
        assert text in lengths
    # what is done stays done
    again = make("results", *given, *ours)
    assert "moses-rnn" not in again.stdout


def test_words_outside_the_shortlist_need_an_alignment(tmp_path):
    """One dictionary for all seeds; the network that learns by annotation has no dev text, which has no alignment."""
    commands = planned("decode-rnnsearch-unk", "decode-posunk", f"WORK={tmp_path}", "SEEDS=4 5", "SEARCH_FLAGS=-q")
    aligned = f"--alignment {tmp_path}/model/aligned.grow-diag-final-and"
    assert [line for line in commands if "aligned.grow-diag-final-and" in line and "moses-rnn nmt" not in line]
    (words,) = [line for line in commands if "moses-rnn nmt dictionary" in line]
    assert f"{aligned} -o {tmp_path}/model/words.en-fr --force" in words
    assert trained(commands) == ["rnnsearch.4", "rnnsearch.5", "posunk.4", "posunk.5"]
    for line in commands:
        if "moses-rnn nmt train" in line and "/nmt/posunk" in line:
            assert "--architecture rnnsearch --seed " in line
            assert f" -q --rare posunk {aligned} " in line
            assert "--dev" not in line
    for network in ("rnnsearch", "posunk"):
        how = f"/nmt/{network}.$SEED --unknown dictionary --dictionary {tmp_path}/model/words.en-fr <"
        assert len([line for line in commands if how in line]) == 2


def links_in_place(corpus):
    """Each word with that in its place."""
    texts = [(corpus / f"train.{language}").read_text().splitlines() for language in ("en", "fr")]
    lengths = [min(len(en.split()), len(fr.split())) for en, fr in zip(*texts, strict=True)]
    return "".join(" ".join(f"{i}-{i}" for i in range(n)) + "\n" for n in lengths)


@pytest.mark.timeout(600)
def test_words_outside_the_shortlist_end_in_results(given, corpus, tmp_path):
    """With an alignment that is there: each word with that in its place."""
    work = tmp_path / "work"
    (work / "model").mkdir()
    (work / "model" / "aligned.grow-diag-final-and").write_text(links_in_place(corpus))
    ours = ["SYSTEMS=rnnsearch-unk posunk", "SEEDS=1", *FLAGS, "-o", f"{work}/done/align"]
    done = make("results", *given, *ours)
    assert sorted(path.name for path in (work / "nmt").iterdir()) == ["posunk.1", "rnnsearch.1"]
    assert json.loads((work / "nmt" / "posunk.1" / "config.json").read_text())["rare"]["kind"] == "posunk"
    for text in ("| RNNsearch+UNK |", "| PosUnk |"):
        assert text in done.stdout
    for system in ("rnnsearch-unk", "posunk"):
        assert "<unk:" not in (work / "decode" / f"{system}.1.test.fr").read_text()


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_networks_of_sentences_choose_from_lists(moses_root, corpus, tmp_path):
    work = tmp_path / "work"
    systems = "baseline nbest-search nbest-lstm nbest-ensemble rnnsearch rnnsearch-x4 seq2seq rnnenc"
    texts = [f"{name.upper()}={corpus / name}" for name in ("train", "dev", "test")]
    done = make(
        "results", f"WORK={work}", f"MOSES_ROOT={moses_root}", *texts, f"SYSTEMS={systems}", "SEEDS=1", "LIST_SIZE=10",
        "ENSEMBLE_SEEDS=1 2", "ORDER=3", "LM_FLAGS=--discount_fallback", "MAX_PHRASE=4", "THREADS=2", *FLAGS,
        "MERT_FLAGS=--maximum-iterations 2", "NBEST_FLAGS=--threads 1",
    )  # fmt: skip
    results = json.loads((work / "results.json").read_text())
    assert [system["on_lists"] for system in results["systems"].values()] == [False, True, True, True, *[False] * 4]
    assert set(results["systems"]["nbest-search"]["runs"][0]["weights"]) >= {"SEARCH0", "TranslationModel0", "LM0"}
    assert any(name.startswith("ENS") for name in results["systems"]["nbest-ensemble"]["runs"][0]["weights"])
    assert sorted(path.name for path in (work / "nmt").iterdir()) == [
        "rnnenc.1",
        "rnnsearch.1",
        "rnnsearch.2",
        "seq2seq.1",
    ]
    for text in ("| +RNNsearch* |", "| +RNNsearch×4* |", "| RNNsearch |"):
        assert text in done.stdout
    assert "RNNsearch, RNNsearch×4, seq2seq, RNNenc: without Moses;" in done.stdout
    assert "| nbest-ensemble.1.test.fr |" in (work / "lengths.test.md").read_text()


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_a_column_that_tells_unknown_words_apart_is_tuned(moses_root, corpus, tmp_path):
    """A PosUnk network scores the table's pairs by their own links; the decoder loads it, and MERT weighs it."""
    links, model, work = tmp_path / "links", tmp_path / "posunk", tmp_path / "work"
    links.write_text(links_in_place(corpus))
    annotated = "--rare", "posunk", "--alignment", links, "--source-words", "150", "--target-words", "150"
    sizes = *SIZES.split(), *LEARNED.split()
    run("nmt", "train", corpus / "train", "--source", "en", "--target", "fr", "--model", model, *annotated, *sizes)
    system = [f"PHRASE_TABLE={EXAMPLES}/phrase-table.gz", f"BASELINE_INI={EXAMPLES}/moses.ini", f"MODEL={model}"]
    texts = [f"{name.upper()}={corpus / name}" for name in ("dev", "test")]
    make(
        "results", f"WORK={work}", f"MOSES_ROOT={moses_root}", *system, *texts, "TOKENISED=yes", "SEEDS=1", "THREADS=2",
        "MERT_FLAGS=--maximum-iterations 2",
    )  # fmt: skip
    results = json.loads((work / "results.json").read_text())
    weights = results["systems"]["rnn"]["runs"][0]["weights"]["TranslationModel0"]
    assert len(weights) == 5
    assert weights[4] not in (0.0, 0.2)
    table = work / "rnn" / "phrase-table.gz"
    ini = work / "rnn" / "moses.ini"
    run("verify", table, "--moses-ini", ini, "--kind", "text", "--sources", "50")
