"""moses-rnn-cslm: train, perplexity, export-nplm, end to end on a corpus made here.

Most are run within this process, as importing torch takes seconds; processes of their own are for what needs one.
"""

import contextlib
import gzip
import io
import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.cli.cslm import main
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.producers.nplm_export import normalisers, nplm_network
from tests.producers.tiny_lm import NBSP, SMALL, checkpoint

TINY = ["--order", "3", "--embedding-size", "4", "--first-size", "6", "--second-size", "5", "--shortlist", "6"]
TRAIN = ["train", "train.fr", "--model", "cslm", *TINY, "--max-epochs", "2", "--preset", "small", "--device", "cpu"]
INI = "[feature]\nNeuralLM name=CSLM0 order=3 path={} factor=0\n\n[weight]\nCSLM0= 0.1\n"


def sentences(count, seed):
    """Six frequent words, and rare ones."""
    draw = random.Random(seed)
    frequent = ["le", "chat", "la", "bête", "dort", NBSP]
    return [" ".join([*draw.choices(frequent, k=draw.randrange(4)), f"rare{draw.randrange(9)}"]) for _ in range(count)]


def cslm(*arguments):
    """Run the command: exit code, stdout, stderr. Signals mean afterwards what they meant before."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        patch.setattr(sys, "argv", ["moses-rnn-cslm", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main(list(arguments))
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return leaving.value.code, *(stream.buffer.getvalue().decode() for stream in streams)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with texts, n-gram models and a trained CSLM, and what its training said."""
    here = tmp_path_factory.mktemp("cslm")
    (here / "train.fr").write_text("".join(f"{line}\n" for line in sentences(200, 1)))
    (here / "dev.fr").write_text("".join(f"{line}\n" for line in sentences(20, 2)))
    (here / "lm.arpa.gz").write_bytes(gzip.compress(SMALL.arpa()))
    (here / "empty").touch()
    (here / "blank").write_bytes(b" \n\n")
    (here / "mine").mkdir()
    with contextlib.chdir(here):
        code, out, messages = cslm(*TRAIN)
    assert (code, out) == (0, "")
    (here / "said").write_text(messages)
    return here


@pytest.fixture
def here(prepared, tmp_path, monkeypatch):
    """A copy of it, in which commands are run."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_training_says_what_it_found_and_what_it_does(prepared):
    said = (prepared / "said").read_text()
    lines = sentences(200, 1)
    assert said.startswith(f"text: 200 lines, {len(' '.join(lines).split(' ')):,} words, 15 distinct\n")
    for text in (
        "shortlist: 6 words, ",
        "held out: 20 lines\n",
        "network: 3-gram, 4 → 8 → 6 → 5, ",
        "training: adam, learning rate 0.001, dropout 0.3, 128 n-grams a minibatch, pair-mean gradient clipped at 1, fp32, seed 1; ",
        "ends after 2 epochs or 30 minutes or 10 evaluations without gain\n",
        "   n-grams  epochs      time  held-out nats  perplexity  |log Z|  tokens/s\n",
        "    2.00  ",
        "finished: 2 epochs are done; best held-out ",
        " nats per token; model in cslm\n",
    ):
        assert text in said


def test_training_leaves_a_model(prepared):
    loaded = load_checkpoint(prepared / "cslm", CSLM)
    expected = [word.encode() for word in ("le", "chat", "la", "bête", "dort", NBSP)]
    assert sorted(loaded.target_vocabulary.words) == sorted([b"<unk>", b"</s>", *expected])
    config = loaded.model.config
    assert (config.order, config.embedding_size, config.first_size, config.second_size) == (3, 4, 6, 5)
    assert loaded.provenance["texts"] == ["train.fr"]
    assert loaded.provenance["text"]["lines"] == 200


def test_the_same_command_again_says_it_is_finished(here):
    before = (here / "cslm" / "model.safetensors").read_bytes()
    code, out, messages = cslm(*TRAIN)
    assert (code, out) == (0, "")
    assert "resuming after " in messages
    assert "finished: 2 epochs are done; best held-out " in messages
    assert (here / "cslm" / "model.safetensors").read_bytes() == before


def test_quiet_training_says_nothing(here):
    assert cslm(*TRAIN, "--quiet") == (0, "", "")


def test_several_texts_compressed_or_not_are_one(here):
    lines = (here / "train.fr").read_bytes().splitlines(keepends=True)
    (here / "a").write_bytes(b"".join(lines[:70]))
    (here / "b.gz").write_bytes(gzip.compress(b"".join(lines[70:])))
    texts = ["train", "a", "b", *TRAIN[2:]]  # `b` is found as b.gz
    assert cslm(*texts, "--model", "parts", "-q") == (0, "", "")
    weights = [(here / model / "model.safetensors").read_bytes() for model in ("cslm", "parts")]
    assert weights[0] == weights[1]
    assert json.loads((here / "parts" / "config.json").read_text())["provenance"]["texts"] == ["a", "b"]


def test_a_text_of_its_own_to_judge_by(here):
    (here / "dev.gz").write_bytes(gzip.compress((here / "dev.fr").read_bytes()))
    code, _, messages = cslm(*TRAIN, "--model", "judged", "--dev", "dev.gz")
    assert (code, "held out: " in messages) == (0, False)
    assert load_checkpoint(Path("judged"), CSLM).provenance["text"]["held_out_lines"] == 0


def test_restart_starts_over(here):
    code, _, messages = cslm(*TRAIN, "--order", "4")
    assert (code, "order 3, now 4" in messages) == (3, True)
    assert cslm(*TRAIN, "--order", "4", "--restart", "-q") == (0, "", "")
    assert load_checkpoint(here / "cslm", CSLM).model.config.order == 4


@pytest.mark.parametrize("option", ["--dev", "text"])
def test_restart_removes_nothing_when_a_text_is_missing(here, option):
    before = names(here)
    arguments = [*TRAIN, "--dev", "nothing"] if option == "--dev" else ["train", "nothing", *TRAIN[2:]]
    code, _, messages = cslm(*arguments, "--restart")
    assert (code, messages) == (
        3,
        "moses-rnn-cslm: nothing: expected a file, found nothing of that name (nor nothing.gz)\n",
    )
    assert names(here) == before


HEAD = "| text | tokens | outside the shortlist | CSLM, shortlist only |"


def cells(line):
    return line.strip("| ").split(" | ")


def test_perplexity_of_a_cslm_alone(here):
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "train.fr")
    assert (code, messages) == (0, "")
    head, rule, dev, train = out.splitlines()
    assert (head, rule) == (HEAD, "|---|---|---|---|")
    lines = sentences(20, 2)
    tokens = len(" ".join(lines).split(" ")) + 20  # each line has one rare word and an end
    assert cells(dev)[:3] == ["dev.fr", f"{tokens:,}", f"{20 / tokens:.2%}"]
    assert 1 < float(cells(dev)[3]) < 20
    assert cells(train)[0] == "train.fr"


def test_perplexities_with_an_n_gram_model(here):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "train.fr", "--lm", "lm.arpa")  # found as lm.arpa.gz
    assert (code, messages) == (0, "")
    head, _, dev, train, empty, last, _, *strange = out.splitlines()
    assert head.startswith(HEAD + " CSLM | n-gram model | both (")
    assert head.endswith(" CSLM) | gain | both, known words only |")
    shortlist_only, network, n_gram, both = map(float, cells(dev)[3:7])
    assert shortlist_only < network
    assert both <= min(network, n_gram)
    assert (cells(train)[0], empty) == ("train.fr", "")
    # outside: <unk> and `rare`, 0.1 and 0.15
    assert last == (
        "The weight is the best for dev.fr. Outside the shortlist: 2 words of the n-gram model, <unk> among them, "
        "with a mass of 0.2500 without context."
    )
    assert " ".join(strange).startswith("Words of the shortlists that the n-gram model does not know: 3. They, ")


def test_perplexity_of_standard_input(here):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    arguments = ["perplexity", "cslm", "--lm", "lm.arpa.gz"]
    program = Path(sys.executable).with_name("moses-rnn-cslm")
    data = gzip.compress((here / "dev.fr").read_bytes())
    done = subprocess.run([program, *arguments, "-"], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    _, out, _ = cslm(*arguments, "dev.fr")
    assert done.stdout.decode() == out.replace("| dev.fr |", "| - |").replace("best for dev.fr.", "best for -.")


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
    assert messages == "moses-rnn-cslm: out: exists already; use --force to replace it\n"
    assert (here / "out").read_text() == "precious"
    assert cslm("export-nplm", "cslm", "out", "--dev", "dev.fr", "--force")[0] == 0
    assert (here / "out").read_bytes().startswith(b"\\config\n")


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
    (["perplexity", "dev.fr", "dev.fr"], 3, "dev.fr: expected a model folder, found a file"),
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


LMS = [
    (SMALL.arpa()[:-40], "lm: expected a language model that KenLM reads, found: Cannot read model '"),
    (b"le chat\n", "lm: expected a language model that KenLM reads, found: Cannot read model '"),
    (SMALL.arpa().replace(b"-1.0000000\t<unk>", b"-99\t<unk>"), "lm: expected a model that gives <unk> a probability, found 1e-99\n"),
    (SMALL.arpa().replace(b"le chat", b"<unk> chat"), "lm: expected no n-gram with <unk>, found '<unk> chat'\n"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), LMS, ids=["cut", "text", "no <unk>", "<unk>"])
def test_n_gram_models_that_cannot_be_used(here, data, message):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    (here / "lm").write_bytes(data)
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "--lm", "lm")
    assert (code, out) == (3, "")
    assert messages.startswith(f"moses-rnn-cslm: {message}")


def test_an_n_gram_model_needs_kenlm(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if it were not installed
    code, _, messages = cslm("perplexity", "cslm", "dev.fr", "--lm", "lm.arpa")
    assert (code, messages.startswith("moses-rnn-cslm: kenlm is not installed: pip install 'moses-rnn[lm]' (")) == (
        1,
        True,
    )


def test_a_shortlist_that_nplm_cannot_read_is_refused_and_nothing_is_written(here):
    odd = checkpoint()
    odd.target_vocabulary.words[2] = b"le la"
    save_checkpoint(here / "odd", odd)
    code, _, messages = cslm("export-nplm", "odd", "out", "--dev", "dev.fr")
    assert (code, messages) == (
        3,
        "moses-rnn-cslm: expected words without blanks, each once, as NPLM reads them, found 'le la'\n",
    )
    assert "out" not in names(here)


def test_a_model_of_another_kind_is_refused(here):
    config = json.loads((here / "cslm" / "config.json").read_text())
    (here / "cslm" / "config.json").write_text(json.dumps(config | {"network": None}))
    code, _, messages = cslm("perplexity", "cslm", "dev.fr")
    assert code == 3
    assert "cslm/config.json: expected network to be bengio or cslm or rnnlm, found None" in messages
    code, _, messages = cslm("export-nplm", "cslm", "out", "--dev", "dev.fr")
    assert code == 3
    assert "cslm/config.json: expected network to be 'cslm', as moses-rnn-cslm train writes it, found None" in messages


OTHERS = {
    "bengio": (
        ["--order", "3", "--embedding-size", "4", "--hidden-size", "5", "--direct"],
        "3-gram, 4 → 8 → 5 and directly",
        "n-grams",
    ),
    "rnnlm": (["--hidden-size", "5", "--bptt", "1"], "RNNLM, H 5, errors followed 1 steps back", "sentences"),
}


@pytest.mark.parametrize("network", OTHERS)
def test_other_networks_are_trained_likewise(here, network):
    sizes, described, unit = OTHERS[network]
    train = ["train", "train.fr", "--network", network, "--dev", "dev.fr", "--model", "m", *sizes, "--max-epochs", "2"]
    code, out, messages = cslm(*train, "--preset", "small", "--device", "cpu")
    assert (code, out) == (0, "")
    for text in (f"network: {described}, ", f" {unit} a minibatch, ", "finished: 2 epochs are done; best held-out "):
        assert text in messages
    assert json.loads((here / "m" / "config.json").read_text())["network"] == network
    code, out, messages = cslm("perplexity", "m", "dev.fr")
    assert (code, messages, out.splitlines()[0]) == (0, "", "| model | dev.fr |")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--network", "rnnlm", "--order", "3"], "--order: --network rnnlm has no such size or switch"),
        (["--hidden-size", "3"], "--hidden-size: --network cslm has no such size or switch"),
        (["--network", "lstm"], "Invalid value for '--network'"),
    ],
)
def test_what_a_network_does_not_have_is_refused(here, options, message):
    before = names(here)
    code, out, messages = cslm("train", "train.fr", "--model", "new", *options)
    assert (code, out) == (2, "")
    assert message in messages
    assert names(here) == before
