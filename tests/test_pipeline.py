"""The pipeline from a corpus to results, on a slice of the example corpus."""

import gzip
import itertools
import json
import os
import re
import shutil
import subprocess

import pytest

from moses_rnn.analysis.systems import read_systems
from tests.commands import ROOT
from tests.conftest import EXAMPLES
from tests.pipeline import BIN, CONFIGS, make

SIZES = "--hidden-size 16 --embedding-size 8 --max-epochs 0.5 --quiet"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """2 000 sentences to learn from, 60 to tune on, 60 to test with."""
    folder = tmp_path_factory.mktemp("corpus")
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            (folder / f"train.{language}").write_text("".join(itertools.islice(lines, 2000)))
        for name in ("dev", "test"):
            text = (EXAMPLES / "corpus" / f"{name}.{language}").read_text().split("\n")[:60]
            (folder / f"{name}.{language}").write_text("\n".join(text) + "\n")
    return folder


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_from_a_corpus_to_results(moses_root, corpus, tmp_path):
    work = tmp_path / "work"
    given = [
        f"WORK={work}", f"MOSES_ROOT={moses_root}", *(f"{name.upper()}={corpus / name}" for name in ("train", "dev", "test")),
        "SEEDS=1 2", "ORDER=3", "LM_FLAGS=--discount_fallback", "MAX_PHRASE=4", f"TRAIN_FLAGS={SIZES}", "MERT_FLAGS=--maximum-iterations 2", "THREADS=2",
    ]  # fmt: skip
    done = make("results", *given)
    print(done.stdout[-1500:])
    results = json.loads((work / "results.json").read_text())
    assert list(results["systems"]) == ["baseline", "rnn"]
    assert all(system["test_BLEU"]["mean"] > 5 for system in results["systems"].values())
    assert len(results["systems"]["rnn"]["runs"][0]["weights"]["TranslationModel0"]) == 5
    assert "| +RNN |" in done.stdout
    # what is done stays done
    before = (work / "results.json").stat().st_mtime
    assert make(f"{work}/results.json", *given).stdout == ""  # no command was run
    assert (work / "results.json").stat().st_mtime == before
    # a CSLM on n-best lists, with a word penalty too
    cslm = "--preset small --embedding-size 8 --shortlist 500 --max-epochs 1 --quiet"
    more = [
        "SYSTEMS=baseline rnn cslm cslm-rnn-wp",
        "CSLM_IN=nbest",
        "LIST_SIZE=20",
        f"CSLM_FLAGS={cslm}",
    ]
    done = make("results", *given, *more)
    results = json.loads((work / "results.json").read_text())
    assert [system["on_lists"] for system in results["systems"].values()] == [False, False, True, True]
    assert set(results["systems"]["cslm-rnn-wp"]["runs"][0]["weights"]) >= {"CSLM0", "WP0", "TranslationModel0", "LM0"}
    assert "| +CSLM+RNN+WP* |" in done.stdout
    # both directions, and phrase pairs that the network proposes for each text
    done = make("results", *given, "SYSTEMS=baseline rnn extended rnn2-extended", "EXTEND_FLAGS=--min-log-prob -30")
    results = json.loads((work / "results.json").read_text())
    runs = {name: system["runs"][0] for name, system in results["systems"].items()}
    assert runs["extended"]["weights"] == runs["baseline"]["weights"]
    assert len(runs["rnn2-extended"]["weights"]["TranslationModel0"]) == 6
    assert re.search(r"lines, [1-9][\d,]* of them new: \S*/rnn2-extended/test.phrase-table.gz", done.stderr)
    assert "+extended, +RNN2+extended: the table of the system without it" in done.stdout
    # a broken run continues where it was, in a fresh tuning folder
    (work / "done" / "tune-rnn.2").unlink()
    (work / "tune" / "rnn.2" / "features.list").write_text("of another table\n")
    again = make("bleu-rnn", *given)
    assert again.stdout.count("rnn seed ") == 4
    assert "moses-rnn-train" not in again.stdout


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_a_step_of_experiment_perl(corpus, tmp_path):
    """The script is called with the stems of two tables."""
    shutil.copy(EXAMPLES / "phrase-table.gz", tmp_path / "phrase-table.1.gz")
    flags = {"RNN_TRAIN_FLAGS": SIZES, "RNN_SCORE_FLAGS": "--quiet"}
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", **flags}
    step = [CONFIGS / "ems-train-and-score.sh", "phrase-table.1", "phrase-table-pruned.1"]
    subprocess.run(step, check=True, cwd=tmp_path, env=environment, capture_output=True)
    with (
        gzip.open(tmp_path / "phrase-table-pruned.1.gz", "rt") as new,
        gzip.open(tmp_path / "phrase-table.1.gz", "rt") as old,
    ):
        for before, after in itertools.islice(zip(old, new, strict=True), 100):
            assert len(after.split(" ||| ")[2].split()) == len(before.split(" ||| ")[2].split()) + 1


MISSING = {
    "no Moses": (["MOSES_ROOT="], "missing: MOSES_ROOT, the folder of a built Moses"),
    "an empty folder": (["MOSES_ROOT=/nowhere"], "missing: /nowhere/bin/moses: build Moses there with ./bjam"),
    "no corpus": (["MOSES_ROOT=/nowhere", "DEV=/no/dev"], "missing: /no/dev.en or /no/dev.en.gz: a corpus (DEV=)"),
    "no corpus named": (["MOSES_ROOT=/nowhere", "TRAIN="], "missing: TRAIN, the prefix of a corpus: TRAIN=data/x for data/x.en and data/x.fr"),
    "no test set named": (["MOSES_ROOT=/nowhere", "TEST="], "missing: TEST, the prefix of a corpus"),
    "sets of one name": (["MOSES_ROOT=/nowhere", "TEST=a/all b/x"], "missing: TEST sets whose names differ, none of them dev, train or all"),
    "no commands": (["MOSES_ROOT=/nowhere", "BIN=/nowhere"], "missing: /nowhere/moses-rnn: pip install 'moses-rnn'"),
    "no sacrebleu": (["MOSES_ROOT=/nowhere", "BIN=/nowhere"], "missing: /nowhere/sacrebleu: pip install 'moses-rnn[eval]'"),
    "no thot": (
        ["MOSES_ROOT=/nowhere", "ALIGNER=thot", "BIN_PYTHON=false"],
        "missing: an aligner: fast_align and atools in PATH, or pip install 'moses-rnn[align]'",
    ),
    "no mgiza": (["MOSES_ROOT=/nowhere", "ALIGNER=mgiza"], "missing: MGIZA_BIN/mgiza: the programs of"),
    "half a start": (["MOSES_ROOT=/nowhere", "PHRASE_TABLE=README.md"], "missing: one of PHRASE_TABLE and BASELINE_INI: give both"),
    "no such aligner": (["MOSES_ROOT=/nowhere", "ALIGNER=nonsense"], "missing: an ALIGNER that is one of"),
    "no such system": (["MOSES_ROOT=/nowhere", "SYSTEMS=baseline magic"], "missing: a system named magic"),
    "no integer": (["MOSES_ROOT=/nowhere", "NBEST=many"], "missing: NBEST of integers, found many"),
    "seeds that are none": (["MOSES_ROOT=/nowhere", "SEEDS=1 b"], "missing: SEEDS of integers, found b"),
    "no such tuner": (["MOSES_ROOT=/nowhere", "TUNER=magic"], "missing: a TUNER that is one of: mert mira"),
    "half a Moses": (["MOSES_ROOT=/nowhere"], "missing: /nowhere/bin/lexical-reordering-score: build Moses there with ./bjam"),
    "mira": (["MOSES_ROOT=/nowhere", "TUNER=mira"], "missing: /nowhere/bin/kbmira: build Moses there with ./bjam"),
    "nothing for a CSLM": (
        ["MOSES_ROOT=/nowhere", "PHRASE_TABLE=README.md", "BASELINE_INI=README.md", "SYSTEMS=baseline cslm"],
        "missing: one of CSLM and CSLM_TEXT, for systems with a CSLM",
    ),
    "no text for a CSLM": (["MOSES_ROOT=/nowhere", "CSLM_TEXT=/no/text"], "missing: /no/text: given as CSLM_TEXT"),
    "no CSLM": (["MOSES_ROOT=/nowhere", "CSLM=/no/model"], "missing: /no/model/config.json: given as CSLM"),
    "no place for a CSLM": (["MOSES_ROOT=/nowhere", "CSLM_IN=magic"], "missing: a CSLM_IN that is one of"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named_before_anything_runs(tmp_path, case):
    arguments, message = case
    work = tmp_path / "work"
    done = make("results", f"WORK={work}", *arguments, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not work.exists()


@pytest.mark.parametrize("name", ["a b", "a#b", "a:b"])
def test_a_folder_that_moses_cannot_read_is_refused(tmp_path, name):
    done = make("pipeline-tools", f"WORK={tmp_path}/{name}", check=False)
    assert done.returncode == 2
    assert f"WORK={tmp_path}/{name}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_pruned_systems_of_other_tunings_are_other_files(tmp_path):
    (tmp_path / "done").mkdir()
    for name in ("prune-rnn.0.5.1", "prune-all.1.1"):  # which the first seed has left there
        (tmp_path / "done" / name).touch()
    done = make(
        "-n", "prune-bleu", f"WORK={tmp_path}", "SEEDS=1 2", "PRUNE_SEED=2", "PRUNE_KEEP=0.5", "MOSES_ROOT=/nowhere"
    )
    written = set(re.findall(r"touch \S*/done/(prune-\S+)", done.stdout))
    assert written == {"prune-all.1.2", "prune-rnn.0.5.2", "prune-direct.0.5.2", "prune-both.0.5.2"}
    assert f"{tmp_path}/tune/rnn.2/moses.ini" in done.stdout


def test_the_makefile_of_a_clone_has_the_pipeline(tmp_path):
    """A dry run: it installs nothing."""
    command = [
        "make",
        "-n",
        "-C",
        ROOT,
        f"VENV={tmp_path}/venv",
        f"WORK={tmp_path}/work",
        "MOSES_ROOT=/nowhere",
        "results",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "TRAIN='examples/corpus/train' DEV='examples/corpus/dev' TEST='examples/corpus/test'" in done.stdout
    assert re.search("lmplz -o 5 .* --discount_fallback ", done.stdout)
    assert f"{tmp_path}/venv/bin/moses-rnn analyse results {tmp_path}/work --target fr" in done.stdout
    assert not list(tmp_path.iterdir())


def commands_of(*arguments):
    """Of a dry run, a line each."""
    done = make("-n", "MOSES_ROOT=/nowhere", *arguments)
    return [" ".join(line.split()) for line in done.stdout.replace("\\\n", " ").split("\n")]


def test_both_directions_are_trained_alike_and_score_one_table(tmp_path):
    commands = commands_of(f"{tmp_path}/done/score-rnn2", f"WORK={tmp_path}", "TRAIN_FLAGS=--max-epochs 2")
    trained = [line.partition(" && ")[2] for line in commands if "moses-rnn-train" in line]
    table = f"{BIN}/moses-rnn-train {tmp_path}/model/phrase-table.gz --model {tmp_path}/rnn"
    assert sorted(trained) == [
        f"{table}/inverse --inverse --max-epochs 2 $restart",
        f"{table}/model --max-epochs 2 $restart",
    ]
    (scored,) = [line for line in commands if "moses-rnn-score" in line]
    assert f"--model {tmp_path}/rnn/model --inverse-model {tmp_path}/rnn/inverse" in scored
    given = commands_of(f"{tmp_path}/done/score-rnn2", f"WORK={tmp_path}", "MODEL=/a", "INVERSE_MODEL=/b")
    assert not [line for line in given if "moses-rnn-train" in line]
    assert [line for line in given if "--model /a --inverse-model /b" in line]


@pytest.mark.parametrize(
    ("system", "base", "table", "options"),
    [
        ("extended", "baseline", "model", ""),
        ("rnn-extended", "rnn", "rnn", ""),
        ("rnn2-extended", "rnn2", "rnn2", "--inverse-model {}/rnn/inverse "),
    ],
)
def test_an_extended_table_has_the_weights_of_its_base(tmp_path, system, base, table, options):
    given = f"WORK={tmp_path}", "SEEDS=4 5", "EXTEND_FLAGS=--top 1"
    commands = commands_of(f"decode-{system}", *given)
    (extending,) = [line for line in commands if "moses-rnn extend" in line]
    assert extending.startswith("for set in dev test; do ")
    assert (
        f"moses-rnn extend {tmp_path}/{table}/phrase-table.gz --model {tmp_path}/rnn/model --text {tmp_path}/corpus/$set.en "
        f"{options.format(tmp_path)}--top 1 -o {tmp_path}/{system}/$set.phrase-table.gz --force" in extending
    )
    tunings = [line for line in commands if "mert-moses.pl" in line]
    assert [re.search(r"--working-dir \S*/tune/(\S+)", line)[1] for line in tunings] == [f"{base}.4", f"{base}.5"]
    for seed in "45":
        tuned = f"{tmp_path}/tune/{system}.{seed}"
        assert f"cp {tmp_path}/tune/{base}.{seed}/moses.ini {tuned}/moses.ini" in commands
        (decoding,) = [line for line in commands if f"{tuned}/$set.ini {tmp_path}/corpus" in line]
        new_table = f"--table {tmp_path}/{system}/$set.phrase-table.gz"
        assert f"moses-rnn ini {tuned}/moses.ini {new_table} -o {tuned}/$set.ini --force &&" in decoding


# --- systems ---

ROWS = """
more  list  cslm-rnn-wp  lm+length  -  +MORE  -
nmt   self  -            net        -  NMT    -
"""


@pytest.fixture
def more_systems(tmp_path):
    """A copy of the pipeline whose table of systems has two more rows."""
    configs = shutil.copytree(CONFIGS, tmp_path / "configs")
    with (configs / "systems").open("a") as rows:
        rows.write(ROWS)
    return configs / "pipeline.mk"


def test_make_and_the_package_read_the_same_systems():
    named = re.search("SYSTEM is one of: (.*)", make("pipeline-help").stdout)[1].split()
    assert named == list(read_systems())


def test_a_system_on_lists_is_a_row(more_systems, tmp_path):
    """It adds to the lists of another such system, whose weights go back to the one in the decoder."""
    given = [
        "CSLM_IN=nbest",
        "SEEDS=4",
        "LIST_OPTIONS_lm=--lm x",
        "LIST_OPTIONS_length=--length",
        "TRAINED_lm=README.md",
    ]
    done = make("-n", "tune-more", f"WORK={tmp_path}", "MOSES_ROOT=/nowhere", *given, makefile=more_systems)
    commands = done.stdout.replace("\\\n", " ").split("\n")
    (features,) = [" ".join(line.split()) for line in commands if f"-o {tmp_path}/nbest/more.4.$set.gz" in line]
    assert f"moses-rnn nbest {tmp_path}/nbest/cslm-rnn-wp.4.$set.gz --source" in features
    assert "--lm x --length -o" in features
    (tuning,) = [line for line in commands if f"moses-rnn nbest tune {tmp_path}/nbest/more.4.dev.gz" in line]
    assert f"--weights {tmp_path}/tune/rnn.4/moses.ini" in tuning


def test_a_network_that_translates_by_itself_is_a_row(more_systems, tmp_path, corpus):
    given = [f"WORK={tmp_path}/work", f"DEV={corpus / 'dev'}", f"TEST={corpus / 'test'}", "SYSTEMS=nmt", "SEEDS=4 5"]
    done = make("results", *given, "MOSES_ROOT=/nowhere", makefile=more_systems, check=False)
    assert "missing: TRANSLATE_nmt, the command by which nmt translates stdin to stdout" in done.stderr
    # with Moses's absence overlooked: it needs none
    for folder in ("done", "log"):
        (tmp_path / "work" / folder).mkdir(parents=True)
    translate = """TRANSLATE_nmt=sed "s/$$/ $$SEED/" """
    make("decode-nmt", *given, "TOKENISED=yes", translate, "-o", "pipeline-tools", makefile=more_systems)
    for seed in "45":
        translated = (tmp_path / "work" / "decode" / f"nmt.{seed}.test.fr").read_text().splitlines()
        assert translated == [f"{line} {seed}" for line in (corpus / "test.en").read_text().splitlines()]
