"""Files of `.github` and the pre-commit hooks: valid, with pinned actions, few rights and commands that exist."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.readme import ROOT

GITHUB = ROOT / ".github"
FILES = sorted(GITHUB.glob("workflows/*.yml"))
SCHEMAS = {
    "vendor.github-workflows": FILES,
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "feature.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.compose-spec": [ROOT / "docker-compose.yml"],
}
"""Files by the JSON schema that check-jsonschema ships for them."""
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}


@pytest.mark.thorough
@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_file_matches_its_schema(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, SCHEMAS[schema])]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout


def test_continuous_integration_runs_the_script_on_every_declared_python() -> None:
    jobs = WORKFLOWS["ci"]["jobs"]
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step][-1] == ".ci/run"
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = [one.rpartition(" ")[2] for one in classifiers if ":: Python :: 3." in one]
    assert jobs["test"]["strategy"]["matrix"]["image"] == ["debian:bookworm", f"python:{declared[-1]}-trixie"]
    assert ["3.11", *jobs["wheel"]["strategy"]["matrix"]["python"], declared[-1]] == declared  # bookworm has 3.11


def test_every_action_is_a_commit_with_its_version_and_no_job_has_more_rights_than_named() -> None:
    used = {one for file in FILES for one in re.findall(r"\buses:\s*(.+)", file.read_text())}
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)] == []
    assert len({one.partition("@")[0] for one in used}) == len(used), "an action has one version in all workflows"
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {"contents": "read"}] == []


def test_wheel_and_image_have_a_provenance() -> None:
    jobs = WORKFLOWS["release"]["jobs"]
    for name in ("packages", "image"):
        (attested,) = [one for one in jobs[name]["steps"] if one.get("uses", "").startswith("actions/attest-build")]
        assert attested["with"].keys() & {"subject-path", "subject-digest"}
        assert jobs[name]["permissions"]["id-token"] == "write"
    assert jobs["publish"]["needs"] == jobs["image"]["needs"] == "packages"


def test_workflows_and_hooks_name_scripts_and_programs_that_exist() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert [entry for entry in entries if not entry.startswith(".venv/bin/")] == []
    text = "".join(file.read_text() for file in FILES)
    assert [name for name in re.findall(r"(?:scripts|\.ci)/[\w-]+", text) if not (ROOT / name).exists()] == []
