"""Copies of stores: keys are copied, and one that is revoked meanwhile is revoked in the copy."""

from pathlib import Path
from typing import Any

import pytest

from store.api_keys import add_key, find_keys, new_key, revoke_key
from store.engine import ReadUsage, Store
from store.transfer.copy import Copy, new_store
from store.writing.create_update import Create
from store.writing.edit_request import EditOptions
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.stores import Interrupted


@pytest.mark.both_stores
async def test_a_key_that_is_revoked_during_a_copy_is_revoked_in_it(store: Store, tmp_path: Path) -> None:
    edit = Create(CATEGORY, ("once",), "CATEGORY", "once", {})
    first = await Writer(store).write(edit, ReadUsage(), EditOptions(key="spring-7"))
    await add_key(store, new_key("shop", ["read:category"], None)[0])
    (key,) = await find_keys(store, ReadUsage())
    async with new_store(f"sqlite:///{tmp_path}/copy.db") as new:
        target: Any = Interrupted(new, "commit", after=lambda _: revoke_key(store, key.id))
        await Copy(store, target).run()
        assert [one.revoked_at is not None for one in await find_keys(new, ReadUsage())] == [True]
        again = await Writer(new).write(edit, ReadUsage(), EditOptions(key="spring-7"))
        assert again.record.id == first.record.id, "it was made before the copy"
        await invariants.check(new)
