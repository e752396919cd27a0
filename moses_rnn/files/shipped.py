"""Data files shipped with the package: moses.ini templates, the pipeline and its systems."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent.parent
# In a wheel, the folder is inside the package; in a clone, beside it
FOLDERS = (PACKAGE / "moses_configs", PACKAGE.parent / "moses_configs")


def shipped_file(name: str) -> Path:
    """Return the path of a file in moses_configs/; raise FileNotFoundError if the package was installed without it."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name}: not in {' nor in '.join(map(str, FOLDERS))}")
