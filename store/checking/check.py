"""Check: verifies that the nodes, ids, counts, versions, logs and items of kinds of some hierarchies are consistent.

The whole table is scanned once. Of the items on a page that are kept because of a node the owner is checked, and of
deleted nodes, that those above count them. For each root on a page its tree is checked in key order, with its metadata;
so is a tree without a root, when its version or any node of it is on the page. So no item of the hierarchies is left
out, and memory holds only a few pages and the ancestors of one node. The check of a running move verifies that its
record and the tree versions refer to each other; the items that it hides are not checked. Of idempotency keys and API
keys it is checked that they can be read. Nodes of other hierarchies are only counted, and expired items are not
checked; and a check cannot detect that a whole log and its version were removed.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from store.api_keys import PARTITION as KEYS
from store.api_keys import ApiKey
from store.checking.deletions import DeletionCheck
from store.checking.findings import Finding, Fix, path_text
from store.checking.owners import OwnerCheck, is_of_kind, owner_id
from store.checking.sums import TreeReport, number_of
from store.checking.trees import TreeCheck, TreeReader
from store.engine import ReadUsage, Store
from store.errors import DamagedItem
from store.kinds.lineage import moved_nodes
from store.kinds.marker import Marker, all_lacking, marker_key, unasked
from store.kinds.registry import is_asked
from store.metadata.history import REDIRECTS, Redirect
from store.metadata.moves import Move, MoveState
from store.metadata.tree_version import ActiveMoveRef, Transaction, decode_moves
from store.model.decoding import problem_of
from store.model.hierarchy import Hierarchy, Undefined
from store.model.keys import Key, hierarchy_of, tree_version_key
from store.model.records import Item, key_of
from store.reading import Pages, recent_moves
from store.writing.edit_request import RESULTS, StoredResult

NO_SEARCH = "nothing is searched until clade repair has written them"
UNASKED = "unasked"


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
        readers = {name: TreeReader(store, one, reads) for name, one in hierarchies.items()}
        self._trees = {name: TreeCheck(reader, on_nodes) for name, reader in readers.items()}
        self._owners = {name: OwnerCheck(reader, at) for name, reader in readers.items()}
        self._deletions = [DeletionCheck(store, one, reads) for one in hierarchies.values()]
        self._seen: set[str] = set()  # hierarchies of which there are nodes, by all pages so far

    async def findings(self) -> AsyncIterator[Finding]:
        """All findings, as they are made. Raises Damaged where the engine itself finds the table damaged."""
        await self.store.check_integrity()
        markers = {name: await self.marker(name, has_nodes=True) for name in self.hierarchies}
        made = {name for name, (_, one, found) in markers.items() if (one.is_complete if one else found is None)}
        rootless: set[str] = set()
        async for page in self.pages():
            for finding in [*await self.owners(page, of_kinds=made), *self.others(page)]:
                yield finding
            for pk in await self.trees(page, rootless):
                report = await self.tree(pk, of_kinds=True)
                if report.undefined is not None:
                    self.undefined[hierarchy_of(pk)].add(report.undefined)
                for finding in (*report.findings, *report.items):
                    yield finding
        for finding in await self.moves():
            yield finding
        for name in self.hierarchies:
            if (found := (await self.marker(name))[2]) is not None:
                yield found
            for finding in (await self.tree(name)).findings:
                yield finding

    async def pages(self) -> AsyncIterator[list[Item]]:
        """The items of the whole table."""
        async for page in self.store.scan(self._reads):
            self._seen |= {hierarchy_of(pk) for item in page if (pk := self._tree_of(item)) and item["sk"] == "#"}
            self.unchecked.update([name for item in page if (name := self._unchecked(item))])
            yield page
            self._on_items(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so Ctrl-C is served here

    async def all_trees(self) -> AsyncIterator[str]:
        """The partitions of all trees."""
        rootless: set[str] = set()
        async for page in self.pages():
            for pk in await self.trees(page, rootless):
                yield pk

    async def moved_nodes(self) -> AsyncIterator[Finding]:
        """The findings on the items of moved nodes alone."""
        for name in self.hierarchies:
            async for page in Pages(self.store, moved_nodes(name), self._reads):
                for finding in await self.owners(page):
                    yield finding

    async def owners(self, page: Sequence[Item], of_kinds: Container[str] = ()) -> list[Finding]:
        """The findings on items of a page that are kept because of a node; those `of_kinds` of these hierarchies."""
        owned: dict[str, defaultdict[str, list[Item]]] = {name: defaultdict(list) for name in self.hierarchies}
        for item in page:
            node_id = owner_id(item) or ""
            name = node_id.partition(":")[0]
            if name in owned and (name in of_kinds or not is_of_kind(item)):
                owned[name][node_id].append(item)
        findings = [finding for name, one in self._owners.items() for finding in await one.check(owned[name])]
        return findings + [finding for one in self._deletions for finding in await one.check(page)]

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
        # A redirect is at the sort key of a node, but is none.
        places = {(pk, str(item["sk"]) if pk == item["pk"] else "") for item in page if (pk := self._tree_of(item))}
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

    async def tree(self, pk: str, *, of_kinds: bool = False, is_counted: bool = True) -> TreeReport:
        """The report on one tree, or on the roots of a hierarchy; also on its items `of_kinds`. `on_nodes` is only
        called where it `is_counted`.
        """
        if "#" not in pk:
            return await self._trees[pk].sums.roots()
        return await self._trees[hierarchy_of(pk)].check(pk, of_kinds=of_kinds, is_counted=is_counted)

    def reader(self, pk: str) -> TreeReader:
        """The reader of a tree."""
        return self._trees[hierarchy_of(pk)].reader

    async def marker(self, name: str, *, has_nodes: bool = False) -> tuple[Item | None, Marker | None, Finding | None]:
        """The item of the marker of a hierarchy, the marker if it can be read, and the finding on it, which a repair of
        all items fixes. Without a marker there is one if the hierarchy `has_nodes`, or some were seen.
        """
        keys = [marker_key(name), tree_version_key(name)]
        item, roots = await self.store.get(keys, self._reads, strong=True)
        marker = None
        try:
            marker = Marker.of(name, item)
        except DamagedItem as error:
            problem = f"the marker of the search items is damaged, {error.problem}; {NO_SEARCH}"
        else:
            has_nodes = has_nodes or name in self._seen or number_of(roots) > 0
            problem = _marker_problem(self.hierarchies[name], marker) if marker or has_nodes else ""
        return item, marker, Finding(name, "", problem) if problem else None

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


def _marker_problem(hierarchy: Hierarchy, marker: Marker | None) -> str:
    """The problem of a marker, or of a hierarchy with nodes that has none; empty where it is right."""
    if not is_asked(hierarchy):
        problem = "its class has no search=, location= or unique=, but items of these are stored; clade repair removes "
        return f"{problem}them, which ends what servers with another version of the class do by them" if marker else ""
    if problems := marker_problems(hierarchy, marker):
        return worded_problems(problems)
    if marker and any(part.making is not None for part in marker.parts.values()):
        return "a repair that writes items for another version of its class has not ended; clade repair ends it"
    return ""


def marker_problems(hierarchy: Hierarchy, marker: Marker | None) -> dict[str, str]:
    """What a class lacks, by the word for the items, and as `UNASKED` what it does not ask for."""
    found = {word: f"{word}s are missing: {', '.join(texts)}" for word, texts in all_lacking(hierarchy, marker).items()}
    if ends := unasked(hierarchy, marker) if marker else []:  # also beside what lacks, since the same repair ends it
        verb = "is" if len(ends) == 1 else "are"
        found[UNASKED] = f"{', '.join(ends)} {verb} unique, which its class does not ask for"
    return found


def worded_problems(problems: Mapping[str, str]) -> str:
    """The problem of a marker by some of its `marker_problems`."""
    lacks = [text for word, text in problems.items() if word != UNASKED]
    parts = [*lacks, "what needs them is an error until clade repair has written them"] if lacks else []
    return "; ".join([*parts, *([f"{problems[UNASKED]}; clade repair ends that"] if UNASKED in problems else [])])
