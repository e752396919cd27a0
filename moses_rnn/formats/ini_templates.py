"""Templates of moses.ini for the systems that are compared, with a comment on every column."""

from __future__ import annotations

from dataclasses import dataclass

from moses_rnn.files.shipped import shipped_file


@dataclass(frozen=True)
class Template:
    """An ini of moses_configs/."""

    name: str

    def text(self) -> str:
        """The whole ini."""
        return shipped_file(f"{self.name}.ini").read_text(encoding="utf-8")


TEMPLATES = {name: Template(name) for name in ("baseline", "rnn", "rnn-wp")}
