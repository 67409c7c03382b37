"""Concurrent edits with indexes behind the table: each has the result that it would have alone, and nobody waits."""

import asyncio
import contextlib
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resolvers.changes import read_changes
from resolvers.session.request import Request
from store.checking.check import Check
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError
from store.model.keys import KeyRange, Path
from store.model.records import Change, Record
from store.writing.create_update import Create
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Move
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import KEYS, Model, RandomEdits, Refused, compare
from tests.reordering import reorder
from tests.selection import examples

LATE = EditOptions(settle_seconds=3600.0)
SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(20, 60))  # a seed, and how many edits


class Late:
    """A store whose indexes show each commit later, after any number of others; nothing else of it trails."""

    def __init__(self, store: Store, indexes: Store, random: Random) -> None:
        self.store = store
        self._indexes = indexes
        self._choose = random.choice
        self._coming: list[Sequence[Change]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def commit(self, changes: Sequence[Change]) -> None:
        await self.store.commit(changes)
        self._coming.append([replace(one, when={}) for one in changes])

    async def nodes(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        for _ in range(self._choose([0, 0, 1, 3])):
            if self._coming:
                await self._indexes.commit(self._coming.pop(0))
        return await self._indexes.nodes(span, reads, limit=limit, reverse=reverse)


class LateWishes(RandomEdits):
    """Random edits, many of them reorders, over indexes that may trail behind all that is written here."""

    def one(self) -> Edit:
        return self.order() if self.random.random() < 0.5 else super().one()


async def orders(store: Store) -> dict[tuple[str, str], list[Path]]:
    """The paths of the siblings of each level under each parent in their order."""
    found: dict[tuple[str, str], list[Path]] = {}
    for item in sorted((await invariants.nodes(store, "category")).values(), key=lambda one: one["rank"]):
        found.setdefault((item["parent"], item["level"]), []).append(Record.of(item).path)
    return found


async def changes(store: Store) -> list[tuple[str, str, str | None]]:
    """All changes of the tree, in their order."""
    found, since, has_more = list[tuple[str, str, str | None]](), None, True
    while has_more:
        page = await read_changes(Request(store, {"category": CATEGORY}), "category", ("a",), since, None)
        found += [(one.event, one.path, one.source) for one in page.changes]
        since, has_more = page.cursor, page.has_more
    return found


async def outcomes(writer: Writer, edits: Sequence[Edit]) -> list[Any]:
    found = await asyncio.gather(*[writer.write(edit, ReadUsage(), LATE) for edit in edits], return_exceptions=True)
    return [one.code if isinstance(one, CladeError) else one for one in found]


async def follow(late: Late, plain: Store, seed: int, length: int) -> None:
    """Edits, some of them at once, over late indexes; each has to come out as in its turn, first come, first served."""
    model = Model()
    wishes, writer, other = LateWishes(seed, model), Writer(late), Writer(plain)
    families = [("a",), *[("a", key) for key in KEYS], *[("a", "b", key) for key in KEYS]]
    first: list[Edit] = [Create(CATEGORY, path, "CATEGORY", "x", {}) for path in families]
    while length > 0:
        edits = first or [wishes.one() for _ in range(wishes.random.choice([1, 2, 7]))]
        first = []
        edits = [edit for edit in edits if edit.partitions() == edits[-1].partitions()]  # others have turns apart
        length -= len(edits)
        got = await outcomes(writer, edits)
        for edit, outcome in zip(edits, got, strict=True):
            try:
                made, refusal = model.apply(edit), None
            except Refused as refused:
                made, refusal = None, str(refused)
            assert (outcome if isinstance(outcome, str) else None) == refusal, (edit, edits)
            if made is not None:
                made(outcome.record)
                await outcomes(other, [edit])
        await compare(late.store, model)
        assert await orders(late.store) == await orders(plain), edits
    # A reorder that changes nothing has no entry, whatever its neighbours are about to do.
    assert await changes(late.store) == await changes(plain)
    assert [one async for one in Check(late.store, {"category": CATEGORY}, "").findings()] == []


@settings(max_examples=examples(15, 75), deadline=None)
@given(SEQUENCES)
@example((207, 24))  # a node renamed after the move of an ancestor, whose former key the index shows
def test_concurrent_edits_are_serializable_over_late_indexes_too(sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(open_store("sqlite://:memory:")) for _ in range(3)]
            for store in stores:
                await store.create()
            late, indexes, plain = stores
            await follow(Late(late, indexes, Random(sequence[0])), plain, *sequence)  # noqa: S311

    asyncio.run(run())


async def test_an_order_is_right_before_the_index_shows_what_was_written(store: Store) -> None:
    async with open_store("sqlite://:memory:") as indexes:
        await indexes.create()
        late: Any = Late(store, indexes, Random(0))  # noqa: S311
        late._choose = min  # the indexes never show anything
        writer = Writer(late)
        for path in [("r",), *[("r", key) for key in "abc"], ("q",), *[("r", "a", key) for key in "123"]]:
            await writer.write(Create(CATEGORY, path, "CATEGORY", "x", {}), ReadUsage())
        await writer.write(
            Move(CATEGORY, ("r", "a"), ("r", "d")), ReadUsage()
        )  # the log does not name what comes along
        for path in [("r", "c"), ("r", "b"), ("r",), ("r", "d", "3")]:
            reads = ReadUsage()
            await writer.write(reorder(CATEGORY, path, Side.FIRST), reads, LATE)
            assert reads.requests <= 5
        found = await orders(store)
        assert found["category#r#", "CATEGORY"] == [("r", "b"), ("r", "c"), ("r", "d")]
        assert found["category#r#d#", "CATEGORY"] == [("r", "d", "3"), ("r", "d", "1"), ("r", "d", "2")]
        assert found["category", "CATEGORY"] == [("r",), ("q",)]
