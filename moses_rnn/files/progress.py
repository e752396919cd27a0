"""How far work is: from those who do it to those who show it."""

from __future__ import annotations

from collections.abc import Callable

Advanced = Callable[[int, float | None], None]  # lines or the like that are done, and their share of all if it is known


def nobody(_done: int, _share: float | None) -> None:
    """Show nothing."""
