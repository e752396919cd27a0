"""moses-rnn-nbest rerank --even: without weights. What it does with weights is in test_tune.py."""


def test_the_total_and_a_feature_decide_evenly(nbest, more):
    done = nbest("rerank", "more", "--even", "WP0", "--reference", "ref")
    assert done.stdout == b"t2 x t4 t5\nt3 t4 t5 t6\nt6 t2 t3 t4 x\n\xe9\n"  # of equally good ones the first
    assert "at best (oracle)" in done.stderr
