"""Proving a table: that every node, id, count, stamp and log of its hierarchies is as each write leaves it.

The whole table is scanned once. For each root that comes by its tree is walked in key order, with what lies beside its
nodes; so is a tree without a root, when its stamp or any node of it comes by. Of each id that comes by it is proven
that record, former states and node agree. So no item of the hierarchies is left out, and in memory are never more than
a few pages and the line above one node. Of a move that is under way it is proven that its record and the stamps tell of
each other; what it hides is its own. Items of hierarchies that are not asked for, what has expired, idempotency keys
and API keys are not looked at; nor can a check know a log or a stamp that never was.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from store.checking.findings import (
    Finding,
    Fix,
    place,
    told,
)
from store.checking.ids import OrphanCheck
from store.checking.trees import Examined, TreeReader, stamped
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.move_record import Move, MoveState
from store.metadata.tree_version import decode_moves, encode_moves, level_at_depth
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Key, hierarchy_of, tree_version_key
from store.model.ranges import siblings
from store.model.records import Counts, nonzero_counts
from store.model.undefined_values import Undefined
from store.reading.active_moves import active_moves, recent_moves

ATTEMPTS = 10  # to list the roots while none is made or removed
SETTLE_SECONDS = 2.0  # until an index shows what the table holds


class Check:
    """One pass through a table; `at` is the time of the tombstones that it proposes.

    `met` hears of so many nodes more that were examined, `scanned` of so many items of the table. `undefined` has for
    each hierarchy the attributes and levels that its class lacks, of the trees examined by `findings`.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        at: str,
        met: Callable[[int], None] = lambda _: None,
        scanned: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._scanned = scanned
        self._store = store
        self._hierarchies = hierarchies
        self._at = at
        self._reads = ReadUsage()
        self.undefined = {name: Undefined(one) for name, one in hierarchies.items()}
        self._trees = {name: TreeReader(store, one, self._reads, met) for name, one in hierarchies.items()}
        self._strays = [OrphanCheck(store, one, self._reads, at) for one in hierarchies.values()]

    async def findings(self) -> AsyncIterator[Finding]:
        """All that is wrong, as it is found. Raises Damaged where the store itself finds that it is not whole."""
        await self._store.check_integrity()
        examined: set[str] = set()
        async for page in self.pages():
            for finding in await self.strays(page):
                yield finding
            for pk in await self.trees(page, examined):
                tree = await self.examine(pk)
                self.undefined[hierarchy_of(pk)].add(tree.undefined)
                for finding in tree.findings:
                    yield finding
        for finding in await self.moves():
            yield finding
        for name in self._hierarchies:
            if (wrong := await self.roots(name)) is not None:
                yield wrong

    async def pages(self) -> AsyncIterator[list[Item]]:
        """The items of the whole table."""
        async for page in self._store.scan(self._reads):
            yield page
            self._scanned(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so this is where a Ctrl-C is heard

    async def strays(self, page: Sequence[Item]) -> list[Finding]:
        """What is wrong with the ids on a page."""
        return [finding for strays in self._strays for finding in await strays.judge(page)]

    async def trees(self, page: Sequence[Item], rootless: set[str]) -> list[str]:
        """The trees to be examined when a page comes by, so that each is once in a scan.

        That is when its root comes; its stamp, if it has no root; or else the first that comes, which `rootless` notes.
        """
        places = {(pk, cast(str, item["sk"])) for item in page if (pk := self._tree_of(item))}
        chosen = {pk for pk, sk in places if sk == "#"}
        others = sorted({pk for pk, _ in places} - chosen)
        keys = [key for pk in others for key in (Key(pk, "#"), tree_version_key(pk))]
        found = await self._store.get(keys, self._reads, strong=True)
        there = {key for key, item in zip(keys, found, strict=True) if item is not None}
        for pk in others:
            if Key(pk, "#") in there or pk in rootless:
                continue
            if tree_version_key(pk) not in there:
                rootless.add(pk)
            elif (pk, "!") not in places:
                continue
            chosen.add(pk)
        return sorted(chosen)

    async def examine(self, pk: str, *, again: bool = False) -> Examined:
        """One tree as it is; its nodes are not told of where it is examined `again`."""
        return await self._trees[hierarchy_of(pk)].examine(pk, again=again)

    async def moves(self) -> list[Finding]:
        """The moves that have not ended and that a stamp of a tree or hierarchy, where they must be, does not tell."""
        findings = []
        for move in await recent_moves(self._store, self._reads):
            if move.ended_at is not None or move.hierarchy not in self._hierarchies:
                continue
            keys = [*map(tree_version_key, sorted(move.running.partitions)), move.key]
            *stamps, item = await self._store.get(keys, self._reads, strong=True)
            is_told = all(move.running in decode_moves(stamp) for stamp in stamps)
            if item is not None and Move.of(item) == move and not is_told:
                wrong = f"the move {move.id} has not ended, and no stamp tells of it"
                ended = replace(move, state=MoveState.UNDONE, ended_at=self._at).item()
                mend = Fix.of(move.key, item, {name: ended[name] for name in ("state", "ended_at", "expires")})
                findings.append(Finding(move.hierarchy, place(*move.source), wrong, mend))
        return findings

    async def roots(self, name: str) -> Finding | None:
        """Whether the stamp of a hierarchy counts its roots rightly; they are counted in an index, which may trail."""
        before = None
        for _ in range(ATTEMPTS):
            (stamp,) = await self._store.get([tree_version_key(name)], self._reads, strong=True)
            moves = await active_moves(self._store, decode_moves(stamp), self._reads)
            shape = await self._listed(name, moves)
            number, counts = stamped(stamp), nonzero_counts(stamp.get("shape")) if stamp else {}
            lost = [one.id for one in decode_moves(stamp) if one not in [move.running for move in moves]]
            if counts == shape and (number or stamp is None) and not lost:
                return None
            if before == (before := (stamp, shape)):
                says = told(stamp.get("shape") if stamp else {})
                wrong = f"its stamp has the number {number} and counts the roots as {says}; there are {told(shape)}"
                wrong += "".join(f"; it names the move {one}, which is not under way" for one in lost)
                values: Item = {
                    "n": number + 1, "shape": cast(Value, shape), "aliases": 0,
                    "moves": encode_moves(move.running for move in moves) or None,
                }  # fmt: skip
                return Finding(name, "", wrong, Fix.of(tree_version_key(name), stamp, values))
            await asyncio.sleep(SETTLE_SECONDS)
        return Finding(name, "", "its roots were not proven, since others make and remove some all the time")

    async def _listed(self, name: str, moves: Sequence[Move]) -> Counts:
        """How many roots of each tier the index lists, without those that moves hide."""
        levels = self._hierarchies[name].levels
        counts = {level: await self._store.count(siblings(name, level), self._reads) for level in levels}
        hidden = [move.hidden for move in moves if move.hidden is not None and move.hidden.sk == "#"]
        for item in await self._store.get(hidden, self._reads, strong=True):
            if item is not None:
                counts[cast(str, item["level"])] -= 1
        return {level_at_depth(level, 0): count for level, count in counts.items() if count}

    def _tree_of(self, item: Item) -> str | None:
        """The partition of the tree that an item belongs to, if it does to any that is asked for."""
        pk = cast(str, item["pk"]).removeprefix("alias#")
        hierarchy, divider, root = pk.partition("#")
        return pk if divider and root and hierarchy in self._hierarchies else None
