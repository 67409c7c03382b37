"""Python interpreters that the package supports, each with an environment that has it and its dependencies."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import selection

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "pythons"
RUNNING = ".".join(map(str, sys.version_info[:3]))
INSTALL_SECONDS = 900


def versions() -> list[str]:
    """The running version; in a thorough run, all others that are on this machine, too; or the one asked for.

    Raises pytest.UsageError where that one is not there.
    """
    if (wanted := selection.python()) is not None:
        found = [one for one in _interpreters() if f"{one}.".startswith(f"{wanted}.")]
        if not found:
            raise pytest.UsageError(f"Python {wanted} is not on this machine, but {', '.join(_interpreters())} are")
        return found[-1:]
    if selection.thorough():
        return [RUNNING, *(found for found in _interpreters() if found != RUNNING)]
    return [RUNNING]


def environment(version: str) -> Path:
    """The folder with `clade` and `python` of a version: for another than the running one, with the built wheel."""
    if version == RUNNING:
        return Path(sys.executable).parent
    folder = CACHE / version
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as made:
        if not python.exists():
            _run([_interpreters()[version], "-m", "venv", "--clear", str(folder)])
        _run([*pip, "install", "--constraint", str(ROOT / "constraints.txt"), "setuptools"])
        _run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", made, str(ROOT)])
        (wheel,) = Path(made).glob("*.whl")
        _run([*pip, "install", "--constraint", str(ROOT / "constraints.txt"), str(wheel)])
        _run([*pip, "install", "--no-deps", "--force-reinstall", str(wheel)])
    return folder / "bin"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS)


@functools.cache
def _interpreters() -> dict[str, str]:
    """Interpreters by version, the oldest first: those of pyenv, and `python3.x` on the path."""
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    found = {}
    for path in _candidates():
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
        match = re.fullmatch(r"Python (\d+)\.(\d+)\.(\d+)\s*", told)  # no preview, and not pyenv's sign for none
        if match and tuple(map(int, match.groups())) >= tuple(map(int, least.split("."))):
            found[".".join(match.groups())] = path
    return {
        version: found[version] for version in sorted(found, key=lambda one: [int(part) for part in one.split(".")])
    }


def _candidates() -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/*/bin/python3")))
    yield from filter(None, [shutil.which(f"python3.{minor}") for minor in range(11, 20)])
