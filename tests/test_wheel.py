"""Archives: sdist and wheel have the right files, and the wheel serves from an empty environment."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import httpx
import pytest
import yaml

from tests.ports import free_port
from tests.processes import Process
from tests.readme import ROOT

BUILD_SECONDS, INSTALL_SECONDS, START_SECONDS = 180, 400, 120
(RELEASE,) = [
    step["run"]
    for step in yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]["packages"][
        "steps"
    ]
    if "-m build" in step.get("run", "")
]
"""The commands by which the workflow of releases builds both archives."""
pytestmark = pytest.mark.thorough

FLOORS = ("clade", "commands", "graph", "resolvers", "store")


def tracked() -> list[str]:
    """The files of the repository, with new ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return [
        name for name in subprocess.check_output(command, cwd=ROOT, text=True).split("\0") if (ROOT / name).is_file()
    ]


def packaged() -> set[str]:
    """The files of the packages."""
    names = {name for name in tracked() if name.startswith(tuple(f"{floor}/" for floor in FLOORS))}
    names |= {"clade_graphql.py", "deploy/table.tf", "deploy/table.yaml"}
    return {name for name in names if not name.endswith("/.gitattributes")}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and with the wheel that was built from it, by the commands of a release."""
    source, environment = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("environment")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=BUILD_SECONDS)
    seen = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(environment)}
    ended = subprocess.run(
        ["sh", "-ec", RELEASE], cwd=source, env=seen, timeout=BUILD_SECONDS, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return source / "dist"


def test_a_release_installs_what_builds_it_by_hash():
    installs = [line for line in RELEASE.splitlines() if "pip install" in line]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line] == []
    assert "--no-isolation" in RELEASE, "An isolated build installs the newest setuptools, without a hash."


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    (found,) = archives.glob("*.whl")
    return found


def test_the_wheel_has_all_files_of_the_packages_and_the_licence_and_no_others(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == packaged()
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_sdist_has_the_files_for_a_build_and_no_tests(archives: Path):
    (sdist,) = archives.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert inside >= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "schema.graphql", "docs/dynamodb.md"}
    assert inside >= packaged()
    assert [name for name in inside if name.startswith(("tests", "bench", ".ci"))] == []


def test_the_wheel_serves_from_an_empty_environment_as_in_the_image(wheel: Path, tmp_path: Path):
    """Without the checkout in the path, by the command of the Dockerfile, with the settings of docker-compose.yml."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=BUILD_SECONDS)
    pip = [tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    wanted = ["--constraint", ROOT / "constraints.txt", f"{wheel}[demo]"]
    subprocess.run([*pip, *wanted], check=True, timeout=INSTALL_SECONDS)
    (image,) = re.findall(r"^CMD (.*)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    settings = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["clade"]["environment"]
    settings |= {"CLADE_STORE": f"sqlite:///{tmp_path}/image.db", "HOME": str(tmp_path)}
    port = free_port()
    command = [tmp_path / "venv" / "bin" / "clade", *json.loads(image)[1:], "--port", str(port)]
    for words in ("Loaded 39,", "/graphql"):  # the second start loads nothing
        server = Process(*command, url=f"http://127.0.0.1:{port}", folder=tmp_path, environment=settings)
        with server:
            check(server.url)
            server.stop()
        assert words in server.said()
    assert "demo data" not in server.said()


def check(url: str) -> None:
    """It answers, and its pages have all that they load."""
    with httpx.Client(base_url=url, timeout=30) as client:
        asked = client.post("/graphql", json={"query": '{ city(path: "US/NE/Omaha") { name parent { name } } }'})
        assert asked.json() == {"data": {"city": {"name": "Omaha", "parent": {"name": "Nebraska"}}}}
        page = client.get("/graphql", headers={"accept": "text/html"}).text
        scripts = [part.partition('"')[0] for part in page.split('src="')[1:]]
        assert len(scripts) >= 3
        assert all(client.get(script).status_code == 200 for script in scripts)
