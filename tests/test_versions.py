"""Versions of everything that is installed: pinned in the repository, alike in all files, and used everywhere."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.pinned import ROOT, pinned, version

CONSTRAINTS = sorted(file.name for file in ROOT.glob("constraints*.txt"))
HASHED = ["constraints-build.txt", "constraints-image.txt"]
NODE_FOLDERS = [ROOT / "tests", ROOT / "tests" / "federation"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if ":: Python :: 3." in one]


def declared() -> list[Requirement]:
    """All that pyproject.toml asks for, but the package itself."""
    project = PROJECT["project"]
    texts = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    texts += [one for extra in project["optional-dependencies"].values() for one in extra]
    return [one for one in map(Requirement, texts) if one.name != project["name"]]


@pytest.mark.parametrize("python", PYTHONS)
def test_everything_that_is_declared_has_a_version_in_its_range(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    wrong = {}
    for one in declared():
        found = version(one.name, environment)
        if found is None or found not in one.specifier:
            wrong[str(one)] = found
    assert wrong == {}


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_every_package_has_one_exact_version_and_nothing_names_an_index(file: str) -> None:
    requirements = [Requirement(one) for one in pinned(file)]
    assert requirements
    assert [one for one in requirements if not re.fullmatch(r"==[\w.]+", str(one.specifier)) or one.url] == []
    assert not re.search(r"^-|https?:", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("file", HASHED)
def test_image_and_releases_have_the_versions_of_a_checkout_by_hash(file: str) -> None:
    everything = {one.partition(" ;")[0] for one in pinned("constraints.txt")}
    hashes = pinned(file)
    assert {one.partition(" ;")[0] for one in hashes} - {"colorama==0.4.6"} <= everything
    assert [one for one, found in hashes.items() if not found] == []
    assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for found in hashes.values() for one in found)


@pytest.mark.parametrize("folder", NODE_FOLDERS, ids=lambda folder: folder.name)
def test_what_npm_installs_is_locked_by_hash_and_names_no_registry(folder: Path) -> None:
    wanted = json.loads((folder / "package.json").read_text())
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    for kind in ("dependencies", "optionalDependencies"):
        assert lock[""].get(kind, {}) == wanted.get(kind, {})
    brought = {name: one for name, one in lock.items() if name}
    assert [name for name, one in brought.items() if "resolved" in one or not one.get("integrity")] == []


def test_scripts_install_pinned_versions_alone() -> None:
    """What asks a registry for something newer is scripts/constraints alone; scripts/audit asks for vulnerabilities."""
    command = ["git", "ls-files", "-z", "scripts", ".ci/run", "Dockerfile"]
    tracked = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")[:-1]
    files = [file for name in tracked if (file := ROOT / name).is_file()]
    lines = [
        (file.name, line.strip())
        for file in files
        if file.name not in ("constraints", "audit") and file.suffix != ".json"
        for line in file.read_text().splitlines()
        if re.search(r"pip install|npm (install|ci)\b", line) and not line.startswith("#")
    ]
    assert len(lines) >= 5
    pins = ("--constraint constraints.txt", "--require-hashes -r ", "--no-deps", "npm ci ")
    assert [(name, line) for name, line in lines if not any(one in line for one in pins)] == []
