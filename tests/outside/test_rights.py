"""Rights in a short form, with fixed seeds: what is hidden changes no byte of a response."""

import json
import re

import pytest

from tests.outside.processes import EXTREMES, Engine, command, place
from tests.outside.rights import RIGHTS
from tests.selection import until

pytestmark = pytest.mark.thorough

KINDS = ["sqlite", "dynamodb"]


def _skip_without_engine(kind):
    if kind == "dynamodb" and Engine.binary() is None:
        pytest.skip("npm's @dynoxide/linux-x64 is missing")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_hidden_changes_no_byte_of_a_response(kind):
    _skip_without_engine(kind)
    with place(kind) as found:
        assert RIGHTS.run(found, 1, until(0, 15))


def test_a_search_finds_a_visible_node_however_many_hidden_ones_match():
    rows = [{"path": tree, "level": "BOX", "name": tree} for tree in ("mine", "theirs")]
    rows += [{"path": f"mine/{n}", "level": "CARD", "name": f"other {n}", "title": ""} for n in range(2_050)]
    rows += [{"path": f"theirs/{n}", "level": "CARD", "name": "needle", "title": ""} for n in range(1_900)]
    rows += [{"path": "mine/sought", "level": "CARD", "name": "needle work", "title": ""}]
    with place("sqlite") as found:
        file = found.folder / "things.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        command("import", "thing", str(file), store=found.store, hierarchies=str(EXTREMES))
        grant = ("--grant", "read:thing/mine")
        created = command("key", "create", "--name", "me", *grant, store=found.store, hierarchies=str(EXTREMES))
        key = re.search(r"clade_\S+", created.stdout)
        assert key
        search = '{ searchThings(text: "needle") { complete nodes { path } } }'
        answer = found.server(reads="granted").ask(search, key=key[0])
        assert answer.data["searchThings"] == {"complete": True, "nodes": [{"path": "mine/sought"}]}
