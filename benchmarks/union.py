"""Adds the translations of networks to Moses's n-best lists, so that both can be reranked together.

    moses-rnn nmt translate test.en --model first --model second --unknown never --n-best 12 own.gz -o test.own
    moses-rnn nbest add own.gz --source test.en --add first --add second --add lm.arpa -o own.more.gz
    moses-rnn nbest add test.nbest.gz --source test.en --add first --add second -o test.more.gz
    python benchmarks/union.py test.more.gz own.more.gz both.gz --rename KENLM0=LM0

A new translation gets the mean of each of Moses's features over its sentence's list, unless its own list has this
feature, and Own0= 1; Moses's own hypotheses have Own0= 0. The weight of Own0 says how much more the networks trust a
translation that Moses did not find.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from statistics import fmean

from moses_rnn.files.streams import read_lines
from moses_rnn.moses.nbest import NBestLine, parse_nbest
from moses_rnn.table.phrases import words

OWN, WORDS = "Own0", "WordPenalty0"


def new_lines(
    sentence: int, lines: list[NBestLine], own: Iterable[NBestLine], renamed: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the translations that Moses's list of this sentence lacks."""
    known = {tuple(words(line.hypothesis)) for line in lines}
    labels = [dict(line.labels()) for line in lines]
    means = {name: [fmean(column) for column in zip(*(of[name] for of in labels), strict=True)] for name in labels[0]}
    total = fmean(float(line.total) for line in lines)
    for line in own:
        found = tuple(words(line.hypothesis))
        if found and found not in known:
            known.add(found)
            given = {renamed.get(name, name): values for name, values in line.labels()}
            values = {**means, **{name: given[name] for name in means.keys() & given}, WORDS: [-len(found)], OWN: [1]}
            features = " ".join(f"{name}= {' '.join(f'{value:.6g}' for value in of)}" for name, of in values.items())
            yield b"%d ||| %s ||| %s ||| %.6g\n" % (sentence, b" ".join(found), features.encode(), total)


def main() -> None:
    """Write the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moses", help="lists of Moses")
    parser.add_argument("own", help="lists of networks")
    parser.add_argument("output", help="the union, compressed by gzip")
    parser.add_argument("--rename", action="append", default=[], metavar="OWN=MOSES", help="a feature of the own lists")
    given = parser.parse_args()
    renamed = dict(pair.split("=") for pair in given.rename)
    moses, own = (
        {sentence: list(lines) for sentence, lines in itertools.groupby(parse_nbest(read_lines(path), path), SENTENCE)}
        for path in (given.moses, given.own)
    )
    with gzip.open(given.output, "wb", 1) as file:
        for sentence, lines in moses.items():
            for line in lines:
                plain = line.line.split(b" ||| ")[:4]  # without alignments, which new translations lack
                end = line.with_features([(OWN, [b"0"])]).split(b" ||| ")[2]
                file.write(b" ||| ".join([*plain[:2], end, line.total]) + b"\n")
            file.writelines(new_lines(sentence, lines, own.get(sentence, []), renamed))


SENTENCE = attrgetter("sentence")

if __name__ == "__main__":
    main()
