"""Sizes and switches of an RNN Encoder-Decoder, and the names of their mixtures.

H hidden units, E embedding dimensions, M maxout units, R output rank; c is the summary of the source, h and h' are the
states of encoder and decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moses_rnn.models.folders import MAX_SIZE, Expect, Json, is_size

SWITCHES = {
    "paper": {"summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"},
    "groundhog": {"summary": "last", "first_step": "initial-state", "decoder_reset": "before"},
}

SIZE_KEYS = ("hidden_size", "embedding_size", "maxout_size", "output_rank")
SWITCH_VALUES = {
    "summary": ("tanh", "last"),
    "first_step": ("zero-embedding", "initial-state"),
    "decoder_reset": ("after", "before"),
}


@dataclass(frozen=True)
class EncDecConfig:
    """Sizes and switches; `variant` names the three switches together (see SWITCHES)."""

    source_vocabulary_size: int  # with <unk> and </s>
    target_vocabulary_size: int
    hidden_size: int = 1000
    embedding_size: int = 100
    maxout_size: int = 500
    output_rank: int = 100
    variant: str = "paper"
    summary: str = "tanh"  # or "last": c = h_N
    first_step: str = "zero-embedding"  # or "initial-state": y_1 is predicted from h'_0
    decoder_reset: str | None = "after"  # or "before": r' gates h' before the product, and never C c

    @property
    def width(self) -> int:
        """Hidden units, which decide what pays on a processor."""
        return self.hidden_size

    @property
    def description(self) -> str:
        """For a log."""
        return f"{self.variant} variant, H {self.hidden_size}"


def variant_of(switches: Mapping[str, object]) -> str:
    """The name of three switches, or of those that a network has of them: paper, groundhog, or custom.

    Args:
        switches: by name; None where one means nothing.
    """
    for name in SWITCHES:
        if _is_named(name, switches):
            return name
    return "custom"


def check_variant(config: Json, expect: Expect, switches: Mapping[str, tuple[object, ...]]) -> None:
    """Sizes, switches and the name of the variant, in a config.json.

    Args:
        config: which is checked.
        expect: refuses.
        switches: the values that each may have.
    """
    for key in SIZE_KEYS:
        expect(key, is_size(config.get(key)), f"a whole number from 1 to {MAX_SIZE}")
    for key, values in switches.items():
        expect(key, config.get(key) in values, " or ".join(map(repr, values)))
    variant, three = config.get("variant"), {key: config.get(key) for key in SWITCH_VALUES}
    named = isinstance(variant, str) and variant in SWITCHES and _is_named(variant, three)
    expect("variant", named or variant == "custom", "the name of its three switches (paper, groundhog, else custom)")


def _is_named(variant: str, switches: Mapping[str, object]) -> bool:
    return all(switches[key] in {value, None} for key, value in SWITCHES[variant].items())
