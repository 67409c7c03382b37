"""Transactions cut by count and bytes, which in subtrees of few but large nodes are also those of what is removed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import TooLarge
from store.metadata.moves import MoveTiming
from store.model.keys import Key, Path
from store.model.records import MAX_BATCH_BYTES, Change, Put, canonical_item, size_of
from store.model.records import Delete as Removal
from store.writing.create_update import Create
from store.writing.edit import Edit
from store.writing.move_delete import Delete, Move, Policy
from store.writing.transaction import Step, in_transactions
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.stores import StoreProxy

LIMIT = 4 * 1024 * 1024  # of one transaction of DynamoDB, with what it removes
TOP = ("r", "top")


class Weighed(StoreProxy):
    """A store that refuses what DynamoDB does: transactions of more than 4 MB, with all that they write and remove."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.commits = 0

    async def commit(self, changes: Sequence[Change]) -> None:
        removed = await self._store.get(
            [one.key for one in changes if isinstance(one, Removal)], ReadUsage(), strong=True
        )
        size = sum(size_of(canonical_item(one.item)) for one in changes if isinstance(one, Put))
        assert size + sum(size_of(item) for item in removed if item) <= LIMIT
        await self._store.commit(changes)
        self.commits += 1


@pytest.fixture
async def weighed() -> AsyncIterator[Any]:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        store.max_commit_changes = store.max_changes
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


@pytest.mark.parametrize(
    ("edit", "size", "journaled"),
    [
        (Move(CATEGORY, TOP, ("r", "b")), 250_000, False),
        (Move(CATEGORY, TOP, ("r", "b")), 390_000, True),
        (Delete(CATEGORY, TOP, Policy.CASCADE), 390_000, True),
    ],
)
async def test_a_heavy_subtree_is_moved_and_deleted(weighed: Any, edit: Edit, size: int, journaled: bool) -> None:
    paths = [TOP, *[(*TOP, f"{n}") for n in range(5)]]
    await write(weighed, create(("r",), 9), *[create(path, size) for path in paths])
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


# -- batches of steps --------------------------------------------------------------------------------------------------


def step(name: str, changes: int = 1, size: int = 1) -> Step[str]:
    return Step(name, [Removal(Key(name, str(number))) for number in range(changes)], size)


HALF = MAX_BATCH_BYTES // 2


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], []),
        ([step("a"), step("b"), step("c"), step("d")], ["abc", "d"]),
        ([step("a", 2), step("b", 2), step("c")], ["a", "bc"]),
        ([step("a", size=HALF), step("b", size=HALF), step("c", size=HALF)], ["ab", "c"]),
        ([step("a"), step("b", size=3 * HALF), step("c")], ["a", "b", "c"]),
        ([step("a", 0), step("b", 3), step("c", 0)], ["abc"]),
        ([step("a", 0)], ["a"]),
    ],
)
def test_a_transaction_has_as_many_steps_as_fit(steps: list[Step[str]], expected: list[str]) -> None:
    batches = list(in_transactions(steps, 3))
    assert ["".join(names) for _, names in batches] == expected
    assert [change for changes, _ in batches for change in changes] == [one for s in steps for one in s.changes]
