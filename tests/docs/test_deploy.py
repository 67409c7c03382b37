"""docs/deploy.md: its commands of Clade are run as they are written, and the files and options that it names exist."""

import json
import os
import re
import subprocess
import uuid
from pathlib import Path

import pytest

from graph.settings import Settings
from tests.conftest import CLADE
from tests.deploy.templates import template
from tests.engines import Engine
from tests.readme import DOCS, ROOT, blocks

PAGE = (DOCS / "deploy.md").read_text("utf-8")
NODE = '{"path": "US", "level": "COUNTRY", "name": "United States"}\n'


@pytest.mark.thorough
def test_the_commands_of_the_page_run(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "nodes.jsonl").write_text(NODE)
    environment = {
        **os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", "AWS_ENDPOINT_URL_DYNAMODB": engine.url,
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
    }  # fmt: skip
    name = f"clade-{uuid.uuid4().hex}"
    commands = "clade import location nodes.jsonl --store sqlite:///shops.db\n" + "".join(blocks("sh", PAGE))
    commands = commands.replace("dynamodb://clade?", f"dynamodb://{name}?")
    ended = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert "the table is made" in ended.stdout
    assert "1 node among them" in ended.stdout
    outputs = json.loads((tmp_path / "table.json").read_text())["Outputs"]
    assert outputs.keys() >= {"TableArn", "ReadingPolicyArn", "WritingPolicyArn", "AdminPolicyArn"}


def test_the_parameters_on_the_page_are_those_of_the_templates() -> None:
    for name in ("ecs.yaml", "lambda/template.yaml"):
        (block,) = [one for one in blocks_of("text") if f"--template-file deploy/{name}" in one]
        given = set(re.findall(r"\b([A-Z][A-Za-z]+)=", block.partition("--parameter-overrides")[2]))
        parameters = template(name)["Parameters"]
        assert given <= parameters.keys()
        assert {key for key, one in parameters.items() if "Default" not in one} <= given


def blocks_of(language: str) -> list[str]:
    """Blocks of code, also those of lists, which are indented."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_file_setting_and_parameter_that_is_named_exists() -> None:
    named = set(re.findall(r"CLADE_(?!TEST_)([A-Z_]+)", PAGE))
    assert named <= {name.upper() for name in Settings.model_fields}
    parameters = set().union(*(template(name)["Parameters"] for name in ("ecs.yaml", "lambda/template.yaml")))
    assert set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)=[\w.]+`", PAGE)) <= parameters
    assert "RepairSchedule" in parameters
    assert all((ROOT / name).exists() for name in re.findall(r"`(deploy/[\w/.]+)`", PAGE))
