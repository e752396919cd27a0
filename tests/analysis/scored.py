import hashlib
import json

from moses_rnn.analysis.scored_table import ScoredTable


def line(source, target, direct, rnn, counts="", rest=""):
    """A line of a scored table as train-model.perl and moses-rnn-score leave it."""
    counts = f" ||| 0-0 ||| {counts} ||| |||{rest}" if counts else ""
    return f"{source} ||| {target} ||| .1 .1 {direct} .1 {rnn}{counts}\n".encode()


def scored(path, lines, column=-1):
    path.write_bytes(b"".join(lines))
    return ScoredTable.open(str(path), column)


def sign(path, names, **more):
    """Write the signature of a table whose added columns have these names, or records, by column."""
    columns = [{"index": i, **(one if isinstance(one, dict) else {"name": one})} for i, one in names.items()]
    digest = {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    record = {"program": "moses_rnn 0.0.1", **more, "file": digest, "added_columns": columns}
    path.with_name(f"{path.name}.json").write_text(json.dumps(record))
    return record
