"""A small scored table and what is recorded of it."""

from tests.analysis.scored import line, sign

TABLE = [
    line("a b c d", "x", 0.7, 0.2, "9 200 140"),
    line("a b c d", "y|z".replace("|", "&#124;"), 0.2, 0.6, "9 200 40"),
    line("a b c d", "50 %", 0.1, 0.1, "9 200 20"),
    line("e f g h", "x", 0.4, 0.01, "9 3 1"),
    line("e f g h", "y", 0.3, 0.02, "9 3 1"),
    line("e f g h", "z", 0.3, 0.03, "9 3 1"),
]


SIGNATURE = {
    "program": "moses_rnn 0.0.1",
    "precision": "fp32",
    "lines": 6,
    "columns": 5,
    "added_columns": [{"index": 4, "name": "RNN", "floor": -87.0, "floored": 1, "lowest": -87.0, "highest": -1.0}],
    "models": [{"direction": "source-to-target", "sha256": {}}],
}


def with_another_score(path, names):
    """The table with a constant score after the RNN's, and a signature."""
    wider = [one.replace(b" ||| 0-0", b" 1 ||| 0-0") for one in TABLE]
    assert wider != TABLE
    path.write_bytes(b"".join(wider))
    sign(path, {index: {"name": name, "floor": -3} for index, name in names.items()}, columns=6)
