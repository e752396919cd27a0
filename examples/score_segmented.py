"""Add the score of a network of subwords to Moses's n-best lists of words.

    python examples/score_segmented.py dev.nbest.gz --source dev.en --model subwords \\
        --segment 'subword-nmt apply-bpe -c codes' -o dev.more.gz

--segment is the command, from lines on stdin to lines on stdout, that segmented the texts from which the network
learned (moses-rnn nmt train). Each hypothesis gets the feature SUBWORDS0, log p of its subwords; if the list has that,
the new one is SUBWORDS1. Tune and rerank the new lists with moses-rnn nbest.
"""

from __future__ import annotations

import argparse
import gzip
import shlex
import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import moses_rnn


def read_lines(path: Path) -> list[bytes]:
    """Read the lines of a file, plain or gzip."""
    data = path.read_bytes()
    return lines_of(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)


def lines_of(data: bytes) -> list[bytes]:
    """Split data into lines; the last one may lack its end."""
    return data.removesuffix(b"\n").split(b"\n")


def segment(command: str, lines: Sequence[bytes]) -> list[bytes]:
    """Run the command on lines; raise SystemExit unless it returns as many."""
    text = b"".join(line + b"\n" for line in lines)
    done = subprocess.run(shlex.split(command), input=text, stdout=subprocess.PIPE, check=True)  # noqa: S603, the user's
    segmented = lines_of(done.stdout)
    if len(segmented) != len(lines):
        raise SystemExit(f"{command}: expected {len(lines):,} lines, found {len(segmented):,}")
    return segmented


def main() -> None:
    """Score a list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("nbest", type=Path, help="n-best list, plain or .gz")
    parser.add_argument("--source", type=Path, required=True, help="the text that the decoder read, plain or .gz")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--segment", required=True, help="command that segments lines")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the new list (.gz)")
    given = parser.parse_args()
    if given.output.exists():
        raise SystemExit(f"{given.output} exists already")
    hypotheses = [line.split(b" ||| ") for line in read_lines(given.nbest)]
    sources = segment(given.segment, read_lines(given.source))
    sentences = 1 + max(int(fields[0]) for fields in hypotheses)
    if sentences > len(sources):
        raise SystemExit(f"{given.source}: expected {sentences:,} lines or more, found {len(sources):,}")
    targets = segment(given.segment, [fields[1].strip() for fields in hypotheses])
    pairs = ((sources[int(fields[0])], target) for fields, target in zip(hypotheses, targets, strict=True))
    scores = moses_rnn.load(given.model).score_iter(pairs)
    taken = {word for fields in hypotheses for word in fields[2].split()}
    label = next(label for n in count() if (label := b"SUBWORDS%d=" % n) not in taken)
    for fields, score in zip(hypotheses, scores, strict=True):
        fields[2] = b"%s %s %.9g" % (fields[2].rstrip(), label, score)
    given.output.write_bytes(gzip.compress(b"".join(b" ||| ".join(fields) + b"\n" for fields in hypotheses), 1))


if __name__ == "__main__":
    main()
