"""moses-rnn-nbest rerank --even: without weights. What it does with weights is in test_tune.py."""


def test_the_total_and_a_feature_decide_evenly(nbest, more):
    done = nbest("rerank", "more", "--even", "WP0", "--reference", "ref")
    assert done.stdout == b"t2 x t4 t5\nt3 t4 t5 t6\nt6 t2 t3 t4 x\n\xe9\n"  # of equally good ones the first
    assert "at best (oracle)" in done.stderr


def test_a_feature_that_is_not_there_is_named(nbest):
    done = nbest("rerank", "n", "--even", "LSTM0", code=3)
    assert "n:1: expected one value of LSTM0=, found 0" in done.stderr


def test_weights_and_even_exclude_each_other(nbest):
    assert "give either" in nbest("rerank", "n", "w.ini", "--even", "WP0", code=2).stderr
