"""Copies of stores from SQLite to DynamoDB and back: each holds the same items."""

import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from store.api_keys import add_key, find_keys, new_key, revoke_key
from store.checking.check import Check
from store.connect import open_store, opened
from store.engine import ReadUsage, Store
from store.transfer.copy import Copy, new_store
from store.writing.create_update import Create, Update
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.engines import Engine
from tests.hierarchies import CATEGORY
from tests.stores import Interrupted


async def grow(store: Store) -> None:
    """A tree with history, former paths and a deleted node, an idempotency key and an API key."""
    writer = Writer(store)
    for edit in (
        *[Create(CATEGORY, path, "CATEGORY", "x", {"note": "1"}) for path in (("a",), ("a", "é"), ("a", "é", "#$"))],
        Update(CATEGORY, ("a", "é"), "y", None, {"note": None}),
        Move(CATEGORY, ("a", "é"), ("a", "b")),
        Create(CATEGORY, ("a", "gone"), "CATEGORY", "z", {}),
        Delete(CATEGORY, ("a", "gone"), Policy.CASCADE),
    ):
        await writer.write(edit, ReadUsage())
    await writer.write(Create(CATEGORY, ("once",), "CATEGORY", "once", {}), ReadUsage(), EditOptions(key="spring-7"))
    await writer.move_worker.stop()
    await add_key(store, new_key("shop", ["read:category"], int(time.time()) + 3600)[0])


async def items(store: Store) -> list[dict[str, Any]]:
    found = [item for item in await invariants.all_items(store) if item["pk"] != "!"]  # which is the table's own
    return sorted(found, key=lambda item: (item["pk"], item["sk"]))


async def copied(source: str, target: str) -> None:
    async with opened(source) as original, new_store(target) as new:
        await Copy(original, new).run()


async def findings(store: Store) -> list[str]:
    check = Check(store, {"category": CATEGORY}, "2026-01-01T00:00:00.000Z")
    return [str(finding) async for finding in check.findings()]


async def test_copies_from_store_to_store_hold_every_item_of_the_original(engine: Engine, tmp_path: Path) -> None:
    original, table = f"sqlite:///{tmp_path}/original.db", engine.address(f"copy-{uuid.uuid4().hex}")
    back = f"sqlite:///{tmp_path}/back.db"
    async with opened(original, make=True) as store:
        await grow(store)
        held = await items(store)
    assert {item["pk"].split("#")[0] for item in held} == {"category", "id", "alias", "once", "keys"}
    async with open_store(table) as store:
        await store.create()
    for source, target in ((original, table), (table, back)):
        await copied(source, target)
        async with opened(target) as store:
            assert await items(store) == held
            assert await findings(store) == []
            await invariants.check(store)


@pytest.mark.both_stores
async def test_a_key_that_is_revoked_during_a_copy_is_revoked_in_it(store: Store, tmp_path: Path) -> None:
    await grow(store)
    (key,) = await find_keys(store, ReadUsage())
    async with new_store(f"sqlite:///{tmp_path}/copy.db") as new:
        target: Any = Interrupted(new, "commit", after=lambda _: revoke_key(store, key.id))
        await Copy(store, target).run()
        assert [one.revoked_at is not None for one in await find_keys(new, ReadUsage())] == [True]
