"""Add the score of a network of subwords to Moses's n-best lists of words.

    python examples/score_segmented.py dev.nbest.gz --source dev.en --model subwords \\
        --segment 'subword-nmt apply-bpe -c codes' -o dev.more.gz

--segment is the command, from lines on stdin to lines on stdout, that segmented the texts from which the network
learned (moses-rnn nmt train). Each hypothesis gets the feature SUBWORDS0, log p of its subwords. Tune and rerank the
new lists with moses-rnn nbest.
"""

from __future__ import annotations

import argparse
import gzip
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import moses_rnn


def segment(command: str, lines: Sequence[bytes]) -> list[bytes]:
    """Run the command on lines; raise SystemExit unless it returns as many."""
    text = b"".join(line + b"\n" for line in lines)
    done = subprocess.run(shlex.split(command), input=text, stdout=subprocess.PIPE, check=True)  # noqa: S603, the user's
    segmented = done.stdout.split(b"\n")[:-1]
    if len(segmented) != len(lines):
        raise SystemExit(f"{command}: expected {len(lines):,} lines, found {len(segmented):,}")
    return segmented


def main() -> None:
    """Score a list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("nbest", type=Path, help="n-best list, plain or .gz")
    parser.add_argument("--source", type=Path, required=True, help="the text that the decoder read")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--segment", required=True, help="command that segments lines")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the new list (.gz)")
    given = parser.parse_args()
    data = given.nbest.read_bytes()
    lines = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).split(b"\n")[:-1]
    hypotheses = [line.split(b" ||| ") for line in lines]
    sources = segment(given.segment, given.source.read_bytes().split(b"\n")[:-1])
    targets = segment(given.segment, [fields[1].strip() for fields in hypotheses])
    pairs = ((sources[int(fields[0])], target) for fields, target in zip(hypotheses, targets, strict=True))
    scores = moses_rnn.load(given.model).score_iter(pairs)
    for fields, score in zip(hypotheses, scores, strict=True):
        fields[2] = b"%s SUBWORDS0= %.9g" % (fields[2].rstrip(), score)
    given.output.write_bytes(gzip.compress(b"".join(b" ||| ".join(fields) + b"\n" for fields in hypotheses), 1))


if __name__ == "__main__":
    main()
