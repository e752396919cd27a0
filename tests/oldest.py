"""The lowest versions that pyproject.toml allows, as constraints for pip; ``make test-oldest`` installs with them."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

versions = {}
for requirement in sum(PROJECT["optional-dependencies"].values(), PROJECT["dependencies"]):
    if match := re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)", requirement):
        name, version = match.groups()
        if versions.setdefault(name, version) != version:  # pip would take the higher one
            raise SystemExit(f"{name}: expected one lower bound, found {versions[name]} and {version}")
for name, version in versions.items():
    print(f"{name}=={version}")
print("pyparsing<3.3")  # later ones deprecate what matplotlib 3.10 calls
