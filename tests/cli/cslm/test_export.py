"""moses-rnn cslm export-nplm: NPLM's file, and what loads it."""

from moses_rnn.scorers.open import save_model
from tests.cli.cslm.calls import cslm, names
from tests.scorers.tiny_lm import checkpoint

INI = "[feature]\nNeuralLM name=CSLM0 order=3 path={} factor=0\n\n[weight]\nCSLM0= 0.1\n"


def test_export_warns_of_a_network_that_is_far_from_normal(here):
    save_model(here / "far", checkpoint(scale=1000))
    code, _, messages = cslm("export-nplm", "far.nplm", "--model", "far", "--dev", "dev.fr")
    assert code == 0
    assert messages.endswith(
        "\nwarning: that is far from a probability: train with --self-normalise, such as 0.1\n",
    )


def test_export_warns_of_a_path_that_moses_cannot_read(here):
    code, out, messages = cslm("export-nplm", "my cslm", "--model", "cslm", "--dev", "dev.fr")
    assert (code, out) == (0, INI.format(here / "my cslm"))
    assert messages.endswith(
        f"\nwarning: {here / 'my cslm'}: Moses cannot read paths with blanks or '#': move the file before using it\n"
    )


def test_a_shortlist_that_nplm_cannot_read_is_refused_and_nothing_is_written(here):
    odd = checkpoint()
    odd.target_vocabulary.words[2] = b"<null>"
    save_model(here / "odd", odd)
    code, _, messages = cslm("export-nplm", "out", "--model", "odd", "--dev", "dev.fr")
    assert (code, "found '<null>'" in messages) == (3, True)
    assert "out" not in names(here)
