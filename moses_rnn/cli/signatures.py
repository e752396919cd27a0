"""The signature beside a table, for commands that make another table of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moses_rnn.cli.command import say
from moses_rnn.errors import InputError


def sound_signature(table: str) -> dict[str, Any] | None:
    """What is recorded of a table, if it was recorded of this very file; otherwise it is said why not."""
    from moses_rnn.formats.validation import signature_of

    try:
        signature = signature_of(table)
    except InputError as error:
        say(f"warning: {error}\n  Its signature is not carried over.")
        return None
    if not signature and Path(f"{table}.json").exists():
        say(f"warning: {table}.json: is not a signature of moses-rnn-score, and is not carried over")
    return signature or None
