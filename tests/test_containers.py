"""docker-compose.yml and Dockerfile, as far as they can be checked without a container engine.

The commands that the image runs are tried in test_scripts.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.environments import needed

ROOT = Path(__file__).parents[1]
INSTALL_SECONDS = 400
DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTRUCTIONS = "ARG CMD COPY ENV EXPOSE FROM HEALTHCHECK RUN USER VOLUME WORKDIR".split()


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


def test_the_dockerfile_has_only_known_instructions():
    assert {word for word, _ in instructions()} <= {*INSTRUCTIONS}


def test_the_image_runs_without_rights_and_has_a_health_check():
    stage = final_stage()
    assert int(stage["USER"]) > 0, "Kubernetes' runAsNonRoot accepts numbers only."
    assert f"--uid {stage['USER']} " in DOCKERFILE
    assert "/healthz" in stage["HEALTHCHECK"]
    assert stage["CMD"] == '["clade", "serve", "--host", "0.0.0.0"]'  # which makes and fills nothing
    assert "CLADE_PRODUCTION=1" in stage["ENV"].split()


def test_every_image_has_a_version():
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    images += re.findall(r"^\s*image: (\S+)", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
    assert len(images) == 3
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+(-|$)", image)] == []


COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_the_server_has_no_rights_and_a_memory_limit():
    service = COMPOSE["clade"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]


def test_only_the_compose_file_asks_for_the_demo_data():
    command = json.loads(final_stage()["CMD"])
    assert COMPOSE["clade"]["command"] == [*command, "--demo"]


# -- what is installed -------------------------------------------------------------------------------------------------


EXTRAS = ("demo", "traces")
IMAGE, AIOBOTO3, BUILD = (f"constraints-{name}.txt" for name in ("aiobotocore", "aioboto3", "build"))
PYTHON = re.search(r"FROM python:(\d+\.\d+)\.", DOCKERFILE)[1]  # the image's


def pinned(file: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of each package of the image."""
    text = re.sub(r"^#.*\n", "", (ROOT / file).read_text(), flags=re.MULTILINE)
    found = [line.split() for line in text.replace("\\\n", "").splitlines()]
    return {line[0].partition("==")[0]: (line[0].partition("==")[2], line[1:]) for line in found}


def test_the_image_installs_everything_by_hash():
    assert f"ARG CONSTRAINTS={IMAGE}" in DOCKERFILE
    installs = re.findall(r"pip install (.+?)(?= &&|$)", "\n".join(rest for _, rest in instructions()), re.MULTILINE)
    assert [one.replace("--no-cache-dir ", "") for one in installs] == [
        f"--require-hashes -r {BUILD}",
        '--require-hashes -r "$CONSTRAINTS"',
        "--no-deps dist/*.whl",
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(("file", "aiobotocore"), [(IMAGE, "3"), (AIOBOTO3, "2")])
def test_the_commands_of_the_dockerfile_install_a_clade_that_works(file, aiobotocore, tmp_path):
    source, made, environment = tmp_path / "source", tmp_path / "made", tmp_path / "environment"
    ignored = shutil.ignore_patterns("__pycache__")
    for pattern in in_build_context():
        for found in ROOT.glob(pattern):
            copy = shutil.copy if found.is_file() else partial(shutil.copytree, ignore=ignored)
            source.mkdir(exist_ok=True)
            copy(found, source / found.name)
    last = max(place for place, (word, _) in enumerate(instructions()) if word == "FROM")
    commands = [rest.replace("/opt/clade", str(made)) for word, rest in instructions()[:last] if word == "RUN"]
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=INSTALL_SECONDS)
    seen = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "CONSTRAINTS": file}
    seen["PIP_COMPILE"] = "0"  # most of an install; what is imported is compiled then
    run = partial(subprocess.run, env=seen, check=True, timeout=INSTALL_SECONDS, stdout=subprocess.PIPE, text=True)
    run(["sh", "-ec", "\n".join(commands)], cwd=source)
    version = run([made / "bin" / "python", "-c", "import aiobotocore; print(aiobotocore.__version__)"], cwd=tmp_path)
    assert version.stdout.partition(".")[0] == aiobotocore
    pip = [environment / "bin" / "python", "-m", "pip", "--python", made / "bin" / "python"]
    report = json.loads(run([*pip, "inspect", "--local"], cwd=tmp_path).stdout)
    assert needed_by_clade(report) == pinned(file).keys()
    run([made / "bin" / "clade", "demo"], cwd=tmp_path)
    assert "Omaha" in run([made / "bin" / "clade", "tree", "location", "US/NE"], cwd=tmp_path).stdout


@pytest.mark.parametrize("file", [IMAGE, AIOBOTO3, BUILD])
def test_every_package_has_a_version_and_hashes_and_nothing_names_an_index(file):
    for name, (version, hashes) in pinned(file).items():
        assert version, name
        assert hashes, name
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), name


def test_versions_with_aioboto3_satisfy_the_requirements_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    wanted += [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    versions = pinned(AIOBOTO3)
    for one in map(Requirement, wanted):
        assert versions[canonicalize_name(one.name)][0] in one.specifier, one


def test_without_aioboto3_all_but_the_aws_libraries_have_the_same_versions():
    declared, image = pinned(AIOBOTO3), pinned(IMAGE)
    aws = {"aiobotocore", "botocore"}
    assert declared.keys() - image.keys() == {"aioboto3", "aiofiles", "boto3", "s3transfer"}
    assert {name: image[name] for name in image if name not in aws} == {
        name: declared[name] for name in image if name not in aws
    }
    assert image["aiobotocore"][0].startswith("3.")
    assert Version(image["botocore"][0]) > Version(declared["botocore"][0])


def needed_by_clade(report: dict[str, Any]) -> set[str]:
    """The names of what an installed Clade needs, with what that needs in turn, by a report of `pip inspect`."""
    installed = [one["metadata"] for one in report["installed"]]
    requires = {canonicalize_name(one["name"]): one.get("requires_dist", []) for one in installed}
    if "aioboto3" not in requires:  # as in the image
        requires["clade-graphql"] = [re.sub("^aioboto3.*", "aiobotocore", one) for one in requires["clade-graphql"]]
    return needed(f"clade-graphql[{','.join(EXTRAS)}]", requires, PYTHON)


def in_build_context() -> list[str]:
    """The names and patterns that `.dockerignore` lets through."""
    return [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]


def test_the_build_context_has_all_files_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = in_build_context()
    needed = [name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]]
    needed += [
        "pyproject.toml",
        IMAGE,
        AIOBOTO3,
        BUILD,
        project["project"]["readme"],
        *project["project"]["license-files"],
    ]
    assert [name for name in needed if not any(fnmatch(name, pattern) for pattern in allowed)] == []
