"""Small scored tables on disk."""

from moses_rnn.analysis.scored_table import ScoredTable


def line(source, target, direct, rnn, counts="", rest=""):
    """A line of a scored table as train-model.perl and moses-rnn-score leave it."""
    counts = f" ||| 0-0 ||| {counts} ||| |||{rest}" if counts else ""
    return f"{source} ||| {target} ||| .1 .1 {direct} .1 {rnn}{counts}\n".encode()


def scored(path, lines, column=-1):
    """The lines as a table."""
    path.write_bytes(b"".join(lines))
    return ScoredTable.open(str(path), column)
