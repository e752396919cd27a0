"""moses-rnn-cslm export-nplm: NPLM's file, and what loads it."""

from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.producers.nplm_export import normalisers, nplm_network
from tests.cli.cslm.calls import cslm, names
from tests.producers.tiny_lm import checkpoint

INI = "[feature]\nNeuralLM name=CSLM0 order=3 path={} factor=0\n\n[weight]\nCSLM0= 0.1\n"


def test_export_writes_the_network_and_prints_what_loads_it(here):
    code, out, messages = cslm("export-nplm", "cslm", "cslm.nplm", "--dev", "dev.fr")
    assert (code, out) == (0, INI.format(here / "cslm.nplm"))
    model = load_checkpoint(here / "cslm", CSLM)
    norms = normalisers(model, (here / "dev.fr").read_bytes().splitlines(), "dev.fr")
    assert (here / "cslm.nplm").read_bytes() == b"".join(nplm_network(model, norms.mean).lines())
    assert messages == (
        f"log Z on {norms.tokens:,} words of dev.fr: mean {norms.mean:.4f}, which is taken off; mean |log Z| "
        f"{norms.mean_abs:.4f} before, {norms.mean_abs_without_mean:.4f} after\n"
    )
    assert norms.mean_abs_without_mean < 0.5  # or there would be a warning


def test_export_warns_of_a_network_that_is_far_from_normal(here):
    save_checkpoint(here / "far", checkpoint(scale=1000))
    code, _, messages = cslm("export-nplm", "far", "far.nplm", "--dev", "dev.fr")
    assert code == 0
    assert messages.endswith(
        "\nwarning: that is far from a probability: train with --self-normalise 0.1, say\n",
    )


def test_export_warns_of_a_path_that_moses_cannot_read(here):
    code, out, messages = cslm("export-nplm", "cslm", "my cslm", "--dev", "dev.fr")
    assert (code, out) == (0, INI.format(here / "my cslm"))
    assert messages.endswith(
        f"\nwarning: {here / 'my cslm'}: Moses cannot read paths with blanks or '#': move the file before using it\n"
    )


def test_export_replaces_nothing_without_force(here):
    (here / "out").write_text("precious")
    code, out, messages = cslm("export-nplm", "cslm", "out", "--dev", "dev.fr")
    assert (code, out) == (1, "")
    assert "out: exists already" in messages
    assert (here / "out").read_text() == "precious"
    assert cslm("export-nplm", "cslm", "out", "--dev", "dev.fr", "--force")[0] == 0
    assert (here / "out").read_bytes().startswith(b"\\config\n")


def test_a_shortlist_that_nplm_cannot_read_is_refused_and_nothing_is_written(here):
    odd = checkpoint()
    odd.target_vocabulary.words[2] = b"<null>"
    save_checkpoint(here / "odd", odd)
    code, _, messages = cslm("export-nplm", "odd", "out", "--dev", "dev.fr")
    assert (code, "found '<null>'" in messages) == (3, True)
    assert "out" not in names(here)
