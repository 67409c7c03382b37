"""The documentation site, built once for its tests."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from tests.readme import ROOT
from tests.serving import handling

BUILD_SECONDS = 120


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the checkout, in the environment of the tests."""
    if not (Path(sys.prefix) / "bin" / "zensical").exists():
        pytest.skip("zensical is missing: pip install -e '.[docs]'")
    checkout = tmp_path_factory.mktemp("checkout")
    for name in ("docs", "examples", "scripts", "graph/explorer/assets"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CONTRIBUTING.md", "pyproject.toml", "zensical.toml"):
        shutil.copy(ROOT / name, checkout / name)
    # Nothing is installed: the script uses the environment of the tests.
    (checkout / "scripts" / "venv.sh").write_text("install() { :; }\n")
    (checkout / ".venv").symlink_to(sys.prefix)
    built = subprocess.run(
        ["sh", checkout / "scripts" / "docs"], capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return checkout / "site"


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the site."""
    with handling(SimpleHTTPRequestHandler, directory=str(site)) as url:
        yield url
