"""The pipeline from a corpus to results, on slices of the example corpus.

The commands that it plans for each system are golden ones (tests/golden/commands.toml).
"""

import gzip
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import time

import pytest

from moses_rnn.analysis.results import read_systems
from tests.commands import BIN, ROOT, run
from tests.conftest import EXAMPLES
from tests.pipeline import CONFIGS, make

SIZES = "--hidden-size 16 --embedding-size 8 --quiet"
OF_SENTENCES = f"{SIZES} --batch-size 8 --threads 1 --learning-rate 0.02 --max-epochs 3"  # better than a unigram model
NETWORKS = [
    *(f"{name}_FLAGS={OF_SENTENCES}" for name in ("SEARCH", "LSTM", "RNNENC")),
    f"TRANSFORMER_FLAGS={OF_SENTENCES.replace('--embedding-size 8', '')}",
    "TRANSLATE_FLAGS=--beam 2 --threads 1 --quiet",
]
MOSES = [
    "ORDER=3", "LM_FLAGS=--discount_fallback", "MAX_PHRASE=4", "THREADS=2", "MERT_FLAGS=--maximum-iterations 2",
]  # fmt: skip


def write_corpus(folder, train, others):
    """So many sentences to learn from, and so many to tune on and to test with; the variables of it."""
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            (folder / f"train.{language}").write_text("".join(itertools.islice(lines, train)))
        for name in ("dev", "test"):
            lines = (EXAMPLES / "corpus" / f"{name}.{language}").read_text().splitlines(keepends=True)
            (folder / f"{name}.{language}").write_text("".join(lines[:others]))
    return [f"{name.upper()}={folder / name}" for name in ("train", "dev", "test")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return folder, write_corpus(folder, 2000, 60)


@pytest.fixture(scope="module")
def small_corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return folder, write_corpus(folder, 300, 20)


def systems_of(work):
    return json.loads((work / "results.json").read_text())["systems"]


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_from_a_corpus_to_results(moses_root, corpus, tmp_path):
    work = tmp_path / "work"
    flags = f"TRAIN_FLAGS={SIZES} --max-epochs 0.5"
    given = [f"WORK={work}", f"MOSES_ROOT={moses_root}", *corpus[1], "SEEDS=1 2", flags, *MOSES]
    done = make("results", *given)
    print(done.stdout[-1500:])
    systems = systems_of(work)
    assert list(systems) == ["baseline", "rnn"]
    assert all(system["test_BLEU"]["mean"] > 5 for system in systems.values())
    assert len(systems["rnn"]["runs"][0]["weights"]["TranslationModel0"]) == 5
    assert "| +RNN |" in done.stdout
    # what is done stays done
    before = (work / "results.json").stat().st_mtime
    assert make(f"{work}/results.json", *given).stdout == ""  # no command was run
    assert (work / "results.json").stat().st_mtime == before
    # a CSLM on n-best lists, with a word penalty too
    cslm = "CSLM_FLAGS=--preset small --embedding-size 8 --shortlist 500 --max-epochs 1 --quiet"
    done = make("results", *given, "SYSTEMS=baseline rnn cslm cslm-rnn-wp", "CSLM_IN=nbest", "LIST_SIZE=20", cslm)
    systems = systems_of(work)
    assert [system["on_lists"] for system in systems.values()] == [False, False, True, True]
    assert set(systems["cslm-rnn-wp"]["runs"][0]["weights"]) >= {"CSLM0", "WP0", "TranslationModel0", "LM0"}
    assert "| +CSLM+RNN+WP* |" in done.stdout
    # both directions, and phrase pairs that the network proposes for each text
    done = make("results", *given, "SYSTEMS=baseline rnn extended rnn2-extended", "EXTEND_FLAGS=--min-log-prob -30")
    weights = {name: system["runs"][0]["weights"] for name, system in systems_of(work).items()}
    assert weights["extended"] == weights["baseline"]
    assert len(weights["rnn2-extended"]["TranslationModel0"]) == 6
    assert re.search(r"lines, [1-9][\d,]* of them new: \S*/rnn2-extended/test.phrase-table.gz", done.stderr)
    assert "+extended, +RNN2+extended: the table and the weights of the system before" in done.stdout
    # a broken run continues where it was, in a fresh tuning folder
    (work / "done" / "tune-rnn.2").unlink()
    (work / "tune" / "rnn.2" / "features.list").write_text("of another table\n")
    again = make("bleu-rnn", *given)
    assert again.stdout.count("rnn seed ") == 4
    assert "moses-rnn-train" not in again.stdout


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_networks_of_sentences_choose_from_lists(moses_root, small_corpus, tmp_path):
    work = tmp_path / "work"
    systems = "baseline nbest-search nbest-transformer nbest-lstm nbest-ensemble rnnsearch rnnsearch-x4 seq2seq rnnenc"
    done = make(
        "results", f"WORK={work}", f"MOSES_ROOT={moses_root}", *small_corpus[1], f"SYSTEMS={systems}", "SEEDS=1",
        "ENSEMBLE_SEEDS=1 2", "LIST_SIZE=10", *MOSES, *NETWORKS, "NBEST_FLAGS=--threads 1 --allow-misfit",
    )  # fmt: skip
    results = systems_of(work)
    assert [system["on_lists"] for system in results.values()] == [False, *[True] * 4, *[False] * 4]
    assert set(results["nbest-search"]["runs"][0]["weights"]) >= {"SEARCH0", "TranslationModel0", "LM0"}
    assert any(name.startswith("ENS") for name in results["nbest-ensemble"]["runs"][0]["weights"])
    trained = sorted(path.name for path in (work / "nmt").iterdir())
    assert trained == ["rnnenc.1", "rnnsearch.1", "rnnsearch.2", "seq2seq.1", "transformer.1"]
    for text in ("| +RNNsearch* |", "| +RNNsearch×4* |", "| RNNsearch |"):
        assert text in done.stdout
    assert "RNNsearch, RNNsearch×4, seq2seq, RNNenc: without Moses;" in done.stdout
    assert "| nbest-ensemble.1.test.fr |" in (work / "lengths.test.md").read_text()


PRETENDED = {  # programs of a Moses that finds the weights and the parts that it is given good enough, and translates
    "bin/moses": "cat",
    "bin/mert": "",
    "bin/extractor": "",
    "scripts/training/mert-moses.pl": 'mkdir "$6" && cp "$4" "$6/moses.ini"',
    "scripts/training/filter-model-given-input.pl": 'mkdir "$1" && cp "$2" "$1/moses.ini"',
    "scripts/training/train-model.perl": "",
    "scripts/training/clean-corpus-n.perl": "",
}


@pytest.mark.release
def test_one_of_two_phrase_tables_is_extended_and_pruned(small_corpus, table, model, tmp_path):
    for name, script in PRETENDED.items():
        path = tmp_path / "moses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    work, system = tmp_path / "work", [f"PHRASE_TABLE={table}", f"MODEL={model}", f"BASELINE_INI={tmp_path}/moses.ini"]
    lines = [f"PhraseDictionaryMemory num-features=4 path={path}" for path in ("/backoff", table)]
    weights = [f"PhraseDictionaryMemory{i}= 1 1 1 1" for i in range(2)]
    (tmp_path / "moses.ini").write_text("\n".join(["[feature]", *lines, "[weight]", *weights]))
    steps = ["decode-rnn-extended", f"{work}/done/prune-rnn.0.5.1", "EXTEND_FLAGS=--top 1 --longest 1"]
    given = [*small_corpus[1], "TOKENISED=yes", "ALIGNER=fast_align", "SEEDS=1", "PRUNE_KEEP=0.5"]
    make(*steps, f"WORK={work}", f"MOSES_ROOT={tmp_path}/moses", *given, *system)
    for ini, made in {
        "tune/rnn-extended.1/dev.ini": "rnn-extended/dev.phrase-table.gz",
        "tune/rnn-extended.1/test.ini": "rnn-extended/test.phrase-table.gz",
        "prune/rnn.0.5.1.ini": "prune/rnn.0.5.1.gz",
    }.items():
        backoff, changed = (work / ini).read_text().splitlines()[1:3]
        assert backoff == lines[0]
        assert changed == f"PhraseDictionaryMemory num-features=5 path={work / made}"


def links_in_place(folder):
    """Each word of the training text with that in its place."""
    texts = [(folder / f"train.{language}").read_text().splitlines() for language in ("en", "fr")]
    lengths = [min(len(en.split()), len(fr.split())) for en, fr in zip(*texts, strict=True)]
    return "".join(" ".join(f"{i}-{i}" for i in range(n)) + "\n" for n in lengths)


@pytest.mark.moses
@pytest.mark.timeout(3000)
def test_a_column_that_tells_unknown_words_apart_is_tuned(moses_root, small_corpus, tmp_path):
    folder, (_, *texts) = small_corpus
    links, model, work = tmp_path / "links", tmp_path / "posunk", tmp_path / "work"
    links.write_text(links_in_place(folder))
    annotated = "--rare", "posunk", "--alignment", links, "--source-words", "150", "--target-words", "150"
    words = "--source", "en", "--target", "fr", "--model", model
    run("nmt", "train", folder / "train", *words, *annotated, *OF_SENTENCES.split())
    system = [f"PHRASE_TABLE={EXAMPLES}/phrase-table.gz", f"BASELINE_INI={EXAMPLES}/moses.ini", f"MODEL={model}"]
    make("results", f"WORK={work}", f"MOSES_ROOT={moses_root}", *system, *texts, "TOKENISED=yes", "SEEDS=1", *MOSES)
    weights = systems_of(work)["rnn"]["runs"][0]["weights"]["TranslationModel0"]
    assert len(weights) == 5
    assert weights[4] not in (0.0, 0.2)
    table, ini = work / "rnn" / "phrase-table.gz", work / "rnn" / "moses.ini"
    run("verify", table, "--moses-ini", ini, "--kind", "text", "--sources", "50")


CLEAN = """#!/bin/sh
for language in $2 $3; do cp "$1.$language" "$4.$language"; done
"""


@pytest.mark.release
@pytest.mark.timeout(600)
def test_a_network_that_translates_by_itself_ends_in_results(small_corpus, tmp_path):
    """Without Moses but for the script that cleans a corpus, and with an alignment that is there."""
    folder, texts = small_corpus
    work, clean = tmp_path / "work", tmp_path / "moses" / "scripts" / "training" / "clean-corpus-n.perl"
    clean.parent.mkdir(parents=True)
    clean.write_text(CLEAN)
    clean.chmod(0o755)
    for name in ("log", "done", "model"):
        (work / name).mkdir(parents=True)
    (work / "model" / "aligned.grow-diag-final-and").write_text(links_in_place(folder))
    given = [
        f"WORK={work}", f"MOSES_ROOT={tmp_path}/moses", "TOKENISED=yes", *texts, "SYSTEMS=posunk", "SEEDS=1", *NETWORKS,
        "-o", "pipeline-tools", "-o", f"{work}/done/align",
    ]  # fmt: skip
    done = make("results", *given)
    assert systems_of(work)["posunk"]["runs"][0]["weights"] == {}
    assert json.loads((work / "nmt" / "posunk.1" / "config.json").read_text())["rare"]["kind"] == "posunk"
    lengths = (work / "lengths.test.md").read_text()
    assert "| posunk.1.test.fr |" in lengths
    for text in (lengths, "| PosUnk |", "PosUnk: without Moses;"):
        assert text in done.stdout
    assert "<unk:" not in (work / "decode" / "posunk.1.test.fr").read_text()
    assert "moses-rnn" not in make("results", *given).stdout  # what is done stays done


def test_results_are_of_the_seeds_and_systems_that_are_asked_for(small_corpus, tmp_path):
    work = tmp_path / "work"
    for name in ("done", "log"):
        (work / name).mkdir(parents=True)
    commands = ["TRANSLATE_rnnenc=cat", """TRANSLATE_seq2seq=sed "s/ /$$SEED/" """]
    untrained = [f"{what}_{name}=" for what in ("TRAINED", "MODEL") for name in ("rnnenc", "seq2seq")]
    given = [f"WORK={work}", *small_corpus[1], "TOKENISED=yes", *commands, *untrained, "-o", "pipeline-tools"]

    def compare(systems, seeds):
        done = make("results", *given, f"SYSTEMS={systems}", f"SEEDS={seeds}")
        found = json.loads((work / "results.json").read_text())
        assert (" ".join(found["systems"]), " ".join(found["seeds"])) == (systems, seeds)
        assert f"| {systems.split()[-1]}.{seeds[0]}.test.fr |" in (work / "lengths.test.md").read_text()
        return done.stdout

    assert "Mean ± standard deviation of 2 tunings" in compare("rnnenc seq2seq", "4 5")
    choices = ("seq2seq", "5"), ("rnnenc seq2seq", "5 4")
    for systems, seeds in choices:
        printed = compare(systems, seeds)
        assert "| seq2seq |" in printed
        assert "sed" not in printed  # no text is translated again
    assert "moses-rnn" not in compare("rnnenc seq2seq", "5 4")  # what is done stays done
    failed = make(f"{work}/results.json", *given, "SYSTEMS=rnnenc", "SEEDS=4", "BIN=/nowhere", check=False)
    assert failed.returncode == 2
    assert "| seq2seq |" in compare("rnnenc seq2seq", "5 4")


def test_steps_run_again_if_seeds_or_systems_choose_other_networks_or_lists(tmp_path):
    commands, work = tmp_path / "commands", tmp_path / "work"
    program = tmp_path / "bin" / "moses-rnn"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {commands}\n')
    program.chmod(0o755)
    for name in ("done", "corpus", "decode"):
        (work / name).mkdir(parents=True)
    for language in ("en", "fr"):
        (work / "corpus" / f"dev.{language}").touch()
        (work / "corpus" / f"test.{language}").touch()
    stamps = [f"train-rnnsearch.{seed}" for seed in "1234"]
    stamps += ["dev", "test", "lists-baseline.2", "lists-rnn.2", "tune-rnnsearch-x4.2"]
    there = [word for stamp in stamps for word in ("-o", f"{work}/done/{stamp}")]

    def run_again(step, *variables):
        commands.write_text("")
        make(f"{work}/done/{step}", f"WORK={work}", f"BIN={program.parent}", *variables, *there)
        return commands.read_text()

    def features(seeds, systems):
        return run_again("features-nbest-search.2", f"SEEDS={seeds}", f"SYSTEMS={systems}")

    assert f"--add {work}/nmt/rnnsearch.1 " in features("1 2", "baseline nbest-search")
    assert features("1 2", "baseline nbest-search") == ""
    assert f"--add {work}/nmt/rnnsearch.2 " in features("2 1", "baseline nbest-search")
    assert f"--add {work}/nmt/rnnsearch.1 " in features("1 2", "baseline nbest-search")
    assert f"nbest add {work}/nbest/rnn.2.dev.gz " in features("1 2", "baseline rnn nbest-search")
    assert f"nbest add {work}/nbest/baseline.2.dev.gz " in features("1 2", "baseline nbest-search")
    for ensemble in ("1 2", "3 4", "1 2"):
        again = run_again("decode-rnnsearch-x4.2", "SEEDS=2", f"ENSEMBLE_SEEDS={ensemble}")
        assert re.findall(r"rnnsearch\.(\d)", again) == ensemble.split() * 2  # dev and test
        assert run_again("decode-rnnsearch-x4.2", "SEEDS=2", f"ENSEMBLE_SEEDS={ensemble}") == ""


@pytest.mark.release
def test_a_step_of_experiment_perl(tmp_path):
    shutil.copy(EXAMPLES / "phrase-table.gz", tmp_path / "phrase-table.1.gz")
    flags = {"RNN_TRAIN_FLAGS": f"{SIZES} --max-epochs 0.5", "RNN_SCORE_FLAGS": "--quiet"}
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", **flags}
    step = [CONFIGS / "ems-train-and-score.sh", "phrase-table.1", "phrase-table-pruned.1"]
    subprocess.run(step, check=True, cwd=tmp_path, env=environment, capture_output=True)
    before, after = (tmp_path / f"{stem}.1.gz" for stem in ("phrase-table", "phrase-table-pruned"))
    with gzip.open(before, "rt") as old, gzip.open(after, "rt") as new:
        for before, after in itertools.islice(zip(old, new, strict=True), 100):
            assert len(after.split(" ||| ")[2].split()) == len(before.split(" ||| ")[2].split()) + 1


TABLE = ["PHRASE_TABLE=README.md", "BASELINE_INI=README.md", "TRAIN="]
MISSING = {
    "an empty folder": ([], "missing: /nowhere/bin/moses: build Moses there with ./bjam"),
    "no corpus named": (["TRAIN="], "missing: TRAIN, the prefix of a corpus: TRAIN=data/x for data/x.en and data/x.fr"),
    "sets of one name": (["TEST=a/all b/x"], "missing: TEST sets whose names differ, none of them the name of a step or another text"),
    "a set like a step": (["TEST=a/lm b/x"], "missing: TEST sets whose names differ, none of them the name of a step"),
    "neither yes nor no": (["TOKENISED=true"], "missing: a TOKENISED that is one of: yes no"),
    "nothing to select": (["select"], "select: expected a share, such as SELECT=0.5"),
    "no share": (["SELECT=1.5"], "missing: SELECT above 0 and at most 1, found 1.5"),
    "no kenlm": (["SELECT=0.5", "BIN_PYTHON=false"], "missing: kenlm, for SELECT: pip install 'moses-rnn[lm]'"),
    "no domain": (["SELECT=0.5", "IN_DOMAIN=/no/news"], "missing: /no/news.en or /no/news.en.gz: a corpus (IN_DOMAIN=)"),
    "no thot": (["ALIGNER=thot", "BIN_PYTHON=false"], "missing: an aligner: fast_align and atools in PATH, or pip install 'moses-rnn[align]'"),
    "no fast_align": (["ALIGNER=fast_align", "PATH=/usr/bin:/bin"], "missing: fast_align and atools in PATH"),
    "a comma in a folder": (["WORK=/nowhere/w,1"], "expected a folder without blanks, commas, colons"),
    "no such aligner": (["ALIGNER=nonsense"], "missing: an ALIGNER that is one of"),
    "no such system": (["SYSTEMS=baseline magic"], "missing: a system named magic"),
    "seeds that are none": (["SEEDS=1 b"], "missing: SEEDS of integers, found b"),
    "phrases that Moses filters away": (["MAX_PHRASE=11"], "missing: MAX_PHRASE from 1 to 10, found 11: Moses's filter drops"),
    "one seed twice": (["SEEDS=1 2 1"], "missing: SEEDS that differ, found 1 2 1"),
    "no model": (["MODEL=/no/model"], "missing: /no/model/config.json: given as MODEL"),
    "no inverse model": (["INVERSE_MODEL=/no/model"], "missing: /no/model/config.json: given as INVERSE_MODEL"),
    "one seed of an ensemble twice": (["ENSEMBLE_SEEDS=1 1"], "missing: ENSEMBLE_SEEDS that differ, found 1 1"),
    "a set like a training": (["TEST=a/train-x b/y"], "missing: TEST sets not named like steps, found train-x"),
    "text for another n-gram model": ([*TABLE, "LM_TEXT=README.md"], "missing: an empty LM_TEXT: BASELINE_INI has"),
    "a corpus that is not used": ([*TABLE, "SELECT=0.5"], "missing: an empty SELECT: these SYSTEMS use no corpus"),
    "words to lower-case": (["LOWERCASE=yes", "TOKENISED=yes"], "missing: TOKENISED=no: with yes, LOWERCASE does"),
    "no text beside a CSLM": (["CSLM=/no/cslm", "CSLM_TEXT=/no/text"], "missing: /no/text: given as CSLM_TEXT"),
    "nothing for a CSLM": ([*TABLE, "SYSTEMS=cslm"], "missing: one of CSLM and CSLM_TEXT, for systems with a CSLM"),
    **{f"lists of {base}": ([f"LIST_BASE={base}"], f"LIST_BASE={base}: expected one ") for base in ("magic", "nbest-search", "rnnsearch", "rnn baseline", "")},
    "a system that builds on itself": (["BASE_rnn2=rnn2"], "BASE_rnn2=rnn2: expected bases that lead to a system without"),
    "systems that build on each other": (["BASE_nbest-lstm=nbest-rnnlm", "BASE_nbest-rnnlm=nbest-lstm"], "found a circle: nbest-lstm nbest-rnnlm nbest-lstm"),
    "a circle that is not asked for": (["SYSTEMS=baseline", "BASE_rnn=rnn2", "BASE_rnn2=rnn-wp", "BASE_rnn-wp=rnn"], "found a circle: rnn rnn2 rnn-wp rnn"),
    "a circle of a base of lists": (["BASE_cslm=nbest-search", "LIST_BASE=cslm"], "found a circle: cslm nbest-search cslm"),
    "a base that is none": (["BASE_rnn=magic"], "BASE_rnn=magic: expected one of baseline rnn rnn-wp rnn2, found magic"),
    "a base without a table": (["BASE_extended=cslm"], "BASE_extended=cslm: expected one of baseline rnn rnn-wp rnn2"),
    "two bases": (["BASE_rnn2=rnn rnn-wp"], "BASE_rnn2=rnn rnn-wp: expected one of baseline rnn rnn-wp rnn2"),
    "no base": (["BASE_rnn="], "BASE_rnn=: expected one of baseline rnn rnn-wp rnn2, found none"),
    "the base of a network alone": (["BASE_seq2seq=rnn"], "BASE_seq2seq=rnn: expected no base, found rnn"),
    "no seeds": (["SEEDS="], "missing: SEEDS, found an empty value"),
    "no systems": (["SYSTEMS="], "missing: SYSTEMS, found an empty value"),
    "no number": (["LIST_SIZE="], "missing: LIST_SIZE, found an empty value"),
    "no threads": (["THREADS=0"], "missing: THREADS above 0, found 0"),
    "one seed in two spellings": (["SEEDS=1 01"], "missing: SEEDS without leading zeros, found 01"),
    "a seed that programs cannot hold": (["SEEDS=9999999999"], "missing: SEEDS below 1000000000, found 9999999999"),
    "more than the table": (["PRUNE_KEEP=0.5 2"], "missing: PRUNE_KEEP above 0 and at most 1, found 2"),
    "one language": (["TRG=en"], "missing: two languages SRC and TRG, the suffixes of texts, found en and en"),
    "a folder as a language": (["TRG=x/fr"], "missing: two languages SRC and TRG, the suffixes of texts, found en and x/fr"),
    "the base of no system": (["BASE_magic=rnn"], "BASE_magic: expected BASE_ and one of baseline rnn "),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named_before_anything_runs(tmp_path, case):
    arguments, message = case
    done = make("results", f"WORK={tmp_path}/work", "MOSES_ROOT=/nowhere", *arguments, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["DEV", "TEST"])
def test_texts_that_are_needed_late_are_checked_at_once(tmp_path, name):
    for text, source, target in (("none", "", ""), ("short", "a\nb\n", "a\n"), ("good", "a\nb", "a\nb\n")):
        (tmp_path / f"{text}.en").write_text(source)
        with gzip.open(tmp_path / f"{text}.fr.gz", "wt") as file:
            file.write(target)
    for text, found in (("none", "0 en and 0 fr"), ("short", "2 en and 1 fr")):
        done = make("results", f"WORK={tmp_path}/work", f"{name}={tmp_path}/{text}", check=False)
        expected = f"missing: {tmp_path}/{text} with as many lines in both languages ({name}=), found {found}\n"
        assert expected in done.stderr
    done = make("results", f"WORK={tmp_path}/work", f"{name}={tmp_path}/good", check=False)
    assert "as many lines" not in done.stderr
    assert not (tmp_path / "work").exists()


def test_targets_of_one_system_are_listed_and_asked_for_by_its_name(tmp_path):
    listed = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    for target, name in (("tune", "tune"), ("mert", "tune"), ("decode", "decode"), ("bleu", "bleu")):
        assert f"\n  make {name}-SYSTEM " in listed
        done = make(target, f"WORK={tmp_path}/work", "MOSES_ROOT=/nowhere", check=False)
        assert done.returncode == 2
        assert f"{target}: expected {name}-SYSTEM, where SYSTEM is one of: baseline rnn " in done.stderr
    assert not (tmp_path / "work").exists()


def test_a_relative_moses_is_found_from_other_folders(tmp_path):
    (tuning,) = [
        line for line in planned("tune-baseline", tmp_path, "SEEDS=1", "MOSES_ROOT=my/moses/") if "mert-moses" in line
    ]
    assert f"MOSES_ROOT='{ROOT}/my/moses' " in tuning
    assert f"--rootdir {ROOT}/my/moses/scripts " in tuning


@pytest.mark.parametrize("name", ["a b", "a#b", "a:b", "a=b"])
def test_a_folder_that_moses_cannot_read_is_refused(tmp_path, name):
    done = make("pipeline-tools", f"WORK={tmp_path}/{name}", check=False)
    assert done.returncode == 2
    assert f"WORK={tmp_path}/{name}" in done.stderr
    assert not list(tmp_path.iterdir())


def planned(target, tmp_path, *given, makefile=CONFIGS / "pipeline.mk"):
    """The commands that make would run, each in one line."""
    done = make("-n", target, f"WORK={tmp_path}", "MOSES_ROOT=/nowhere", *given, makefile=makefile)
    return [" ".join(line.split()) for line in done.stdout.replace("\\\n", " ").split("\n")]


@pytest.mark.parametrize(
    ("algorithm", "flags"), [("", ""), ("1", ""), ("3", "-Hierarchical"), (" 5 # chart", "-Hierarchical")]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rules_have_a_filter_of_their_own_and_no_segments(tmp_path, algorithm, flags, end):
    ini = tmp_path / "moses.ini"
    ini.write_text(f"[input-factors]\n5\n[search-algorithm]\n{algorithm}\n[inputtype]\n3\n", newline=end)
    given = f"PHRASE_TABLE={ini}", f"BASELINE_INI={ini}", f"CSLM={tmp_path}"
    commands = planned("decode-cslm-rnn", tmp_path / "work", *given)
    for program in ("mert-moses.pl", "decode.sh"):
        filtering = [line for line in commands if program in line]
        assert filtering
        assert all(f"FILTER_FLAGS='{flags}'" in line for line in filtering)
    assert any("--filtercmd" in line for line in commands)
    reranking = [line for line in commands if "nbest rerank" in line]
    assert reranking
    assert all(("--segments" in line) == (not flags) for line in reranking)


def test_pruned_systems_of_other_tunings_are_other_files(tmp_path):
    (tmp_path / "done").mkdir()
    for name in ("prune-rnn.0.5.1", "prune-all.1.1"):  # which the first seed has left there
        (tmp_path / "done" / name).touch()
    commands = "\n".join(planned("prune-bleu", tmp_path, "SEEDS=1 2", "PRUNE_SEED=2", "PRUNE_KEEP=0.5"))
    written = set(re.findall(r"touch \S*/done/(prune-\S+)", commands))
    assert written == {"prune-all.1.2", "prune-rnn.0.5.2", "prune-direct.0.5.2", "prune-both.0.5.2"}
    assert f"{tmp_path}/tune/rnn.2/moses.ini" in commands


def test_networks_start_over_if_dev_has_changed(tmp_path):
    texts = [f"{tmp_path}/corpus/{text}.{language}" for text in ("train", "dev") for language in ("en", "fr")]
    (of_pairs,) = [
        line for line in planned("train-rnnsearch", tmp_path, "SEEDS=1") if "restart=" in line and "nmt" in line
    ]
    assert f"{tmp_path}/nmt/rnnsearch.1 {' '.join(texts)})" in of_pairs
    (of_text,) = [line for line in planned("train-rnnlm", tmp_path) if "restart=" in line]
    assert f"{tmp_path}/nlm/rnnlm {texts[1]} {texts[3]})" in of_text


def test_a_given_model_that_has_changed_scores_again(tmp_path):
    model, table = tmp_path / "model", tmp_path / "table"
    model.mkdir()
    for path in (model / "config.json", table, tmp_path / "ini"):
        path.touch()
    given = [f"MODEL={model}", f"PHRASE_TABLE={table}", f"BASELINE_INI={tmp_path}/ini"]
    done = tmp_path / "work" / "done"
    done.mkdir(parents=True)
    for step in ("baseline", "score-baseline", "train-rnn", "score-rnn"):
        (done / step).touch()
    assert "touch" not in "\n".join(planned("score", tmp_path / "work", *given))
    later = time.time() + 10
    os.utime(model / "config.json", (later, later))
    assert [line for line in planned("score", tmp_path / "work", *given) if "moses-rnn-score" in line]


def clone(tmp_path, *words):
    """What make of a clone would do."""
    places = f"VENV={tmp_path}/venv", f"WORK={tmp_path}/work", "MOSES_ROOT=/nowhere"
    command = ["make", "-n", "-C", ROOT, *places, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_example_corpus_takes_no_place_beside_texts_of_ones_own(tmp_path):
    assert "TRAIN='/my/train' DEV='' TEST=''" in clone(tmp_path, "TRAIN=/my/train", "results").stdout
    done = clone(tmp_path, "TRAIN=/my/train", "bahdanau")
    assert (done.returncode, "DEV: expected the prefix of a corpus" in done.stderr) == (2, True)
    done = clone(tmp_path, "SEEDS=5 6", "sutskever")
    assert (done.returncode, "SEEDS=5 6: expected seeds from 1 to 5" in done.stderr) == (2, True)


def test_the_tables_target_takes_the_pipelines_variables(tmp_path):
    done = clone(tmp_path, "TUNER=mert", "SYSTEMS=baseline", "table1")
    assert "--mertmertargs" in done.stdout
    assert "--batch-mira" not in done.stdout
    assert "search-algorithm 1" in done.stdout
    assert "score-rnn" not in done.stdout


def test_the_papers_experiment_is_planned_as_the_docs_print_it(tmp_path):
    page = (ROOT / "docs" / "first-system.md").read_text(encoding="utf-8").replace("\\\n", " ")
    (command,) = re.findall(r"^make results WORK=work-wmt14 .*", page, re.MULTILINE)
    done = clone(tmp_path, *shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    steps = done.stdout.replace("\\\n", " ")
    assert re.search(r"moore_lewis\.py 0\.4 ", steps)
    assert re.search(r"moses-rnn-train \S+ --model \S+ +--preset paper", steps)
    assert re.search(r"moses-rnn cslm train \S+ --model \S+ --preset paper --self-normalise 0\.1", steps)
    for system in ("baseline", "rnn"):
        for seed in "123":
            assert re.search(rf"mert-moses\.pl .*/tune/{system}\.{seed} .*--mertmertargs '-r {seed} '", steps)
    assert "--batch-mira" not in steps
    tables = "--system baseline --system rnn --system cslm-rnn --system cslm-rnn-wp --test test"
    assert tables in re.sub(" +", " ", steps)


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
    commands = planned("tune-nbest-search", tmp_path, "SEEDS=4", *given)
    assert [line for line in commands if f"moses-rnn nbest add {tmp_path}/nbest/{base}.4.$set.gz" in line]


def test_the_makefile_of_a_clone_has_the_pipeline(tmp_path):
    done = clone(tmp_path, "results")
    assert "TRAIN='examples/corpus/train' DEV='examples/corpus/dev' TEST='examples/corpus/test'" in done.stdout
    assert re.search("lmplz -o 5 .* --discount_fallback ", done.stdout)
    assert f"{tmp_path}/venv/bin/moses-rnn analyse results {tmp_path}/work --target fr" in done.stdout
    assert not list(tmp_path.iterdir())


def test_make_and_the_package_read_the_same_systems():
    named = re.search("SYSTEM is one of: (.*)", make("pipeline-help").stdout)[1].split()
    assert named == list(read_systems())


ROWS = """
more  list  cslm-rnn-wp  lm+length  -  +MORE  -
nmt   self  -            net        -  NMT    -
"""


def test_a_row_of_no_known_kind_is_refused(tmp_path):
    configs = shutil.copytree(CONFIGS, tmp_path / "configs")
    with (configs / "systems").open("a") as rows:
        rows.write("more  lists  rnn  wp  -  +MORE\n")
    done = make("pipeline-help", makefile=configs / "pipeline.mk", check=False)
    assert done.returncode == 2
    assert "systems: expected more of a kind among table list extended self, found lists" in done.stderr


def test_a_system_is_a_row(tmp_path, small_corpus):
    configs = shutil.copytree(CONFIGS, tmp_path / "configs")
    with (configs / "systems").open("a") as rows:
        rows.write(ROWS)
    mk, work = configs / "pipeline.mk", tmp_path / "work"
    options = ["LIST_OPTIONS_lm=--lm x", "LIST_OPTIONS_length=--length", "TRAINED_lm=README.md"]
    commands = planned("tune-more", work, "CSLM_IN=nbest", "SEEDS=4", *options, makefile=mk)
    (features,) = [line for line in commands if f"-o {work}/nbest/more.4.$set.gz" in line]
    assert f"moses-rnn nbest add {work}/nbest/cslm-rnn-wp.4.$set.gz --source" in features
    assert "--lm x --length -o" in features
    (tuning,) = [line for line in commands if f"moses-rnn nbest tune {work}/nbest/more.4.dev.gz" in line]
    assert f"--weights {work}/tune/rnn.4/moses.ini" in tuning
    folder, texts = small_corpus
    given = [f"WORK={work}", *texts, "SYSTEMS=nmt", "SEEDS=4 5", "TOKENISED=yes"]
    done = make("results", *given, "MOSES_ROOT=/nowhere", makefile=mk, check=False)
    assert "missing: TRANSLATE_nmt, the command by which nmt translates stdin to stdout" in done.stderr
    for name in ("done", "log"):
        (work / name).mkdir(parents=True)
    make("decode-nmt", *given, """TRANSLATE_nmt=sed "s/$$/ $$SEED/" """, "-o", "pipeline-tools", makefile=mk)
    for seed in "45":
        translated = (work / "decode" / f"nmt.{seed}.test.fr").read_text().splitlines()
        assert translated == [f"{line} {seed}" for line in (folder / "test.en").read_text().splitlines()]
