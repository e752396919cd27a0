"""What is counted and picked out in one pass."""


def test_the_survey(findings):
    n = findings.coverage
    # each line counts: `a <script>…` five times with one unknown word, and \xff, <img/src=x> &amp; and \u202ex
    assert (n.lines, n.sources, n.source_words, n.source_unknown) == (9, 3, 5 * 4 + 3 * 4 + 5, 5)
    assert (n.target_words, n.target_unknown, n.pairs_unknown) == (2 + 1 + 1 + 2 + 1 + 3 + 2, 1 + 2 + 1, 5)
    by_table, by_rnn = (found for found, _ in findings.explained)
    assert (by_table.by, by_table.rank, by_rnn.by, by_rnn.rank) == ("table", 5, "RNN", 5)


def test_words_outside_the_shortlists_are_counted(findings):
    n = findings.coverage
    assert n.source_words_unknown == {b"<script>alert(1)</script>": 5}
    assert n.target_words_unknown == {b"\xff": 1, b"<img/src=x>": 1, b"&amp;": 1, b"\xe2\x80\xaex": 1}
