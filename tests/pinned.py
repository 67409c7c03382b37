"""Installed packages as constraints.txt has them: other versions have other licences and other data."""

import importlib.metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def check_versions(*packages: str) -> None:
    """Fail where a package is installed in another version than the one for this Python and machine."""
    differing = {}
    for line in CONSTRAINTS.read_text().splitlines():
        one = Requirement(line) if line and not line.startswith((" ", "#")) else None
        if one is None or canonicalize_name(one.name) not in packages or (one.marker and not one.marker.evaluate()):
            continue
        if not one.specifier.contains(version := importlib.metadata.version(one.name), prereleases=True):
            differing[str(one)] = version
    assert not differing, f"installed versions differ from constraints.txt: run scripts/test ({differing})"
