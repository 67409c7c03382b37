"""docs/publishing.md: its commands and operations run as they are written, each by the caller that the text names."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from tests.conftest import CLADE
from tests.readme import DOCS, blocks
from tests.serving import serving

PAGE = (DOCS / "publishing.md").read_text("utf-8")
STEP = re.compile(r"^```graphql\n(?P<query>.*?)^```$(?:\s*```json\n(?P<answer>.*?)^```$)?", re.MULTILINE | re.DOTALL)


def prepare(store_url: str, folder: Path) -> dict[str, str]:
    """Run the commands of the page; returns the keys of the callers."""
    (folder / "shop.jsonl").write_text(blocks("json", PAGE)[0])
    commands = blocks("sh", PAGE)[0].replace("sqlite:///shop.db", f"'{store_url}'").replace("clade serve\n", "")
    environment = {
        **os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}",
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
    }  # fmt: skip
    if store_url.startswith("dynamodb:"):
        commands = f"clade table create --store '{store_url}'\n{commands}"
    run = subprocess.run(
        ["sh", "-ec", commands], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    editor, site = re.findall(r"^clade_\S+$", run.stdout, re.MULTILINE)
    return {"editor": editor, "site": site}


@pytest.mark.thorough
def test_a_draft_is_hidden_then_public_then_hidden(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = prepare(store_url, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    settings = Settings(store=store_url, reads="granted", writes="granted")
    with serving(create_app(settings)) as url:

        def ask(caller: str, query: str) -> Any:
            headers = {"authorization": f"Bearer {keys[caller]}"}
            return httpx.post(f"{url}/graphql", json={"query": query}, headers=headers, timeout=30).json()

        compared = 0
        for step in STEP.finditer(PAGE):
            caller = re.findall(r"\b(editor|site)\b", PAGE[: step.start()])[-1]  # the last one that is named
            reply = ask(caller, step["query"])
            assert "errors" not in reply, reply
            if step["answer"]:
                compared += 1
                assert reply == json.loads(step["answer"])
        assert compared == 4
        assert ask("site", '{ category(path: "Shop/Televisions") { childCount } }')["data"] == {
            "category": {"childCount": 0}
        }
