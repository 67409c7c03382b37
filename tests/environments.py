"""Environments with packages of the running one, by links: made in a second, where pip would take a minute."""

import subprocess
import sys
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

VENV_SECONDS = 120
HERE = sysconfig.get_path("purelib")


def linked(folder: Path, packages: Collection[str]) -> Path:
    """The interpreter of a new environment that has these packages of the running one (canonical names) and no pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=VENV_SECONDS)
    interpreter = folder / "bin" / "python"
    asked = [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(
        subprocess.run(asked, check=True, timeout=VENV_SECONDS, stdout=subprocess.PIPE, text=True).stdout.strip()
    )
    for package in distributions(path=[HERE]):
        if canonicalize_name(package.name) in packages:
            for name in {file.parts[0] for file in package.files or () if file.parts[0] != ".."}:
                if not (site / name).exists():
                    (site / name).symlink_to(Path(HERE, name))
    return interpreter


def versions() -> dict[str, str]:
    """The packages of the running environment by canonical name, each with its version."""
    return {canonicalize_name(one.name): one.version for one in distributions(path=[HERE])}


def requirements() -> dict[str, list[str]]:
    """The packages of the running environment by canonical name, each with what it requires."""
    return {canonicalize_name(one.name): one.requires or [] for one in distributions(path=[HERE])}


def needed(root: str, requires: Mapping[str, Sequence[str]], python: str | None = None) -> set[str]:
    """The canonical names of what a requirement, such as `clade-graphql[demo]`, needs in turn, on that Python."""
    target = {} if python is None else {"python_version": python, "python_full_version": f"{python}.0"}
    found, waiting = set(), [Requirement(root)]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (key := (name, *sorted(wanted.extras))) not in found:
            found.add(key)
            extras = ("", *wanted.extras)
            for one in map(Requirement, requires[name]):
                if one.marker is None or any(one.marker.evaluate({**target, "extra": extra}) for extra in extras):
                    waiting.append(one)
    return {name for name, *_ in found} - {canonicalize_name(Requirement(root).name)}
