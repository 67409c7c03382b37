"""docker-compose.yml and Dockerfile, as far as they can be proved without a container engine.

The commands that the image runs are tried in test_scripts.py.
"""

import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTRUCTIONS = "ARG CMD COPY ENV EXPOSE FROM HEALTHCHECK RUN USER VOLUME WORKDIR".split()


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def final_stage() -> dict[str, str]:
    """The last of each instruction that counts for the image."""
    last = max(place for place, (word, _) in enumerate(instructions()) if word == "FROM")
    return dict(instructions()[last:])


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose is missing")
def test_compose_understands_the_file():
    checked = subprocess.run(["docker-compose", "config"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    assert "-sharedDb -dbPath /data" in checked.stdout
    assert "dynamodb:/data" in checked.stdout
    assert re.search(r"CLADE_STORE: .?dynamodb://clade\?region=eu-west-1&endpoint=http://dynamodb:8000", checked.stdout)


def test_the_dockerfile_holds_only_instructions_that_there_are():
    assert {word for word, _ in instructions()} <= {*INSTRUCTIONS}


def test_the_image_runs_as_somebody_without_rights_and_tells_its_health():
    stage = final_stage()
    assert stage["USER"] not in {"root", "0"}
    assert "/healthz" in stage["HEALTHCHECK"]
    assert stage["CMD"] == '["sh", "-c", "clade table create && clade demo && exec clade serve --host 0.0.0.0"]'


def test_every_image_is_named_with_its_version():
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    images += re.findall(r"^\s*image: (\S+)", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
    assert len(images) == 3
    assert [image for image in images if not re.search(r":\d", image)] == []


def test_what_the_package_is_made_of_goes_to_the_engine():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    needed = [name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]]
    needed += ["pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]]
    assert [name for name in needed if not any(fnmatch(name, pattern) for pattern in allowed)] == []
