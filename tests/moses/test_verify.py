"""moses-rnn-verify with the real decoders: what is right passes, what is wrong does not."""

import gzip
import itertools
import random
import re
import subprocess

import pytest

from tests.conftest import EXAMPLES, TINY, run

pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]
KINDS = ("text", "compact", "on-disk", "probing", "moses2")


@pytest.fixture(scope="module")
def scored(tmp_path_factory, moses_root):
    """The example table, scored by a tiny model, with an ini; some of its scores are very low."""
    folder = tmp_path_factory.mktemp("scored")
    for name in ("phrase-table.gz", "lm.arpa.gz", "moses.ini"):
        (folder / name).symlink_to(EXAMPLES / name)
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.3", "--quiet", cwd=folder)
    run("score", "phrase-table.gz", "--moses-ini", "moses.ini", "--quiet", cwd=folder)
    return folder


def verify(folder, moses_root, table, *options):
    return run("verify", table, "--moses-root", moses_root, *options, "--quiet", cwd=folder, check=False)


@pytest.mark.parametrize("options", [[], ["--whole", "--seed", "2"]], ids=["sample", "whole"])
def test_all_kinds_show_what_the_table_says(moses_root, scored, options):
    done = verify(scored, moses_root, "phrase-table.rnn.gz", "--moses-ini", "moses.rnn.ini", *options)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    verdicts = re.findall(r"(?m)^(\S+) +ok: (\d+) pairs, [\d,]+ values, max \|Δ\| (\S+)", done.stdout)
    assert [kind for kind, _, _ in verdicts] == list(KINDS)
    assert all(int(pairs) > 300 and float(largest.rstrip(";")) <= 1e-4 for _, pairs, largest in verdicts)


def test_low_scores_and_odd_lines(moses_root, tmp_path):
    lines = ["a ||| b ||| 0.5 1e-38 ||| 0-0\n", "a ||| c ||| 1e-43 1 ||| 0-0\n", "a ||| d ||| 1e-60 0.1 ||| 0-0\n", "é\u00a0b ||| c\u2028 ||| 1 1 ||| 0-0\n"]  # fmt: skip
    (tmp_path / "low").write_text("".join(lines))
    done = verify(tmp_path, moses_root, "low")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok: 4 pairs, 8 values") == 5
    assert "3 at or below -87" in done.stdout


def test_an_unsorted_table_loses_pairs_in_some_kinds(moses_root, tmp_path):
    """What facts of Moses say: these two builders lose what is not together, and say nothing."""
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        some = list(itertools.islice(lines, 2000))
    random.Random(1).shuffle(some)
    (tmp_path / "shuffled").write_bytes(b"".join(some))
    done = verify(
        tmp_path, moses_root, "shuffled", "--whole", "--kind", "text", "--kind", "probing", "--sources", "500"
    )
    assert done.returncode == 3
    assert "text     ok" in done.stdout
    assert re.search(r"probing  WRONG.*\n +\d+ pairs not found by the decoder, first: ", done.stdout)
    assert "shuffled: the decoder does not see what the table says" in done.stderr


def test_a_program_that_fails_is_named(moses_root, tmp_path):
    (tmp_path / "unaligned").write_text("b ||| b ||| 0.5 0.5\na ||| b ||| 0.5 0.5\n" * 2000)
    done = verify(tmp_path, moses_root, "unaligned", "--whole", "--kind", "compact")
    assert done.returncode == 1
    assert "processPhraseTableMin" in done.stderr
    assert "ended with code" in done.stderr


@pytest.fixture(scope="module")
def real(tmp_path_factory, moses_root, multi30k):
    """The Multi30k system as text and in all binary kinds, without and with a score, whose weight is 0."""
    folder = tmp_path_factory.mktemp("real")
    for path in multi30k.iterdir():
        (folder / path.name).symlink_to(path)
    run("train", "phrase-table.gz", *TINY, "--max-minutes", "0.2", "--no-compile", "--quiet", cwd=folder)
    run("score", "phrase-table.gz", "--moses-ini", "moses.tuned.ini", "--output-ini", "moses.rnn.ini", "--weight", "0",
        "--quiet", cwd=folder)  # fmt: skip
    return folder


@pytest.mark.parametrize(
    "kind", ["PhraseDictionaryMemory", "PhraseDictionaryCompact", "PhraseDictionaryOnDisk", "ProbingPT"]
)
def test_with_weight_zero_every_kind_translates_as_its_baseline(moses_root, real, kind):
    with gzip.open(real / "val.en.gz", "rt", encoding="utf-8", newline="\n") as lines:
        sentences = lines.read()
    translations = []
    for table in ("phrase-table.gz", "phrase-table.rnn.gz"):
        ini = f"{kind}.{table}.ini"
        done = run("ini", "moses.tuned.ini", "--table", table, "--type", kind, "--weight", "0", "-o", ini, cwd=real)
        for command in re.findall(r"make the dictionary with: (.*)\n", done.stderr):
            subprocess.run(
                command,
                shell=True,
                check=True,
                cwd=real,
                env={"MOSES_ROOT": str(moses_root), "PATH": "/usr/bin:/bin"},
                capture_output=True,
            )
        decoded = subprocess.run(
            [moses_root / "bin" / "moses", "-f", ini, "-threads", "2"], input=sentences, capture_output=True, text=True, cwd=real, check=False,
        )  # fmt: skip
        assert decoded.returncode == 0, decoded.stderr[-2000:]
        translations.append(decoded.stdout)
    assert translations[0].count("\n") == 1014
    assert translations[0] == translations[1]
    print(f"{kind}: 1,014 sentences, byte for byte")
    for path in real.iterdir():
        if path.suffix in {".minphr", ".ondisk", ".probing"}:
            subprocess.run(["rm", "-rf", path], check=True)
