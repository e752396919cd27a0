"""Writes the share of a corpus that is most like a text of the right domain.

    python moses_configs/moore_lewis.py SHARE --lmplz PROGRAM --domain FILE... --corpus FILE... --output FILE...

Give one tokenised file per language, each time in the same order. Two n-gram models score every line: one of the
domain's text, the other of as many lines, drawn from the corpus at random. The difference of the two cross-entropies
per word ranks the lines (Moore and Lewis 2010, section 2); with two languages, the sum of their differences does
(Axelrod et al. 2011, section 3). The output keeps the order of the corpus.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import kenlm
import numpy as np

ORDER = 4
RARE = b"<rare>"  # stands for all words that occur less than twice in the domain's text


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a text."""
    with path.open("rb") as file:
        yield from file


def n_gram_model(lmplz: str, text: Iterable[bytes]) -> kenlm.Model:
    """A model of a text, by modified Kneser-Ney smoothing."""
    with tempfile.TemporaryDirectory() as folder:
        arpa = Path(folder) / "lm.arpa"
        command = [lmplz, "-o", str(ORDER), "-S", "20%", "-T", folder, "--discount_fallback", "--arpa", str(arpa)]
        done = subprocess.run(command, input=b"\n".join(text), stderr=subprocess.PIPE, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(f"{' '.join(command)}: failed:\n{done.stderr.decode(errors='replace')}")
        return kenlm.Model(str(arpa))


def cross_entropies(model: kenlm.Model, text: Iterable[bytes]) -> np.ndarray:
    """Of each line, in decimal digits per word, its end counted as a word."""
    return np.array([-model.score(line) / (len(line.split()) + 1) for line in text])


def differences(lmplz: str, domain: Path, corpus: Path) -> np.ndarray:
    """Of each line of the corpus; negative for what is more like the domain."""
    counts = Counter(word for line in lines(domain) for word in line.split())
    vocabulary = {word for word, count in counts.items() if count > 1}
    size, total = (sum(1 for _ in lines(path)) for path in (domain, corpus))
    chosen = set(np.random.default_rng(1).choice(total, min(size, total), replace=False).tolist())
    sample = (line for i, line in enumerate(lines(corpus)) if i in chosen)

    def known(text: Iterable[bytes]) -> Iterator[bytes]:
        return (b" ".join(word if word in vocabulary else RARE for word in line.split()) for line in text)

    inside, general = n_gram_model(lmplz, known(lines(domain))), n_gram_model(lmplz, known(sample))
    return cross_entropies(inside, known(lines(corpus))) - cross_entropies(general, known(lines(corpus)))


def main() -> None:
    """Write the best lines."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("share", type=float)
    parser.add_argument("--lmplz", required=True)
    for name in ("domain", "corpus", "output"):
        parser.add_argument(f"--{name}", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    if not 0 < given.share <= 1:
        parser.error(f"expected a share above 0 and at most 1, found {given.share}")
    if len({len(given.domain), len(given.corpus), len(given.output)}) > 1:
        parser.error("expected as many files after --domain, --corpus and --output")
    of_each = [differences(given.lmplz, *paths) for paths in zip(given.domain, given.corpus, strict=True)]
    worse = sum(of_each[1:], start=of_each[0])
    keep = np.zeros(len(worse), dtype=bool)
    keep[np.argsort(worse, kind="stable")[: round(given.share * len(worse))]] = True
    for corpus, output in zip(given.corpus, given.output, strict=True):
        with output.open("wb") as file:
            file.writelines(line for line, kept in zip(lines(corpus), keep, strict=True) if kept)
    print(f"selected: {keep.sum():,} of {len(keep):,} lines", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
