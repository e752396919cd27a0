"""Folders loaded from Python, and twenty-odd ways to do it wrongly: each error is one of this package and says which."""

import os
import subprocess
import sys

import pytest
import torch

import moses_rnn
from moses_rnn import ArgumentError, CheckpointError, InputError, MosesRnnError

PAIRS = [("s2", "t2")]


def rnn(models, **options):
    return moses_rnn.load(models / "rnn", **{"device": "cpu", **options})


def search(models):
    return moses_rnn.load(models / "search", device="cpu")


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


# what is done, the kind of error (and of Python's own), the beginning of what it says with the folder as {}
WRONG = {
    "no folder": (lambda m: moses_rnn.load("nowhere"), CheckpointError, "nowhere: expected a model folder, found nothing"),
    "a file": (lambda m: moses_rnn.load(m / "file"), CheckpointError, "{}/file: expected a model folder, found a file"),
    "a language model": (lambda m: moses_rnn.load(m / "cslm"), CheckpointError, "{}/cslm: expected a network of sources and targets, found: CSLM\n  moses-rnn cslm perplexity, moses-rnn nbest add --add and moses_rnn.load_language_model"),
    "no language model": (lambda m: moses_rnn.load_language_model(m / "rnn"), CheckpointError, "{}/rnn: expected a language model, found: RNN Encoder-Decoder\n  moses-rnn-score, moses-rnn nbest add"),
    "an unknown device": (lambda m: rnn(m, device="gpu"), ArgumentError, "device gpu: expected cpu, cuda or cuda:N that torch can use here, found no such device"),
    "an unknown precision": (lambda m: rnn(m, precision="fp16"), ArgumentError, "precision: expected one of auto, fp32, bf16, fp64, found 'fp16'"),
    "too many threads": (lambda m: rnn(m, threads=100_000), ArgumentError, "threads: expected a whole number from 1 to 1024, found 100000"),
    "half a thread": (lambda m: rnn(m, threads=1.5), ArgumentError, "threads: expected a whole number from 1 to 1024, found 1.5"),
    "a text as number": (lambda m: rnn(m).sample(["s2"], "3"), ArgumentError, "samples: expected a whole number from 1 to 2147483647, found '3'"),
    "a seed below 0": (lambda m: rnn(m).sample(["s2"], seed=-1), ArgumentError, "seed: expected a whole number of at least 0, found -1"),
    "one to combine": (lambda m: rnn(m, combine="geometric"), ArgumentError, "combine: expected several folders, which it combines into one network, found {}/rnn alone"),
    "other words": (lambda m: moses_rnn.load([m / "search", m / "other words"]), CheckpointError, "{}/other words: expected the words in target.vocab of {}/search in an ensemble"),
    "lines to score": (lambda m: rnn(m).score(["s2 ||| t2"]), ArgumentError, "pairs[0]: expected a pair (source, target), or (source, target, alignment), found 's2 ||| t2'"),
    "ids": (lambda m: rnn(m).score([([2], [3])]), ArgumentError, "pairs[0]: expected str or bytes without line ends, found [2]"),
    "no factors": (lambda m: moses_rnn.load(m / "factored").score(PAIRS), InputError, "pairs[0]: expected source words with a factor 1 (counted from 0), found 1 in 's2'"),
    "no rule": (lambda m: moses_rnn.load(m / "rules").score(PAIRS), InputError, "pairs[0]: expected a left-hand side such as [X] at the end of the source"),
    "gaps alone": (lambda m: moses_rnn.load(m / "rules").score([("[X][X] s2 [X]", "[X][X] t2 [X]")]), InputError, "pairs[0]: expected (source, target, alignment) with the alignment of the rule's non-terminals, found no alignment"),
    "rare words alone": (lambda m: moses_rnn.load(m / "rare").score(PAIRS), InputError, "pairs[0]: expected (source, target, alignment), as this model needs alignments to annotate rare words, found no alignment"),
    "links of others": (lambda m: moses_rnn.load(m / "rare").score([("s2", "t2", "0-3")]), InputError, "pairs[0]: expected links between 1 source and 1 target words, counted from 0, found 0-3"),
    "one text to sample": (lambda m: rnn(m).sample("s2 s3"), ArgumentError, "sources: expected an iterable of texts, found a single one: 's2 s3'\n  Put a single one into a list: ['s2 s3']."),
    "a blank source": (lambda m: rnn(m).sample(["s2", " "]), InputError, "sources:2: expected a source phrase, found a blank line"),
    "no temperature": (lambda m: rnn(m).sample(["s2"], temperature=0), ArgumentError, "temperature: expected a number above 0, found 0"),
    "a long sentence": (lambda m: search(m).translate(["s2", "s2 " * 1001]), InputError, "sentences:2: expected at most 1,000 words in a line to translate, found 1,001"),
    "rules to translate by": (lambda m: moses_rnn.load(m / "rules").translate(["s2"]), InputError, "{}/rules: expected a model of plain words, found one of hierarchical rules"),
    "a table of another": (lambda m: search(m).explain("s2", "t2", table=m / "table"), CheckpointError, "table: expected an RNN Encoder-Decoder to compare with a table, found RNNsearch of sentences"),
    "annotated words": (lambda m: moses_rnn.load(m / "rare").explain("s2", "t2"), CheckpointError, "{}/rare: expected a model of plain words to explain, found one that learned annotated rare words"),
    "a byte string as folder": (lambda m: moses_rnn.load(bytes(m / "rnn")), ArgumentError, "folder: expected a path, as str or os.PathLike, found b'"),
    "nothing as folder": (lambda m: moses_rnn.load(None), ArgumentError, "folder: expected an iterable of folders, or one folder, found None"),
    "a number among folders": (lambda m: moses_rnn.load([m / "rnn", 5]), ArgumentError, "folder: expected a path, as str or os.PathLike, found 5"),
    "several language models": (lambda m: moses_rnn.load_language_model([m / "cslm"]), ArgumentError, "folder: expected a path, as str or os.PathLike, found ["),
    "no pairs": (lambda m: rnn(m).score(None), ArgumentError, "pairs: expected an iterable of pairs, found None"),
    "a number of targets": (lambda m: rnn(m).score_iter(["s2"], 5), ArgumentError, "targets: expected an iterable of texts, found 5"),
    "no sources": (lambda m: rnn(m).summaries(2.5), ArgumentError, "phrases: expected an iterable of texts, found 2.5"),
    "a side that there is not": (lambda m: rnn(m).word_vectors("left"), ArgumentError, "side: expected one of source, target, found 'left'"),
    "no neighbours": (lambda m: rnn(m).nearest(["s2"], count=0), ArgumentError, "count: expected a whole number from 1 to "),
    "a word alone": (lambda m: rnn(m).nearest("s2"), ArgumentError, "texts: expected an iterable of texts, found a single one: 's2'"),
    "an unknown word": (lambda m: rnn(m).nearest(["s99"]), InputError, "{}/rnn: expected words of the source shortlist, found 's99'"),
    "a blank phrase": (lambda m: rnn(m).nearest(["s2"], among=["s3", " "]), InputError, "among:2: expected a source phrase, found a blank line"),
    "no sentence": (lambda m: moses_rnn.load_language_model(m / "cslm").word_scores(None), ArgumentError, "sentence[0]: expected str or bytes without line ends, found None"),
    "a text as temperature": (lambda m: rnn(m).sample(["s2"], temperature="1"), ArgumentError, "temperature: expected a number above 0, found '1'"),
    "an endless temperature": (lambda m: rnn(m).sample(["s2"], temperature=10**400), ArgumentError, "temperature: expected a number above 0, found 1000"),
    "a number as table": (lambda m: rnn(m).explain("s2", "t2", table=5), ArgumentError, "table: expected a path, as str or os.PathLike, found 5"),
    "no table": (lambda m: moses_rnn.read_table(None), ArgumentError, "path: expected a path, as str or os.PathLike, found None"),
    "a path with a NUL": (lambda m: moses_rnn.read_table("a\0b"), ArgumentError, "path: expected a path, as str or os.PathLike, found 'a\\x00b'"),
    "a number to train on": (lambda m: moses_rnn.train(5, model=m / "new"), ArgumentError, "phrase_table: expected a path, as str or os.PathLike, found 5"),
    "no folder to train": (lambda m: moses_rnn.train(m / "table", model=None), ArgumentError, "model: expected a path, as str or os.PathLike, found None"),
    "a text as table": (lambda m: moses_rnn.read_table(m / "text"), InputError, "{}/text:1: expected at least 3 fields separated by '|||'"),
    "a pipe as table": (lambda m: moses_rnn.read_table(pipe(m)), InputError, "{}/pipe: expected a regular file, because it is read more than once, found a pipe"),
    "standard input": (lambda m: moses_rnn.read_table("-"), ArgumentError, "path: expected a file, which can be read more than once, found standard input"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore:.*learned from phrases")
def test_a_wrong_use_is_an_error_that_says_what_was_expected(name, models):
    use, kind, message = WRONG[name]
    with pytest.raises(MosesRnnError) as error:
        use(models)
    assert type(error.value) is kind or kind is InputError
    assert isinstance(error.value, ValueError if kind is ArgumentError else kind)
    assert str(error.value).startswith(message.replace("{}", str(models)))


@pytest.mark.parametrize(
    "option", [{"architecture": ["encdec"]}, {"source_embeddings": 5}, {"preset": None, "variant": b"x"}]
)
def test_options_of_training_of_the_wrong_type_are_named(option, models):
    with pytest.raises(ArgumentError, match=f"^{list(option)[-1]}: expected"):
        moses_rnn.train(models / "table", model=models / "new", **option)


def test_a_device_that_is_not_there(models):
    if not torch.cuda.is_available():
        with pytest.raises(ArgumentError, match="device cuda: expected a CUDA device, found none"):
            rnn(models, device="cuda")


def test_networks_are_combined_as_said(models):
    def score(folders, combine=None):
        return moses_rnn.load(folders, device="cpu", combine=combine).score(PAIRS)[0]

    folders = [models / "rnn", models / "groundhog"]
    first, second = map(score, folders)
    geometric, mean_log, arithmetic = (score(folders, how) for how in ("geometric", "mean-log", "arithmetic"))
    assert score(folders) == geometric
    assert score([str(folders[0])]) == first
    assert mean_log == pytest.approx((first + second) / 2, rel=1e-5)
    assert arithmetic > mean_log + 1e-3
    assert arithmetic != pytest.approx(geometric, rel=1e-5)


def test_threads_are_torchs(models):
    before = torch.get_num_threads()
    try:
        rnn(models, threads=3, device=torch.device("cpu"))
        assert torch.get_num_threads() == 3
        moses_rnn.load_language_model(models / "cslm", threads=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_importing_needs_no_library():
    program = (
        "import sys, moses_rnn\nassert moses_rnn.__version__\nassert 'load' in dir(moses_rnn)\n"
        "assert not {'torch', 'numpy', 'click'} & sys.modules.keys()\n"
        "moses_rnn.MosesRnnError\nassert 'torch' not in sys.modules\n"
        "try: moses_rnn.laod\nexcept AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'moses_rnn' has no attribute 'laod'\n"


def test_every_name_is_there():
    for name in moses_rnn.__all__:
        assert getattr(moses_rnn, name) is not None
