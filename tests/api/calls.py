"""Calls of the API with results to compare bit by bit; as a program, their results in a fresh process, as JSON."""

import hashlib
import json
import sys
from pathlib import Path

import moses_rnn

PAIRS = [("s2 s3", "t2"), ("s3", "t3 t4 t2"), ("s2 other s4", "t9"), ("s4", "t2 t2")] * 3
TEXTS = ["t2 t8 t9", "t9 other"]
SIZES = {"hidden_size": 6, "embedding_size": 4, "batch_size": 16}
TINY = {**SIZES, "max_epochs": 1, "seed": 1, "threads": 1, "device": "cpu"}


def write_material(folder):
    lines = [f"s{i % 7} s{i % 5} ||| t{i % 7} t{i % 3} ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1\n" for i in range(140)]
    (folder / "learn").write_text("".join(sorted(set(lines))))
    for side in "st":
        (folder / f"texts.{side}").write_text("".join(f"{side}{i % 7} {side}{i % 5}\n" for i in range(140)))


def load(folder, *names, **options):
    return moses_rnn.load([folder / name for name in names], device="cpu", **options)


def load_language_model(folder, name):
    return moses_rnn.load_language_model(folder / name, device="cpu")


def exact(values):
    return [float(value).hex() for value in values]


def trained(folder, material, place, **options):
    """The hash of the weights after training in a new folder within `place`."""
    model = Path(place) / hashlib.sha256(repr((material, options)).encode()).hexdigest()
    given = [str(folder / name) for name in material] if isinstance(material, list) else folder / material
    moses_rnn.train(given, model=model, held_out=10, force=model.exists(), **{**TINY, **options})
    return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()


CALLS = {
    "score": lambda of, _: exact(load(of, "rnn").score(PAIRS)),
    "score with torch": lambda of, _: exact(load(of, "search").score(PAIRS)),
    "score in float64": lambda of, _: exact(load(of, "rnn", precision="fp64").score(PAIRS)),
    "score in bfloat16": lambda of, _: exact(load(of, "search", precision="bf16").score(PAIRS)),
    "score with an ensemble": lambda of, _: exact(load(of, "rnn", "groundhog").score(PAIRS)),
    "score_iter": lambda of, _: exact(load(of, "search").score_iter(PAIRS, chunk=5)),
    "explain": lambda of, _: repr(load(of, "rnn").explain("s2 s3", "t2 t3", table=of / "table")),
    "explain a sentence": lambda of, _: repr(load(of, "search").explain("s2 s3", "t2 t3")),
    "sample": lambda of, _: repr(load(of, "search").sample(["s2"], 5, max_words=9)),
    "translate": lambda of, _: repr(load(of, "search").translate(["s2 s3"], n_best=2)),
    "summaries": lambda of, _: exact(load(of, "rnn").summaries(["s2", "s3 s4"]).ravel()),
    "neighbours": lambda of, _: repr(load(of, "rnn").nearest(["s2"], among=["s3", "s4 s5"])),
    "a CSLM": lambda of, _: exact(load_language_model(of, "cslm").word_scores("t2 t3")),
    "an RNNLM": lambda of, _: exact(load_language_model(of, "rnnlm").score(TEXTS)),
    "train": lambda of, place: trained(of, "learn", place, maxout_size=4, output_rank=3, shortlist=20),
    "train in threads": lambda of, place: trained(
        of, "learn", place, maxout_size=4, output_rank=3, shortlist=20, threads=2, batch_size=64
    ),
    "train RNNsearch": lambda of, place: trained(
        of, "texts", place, architecture="rnnsearch", source="s", target="t", source_words=20, target_words=20
    ),
    "train an RNNLM": lambda of, place: trained(
        of, ["texts.t"], place, architecture="rnnlm", embedding_size=None, shortlist=20
    ),
}


def all_results(folder, place, names=tuple(CALLS)):
    return {name: CALLS[name](folder, place) for name in names}


if __name__ == "__main__":
    print(json.dumps(all_results(Path(sys.argv[1]), Path(sys.argv[2]))))
