"""docs/writing.md and docs/languages.md: their operations are run as they are written, from top to bottom."""

import shutil
from pathlib import Path

from store.connect import opened
from tests import invariants
from tests.readme import DOCS, blocks
from tests.systems.writing import Clients

BLOCKS = blocks("graphql", (DOCS / "writing.md").read_text("utf-8"))
LANGUAGES = blocks("graphql", (DOCS / "languages.md").read_text("utf-8"))


async def test_all_operations_of_the_page_run_without_errors(store):
    clients = Clients(store)
    answers = [await clients.ask(block) for block in BLOCKS]
    assert answers[0]["city"]["node"]["parent"] == {"childCount": 1}
    assert answers[3] == {"city": {"path": "Atlantis/Basileia"}}
    revisions = answers[4]["city"]["history"]
    assert [(revision["name"], revision["population"]) for revision in revisions["nodes"]] == [
        ("Basileia", 60_000),
        ("Basilia", 60_000),
    ]
    assert answers[4]["city"]["atRevision"] == {"name": "Basilia"}
    assert [change["event"] for change in answers[6]["changes"]["changes"]] == ["MOVED", "DELETED"]
    await invariants.check(store)


async def test_all_operations_of_the_page_run_on_the_demo_data(demo_store: str, tmp_path: Path):
    shutil.copy(demo_store.removeprefix("sqlite:///"), tmp_path / "clade.db")
    async with opened(f"sqlite:///{tmp_path}/clade.db") as store:
        clients = Clients(store)
        for block in BLOCKS + LANGUAGES:
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

    async def create(parent: str, key: str, level: str, more: str = "") -> dict[str, str]:
        arguments = f'parent: {parent}, key: "{key}", name: "x", attributes: {{ {level}: {{}} }}{more}'
        answer = await clients.ask(f"mutation {{ createLocation({arguments}) {{ node {{ id path }} }} }}")
        node: dict[str, str] = answer["createLocation"]["node"]
        return node

    async def children() -> list[str]:
        found = await clients.ask('{ location(path: "US") { children { nodes { key } } } }')
        return [node["key"] for node in found["location"]["children"]["nodes"]]

    async def reorder(path: str, place: str) -> None:
        await clients.ask(f'mutation {{ reorderLocation(path: "{path}", {place}) {{ node {{ revision }} }} }}')

    await create("null", "US", "country")
    for key in ("b", "B", "10", "9", "É"):
        await create('"US"', key, "state")
    await create('"US"', "Zed", "city")
    assert await children() == ["Zed", "10", "9", "B", "b", "É"]  # levels by name, keys by character

    await reorder("US/b", "first: true")
    await reorder("US/9", "last: true")
    for key in ("0", "ÉA", "z"):
        await create('"US"', key, "state")
    assert await children() == ["Zed", "b", "0", "10", "B", "z", "É", "9", "ÉA"]

    for argument in (
        'key: "k", name: ""',
        'key: "", name: "k"',
        *(f'key: "k", name: "k", id: "{c}"' for c in (" ", "#", ":")),
    ):
        refused = f"mutation {{ createLocation({argument}, attributes: {{ country: {{}} }}) {{ node {{ id }} }} }}"
        assert (await clients.refusal(refused))[0] in ("BAD_USER_INPUT", "BAD_PATH")
    decomposed = await create('"US"', "Zu\u0308rich", "city", ', id: "a/ä.1"')
    assert decomposed == {"id": "location:a/ä.1", "path": "US/Z\u00fcrich"}
    for _ in range(2):
        answer = await clients.ask('mutation { updateLocation(path: "US/Zed", name: "x") { node { revision } } }')
        assert answer["updateLocation"]["node"] == {"revision": 1}
