"""docs/writing.md and docs/languages.md: their operations are run as they are written, from top to bottom."""

import shutil
from pathlib import Path
from typing import Any

from store.connect import opened
from tests import invariants
from tests.readme import DOCS, blocks
from tests.systems.writing import Clients

BLOCKS = blocks("graphql", (DOCS / "writing.md").read_text("utf-8"))
LANGUAGES = blocks("graphql", (DOCS / "languages.md").read_text("utf-8"))


async def run(clients: Clients) -> list[dict[str, Any]]:
    """The answers to the page's operations, of which one is the example of user errors."""
    return [
        {"faults": await clients.faults(block)} if "Lemuria" in block else await clients.ask(block) for block in BLOCKS
    ]


async def test_all_operations_of_the_page_run_without_errors(store):
    answers = await run(Clients(store))
    created, _, refused, _, moved, edited, read, _, changes, _ = answers
    assert created["city"]["node"]["parent"] == {"childCount": 1}
    assert [(fault["code"], fault["field"]) for fault in refused["faults"]] == [
        ("BAD_USER_INPUT", ["name"]),
        ("BAD_USER_INPUT", ["id"]),
        ("NOT_FOUND", ["parent"]),
    ]
    assert moved == {"city": {"path": "Atlantis/Basileia"}}
    nodes = [(node["path"], node["revision"]) for node in edited["editLocations"]["nodes"]]
    assert nodes == [("Atlantis/North", 1), ("Atlantis/North/Basileia", 3), ("Atlantis/North/Basileia", 3)]
    revisions = read["city"]["history"]
    assert [(revision["name"], revision["population"]) for revision in revisions["nodes"]] == [
        ("Basileia", 61_000),
        ("Basileia", 60_000),
        ("Basilia", 60_000),
    ]
    assert read["city"]["atRevision"] == {"name": "Basilia"}
    events = [change["event"] for change in changes["changes"]["changes"]]
    assert events == ["MOVED", "CREATED", "MOVED", "UPDATED", "DELETED"]
    await invariants.check(store)


async def test_all_operations_of_the_page_run_on_the_demo_data(demo_store: str, tmp_path: Path):
    shutil.copy(demo_store.removeprefix("sqlite:///"), tmp_path / "clade.db")
    async with opened(f"sqlite:///{tmp_path}/clade.db") as store:
        clients = Clients(store)
        await run(clients)
        for block in LANGUAGES:
            await clients.ask(block)


async def test_the_names_of_the_page_of_languages_are_found(store):
    clients = Clients(store)
    answers = [await clients.ask(block) for block in LANGUAGES]
    assert answers[2]["country"]["name"] == "Utopien"
    assert answers[2]["country"]["nameLanguage"] == "de"
    assert answers[3]["locations"]["nodes"] == [{"name": "Utopien"}]
    assert answers[4]["searchLocations"]["nodes"] == [
        {"name": "Utopien"}
    ]  # by the default name: the French one is cleared


async def test_the_rules_of_names_keys_ids_and_positions_are_those_of_the_pages(store):
    clients = Clients(store)

    async def create(parent: str | None, key: str, level: str, more: str = "") -> dict[str, str]:
        above = f'parent: {{path: "{parent}"}}, ' if parent else ""
        given = f'{above}key: "{key}", name: "x", attributes: {{ {level}: {{}} }}{more}'
        answer = await clients.ask(f"mutation {{ createLocation(input: {{{given}}}) {{ node {{ id path }} }} }}")
        node: dict[str, str] = answer["createLocation"]["node"]
        return node

    async def children() -> list[str]:
        found = await clients.ask('{ location(path: "US") { children { nodes { key } } } }')
        return [node["key"] for node in found["location"]["children"]["nodes"]]

    async def reorder(path: str, place: str) -> None:
        given = f'node: {{path: "{path}"}}, position: {{{place}}}'
        await clients.ask(f"mutation {{ moveLocation(input: {{{given}}}) {{ node {{ revision }} }} }}")

    await create(None, "US", "country")
    for key in ("b", "B", "10", "9", "É"):
        await create("US", key, "state")
    await create("US", "Zed", "city")
    assert await children() == ["Zed", "10", "9", "B", "b", "É"]  # levels by name, keys by character

    await reorder("US/b", "first: true")
    await reorder("US/9", "last: true")
    for key in ("0", "ÉA", "z"):
        await create("US", key, "state")
    assert await children() == ["Zed", "b", "0", "10", "B", "z", "É", "9", "ÉA"]

    for argument in (
        'key: "k", name: ""',
        'key: "", name: "k"',
        *(f'key: "k", name: "k", id: "{c}"' for c in (" ", "#", ":")),
    ):
        given = f"{argument}, attributes: {{ country: {{}} }}"
        refused = f"mutation {{ createLocation(input: {{{given}}}) {{ node {{ id }} }} }}"
        assert (await clients.refusal(refused))[0] in ("BAD_USER_INPUT", "BAD_PATH")
    decomposed = await create("US", "Zu\u0308rich", "city", ', id: "a/ä.1"')
    assert decomposed == {"id": "location:a/ä.1", "path": "US/Z\u00fcrich"}
    for _ in range(2):
        answer = await clients.ask(
            'mutation { updateLocation(input: {node: {path: "US/Zed"}, name: "x"}) { node { revision } } }'
        )
        assert answer["updateLocation"]["node"] == {"revision": 1}
