"""Every number that leaves a command is finite, or the run ends with exit 1 and says at which line, pair or word."""

import re

import numpy as np
import pytest
import torch

import moses_rnn
from moses_rnn.errors import MosesRnnError
from moses_rnn.models.open import save_model
from moses_rnn.networks.encdec import SWITCHES
from tests.commands import zygote
from tests.models.pairs import SOURCE, TARGET
from tests.models.tiny_lm import SMALL, checkpoint
from tests.networks.checkpoints import (
    cslm_checkpoint,
    encdec_checkpoint,
    rnnlm_checkpoint,
    search_checkpoint,
)
from tests.networks.networks import (
    CSLM_VOCABULARY,
    cslm_network,
    encdec_network,
    rnnlm_network,
    search_network,
)

HUGE = 3e38  # finite in float32; products are not
PAIRS = [("s2 s3", "t4 t5"), ("s2", "t2"), ("s2", "t3"), ("s4", "t3 t2")]
TEXT = ["le chat", "dort", "mal le"]
NUMBER = re.compile(rb"(?<![\w.])[-+]?(nan|inf)\b", re.IGNORECASE)


def grown(model, *names, to=HUGE, word=None):
    """The network with some tensors, or a word's rows of them, as large as that."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name in names:
                rows = tensor if word is None else tensor[word]
                rows.copy_(rows.sign() * to)
    return model


def encdec(*names, **how):
    return encdec_checkpoint(
        grown(encdec_network(SWITCHES["paper"], dtype=torch.float32), *names, **how), SOURCE, TARGET
    )


def of_one_word():
    """An RNN Encoder-Decoder that gives numbers until it has read t3, and none after it."""
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    with torch.no_grad():
        model.decoder.O_y *= 100
    return encdec_checkpoint(grown(model, "decoder.embedding", word=TARGET.words.index(b"t3")), SOURCE, TARGET)


def search(*names):
    return search_checkpoint(grown(search_network(dtype=torch.float32), *names), SOURCE, TARGET)


MODELS = {
    "good": encdec,
    "words": lambda: encdec("decoder.G_r", "decoder.G_l"),
    "word": of_one_word,
    "read": lambda: encdec(*(f"encoder.{name}" for name in ("embedding", "W", "U", "W_z", "U_z"))),
    "search": search,
    "looks": lambda: search("align.W_a", "align.U_a", "align.v"),
    "cslm": lambda: cslm_checkpoint(grown(cslm_network(), "W_1", "W_2", "G"), CSLM_VOCABULARY),
    "rnnlm": lambda: rnnlm_checkpoint(grown(rnnlm_network(dtype=torch.float32), "G"), CSLM_VOCABULARY),
    "unlikely": lambda: cslm_checkpoint(grown(cslm_network(), "b_G", to=1e30), CSLM_VOCABULARY),
    "small": checkpoint,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    here = tmp_path_factory.mktemp("numbers")
    for name, make in MODELS.items():
        save_model(here / name, make())
    table = "".join(f"{source} ||| {target} ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" for source, target in PAIRS)
    for name, lines in {
        "src": [source for source, _ in PAIRS],
        "tgt": [target for _, target in PAIRS],
        "pairs.tsv": map("\t".join, PAIRS),
        "text": [TEXT[0], "", *TEXT[1:]],
        "list": [f"0 ||| {line} ||| LM0= -1 ||| -1" for line in TEXT],
    }.items():
        (here / name).write_text("".join(f"{line}\n" for line in lines))
    (here / "t").write_text(table)
    (here / "never.arpa").write_bytes(SMALL.arpa().replace(b"-0.8239087\trare", b"-inf\trare"))
    (here / "rare").write_bytes(b"le\nle chat\nchat rare\n")
    done = zygote("score", "t", "--model", "good", "-o", "t.gz", "-q", "--allow-misfit", cwd=here)
    assert done.returncode == 0, done.stderr
    return here


SCORED = "t:{}: RNN: expected a log-probability, found .* for '{}'"
NEXT = "expected a log-probability of every word that may follow, found nan"
LISTED = "expected a log-probability, found .* for"
INSIDE = "expected finite numbers inside the network, found nan or infinity"
COMMANDS = [
    ("score t --model word -o out/t.gz -q", SCORED.format(3, r"s2 \|\|\| t3")),
    ("score pairs.tsv --model word --format tsv -o out/t", r"pairs\.tsv:3: RNN: .* for 's2 \|\|\| t3'"),
    ("nmt translate src --model words -q --n-best 3 out/n", f"src:\\d: 's.*': {NEXT}"),
    ("nmt translate src --model looks -o out/t --alignments out/a -q", f"src:\\d: 's.*': {NEXT}"),
    ("extend t --model words --text src --allow-misfit -o out/t.gz -q", f"'s.*': {NEXT}"),
    ("nbest add list --source src --add words --whole --allow-misfit -o out/n -q", f"RNN0, line 2 of the list: RNN: {LISTED} 's2.* ... .*'"),
    ("nbest add list --source src --add cslm -o out/n -q", f"CSLM0, line 2 of the list: CSLM: {LISTED} '.*' in '.*'"),
    ("cslm perplexity text --model cslm", f"text, sentence 1: CSLM: {LISTED} 'le' in 'le chat'"),
    ("cslm perplexity text --model small --model rnnlm", r"text, sentence 1: RNNLM: .*\n.*\n.*The model is rnnlm \(RNNLM\)"),
    ("cslm perplexity text --model unlikely", "text: expected a perplexity that a float can hold, found exp"),
    ("cslm export-nplm out/n --model cslm --dev text", "expected finite weights and a finite mean of log Z, found nan"),
    ("analyse explain t.gz s2|||t3 --model word", r"RNN: expected a log-probability, found .* for 's2 \|\|\| t3'"),
    ("analyse map gates t.gz --model read -o out/g.csv", INSIDE),
    ("analyse map alignments src tgt --model looks --line 2", INSIDE),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_network_that_overflows_ends_the_run(models, tmp_path, command, message):
    ended(models, tmp_path, command, message)


def test_a_word_that_an_n_gram_model_never_expects_ends_the_run(models, tmp_path):
    pytest.importorskip("kenlm")
    command = "cslm perplexity rare --model small --lm never.arpa"
    ended(
        models,
        tmp_path,
        command,
        "rare, sentence 3: CSLM: expected a log-probability, found -inf for 'rare' in 'chat rare'",
    )


def ended(models, out, command, message):
    done = zygote(*(part.replace("out/", f"{out}/") for part in command.split()), cwd=models)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert re.search(rf"^moses-rnn[- ]\w+: {message}", done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    left = b"".join(path.read_bytes() for path in out.iterdir())
    assert not NUMBER.search(done.stdout + left)


CALLS = {
    "score": ("word", lambda model: model.score(PAIRS), r"pairs\[2\]: RNN: .* 's2 \|\|\| t3'"),
    "translate": ("words", lambda model: list(model.translate(["s3 s2"])), f"'s3 s2': {NEXT}"),
    "words": ("cslm", lambda model: model.word_scores(TEXT[1]), "CSLM: .* in 'dort'"),
}


@pytest.mark.parametrize(("folder", "call", "message"), CALLS.values(), ids=CALLS)
def test_python_code_is_told(models, folder, call, message):
    load = moses_rnn.load_language_model if folder == "cslm" else moses_rnn.load
    with pytest.warns() if folder == "words" else np.errstate(), pytest.raises(MosesRnnError, match=f"^{message}"):
        call(load(models / folder))
