"""moses-rnn-nbest tune and rerank: weights and best hypotheses, also of a real list."""

import gzip
import itertools
import re
import subprocess
import sys

from moses_rnn.models.checkpoint import save_checkpoint
from moses_rnn.models.cslm import CslmConfig
from moses_rnn.models.vocabulary import shortlist
from tests.cli.nbest.lists import ADDED, NBEST, REFERENCE
from tests.commands import zygote
from tests.models.checkpoints import cslm_checkpoint
from tests.models.networks import cslm_network


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


def test_a_real_list(nbest, here, multi30k):
    with gzip.open(multi30k / "nbest.val.100.gz") as lines:
        listed = list(itertools.takewhile(lambda line: int(line.split(b" ", 1)[0]) < 20, lines))
    counts = {}
    for word in b" ".join(line.split(b"|||")[1] for line in listed).split():
        counts[word] = counts.get(word, 0) + 1
    words = shortlist(counts, 100)
    config = CslmConfig(len(words), order=4, embedding_size=8, first_size=16, second_size=8)
    save_checkpoint(here / "cslm", cslm_checkpoint(cslm_network(config, scale=20), words))
    (here / "real.gz").write_bytes(gzip.compress(b"".join(listed)))
    source, reference = (gzip.decompress((multi30k / f"val.{end}.gz").read_bytes()) for end in ("en", "fr"))
    for name, text in (("source", source), ("reference", reference)):
        (here / name).write_bytes(b"".join(line + b"\n" for line in text.split(b"\n")[:20]))

    options = ["--source", "source", "--add", "cslm", "--word-penalty", "cslm", "-o", "real.more.gz"]
    done = nbest("real.gz", *options)
    assert done.stderr == (
        f"{len(listed):,} hypotheses of 20 sentences, with CSLM0, WP0\n"
        "CSLM0: 14.0% of the hypothesis words are outside the model's shortlist\n"
    )
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
from moses_rnn.tuning import tune as tuning
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
