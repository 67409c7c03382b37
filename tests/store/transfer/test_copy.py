"""Copies and exports of stores: rejected targets, concurrent writes and moves, and incomplete copies."""

import asyncio
import itertools
import json
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from store.api_keys import add_key, find_keys, new_key, revoke_key
from store.connect import open_store, opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError, Conflict, NoTable, Unavailable, WrongLayout
from store.metadata.moves import MoveState
from store.model.paths import parse_path
from store.sqlite.store import SCAN_ITEMS
from store.transfer.copy import Copy, new_store
from store.transfer.export import export
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create
from store.writing.edit_request import EditOptions
from store.writing.writer import Writer
from tests import invariants
from tests.engines import Engine
from tests.hierarchies import CATEGORY, hierarchy, level
from tests.proxy import Call, Forward, Proxy, passed, refused
from tests.store.checking.broken import fill
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import OTHERS, SUBTREE, create, move, write
from tests.stores import Interrupted


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


async def test_a_file_appears_when_the_copy_is_complete(store: Store, tmp_path: Path) -> None:
    await fill(store)
    folder = tmp_path / "copies"
    folder.mkdir()
    with pytest.raises(ZeroDivisionError):
        async with new_store(f"sqlite:///{folder}/new.db") as new:
            await Copy(store, new, lambda _: 1 // 0).run()
    assert list(folder.iterdir()) == []
    done = await copied(store, f"sqlite:///{folder}/new.db")
    assert [found.name for found in folder.iterdir()] == ["new.db"]
    assert (done.items, done.nodes) == (len(await items(store)), 12)
    async with opened(f"sqlite:///{folder}/new.db") as new:
        assert await items(new) == await items(store)


async def test_a_table_with_an_incomplete_copy_cannot_be_opened_and_the_same_copy_finishes_it(
    store: Store, table: str, engine: Engine
) -> None:
    await fill(store)
    await load(store, wanted_of([(f"m{n}", "CATEGORY") for n in range(60)], CATEGORY), LoadResult())
    async with Proxy(engine.url) as proxy:
        for _ in range(2):
            proxy.spoil("TransactWriteItems", passed, passed, *[refused("AccessDeniedException")] * 9)
            with pytest.raises(CladeError):
                await copied(store, table.replace(engine.url, proxy.url))
            proxy.mend()
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


EDITS = {
    "a node": create("A/new"),
    "a root": create("new"),
    "a move": move("A/B", "A/C"),
    "the first root of a hierarchy": Create(hierarchy("asset", level("PLANT", "-")), ("A",), "PLANT", "A", {}),
}


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
@pytest.mark.parametrize("what", EDITS)
async def test_a_copy_without_a_snapshot_fails_where_anything_was_written(
    store: Store, store_url: str, engine: Engine, tmp_path: Path, what: str
) -> None:
    await fill(store)
    is_before = "first" in what

    async def others_write(call: Call, forward: Forward) -> web.Response:
        """Write before the page is read, or after it."""
        if is_before:
            await write(store, EDITS[what])
        answer = await forward(call.body)
        if not is_before:
            await write(store, EDITS[what])
        return answer

    async with Proxy(engine.url) as proxy, open_store(store_url.replace(engine.url, proxy.url)) as source:
        proxy.spoil("Scan", passed, others_write)
        with pytest.raises(Unavailable, match="was written to during the copy"):
            await copied(source, f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


async def test_a_copy_of_sqlite_is_of_one_moment_while_others_write(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/old.db", make=True) as store:
        rows = [("A", "CATEGORY"), *[(f"A/{n}", "CATEGORY") for n in range(SCAN_ITEMS)]]
        await load(store, wanted_of(rows, CATEGORY), LoadResult())
        before = await items(store)
        numbers, waiting = itertools.count(), list[Coroutine[Any, Any, Any]]()

        def others(_: int) -> None:
            waiting.append(write(store, create(f"A/new{next(numbers)}")))

        async with new_store(f"sqlite:///{tmp_path}/new.db") as new:
            copy = asyncio.create_task(Copy(store, new, others).run())
            while waiting or not copy.done():
                if waiting:
                    await waiting.pop()
                await asyncio.sleep(0)
            await copy
        assert next(numbers) > 1
    async with opened(f"sqlite:///{tmp_path}/new.db") as new:
        assert await items(new) == before


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


# -- exports -----------------------------------------------------------------------------------------------------------


async def exported(store: Store, path: str | None = None, beside: Callable[[], Any] | None = None) -> list[str]:
    """The paths of an export, sorted; `beside` is called when the first page is out."""
    found: list[str] = []
    async for page in export(store, CATEGORY, parse_path(path) if path else None):
        found += ["/".join(json.loads(line)["path"]) for line in page.splitlines()]
        if beside is not None:
            await beside()
            beside = None
    return sorted(found)


@pytest.mark.parametrize("target", ["r/b/c/a", "o/p/q", "a"])
async def test_an_export_has_each_node_once_on_either_side_of_a_running_move(store: Store, target: str) -> None:
    await journaled.plant(store)
    await journaled.halted(store, move("r/a", target), MoveState.COPYING)
    assert await exported(store) == sorted([*OTHERS, *SUBTREE])
    assert await exported(store, "r/a") == sorted(SUBTREE)
    with pytest.raises(BadInput, match="no node"):
        await exported(store, target)
    await journaled.lapse(store)
    await journaled.resume(store)
    assert await exported(store) == sorted({*OTHERS, *journaled.at("r/a", target)})
    assert await exported(store, target) == sorted(journaled.at("r/a", target))
    with pytest.raises(BadInput, match="no node"):
        await exported(store, "r/a")


async def test_an_export_has_no_nodes_that_a_cascade_is_removing(store: Store) -> None:
    await journaled.plant(store)
    await journaled.halted(store, journaled.cascade("r"), MoveState.SWEEPING)
    assert await exported(store) == ["o", "o/p"]


MOVES = {
    "a small one": (None, "r/b", "r/Z", True), "a rename": (None, "r/b/c", "r/b/d", True),
    "a root": (None, "o", "r/o", True), "into the subtree": ("r/a", "r/b", "r/a/b", True),
    "above the subtree": ("r/a", "r", "o/r", True), "elsewhere in the tree": ("r/a", "r/b/c", "r/b/d", False),
}  # fmt: skip


@pytest.mark.both_stores
@pytest.mark.parametrize("what", MOVES)
async def test_an_export_is_of_one_moment_or_fails_because_of_a_move(
    store: Store, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, source, target, is_noticed = MOVES[what]
    monkeypatch.setattr("store.reading.PAGE_ITEMS", 10)
    await journaled.plant(store)
    before = await exported(store, path)

    async def moved() -> None:
        await write(store, create("r/0/new"))
        await write(store, move(source, target))

    if store.calls is None or not is_noticed:  # SQLite has a snapshot
        assert await exported(store, path, moved) == before
    else:
        with pytest.raises(Unavailable, match=r"was moved to .* during the export.*export again"):
            await exported(store, path, moved)
