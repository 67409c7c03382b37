"""docker-compose.yml and Dockerfile, as far as they can be checked without a container engine.

The command that the image runs is tried in test_wheel.py.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from fnmatch import fnmatch

import pytest
import yaml

from tests.readme import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def final_stage() -> dict[str, str]:
    """The last instruction of each kind."""
    last = max(place for place, (word, _) in enumerate(instructions()) if word == "FROM")
    return dict(instructions()[last:])


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose is missing")
def test_the_compose_file_is_valid():
    checked = subprocess.run(["docker-compose", "config"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    assert "-sharedDb -dbPath /data" in checked.stdout
    assert "dynamodb:/data" in checked.stdout
    assert re.search(r"CLADE_STORE: .?dynamodb://clade\?region=eu-west-1&endpoint=http://dynamodb:8000", checked.stdout)


def test_the_image_runs_without_rights_and_has_a_health_check():
    stage = final_stage()
    assert int(stage["USER"]) > 0, "Kubernetes' runAsNonRoot accepts numbers only."
    assert f"--uid {stage['USER']} " in DOCKERFILE
    assert "/healthz" in stage["HEALTHCHECK"]
    assert stage["CMD"] == '["clade", "serve", "--host", "0.0.0.0"]'  # which makes and fills nothing
    assert "CLADE_PRODUCTION=1" in stage["ENV"].split()
    assert "CLADE_DEMO" not in stage["ENV"]


def test_the_image_is_not_built_on_a_python_without_optimization():
    (command,) = (rest for word, rest in instructions() if word == "RUN" and "CONFIG_ARGS" in rest)
    program = command.removeprefix('python -c "').removesuffix('"')
    checked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    options = sysconfig.get_config_var("CONFIG_ARGS")
    assert checked.stdout == f"{options}\n"
    assert checked.returncode == int("--enable-optimizations" not in options)
    assert "AssertionError: This Python" in checked.stderr or checked.returncode == 0


def test_every_image_has_a_version():
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    images += re.findall(r"^\s*image: (\S+)", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
    assert len(images) == 3
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+(-|$)", image)] == []


def test_the_server_has_no_rights_and_a_memory_limit():
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["clade"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]


def test_the_build_context_has_all_files_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    needed = [name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]]
    needed += ["pyproject.toml", "constraints-image.txt", "constraints-build.txt", "deploy", "clade_graphql.py"]
    needed += [project["project"]["readme"], *project["project"]["license-files"]]
    assert [name for name in needed if not any(fnmatch(name, pattern) for pattern in allowed)] == []
