"""Queries of all pages: valid, run without errors, with the responses and the number of requests that the pages say."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from graphql import parse, print_ast, separate_operations, validate

from graph.app import create_app
from graph.hierarchies.registry import served
from graph.operation.selection import core_schema
from graph.settings import Settings
from store.connect import open_store, opened
from store.engine import ReadUsage, Store
from store.model.records import Item, Put
from store.sqlite.store import SQLiteStore
from tests.readme import DOCS, README, blocks, section
from tests.schemas import schema_of
from tests.serving import serving
from tests.systems.asking import Client
from tests.systems.writing import Clients
from tests.user_errors import take_user_errors, with_user_errors

CLASSES = served(Settings.model_fields["hierarchies"].default)
PAGES = {page.relative_to(README.parent).as_posix(): page.read_text("utf-8") for page in [README, *DOCS.rglob("*.md")]}
PAGES = {name: text for name, text in PAGES.items() if blocks("graphql", text)}

OWN_DATA = {
    f"docs/{name}.md"
    for name in "attributes dynamodb federation following-changes from-your-table languages modelling publishing "
    "writing".split()
}
"""Pages whose operations need other data or hierarchies than those of the demo, or write."""

WRITING = PAGES["docs/writing.md"]
BOTH_STORES = ("docs/querying.md", "docs/lists.md")
NUMBERS = {"One": 1, "Two": 2, "Three": 3}
BLOCK = r"```graphql\n(?P<query>(?:(?!```).)*)^```$"
STATED = re.compile(rf"\b(?P<number>One|Two|Three)\s+requests?\b[^`]*?:\n\n{BLOCK}", re.MULTILINE | re.DOTALL)
ANSWERED = re.compile(rf"^{BLOCK}\s*```json\n(?P<answer>.*?)^```$", re.MULTILINE | re.DOTALL)


def operations(text: str) -> list[str]:
    """The operations of a page, each by itself."""
    return [print_ast(one) for block in blocks("graphql", text) for one in separate_operations(parse(block)).values()]


@pytest.fixture(scope="module")
def few_items(demo_store: str) -> list[Item]:
    """The items of the demo data that pages ask for: roots, states and Nebraska, all categories, and records of ids."""

    async def read() -> list[Item]:
        async with open_store(demo_store) as store:
            pages = [page async for page in store.scan(ReadUsage())]
        return [item for page in pages for item in page if is_wanted(str(item["pk"]), str(item["sk"]))]

    return asyncio.run(read())


def is_wanted(pk: str, sk: str) -> bool:
    if sk.startswith("!") and sk != "!":
        return False  # the change log
    if pk.startswith("location#"):
        return sk.count("#") <= 1 or (pk == "location#US" and (sk.count("#") == 2 or sk.startswith("#NE#")))
    return pk.startswith(("category", "id#category")) or pk in ("location", "id#location:US-NE", "id#location:5074472")


@pytest.fixture
async def demo(store_url: str, demo_store: str, few_items: list[Item]) -> AsyncIterator[Store]:
    """The demo data in both stores; on DynamoDB, where loading all takes minutes, the items that the pages ask for."""
    is_sqlite = store_url.startswith("sqlite:")
    async with open_store(demo_store if is_sqlite else store_url) as store:
        if not is_sqlite:
            await store.create()
            for start in range(0, len(few_items), 100):
                await store.commit([Put(item) for item in few_items[start : start + 100]])
        yield store


@pytest.mark.both_stores
async def test_queries_of_the_guides_on_both_stores(demo: Store) -> None:
    client = Client(demo, *CLASSES)
    for page in BOTH_STORES:
        for query in operations(PAGES[page]):
            reply = await client.ask(query)
            assert not reply.errors, query
            assert all(reply.data.values()), query
        await compare_answers(client, PAGES[page])
        for stated in STATED.finditer(PAGES[page]):
            saved = NUMBERS[stated["number"]] - (await client.ask(stated["query"])).requests
            assert saved == 0 or (saved > 0 and isinstance(demo, SQLiteStore)), stated["query"]


MENU_COST = re.compile(
    r"(?P<trees>\d+) trees with (?P<nodes>\d+) categories, this takes (?P<requests>\d+) requests to DynamoDB "
    r"in (?P<rounds>\d+) rounds, (?P<units>\d+) read units"
)


@pytest.mark.both_stores
async def test_the_menu_of_the_frontends_costs_what_the_page_says(demo: Store) -> None:
    text = (DOCS / "frontends.md").read_text("utf-8")
    (query,) = re.findall(r"const MENU = `(.*?)`", text, re.DOTALL)
    stated = MENU_COST.search(text.replace("\n", " "))
    assert stated is not None
    reply = await Client(demo, *CLASSES).ask(query)
    roots = reply.data["categories"]
    costs = (len(roots["nodes"]), count(roots), reply.requests, reply.rounds, reply.units)
    same = 3 if isinstance(demo, SQLiteStore) else 5  # SQLite has other rounds, and estimates units from fewer bytes
    assert costs[:same] == tuple(map(float, stated.groups()))[:same]


def count(listed: dict[str, Any]) -> int:
    """The number of nodes in nested lists."""
    return sum(1 + count(node.get("children", {"nodes": []})) for node in listed["nodes"])


@pytest.mark.parametrize("page", sorted(PAGES.keys() - OWN_DATA - set(BOTH_STORES)))
async def test_queries_of_a_page(page: str, demo_store: str) -> None:
    async with open_store(demo_store) as store:
        client = Client(store, *CLASSES)
        for query in operations(PAGES[page]):
            assert validate(core_schema(schema_of(*CLASSES)[0]), parse(query)) == [], query
            assert not (await client.ask(query)).errors, query
        await compare_answers(client, PAGES[page])


async def compare_answers(client: Client, text: str) -> None:
    for match in ANSWERED.finditer(text):
        assert (await client.ask(match["query"])).data == json.loads(match["answer"])["data"], match["query"]


def test_every_query_of_the_guide_states_its_requests() -> None:
    text = PAGES["docs/querying.md"]
    assert [found["query"] for found in STATED.finditer(text)] == blocks("graphql", text)


# -- Pages that write --------------------------------------------------------------------------------------------------


async def test_operations_that_write_run_in_the_order_of_their_page(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/clade.db", make=True) as store:
        clients = Clients(store)
        answers, told = [], {one["query"]: json.loads(one["answer"]) for one in ANSWERED.finditer(WRITING)}
        for block in blocks("graphql", WRITING):
            answers.append(await (clients.faults if FAULTS in block else clients.ask)(block))
            if FAULTS in block:
                assert [one["field"] for one in answers[-1]] == [["name"], ["key"], ["parent"]]
            if block in told:
                assert answers[-1] == told.pop(block)["data"]
        assert told == {}
        assert answers[0]["city"]["node"]["parent"] == {"childCount": 1}
        assert answers[4] == {"city": {"path": "Atlantis/Basileia"}}
        revisions = [(one["name"], one["population"]) for one in answers[5]["city"]["history"]["nodes"]]
        assert revisions == [("Basileia", 58_500), ("Basileia", 60_000), ("Basilia", 60_000)]
        assert answers[5]["city"]["atRevision"] == {"name": "Basilia"}
        assert [change["event"] for change in answers[-2]["changes"]["changes"]] == ["MOVED", "DELETED", "RESTORED"]
        answers = [await clients.ask(block) for block in blocks("graphql", PAGES["docs/languages.md"])]
        assert (answers[2]["country"]["name"], answers[2]["country"]["nameLanguage"]) == ("Utopien", "de")
        assert answers[3]["locations"]["nodes"] == [{"name": "Utopien"}]
        # The last one is found by the default name: the French one is cleared.
        assert answers[4]["searchLocations"]["nodes"] == [{"name": "Utopien"}]


FAULTS = "userErrors { code message field rule }"  # of the example that has some
READER = "read:category/Garden"
BY_FORMER_PATHS = """{
  saws: category(path: "Garden/Saws") { id path revision history { totalCount } children { nodes { id path } } }
  saw: product(path: "Garden/Saws/S-1") { id path name history { nodes { name revision } } parent { id } }
  rakes: category(path: "Garden/Rakes") { id }
  byId: nodes(ids: %s) { id }
  garden: category(path: "Garden") { childCount children { nodes { key } } }
  roots: categories { nodes { path } }
  search: searchCategories(text: "saw") { nodes { name } }
}"""


def test_a_trash_keeps_what_is_in_it_and_hides_it_until_it_is_restored_or_emptied(tmp_path: Path) -> None:
    secret = "\u202e" * 32
    settings = Settings(store=f"sqlite:///{tmp_path}/t.db", reads="granted", writes="granted", jwt_secret=secret)

    async def create() -> None:
        async with opened(settings.store, make=True):
            pass

    asyncio.run(create())
    set_up, discard, look, restore, empty = blocks("graphql", section("Trash", DOCS / "writing.md"))
    with serving(create_app(settings)) as url, httpx.Client(base_url=url, timeout=60) as client:

        def ask(grant: str, query: str) -> Any:
            claims = {"sub": grant, "exp": 2**33, "grants": [grant]}
            headers = {"authorization": f"Bearer {jwt.encode(claims, secret, 'HS256')}"}
            return client.post("/graphql", json={"query": query}, headers=headers).json()

        def edit(query: str) -> Any:
            reply = ask("write:category", with_user_errors(query))
            assert "errors" not in reply, reply
            assert take_user_errors(reply["data"]) == []
            return reply["data"]

        def code(grant: str, query: str) -> str:
            return str(take_user_errors(ask(grant, with_user_errors(query))["data"])[0]["code"])

        edit(set_up)
        new = (
            'mutation {{ createCategoryNode(input: {{ parent: {{ path: "Garden" }}, key: "{}", name: "x", '
            "attributes: {{ category: {{}} }} }})"
        )
        edit(new.format("Zinc") + " { node { id } } }")
        edit("""mutation {
          updateCategoryNode(input: {node: {path: "Garden/Saws/S-1"}, name: "Saw 2"}) { node { id } }
          moveCategoryNode(input: {node: {path: "Garden/Saws"}, position: {last: true}}) { node { id } }
        }""")
        ids = [one["id"] for one in edit(BY_FORMER_PATHS % "[]").values() if isinstance(one, dict) and "id" in one]
        state = BY_FORMER_PATHS % json.dumps(ids)
        before = ask(READER, state)["data"]
        assert [node["key"] for node in before["garden"]["children"]["nodes"]] == ["Rakes", "Zinc", "Saws"]
        assert (len(ids), len(before["search"]["nodes"])) == (3, 2)

        edit(discard)
        assert ask(READER, state)["data"] == {
            "saws": None, "saw": None, "rakes": None, "byId": [None] * 3, "search": {"nodes": []},
            "garden": {"childCount": 1, "children": {"nodes": [{"key": "Zinc"}]}}, "roots": before["roots"],
        }  # fmt: skip
        found = edit(look)
        assert found["product"] == {"path": "Trash/2026-11-27-1/Saws/S-1", "history": {"totalCount": 2}}
        bins = found["category"]["children"]["nodes"]
        assert [(one["path"], one["name"], one["children"]["nodes"][0]["name"]) for one in bins] == [
            ("Trash/2026-11-27-1", "Garden", "Saws"), ("Trash/2026-11-27-2", "Garden", "Rakes"),
        ]  # fmt: skip
        assert [one["history"]["nodes"][0]["changedBy"] for one in bins] == ["write:category"] * 2
        to_trash = (
            'mutation {{ moveCategoryNode(input: {{ node: {{ path: "Garden/{}" }}, '
            'to: {{ parent: {{ path: "Trash/2026-11-27-1" }} }} }}) {{ node {{ id }} userErrors {{ code }} }} }}'
        )
        assert code("write:category/Garden", to_trash.format("Zinc")) == "NOT_FOUND"

        edit(new.format("Saws") + " { node { id } } }")
        assert code("write:category", to_trash.format("Saws")) == "ALREADY_EXISTS"
        assert code("write:category", restore) == "ALREADY_EXISTS"
        edit('mutation { moveCategoryNode(input: {node: {path: "Garden/Saws"}, key: "Yew"}) { node { id } } }')
        edit(restore)
        restored = ask(READER, state)["data"]
        assert {name: restored[name] for name in ("saws", "saw", "search")} == {
            name: before[name] for name in ("saws", "saw", "search")
        }
        assert [node["key"] for node in restored["garden"]["children"]["nodes"]] == ["Saws", "Yew", "Zinc"]
        edit(empty)
        deleted = f'deletedNode(id: "{ids[2]}") {{ path history {{ totalCount }} }}'
        assert edit(f"{{ nodes(ids: {json.dumps(ids)}) {{ id }} {deleted} }}") == {
            "nodes": [{"id": ids[0]}, {"id": ids[1]}, None],
            "deletedNode": {"path": "Trash/2026-11-27-2/Rakes", "history": {"totalCount": 1}},
        }
