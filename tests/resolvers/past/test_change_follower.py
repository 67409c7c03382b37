"""Change follower: listeners miss nothing and repeat nothing, and share their reads."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolvers.past.change_feed import Change, read_changes
from resolvers.past.change_follower import ChangeFollower, ChangeListener
from resolvers.session.request import Request
from store.connect import open_store
from store.edits.create_update import Create
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError, Unavailable
from store.model.keys import Path
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.model_writes import KEYS, Model, RandomEdits
from tests.selection import examples

POLL_SECONDS = 0.005
WAIT_SECONDS = 30.0
LONG_SECONDS = 3600.0  # between two polls, so that a test sees the first one alone


class CountedStore:
    """A store that counts its calls by method, and fails as long as `fails` is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[tuple[str, int]] = []
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, keys: Any, reads: ReadUsage, **more: Any) -> Any:
        self.calls.append(("get", len(keys)))
        if self.fails:
            raise Unavailable("The store is away.")
        return await self._store.get(keys, reads, **more)

    async def range(self, *arguments: Any, **more: Any) -> Any:
        self.calls.append(("range", 1))
        return await self._store.range(*arguments, **more)

    def count(self, name: str) -> int:
        return sum(called == name for called, _ in self.calls)


@asynccontextmanager
async def follower_of(store: Any) -> AsyncIterator[ChangeFollower]:
    follower = ChangeFollower(store, POLL_SECONDS)
    async with watched(follower):
        yield follower


@asynccontextmanager
async def watched(follower: ChangeFollower) -> AsyncIterator[None]:
    watch = asyncio.create_task(follower.watch())
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.wait([watch])


async def polled_once(follower: ChangeFollower, *listeners: ChangeListener) -> None:
    """Watch until the first poll has reached the trees of these listeners."""
    async with watched(follower), asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*[listener.tree.has_other_version(-1) for listener in listeners if listener.tree])


class Stream:
    """What one listener of a tree has seen, until it has all changes of a list."""

    def __init__(self, store: Store, listener: ChangeListener, root: str, under: Path | None = None) -> None:
        self.seen: list[Change] = []
        self._store, self._listener, self._place = store, listener, (root, under)

    async def read(self) -> None:
        root, under = self._place
        request = Request(self._store, {"category": CATEGORY})
        page = await self._listener.read(request, "category", (root,), None, under)
        self._listener.take()
        self.seen += page.changes

    async def follow(self, length: int) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.seen) < length:
                await self._listener.has_news()
                await self.read()


async def all_changes(store: Store, root: str, under: Path | None = None) -> list[Change]:
    found: list[Change] = []
    since, more = None, True
    while more:
        page = await read_changes(Request(store, {"category": CATEGORY}), "category", (root,), since, under)
        found, since, more = found + page.changes, page.cursor, page.has_more
    return found


async def create(store: Store, *path: str) -> None:
    await Writer(store).write(Create(CATEGORY, path, "CATEGORY", path[-1], {}), ReadUsage())


async def follow_random_edits(store: Store, seed: int, length: int) -> None:
    """Follow each tree, and a subtree, from before the first edit; what was seen is what the query lists."""
    writer, model = Writer(store), Model()
    edits = RandomEdits(seed, model)
    async with follower_of(store) as follower, AsyncExitStack() as stack:
        streams = {
            (root, under): Stream(store, stack.enter_context(follower.listening(None)), root, under)
            for root in KEYS
            for under in (None, (root, "b"))
        }
        for stream in streams.values():
            await stream.read()
        tasks = [asyncio.create_task(stream.follow(1_000_000)) for stream in streams.values()]
        for _ in range(length):
            edit = edits.one()
            with contextlib.suppress(CladeError):
                record = (await writer.write(edit, ReadUsage())).record
                model.apply(edit)(record)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for (root, under), stream in streams.items():
            wanted = await all_changes(store, root, under)
            await stream.follow(len(wanted))
            assert stream.seen == wanted


@settings(max_examples=examples(3, 10), deadline=None)
@given(st.integers(0, 1 << 32), st.integers(10, 40))
def test_what_is_followed_during_random_edits_is_what_the_query_lists(seed: int, length: int) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow_random_edits(store, seed, length)

    asyncio.run(run())


@settings(max_examples=examples(1, 2), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 32), st.integers(10, 30))
def test_what_is_followed_on_dynamodb_is_what_the_query_lists(engine, seed: int, length: int) -> None:
    async def run() -> None:
        async with open_store(engine.address(f"followed-{uuid.uuid4().hex}")) as store:
            await store.create()
            await follow_random_edits(store, seed, length)

    asyncio.run(run())


async def test_all_listeners_share_one_poll_and_one_read_of_a_change(store: Store) -> None:
    counted = CountedStore(store)
    async with follower_of(counted) as follower, AsyncExitStack() as stack:
        streams = [
            Stream(counted, stack.enter_context(follower.listening(None)), root) for root in "ab" for _ in range(20)
        ]
        for stream in streams:
            await stream.read()
        await asyncio.sleep(10 * POLL_SECONDS)
        assert follower.trees == 2
        counted.calls.clear()
        waiting = [asyncio.create_task(stream.follow(1)) for stream in streams[:20]]
        await create(store, "a")
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(*waiting)
        assert counted.count("range") == 1
        assert {size for name, size in counted.calls if name == "get"} == {2}  # the versions of both trees
        assert [len(stream.seen) for stream in streams] == [1] * 20 + [0] * 20


async def test_a_poll_reads_half_a_unit_a_tree(exact, store: Store) -> None:
    follower = ChangeFollower(store, LONG_SECONDS)
    with follower.listening(None) as one, follower.listening(None) as other:
        for listener, root in ((one, "a"), (other, "b")):
            await listener.read(Request(store, {"category": CATEGORY}), "category", (root,), None, None)
        await polled_once(follower, one, other)
    assert (follower.reads.requests, follower.reads.units) == (1, 1.0)


async def test_nothing_is_read_while_nobody_listens(store: Store) -> None:
    counted = CountedStore(store)
    async with follower_of(counted) as follower:
        await asyncio.sleep(5 * POLL_SECONDS)
        assert counted.calls == []
        with follower.listening(None) as listener:
            await Stream(counted, listener, "a").read()
            assert follower.trees == 1
        await asyncio.sleep(5 * POLL_SECONDS)
        counted.calls.clear()
        await asyncio.sleep(5 * POLL_SECONDS)
        assert (follower.trees, counted.calls) == (0, [])


async def test_listeners_wait_out_a_failure_of_the_store(store: Store, caplog) -> None:
    counted = CountedStore(store)
    async with follower_of(counted) as follower:
        with follower.listening(None) as listener:
            stream = Stream(counted, listener, "a")
            await stream.read()
            counted.fails = True
            await create(store, "a")
            await asyncio.sleep(10 * POLL_SECONDS)
            counted.fails = False
            await stream.follow(1)
            assert [change.path for change in stream.seen] == ["a"]
    assert sum("followed trees" in record.message for record in caplog.records) == 1


async def test_a_listener_that_is_cancelled_takes_no_read_from_others(store: Store) -> None:
    async with follower_of(store) as follower, AsyncExitStack() as stack:
        listeners = [stack.enter_context(follower.listening(None)) for _ in range(2)]
        streams = [Stream(store, listener, "a") for listener in listeners]
        for stream in streams:
            await stream.read()
        await create(store, "a")
        await asyncio.gather(*[listener.has_news() for listener in listeners])
        first, second = [asyncio.create_task(stream.read()) for stream in streams]
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert (len(streams[0].seen), len(streams[1].seen)) == (0, 1)


async def test_an_older_version_than_the_cursors_wakes_its_listener(store: Store) -> None:
    """As after a restore: the read that follows then reports that the cursor has expired."""
    follower = ChangeFollower(store, LONG_SECONDS)
    await create(store, "a")
    await create(store, "a", "b")
    with follower.listening(None) as listener:
        await Stream(store, listener, "a").read()
        await polled_once(follower, listener)
        waiting = asyncio.create_task(listener.has_news())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert listener.tree is not None
        listener.tree.polled(1)
        async with asyncio.timeout(WAIT_SECONDS):
            await waiting
