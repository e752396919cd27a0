"""moses-rnn-nbest: features, weights and best hypotheses, from list to list on disk or through pipes."""

import gzip
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.formats.nbest import parse_nbest
from moses_rnn.formats.streams import read_lines
from moses_rnn.models.cslm import CslmCheckpoint, CslmConfig, save_cslm
from moses_rnn.models.vocabulary import shortlist
from tests.commands import zygote
from tests.models.test_cslm import network
from tests.scoring.test_nbest_features import save_models

SOURCE = b"s2 s3 s4 s5\ns3 s4 s5\ns6 s2 s3 s4 s9\ns2\n"
REFERENCE = b"t2 t3 t4 t5\nt3 t4 t5 t6\nt6 t2 t3 t4\nt2\n"
LISTED = [  # sentence, hypothesis, segmentation, LM0; the best of them all knows every word
    (0, b"t2 x t4 t5", b"0=0 1-3=1-3", -1),
    (0, b"t2 t3 t4 t5", b"0-1=0-1 2-3=2-3", -2),
    (1, b"t3 x y t6", b"0-2=0-3", -1),
    (1, b"t3 t4 t5 t6", b"0=0 1-2=1-3", -1.5),
    (1, b"t3 t4 t5 x", b"0-1=0-1 2=2-3", -2),
    (2, b"t6 t2 t3 t4 x", b"0=0 1-4=1-4", -1),
    (2, b"t6 t2 t3 t4", b"0-3=0-2 4=3", -2),
    (3, b"\xe9", b"0=0", -1),
    (3, b"t2", b"0=0", -2),
]
NBEST = b"".join(b"%d ||| %b  ||| LM0= %g ||| %g ||| %b \n" % (i, text, lm, lm, spans) for i, text, spans, lm in LISTED)
ADDED = re.compile(rb" (?:CSLM|KENLM|RNN|RNNInverse|WP)[01]= [-+.e0-9]+")
WEIGHTS = b"[weight]\nLM0= 1\nWP0= 3\n"  # an unknown word costs more than any LM0 gains


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def here(tmp_path):
    for name, content in (("n", NBEST), ("src", SOURCE), ("ref", REFERENCE), ("w.ini", WEIGHTS)):
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def nbest(here, models, monkeypatch):
    """The command, run beside a list, its source and its reference; a word with braces names a model."""

    monkeypatch.delenv("MOSES_ROOT", raising=False)

    def started(*arguments, code=0, **options):
        done = zygote("nbest", *(str(word).replace("{}", str(models)) for word in arguments), cwd=here, **options)
        assert done.returncode == code, done.stderr
        return done

    return started


@pytest.fixture
def more(nbest, here):
    """The list with a word penalty."""
    nbest("n", "--source", "src", "--word-penalty", "{}/words", "-o", "more", "-q")
    return here / "more"


# add

ALL = ["--cslm", "{}/cslm", "--rnn", "{}/rnn", "--inverse-rnn", "{}/inverse", "--word-penalty", "{}/rnn"]


def test_features_are_added_and_nothing_else(nbest):
    done = nbest("n", "--source", "src", *ALL)
    assert ADDED.sub(b"", done.stdout) == NBEST
    assert re.findall(rb"(\w+)=", done.stdout.split(b"\n")[0].split(b"|||")[2]) == [
        b"LM0",
        b"CSLM0",
        b"RNN0",
        b"RNNInverse0",
        b"WP0",
    ]
    penalties = [line.values("WP0") for line in parse_nbest(done.stdout.splitlines(), "n")]
    assert penalties == [[-1], [0], [-2], [0], [-1], [-1], [0], [-1], [0]]  # words x, y and \xe9
    assert done.stderr == "9 hypotheses of 4 sentences, with CSLM0, RNN0, RNNInverse0, WP0\n"


def test_add_need_not_be_said(nbest):
    arguments = ["n", "--source", "src", "--word-penalty", "{}/words"]
    assert nbest("add", *arguments).stdout == nbest(*arguments).stdout
    assert nbest("-q", *arguments[1:], "n").stdout == nbest(*arguments).stdout


def test_through_pipes(models, here):
    """The command itself, between others."""
    command = Path(sys.executable).with_name("moses-rnn-nbest")
    (here / "n.gz").write_bytes(gzip.compress(NBEST))
    line = f"cat n.gz | {command} - --source src --cslm {models}/cslm --threads 1 | gzip > out.gz"
    done = subprocess.run(["bash", "-c", line], cwd=here, capture_output=True, check=True)
    assert done.stderr == b"9 hypotheses of 4 sentences, with CSLM0\n"
    assert ADDED.sub(b"", gzip.decompress((here / "out.gz").read_bytes())) == NBEST


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".xz", ".bz2"])
def test_the_output_s_suffix_says_how_it_is_compressed(nbest, here, suffix):
    plain = nbest("n", "--source", "src", "--word-penalty", "{}/words").stdout
    done = nbest("n", "--source", "src", "--word-penalty", "{}/words", "-o", f"out{suffix}", "-q")
    assert (done.stdout, done.stderr) == (b"", "")
    assert b"".join(read_lines(str(here / f"out{suffix}"))) == plain
    if suffix == ".gz":
        assert gzip.decompress((here / "out.gz").read_bytes()) == plain


def test_inputs_may_be_compressed_and_named_without_their_suffix(nbest, here):
    plain = nbest("n", "--source", "src", "--word-penalty", "{}/words").stdout
    for name in ("n", "src"):
        (here / f"{name}.gz").write_bytes(gzip.compress((here / name).read_bytes()))
        (here / name).unlink()
    assert nbest("n", "--source", "src", "--word-penalty", "{}/words").stdout == plain
    again = nbest("n", "--source", "-", "--word-penalty", "{}/words", given=SOURCE.replace(b"\n", b"\r\n"))
    assert again.stdout == plain


def test_features_of_n_gram_models(nbest):
    pytest.importorskip("kenlm")
    options = ["--lm", "{}/lm.arpa", "--cslm", "{}/cslm", "--backoff", "{}/lm.arpa"]
    done = nbest("n", "--source", "src", *options)
    assert ADDED.sub(b"", done.stdout) == NBEST
    assert done.stderr == "9 hypotheses of 4 sentences, with CSLM0, KENLM0\n"
    plain = nbest("n", "--source", "src", "--cslm", "{}/cslm").stdout
    pairs = zip(*(parse_nbest(text.splitlines(), "n") for text in (done.stdout, plain)), strict=True)
    differ = [a.values("CSLM0") != b.values("CSLM0") for a, b in pairs]
    assert differ == [b"x" in text or text == b"\xe9" for _, text, _, _ in LISTED]


def test_whole_sentences_and_fewer_words(nbest):
    phrases = nbest("n", "--source", "src", "--rnn", "{}/rnn").stdout
    options = ["--rnn", "{}/rnn", "--whole", "--word-penalty", "{}/rnn", "--word-penalty-words", "1"]
    whole = nbest("n", "--source", "src", *options).stdout
    assert ADDED.sub(b"", whole) == NBEST
    assert whole.count(b"RNN0=") == phrases.count(b"RNN0=") == len(LISTED)
    assert b"WP0= -3" in whole.split(b"\n")[1]  # of t2 t3 t4 t5 the shortlist's first word is known


def test_a_feature_that_can_choose_nothing_is_a_warning(nbest, here):
    (here / "one").write_bytes(b"0 ||| t2 ||| LM0= 1 ||| 1\n0 ||| t3 ||| LM0= 2 ||| 1\n")
    done = nbest("one", "--source", "src", "--word-penalty", "{}/words")
    assert done.stderr == (
        "2 hypotheses of 1 sentences, with WP0\n"
        "warning: WP0 is the same for all hypotheses of each sentence: leave it out, no tuning can use it\n"
    )


@pytest.mark.parametrize("command", ["add", "tune", "rerank"])
def test_what_is_there_is_replaced_only_by_force(nbest, here, more, command):
    arguments = {
        "add": ["n", "--source", "src", "--word-penalty", "{}/words"],
        "tune": ["more", "--reference", "ref", "--restarts", "0"],
        "rerank": ["more", "w.ini"],
    }[command]
    (here / "out").write_text("kept")
    done = nbest(command, *arguments, "-o", "out", code=1)
    assert done.stderr == "moses-rnn-nbest: out: exists already; use --force to replace it\n"
    assert (here / "out").read_text() == "kept"
    done = nbest(command, *arguments, "-o", arguments[0], "--force", code=1)
    name = arguments[0]
    assert done.stderr == f"moses-rnn-nbest: {name}: is the input {name} itself; name another output\n"
    assert nbest(command, *arguments, "-o", "out", "--force").stdout == b""
    assert (here / "out").read_bytes() == nbest(command, *arguments).stdout != b"kept"


def test_the_weights_to_begin_with_are_an_input(nbest, here, more):
    arguments = ["tune", "more", "--reference", "ref", "--weights", "w.ini", "-o", "w.ini", "--force"]
    assert "w.ini: is the input w.ini itself; name another output\n" in nbest(*arguments, code=1).stderr
    assert (here / "w.ini").read_bytes() == WEIGHTS


# tune and rerank


def test_weights_are_tuned_and_used(nbest, here, more):
    """From the list's own weights, by which the first are best, to such by which no word is unknown."""
    done = nbest("tune", "more", "--reference", "ref", "--optimiser", "mert", "--seed", "7", "-o", "tuned.ini")
    assert done.stdout == b""
    assert re.fullmatch(r"mert, seed 7: BLEU \d+\.\d\d before, 100\.00 after\n", done.stderr)
    ini = (here / "tuned.ini").read_bytes()
    assert re.fullmatch(rb"\[weight\]\nLM0= \S+\nWP0= \S+\n", ini)
    found = nbest("rerank", "more", "tuned.ini")
    assert (found.stdout, found.stderr) == (REFERENCE, "")
    before = re.search(r"BLEU (\S+) before", done.stderr)[1]
    found = nbest("rerank", "more", "tuned.ini", "--reference", "ref")
    assert found.stdout == REFERENCE
    assert found.stderr == f"BLEU {before} of the list's first, 100.00 reranked, 100.00 at best (oracle)\n"


def test_mert_is_the_default_where_no_moses_is_and_the_seed_decides(nbest, more):
    arguments = ["tune", "more", "--reference", "ref", "--restarts", "2"]
    done = nbest(*arguments)
    assert done.stderr.startswith("mert, seed 1: BLEU ")
    assert done.stdout == nbest(*arguments, "--seed", "1", "--optimiser", "mert").stdout


def test_the_search_begins_at_the_weights_that_are_given(nbest, here, more):
    arguments = ["tune", "more", "--reference", "ref", "--weights", "w.ini", "--restarts", "0"]
    done = nbest(*arguments)
    assert done.stderr == "mert, seed 1: BLEU 100.00 before, 100.00 after\n"
    assert done.stdout == b"[weight]\nLM0= 0.25\nWP0= 0.75\n"  # 1 and 3
    (here / "w.ini").write_bytes(b"[weight]\nLM0= 2 # no WP0\nDistortion0= 1\n")
    assert re.match(r"mert, seed 1: BLEU [1-9]\d\.\d\d before", nbest(*arguments).stderr)


def test_what_a_tuning_cannot_use_is_said(nbest, here):
    line = b"%d ||| %b ||| LM0= %d Same0= 5 ||| %d\n"
    rows = [(0, b"t2 x t4 t5", -1), (0, b"t2 t3 t4 t5", -2), (1, b"t3", -1)]
    (here / "m").write_bytes(b"".join(line % (i, text, value, value) for i, text, value in rows))
    done = nbest("tune", "m", "--reference", "ref", "--restarts", "1", "-o", "out")
    said = done.stderr.splitlines()
    assert said[0] == "warning: 2 sentences have no hypothesis and count as translated by nothing"
    assert said[2:] == ["warning: Same0_0 is the same for all hypotheses of each sentence: its weight stays as it was"]
    assert (here / "out").read_bytes().endswith(b"\nSame0= 0\n")


def test_several_references(nbest, here, more):
    (here / "other").write_bytes(REFERENCE.replace(b"t3", b"x"))
    done = nbest("rerank", "more", "w.ini", "--reference", "ref", "--reference", "other")
    assert re.fullmatch(r"BLEU [1-9]\d\.\d\d of .*, 100.00 reranked, 100.00 at best \(oracle\)\n", done.stderr)
    done = nbest("tune", "more", "--reference", "ref", "--reference", "other", "--restarts", "1", "-o", "out")
    assert done.stderr.endswith(" 100.00 after\n")


def test_segments_are_printed_as_the_decoder_prints_them(nbest, more):
    done = nbest("rerank", "more", "w.ini", "--segments")
    assert done.stdout == (b"t2 t3 |0-1| t4 t5 |2-3|\nt3 |0-0| t4 t5 t6 |1-2|\nt6 t2 t3 |0-3| t4 |4-4|\nt2 |0-0|\n")


def test_a_list_from_a_pipe_lacks_the_last_sentences_unless_a_reference_says_so(nbest, here):
    lines = b"2 ||| t2 \xc2\xa0 ||| LM0= 1 WP0= 0 ||| 0\r\n0 ||| \xff ||| LM0= 1 WP0= 0 ||| 0\r\n"
    assert nbest("rerank", "-", "w.ini", given=lines).stdout == b"\xff\n\nt2 \xc2\xa0\n"
    found = nbest("rerank", "-", "w.ini", "--reference", "ref", "-o", "out.gz", given=lines)
    assert gzip.decompress((here / "out.gz").read_bytes()) == b"\xff\n\nt2 \xc2\xa0\n\n"
    assert found.stderr == "BLEU 0.00 of the list's first, 0.00 reranked, 0.00 at best (oracle)\n"


# What is refused

USAGE = {
    "nothing": (["n", "--source", "src"], "nothing to add: give --cslm, --lm, --rnn, --inverse-rnn or --word-penalty"),
    "no source": (["n", "--cslm", "x"], "Missing option '--source'."),
    "two lists": (["n", "m", "--source", "src"], "Got unexpected extra argument (m)"),
    "standard input twice": (
        ["-", "--source", "-", "--cslm", "x"],
        "only one of the list and --source can be -",
    ),
    "backoff": (
        ["n", "--source", "src", "--word-penalty", "x", "--backoff", "y"],
        "--backoff is the n-gram model that --cslm backs off to",
    ),
    "whole": (["n", "--source", "src", "--cslm", "x", "--whole"], "--whole says how --rnn and --inverse-rnn score"),
    "words": (
        ["n", "--source", "src", "--cslm", "x", "--word-penalty-words", "9"],
        "--word-penalty-words is for --word-penalty",
    ),
    "no reference": (["tune", "n"], "Missing option '--reference'."),
    "optimiser": (
        ["tune", "n", "--reference", "ref", "--optimiser", "pro"],
        "Invalid value for '--optimiser': 'pro' is not one of 'moses-mert', 'kbmira', 'mert'.",
    ),
    "no weights": (["rerank", "n"], "Missing argument 'WEIGHTS'."),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_command_lines(nbest, arguments, message):
    done = nbest(*arguments, code=2)
    assert done.stderr.startswith("Usage: moses-rnn-nbest ")
    assert done.stderr.endswith(f"\n\nError: {message}\n")


WP = ["--source", "src", "--word-penalty", "{}/words"]
REJECTED = {
    "no list": (["none", *WP], "none: expected a file, found nothing of that name (nor none.gz)"),
    "no source": (
        ["n", "--source", "none", "--cslm", "{}/cslm"],
        "none: expected a file, found nothing of that name (nor none.gz)",
    ),
    "empty list": (["empty", *WP], "empty: expected at least one line, found an empty file"),
    "no n-best list": (["src", *WP], "src:1: expected at least 4 fields separated by '|||', found 1: 's2 s3 s4 s5'"),
    "short source": (
        ["n", "--source", "short", "--word-penalty", "{}/words"],
        "n: expected a sentence number below 1, the number of source sentences, found 1",
    ),
    "another direction": (
        ["n", "--source", "src", "--rnn", "{}/inverse"],
        "{}/inverse: expected a model for --rnn, found one for --inverse-rnn",
    ),
    "no segmentation": (
        ["plain", "--source", "src", "--rnn", "{}/rnn"],
        "plain:1: expected a segmentation, for the phrases of a hypothesis, found none\n"
        "  Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole, which a\n"
        "  network that learned phrases was not made for.",
    ),
    "reference too short": (
        ["tune", "n", "--reference", "short"],
        "n:3: expected a sentence number below 1, the number of lines of the references, found 1",
    ),
    "references": (
        ["tune", "n", "--reference", "ref", "--reference", "short"],
        "references: expected texts with equally many lines, found 4, 1",
    ),
    "no weights": (["tune", "n", "--reference", "ref", "--weights", "none"], "none: cannot be read: No such file or directory"),
    "no Moses": (
        ["tune", "n", "--reference", "ref", "--optimiser", "kbmira"],
        "kbmira: expected a built Moses, found none\n  Name it with MOSES_ROOT, or choose 'mert'.",
    ),
    "an empty Moses": (
        ["tune", "n", "--reference", "ref", "--optimiser", "moses-mert", "--moses-root", "/dev"],
        "/dev/bin/mert: expected a program of Moses, found none\n"
        "  MOSES_ROOT must be the folder of a built Moses (github.com/moses-smt/mosesdecoder, ./bjam -j4); "
        "compact tables need --with-cmph.",
    ),
    "rerank without weights": (["rerank", "n", "none"], "none: cannot be read: No such file or directory"),
    "weights of another list": (
        ["rerank", "plain", "other.ini"],
        "other.ini: expected 1 weights of LM0, as the n-best list has values, found LM0= 1.0 2.0",
    ),
    "rerank's reference too short": (
        ["rerank", "n", "w.ini", "--reference", "short"],
        "n:3: expected a sentence number below 1, the number of lines of the references, found 1",
    ),
    "no segments": (
        ["rerank", "plain", "w.ini", "--segments"],
        "plain: expected a segmentation of sentence 0, found none\n"
        "  Make the list with -include-segmentation-in-n-best.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REJECTED.values(), ids=REJECTED)
def test_inputs_that_are_rejected(nbest, here, models, arguments, message):
    (here / "empty").touch()
    (here / "short").write_bytes(b"s2\n")
    (here / "plain").write_bytes(b"0 ||| t2 ||| LM0= 1 ||| 1 ||| 0-0 \n")
    (here / "other.ini").write_bytes(b"[weight]\nLM0= 1 2\n")
    before = sorted(os.listdir(here))
    done = nbest(*arguments, "-o", "out", code=3)
    assert done.stderr == f"moses-rnn-nbest: {message}\n".replace("{}", str(models))
    assert sorted(os.listdir(here)) == before  # nor anything hidden


FAILED = {
    "no folder": (["n", *WP, "-o", "none/out"], "none/out: cannot be written: No such file or directory"),
    "device": (
        ["n", *WP, "--device", "tpu"],
        "--device tpu: expected cpu, cuda or cuda:N that torch can use here",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), FAILED.values(), ids=FAILED)
def test_failures_that_are_nobody_s_input(nbest, arguments, message):
    done = nbest(*arguments, code=1)
    assert (done.stdout, done.stderr) == (b"", f"moses-rnn-nbest: {message}\n")


@pytest.mark.parametrize("arguments", [["n", *WP], ["rerank", "more", "w.ini"], ["tune", "more", "--reference", "ref"]])
def test_a_full_standard_output_is_a_failure(nbest, more, arguments):
    done = nbest(*arguments, stdout=Path("/dev/full"), code=1)
    assert done.stderr.endswith("moses-rnn-nbest: standard output: No space left on device\n")


def test_a_list_that_is_wrong_further_down_leaves_nothing(nbest, here):
    (here / "n").write_bytes(NBEST + b"4 ||| t2 ||| LM0= ||| 1\n")
    done = nbest("n", *WP, "-o", "out", code=3)
    assert done.stderr == "moses-rnn-nbest: n:10: expected a number after 'LM0=' in field 3, found none\n"
    assert sorted(os.listdir(here)) == ["n", "ref", "src", "w.ini"]


# A real list


def test_a_real_list(nbest, here, multi30k):
    with gzip.open(multi30k / "nbest.val.100.gz") as lines:
        listed = list(itertools.takewhile(lambda line: int(line.split(b" ", 1)[0]) < 20, lines))
    counts = {}
    for word in b" ".join(line.split(b"|||")[1] for line in listed).split():
        counts[word] = counts.get(word, 0) + 1
    words = shortlist(counts, 100)
    config = CslmConfig(len(words), order=4, embedding_size=8, first_size=16, second_size=8)
    save_cslm(here / "cslm", CslmCheckpoint(network(config, scale=20), words))
    (here / "real.gz").write_bytes(gzip.compress(b"".join(listed)))
    source, reference = (gzip.decompress((multi30k / f"val.{end}.gz").read_bytes()) for end in ("en", "fr"))
    for name, text in (("source", source), ("reference", reference)):
        (here / name).write_bytes(b"".join(line + b"\n" for line in text.split(b"\n")[:20]))

    options = ["--source", "source", "--cslm", "cslm", "--word-penalty", "cslm", "-o", "real.more.gz"]
    done = nbest("real.gz", *options)
    assert done.stderr == f"{len(listed):,} hypotheses of 20 sentences, with CSLM0, WP0\n"
    assert ADDED.sub(b"", gzip.decompress((here / "real.more.gz").read_bytes())) == b"".join(listed)

    begun = ["--weights", multi30k / "moses.tuned.ini", "--reference", "reference"]
    tuned = nbest("tune", "real.more.gz", *begun, "--restarts", "0", "-o", "tuned.ini")
    before, after = map(float, re.fullmatch(r"mert, seed 1: BLEU (\S+) before, (\S+) after\n", tuned.stderr).groups())
    found = nbest("rerank", "real.more.gz", "tuned.ini", "--reference", "reference")
    first, reranked, at_best = map(float, re.findall(r"\d+\.\d\d", found.stderr))
    assert first == before < reranked == after < at_best
    assert found.stdout.count(b"\n") == 20


def test_the_names_of_subcommands_are_those_of_the_help():
    assert re.findall(r"^  (\w+)  ", zygote("nbest", "--help").stdout.decode().split("Commands:\n")[1], re.M) == [
        "add",
        "rerank",
        "tune",
    ]


STOPPED_WITHIN = """
import os, signal
from moses_rnn.scoring import tuning
search = tuning.tune
def interrupted(*arguments, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    return search(*arguments, **options)
tuning.tune = interrupted
from moses_rnn.cli.nbest import main
main()
"""


def test_a_search_that_is_stopped_leaves_nothing(tmp_path):
    (tmp_path / "list").write_bytes(NBEST)
    (tmp_path / "reference").write_bytes(REFERENCE)
    arguments = ["tune", "list", "--reference", "reference", "--optimiser", "mert", "-o", "weights.ini"]
    command = [sys.executable, "-c", STOPPED_WITHIN, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("stopped before the search had ended; nothing was written\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "reference"]
