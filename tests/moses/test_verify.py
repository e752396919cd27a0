"""moses-rnn verify with the real decoders: what is right passes, what is wrong does not."""

import gzip
import itertools
import os
import random
import re
import signal
import subprocess

import pytest

from moses_rnn.moses.dictionaries import KINDS
from tests.commands import program, run
from tests.conftest import EXAMPLES, TINY
from tests.moses.decoding import decode

pytestmark = [pytest.mark.moses, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def scored(tmp_path_factory, moses_root):
    """The example table, scored by a tiny model, with an ini; some of its scores are very low."""
    folder = tmp_path_factory.mktemp("scored")
    for name in ("phrase-table.gz", "lm.arpa.gz", "moses.ini"):
        (folder / name).symlink_to(EXAMPLES / name)
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.3", "--quiet", cwd=folder)
    run("score", "phrase-table.gz", "--moses-ini", "moses.ini", "--allow-misfit", "--quiet", cwd=folder)
    return folder


def paste_commands(messages, folder, moses_root):
    for command in re.findall(r"make the dictionary with: (.*)\n", messages):
        environment = {"MOSES_ROOT": str(moses_root), "PATH": "/usr/bin:/bin"}
        subprocess.run(command, shell=True, check=True, cwd=folder, env=environment, capture_output=True)


def verify(folder, table, *options):
    return run("verify", table, *options, cwd=folder, check=False)


@pytest.mark.parametrize("options", [[], ["--whole"]], ids=["sample", "whole"])
def test_all_kinds_show_what_the_table_says(moses_root, scored, options):
    done = verify(scored, "phrase-table.rnn.gz", "--moses-ini", "moses.rnn.ini", *options)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    verdicts = re.findall(r"(?m)^(\S+) +ok: (\d+) pairs, [\d,]+ values, max \|Δ\| (\S+)", done.stdout)
    assert [kind for kind, _, _ in verdicts] == ["ini", *KINDS]
    assert all(int(pairs) > 300 and float(largest.rstrip(";")) <= 1e-4 for _, pairs, largest in verdicts)


def test_low_scores_and_odd_lines(moses_root, tmp_path):
    lines = ["a ||| b ||| 0.5 1e-38 ||| 0-0\n", "a ||| c ||| 1e-43 1 ||| 0-0\n", "a ||| d ||| 1e-60 0.1 ||| 0-0\n", "é\u00a0b ||| c\u2028 ||| 1 1 ||| 0-0\n"]  # fmt: skip
    (tmp_path / "low").write_text("".join(lines))
    done = verify(tmp_path, "low")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok: 4 pairs, 8 values") == 5
    assert "3 at or below -87" in done.stdout


def test_an_unsorted_table_loses_pairs_in_some_kinds(moses_root, tmp_path):
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        some = list(itertools.islice(lines, 2000))
    random.Random(1).shuffle(some)
    (tmp_path / "shuffled").write_bytes(b"".join(some))
    done = verify(tmp_path, "shuffled", "--whole", "--kind", "text", "--kind", "probing", "--sources", "500")
    assert done.returncode == 3
    assert "text     ok" in done.stdout
    assert re.search(r"probing  WRONG.*\n +\d+ pairs not found by the decoder, first: ", done.stdout)
    assert "shuffled: the decoder does not see what the table says" in done.stderr


def test_a_sample_shows_what_parts_the_lines_of_a_source(moses_root, tmp_path):
    lines = [f"b ||| b{i:02d} ||| 0.5 0.4 0.3 0.2 ||| 0-0\n" for i in range(100)]
    (tmp_path / "parted").write_text("".join([*lines[:50], "c ||| c ||| 1 1 1 1 ||| 0-0\n", *lines[50:]]))
    done = verify(tmp_path, "parted", "--sources", "1", "--kind", "text", "--kind", "probing")
    assert done.returncode == 3
    assert "text     ok" in done.stdout
    assert "probing  WRONG" in done.stdout


def test_many_scores_at_the_floor(moses_root, tmp_path):
    halves, lows = " ".join(["0.5"] * 14), " ".join(["1e-50"] * 14)
    lines = [f"{word} ||| {word}{i} ||| {halves} ||| 0-0\n" for word in "ab" for i in range(10)]
    lines.insert(0, f"a b ||| x ||| {lows} ||| 0-0 1-0\n")
    (tmp_path / "low").write_text("".join(lines))
    done = verify(tmp_path, "low")
    assert done.stdout.count("ok: 21 pairs, 294 values") == 5, done.stdout


def test_a_program_that_fails_is_named_and_the_others_go_on(moses_root, tmp_path):
    (tmp_path / "t").write_text("b ||| b ||| 0.5 0.5\na ||| b ||| 0.5 0.5\n" * 2000)  # not sorted
    done = verify(tmp_path, "t", "--whole", "--kind", "compact", "--kind", "text")
    assert done.returncode == 1
    assert re.search(r"compact  FAILED: \S+processPhraseTableMin .*\n  ended with code", done.stdout)
    assert "text     ok: 2 pairs" in done.stdout
    assert "t: some comparisons are missing: a Moses program failed" in done.stderr


def test_a_place_that_moses_cannot_read(moses_root, tmp_path):
    (tmp_path / "a b").write_text("a ||| b ||| 0.5\n")
    done = verify(tmp_path, "a b", "--whole", "--kind", "text")
    assert (done.returncode, "/a b: expected a path without blanks and '#'" in done.stderr) == (3, True)


def test_the_dictionary_of_an_ini_is_compared_too(moses_root, scored):
    options = ["--table", "phrase-table.rnn.gz", "--type", "ProbingPT", "-o", "probing.ini", "--force"]
    paste_commands(run("ini", "moses.ini", *options, cwd=scored).stderr, scored, moses_root)
    options = ["--moses-ini", "probing.ini", "--kind", "text"]
    done = verify(scored, "phrase-table.rnn.gz", *options)
    assert re.search(r"(?m)^ini +ok: ", done.stdout), done.stdout + done.stderr
    # and a dictionary of another table is not taken for it
    with gzip.open(scored / "phrase-table.rnn.gz", "rt", encoding="utf-8") as lines:
        fields = [line.split(" ||| ", 3) for line in lines]
    others = [(source, target, f"0.123 {scores.split(' ', 1)[1]}", rest) for source, target, scores, rest in fields]
    (scored / "other").write_text("".join(" ||| ".join(line) for line in others))
    done = verify(scored, "other", *options)
    assert done.returncode == 3
    assert re.search(r"(?m)^ini +WRONG: ", done.stdout), done.stdout
    # nor one of a table with more lines
    (scored / "fewer").write_text("".join(" ||| ".join(line) for line in fields[::2]))
    done = verify(scored, "fewer", *options)
    assert done.returncode == 3
    assert re.search(r"(?m)^ini +WRONG: .*\n +[\d,]+ pairs only in the decoder's dictionary, ", done.stdout), (
        done.stdout
    )
    (scored / "nowhere.ini").write_text(
        (scored / "probing.ini").read_text().replace("phrase-table.rnn.probing", "nowhere")
    )
    done = verify(scored, "phrase-table.rnn.gz", "--moses-ini", "nowhere.ini")
    assert (done.returncode, "found nothing at nowhere" in done.stderr) == (3, True)


def test_nothing_temporary_stays_after_sigterm(moses_root, tmp_path):
    (tmp_path / "place").mkdir()
    command = [*program("verify"), EXAMPLES / "phrase-table.gz", "--whole", "--sources", "5000"]  # fmt: skip
    running = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path / "place")}, stderr=subprocess.PIPE)
    assert b"text: moses translates" in running.stderr.readline()
    running.terminate()
    running.stderr.close()
    assert running.wait(timeout=60) == 128 + signal.SIGTERM
    assert not list((tmp_path / "place").iterdir())


@pytest.fixture(scope="module")
def real(tmp_path_factory, moses_root, multi30k):
    """The Multi30k system as text and in all binary kinds, without and with a score, whose weight is 0."""
    folder = tmp_path_factory.mktemp("real")
    for path in multi30k.iterdir():
        (folder / path.name).symlink_to(path)
    run("train", "phrase-table.gz", *TINY, "--max-minutes", "0.2", "--quiet", cwd=folder)
    run("score", "phrase-table.gz", "--allow-misfit", "--quiet", cwd=folder)
    run("ini", "moses.tuned.ini", "--table", "phrase-table.rnn.gz", "--weight", "0", "-o", "moses.rnn.ini", cwd=folder)
    return folder


@pytest.mark.parametrize(
    "kind", ["PhraseDictionaryMemory", "PhraseDictionaryCompact", "PhraseDictionaryOnDisk", "ProbingPT"]
)
def test_with_weight_zero_every_kind_translates_as_its_baseline(moses_root, real, kind):
    with gzip.open(real / "val.en.gz", "rt", encoding="utf-8", newline="\n") as lines:
        sentences = lines.read().split("\n")[:-1]
    search = "-search-algorithm", "1"
    translations = []
    for table in ("phrase-table.gz", "phrase-table.rnn.gz"):
        ini = f"{kind}.{table}.ini"
        done = run("ini", "moses.tuned.ini", "--table", table, "--type", kind, "--weight", "0", "-o", ini, cwd=real)
        paste_commands(done.stderr, real, moses_root)
        translations.append(decode(moses_root, real, ini, sentences, *search))
    assert [len(translation) for translation in translations] == [1014, 1014]
    others = [(source, a, b) for source, a, b in zip(sentences, *translations, strict=True) if a != b]
    for source, *both in others:  # of equal totals, the decoder takes either, in every run anew
        nbest = decode(moses_root, real, ini, [source], *search, "-n-best-list", "-", "50")
        fields = [line.split(" ||| ") for line in nbest if line.count(" ||| ") >= 3]
        totals = {hypothesis.strip(): float(total) for _, hypothesis, _, total, *_ in reversed(fields)}
        assert totals[both[0].strip()] == totals[both[1].strip()]
    print(f"{kind}: {1014 - len(others)} sentences byte for byte, {len(others)} of equal totals")
    for path in real.iterdir():
        if path.suffix in {".minphr", ".ondisk", ".probing"}:
            subprocess.run(["rm", "-rf", path], check=True)
