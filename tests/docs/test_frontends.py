"""docs/frontends.md: its programs run in Node against the demo data, with the packages of the tests.

`test_recipes.py` runs the recipes.
"""

import re
import subprocess
from pathlib import Path

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from tests.clients.programs import HERE, compile_relay, needs_node, run
from tests.readme import DOCS, blocks
from tests.serving import serving

PAGE = (DOCS / "frontends.md").read_text("utf-8")
FETCH, APOLLO, URQL, RELAY, PERSIST, DELETED = blocks("js", PAGE.partition("\n## Recipes\n")[0])
PRINTED = {
    FETCH: "United States > Nebraska > Omaha\n",
    APOLLO: "Omaha, Lincoln, Bellevue, Grand Island, Kearney, Fremont\n",
    URQL: "Bellevue, Columbus, Fremont, Grand Island, Hastings, Kearney\n",
}
NAMES = {FETCH: "fetch", APOLLO: "apollo", URQL: "urql"}

pytestmark = needs_node


def run_program(program: str, folder: Path) -> str:
    """Run a program of the page with the packages of the tests; returns its output."""
    (folder / "node_modules").symlink_to(HERE.parent / "node_modules")
    (folder / "program.mjs").write_text(program)
    return run("node", "program.mjs", cwd=folder)


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, marks=[] if NAMES[one] == "fetch" else pytest.mark.thorough) for one in PRINTED],
    ids=NAMES.get,
)
def test_a_program_reads_the_demo_data(program: str, demo_server: str, tmp_path: Path) -> None:
    address = "http://127.0.0.1:8000/graphql"
    assert address in program
    assert run_program(program.replace(address, f"{demo_server}/graphql"), tmp_path) == PRINTED[program]


def test_relays_compiler_takes_the_fragment(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "menu.js").write_text(RELAY)
    made = compile_relay(tmp_path, HERE.parents[1] / "schema.graphql", "javascript")
    assert {file.name.partition(".")[0] for file in made.iterdir()} >= {"menuChildrenQuery", "menuPageQuery"}


def test_the_documents_that_the_program_writes_are_accepted_and_no_others(demo_store: str, tmp_path: Path) -> None:
    (document_id,) = run_program(PERSIST, tmp_path).split()
    settings = Settings(store=demo_store, trusted_documents=str(tmp_path / "documents.json"))
    with serving(create_app(settings)) as url:
        asked = {"documentId": document_id, "variables": {"path": "Electronics"}}
        assert httpx.post(f"{url}/graphql", json=asked).json()["data"]["category"]["name"] == "Electronics"
        assert "errors" in httpx.post(f"{url}/graphql", json={"query": "{ hierarchies { name } }"}).json()


def test_the_functions_for_deleted_nodes_are_programs(tmp_path: Path) -> None:
    (tmp_path / "functions.mjs").write_text(DELETED.replace("const update =", "export const update ="))
    subprocess.run(["node", "--check", "functions.mjs"], cwd=tmp_path, check=True, timeout=60)
    assert re.search(r"deleteLocation", DELETED)
