"""Engine faults during writes: each edit is made completely or not at all, and reported correctly."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import msgspec
import pytest
from aiohttp import web

from store.concurrency import RetryPolicy
from store.connect import open_store
from store.engine import REQUEST_PATIENCE, ReadUsage
from store.errors import CladeError, Unavailable, Uncertain
from store.model.paths import format_path
from store.model.records import Record
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, compare
from tests.proxy import (
    Call,
    Fault,
    Forward,
    Proxy,
    answer_dropped,
    cancelled,
    dropped,
    passed,
    refused,
    status,
    throttled,
    unprocessed,
)
from tests.reordering import reorder
from tests.store.writing import journaled

WRITES, ALL = "TransactWriteItems", 1000  # calls: more than anybody makes
WAIT_SECONDS = 120.0  # at most, on a busy machine
PASSING = [throttled, refused("InternalServerError", 500), dropped, answer_dropped, cancelled("TransactionConflict")]
READS = [unprocessed(0), unprocessed(1), throttled, status(500), dropped]
EDITS: list[Edit] = [
    Create(CATEGORY, ("r", "new"), "CATEGORY", "New", {}),
    Update(CATEGORY, ("r", "a"), "Other", None, {}),
    reorder(CATEGORY, ("r", "b"), Side.FIRST),
    Move(CATEGORY, ("r", "a"), ("o", "a")),
    Delete(CATEGORY, ("r",), Policy.CASCADE),
]
PLANTED = ("r", "r/a", "r/a/x", "r/b", "o")


class Faulty:
    """A table behind a proxy, looked at past it."""

    def __init__(self, proxy: Proxy, through: str, past: str) -> None:
        self.proxy = proxy
        self.through = open_store(through, patience=replace(REQUEST_PATIENCE, attempts=2))
        self.past = open_store(past)
        self.planted: dict[str, Record] = {}

    async def items(self) -> list[bytes]:
        found = await invariants.all_items(self.past)
        return sorted(msgspec.json.encode(item, order="sorted") for item in found)


@pytest.fixture
async def faulty(engine, monkeypatch) -> AsyncIterator[Faulty]:
    monkeypatch.setattr("store.dynamodb.transaction.RETRIES", RetryPolicy(0.0005, 0.01, attempts=8))
    monkeypatch.setattr("store.dynamodb.client.RETRIES", RetryPolicy(0.0, 0.0))
    past = engine.address(f"faults-{uuid4().hex}")
    async with Proxy(engine.url) as proxy:
        made = Faulty(proxy, past.replace(engine.url, proxy.url), past)
        async with made.through, made.past:
            await made.past.create()
            for path in PLANTED:
                made.planted[path] = (await Writer(made.past).write(journaled.create(path), ReadUsage())).record
            yield made


def apart(faults: list[Fault]) -> list[Fault]:
    """No two of them one after the other, which would be more than a call is sent again."""
    return [one for fault in faults for one in (fault, passed)]


@pytest.mark.parametrize("fault", PASSING)
async def test_a_passing_fault_is_retried_and_nothing_is_written_twice(faulty: Faulty, fault: Fault) -> None:
    writer, model = Writer(faulty.through), Model()
    for path in PLANTED:
        model.apply(journaled.create(path))(faulty.planted[path])
    for edit in EDITS:
        faulty.proxy.spoil(WRITES, fault)
        made = model.apply(edit)
        made((await writer.write(edit, ReadUsage())).record)
        await compare(faulty.past, model)


async def test_without_an_answer_it_is_read_that_an_edit_of_any_kind_was_made(faulty: Faulty) -> None:
    for edit in EDITS:
        before = await faulty.items()
        faulty.proxy.spoil(WRITES, answer_dropped, *[dropped] * ALL)
        await Writer(faulty.through).write(edit, ReadUsage())
        assert await faulty.items() != before
        faulty.proxy.mend()
    await invariants.check(faulty.past)


def lost(proxy: Proxy, calls: int) -> Fault:
    """What was written is done, but no answer comes of as many calls more, nor of reads."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        proxy.spoil(WRITES, *[dropped] * calls)
        proxy.spoil("BatchGetItem", *[dropped] * calls)
        await forward(call.body)
        raise ConnectionAbortedError

    return fault


GROUP = [("r/g", EditOptions(key="g")), ("r/g/h", EditOptions()), ("r/g", EditOptions()), ("r/i", EditOptions(key="i"))]


async def made_together(faulty: Faulty) -> list[str]:
    """What becomes of creations that wait together, of which the third is refused: the path, or the code and words."""
    writer = Writer(faulty.through)
    calls = [writer.write(journaled.create(path), ReadUsage(), terms) for path, terms in GROUP]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert not writer._tasks
    return [f"{one.code} {one}" if isinstance(one, CladeError) else format_path(one.record.path) for one in outcomes]


async def test_without_an_answer_each_combined_edit_gets_its_own_result(faulty: Faulty) -> None:
    faulty.proxy.spoil(WRITES, lost(faulty.proxy, calls=2))
    keyed, unknown, refused, last = await made_together(faulty)
    assert (keyed, last) == ("r/g", "r/i")  # whose keys tell that they were made
    assert "unknown whether the change was made" in unknown
    assert refused.startswith("ALREADY_EXISTS")
    assert {"r/g", "r/g/h", "r/i"} <= await journaled.paths(faulty.past)
    await invariants.check(faulty.past)


async def test_combined_edits_that_cannot_be_written_change_nothing(faulty: Faulty) -> None:
    before = await faulty.items()
    faulty.proxy.spoil(WRITES, *[throttled] * ALL)
    told = await made_together(faulty)
    assert {one.split()[0] for one in told} <= {"UNAVAILABLE", "CONFLICT"}
    assert await faulty.items() == before
    faulty.proxy.mend()
    assert [one.split()[0] for one in await made_together(faulty)] == ["r/g", "r/g/h", "ALREADY_EXISTS", "r/i"]
    await invariants.check(faulty.past)


@pytest.mark.parametrize("operation", ["BatchGetItem", "Query"])
async def test_reads_that_fail_once_make_no_wrong_edit(faulty: Faulty, operation: str) -> None:
    for edit, fault in zip(EDITS, READS if operation == "BatchGetItem" else READS[2:], strict=False):
        faulty.proxy.spoil(operation, fault)
        await Writer(faulty.through).write(edit, ReadUsage())
        await invariants.check(faulty.past)
        faulty.proxy.mend()


async def test_a_background_move_continues_through_every_kind_of_fault(faulty: Faulty) -> None:
    await journaled.plant(faulty.past)
    faulty.through.max_commit_changes = journaled.SMALL
    writer = Writer(faulty.through, journaled.SOON)
    faulty.proxy.spoil(WRITES, *apart(PASSING), *[dropped] * 3, answer_dropped, *[dropped] * 3, answer_dropped)
    faulty.proxy.spoil("BatchGetItem", *apart(READS))
    faulty.proxy.spoil("Query", *apart(READS[2:]))
    await writer.write(journaled.move("r/a", "o/p/a"), ReadUsage(), EditOptions(key="once"))
    async with asyncio.timeout(WAIT_SECONDS):
        await writer.move_worker.finished()
    await journaled.has_ended(faulty.past)
    assert await journaled.paths(faulty.past) == {*journaled.OTHERS, *journaled.at("r/a", "o/p/a"), "o/p/a/x"}


@pytest.mark.parametrize("terms", [EditOptions(), EditOptions(key="k")])
async def test_a_background_move_without_an_answer_to_its_begin_continues(faulty: Faulty, terms: EditOptions) -> None:
    await journaled.plant(faulty.past)
    faulty.through.max_commit_changes = journaled.SMALL
    writer = Writer(faulty.through, journaled.SOON)
    faulty.proxy.spoil(WRITES, lost(faulty.proxy, calls=2))
    with contextlib.nullcontext() if terms.key else pytest.raises(Uncertain):
        await writer.write(journaled.move("r/a", "o/p/a"), ReadUsage(), terms)
    async with asyncio.timeout(WAIT_SECONDS):
        await writer.move_worker.finished()
    await journaled.has_ended(faulty.past)


async def test_a_background_move_that_was_never_begun_is_not_worked_on(faulty: Faulty) -> None:
    await journaled.plant(faulty.past)
    faulty.through.max_commit_changes = journaled.SMALL
    writer = Writer(faulty.through, journaled.SOON)
    before = await faulty.items()
    faulty.proxy.spoil(WRITES, *[dropped] * ALL)
    with pytest.raises(Unavailable):
        await writer.write(journaled.move("r/a", "o/p/a"), ReadUsage())
    faulty.proxy.mend()
    async with asyncio.timeout(WAIT_SECONDS):
        await writer.move_worker.finished()
    assert await faulty.items() == before
