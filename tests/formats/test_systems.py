from moses_rnn.formats.systems import read_systems


def test_the_systems_of_the_pipeline():
    systems = read_systems()
    assert [(system.name, system.kind, system.title) for system in systems.values()] == [
        ("baseline", "table", "Baseline"),
        ("rnn", "table", "+RNN"),
        ("rnn-wp", "table", "+RNN+WP"),
        ("rnn2", "table", "+RNN2"),
        ("extended", "extended", "+extended"),
        ("rnn-extended", "extended", "+RNN+extended"),
        ("rnn2-extended", "extended", "+RNN2+extended"),
        ("cslm", "list", "+CSLM"),
        ("cslm-rnn", "list", "+CSLM+RNN"),
        ("cslm-rnn-wp", "list", "+CSLM+RNN+WP"),
        ("nbest-search", "list", "+RNNsearch"),
        ("nbest-lstm", "list", "+seq2seq"),
        ("nbest-ensemble", "list", "+RNNsearch×4"),
        ("nbest-rnnlm", "list", "+RNNLM"),
        ("nbest-bengio", "list", "+NPLM"),
        ("rnnenc", "self", "RNNenc"),
        ("rnnsearch", "self", "RNNsearch"),
        ("rnnsearch-x4", "self", "RNNsearch×4"),
        ("seq2seq", "self", "seq2seq"),
        ("rnnsearch-unk", "self", "RNNsearch+UNK"),
        ("posunk", "self", "PosUnk"),
    ]
