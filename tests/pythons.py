"""Python interpreters that the package supports, each with an environment that has it and its dependencies."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.selection import thorough

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "pythons"
RUNNING = ".".join(map(str, sys.version_info[:3]))
INSTALL_SECONDS = 900


def versions() -> list[str]:
    """The running version first; in a thorough run, all others that are on this machine."""
    return [RUNNING, *sorted(found for found in _interpreters() if found != RUNNING)] if thorough() else [RUNNING]


def environment(version: str) -> Path:
    """The folder with `clade` and `python` of a version, installed once for each content of `pyproject.toml`."""
    if version == RUNNING:
        return Path(sys.executable).parent
    made_of = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    folder = CACHE / version
    done = folder / "made_of"
    if not done.exists() or done.read_text() != made_of:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([_interpreters()[version], "-m", "venv", folder], check=True, timeout=INSTALL_SECONDS)
        subprocess.run([*pip, "--editable", str(ROOT)], check=True, timeout=INSTALL_SECONDS)
        done.write_text(made_of)
    return folder / "bin"


def _interpreters() -> dict[str, str]:
    """Interpreters by version: those of pyenv, and `python3.x` on the path."""
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    found = {}
    for path in _candidates():
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
        match = re.fullmatch(r"Python (\d+)\.(\d+)\.(\d+)\s*", told)  # no preview, and not pyenv's sign for none
        if match and tuple(map(int, match.groups())) >= tuple(map(int, least.split("."))):
            found[".".join(match.groups())] = path
    return found


def _candidates() -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/*/bin/python3")))
    yield from filter(None, [shutil.which(f"python3.{minor}") for minor in range(11, 20)])
