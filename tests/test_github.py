"""Files of `.github` and the pre-commit hooks: valid, and the same commands that scripts/test runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
SCHEMAS = {
    "vendor.github-workflows": sorted(GITHUB.glob("workflows/*.yml")),
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "feature.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.compose-spec": [ROOT / "docker-compose.yml"],
}
"""Files by the JSON schema that check-jsonschema ships for them."""
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in SCHEMAS["vendor.github-workflows"]}
STEPS = [step for workflow in WORKFLOWS.values() for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_file_matches_its_schema(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, SCHEMAS[schema])]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout


def test_continuous_integration_runs_the_script_and_nothing_else_that_tests() -> None:
    runs = [step["run"] for step in WORKFLOWS["ci"]["jobs"]["test"]["steps"] if "run" in step]
    assert runs[-1] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_every_declared_python_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = [one.rpartition(" ")[2] for one in classifiers if ":: Python :: 3." in one]
    jobs = WORKFLOWS["ci"]["jobs"]
    whole, wheels = jobs["test"]["strategy"]["matrix"]["image"], jobs["wheel"]["strategy"]["matrix"]["python"]
    assert whole == ["debian:bookworm", f"python:{declared[-1]}-trixie"]  # bookworm's Python is 3.11
    assert ["3.11", *wheels, declared[-1]] == declared


def test_workflows_name_existing_scripts() -> None:
    named = [word for step in STEPS for word in re.findall(r"(?:scripts|\.ci)/[\w-]+", step.get("run", ""))]
    assert ".ci/run" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("workflow", SCHEMAS["vendor.github-workflows"], ids=lambda file: file.stem)
def test_every_action_is_a_commit_with_its_version(workflow: Path) -> None:
    used = re.findall(r"\buses:\s*(.+)", workflow.read_text())
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)] == []


def test_an_action_has_one_version_in_all_workflows() -> None:
    used = {step["uses"] for step in STEPS if "uses" in step}
    assert len({one.partition("@")[0] for one in used}) == len(used)


def test_no_job_has_more_rights_than_named() -> None:
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {"contents": "read"}] == []
    jobs = [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]
    assert all(job["timeout-minutes"] <= 120 for job in jobs)


def test_the_audit_asks_for_all_packages() -> None:
    lines = (ROOT / "scripts" / "audit").read_text().splitlines()
    assert any("pip-audit" in line and line.endswith("--requirement constraints.txt || status=1") for line in lines)
    assert ".venv/bin/python scripts/audit-javascript || status=1" in lines


def test_wheel_and_image_have_a_provenance() -> None:
    jobs = WORKFLOWS["release"]["jobs"]
    for name in ("packages", "image"):
        (attested,) = [one for one in jobs[name]["steps"] if one.get("uses", "").startswith("actions/attest-build")]
        assert attested["with"].keys() & {"subject-path", "subject-digest"}
        assert jobs[name]["permissions"]["id-token"] == "write"
    assert jobs["publish"]["needs"] == jobs["image"]["needs"] == "packages"


def test_dependabot_names_folders_that_have_dependencies() -> None:
    files = {"docker": "Dockerfile", "docker-compose": "docker-compose.yml"}
    for update in yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]:
        for folder in update.get("directories", [update.get("directory")]):
            if update["package-ecosystem"] in files:
                assert (ROOT / folder.strip("/") / files[update["package-ecosystem"]]).exists(), update


def test_pre_commit_hooks_are_commands_of_the_environment() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"].split() for hook in repository["hooks"]]
    assert [entry[0] for entry in entries if not entry[0].startswith(".venv/bin/")] == []
    linted = {" ".join(entry)[len(".venv/bin/") :].split(" --")[0] for entry in entries}
    script = (ROOT / "scripts" / "test").read_text()
    assert {name for name in linted if name.split()[0] in ("ruff", "mypy") and name not in script} == set()
    assert "clade schema" in linted
