"""What the page about writing shows is run as it is written, from top to bottom."""

import re
from pathlib import Path

from tests import invariants
from tests.graph.writing import Clients

PAGE = Path(__file__).parents[2] / "docs" / "writing.md"
BLOCKS = re.findall(r"^```graphql\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


async def test_every_operation_of_the_page_is_answered_without_errors(store):
    clients = Clients(store)
    answers = [await clients.ask(block) for block in BLOCKS]
    assert answers[0]["city"]["node"]["parent"] == {"childCount": 1}
    assert answers[3] == {"city": {"path": "Austria/Vienna"}}
    revisions = answers[4]["city"]["history"]
    assert [(one["name"], one["population"]) for one in revisions["nodes"]] == [("Vienna", 2000000), ("Wien", 2000000)]
    assert answers[4]["city"]["atRevision"] == {"name": "Wien"}
    assert [change["event"] for change in answers[6]["changes"]["changes"]] == ["MOVED", "DELETED"]
    await invariants.check(store)
