"""What is checked of a model folder before torch is loaded."""

from __future__ import annotations

from pathlib import Path

from moses_rnn.errors import CheckpointError

MADE_BY = (
    "Models are folders made by moses-rnn-train, moses-rnn nmt train or moses-rnn cslm train; pickles are never read."
)


def check_folder(folder: Path) -> None:
    """Raise CheckpointError unless the folder exists."""
    if not folder.is_dir():
        found, advice = ("a file", MADE_BY) if folder.exists() else ("nothing", "")
        raise CheckpointError(f"{folder}: expected a model folder, found {found}", advice=advice)
