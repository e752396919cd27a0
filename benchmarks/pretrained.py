"""Compares scoring lists with a pretrained model to the loop that people use: one pair at a time.

    python benchmarks/pretrained.py PREFIX --source en --target fr [--sentences N] [--list N] [--loop N] [--one-thread]

The model is a Marian model of OPUS-MT's size (6 + 6 layers of 512 units, 58 101 pieces). Its weights are random, which
takes as long as trained ones. The tokenizer learns pieces from PREFIX; unused ones fill up the vocabulary. A list is a
translation in which two of three words have an alternative, so that hypotheses begin alike about as often as Moses's
do; the share of distinct beginnings decides the ratio, and is printed. The loop scores only some of the pairs. Both
take turns for several rounds, and the best time counts. With --one-thread, this is CPU time, which depends less on
other work on the machine.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import time
from pathlib import Path

import sentencepiece
import torch
import transformers
from stages import Pair, Stage, make_parser, print_rates, time_in_turn, write_json

from moses_rnn.models.pretrained import Pretrained, open_pretrained
from moses_rnn.networks.compute import Compute
from moses_rnn.options import PretrainedOptions
from moses_rnn.table.table_blocks import Pairs

LABELS = 58_101
LEARNED = 4_000  # pieces of each side, at most
VARYING = 2 / 3  # share of words that have an alternative


def save_model(folder: Path, texts: tuple[list[str], list[str]], width: int, layers: int) -> None:
    """Save a model with random weights, and its tokenizer."""
    known = dict.fromkeys(["</s>", "<unk>"])
    for side, lines in zip(("source", "target"), texts, strict=True):
        with (folder / f"{side}.spm").open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=file,
                vocab_size=LEARNED,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        known |= dict.fromkeys(pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size()))
    words = [*known, *(f"unused {i}" for i in range(LABELS - 1 - len(known))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    files = (str(folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    transformers.MarianTokenizer(*files, source_lang="en", target_lang="fr").save_pretrained(folder)
    sizes = {"layers": layers, "ffn_dim": 4 * width, "attention_heads": 8}
    padding = {"pad_token_id": len(words) - 1, "decoder_start_token_id": len(words) - 1}
    config = transformers.MarianConfig(
        vocab_size=len(words),
        d_model=width,
        max_position_embeddings=512,
        activation_function="swish",
        scale_embedding=True,
        eos_token_id=0,
        forced_eos_token_id=0,
        **padding,
        **{f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in sizes.items()},
    )
    torch.manual_seed(1)
    transformers.MarianMTModel(config).save_pretrained(folder)


def lists_of(pairs: list[Pair], size: int) -> list[Pair]:
    """Make a list of each pair, of at most `size` hypotheses: its translation with some words replaced."""
    chance = random.Random(1)  # noqa: S311
    words = [word for _, target in pairs for word in target.split()]
    lists = []
    for source, target in pairs:
        choices = [(word, chance.choice(words) if chance.random() < VARYING else word) for word in target.split()]
        lists += dict.fromkeys((source, b" ".join(map(chance.choice, choices))) for _ in range(size))
    return lists


def share_of_distinct(model: Pretrained, pairs: Pairs) -> float:
    """Return the share of pieces that come after a distinct beginning of a target."""
    sides = model.reader.labels("source", pairs.sources), model.reader.labels("target", pairs.targets)
    beginnings = [(source, target[:i]) for source, target in zip(*sides, strict=True) for i in range(len(target))]
    return len(set(beginnings)) / len(beginnings)


def score_one_by_one(model: Pretrained, pairs: list[Pair]) -> None:
    """Score pairs as people do: the loss of each, times its labels."""
    tokenizer = model.reader.tokenizer
    with torch.inference_mode():
        for source, target in pairs:
            made = tokenizer(source.decode(), text_target=target.decode(), return_tensors="pt")
            -float(model.network(**made).loss) * made["labels"].numel()


def main() -> None:
    """Time the loop and the scorer in each precision."""
    parser = make_parser(__doc__, "prefix")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--list", type=int, default=200, help="hypotheses per sentence")
    parser.add_argument("--loop", type=int, default=100, help="pairs that are scored one by one")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden-size", type=int, default=512)
    parser.add_argument("--bf16", action="store_true", help="also with bf16 products")
    parser.add_argument("--one-thread", action="store_true")
    given = parser.parse_args()
    if given.one_thread:
        torch.set_num_threads(1)
    texts = [Path(f"{given.prefix}.{side}").read_bytes().splitlines() for side in (given.source, given.target)]
    pairs = [pair for pair in zip(*texts, strict=True) if all(pair)]
    lists = lists_of(pairs[: given.sentences], given.list)
    few, together = lists[:: max(len(lists) // given.loop, 1)], Pairs.of(lists)
    with tempfile.TemporaryDirectory() as folder:
        plain = [[line.decode() for line in side] for side in zip(*pairs, strict=True)]
        save_model(Path(folder), (plain[0], plain[1]), given.hidden_size, given.layers)
        model = open_pretrained(f"hf:{folder}", PretrainedOptions())
    clock = time.process_time if given.one_thread else time.perf_counter
    stages = [Stage("one pair at a time", lambda: score_one_by_one(model, few), len(few), clock)]
    for precision in ["fp32", *["bf16"] * given.bf16]:
        scorer = model.make_scorer(Compute("cpu", precision))
        stages.append(Stage(f"hf:, {precision}", lambda scorer=scorer: scorer.log_probs(together), len(lists), clock))
    time_in_turn(stages, given.rounds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    title = f"{len(lists):,} hypotheses of {min(given.sentences, len(pairs)):,} sentences, {LABELS:,} pieces"
    rates = print_rates(title, "hypotheses", stages)
    weights = sum(tensor.numel() for tensor in model.network.parameters()) * 4 / 1e9
    distinct = share_of_distinct(model, together)
    print(f"peak memory: {memory:.1f} GB, of which {weights:.1f} GB are weights; {distinct:.0%} of beginnings distinct")
    write_json(given, memory_gb=memory, hypotheses_per_second=rates, distinct=distinct)


if __name__ == "__main__":
    main()
