"""The versions that the repository pins, as the files of constraints have them."""

import importlib.metadata
import re
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def pinned(file: str) -> dict[str, list[str]]:
    """The hashes of each package, by its requirement as it stands in the file."""
    text = re.sub(r"^#.*\n", "", (ROOT / file).read_text(), flags=re.MULTILINE)
    lines = [line.partition(" --hash=") for line in text.replace("\\\n", "").splitlines()]
    return {re.sub(r"\s+", " ", head).strip(): (mark + rest).split() for head, mark, rest in lines}


def version(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The version of a package that a checkout installs; `environment` has markers of another one than this."""
    for one in map(Requirement, pinned("constraints.txt")):
        holds = one.marker is None or one.marker.evaluate(dict(environment or {}))
        if holds and canonicalize_name(one.name) == canonicalize_name(name):
            return str(one.specifier).removeprefix("==")
    return None


def check_versions(*packages: str) -> None:
    """Fail where a package is installed in another version: that has other licences and other data."""
    differing = {
        name: f"{installed} instead of {wanted}"
        for name in packages
        if (installed := importlib.metadata.version(name)) != (wanted := version(name))
    }
    assert not differing, f"installed versions differ from constraints.txt: run scripts/test ({differing})"
