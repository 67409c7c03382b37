"""Reading one tree with all that belongs to it, as it was at one moment, and judging it.

Others may write meanwhile. Each of their transactions raises the tree's stamp, so what is read between two equal
stamps is true; a tree whose stamp moved is read again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from store.checking.findings import (
    Finding,
    Findings,
    Fix,
    place,
    told,
)
from store.checking.missing_states import missing_states
from store.checking.nodes import Beside, NodeChecks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import id_record_key
from store.metadata.move_record import Move
from store.metadata.redirects import redirect_key, redirected_id
from store.metadata.tree_version import decode_moves
from store.model.hierarchy import Hierarchy
from store.model.items import Item, key_of
from store.model.keys import (
    Index,
    Key,
    id_key,
    tree_version_key,
)
from store.model.ranges import KeyRange, subtree
from store.model.records import (
    Counts,
    is_id,
    is_revision,
    nonzero_counts,
)
from store.model.undefined_values import Undefined
from store.reading.active_moves import active_moves
from store.text import shorten

PAGE_ITEMS = 1000
LOG_PAGE_ITEMS = 50  # an item of the log may have 300 KB
ATTEMPTS = 10  # to read a tree while nobody writes to it
SKEW_SECONDS = 3600.0  # by so much the log's items may expire in another order than that of their numbers


@dataclass
class Examined:
    """A tree as it was found: its stamp's item, its true shape and aliases, and the last number in its log.

    `moves` are those under way with an end in it. What they hide is not looked at: nobody sees it, and nobody but them
    writes to it.
    """

    pk: str
    stamp: Item | None
    undefined: Undefined
    findings: Findings = field(default_factory=Findings)
    shape: Counts = field(default_factory=dict)
    aliases: int = 0
    logged: int = 0
    moves: Sequence[Move] = ()

    @property
    def number(self) -> int:
        """The number that the stamp must have at least."""
        return max(stamped(self.stamp), self.logged)


class TreeReader:
    """Examines the trees of one hierarchy one after another; `met` hears of so many nodes more."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage, met: Callable[[int], None]) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads
        self._met = met
        self._ranks: dict[str, str] = {}  # of roots, those that were made by hand

    async def examine(self, pk: str, *, again: bool = False) -> Examined:
        """The tree as it is; where others never stop writing to it, that it could not be proven is what is found.

        Its nodes are not told of where it is examined `again`.
        """
        met = _unheard if again else self._met
        for _ in range(ATTEMPTS):
            (stamp,) = await self._get([tree_version_key(pk)])
            found = await self._read(pk, stamp, met)
            if await self._get([tree_version_key(pk)]) == [stamp]:
                return found
            met = _unheard
        found = Examined(pk, stamp, Undefined(self._hierarchy))
        self._tell(found, "it was not proven, since others write to it all the time; check again later")
        return found

    async def _read(self, pk: str, stamp: Item | None, met: Callable[[int], None]) -> Examined:
        walk = NodeChecks(self._hierarchy, pk, self._ranks)
        moves = await active_moves(self._store, decode_moves(stamp), self._reads)
        hidden = [move.hidden for move in moves if move.hidden is not None]
        async for page in self._pages(subtree(pk, "#")):
            items = [item for item in page if not any(end.holds(key_of(item)) for end in hidden)]
            for item, beside in zip(items, await self._beside(items, moves), strict=True):
                walk.meet(item, beside)
            met(len(items))
        walk.finish()
        if moves:  # until they have ended, nobody else writes to what may be theirs
            walk.findings.kept = [replace(finding, mend=None) for finding in walk.findings.kept]
        found = Examined(pk, stamp, walk.undefined, walk.findings, dict(walk.shape), moves=moves)
        await self._read_log(found)
        await self._read_aliases(found)
        self._judge_stamp(found)
        return found

    def _tell(self, found: Examined, wrong: str, **values: object) -> None:
        """Note what is wrong with the tree's stamp, its log or its aliases."""
        mend = Fix.of(tree_version_key(found.pk), found.stamp, cast(Item, values)) if values else None
        found.findings.add(Finding(self._hierarchy.name, place(found.pk, "#"), wrong, mend))

    # -- beside the nodes ----------------------------------------------------------------------------------------------

    async def _beside(self, items: Sequence[Item], moves: Sequence[Move]) -> list[Beside]:
        """What lies beside each of these nodes; an id that no node can have is looked up nowhere.

        A record that leads to where a node lay before its move tells where it is seen now.
        """
        ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
        found = await self._look([id_key(node_id) for node_id in ids if node_id])
        records = {key: _as_moved(record, moves) for key, record in found.items()} if moves else found
        led = {node_id: id_record_key(records[id_key(node_id)] or {}) for node_id in ids if node_id}
        keys = [led.get(node_id) for node_id in ids]
        others = await self._look([key for key, item in zip(keys, items, strict=True) if key and key != key_of(item)])
        missing = await self._missing(items, ids)
        return [
            Beside(records.get(id_key(node_id)), others.get(key) if key else None, missing.get(node_id, 0))
            for node_id, key in zip(ids, keys, strict=True)
        ]

    async def _missing(self, items: Sequence[Item], ids: Sequence[str]) -> dict[str, int]:
        """How many former states of these nodes are missing, by their ids, where any are."""
        last = {
            node_id: cast(int, item["revision"]) - 1
            for node_id, item in zip(ids, items, strict=True)
            if node_id and is_revision(item.get("revision"))
        }
        return await missing_states(self._store, last, self._reads)

    # -- beside the tree -----------------------------------------------------------------------------------------------

    async def _read_log(self, found: Examined) -> None:
        """Its items have the numbers up to the stamp's without a gap, but for the oldest, which expire."""
        expires: object = None
        async for items in self._pages(KeyRange(Index.TABLE, found.pk, "!0", "!:"), LOG_PAGE_ITEMS):
            for item in items:
                digits = cast(str, item["sk"])[1:]
                number = int(digits) if digits.isdigit() else found.logged
                if found.logged and number > found.logged + 1 and not _soon(expires):
                    self._tell(found, f"its log lacks {_numbers(found.logged + 1, number - 1)}")
                found.logged, expires = number, item.get("expires")
        last = stamped(found.stamp)
        if found.logged and found.logged < last and not _soon(expires):
            self._tell(found, f"its log lacks {_numbers(found.logged + 1, last)}")

    async def _read_aliases(self, found: Examined) -> None:
        """Each leads to an id that there is, or was."""
        async for items in self._pages(subtree(redirect_key(Key(found.pk, "#")).pk, "#")):
            found.aliases += len(items)
            ids = [redirected_id(item) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
            records = await self._look([id_key(node_id) for node_id in ids if node_id])
            for item, node_id in zip(items, ids, strict=True):
                if records.get(id_key(node_id)) is None:
                    wrong = f"the alias of this path leads to {shorten(repr(item.get('id')))}, an id that there is not"
                    found.findings.add(Finding(self._hierarchy.name, place(found.pk, item["sk"]), wrong))

    def _judge_stamp(self, found: Examined) -> None:
        stamp = found.stamp
        if stamp is None:
            if found.shape or found.logged or found.aliases:
                values = {"n": found.number, "shape": found.shape, "aliases": found.aliases}
                self._tell(found, "it has no stamp", **values)
            return
        if stamp.get("n") != found.number or not found.number:
            wrong = f"its stamp has the number {shorten(repr(stamp.get('n')))}, its log goes up to {found.logged}"
            self._tell(found, wrong, n=found.number)
        if nonzero_counts(stamp.get("shape")) != found.shape:
            wrong = f"its stamp counts {told(stamp.get('shape'))}; there are {told(found.shape)}"
            self._tell(found, wrong, shape=found.shape)
        known = {move.id for move in found.moves}
        for one in decode_moves(stamp):
            if one.id not in known:
                self._tell(found, f"its stamp names the move {one.id}, which is not under way", moves=None)
        if stamp.get("aliases") != found.aliases:
            wrong = f"its stamp counts {shorten(repr(stamp.get('aliases')))} aliases, and not {found.aliases}"
            self._tell(found, wrong, aliases=found.aliases)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)

    async def _look(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        return dict(zip(keys, await self._get(keys), strict=True))

    async def _pages(self, span: KeyRange, limit: int = PAGE_ITEMS) -> AsyncIterator[list[Item]]:
        while items := await self._store.range(span, self._reads, limit=limit, strong=True):
            yield items
            await asyncio.sleep(0)  # SQLite never waits, so this is where a Ctrl-C is heard
            if len(items) < limit:
                return
            span = span.after(cast(str, items[-1]["sk"]))


def _as_moved(record: Item | None, moves: Sequence[Move]) -> Item | None:
    """The record of an id as it will be when these moves have ended."""
    place = id_record_key(record or {})
    for move in moves:
        if place is not None and (moved := move.led(place)) not in (None, place):
            return {**(record or {}), "tree": moved.pk, "key": moved.sk}
    return record


def stamped(stamp: Item | None) -> int:
    """The number that a stamp's item has, 0 where it is none."""
    number = stamp.get("n") if stamp else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def _numbers(first: int, last: int) -> str:
    return f"number {first}" if first == last else f"the numbers {first} to {last}"


def _soon(expires: object) -> bool:
    """Whether an item of the log may have expired later than the one behind it, by another clock."""
    return isinstance(expires, int | float) and expires < time.time() + SKEW_SECONDS


def _unheard(nodes: int) -> None:
    """What an attempt is told that is not the first: its nodes have been counted."""
