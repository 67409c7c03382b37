"""docs/type-ahead.md: what it says of the examples is what they are."""

import json
import re

from examples import follow_changes, type_ahead
from tests.readme import DOCS, blocks

PAGE = (DOCS / "type-ahead.md").read_text("utf-8")


def test_the_document_of_the_page_is_that_of_its_node():
    (shown,) = (json.loads(block) for block in blocks("json", PAGE))
    node = {
        "id": "location:5074472", "name": "Omaha", "names": [], "level": "CITY", "path": "US/NE/Omaha",
        "population": 486051,
        "ancestors": [{"id": "location:US"}, {"id": "location:US-NE"}],
    }  # fmt: skip
    assert follow_changes.document(node, shown["read"]) == shown
    assert shown.keys() == {"id"} | {field["name"] for field in follow_changes.FIELDS}


def test_the_figures_of_the_page_are_those_of_the_examples():
    assert (pause := re.search(r"PAUSE_MS = (\d+)", type_ahead.PAGE))
    assert f"{pause[1]} ms after the last key" in PAGE
    assert 'ENDPOINT = "' in type_ahead.PAGE
    assert 115 <= sum(follow_changes.PAUSES) <= 125  # "for two minutes"
    assert "examples.type_ahead:make_app" in (type_ahead.__doc__ or "")
