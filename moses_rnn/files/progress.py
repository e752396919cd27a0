"""How far work is, as those who do it tell those who show it."""

from __future__ import annotations

from collections.abc import Callable

Advanced = Callable[[int, float | None], None]  # lines or the like that are done, and their share of all if it is known


def nobody(_done: int, _share: float | None) -> None:
    """Is called with how far work is, and does nothing."""
