"""docs/writing.md: its operations are run as they are written, from top to bottom."""

import re
import shutil
from pathlib import Path

from store.connect import opened
from tests import invariants
from tests.systems.writing import Clients

PAGE = Path(__file__).parents[2] / "docs" / "writing.md"
BLOCKS = re.findall(r"^```graphql\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


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
        for block in BLOCKS:
            await clients.ask(block)
