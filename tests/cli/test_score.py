import gzip
import hashlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moses_rnn.formats.phrase_table import parse_table, score_words
from tests.conftest import run

INI = """[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={table} input-factor=0 output-factor=0
Distortion
[weight]
TranslationModel0= 0.2 0.2 0.2 0.2
Distortion0= 0.3
"""


def lines_of(path):
    with gzip.open(path) as lines:
        return list(lines)


def without_last_scores(lines, count=1):
    """Lines without the last numbers of their third field."""
    for parsed in parse_table(lines, "scored"):
        added = sum(len(score) + 1 for score in score_words(parsed.scores)[-count:])
        end = parsed.end_of_scores
        yield parsed.line[: end - added] + parsed.line[end:]


def added_values(lines, count=1):
    return [[float(s) for s in score_words(parsed.scores)[-count:]] for parsed in parse_table(lines, "scored")]


@pytest.fixture
def here(tmp_path, table, model):
    """A folder with the table and its model beside it."""
    shutil.copy(table, tmp_path)
    shutil.copytree(model, tmp_path / model.name)
    return tmp_path


def test_the_bare_command_just_works(here):
    done = run("score", "phrase-table.gz", cwd=here)
    table = here / "phrase-table.rnn.gz"
    assert done.stdout == (
        "[feature]\nPhraseDictionaryMemory name=TranslationModel0 num-features=5 "
        f"path={table} input-factor=0 output-factor=0\n\n[weight]\nTranslationModel0= 0.2 0.2 0.2 0.2 0.2\n"
    )
    assert "3,000 lines in and out: phrase-table.rnn.gz" in done.stderr
    lines = lines_of(table)
    assert list(without_last_scores(lines)) == lines_of(here / "phrase-table.gz")
    assert all(0 < value <= 1 for (value,) in added_values(lines))


def test_the_signature_says_what_made_the_numbers(here):
    run("score", "phrase-table.gz", "--word-penalty", cwd=here)
    signature = json.loads((here / "phrase-table.rnn.gz.json").read_text())
    assert (signature["lines"], signature["columns"]) == (3000, 6)
    assert [(c["index"], c["name"]) for c in signature["added_columns"]] == [(4, "RNN"), (5, "WordPenalty")]
    assert "p(target | source)" in signature["added_columns"][0]["meaning"]
    model = here / "phrase-table.rnn-model" / "model.safetensors"
    assert signature["models"][0]["sha256"]["model.safetensors"] == hashlib.sha256(model.read_bytes()).hexdigest()


def test_writes_the_ini_for_mert(here):
    (here / "moses.ini").write_text(INI.format(table=here / "phrase-table.gz"))
    done = run("score", "phrase-table.gz", "--moses-ini", "moses.ini", "--weight", "0.1", cwd=here)
    new = (here / "moses.rnn.ini").read_text()
    expected = INI.format(table=here / "phrase-table.rnn.gz").replace("num-features=4", "num-features=5")
    assert new == expected.replace("0.2 0.2 0.2 0.2", "0.2 0.2 0.2 0.2 0.1")
    assert "TranslationModel0= 0.2 0.2 0.2 0.2 0.1" in done.stdout


def test_three_columns_in_one_pass(here, inverse_model):
    run("score", "phrase-table.gz", "--inverse-model", inverse_model, "--word-penalty", "-o", "t.gz", cwd=here)
    lines = lines_of(here / "t.gz")
    assert list(without_last_scores(lines, 3)) == lines_of(here / "phrase-table.gz")
    direct, inverse, penalty = zip(*added_values(lines, 3), strict=True)
    run("score", "phrase-table.gz", "-o", "direct.gz", cwd=here)
    assert [[value] for value in direct] == added_values(lines_of(here / "direct.gz"))
    assert direct != inverse
    assert max(penalty) == 1


def test_models_of_the_wrong_direction_are_refused(here, inverse_model):
    for arguments in (["--model", inverse_model], ["--inverse-model", "phrase-table.rnn-model"]):
        done = run("score", "phrase-table.gz", *arguments, cwd=here, check=False)
        assert done.returncode == 3
        assert "expected a model of direction" in done.stderr


def test_through_pipes(here):
    command = Path(sys.executable).with_name("moses-rnn-score")
    data = gzip.decompress((here / "phrase-table.gz").read_bytes())
    done = subprocess.run(
        [command, "-", "--model", "phrase-table.rnn-model"], input=data, capture_output=True, cwd=here, check=True
    )
    assert list(without_last_scores(done.stdout.splitlines(keepends=True))) == data.splitlines(keepends=True)
    assert b"TranslationModel0= " in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["phrase-table.gz", "phrase-table.rnn-model"]


def test_natural_logarithms_for_others(here):
    done = run("score", "phrase-table.gz", "--log", "-o", "log.gz", cwd=here)
    assert done.stdout == ""
    assert all(value < 0 for (value,) in added_values(lines_of(here / "log.gz")))


def test_equal_runs_give_equal_bytes_whatever_the_workers(here):
    for name, device in (("a.gz", "cpu"), ("b.gz", "cpu"), ("c.gz", "cpu,cpu")):
        run("score", "phrase-table.gz", "-o", name, "--threads", "1", "--device", device, cwd=here)
    assert (here / "a.gz").read_bytes() == (here / "b.gz").read_bytes() == (here / "c.gz").read_bytes()


def test_odd_lines_stay_as_they_are(here):
    odd = [
        "a\u2028b \u0085 ||| un\u00a0deux ||| 0.5 1e-05 ||| 0-0\n".encode(),
        b"\xff\xfe ||| \x00 ||| 0.5 1\r\n",
        b" ||| la ||| 1 1 |||\n",
        b"a ||| ||| 1 1 ||| ||| 1 1 1 ||| |||\n",
        b"a|||b|||1\t1 \n",
        b"a ||| " + b"b " * 300 + b"||| 1 1",
    ]
    (here / "odd").write_bytes(b"".join(odd))
    run("score", "odd", "--model", "phrase-table.rnn-model", cwd=here)
    assert list(without_last_scores(lines_of(here / "odd.rnn.gz"))) == odd


REFUSED = {
    "bad line": (
        b"a ||| b ||| 1\na ||| b\n",
        "bad:2: expected at least 3 fields separated by '|||', found 2: 'a ||| b'",
    ),
    "bad score": (b"a ||| b ||| 1\na ||| b ||| x\n", "bad:2: expected a number as score 1 of 1, found 'x'"),
    "columns": (b"a ||| b ||| 1\na ||| b ||| 1 2\n", "bad:2: expected 1 scores as on line 1, found 2: '1 2'"),
    "empty": (b"", "bad: expected at least one line, found an empty file"),
    "cut short": (
        gzip.compress(b"a ||| b ||| 1\n" * 9999)[:-20],
        "bad: expected a whole compressed file, found an early end",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_rejected_table_leaves_nothing(here, case):
    content, message = case
    (here / "bad").write_bytes(content)
    before = sorted(path.name for path in here.iterdir())
    done = run("score", "bad", "--model", "phrase-table.rnn-model", "-o", "t.gz", cwd=here, check=False)
    assert done.returncode == 3
    assert f"moses-rnn-score: {message}" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing"], 3, "nothing: expected a file, found nothing of that name (nor nothing.gz)"),
        (["phrase-table.gz", "--model", "no"], 3, "no: expected a model folder, found nothing"),
        (
            ["phrase-table.gz", "-o", "phrase-table.gz"],
            1,
            "phrase-table.gz: is the input phrase-table.gz itself; name another output",
        ),
        (["phrase-table.gz", "-o", "no/t.gz"], 1, "no/t.gz: cannot be written: No such file or directory"),
        (["phrase-table.gz", "--log", "--moses-ini", "moses.ini"], 2, "--moses-ini cannot go with --log"),
        (["phrase-table.gz", "-o", "-", "--moses-ini", "moses.ini"], 2, "--moses-ini cannot go with a table on stdout"),
        (
            ["phrase-table.gz", "--moses-ini", "moses.ini"],
            3,
            "moses.ini:2: expected num-features=4 as the table's scores, found num-features=3",
        ),
        (["phrase-table.gz", "--device", "cuda:99"], 1, "--device cuda:99: "),
        (["phrase-table.gz", "--weight", "1"], 2, "--weight needs --moses-ini, the ini to extend"),
        (["phrase-table.gz", "--output-ini", "x"], 2, "--output-ini needs --moses-ini, the ini to extend"),
        (
            ["phrase-table.gz", "--moses-ini", "moses.ini", "-o", "t.zst"],
            2,
            "--moses-ini needs a plain or .gz table, found t.zst: Moses's scripts read no other",
        ),
        (["phrase-table.gz", "-o", "-", "--on-bad-line", "skip"], 2, "--on-bad-line skip needs an --output"),
        (["phrase-table.gz", "--floor", "1"], 2, "Invalid value for '--floor'"),
        (["phrase-table.gz", "--floor", "nan"], 2, "'nan' is not a finite number"),
        (["phrase-table.gz", "--floor", "-inf"], 2, "'-inf' is not a finite number"),
        ([], 2, "Missing argument 'PHRASE_TABLE'"),
    ],
)
def test_refusals(here, arguments, code, message):
    (here / "moses.ini").write_text(INI.format(table=here / "phrase-table.gz").replace("=4", "=3"))
    before = sorted(path.name for path in here.iterdir())
    done = run("score", *arguments, cwd=here, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == before


def test_without_a_model_the_command_to_run_is_named(here):
    shutil.rmtree(here / "phrase-table.rnn-model")
    done = run("score", "phrase-table.gz", cwd=here, check=False)
    assert done.returncode == 3
    assert (
        "expected a model beside the table, found none\n  Make one with: moses-rnn-train phrase-table.gz" in done.stderr
    )


def test_existing_output_needs_force(here):
    (here / "phrase-table.rnn.gz").write_bytes(b"precious")
    done = run("score", "phrase-table.gz", cwd=here, check=False)
    assert (done.returncode, (here / "phrase-table.rnn.gz").read_bytes()) == (1, b"precious")
    assert "exists already; use --force to replace it" in done.stderr
    run("score", "phrase-table.gz", "--force", cwd=here)
    assert len(lines_of(here / "phrase-table.rnn.gz")) == 3000


def test_a_constant_column_is_reported(here):
    (here / "known").write_bytes(b"the ||| le ||| 1\na ||| un ||| 1\n")
    done = run("score", "known", "--model", "phrase-table.rnn-model", "--word-penalty", cwd=here)
    assert "warning: WordPenalty is the same on every line: MERT cannot find a weight for it" in done.stderr


OUTPUTS = {"long.rnn.gz", "long.rnn.gz.json", "moses.rnn.ini"}


@pytest.fixture(scope="session")
def long_table_once(tmp_path_factory, table, model):
    here = tmp_path_factory.mktemp("long")
    shutil.copytree(model, here / model.name)
    (here / "long").write_bytes(gzip.decompress(table.read_bytes()) * 40)
    (here / "moses.ini").write_text(INI.format(table="long"))
    run("score", *LONG, "-o", "whole.gz", "--output-ini", "whole.ini", cwd=here)
    return here


@pytest.fixture
def long_table(long_table_once, tmp_path):
    """A folder with a table that takes a while, and the result of an undisturbed run in `whole`."""
    shutil.copytree(long_table_once, tmp_path / "here", copy_function=shutil.copy2)
    return tmp_path / "here"


LONG = ["long", "--model", "phrase-table.rnn-model", "--moses-ini", "moses.ini"]


def start_and_wait_for_blocks(folder, blocks, *options):
    command = Path(sys.executable).with_name("moses-rnn-score")
    process = subprocess.Popen(
        [command, *LONG, *options], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    journal = folder / ".long.rnn.gz.journal"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b'"block"') >= blocks):
        time.sleep(0.002)
    return process


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 75), (signal.SIGINT, 75), (signal.SIGUSR1, 75)]
)
def test_stopped_half_way_it_leaves_no_final_file_and_goes_on_to_the_same_bytes(long_table, number, code):
    here = long_table
    process = start_and_wait_for_blocks(here, 2)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == code
    assert not OUTPUTS & names(here)
    if code == 75:
        assert b"lines; the same command with --resume goes on" in messages
    again = run("score", *LONG, cwd=here, check=False)
    assert again.returncode == 1
    assert "long.rnn.gz: an interrupted run left " in again.stderr
    assert " blocks of it; --resume goes on, --force begins anew" in again.stderr
    run("score", *LONG, "--resume", cwd=here)
    assert (here / "long.rnn.gz").read_bytes() == (here / "whole.gz").read_bytes()
    assert (here / "moses.rnn.ini").read_text().replace("long.rnn.gz", "whole.gz") == (here / "whole.ini").read_text()
    signatures = [json.loads((here / f"{name}.json").read_text()) for name in ("long.rnn.gz", "whole.gz")]
    assert {**signatures[0], "output": ""} == {**signatures[1], "output": ""}
    assert not [name for name in names(here) if name.startswith(".")]


def test_resume_refuses_what_would_not_give_the_same_bytes(long_table, table, tmp_path_factory):
    here = long_table
    process = start_and_wait_for_blocks(here, 2)
    process.kill()
    process.communicate()
    run("train", table, "--hidden-size", "9", "--max-epochs", "0.1", "--model", here / "other", "--quiet", cwd=here)
    changes = {
        "floor -87.0, now -50.0": ["--floor", "-50"],
        "precision 'fp32', now 'bf16'": ["--precision", "bf16"],
        "columns ['RNN'], now ['RNN', 'WordPenalty']": ["--word-penalty"],
        "level 1, now 9": ["--compression-level", "9"],
        "models [{": ["--model", "other"],
    }
    for difference, options in changes.items():
        done = run("score", *LONG, *options, "--resume", cwd=here, check=False)
        assert done.returncode == 1
        assert f"expected what the interrupted run was given, found other: {difference}" in done.stderr
    with (here / "long").open("ab") as file:
        file.write(b"one ||| more ||| 1 1 1 1\n")
    done = run("score", *LONG, "--resume", cwd=here, check=False)
    assert "found other: input {'bytes': " in done.stderr
    run("score", *LONG, "--force", cwd=here)
    assert len(lines_of(here / "long.rnn.gz")) == 120_001


def test_two_runs_cannot_write_one_table(long_table):
    first = start_and_wait_for_blocks(long_table, 1)
    first.send_signal(signal.SIGSTOP)  # so that it is surely still at it
    second = run("score", *LONG, "--resume", cwd=long_table, check=False)
    assert second.returncode == 1
    assert f"long.rnn.gz: is being written by another run (process {first.pid} on " in second.stderr
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert (long_table / "long.rnn.gz").read_bytes() == (long_table / "whole.gz").read_bytes()


def test_a_table_that_changes_while_it_is_read_is_refused(long_table):
    process = start_and_wait_for_blocks(long_table, 1)
    with (long_table / "long").open("ab") as file:
        file.write(b"one ||| more ||| 1 1 1 1\n")
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 3
    assert b"long: was changed while it was read; nothing was written" in messages
    assert not OUTPUTS & names(long_table)


def test_a_wrong_option_does_not_cost_what_was_done(long_table):
    process = start_and_wait_for_blocks(long_table, 2)
    process.kill()
    process.communicate()
    for options in (["--model", "typo"], ["--moses-ini", "phrase-table.gz"]):
        assert run("score", *LONG, *options, "--resume", cwd=long_table, check=False).returncode != 0
    run("score", *LONG, "--resume", cwd=long_table)
    assert (long_table / "long.rnn.gz").read_bytes() == (long_table / "whole.gz").read_bytes()


def test_hidden_files_of_others_are_not_written_through(here):
    (here / "victim").write_bytes(b"precious")
    for name in (".t.gz.part", ".t.gz.journal"):
        (here / name).symlink_to("victim")
        assert run("score", "phrase-table.gz", "-o", "t.gz", cwd=here, check=False).returncode == 1
        (here / name).unlink()
    shutil.copy(here / "phrase-table.gz", here / ".t.gz.part")
    done = run("score", ".t.gz.part", "-o", "t.gz", "--model", "phrase-table.rnn-model", cwd=here, check=False)
    assert (done.returncode, ".t.gz.part: is the input " in done.stderr) == (1, True)
    assert (here / ".t.gz.part").read_bytes() == (here / "phrase-table.gz").read_bytes()
    assert (here / "victim").read_bytes() == b"precious"
    (here / "folder.gz").mkdir()
    done = run("score", "phrase-table.gz", "-o", "folder.gz", "--force", cwd=here, check=False)
    assert "folder.gz: is no regular file and is not replaced" in done.stderr


def test_resume_without_a_leftover_begins(here):
    run("score", "phrase-table.gz", "--resume", cwd=here)
    done = run("score", "phrase-table.gz", "--resume", cwd=here, check=False)
    assert (done.returncode, "exists already" in done.stderr) == (1, True)


BAD_LINES = {
    0: b"a ||| b\n",
    1500: b"\n",
    2999: b"a ||| b ||| 1 2 x 4\n",
    3000: b"a ||| b ||| 1 2 3\n",
    9999: b"no end of line",
}


@pytest.fixture
def with_bad_lines(here):
    """A folder with `bad`, which has bad lines at the beginning, in the middle and at the end, and `good` without."""
    good = gzip.decompress((here / "phrase-table.gz").read_bytes()).splitlines(keepends=True)
    lines = list(good)
    for place, line in BAD_LINES.items():
        lines.insert(place, line)
    (here / "bad").write_bytes(b"".join(lines))
    (here / "good").write_bytes(b"".join(good))
    return here


SKIP = ["--model", "phrase-table.rnn-model", "--on-bad-line", "skip"]


def test_bad_lines_can_be_left_out(with_bad_lines):
    here = with_bad_lines
    done = run("score", "bad", *SKIP, cwd=here)
    assert "3,000 lines, 5 left out: bad.rnn.gz" in done.stderr
    assert "warning: 5 lines were left out, to bad.rnn.gz.rejects, and others like: bad:1: expected" in done.stderr
    run("score", "good", *SKIP, cwd=here)
    assert lines_of(here / "bad.rnn.gz") == lines_of(here / "good.rnn.gz")
    assert (here / "bad.rnn.gz.rejects").read_bytes() == b"".join(BAD_LINES.values()) + b"\n"
    assert not (here / "good.rnn.gz.rejects").exists()
    assert json.loads((here / "bad.rnn.gz.json").read_text())["rejected_lines"] == 5
    assert not [name for name in names(here) if name.startswith(".")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_rejects_go_along_with_the_table_when_it_is_resumed(long_table, number):
    here = long_table
    lines = (here / "long").read_bytes().splitlines(keepends=True)
    lines = [odd for i, line in enumerate(lines) for odd in ([b"bad %d\n" % i, line] if i % 1000 == 999 else [line])]
    (here / "long").write_bytes(b"".join(lines) + b"bad end\n")
    rejects = b"".join(line for line in lines if line.startswith(b"bad")) + b"bad end\n"
    process = start_and_wait_for_blocks(here, 3, "--on-bad-line", "skip")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode in (-9, 75)
    assert not {*OUTPUTS, "long.rnn.gz.rejects"} & names(here)
    run("score", *LONG, "--on-bad-line", "skip", "--resume", cwd=here)
    assert lines_of(here / "long.rnn.gz") == lines_of(here / "whole.gz")
    assert (here / "long.rnn.gz.rejects").read_bytes() == rejects


def test_what_was_scored_before_a_bad_line_is_not_lost(long_table):
    here = long_table
    with (here / "long").open("ab") as file:
        file.write(b"a ||| b\n")
    done = run("score", *LONG, cwd=here, check=False)
    assert done.returncode == 3
    assert "long:120001: expected at least 3 fields separated by '|||', found 2: 'a ||| b'" in done.stderr
    assert " lines are scored and kept: while the file stays as it is, --resume goes on with other" in done.stderr
    assert not OUTPUTS & names(here)
    done = run("score", *LONG, "--resume", "--on-bad-line", "skip", cwd=here)
    assert lines_of(here / "long.rnn.gz") == lines_of(here / "whole.gz")
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"a ||| b\n"


def test_a_file_of_bad_lines_is_no_table(here):
    (here / "bad").write_bytes(b"a ||| b ||| 1\n" + b"no\n" * 10_001)
    done = run("score", "bad", *SKIP, cwd=here, check=False)
    assert done.returncode == 1
    assert "These were 10,001 bad lines in a row: is this a phrase table?" in done.stderr
    assert not [name for name in names(here) if name.startswith((".", "bad."))]


def test_strict_refuses_what_is_odd_and_otherwise_it_is_a_warning(here):
    (here / "odd").write_bytes(b"a ||| b ||| 1 0\r\n\xff ||| b ||| 1 -2\r\n")
    done = run("score", "odd", "--model", "phrase-table.rnn-model", cwd=here)
    for kind in ("CRLF line end (2 lines)", "score not above 0 (2 lines)", "not UTF-8 (1 line)"):
        assert f": {kind}: " in done.stderr
    assert list(without_last_scores(lines_of(here / "odd.rnn.gz"))) == (here / "odd").read_bytes().splitlines(True)
    done = run("score", "odd", "--model", "phrase-table.rnn-model", "--strict", "-o", "t.gz", cwd=here, check=False)
    assert (done.returncode, "odd:1: expected no CRLF line end (--strict), found" in done.stderr) == (3, True)


def test_long_lines_are_refused_unless_they_are_allowed(here):
    (here / "long").write_bytes(b"a ||| b ||| 1 ||| " + b"x" * 2000 + b"\n")
    options = ["long", "--model", "phrase-table.rnn-model", "--max-line-bytes"]
    done = run("score", *options, "1000", cwd=here, check=False)
    assert (done.returncode, "long:1: expected a line of at most 1,000 bytes" in done.stderr) == (3, True)
    run("score", *options, "3000", cwd=here)


def test_a_bomb_is_refused_in_little_memory(here):
    """300 MB of one line in a .gz of 300 kB, under a limit of the address space."""
    with gzip.open(here / "bomb.gz", "wb", 1) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    code = (
        "import resource, sys; from moses_rnn.scoring.validation import validate\n"
        "resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))\n"
        "validate(sys.argv[1], print, lambda *_: None)"
    )
    done = subprocess.run([sys.executable, "-c", code, here / "bomb.gz"], capture_output=True, text=True, check=False)
    assert "bomb.gz:1: expected a line of at most 1,048,576 bytes" in done.stderr
    assert "MemoryError" not in done.stderr
    done = run("score", "bomb.gz", "--model", "phrase-table.rnn-model", cwd=here, check=False)
    assert (done.returncode, "bomb.gz:1: expected a line of at most" in done.stderr) == (3, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_heard_while_a_pipe_is_silent(here, number):
    command = Path(sys.executable).with_name("moses-rnn-score")
    process = subprocess.Popen(
        [command, "-", "--model", "phrase-table.rnn-model", "-o", "t.gz"],
        cwd=here, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(b"a ||| b")
    process.stdin.flush()
    while ".t.gz.journal" not in names(here):
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(timeout=30) == 75
    messages = process.stderr.read()
    process.stdin.close()
    process.stderr.close()
    assert b"stopped after 0 lines; what goes through a pipe cannot be gone on with" in messages
    assert names(here) == {"phrase-table.gz", "phrase-table.rnn-model"}


def test_the_models_own_files_are_not_overwritten(here):
    model = here / "phrase-table.rnn-model"
    before = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    for name in ("config.json", "target.vocab"):
        done = run("score", "phrase-table.gz", "-o", model / name, "--force", cwd=here, check=False)
        assert (done.returncode, "is the input " in done.stderr) == (1, True)
    done = run(
        "score", "phrase-table.gz", "-o", model / "config", "--force", cwd=here, check=False
    )  # config.json beside
    assert (done.returncode, "is the input " in done.stderr) == (1, True)
    assert {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()} == before


def test_a_table_scored_twice_is_remarked_on(here):
    run("score", "phrase-table.gz", "-o", "once.gz", cwd=here)
    done = run("score", "once.gz", "--model", "phrase-table.rnn-model", cwd=here)
    assert "warning: once.gz: has RNN already; the new table has it twice" in done.stderr


def test_what_is_missing_after_a_death_at_the_very_end_is_made_by_resume(long_table):
    """The table has its name, and its signature and ini have not: killed between two renames."""
    here = long_table
    trace = "import os, pathlib, signal, sys\nfrom moses_rnn.formats import outputs\n"
    trace += "outputs.OutputFile.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    trace += "from moses_rnn.cli.score import main\nmain(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", trace, *LONG], cwd=here, capture_output=True, check=False)
    assert done.returncode == -9
    assert OUTPUTS & names(here) == {"long.rnn.gz"}
    done = run("score", *LONG, cwd=here, check=False)
    assert (done.returncode, "exists already" in done.stderr) == (1, True)
    run("score", *LONG, "--resume", cwd=here)
    assert names(here) >= OUTPUTS
    assert (here / "long.rnn.gz").read_bytes() == (here / "whole.gz").read_bytes()
    signatures = [json.loads((here / f"{name}.json").read_text()) for name in ("long.rnn.gz", "whole.gz")]
    assert {**signatures[0], "output": ""} == {**signatures[1], "output": ""}
    assert not [name for name in names(here) if name.startswith(".")]


# all of Unicode's White_Space but blank, tab and newline, all C0 and C1 controls but these, and what ends lines elsewhere
ODD_CHARACTERS = [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA1), 0x1680, *range(0x2000, 0x200C)]
ODD_CHARACTERS += [0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF]


def test_no_character_parts_lines_or_words_but_those_of_moses(here):
    """As many lines out as in, counted by wc; every odd character stays inside its word, which is one unknown word."""
    lines = [f"a{chr(c)}b ||| {chr(c)} c{chr(c)} ||| 1 1 ||| 0-0\n".encode() for c in ODD_CHARACTERS]
    (here / "odd").write_bytes(b"".join(lines))
    run("score", "odd", "--model", "phrase-table.rnn-model", "--word-penalty", "-o", "out", cwd=here)
    counts = subprocess.run(["wc", "-l", "odd", "out"], cwd=here, capture_output=True, text=True, check=True).stdout
    assert [int(line.split()[0]) for line in counts.splitlines()[:2]] == [len(lines)] * 2
    scored = (here / "out").read_bytes().split(b"\n")[:-1]
    assert [line + b"\n" for line in without_last_scores(scored, 2)] == lines
    assert {penalty for _, penalty in added_values(scored, 2)} == {0.135335283}  # exp(-2): two words each


def test_random_bytes_are_kept(here):
    draw = random.Random(6)
    lines = gzip.decompress((here / "phrase-table.gz").read_bytes()).splitlines(keepends=True)
    for i in range(0, len(lines), 3):
        line = bytearray(lines[i])
        place = draw.randrange(line.index(b"|||"))
        line[place:place] = bytes(draw.choice([b for b in range(256) if b not in b"\n|]"]) for _ in range(3))
        lines[i] = bytes(line)
    (here / "noisy").write_bytes(b"".join(lines))
    done = run("score", "noisy", "--model", "phrase-table.rnn-model", cwd=here)
    assert list(without_last_scores(lines_of(here / "noisy.rnn.gz"))) == lines
    assert ": not UTF-8 (" in done.stderr


def test_any_order_and_duplicates_are_kept_and_scored_alike(here):
    lines = gzip.decompress((here / "phrase-table.gz").read_bytes()).splitlines(keepends=True)
    draw = random.Random(7)
    shuffled = draw.sample(lines, len(lines)) + draw.sample(lines, 500)
    (here / "shuffled").write_bytes(b"".join(shuffled))
    run("score", "phrase-table.gz", cwd=here)
    run("score", "shuffled", "--model", "phrase-table.rnn-model", cwd=here)
    score_of = {
        line: value for line, (value,) in zip(lines, added_values(lines_of(here / "phrase-table.rnn.gz")), strict=True)
    }
    scored = lines_of(here / "shuffled.rnn.gz")
    assert list(without_last_scores(scored)) == shuffled
    for line, (value,) in zip(shuffled, added_values(scored), strict=True):
        assert value == pytest.approx(score_of[line], rel=1e-5)


def test_a_second_signal_ends_at_once(here):
    """The first one is heard while a pipe is silent only when it is looked at; the second needs nobody."""
    code = "import moses_rnn.scoring.run as r; r._stop = lambda *_: None; import sys; from moses_rnn.cli.score import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "-", "--model", "phrase-table.rnn-model", "-o", "t.gz"],
        cwd=here, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while ".t.gz.journal" not in names(here):
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert process.wait(timeout=30) == 130
    process.stdin.close()


def test_without_a_gpu_the_cpu_is_never_taken_silently(here):
    done = run(
        "score",
        "phrase-table.gz",
        "--device",
        "cuda",
        cwd=here,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 1
    assert "--device cuda: expected a CUDA device, found none (--device cpu works everywhere)" in done.stderr


def test_a_leftover_of_a_dead_run_is_not_silently_used(long_table):
    process = start_and_wait_for_blocks(long_table, 2)
    process.kill()
    process.communicate()
    done = run("score", *LONG, cwd=long_table, check=False)
    assert done.returncode == 1
    assert " blocks of it; --resume goes on, --force begins anew" in done.stderr
    run("score", *LONG, "--force", cwd=long_table)
    assert (long_table / "long.rnn.gz").read_bytes() == (long_table / "whole.gz").read_bytes()


def test_two_outputs_are_never_one_file(here):
    (here / "moses.ini").write_text(INI.format(table="phrase-table.gz"))
    (here / "sub").mkdir()
    before = names(here)
    for output_ini in ("x", "sub/../x", "x.json", "x.rejects", ".x.part", ".x.journal", ".x.rejects.part", ".", "sub/"):
        options = ["-o", "x", "--moses-ini", "moses.ini", "--output-ini", output_ini, "--on-bad-line", "skip"]
        done = run("score", "phrase-table.gz", *options, cwd=here, check=False)
        assert done.returncode == 1
        assert "; name another output" in done.stderr or "expected the name of a file" in done.stderr
        assert "Traceback" not in done.stderr
        assert names(here) == before
    for output in (".", "/", "sub/"):
        done = run("score", "phrase-table.gz", "-o", output, cwd=here, check=False)
        assert (done.returncode, f"{output}: expected the name of a file" in done.stderr) == (1, True)


def test_resume_with_nothing_to_resume_replaces_nothing(here):
    (here / "moses.ini").write_text(INI.format(table="phrase-table.gz"))
    for name in ("moses.rnn.ini", "x.gz.json"):
        (here / name).write_text("tuned for days")
        options = ["-o", "x.gz", "--moses-ini", "moses.ini", "--resume"]
        done = run("score", "phrase-table.gz", *options, cwd=here, check=False)
        assert (done.returncode, f"{name}: exists already" in done.stderr) == (1, True)
        assert (here / name).read_text() == "tuned for days"
        (here / name).unlink()


def test_rejects_of_an_older_table_do_not_stay_beside_the_new_one(with_bad_lines):
    here = with_bad_lines
    run("score", "bad", *SKIP, "-o", "x.gz", cwd=here)
    assert (here / "x.gz.rejects").exists()
    run("score", "good", *SKIP, "-o", "x.gz", "--force", cwd=here)
    assert not (here / "x.gz.rejects").exists()


@pytest.mark.parametrize("place", ["begin", "end"])
def test_rejects_at_either_end_survive_a_resume_over_old_ones(long_table, place):
    here = long_table
    data = (here / "long").read_bytes()
    (here / "long").write_bytes(b"bad\n" * 3 + data if place == "begin" else data + b"bad\n" * 3)
    (here / "long.rnn.gz").write_bytes(b"old")
    (here / "long.rnn.gz.rejects").write_bytes(b"old")
    process = start_and_wait_for_blocks(here, 3, "--on-bad-line", "skip", "--force")
    process.kill()
    process.communicate()
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"old"
    run("score", *LONG, "--on-bad-line", "skip", "--resume", cwd=here)
    assert (here / "long.rnn.gz.rejects").read_bytes() == b"bad\n" * 3
    assert json.loads((here / "long.rnn.gz.json").read_text())["rejected_lines"] == 3
    assert lines_of(here / "long.rnn.gz") == lines_of(here / "whole.gz")


def test_leftover_rejects_go_when_nobody_asks_for_them_any_more(long_table):
    here = long_table
    process = start_and_wait_for_blocks(here, 2, "--on-bad-line", "skip")
    process.kill()
    process.communicate()
    assert ".long.rnn.gz.rejects.journal" in names(here)
    run("score", *LONG, "--force", cwd=here)
    assert not [name for name in names(here) if name.startswith(".")]


def test_many_bad_lines_among_good_ones_are_left_out(here):
    good = b"a ||| b ||| 1\n"
    (here / "half").write_bytes((good + b"bad\n") * 15_000)
    run("score", "half", *SKIP, cwd=here)
    assert len(lines_of(here / "half.rnn.gz")) == 15_000


@pytest.mark.parametrize("error", ["OSError(5, 'Input/output error')", "MemoryError()"])
def test_a_failing_disk_or_memory_is_no_reason_to_discard_what_was_done(long_table, error):
    here = long_table
    code = (
        "import sys; from moses_rnn.formats import streams\n"
        "read, calls = streams._MeteredFile._read_into, iter(range(10**6))\n"
        "def failing(self, buffer):\n"
        f"    if next(calls) > 6: raise {error}\n"
        "    return read(self, buffer)\n"
        "streams._MeteredFile._read_into = failing\n"
        "from moses_rnn.cli.score import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *LONG], cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert " lines are scored and kept: mend the cause and go on with --resume." in done.stderr
    run("score", *LONG, "--resume", cwd=here)
    assert (here / "long.rnn.gz").read_bytes() == (here / "whole.gz").read_bytes()


@pytest.mark.parametrize("device", ["hpu", "meta", "privateuseone", "cuda:x", "gpu"])
def test_devices_that_are_none(here, device):
    for command in ("score", "train"):
        done = run(command, "phrase-table.gz", "--device", device, cwd=here, check=False)
        assert (done.returncode, f"--device {device}: expected cpu, cuda or cuda:N" in done.stderr) == (1, True)


def test_precision_and_compilation_are_said_and_stay_near(here):
    run("score", "phrase-table.gz", "-o", "fp32.gz", cwd=here)
    (exact,) = zip(*added_values(lines_of(here / "fp32.gz")), strict=True)
    for name, options, tolerance in (("bf16", ["--precision", "bf16"], 0.1), ("fused", ["--compile"], 1e-4)):
        run("score", "phrase-table.gz", "-o", f"{name}.gz", *options, cwd=here)
        (values,) = zip(*added_values(lines_of(here / f"{name}.gz")), strict=True)
        assert [math.log(p) for p in values] == pytest.approx([math.log(p) for p in exact], abs=tolerance)
    assert json.loads((here / "bf16.gz.json").read_text())["precision"] == "bf16"
    assert (here / "bf16.gz").read_bytes() != (here / "fp32.gz").read_bytes()


def test_without_a_compiler_compilation_is_refused(here):
    environment = {**os.environ, "CXX": "/nonexistent/c++", "TORCHINDUCTOR_CACHE_DIR": str(here / "cache")}
    done = run("score", "phrase-table.gz", "--compile", cwd=here, check=False, env=environment)
    assert done.returncode == 1
    assert "--compile: torch cannot compile here (is there a C++ compiler?)" in done.stderr
    assert not (here / "phrase-table.rnn.gz").exists()
