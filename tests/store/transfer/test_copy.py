"""Copies of stores: rejected targets, concurrent writes, and incomplete copies."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self, cast

import pytest

from store.connect import open_store, opened
from store.edits.create_update import Create
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict, NoTable, Unavailable, WrongLayout
from store.metadata.move_record import MoveState
from store.model.items import Item
from store.transfer.copy import Copy, new_store
from store.transfer.load import LoadResult, load
from tests import invariants
from tests.hierarchies import hierarchy, level
from tests.store.background_moves import journaled
from tests.store.background_moves.journaled import create, move, write
from tests.store.checking.broken import fill
from tests.store.transfer.test_load import wanted_of


async def items(store: Store) -> list[dict[str, Any]]:
    found = [item for item in await invariants.all_items(store) if item["pk"] != "!"]
    return sorted(found, key=lambda item: (item["pk"], item["sk"]))


async def copied(source: Store, target: str) -> Copy:
    async with new_store(target) as new:
        copy = Copy(source, new)
        await copy.run()
    return copy


@pytest.fixture
async def table(engine: Any) -> str:
    """The address of an empty table of DynamoDB."""
    url: str = engine.address(f"copy-{uuid.uuid4().hex}")
    async with open_store(url) as store:
        await store.create()
    return url


async def test_a_copy_needs_an_empty_target(store: Store, store_url: str, tmp_path: Path, table: str) -> None:
    await fill(store)
    file = tmp_path / "there.db"
    file.write_text("somebody else's")
    async with open_store(table) as other:
        await load(other, wanted_of([("US", "COUNTRY")]), LoadResult())
    for target in (store_url, table, f"sqlite:///{file}", "sqlite://:memory:", "file:///x"):
        with pytest.raises(BadInput):
            await copied(store, target)
    assert file.read_text() == "somebody else's"
    with pytest.raises(NoTable, match="clade table create"):
        await copied(store, table.replace("?", "-absent?"))
    with pytest.raises(BadInput, match="cannot be written"):
        await copied(store, f"sqlite:///{tmp_path}/absent/new.db")


class Ends(Exception):
    """The process ends here."""


class Short:
    """A store whose scan ends the process after so many pages."""

    def __init__(self, store: Store, pages: int, page_items: int = 10) -> None:
        self._store = store
        self._pages = pages
        self._page_items = page_items

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def snapshot(self) -> "Short | None":
        """One of the store, None on DynamoDB, of which as much is scanned."""
        found = self._store.snapshot()
        return None if found is None else Short(found, self._pages)

    async def __aenter__(self) -> Self:
        await self._store.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._store.__aexit__(*error)

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        async for page in self._store.scan(reads):
            for start in range(0, len(page), self._page_items):
                self._pages -= 1
                if self._pages < 0:
                    raise Ends
                yield page[start : start + self._page_items]


async def half_copied(store: Store, target: str) -> None:
    pages = (len(await items(store)) + 9) // 10 if store.snapshot() is None else 0  # of a pass that reads the stamps
    with pytest.raises(Ends):
        await copied(cast(Store, Short(store, pages + 2)), target)


async def test_a_file_appears_when_the_copy_is_complete(store: Store, tmp_path: Path) -> None:
    await fill(store)
    folder = tmp_path / "copies"
    folder.mkdir()
    await half_copied(store, f"sqlite:///{folder}/new.db")
    assert list(folder.iterdir()) == []
    done = await copied(store, f"sqlite:///{folder}/new.db")
    assert [found.name for found in folder.iterdir()] == ["new.db"]
    assert (done.items, done.nodes) == (len(await items(store)), 12)
    async with opened(f"sqlite:///{folder}/new.db") as new:
        assert await items(new) == await items(store)


async def test_a_table_with_an_incomplete_copy_cannot_be_opened_and_the_same_copy_finishes_it(
    store: Store, table: str
) -> None:
    await fill(store)
    await half_copied(store, table)
    for _ in range(2):
        with pytest.raises(WrongLayout, match="run the same clade copy again to finish it"):
            async with opened(table):
                pass
    await write(store, create("A/new"))  # meanwhile the source changes, and what it had is gone
    await write(store, move("A", "Z"))
    await write(store, journaled.cascade("Z/B"))
    await copied(store, table)
    async with opened(table) as new:
        assert await items(new) == await items(store)
        await invariants.check(new)


async def test_a_copy_is_rejected_while_a_background_move_is_running(store: Store, tmp_path: Path) -> None:
    await journaled.plant(store)
    await journaled.halted(store, move("r/a", "r/b/c/a"), MoveState.COPYING)
    with pytest.raises(Conflict, match=r"r/a is being moved.* clade repair"):
        await copied(store, f"sqlite:///{tmp_path}/new.db")
    await journaled.lapse(store)
    await journaled.resume(store)
    await copied(store, f"sqlite:///{tmp_path}/new.db")
    async with opened(f"sqlite:///{tmp_path}/new.db") as new:
        assert await items(new) == await items(store)


class Busy(Short):
    """A store in which others write while it is scanned for the second time, the one that copies.

    That scan has its pages in the order of the keys, and reads each when it is asked for.
    """

    def __init__(self, store: Store, edit: Any, page_items: int = 10) -> None:
        super().__init__(store, 1_000, page_items)
        self._edit = edit
        self._scans = 0

    async def scan(self, reads: ReadUsage) -> AsyncIterator[list[Item]]:
        self._scans += 1
        if self._scans != 2:
            async for page in super().scan(reads):
                yield page
            return
        last = ("", "")
        while page := (await self._after(last, reads))[: self._page_items]:
            last = (page[-1]["pk"], page[-1]["sk"])
            yield page
            if self._edit is not None:
                edit, self._edit = self._edit, None
                await write(self._store, edit)

    async def _after(self, last: tuple[str, str], reads: ReadUsage) -> list[Item]:
        found = [item async for page in self._store.scan(reads) for item in page]
        return sorted((one for one in found if (one["pk"], one["sk"]) > last), key=lambda one: (one["pk"], one["sk"]))


EDITS = {
    "a node": create("A/new"),
    "a root": create("new"),
    "a move": move("A/B", "A/C"),
    "a root that goes": move("A", "Z"),
}


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
@pytest.mark.parametrize("what", EDITS)
async def test_a_copy_without_a_snapshot_fails_where_anything_was_written(
    store: Store, tmp_path: Path, what: str
) -> None:
    await fill(store)
    with pytest.raises(Unavailable, match="was written to during the copy"):
        await copied(cast(Store, Busy(store, EDITS[what])), f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
async def test_the_first_root_of_a_hierarchy_is_detected_as_well(store: Store, tmp_path: Path) -> None:
    """The scan has passed its stamp when it is made, and meets its id."""
    first = Create(hierarchy("asset", level("PLANT", "-")), ("A",), "PLANT", "A", {})
    await write(store, create("A"))
    with pytest.raises(Unavailable, match="asset was written to during the copy"):
        await copied(cast(Store, Busy(store, first, page_items=1)), f"sqlite:///{tmp_path}/new.db")


async def test_a_copy_of_sqlite_is_of_one_moment_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sqlite.store.SCAN_ITEMS", 3)
    async with opened(f"sqlite:///{tmp_path}/old.db", make=True) as store:
        await fill(store)
        before = await items(store)
        written = 0

        async def others() -> None:
            nonlocal written
            while True:
                await write(store, create(f"A/n{written}"))
                written += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            busy = group.create_task(others())
            await copied(store, f"sqlite:///{tmp_path}/new.db")
            busy.cancel()
        assert written > 3
    async with opened(f"sqlite:///{tmp_path}/new.db") as new:
        await invariants.check(new)
        nodes = await invariants.nodes(new, "category")
        assert len(before) <= len(await items(new))
        assert len(nodes) < 3 + written
