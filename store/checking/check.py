"""Check: verifies that the nodes, ids, counts, versions, logs, redirects and search items of some hierarchies agree.

The whole table is scanned once, in any order, and what cannot be matched is scanned again (`scan.py`). Each suspect is
then read with what it depends on, as of one version of its tree, and is a finding only if it is still wrong: others may
write meanwhile. Memory holds the digests, the suspects and a page of items. Of a running move it is verified that its
record and the tree versions refer to each other; the items that it hides are not checked. Other hierarchies, expired
items, idempotency keys and API keys are not checked; and a check cannot detect that a whole log and its version were
removed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import cast

from store.checking.derived_items import DerivedCheck, Strays, unwanted_items
from store.checking.findings import Finding, Fix, counts_text, mismatch, path_text, value_text
from store.checking.ids import OrphanCheck
from store.checking.scan import Scan
from store.checking.suspects import MAX_SUSPECTS, Suspects, TreeSuspects
from store.checking.trees import TreeReader, TreeReport, number_of
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.move_record import Move, MoveState
from store.metadata.tree_version import decode_moves, encode_moves, level_at_depth
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Index, Key, hierarchy_of, tree_version_key
from store.model.ranges import KeyRange, siblings
from store.model.records import Counts, nonzero_counts
from store.model.undefined_values import Undefined
from store.reading.active_moves import ActiveMoves, active_moves, recent_moves
from store.reading.pages import PAGE_ITEMS
from store.search.lineage import moved_key

ATTEMPTS = 10  # to list the roots while none is created or deleted
SETTLE_SECONDS = 2.0  # until an index has caught up with the table


class Check:
    """The check of a table; `at` is the time (RFC 3339) for the tombstones that fixes contain.

    `on_nodes` and `on_items` are called with each number of nodes and items scanned, each item once. `undefined` has by
    hierarchy the attributes and levels that its class does not define.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        at: str,
        on_nodes: Callable[[int], None] = lambda _: None,
        on_items: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.store = store
        self.hierarchies = hierarchies
        self.undefined = {name: Undefined(hierarchy) for name, hierarchy in hierarchies.items()}
        self._progress = on_nodes, on_items
        self._at = at
        self.reads = reads = ReadUsage()
        """The read consumption so far."""
        self._trees = {name: TreeReader(store, one, reads) for name, one in hierarchies.items()}
        self.derived = {name: DerivedCheck(store, one, reads) for name, one in hierarchies.items()}
        self._orphans = {name: OrphanCheck(store, one, reads, at) for name, one in hierarchies.items()}
        self.unwanted: Mapping[str, Mapping[tuple[str, str], int]] = {}
        """As of the scan: see `Scan`."""
        self.others: Mapping[str, int] = {}
        """The number of nodes of hierarchies that are not checked, by name, as it was scanned."""
        self._seen: set[str] = set()

    async def findings(self) -> AsyncIterator[Finding]:
        """All findings, as they are made. Raises Damaged where the engine itself finds the table damaged."""
        await self.store.check_integrity()
        suspects = await self.suspects([name for name in self.derived if await self.is_incomplete(name)])
        async for ids in self.id_pages(suspects):
            for finding in await self.orphans(ids):
                yield finding
        for pk in sorted(suspects.trees):
            for finding in (await self.tree(pk, suspects.trees[pk])).findings:
                yield finding
            async for finding in self.derived[hierarchy_of(pk)].nodes(pk, suspects.trees[pk].derived):
                yield finding
        async for stray in self.strays(suspects):
            yield stray.finding
        for finding in self.unknown(suspects):
            yield finding
        for finding in await self.moves():
            yield finding
        async for finding in self.moved_nodes(suspects):
            yield finding
        for name, numbers in self.unwanted.items():
            for (noun, reason), number in numbers.items():
                if number:
                    yield Finding(name, "", unwanted_items(number, noun, reason))
        async for finding in self.markers():
            yield finding
        async for finding in self.roots(suspects):
            yield finding
        if suspects.has_more:
            problem = f"more than {MAX_SUSPECTS:,} items may be wrong, and the others were not checked"
            yield Finding(", ".join(self.hierarchies), "", problem)

    async def is_incomplete(self, name: str) -> bool:
        """Whether the items that follow from nodes of a hierarchy are not complete, as a marker says."""
        return bool(await self.derived[name].markers(only_applying=True))

    async def suspects(self, unsearched: Collection[str], *, exactly: bool = False, repeated: bool = False) -> Suspects:
        """What may be wrong; see `Scan`. A `repeated` scan is not counted."""
        on_nodes, on_items = self._progress if not repeated else (_ignore, _ignore)
        scan = Scan(
            self.store, self.hierarchies, self.reads, unsearched=unsearched, exactly=exactly, on_nodes=on_nodes,
            on_items=on_items,
        )  # fmt: skip
        suspects = await scan.suspects()
        self.undefined, self.unwanted, self._seen = scan.undefined, scan.unwanted, scan.seen
        self.others = scan.others
        return suspects

    async def id_pages(self, suspects: Suspects) -> AsyncIterator[list[Item]]:
        """The id records and revisions of suspect ids."""
        page: list[Item] = []
        for node_id in sorted(suspects.ids):
            ids = KeyRange(Index.TABLE, f"id#{node_id}", "v", "w")
            page += await self.store.range(ids, self.reads, limit=PAGE_ITEMS, strong=True)
            if len(page) >= PAGE_ITEMS:
                yield page
                page = []
        if page:
            yield page

    async def orphans(self, page: Sequence[Item]) -> list[Finding]:
        """The findings on the ids of a page."""
        return [finding for orphans in self._orphans.values() for finding in await orphans.check(page)]

    async def tree(self, pk: str, suspects: TreeSuspects) -> TreeReport:
        """The report on the suspects of one tree."""
        return await self._trees[hierarchy_of(pk)].check(pk, suspects)

    async def strays(self, suspects: Suspects) -> AsyncIterator[Strays]:
        """The findings on search items that no node has."""
        keys = sorted(suspects.strays)
        for start in range(0, len(keys), PAGE_ITEMS):
            items = [item for item in await self._get(keys[start : start + PAGE_ITEMS]) if item is not None]
            for search in self.derived.values():
                for stray in await search.strays(items):
                    yield stray

    def unknown(self, suspects: Suspects) -> list[Finding]:
        """The findings on items at keys that no item has."""
        return [
            Finding(key.pk.partition("/")[2] or key.pk.partition("#")[0], path_text(*key), "no item has such a key")
            for key in sorted(suspects.unknown)
        ]

    async def moves(self) -> list[Finding]:
        """The moves that have not ended and that the tree version at an end of theirs does not list."""
        findings = []
        for move in await recent_moves(self.store, self.reads):
            if move.ended_at is not None or move.hierarchy not in self.hierarchies:
                continue
            keys = [*map(tree_version_key, sorted(move.running.partitions)), move.key]
            *versions, item = await self.store.get(keys, self.reads, strong=True)
            is_listed = all(move.running in decode_moves(version) for version in versions)
            if item is not None and Move.of(item) == move and not is_listed:
                problem = f"the move {move.id} has not ended, and no tree version lists it"
                ended = replace(move, state=MoveState.UNDONE, ended_at=self._at).item()
                fix = Fix.of(move.key, item, {name: ended[name] for name in ("state", "ended_at", "expires")})
                findings.append(Finding(move.hierarchy, path_text(*move.source), problem, fix))
        return findings

    async def moved_nodes(self, suspects: Suspects) -> AsyncIterator[Finding]:
        """The findings on what search has of moves."""
        for search in self.derived.values():
            for key in sorted(suspects.moved):
                if key.pk == moved_key(search.hierarchy.name, "").pk and (found := await search.moved(key)) is not None:
                    yield found

    async def markers(self) -> AsyncIterator[Finding]:
        """The findings on what says which items are complete, after all pages."""
        for name, derived in self.derived.items():
            for finding in await derived.markers(has_nodes=name in self._seen):
                yield finding

    async def roots(self, suspects: Suspects) -> AsyncIterator[Finding]:
        """The findings on the versions of the roots."""
        for name in sorted(suspects.hierarchies):
            if (finding := await self._roots(name)) is not None:
                yield finding

    async def _roots(self, name: str) -> Finding | None:
        """The finding on the version of a hierarchy's roots, which are counted in an index that may be behind."""
        before = None
        for _ in range(ATTEMPTS):
            (version,) = await self.store.get([tree_version_key(name)], self.reads, strong=True)
            moves = await active_moves(self.store, decode_moves(version), self.reads)
            shape = await self._listed(name, moves)
            problem = _roots_problem(version, shape, moves)
            if problem is None:
                return None
            if before == (before := (version, shape)):
                values: Item = {
                    "n": number_of(version) + 1, "shape": cast(Value, shape), "aliases": 0,
                    "moves": encode_moves(moves.refs) or None,
                }  # fmt: skip
                return Finding(name, "", problem, Fix.of(tree_version_key(name), version, values))
            await asyncio.sleep(SETTLE_SECONDS)
        return Finding(name, "", "the roots were not checked, since other writes to them did not stop")

    async def _listed(self, name: str, moves: ActiveMoves) -> Counts:
        """The number of roots by level that the index lists, without those that moves hide."""
        levels = self.hierarchies[name].levels
        counts = {level: await self.store.count(siblings(name, level), self.reads) for level in levels}
        hidden = [key for key in moves.hidden if key.sk == "#"]
        for item in await self.store.get(hidden, self.reads, strong=True):
            if item is not None:
                counts[cast(str, item["level"])] -= 1
        return {level_at_depth(level, 0): count for level, count in counts.items() if count}

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self.store.get(keys, self.reads, strong=True)


def _ignore(number: int) -> None:
    """The progress of a scan that is not counted."""


def _roots_problem(version: Item | None, shape: Counts, moves: ActiveMoves) -> str | None:
    """The problem of the version of a hierarchy's roots, None where it is right."""
    found = version.get("shape") if version else {}
    problems = []
    if version is not None and not number_of(version):
        problems.append(mismatch("n", value_text(version.get("n")), "a positive integer"))
    if version is not None and version.get("aliases") != 0:
        problems.append(mismatch("aliases", value_text(version.get("aliases")), "0"))
    if nonzero_counts(found) != shape:
        problems.append(mismatch("shape", counts_text(found), counts_text(shape)))
    problems += [f"the move {ref.id} is not running" for ref in decode_moves(version) if ref not in moves.refs]
    return f"version of the roots: {'; '.join(problems)}" if problems else None
