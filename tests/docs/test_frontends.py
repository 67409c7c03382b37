"""docs/frontends.md and docs/following-changes.md: their programs run in Node, with the packages of the tests.

`test_recipes.py` runs the recipes.
"""

import asyncio
import itertools
import json
import re
import shutil
from pathlib import Path

import httpx
import pytest
from graphql import get_named_type, parse, validate

from graph.app import create_app
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.selection import core_schema
from graph.settings import Settings
from store.connect import opened
from tests.clients.programs import HERE, compile_relay, needs_node, run
from tests.readme import DOCS, blocks
from tests.schemas import schema_of
from tests.serving import serving
from tests.systems.asking import plant

FOLLOWING = (DOCS / "following-changes.md").read_text("utf-8")
FETCH, APOLLO, URQL, RELAY, PERSIST, DELETED = blocks(
    "js", (DOCS / "frontends.md").read_text("utf-8").partition("\n## Recipes\n")[0]
)
POLICIES = [
    re.findall(r'"(\w+)"', keys)
    for page in ("frontends.md", "typed-clients.md")
    for keys in re.findall(r"relayStylePagination\((.*?)\);", (DOCS / page).read_text("utf-8"))
]
"""The arguments by which the pages tell lists in Apollo's cache apart."""
LISTS = """
const LISTS = gql`query Lists($depth: Int, $first: Int, $last: Int, $before: String) {
  country(path: "US") { id it: descendants(maxDepth: $depth, first: $first, last: $last, before: $before) {
    edges { cursor node { id path } } pageInfo { hasNextPage endCursor startCursor hasPreviousPage } } } }`;
const read = async (variables, fetchPolicy) => {
  const { edges, pageInfo } = (await client.query({ query: LISTS, variables, fetchPolicy })).data.country.it;
  const { startCursor, endCursor, hasNextPage, hasPreviousPage } = pageInfo;
  return [edges.map(({ node }) => node.path).join(), startCursor, endCursor, hasNextPage, hasPreviousPage];
};
const asked = [{ depth: 1, first: 2 }, { depth: 2, first: 2 }, { depth: 2, last: 2 }];
asked.push({ depth: 2, last: 2, before: (await read(asked[2]))[1] });
for (const variables of [...asked, ...asked]) {
  const [shown, sent] = [await read(variables), await read(variables, "no-cache")];
  if (String(shown) !== String(sent)) console.log(variables, String(shown), String(sent));
}
"""
"""Lists that differ in an argument, each of which is shown as the server sends it."""
ADDRESS = "http://127.0.0.1:8000"
LINE_SECONDS = 60.0


def program(text: str, folder: Path) -> Path:
    """A program of the page, with the packages of the tests."""
    (folder / "node_modules").symlink_to(HERE.parent / "node_modules")
    (folder / "program.mjs").write_text(text)
    return folder / "program.mjs"


@needs_node
@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param(FETCH, "United States > Nebraska > Omaha\n", id="fetch"),
        pytest.param(APOLLO + LISTS, "Omaha, Lincoln, Bellevue, Grand Island, Kearney, Fremont\n", id="apollo",
                     marks=pytest.mark.thorough),
        pytest.param(URQL, "Bellevue, Columbus, Fremont, Grand Island, Hastings, Kearney\n", id="urql",
                     marks=pytest.mark.thorough),
    ],
)  # fmt: skip
def test_a_program_reads_the_demo_data(text: str, printed: str, demo_server: str, tmp_path: Path) -> None:
    assert ADDRESS in text
    assert run("node", program(text.replace(ADDRESS, demo_server), tmp_path)) == printed


def test_the_keys_of_apollos_lists_are_all_arguments_that_distinguish_lists() -> None:
    schema, keys = schema_of(Location, CategoryNode)[0], set[str]()
    for name, kind in core_schema(schema).type_map.items():
        for field in getattr(kind, "fields", {}).values() if not name.endswith("Input") else ():
            if str(get_named_type(field.type)).endswith("Connection"):
                keys.update(field.args)
    assert "maxDepth" in keys
    assert [sorted(policy) for policy in POLICIES] == [sorted(keys - {"first", "after"})] * 2


@needs_node
def test_relays_compiler_takes_the_fragment(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "menu.js").write_text(RELAY)
    made = compile_relay(tmp_path, HERE.parents[1] / "schema.graphql", "javascript")
    assert {file.name.partition(".")[0] for file in made.iterdir()} >= {"menuChildrenQuery", "menuPageQuery"}


@needs_node
def test_the_documents_that_the_program_writes_are_accepted_and_no_others(demo_store: str, tmp_path: Path) -> None:
    (document_id,) = run("node", program(PERSIST, tmp_path), cwd=tmp_path).split()
    settings = Settings(store=demo_store, trusted_documents=str(tmp_path / "documents.json"))
    with serving(create_app(settings)) as url:
        asked = {"documentId": document_id, "variables": {"path": "Electronics"}}
        assert httpx.post(f"{url}/graphql", json=asked).json()["data"]["category"]["name"] == "Electronics"
        assert "errors" in httpx.post(f"{url}/graphql", json={"query": "{ hierarchies { name } }"}).json()


@needs_node
def test_a_deleted_node_leaves_the_caches_and_one_that_faults_have_kept_stays(tmp_path: Path) -> None:
    (tmp_path / "functions.mjs").write_text(f"{DELETED}export {{ update, updates, updater }};")
    kept = run("node", HERE / "deleted.mjs", tmp_path / "functions.mjs")
    assert json.loads(kept) == [[True] * 3, [False] * 3]


# -- Following changes -------------------------------------------------------------------------------------------------


RENAME = 'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "NE %d"}) { node { id } } }'


async def lines_until_update(url: str, *command: str | Path) -> list[str]:
    """The lines that a program prints up to an update. While none comes NE is renamed, since programs start slowly."""
    following = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert following.stdout is not None
    found: list[str] = []
    numbers = itertools.count()
    try:
        async with httpx.AsyncClient(base_url=url) as client, asyncio.timeout(LINE_SECONDS):
            while not found or "UPDATED" not in found[-1]:
                reading = asyncio.create_task(following.stdout.readline())
                while not (await asyncio.wait({reading}, timeout=0.2))[0]:
                    await client.post("/graphql", json={"query": RENAME % next(numbers)})
                assert reading.result(), found
                found.append(reading.result().decode().rstrip("\n"))
        return found
    finally:
        following.kill()
        await following.wait()


@needs_node
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is missing")
async def test_curl_and_the_program_of_the_page_print_changes_as_they_are_made(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'clade.db'}"
    async with opened(store_url, make=True) as store:
        await plant(store, Location, [(("US",), "COUNTRY"), (("US", "NE"), "STATE")])
    with serving(create_app(Settings(store=store_url, writes="on"))) as url:
        (command,) = blocks("sh", FOLLOWING)
        lines = await lines_until_update(url, "sh", "-c", f"exec {command.replace(ADDRESS, url)}")
        assert lines[0] == "event: next"
        assert lines[1].startswith("id: ")
        first = json.loads(lines[2].removeprefix("data: "))
        assert first["data"]["changes"] == {"changes": [], "cursor": lines[1].removeprefix("id: ")}
        assert '"path":"US/NE"' in lines[-1]
        following = program(blocks("js", FOLLOWING)[0].replace(ADDRESS, url), tmp_path)
        assert (await lines_until_update(url, "node", following))[-1] == "UPDATED US/NE"


def test_the_subscription_of_the_page_is_valid() -> None:
    (query,) = blocks("graphql", FOLLOWING)
    assert validate(core_schema(schema_of(Location)[0]), parse(query)) == []
