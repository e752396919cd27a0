"""The lowest versions that pyproject.toml allows, as constraints for pip; ``make test-oldest`` installs with them.

python tests/oldest.py [NAME==VERSION…]      what is given takes the place of the lowest version of that name
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)")


def lowest(project):
    """Of a parsed pyproject.toml: the lowest version of each requirement that has one, extras included.

    A name that stands twice with different bounds is a ValueError: pip would take the higher one.
    """
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    versions = {}
    for text in texts:
        if match := REQUIREMENT.match(text):
            name, version = match.groups()
            if versions.setdefault(name, version) != version:
                raise ValueError(f"{name}: expected one lower bound, found {versions[name]} and {version}")
    return versions


def main(*given):
    """Print them."""
    with PROJECT.open("rb") as file:
        versions = lowest(tomllib.load(file)["project"])
    instead = dict(one.split("==") for one in given)
    if unknown := instead.keys() - versions:
        raise SystemExit(f"{', '.join(sorted(unknown))}: expected one of {', '.join(versions)}")
    for name, version in (versions | instead).items():
        print(f"{name}=={version}")


if __name__ == "__main__":
    main(*sys.argv[1:])
