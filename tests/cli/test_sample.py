"""moses-rnn sample: in this process where that is enough, since each process loads torch anew."""

import gzip

from click.testing import CliRunner

from moses_rnn.cli.sample import main
from tests.commands import run


def sample(*arguments, code=0, **options):
    done = CliRunner().invoke(main, [*map(str, arguments)], **options)
    assert done.exit_code == code, done.output
    return done


def sources_of(table, count):
    with gzip.open(table) as lines:
        found = dict.fromkeys(line.split(b" ||| ")[0] for line in lines)
    return list(found)[:count]


def columns(done):
    return [line.split(b"\t") for line in done.stdout_bytes.removesuffix(b"\n").split(b"\n")]


def test_sources_come_from_options_files_and_pipes_alike(model, table, tmp_path):
    first, second = sources_of(table, 2)
    text = first + b"\r\n" + second  # the last line without its end
    (tmp_path / "sources.gz").write_bytes(gzip.compress(text))
    by_options = sample("--model", model, "--source", first.decode(), "--source", second.decode())
    assert sample(tmp_path / "sources", "--model", model).stdout_bytes == by_options.stdout_bytes
    mixed = sample(
        tmp_path / "sources.gz", "--model", model, "--source", second.decode(), "--format", "tsv", "--top", 1
    )
    assert [row[0] for row in columns(mixed)[1:]] == [second, first, second]
    piped = run("sample", "-", "--model", model, given=text.decode())
    assert piped.stdout.encode() == by_options.stdout_bytes
    assert piped.stderr == by_options.stderr  # and no bar in either


def test_bytes_are_printed_as_they_came_but_for_what_commands_a_terminal(model):
    odd = b"\xff\x1b[31m \xc2\xa0".decode("utf-8", "surrogateescape")
    assert sample("--model", model, "--source", odd).stdout_bytes.startswith(b"\xff\\x1b[31m \xc2\xa0   (50 samples")
    rows = columns(sample("--model", model, "--source", odd, "--format", "tsv"))
    assert {row[0] for row in rows[1:]} == {b"\xff\x1b[31m \xc2\xa0"}
