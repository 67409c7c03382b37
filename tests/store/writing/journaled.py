"""Trees with subtrees for large moves, and helpers to inspect them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from store.checking.check import Check
from store.engine import ReadUsage, Store
from store.metadata.moves import PARTITION, MoveState, MoveTiming
from store.metadata.moves import Move as Journaled
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.paths import format_path, parse_path
from store.model.records import Change, Item, Put, Record
from store.reading import recent_moves
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.create_update import Create
from store.writing.edit_request import EditResult
from store.writing.move_delete import Delete, Move, Policy
from store.writing.move_worker import MoveWorker
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.stores import Interrupted, StoreProxy, once

AT = "2026-01-01T00:00:00.000Z"
SMALL = 24  # changes in a transaction, so that few nodes take several
SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
SUBTREE = [
    "r/a", *[f"r/a/n{n}" for n in range(9)], "r/a/n0/x", "r/a/n0/y", "r/a/n0/y/z", "r/a/n8/x", "r/a/n8/x/y",
]  # fmt: skip
OTHERS = ["r", "r/0", "r/b", "r/b/c", "o", "o/p"]


async def plant(store: Store, *more: str, hierarchy: Hierarchy = CATEGORY) -> None:
    """The two trees, in a store whose transactions are small from then on."""
    wanted = ImportPlan(hierarchy)
    for number, path in enumerate([*OTHERS, *SUBTREE, *more]):
        wanted.take(Row(number, parse_path(path), [Part("CATEGORY")]))
    await load(store, wanted, LoadResult())
    store.max_commit_changes = SMALL


def move(path: str, target: str) -> Move:
    return Move(CATEGORY, parse_path(path), parse_path(target))


def cascade(path: str) -> Delete:
    return Delete(CATEGORY, parse_path(path), Policy.CASCADE)


def create(path: str, **values: Any) -> Create:
    where = parse_path(path)
    return Create(CATEGORY, where, "CATEGORY", where[-1], {}, **values)


async def write(store: Store, edit: Any, timing: MoveTiming = SOON) -> EditResult:
    """Make an edit, and wait for the end of the move that it begins."""
    writer = Writer(store, timing)
    written = await writer.write(edit, ReadUsage())
    await writer.move_worker.finished()
    return written


def at(prefix: str, target: str, paths: list[str] = SUBTREE) -> set[str]:
    """Paths below a prefix as they are when this lies at another place."""
    return {target + path.removeprefix(prefix) for path in paths if path.startswith(prefix)}


async def paths(store: Store) -> set[str]:
    """Where nodes lie, hidden ones included."""
    return {format_path(Record.of(item).path) for item in (await invariants.nodes(store, "category")).values()}


async def there(store: Store, key: Key) -> Item:
    (item,) = await store.get([key], ReadUsage(), strong=True)
    assert item is not None, key
    return item


async def only_move(store: Store) -> Journaled:
    (found,) = await recent_moves(store, ReadUsage())
    return found


async def only_restore(store: Store) -> Journaled:
    (found,) = [one for one in await recent_moves(store, ReadUsage()) if one.gone is not None]
    return found


async def has_ended(store: Store, state: MoveState = MoveState.DONE, hierarchy: Hierarchy | None = None) -> None:
    """Fail unless the only move has ended so, and nothing in the table is left of it."""
    found = await only_move(store)
    assert (found.state, found.ended_at is not None) == (state, True)
    await invariants.check(store, {"category": hierarchy} if hierarchy else None)


# -- workers that die --------------------------------------------------------------------------------------------------


class Dies(BaseException):
    """Nothing that is caught on the way: the process ends here."""


def mortal(store: Store, commits: int) -> Any:
    """A store that dies when so many commits are made; to die before one is the same as to die after the last one."""

    async def die(number: int, made: int) -> None:
        if number + made > commits:
            raise Dies

    return Interrupted(store, "commit", before=partial(die, made=0), after=partial(die, made=1))


class Halting(StoreProxy):
    """A store that dies when a move is in this state, in the middle of its copies or of its sweep."""

    def __init__(self, store: Store, state: MoveState) -> None:
        super().__init__(store)
        self._state = state
        self._is_dead = False

    async def commit(self, changes: Sequence[Change]) -> None:
        if not self._is_dead:
            await self._store.commit(changes)
            records = [change.item for change in changes if isinstance(change, Put) and change.key.pk == PARTITION]
            self._is_dead = any(one["state"] == self._state.value and one["cursor"] is not None for one in records)
        if self._is_dead:
            raise Dies


def edited_meanwhile(store: Store, edit: Any) -> Any:
    """A store in which somebody else makes an edit before the first commit, after the look through the subtree."""
    return Interrupted(store, "commit", before=once(1, lambda: Writer(store).write(edit, ReadUsage())))


async def findings(store: Store, hierarchy: Hierarchy = CATEGORY) -> list[str]:
    return [str(one) async for one in Check(store, {"category": hierarchy}, AT).findings()]


async def died(store: Store, edit: Any, commits: int) -> bool:
    """Make an edit by a process that dies after so many commits; whether it came to that."""
    return await _died_in(mortal(store, commits), edit)


async def _died_in(dying: Any, edit: Any) -> bool:
    writer = Writer(dying, SOON)
    try:
        await writer.write(edit, ReadUsage())
        await asyncio.gather(*writer.move_worker._tasks.values())
    except Dies:
        return True
    return False


async def lapse(store: Store) -> None:
    """Let the leases of all moves run out."""
    for found in await recent_moves(store, ReadUsage()):
        if found.ended_at is None:
            await store.commit([Put(replace(found, lease=0).item(), {"epoch": found.epoch})])


async def resume(store: Store) -> None:
    worker = MoveWorker(store, SOON)
    await worker.resume()
    await worker.finished()


async def halted(store: Store, edit: Any, state: MoveState) -> Journaled:
    """The move of an edit whose process has died in this state, in the middle of its copies or of its sweep."""
    assert await _died_in(Halting(store, state), edit)
    found = await only_move(store)
    assert (found.state, found.cursor is None) == (state, False)
    return found
