"""moses-rnn-cslm: bad command lines and inputs, which leave nothing behind."""

import json

import pytest

from tests.cli.cslm.calls import TINY, cslm, names

NEW = ["--model", "new", *TINY]
REFUSED = [
    (["train"], 2, "Missing argument 'TEXTS...'"),
    (["train", "train.fr"], 2, "Missing option '--model'"),
    (["train", "train.fr", *NEW, "--preset", "huge"], 2, "Invalid value for '--preset'"),
    (["train", "train.fr", *NEW, "--order", "1"], 2, "Invalid value for '--order': 1 is not in the range 2<=x<=64."),
    (["train", "train.fr", *NEW, "--dropout", "1"], 2, "Invalid value for '--dropout'"),
    (["train", "train.fr", *NEW, "--self-normalise", "-1"], 2, "Invalid value for '--self-normalise'"),
    (["train", "train.fr", *NEW, "--learning-rate", "nan"], 2, "'nan' is not a finite number"),
    (["train", "nothing", *NEW], 3, "nothing: expected a file, found nothing of that name (nor nothing.gz)"),
    (["train", "train.fr", "mine", *NEW], 3, "mine: expected a file, found a directory"),
    (["train", "train.fr", *NEW, "--dev", "nothing"], 3, "nothing: expected a file, found nothing of that name"),
    (["train", "-", *NEW], 3, "a text to train on must be a file: it is read twice"),
    (["train", "empty", *NEW], 3, "empty: expected at least one line, found an empty file"),
    (["train", "blank", *NEW], 3, "expected a text to train on, found no word in 2 lines"),
    (["train", "train.fr", *NEW, "--dev", "blank"], 3, "expected held-out lines, found no line with words"),
    (["train", "train.fr", *NEW, "--device", "cuda:99"], 1, "--device cuda:99: expected "),
    (["train", "train.fr", *NEW, "--model", "dev.fr"], 1, "dev.fr: cannot be made: File exists"),
    (["train", "train.fr", *NEW, "--model", "mine", "--restart"], 1, "mine: is not a model folder; --restart does not remove it"),
    (["perplexity", "cslm"], 2, "Missing argument 'TEXTS...'"),
    (["perplexity", "nothing", "dev.fr"], 3, "nothing: expected a model folder, found nothing"),
    (["perplexity", "dev.fr", "dev.fr"], 2, "dev.fr: expected a model's folder first and texts behind it, found a file"),
    (["perplexity", "cslm", "nothing"], 3, "nothing: expected a file, found nothing of that name (nor nothing.gz)"),
    (["perplexity", "cslm", "empty"], 3, "empty: expected at least one line, found an empty file"),
    (["perplexity", "cslm", "blank"], 3, "blank: expected sentences, found none"),
    (["perplexity", "cslm", "dev.fr", "--lm", "nothing"], 3, "nothing: expected a file, found nothing of that name"),
    (["perplexity", "cslm", "dev.fr", "--device", "tpu"], 1, "--device tpu: expected cpu, cuda or cuda:N that torch can use here"),
    (["export-nplm", "cslm", "out"], 2, "Missing option '--dev'"),
    (["export-nplm", "nothing", "out", "--dev", "dev.fr"], 3, "nothing: expected a model folder, found nothing"),
    (["export-nplm", "cslm", "out", "--dev", "nothing"], 3, "nothing: expected a file, found nothing of that name"),
    (["export-nplm", "cslm", "out", "--dev", "blank"], 3, "blank: expected sentences, found none"),
    (["export-nplm", "cslm", "dev.fr", "--dev", "dev.fr", "--force"], 1, "dev.fr: is the input dev.fr itself; name another output"),
    (["export-nplm", "cslm", "mine", "--dev", "dev.fr", "--force"], 1, "mine: is not a regular file and is not replaced"),
    (["export-nplm", "cslm", "no/out", "--dev", "dev.fr"], 1, "no/out: cannot be written: No such file or directory"),
    (["export-nplm", "cslm", "out.gz", "--dev", "dev.fr"], 1, "out.gz: expected the name of a plain file, as NPLM reads it"),
    (["export-nplm", "cslm", "-", "--dev", "dev.fr"], 1, "-: expected the name of a plain file, as NPLM reads it"),
    (["exprot"], 2, "No such command 'exprot'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_refusals_say_why_and_leave_nothing(here, arguments, code, message):
    before = names(here)
    found, out, messages = cslm(*arguments)
    assert (found, out) == (code, "")
    assert message in messages
    assert messages.startswith("Usage: " if code == 2 else "moses-rnn-cslm: ")
    assert names(here) == before


def test_a_model_of_another_kind_is_refused(here):
    config = json.loads((here / "cslm" / "config.json").read_text())
    (here / "cslm" / "config.json").write_text(json.dumps(config | {"network": None}))
    code, _, messages = cslm("perplexity", "cslm", "dev.fr")
    assert code == 3
    assert "cslm/config.json: expected network to be bengio or cslm or rnnlm, found None" in messages
    code, _, messages = cslm("export-nplm", "cslm", "out", "--dev", "dev.fr")
    assert code == 3
    assert "cslm/config.json: expected network to be bengio or cslm or rnnlm, found None" in messages
