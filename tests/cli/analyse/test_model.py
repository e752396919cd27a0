"""moses-rnn analyse map words, phrases and gates: what is looked at in a model."""

from tests.cli.analyse.calls import invoke


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("map", "gates", table, "--model", inverse_model)
    assert done.stdout.startswith("encoder: 8 units, 2,000 phrases, ")
