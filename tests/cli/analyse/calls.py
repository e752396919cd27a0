"""The command within this process, which spares starting one."""

from click.testing import CliRunner

from moses_rnn.cli.analyse import main


def seen(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def invoke(*arguments, code=0):
    done = seen(*arguments)
    assert done.exit_code == code, done.output
    return done
