"""moses-rnn nbest tune and rerank: weights and best hypotheses, also of a real list."""

import gzip
import re
import subprocess
import sys

from tests.cli.nbest.lists import NBEST, REFERENCE


def test_what_a_tuning_cannot_use_is_said(nbest, here):
    line = b"%d ||| %b ||| LM0= %d Same0= 5 ||| %d\n"
    rows = [(0, b"t2 x t4 t5", -1), (0, b"t2 t3 t4 t5", -2), (1, b"t3", -1)]
    (here / "m").write_bytes(b"".join(line % (i, text, value, value) for i, text, value in rows))
    done = nbest("tune", "m", "--reference", "ref", "-o", "out")
    said = done.stderr.splitlines()
    assert said[0] == "warning: sentences without a hypothesis, counted as empty translations: 2"
    warning = "warning: Same0_0 is the same for all hypotheses of each sentence: "
    assert said[2:] == [f"{warning}its weight is 0; to keep the decoder's, give --weights"]
    assert (here / "out").read_bytes().endswith(b"\nSame0= 0\n")
    (here / "i").write_text("[weight]\nLM0= 10\nSame0= 5\n")
    done = nbest("tune", "m", "--reference", "ref", "--weights", "i")
    assert done.stdout.endswith(b"\nSame0= 0.5\n")
    assert done.stderr.endswith(f"{warning}tuning only scales its weight\n")


def test_a_compressed_ini_is_refused_before_tuning(nbest, here):
    done = nbest("tune", "n", "--reference", "ref", "-o", "w.ini.gz", code=2)
    assert "w.ini.gz: expected a name without .gz" in done.stderr
    assert not (here / "w.ini.gz").exists()


def test_sparse_features_are_tuned_by_their_weights_in_an_ini(nbest, here):
    (here / "m").write_bytes(b"0 ||| t2 ||| LM0= -1 LM0_a= 2 ||| 0\n0 ||| t3 ||| LM0= -2 LM0_a= 1 ||| 0\n")
    (here / "s.ini").write_text("[weight]\nLM0= 1\nLM0_a= 0.5\n")
    assert b"\nLM0_a= " in nbest("tune", "m", "--reference", "ref", "--weights", "s.ini").stdout
    (here / "s.ini").write_text("[weight]\nLM0= 1\n[weight-file]\nsparse\n")
    (here / "sparse").write_text("LM0_a 0.5\nLM0_# 0\n")
    assert b"#" not in nbest("tune", "m", "--reference", "ref", "--weights", "s.ini").stdout
    (here / "sparse").write_text("LM0_a 0.5\nLM0_# 1\n")
    done = nbest("tune", "m", "--reference", "ref", "--weights", "s.ini", "-o", "out", code=3)
    assert "sparse: expected sparse features without '#', which begins a comment in an ini, found LM0_#" in done.stderr
    assert not (here / "out").exists()


def test_weights_that_a_list_does_not_show_are_named(nbest, here):
    ini = "[feature]\nPhraseDictionaryMemory name=TM0 num-features=2 path=t tuneable-components=true,false\n[weight]\n"
    (here / "m").write_bytes(b"0 ||| t2 ||| LM0= -1 TM0= 2 ||| 0\n0 ||| t3 ||| LM0= -2 TM0= 1 ||| 0\n")
    (here / "i").write_text(f"{ini}LM0= 1\nTM0= 1 3\nLM1= 2\nPT_fixed= 0.1 0.2\nLM0_a= 1\n")
    warning = "warning: i: has weights of LM1, TM0 (value 2), which m lacks\n"
    tuned = nbest("tune", "m", "--reference", "ref", "--weights", "i")
    assert warning in tuned.stderr
    assert b"\nLM0_a= " in tuned.stdout
    assert b"nan" not in tuned.stdout
    assert nbest("rerank", "m", "i", "--reference", "ref").stderr.startswith(warning)


COPIED = [  # of a sentence: LM0, WP0, total; the last hypothesis costs 100 more
    b"0 ||| %b ||| LM0= %g WP0= %g ||| %g\n" % row
    for row in [(b"t2 t3 t4 t5", -3, 0, -3), (b"t2", -4, -1, -4.5), (b"t3", -6, -1, -6.5), (b"s2", -1, 0, -101)]
]


def test_a_hidden_penalty_is_refused(nbest, here):
    (here / "m").write_bytes(b"".join(COPIED))
    (here / "i").write_text("[feature]\nUnknownWordPenalty\n[weight]\nUnknownWordPenalty0= 1\nLM0= 1\nWP0= 0.5\n")
    said = "m: expected totals that the features explain, found -6.5 and -101 in sentence 0, "
    for words in (
        ("tune", "m", "--reference", "ref"),
        ("tune", "m", "--reference", "ref", "--weights", "i"),
        ("rerank", "m", "i"),
        ("rerank", "m", "w.ini", "--reference", "ref"),
    ):
        done = nbest(*words, "-o", "out", code=3)
        assert said in done.stderr
        assert "UnknownWordPenalty tuneable=true" in done.stderr
        assert not (here / "out").exists()
    assert nbest("rerank", "m", "--even", "LM0").stdout == b"t2 t3 t4 t5\n"  # the total has the penalty


def test_another_hidden_score_is_said(nbest, here):
    (here / "m").write_bytes(b"".join(COPIED).replace(b"-101", b"-60"))
    warning = "warning: the totals of m contain scores that it does not show (up to "
    for words in (("tune", "--reference", "ref"), ("tune", "--reference", "ref", "--weights", "w.ini")):
        assert warning in nbest(words[0], "m", *words[1:]).stderr
    done = nbest("rerank", "m", "w.ini")
    assert done.stderr.startswith(warning)
    assert done.stdout == b"s2\n"


def test_the_name_of_the_sum_of_sparse_features_is_taken(nbest, here):
    (here / "m").write_bytes(b"0 ||| t2 ||| Sparse= -1 LM0_a= 2 ||| 0\n")
    (here / "s.ini").write_text("[weight]\nSparse= 1\nLM0_a= 0.5\n")
    for words in (("tune", "m", "--weights", "s.ini"), ("rerank", "m", "s.ini")):
        done = nbest(*words, "--reference", "ref", "-o", "out", code=3)
        assert "m:1: expected no dense feature called Sparse" in done.stderr


def test_a_dense_feature_may_be_called_sparse(nbest, here):
    (here / "m").write_bytes(b"0 ||| t2 ||| Sparse= -1 LM0= 2 ||| 0\n0 ||| t3 ||| Sparse= -2 LM0= 1 ||| 0\n")
    (here / "i").write_text("[weight]\nSparse= 1\nLM0= 1\n")
    assert b"\nSparse= " in nbest("tune", "m", "--reference", "ref", "--weights", "i").stdout


def test_several_references(nbest, here, more):
    (here / "other").write_bytes(REFERENCE.replace(b"t3", b"x"))
    done = nbest("rerank", "more", "w.ini", "--reference", "ref", "--reference", "other")
    assert re.fullmatch(r"BLEU [1-9]\d\.\d\d before, 100.00 reranked, 100.00 at best \(oracle\)\n", done.stderr)
    done = nbest("tune", "more", "--reference", "ref", "--reference", "other", "-o", "out")
    assert done.stderr.endswith(" 100.00 after\n")


def test_a_list_from_a_pipe_lacks_the_last_sentences_unless_a_reference_says_so(nbest, here):
    lines = b"2 ||| t2 \xc2\xa0 ||| LM0= 1 WP0= 0 ||| 0\r\n0 ||| \xff ||| LM0= 1 WP0= 0 ||| 0\r\n"
    assert nbest("rerank", "-", "w.ini", given=lines).stdout == b"\xff\n\nt2 \xc2\xa0\n"
    found = nbest("rerank", "-", "w.ini", "--reference", "ref", "-o", "out.gz", given=lines)
    assert gzip.decompress((here / "out.gz").read_bytes()) == b"\xff\n\nt2 \xc2\xa0\n\n"
    missing = "warning: sentences without a hypothesis, whose lines are empty: 2\n"
    assert found.stderr == f"BLEU 0.00 before, 0.00 reranked, 0.00 at best (oracle)\n{missing}"


def test_a_part_of_a_list_may_begin_late(nbest, here):
    (here / "part").write_bytes(b"9000 ||| t2 ||| LM0= 1 WP0= 0 ||| 0\n9001 ||| t3 ||| LM0= 1 WP0= 0 ||| 0\n")
    assert nbest("rerank", "part", "w.ini").stdout == b"\n" * 9000 + b"t2\nt3\n"


STOPPED_WITHIN = """
import os, signal
from moses_rnn.nbest import tune as tuning
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
    assert done.stderr.endswith("stopped before the search ended; nothing was written\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "reference"]
