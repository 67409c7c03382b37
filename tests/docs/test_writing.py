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
