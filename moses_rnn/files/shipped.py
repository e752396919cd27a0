"""Files beside the package's code: templates of moses.ini, the pipeline and its systems."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent.parent
# a wheel has the folder inside the package, a clone beside it
FOLDERS = (PACKAGE / "moses_configs", PACKAGE.parent / "moses_configs")


def shipped_file(name: str) -> Path:
    """Where a file of moses_configs/ is; a FileNotFoundError says that the package was installed without it."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name}: not in {' nor in '.join(map(str, FOLDERS))}")
