"""The files that the documented commands speak of, from the examples."""

import gzip
import itertools
import shutil
import subprocess
import sys

from tests.conftest import EXAMPLES


def write_system(here, table):
    """What train-model.perl leaves, texts, n-best lists and a treebank; the folder."""
    shutil.copy(table, here)
    ini = (EXAMPLES / "moses.ini").read_text().replace("lm.arpa.gz", str(EXAMPLES / "lm.arpa.gz"))
    (here / "moses.ini").write_text(ini.replace("path=phrase-table.gz", f"path={here}/phrase-table.gz"))
    for side in ("en", "fr"):
        (here / f"train.{side}").write_text("".join(sentences(f"train.{side}.gz", 300)))
    pairs = [*zip(*(sentences(f"train.{side}.gz", 300) for side in ("en", "fr")), strict=True)]
    (here / "pairs.tsv").write_text("".join(f"{en[:-1]}\t{fr}" for en, fr in pairs))
    (here / "train.links").write_text("".join(links_between(*pair) + "\n" for pair in pairs))
    for name, side in itertools.product(("dev", "test"), ("en", "fr")):
        (here / f"{name}.{side}").write_text("".join(sentences(f"{name}.{side}", 8)))
    for name in ("dev", "test"):
        texts = [(here / f"{name}.{side}").read_text().splitlines() for side in ("en", "fr")]
        (here / f"{name}.nbest").write_text("".join(n_best_list(*texts)))
    (here / "lm.arpa").write_bytes(gzip.decompress((EXAMPLES / "lm.arpa.gz").read_bytes()))
    (here / "tuned").mkdir()
    (here / "tuned" / "moses.ini").write_text("[weight]\nLM0= 1\n")
    write_treebank(here)
    return here


def sentences(name, count):
    path = EXAMPLES / "corpus" / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return list(itertools.islice(lines, count))


def n_best_list(sources, references):
    """Two hypotheses of each sentence, the worse one first, each a single phrase."""
    for number, (source, reference) in enumerate(zip(sources, references, strict=True)):
        words = reference.split()
        for hypothesis, lm in ((words[::-1], -1), (words, -1.5)):
            spans = f"0-{len(source.split()) - 1}=0-{len(words) - 1}"
            links = links_between(source, reference)
            yield f"{number} ||| {' '.join(hypothesis)}  ||| LM0= {lm} ||| {lm} ||| {spans} ||| {links} \n"


def links_between(source, target):
    """As a word alignment has them: each word with that in its place."""
    return " ".join(f"{i}-{i}" for i in range(min(len(source.split()), len(target.split()))))


def write_treebank(here):
    """Forty trees to learn from, eight to judge by and eight to parse, bracketed and as CoNLL-U."""
    subprocess.run([sys.executable, EXAMPLES / "make_trees.py", here, "--sentences", "40"], check=True)
    for name, (ending, parted) in itertools.product(("dev", "test"), (("trees", "\n"), ("conllu", "\n\n"))):
        text = (here / f"{name}.{ending}").read_text()
        (here / f"{name}.{ending}").write_text(parted.join(text.split(parted)[:8]) + parted)
