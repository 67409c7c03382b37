"""Expected revisions: an edit never writes to another node at its path than the one whose revision is meant."""

from typing import Any

import pytest

from store.engine import ReadUsage, Store
from store.errors import BadPath, Conflict
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import derived_id
from store.writing.create_update import Update
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.store.writing import journaled
from tests.store.writing.journaled import cascade, create, move, write

FIRST = derived_id("category", ("r", "a", "p"))
REDIRECT = move("r/0", "r/1")  # a tree in which it is redirected
HISTORIES = {  # of r/a/p, where first one node is, and in the end another one
    "is restored by the first id of the path": [
        REDIRECT, create("r/a/p", node_id="own"), cascade("r/a/p"), create("r/a/p"), cascade("r/a/p"),
        create("r/a/p", node_id=FIRST),
    ],
    "is restored after a large deletion": [
        REDIRECT, create("r/a/p", node_id="own"), cascade("r/a/p"), create("r/a/p"), cascade("r/a"), create("r/a"),
        create("r/a/p", node_id=FIRST),
    ],
}  # fmt: skip


async def check_meant(store: Store, place: str = "r/a/p") -> None:
    """By its path the node is not changed, whatever revision is expected; by its id it is."""
    path = parse_path(place)
    found = await journaled.there(store, node_key("category", path))
    edit: Any = {"expected": found["revision"]}
    with pytest.raises(Conflict, match="name the node by its id"):
        await Writer(store).write(Update(CATEGORY, path, "Mine", None, {}, **edit), ReadUsage())
    named = Update(CATEGORY, path, "Mine", None, {}, **edit, ids={path: found["id"]})
    written = await Writer(store).write(named, ReadUsage())
    assert written.record.revision == found["revision"] + 1


@pytest.mark.parametrize("history", HISTORIES)
async def test_no_revision_is_that_of_a_node_which(store: Store, history: str) -> None:
    await journaled.plant(store)
    for edit in HISTORIES[history]:
        await write(store, edit)
    await check_meant(store)
    await invariants.check(store)


async def test_no_revision_is_that_of_a_node_whose_large_move_is_undone(store: Store) -> None:
    """Its copy has written over the redirect of the node that was there before."""
    long = "z" * 500
    await journaled.plant(store, f"o/{long}", f"r/a/{long}")
    for edit in (move("o/p", "r/a/a"), move("r/a/a", "o/p"), create("r/a/a")):
        await write(store, edit)
    meanwhile: Any = journaled.edited_meanwhile(store, create(f"r/a/{long}/{'n' * 20}"))
    writer = Writer(meanwhile, journaled.SOON)
    with pytest.raises(BadPath):
        await writer.write(move("r/a", f"o/{long}/a"), ReadUsage())
    await writer.move_worker.finished()
    await check_meant(store, "r/a/a")
