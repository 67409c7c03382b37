"""Check: verifies that the nodes, ids, counts, versions and logs of some hierarchies are consistent.

The whole table is scanned once. For each root on a page its tree is checked in key order, with its metadata; so is a
tree without a root, when its version or any node of it is on the page. Then come its search items. For each id it is
checked that its record, history and node agree, and of deleted nodes, that those above count them. So no item of the
hierarchies is left out, and memory holds only a few pages and the ancestors of one node. The check of a running move
verifies that its record and the tree versions refer to each other; the items that it hides are not checked. Of
idempotency keys and API keys it is checked that they can be read. Nodes of other hierarchies are only counted, and
expired items are not checked; and a check cannot detect that a whole log and its version were removed.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from store.api_keys import PARTITION as KEYS
from store.api_keys import ApiKey
from store.checking.deletions import DeletionCheck
from store.checking.findings import Finding, Fix, counts_text, mismatch, path_text, value_text
from store.checking.search_items import SearchCheck
from store.checking.trees_and_ids import OrphanCheck, TreeReader, TreeReport, expiry_of, number_of
from store.engine import ReadUsage, Store
from store.errors import DamagedItem
from store.metadata.history import REDIRECTS, Redirect
from store.metadata.moves import Move, MoveState
from store.metadata.tree_version import (
    ActiveMoveRef,
    StoredVersion,
    Transaction,
    decode_moves,
    encode_moves,
    level_at_depth,
)
from store.model.attributes import Value
from store.model.decoding import problem_of
from store.model.hierarchy import LEVEL_NAME, Hierarchy, Undefined
from store.model.keys import Key, hierarchy_of, listed, siblings, tree_version_key
from store.model.records import Counts, Item, key_of, nonzero_counts
from store.reading import ActiveMoves, recent_moves, registered_moves
from store.writing.edit_request import RESULTS, StoredResult

ATTEMPTS = 10  # to list the roots while none is created or deleted
SETTLE_SECONDS = 2.0  # until an index has caught up with the table


class Check:
    """One pass through a table; `at` is the time (RFC 3339) for the tombstones that fixes contain.

    `on_nodes` is called with each number of nodes checked, `on_items` with each number of items scanned. `undefined`
    has by hierarchy the attributes and levels that its class does not define, of the trees checked by `findings`.
    `unchecked` are the numbers of nodes of other hierarchies.
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
        self.unchecked = Counter[str]()
        self._at = at
        self._on_items = on_items
        self._reads = reads = ReadUsage()
        self._trees = {name: TreeReader(store, one, reads, on_nodes) for name, one in hierarchies.items()}
        self.searches = {name: SearchCheck(store, one, reads) for name, one in hierarchies.items()}
        self.seen: set[str] = set()  # hierarchies of which there are nodes, by all pages so far
        self._orphans = [OrphanCheck(store, one, reads, at) for one in hierarchies.values()]
        self._deletions = [DeletionCheck(store, one, reads) for one in hierarchies.values()]

    async def findings(self) -> AsyncIterator[Finding]:
        """All findings, as they are made. Raises Damaged where the engine itself finds the table damaged."""
        await self.store.check_integrity()
        rootless: set[str] = set()
        before = {name: await one.check_marker(has_nodes=True) for name, one in self.searches.items()}
        searched = {name for name, one in self.searches.items() if one.marker is not None and one.marker.is_complete}
        async for page in self.pages():
            for finding in [*await self.orphans(page), *self.others(page)]:
                yield finding
            for name, search in self.searches.items():
                if name in searched or before[name] is None:
                    for stray in await search.strays(page):
                        yield stray.finding
            for pk in await self.trees(page, rootless):
                report = await self.tree(pk)
                self.undefined[hierarchy_of(pk)].add(report.undefined)
                for finding in report.findings:
                    yield finding
                if hierarchy_of(pk) in searched:
                    async for finding in self.searches[hierarchy_of(pk)].tree(pk):
                        yield finding
        for finding in await self.moves():
            yield finding
        for findings in (self.moved_nodes(), self.markers(), self.roots()):
            async for finding in findings:
                yield finding

    async def pages(self) -> AsyncIterator[list[Item]]:
        """The items of the whole table."""
        async for page in self.store.scan(self._reads):
            self.seen |= {hierarchy_of(pk) for item in page if (pk := self._tree_of(item)) and item["sk"] == "#"}
            self.unchecked.update([name for item in page if (name := self._unchecked(item))])
            yield page
            self._on_items(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so Ctrl-C is served here

    async def orphans(self, page: Sequence[Item]) -> list[Finding]:
        """The findings on the ids of a page."""
        checks: list[OrphanCheck | DeletionCheck] = [*self._orphans, *self._deletions]
        return [finding for one in checks for finding in await one.check(page)]

    def others(self, page: Sequence[Item]) -> list[Finding]:
        """The findings on damaged items of a page that nothing can restore, and that are better absent."""
        findings = []
        for item in page:
            pk, sk = cast(str, item["pk"]), cast(str, item["sk"])
            kind, _, rest = pk.partition("#")
            path = ""
            if kind == KEYS:
                name, thing, shape, attribute = kind, f"the API key {sk}", cast(type, ApiKey), "hash"
            elif kind == RESULTS:
                name, thing, shape, attribute = rest.partition(":")[0], "the result of a write", StoredResult, "wanted"
            elif kind == REDIRECTS:
                name, thing, shape, attribute = rest.partition("#")[0], "the redirect", Redirect, "id"
                path = path_text(rest, sk)
            elif sk[1:].isdigit():
                name, thing, shape, attribute = kind, f"number {int(sk[1:])} of the change log", Transaction, "at"
                path = path_text(pk, "#") if rest else ""
            else:
                continue
            if (name in self.hierarchies or name == KEYS) and (damage := problem_of(item, shape)):
                fix = Fix(key_of(item), None, {attribute: item.get(attribute)})
                findings.append(Finding(name, path, f"{thing} is damaged, and of no use: {damage}", fix))
        return findings

    async def trees(self, page: Sequence[Item], rootless: set[str]) -> list[str]:
        """The partitions of the trees to check with a page, so that each is checked once in a scan.

        That is the page with its root; with its version, if it has no root; or else the first one, which is noted in
        `rootless`.
        """
        places = {(pk, cast(str, item["sk"])) for item in page if (pk := self._tree_of(item))}
        chosen = {pk for pk, sk in places if sk == "#"}
        others = sorted({pk for pk, _ in places} - chosen)
        keys = [key for pk in others for key in (Key(pk, "#"), tree_version_key(pk))]
        items = await self.store.get(keys, self._reads, strong=True)
        present = {key for key, item in zip(keys, items, strict=True) if item is not None}
        for pk in others:
            if Key(pk, "#") in present or pk in rootless:
                continue
            if tree_version_key(pk) not in present:
                rootless.add(pk)
            elif (pk, "!") not in places:
                continue
            chosen.add(pk)
        return sorted(chosen)

    async def tree(self, pk: str, *, repeated: bool = False) -> TreeReport:
        """The report on one tree; `on_nodes` is not called where the check is `repeated`."""
        return await self._trees[hierarchy_of(pk)].check(pk, repeated=repeated)

    async def moves(self) -> list[Finding]:
        """The moves that have not ended and that the tree version at an end of theirs does not list."""
        damaged: list[DamagedItem] = []
        moves = await recent_moves(self.store, self._reads, on_damaged=damaged.append)
        findings = [Finding("moves", "", f"the move {one.sk} is damaged: {one.problem}") for one in damaged]
        for move in moves:
            if move.ended_at is not None or move.hierarchy not in self.hierarchies:
                continue
            keys = [*map(tree_version_key, sorted(move.running.partitions)), move.key]
            *versions, item = await self.store.get(keys, self._reads, strong=True)
            is_listed = all(_lists(version, move.running) for version in versions)
            if item is not None and Move.of(item) == move and not is_listed:
                problem = f"the move {move.id} has not ended, and no tree version lists it"
                ended = replace(move, state=MoveState.UNDONE, ended_at=self._at).item()
                fix = Fix.of(move.key, item, {name: ended[name] for name in ("state", "ended_at", "expires")})
                findings.append(Finding(move.hierarchy, path_text(*move.source), problem, fix))
        return findings

    async def moved_nodes(self) -> AsyncIterator[Finding]:
        """The findings on what search has of moves."""
        for search in self.searches.values():
            async for finding in search.moved():
                yield finding

    async def markers(self) -> AsyncIterator[Finding]:
        """The findings on what says which hierarchies are searched, after all pages."""
        for name, search in self.searches.items():
            if (finding := await search.check_marker(has_nodes=name in self.seen)) is not None:
                yield finding

    async def roots(self) -> AsyncIterator[Finding]:
        """The findings on the versions of the roots."""
        for name in self.hierarchies:
            if (finding := await self._version_of_roots(name)) is not None:
                yield finding

    async def _version_of_roots(self, name: str) -> Finding | None:
        """The finding on the version of a hierarchy's roots, which are counted in an index that may be behind."""
        before = None
        for _ in range(ATTEMPTS):
            (version,) = await self.store.get([tree_version_key(name)], self._reads, strong=True)
            try:
                moves = await registered_moves(self.store, name, version, self._reads)
            except DamagedItem as error:
                return Finding(name, "", f"the roots were not checked, a running move is damaged: {error.problem}")
            shape = await self._listed(name, version, moves)
            problem = _roots_problem(name, version, shape, moves)
            if problem is None:
                return None
            if before == (before := (version, shape)):
                values: Item = {
                    "n": number_of(version) + 1, "shape": cast(Value, shape), "aliases": False,
                    "moves": encode_moves(moves.refs) or None, "log_expires": expiry_of(version), **listed(name),
                }  # fmt: skip
                return Finding(name, "", problem, Fix.of(tree_version_key(name), version, values))
            await asyncio.sleep(SETTLE_SECONDS)
        return Finding(name, "", "the roots were not checked, since other writes to them did not stop")

    async def _listed(self, name: str, version: Item | None, moves: ActiveMoves) -> Counts:
        """The number of roots by level that the index lists, without those that moves hide.

        Of levels that the class lacks those that the version counts are listed, too: another version of the class may
        define them.
        """
        counted = (version or {}).get("shape")
        others = {one.partition("@")[0] for one in counted} if isinstance(counted, dict) else set()
        levels = [*self.hierarchies[name].levels, *(one for one in sorted(others) if LEVEL_NAME.fullmatch(one))]
        counts = {level: await self.store.count(siblings(name, level), self._reads) for level in dict.fromkeys(levels)}
        hidden = [key for key in moves.hidden if key.sk == "#"]
        for item in await self.store.get(hidden, self._reads, strong=True):
            if item is not None and (level := value_text(item.get("level")).strip("'")) in counts:
                counts[level] -= 1
        return {level_at_depth(level, 0): count for level, count in counts.items() if count}

    def _unchecked(self, item: Item) -> str | None:
        """The hierarchy that a node item belongs to, None for one of these hierarchies and for other items."""
        name, divider, _ = cast(str, item["pk"]).partition("#")
        return name if divider and "tier" in item and name not in self.hierarchies else None

    def _tree_of(self, item: Item) -> str | None:
        """The partition of the tree that an item belongs to, None if not of these hierarchies."""
        pk = cast(str, item["pk"]).removeprefix("alias#")
        hierarchy, divider, root = pk.partition("#")
        return pk if divider and root and hierarchy in self.hierarchies else None


def _lists(version: Item | None, ref: ActiveMoveRef) -> bool:
    """Whether a tree version lists a move, or cannot be read."""
    try:
        return ref in decode_moves(version)
    except DamagedItem:
        return True


def _roots_problem(name: str, version: Item | None, shape: Counts, moves: ActiveMoves) -> str | None:
    """The problem of the version of a hierarchy's roots, None where it is right."""
    found = version.get("shape") if version else {}
    problems = []
    if version is not None and not number_of(version):
        problems.append(mismatch("n", value_text(version.get("n")), "a positive integer"))
    if nonzero_counts(found) != shape:
        problems.append(mismatch("shape", counts_text(found), counts_text(shape)))
    if version is not None and (damage := problem_of(version, StoredVersion)):
        return f"version of the roots: {'; '.join(problems) or damage}"
    problems += [
        mismatch(attribute, value_text(version.get(attribute)), value_text(value))
        for attribute, value in listed(name).items()
        if version is not None and version.get(attribute) != value
    ]
    refs = decode_moves(version)
    problems += [f"the move {ref.id} is not running" for ref in refs if ref not in moves.refs]
    return f"version of the roots: {'; '.join(problems)}" if problems else None
