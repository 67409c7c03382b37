"""Lookups while another process writes: a node that moves between two reads is found by its path and by its id."""

from collections.abc import Sequence
from typing import Any

import pytest

from resolvers.lists.arguments import NoSelection
from resolvers.lookup import ById, find_nodes
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.model.keys import node_key
from store.model.paths import parse_path
from store.writing.create_update import Create
from store.writing.edit import Edit
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.stores import Interrupted
from tests.systems.writing import Clients

BY_PATH = "query ($path: Path!) { categoryNode(path: $path) { path } }"
BY_ID = "query ($id: ID!) { node(id: $id) { ... on CategoryNode { path } } }"


def written_between(store: Store, edits: dict[int, Edit]) -> Any:
    """A store to which another process writes right before some of the reads, by their numbers."""

    async def before(read: int) -> None:
        if edit := edits.pop(read, None):
            await write(store, edit)

    return Interrupted(store, "get", before=before)


async def write(store: Store, *edits: Edit) -> None:
    for edit in edits:
        await Writer(store).write(edit, ReadUsage())


def move(source: str, target: str) -> Move:
    return Move(CATEGORY, parse_path(source), parse_path(target))


async def plant(store: Store) -> str:
    """The trees r and o; r/b/x, whose id is returned, was at r/a/x."""
    for path in ("r", "r/a", "r/b", "r/a/x", "o", "o/p"):
        await write(store, Create(CATEGORY, parse_path(path), "CATEGORY", path, {}))
    await write(store, move("r/a/x", "r/b/x"))
    (item,) = await store.get([node_key("category", ("r", "b", "x"))], ReadUsage())
    assert item is not None
    return str(item["id"])


@pytest.mark.parametrize("asked", ["r/a/x", "r/b/x"])
@pytest.mark.parametrize("reads", [(1,), (2,), (3,), (4,), (1, 2), (2, 3), (3, 4), (2, 4), (1, 2, 3), (2, 3, 4)])
async def test_a_node_that_is_moved_to_and_fro_is_found_by_its_path(
    store: Store, reads: Sequence[int], asked: str
) -> None:
    await plant(store)
    moves = [move("r/b/x", "r/a/x"), move("r/a/x", "r/b/x")]
    between = written_between(store, {read: moves[number % 2] for number, read in enumerate(reads)})
    answer = await Clients(between).ask(BY_PATH, path=asked)
    assert answer["categoryNode"] is not None, between.calls


@pytest.mark.parametrize("target", ["r/a/x", "o/p/x", "x"])
async def test_a_node_that_moves_is_found_by_its_id(store: Store, target: str) -> None:
    node_id = await plant(store)
    between = written_between(
        store, {2: move("r/b/x", target), 3: Create(CATEGORY, ("r", "b", "x"), "CATEGORY", "x", {})}
    )
    answer = await Clients(between).ask(BY_ID, id=node_id)
    assert answer["node"] == {"path": target}


async def test_a_node_that_is_deleted_costs_three_reads_and_no_tree_version_shows_that_it_is_gone(store: Store) -> None:
    node_id = await plant(store)
    between = written_between(store, {2: Delete(CATEGORY, ("r", "b", "x"), Policy.CASCADE)})
    request = Request(between, {"category": CATEGORY})
    assert await find_nodes(request, [(ById("category", node_id), NoSelection())]) == [None]
    assert request.reads.requests == 3
    assert request.state.validating_partitions == frozenset()
