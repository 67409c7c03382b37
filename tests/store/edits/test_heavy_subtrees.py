"""Subtrees of few but large nodes: the bytes that a transaction removes count as well."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.edits.create_update import Create, Edit
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import TooLarge
from store.model import items
from store.model.items import Change, Put
from store.model.items import Delete as Removal
from store.model.keys import Path
from store.writer.writer import Writer
from tests import invariants
from tests.engines import Engine
from tests.hierarchies import CATEGORY

LIMIT = 4 * 1024 * 1024  # of one transaction of DynamoDB, with what it removes
TOP = ("r", "top")


class Weighed:
    """A store that refuses what DynamoDB does: transactions of more than 4 MB, with all that they write and remove."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Change]) -> None:
        removed = await self._store.get(
            [one.key for one in changes if isinstance(one, Removal)], ReadUsage(), strong=True
        )
        size = sum(items.size_of(items.canonical_item(one.item)) for one in changes if isinstance(one, Put))
        assert size + sum(items.size_of(item) for item in removed if item) <= LIMIT
        await self._store.commit(changes)
        self.commits += 1


@pytest.fixture
async def weighed(engine: Engine) -> AsyncIterator[Any]:
    async with open_store(engine.address(f"clade-{uuid.uuid4().hex}")) as store:
        await store.create()
        yield Weighed(store)
        await invariants.check(store)


async def write(store: Any, *edits: Edit) -> bool:
    """Make edits to their ends; whether the last one was journaled."""
    writer = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0))
    for edit in edits:
        written = await writer.write(edit, ReadUsage())
        await writer.move_worker.finished()
    return written.move is not None


def create(path: Path, size: int) -> Create:
    return Create(CATEGORY, path, "CATEGORY", "x", {"note": "x" * size})


@pytest.mark.parametrize(("nodes", "size", "journaled"), [(6, 250_000, False), (6, 390_000, True)])
@pytest.mark.parametrize("edit", [Move(CATEGORY, TOP, ("r", "b")), Delete(CATEGORY, TOP, Policy.CASCADE)])
async def test_a_heavy_subtree_is_moved_and_deleted(
    weighed: Any, edit: Edit, nodes: int, size: int, journaled: bool
) -> None:
    await write(
        weighed,
        create(("r",), 9),
        *[create((*TOP, *below), size) for below in [(), *[(f"{n}",) for n in range(nodes - 1)]]],
    )
    assert await write(weighed, edit) == journaled


async def test_the_bytes_of_ancestors_count_as_well(weighed: Any) -> None:
    above = [("r",), *[("r", *"abcdef"[: n + 1]) for n in range(6)]]
    top = (*above[-1], "top")
    await write(
        weighed,
        *[create(path, 390_000) for path in above],
        *[create((*top, *below), 250_000) for below in [(), ("x",)]],
    )
    assert await write(weighed, Move(CATEGORY, top, (*above[-1], "other")))


async def test_reparenting_of_a_heavy_node_is_rejected(weighed: Any) -> None:
    await write(
        weighed, create(("r",), 9), *[create((*TOP, *below), 390_000) for below in [(), *[(f"{n}",) for n in range(8)]]]
    )
    with pytest.raises(TooLarge, match="Move its children"):
        await write(weighed, Delete(CATEGORY, TOP, Policy.REPARENT))


async def test_heavy_nodes_that_are_deleted_together_are_few_enough_for_one_transaction(weighed: Any) -> None:
    paths = [("r", f"n{n}") for n in range(9)]
    await write(weighed, create(("r",), 9), *[create(path, 390_000) for path in paths])
    writer, before = Writer(weighed), weighed.commits
    await asyncio.gather(*[writer.write(Delete(CATEGORY, path, Policy.REFUSE), ReadUsage()) for path in paths])
    assert weighed.commits - before == 3
