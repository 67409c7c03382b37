"""Trees: one pass over each tree, which compares its nodes, their ids and the items of all kinds with what follows from
the nodes, and its version with their number.

Others may write meanwhile. Each transaction on a tree increments its version, so all that is read between two equal
versions is consistent. Counts and positions need all nodes as of one version: where that has changed, the tree is read
again from its beginning. Items of kinds need only the nodes of their page, so what was found about those that were
compared before stays.

Of a node whose ancestors were renamed or moved the items may have another key, lineage and depth than now, as long as
the moves lead from them to the present ones. Items are right if they are made as the marker says, which may name more
than a class asks for: another version of the class, which other servers have, may ask for that. The items of a node
that cannot be read stay as they are until it can be.

Of kinds with conditions a node may need an item that another one has, wherever that is. While the version of a tree
stays, so do the items of its nodes, and nobody takes one: if the other node is found to need it, too, both do.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from store.checking.findings import Finding, Findings, path_text
from store.checking.nodes import IdState, NodeChecks
from store.checking.sums import ATTEMPTS, MOVE_DAMAGED, OTHER_WRITES, Sums, TreeReport
from store.engine import ReadUsage, Store
from store.errors import DamagedItem, quantity
from store.kinds.conditional import Taken, Waiting, conditional_changes
from store.kinds.items import located, removed
from store.kinds.kind import NodeKind
from store.kinds.lineage import MovedNode, Moves, moved_nodes
from store.kinds.marker import Marker, Recipes, marker_key
from store.kinds.registry import KINDS
from store.metadata.history import id_record_key, revisions
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys, id_key, revision_key, subtree, tree_version_key
from store.model.records import ABSENT, Change, Check, Item, Record, is_id, is_revision, key_of
from store.reading import ActiveMoves, Pages, registered_moves, stored_items

WAY_OUT = "change one of both, then run clade repair"
PAGE_NODES = 200  # with their items, some thousand at most
MAX_READ_REVISIONS = 100  # of a node; more are counted in a request of their own


class Tree(NamedTuple):
    """The version of a tree with its running moves, and the marker of its hierarchy, which is None where it is damaged.

    What the moves hide is not checked: nobody sees it, and only they write to it.
    """

    pk: str
    moves: ActiveMoves
    marker: Marker | None
    read: list[Item | None]

    @property
    def version(self) -> Item | None:
        return self.read[0]

    @property
    def checks(self) -> list[Check]:
        """What a transaction has to require that follows from what was read."""
        when = ABSENT if self.version is None else {"n": self.version.get("n")}
        marker = [Check(marker_key(self.marker.hierarchy), self.marker.when)] if self.marker else []
        return [Check(tree_version_key(self.pk), when), *marker]


class NodeItems(NamedTuple):
    """A node that can be read, with all items that it has to have, and their kinds."""

    record: Record
    items: list[tuple[NodeKind, Item]]


class NodesPage(NamedTuple):
    """Nodes of one tree in key order; those that can be read as `nodes`, with all that is `stored` at the keys of their
    items.

    `moved` is None where all these have the present lineage; `last` is the sort key after which the tree continues,
    None at its end. Of kinds with conditions `puts` are the changes that write items which no other node has; `others`
    are the findings on those that one has, by the sort keys of the nodes that need them and their own keys.
    """

    visible: Sequence[Item]
    nodes: list[NodeItems]
    stored: dict[Key, Item | None]
    moved: Moves | None
    last: str | None
    puts: Mapping[Key, Change] = {}
    others: Mapping[tuple[str, Key], Finding] = {}

    def problem(self, hierarchy: Hierarchy, node: NodeItems, recipes: Recipes) -> str | None:
        """The problem of the items of a node, None where they are right, though perhaps outdated, or another's."""
        if any(node.record.level not in recipe.levels for recipe in recipes.values()):
            return f"what the items of its level, {node.record.level}, are made of is not known"
        counts, problems = Counter[str](), list[str]()
        for kind, item in node.items:
            found, is_others = self.stored[key_of(item)], (node.record.sk, key_of(item)) in self.others
            problem = "missing" if found is None else "not as the node is"
            if is_others or (found and (found == item or _is_outdated(kind, found, item, self.moved))):
                continue
            if kind.has_conditions:
                problems.append(f"the item of its {kind.label(hierarchy, node.record, item)} is {problem}")
            else:
                counts[problem] += 1
        problems = [f"{quantity(counts[one], 'search item')} {one}" for one in sorted(counts)] + problems
        return " and ".join(problems) or None


class TreeReader:
    """Reads the trees of one hierarchy page by page."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self.hierarchy = hierarchy
        self.store = store
        self.reads = reads

    async def tree(self, pk: str) -> Tree:
        """The tree as it is now. Raises DamagedItem for a running move."""
        read = version, item = await self.get([tree_version_key(pk), marker_key(self.hierarchy.name)])
        return Tree(
            pk, await registered_moves(self.store, pk, version, self.reads), marker_in(self.hierarchy, item), [*read]
        )

    async def is_unchanged(self, tree: Tree) -> bool:
        """Whether no other write to the tree or the marker came since it was read."""
        return await self.get([tree_version_key(tree.pk), marker_key(self.hierarchy.name)]) == tree.read

    async def page(self, tree: Tree, after: str, *, of_kinds: bool = True) -> NodesPage:
        """The nodes of a tree after a sort key; with their items, if those `of_kinds` are asked for."""
        marker = tree.marker if of_kinds else None
        limit = None if marker is None else PAGE_NODES
        pages = Pages(self.store, subtree(tree.pk, "#").after(after), self.reads, limit=limit)
        found = await pages.next()
        page = NodesPage(
            tree.moves.visible(found), [], {}, None, cast(str, found[-1]["sk"]) if pages.has_next else None
        )
        if marker is None or not (records := records_of(page.visible)):
            return page
        above = records_of([one for one in await self.get(ancestor_keys(records[0].key)) if one is not None])
        kinds = [(KINDS[name], recipe) for name, recipe in marker.recipes.items()]
        nodes = [
            NodeItems(node.record, [(kind, item) for kind, recipe in kinds for item in kind.items(recipe, node)])
            for node in located(above, records)
            if is_readable(node.record)
        ]
        wanted = {key_of(item): item for node in nodes for _, item in node.items}
        stored = dict(zip(wanted, await self.get([*wanted]), strict=True))
        is_present = all(item and item.get("line") == wanted[key].get("line") for key, item in stored.items())
        page = page._replace(nodes=nodes, stored=stored, moved=None if is_present else await self.moved())
        items = [(kind, node.record, item) for node in nodes for kind, item in node.items if kind.has_conditions]
        waiting = [Waiting(kind, record, {}, {key_of(item): item}) for kind, record, item in items]
        puts, taken = conditional_changes(waiting, stored)
        return page._replace(puts=puts, others=await self._others(marker.recipes, taken) if taken else {})

    async def _others(self, recipes: Recipes, taken: Sequence[Taken]) -> dict[tuple[str, Key], Finding]:
        """The findings on items that others have, by the sort keys of their nodes and their own."""
        records = await self.get_by_key([*{id_key(one.holder) for one in taken}])
        places = {one.holder: id_record_key(records[id_key(one.holder)] or {}) for one in taken}
        wanted = {key for place in places.values() if place for key in (place, Key(place.pk, "#"))}
        found, others = await self.get_by_key([*wanted]), dict[tuple[str, Key], Finding]()
        for one in taken:
            kind, node, place, key = one.waiting.kind, one.waiting.record, places[one.holder], key_of(one.item)
            label = kind.label(self.hierarchy, node, one.item)
            problem = f"the item of its {label} is another node's"
            holder, root = (found[place], found[Key(place.pk, "#")]) if place else (None, None)
            if place and root and holder and holder.get("id") == one.holder and is_readable(record := _record(holder)):
                items = kind.items(recipes[kind.name], removed(record, str(root.get("id"))))
                if key in map(key_of, items):
                    problem = f"its {label} is also that of {path_text(*place)}; {WAY_OUT}"
            others[node.sk, key] = Finding(self.hierarchy.name, path_text(*node.key), problem)
        return others

    async def moved(self) -> Moves:
        """All moved nodes of the hierarchy whose items are not damaged."""
        found: list[MovedNode] = []
        async for page in Pages(self.store, moved_nodes(self.hierarchy.name), self.reads):
            for item in page:
                with contextlib.suppress(DamagedItem):
                    found.append(MovedNode.of(item))
        return Moves(found)

    async def missing_revisions(self, last: Mapping[str, int]) -> Counter[str]:
        """The number of missing revisions by id of node, for nodes that must have those from 1 to `last`."""
        missing: Counter[str] = Counter()
        node_ids: dict[Key, str] = {}
        for node_id, number in last.items():
            if number > MAX_READ_REVISIONS:
                missing[node_id] = number - await self.store.count(revisions(node_id, number + 1), self.reads)
            else:
                node_ids.update({revision_key(node_id, revision): node_id for revision in range(1, number + 1)})
        async for key, item in stored_items(self.store, node_ids, self.reads):
            missing[node_ids[key]] += item is None
        return +missing

    async def get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self.store.get(keys, self.reads, strong=True)

    async def get_by_key(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        return dict(zip(keys, await self.get(keys), strict=True))


class TreeCheck:
    """Checks the trees of one hierarchy one after another; `on_nodes` is called with each number of nodes checked."""

    def __init__(self, reader: TreeReader, on_nodes: Callable[[int], None]) -> None:
        self.reader = reader
        self.sums = Sums(reader.store, reader.hierarchy, reader.reads)
        self._hierarchy = reader.hierarchy
        self._on_nodes = on_nodes
        self._root_ranks: dict[str, str] = {}  # of reordered roots

    async def check(self, pk: str, *, of_kinds: bool, is_counted: bool = True) -> TreeReport:
        """The report on a tree, also on its items `of_kinds`; a finding says so where other writes made a consistent
        read impossible.
        """
        items, compared, counted = Findings(), "", 0
        for _ in range(ATTEMPTS):
            try:
                tree = await self.reader.tree(pk)
            except DamagedItem as error:
                return TreeReport.unchecked(pk, f"{MOVE_DAMAGED}: {error.problem}", items)
            checks, seen, after = NodeChecks(self._hierarchy, pk, self._root_ranks), 0, cast(str | None, "")
            recipes, is_complete = (tree.marker.recipes, tree.marker.is_complete) if tree.marker else ({}, False)
            while after is not None:
                page = await self.reader.page(tree, after, of_kinds=of_kinds)
                for item, id_state in zip(page.visible, await self._id_states(page.visible, tree.moves), strict=True):
                    checks.check(item, id_state)
                if not await self.reader.is_unchanged(tree):
                    break
                after, seen = page.last, seen + len(page.visible)
                if is_counted and seen > counted:
                    self._on_nodes(seen - counted)
                    counted = seen
                for finding in [one for (sk, _), one in page.others.items() if sk > compared]:
                    items.add(finding)
                for node in page.nodes if is_complete else ():
                    problem = page.problem(self._hierarchy, node, recipes)
                    if node.record.sk > compared and problem:
                        items.add(Finding(self._hierarchy.name, path_text(*node.record.key), problem))
                compared = max(compared, *[node.record.sk for node in page.nodes[-1:]], "")
            else:
                checks.finish()
                if tree.moves.moves:  # until they have ended, nobody else writes to what may be theirs
                    checks.findings.kept = [replace(finding, fix=None) for finding in checks.findings.kept]
                report = TreeReport(pk, tree.version, checks.findings, items, checks.undefined, dict(checks.shape))
                report.moves = tree.moves
                await self.sums.check(report)
                if await self.reader.is_unchanged(tree):
                    return report
        return TreeReport.unchecked(pk, OTHER_WRITES, items)

    async def _id_states(self, items: Sequence[Item], moves: ActiveMoves) -> list[IdState]:
        """The partitions of the nodes' ids; an id that is not valid is not looked up.

        A record that points to the old place of a moved node is taken for one that points to the new place.
        """
        ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
        records = await self.reader.get_by_key([id_key(node_id) for node_id in ids if node_id])
        if moves.moves:
            records = {key: _as_moved(record, moves) for key, record in records.items()}
        led = {node_id: id_record_key(records[id_key(node_id)] or {}) for node_id in ids if node_id}
        keys = [led.get(node_id) for node_id in ids]
        elsewhere = [key for key, item in zip(keys, items, strict=True) if key and key != key_of(item)]
        others = await self.reader.get_by_key(elsewhere)
        last = {
            node_id: cast(int, item["revision"]) - 1
            for node_id, item in zip(ids, items, strict=True)
            if node_id and is_revision(item.get("revision"))
        }
        missing = await self.reader.missing_revisions(last)
        return [
            IdState(records.get(id_key(node_id)), others.get(key) if key else None, missing.get(node_id, 0))
            for node_id, key in zip(ids, keys, strict=True)
        ]


def _as_moved(record: Item | None, moves: ActiveMoves) -> Item | None:
    """The record of an id as it will be when these moves have ended."""
    key = id_record_key(record or {})
    if record and key and any(move.gone is not None and move.source.holds(key) for move in moves.moves):
        record = {name: value for name, value in record.items() if name != "was"}
    moved = moves.current(key) if key is not None else None
    if moved is None or moved == key:
        return record
    return {**(record or {}), "tree": moved.pk, "key": moved.sk}


def _is_outdated(kind: NodeKind, found: Item, item: Item, moved: Moves | None) -> bool:
    """Whether an item is right but for what moves of its node's ancestors leave as it was."""
    with contextlib.suppress(DamagedItem):
        return kind.is_outdated(found, item, moved)
    return False


def marker_in(hierarchy: Hierarchy, item: Item | None) -> Marker | None:
    """The marker in an item, None where it is damaged."""
    with contextlib.suppress(DamagedItem):
        return Marker.of(hierarchy.name, item)
    return None


def records_of(items: Iterable[Item]) -> list[Record]:
    """The records of nodes; of those that cannot be read, which the check of nodes finds, only keys and ids."""
    return [_record(item) for item in items if isinstance(item.get("id"), str)]


def _record(item: Item) -> Record:
    with contextlib.suppress(DamagedItem):
        return Record.of(item)
    pk, sk, node_id = [cast(str, item[name]) for name in ("pk", "sk", "id")]
    return Record(
        pk=pk, sk=sk, rank="", id=node_id, level="", name="", above=[], kids={}, below={}, revision=0, updated_at="",
        attributes={},
    )  # fmt: skip


def is_readable(record: Record) -> bool:
    return record.level != ""
