"""Change feed: event streams, which share their reads, have the changes of the query."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvers.changes import Change, ChangeFollower, ChangeListener, read_changes
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, Unavailable
from store.model.keys import Path
from store.model.paths import parse_path
from store.writing.create_update import Create
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.model_writes import KEYS, Model, RandomEdits
from tests.selection import examples
from tests.stores import ReadRecorder

POLL_SECONDS = 0.005
WAIT_SECONDS = 60.0


def request(store: Store) -> Request:
    return Request(store, {"category": CATEGORY})


async def create(store: Store, *paths: str) -> None:
    for path in paths:
        await Writer(store).write(Create(CATEGORY, parse_path(path), "CATEGORY", path, {}), ReadUsage())


async def all_changes(store: Store, root: str, under: Path | None = None) -> list[Change]:
    found: list[Change] = []
    since, more = None, True
    while more:
        page = await read_changes(request(store), "category", (root,), since, under)
        found, since, more = found + page.changes, page.cursor, page.has_more
    return found


class Stream:
    """What one listener of a tree has seen."""

    def __init__(self, store: Store, listener: ChangeListener, root: str, under: Path | None = None) -> None:
        self.seen: list[Change] = []
        self._store, self._listener, self._place = store, listener, (root, under)

    async def read(self) -> None:
        root, under = self._place
        page = await self._listener.read(request(self._store), "category", (root,), None, under)
        self._listener.take()
        self.seen += page.changes

    async def follow(self, length: int) -> None:
        """Read on until it has seen so many changes."""
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.seen) < length:
                await self._listener.has_news()
                await self.read()


@asynccontextmanager
async def follower_of(store: Store, poll_seconds: float = POLL_SECONDS) -> AsyncIterator[ChangeFollower]:
    follower = ChangeFollower(store, poll_seconds)
    watch = asyncio.create_task(follower.watch())
    try:
        yield follower
    finally:
        watch.cancel()
        await asyncio.wait([watch])


async def follow_random_edits(store: Store, seed: int, length: int) -> None:
    writer, model = Writer(store), Model()
    edits = RandomEdits(seed, model)
    places: list[tuple[str, Path | None]] = [(root, under) for root in KEYS for under in (None, (root, "b"))]
    async with follower_of(store) as follower, AsyncExitStack() as stack:
        streams = {place: Stream(store, stack.enter_context(follower.listening(None)), *place) for place in places}
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
        for place, stream in streams.items():
            wanted = await all_changes(store, *place)
            await stream.follow(len(wanted))
            assert stream.seen == wanted


@settings(max_examples=examples(6, 30), deadline=None)
@given(st.integers(0, 1 << 32), st.integers(10, 40))
def test_streams_of_random_edits_have_all_changes(seed: int, length: int) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow_random_edits(store, seed, length)

    asyncio.run(run())


async def test_a_child_with_the_key_of_its_parent_takes_its_place_in_the_feed_after_all_others(store: Store) -> None:
    await create(store, "a", "a/b", "a/b/b", "a/b/b/é", "a/b/é", "a/b/é/a")
    await Writer(store).write(Delete(CATEGORY, ("a", "b"), Policy.REPARENT), ReadUsage())
    changes = await all_changes(store, "a")
    assert [(one.event, one.source or one.path, one.target, one.with_descendants) for one in changes[6:]] == [
        ("MOVED", "a/b/é", "a/é", True),
        ("DELETED", "a/b", None, False),
        ("MOVED", "a/b/b", "a/b", True),
    ]


async def test_all_streams_share_one_poll_and_one_read_of_a_change(store: Store) -> None:
    recorder: Any = ReadRecorder(store)
    async with follower_of(recorder) as follower, AsyncExitStack() as stack:
        streams = [
            Stream(recorder, stack.enter_context(follower.listening(None)), root) for root in "ab" for _ in range(20)
        ]
        for stream in streams:
            await stream.read()
        assert (follower.trees, recorder.spans) == (2, [])
        await create(store, "a")
        await asyncio.gather(*[stream.follow(1) for stream in streams[:20]])
        assert [len(stream.seen) for stream in streams] == [1] * 20 + [0] * 20
    assert len(recorder.spans) == 1


async def test_a_slow_stream_has_the_changes_of_all_polls_since_it_read(store: Store) -> None:
    async with follower_of(store) as follower, AsyncExitStack() as stack:
        quick, slow = [Stream(store, stack.enter_context(follower.listening(None)), "a") for _ in range(2)]
        await asyncio.gather(quick.read(), slow.read())
        for length, path in enumerate(("a", "a/b"), start=1):
            await create(store, path)
            await quick.follow(length)
        await slow.read()
        assert slow.seen == quick.seen


async def test_a_poll_reads_half_a_unit_a_tree_and_none_is_made_for_nobody(exact: None, store: Store) -> None:
    async with follower_of(store, 600.0) as follower:
        await asyncio.sleep(0)  # in which it would poll
        assert follower.reads.requests == 0
        with follower.listening(None) as one, follower.listening(None) as other:
            each = ((one, "a"), (other, "b"))
            await asyncio.gather(*[at.read(request(store), "category", (root,), None, None) for at, root in each])
            async with asyncio.timeout(WAIT_SECONDS):
                while not follower.reads.requests:  # noqa: ASYNC110 - by another task
                    await asyncio.sleep(0)
        assert (follower.reads.requests, follower.reads.units, follower.trees) == (1, 1.0, 0)


async def test_polls_wait_out_a_failure_of_the_store_which_is_logged_once(tmp_path: File, caplog: Any) -> None:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(f"sqlite:///{tmp_path / 'clade.db'}"))
        recorder: Any = ReadRecorder(store)
        follower = await stack.enter_async_context(follower_of(recorder))
        stream = Stream(store, stack.enter_context(follower.listening(None)), "a")
        with pytest.raises(Unavailable):  # the table is not created
            await stream.read()
        async with asyncio.timeout(WAIT_SECONDS):
            while len(recorder.keys) < 5:  # noqa: ASYNC110 - by another task, one key for each poll
                await asyncio.sleep(0)
        await store.create()
        await stream.read()
        await create(store, "a")
        await stream.follow(1)
        assert [change.path for change in stream.seen] == ["a"]
    assert sum("followed trees" in record.message for record in caplog.records) == 1


async def test_a_stream_that_is_cancelled_takes_no_read_from_others(store: Store) -> None:
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
        assert [len(stream.seen) for stream in streams] == [0, 1]
