"""The command within this process, which spares starting one."""

from click.testing import CliRunner

from moses_rnn.cli.analyse import main


def seen(*arguments):
    """What comes of a subcommand, whatever its exit code."""
    return CliRunner().invoke(main, [*map(str, arguments)])


def invoke(*arguments, code=0):
    """What comes of a subcommand that is to end with an exit code."""
    done = seen(*arguments)
    assert done.exit_code == code, done.output
    return done
