"""Check of search items: every node has all of its search items, and there are no others.

Nodes are read a page at a time with their items. Others may write meanwhile: a page is read again where the version of
its tree has changed, and an item that seems to be of no node is only reported where the node and the record of its id
are the same after the item was read as before. Of a node whose ancestors were renamed or moved the items may have
another key, lineage and depth than now, as long as what search has of the moves leads from them to the present ones.
The items of a node that cannot be read, which the check of nodes finds, stay as they are until it can be.

Items are right if they are made as the marker says, which may name more than a class searches: another version of the
class, which other servers have, may search that.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple, cast

from store.checking.findings import Finding, Fix, path_text
from store.checking.trees_and_ids import number_of
from store.engine import ReadUsage, Store
from store.errors import DamagedItem, quantity, shorten
from store.kinds.items import located, moved_keys, node_items
from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import STEP, MovedNode, Moves, id_hash, moved_id, moved_nodes
from store.kinds.marker import Marker, Recipes, all_lacking, marker_key
from store.kinds.registry import KINDS, is_asked
from store.metadata.history import id_record_key
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS, Key, ancestor_keys, depth_of, id_key, subtree, tree_version_key
from store.model.records import Change, Check, Item, Put, Record, key_of
from store.reading import Pages, registered_moves

PAGE_NODES = 200  # some thousand items at most
ATTEMPTS = 10  # to read a page while nobody writes to its tree


class NodesPage(NamedTuple):
    """Nodes of one tree in key order, with all items at the keys of their search items, as of a tree version and of a
    `marker`.

    `moves` is None where all items have the present lineage; `last` is the sort key after which the tree continues,
    None at its end.
    """

    marker: Marker
    version: Item | None
    nodes: list[Located]
    stored: dict[Key, Item | None]
    moves: Moves | None
    last: str | None


class Strays(NamedTuple):
    """Items that no node has: the finding on them, their keys, and what was read elsewhere that shows it."""

    finding: Finding
    keys: Sequence[Key]
    checks: Sequence[Check] = ()


class SearchCheck:
    """Checks the search items of one hierarchy; without a marker that there are none.

    `marker` is the one that was read last, None where there is none or it is damaged.
    """

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self.store = store
        self.hierarchy = hierarchy
        self.is_asked = is_asked(hierarchy)
        self.marker: Marker | None = None
        self._key = marker_key(hierarchy.name)
        self._reads = reads

    async def check_marker(self, *, has_nodes: bool) -> Finding | None:
        """The finding on the marker, which a repair of all items fixes; of another class without search, it has none.

        `has_nodes` is whether nodes were seen.
        """
        name, outcome = self.hierarchy.name, "nothing is searched until clade repair has written them"
        item, roots = await self._get([self._key, tree_version_key(name)])
        try:
            marker = self._note(item)
        except DamagedItem as error:
            return Finding(name, "", f"the marker of the search items is damaged, {error.problem}; {outcome}")
        if not self.is_asked:
            problem = (
                "its class has no search= and no location=, but search items are stored; clade repair removes them"
            )
            problem += ", which ends the searches of servers with another version of the class"
            return None if marker is None else Finding(name, "", problem)
        if marker is None:
            problem = "the items of search are not complete, since its class had no search= when nodes were written"
            return Finding(name, "", f"{problem}; {outcome}") if has_nodes or number_of(roots) else None
        if lacks := all_lacking(self.hierarchy, marker):
            problem = f"search items are missing: {', '.join(lacks)}"
            return Finding(name, "", f"{problem}; what needs them is an error until clade repair has written them")
        if any(part.making is not None for part in marker.parts.values()):
            problem = "a repair that writes search items for another version of its class has not ended"
            return Finding(name, "", f"{problem}; clade repair ends it")
        return None

    def _note(self, item: Item | None) -> Marker | None:
        """Take an item for the present marker. Raises DamagedItem."""
        self.marker = None
        self.marker = Marker.of(self.hierarchy.name, item)
        return self.marker

    async def read_marker(self) -> Marker | None:
        """The present marker. Raises DamagedItem."""
        return self._note(*await self._get([self._key]))

    @property
    def recipes(self) -> Recipes:
        """What the items are made of, by the last marker."""
        return {} if self.marker is None else self.marker.recipes

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def tree(self, pk: str) -> AsyncIterator[Finding]:
        """The findings on the items of all nodes of a tree."""
        after: str | None = ""
        while after is not None:
            page = await self.page(pk, after)
            if page is None:
                text = "the search items were not checked, since a move is damaged or other writes did not stop"
                yield Finding(self.hierarchy.name, path_text(pk, "#"), f"{text}; check again later")
                return
            for node in page.nodes:
                if problem := self.problem(page, node):
                    yield self.finding(node.record.key, problem)
            after = page.last

    async def page(self, pk: str, after: str) -> NodesPage | None:
        """The nodes of a tree after a sort key, None where a move is damaged or other writes to it do not stop."""
        keys = [tree_version_key(pk), self._key]
        for _ in range(ATTEMPTS):
            read = version, item = await self._get(keys)
            try:
                marker = self._note(item)
                page = None if marker is None else await self._read_page(pk, after, version, marker)
            except DamagedItem:  # of a running move, which the check of the tree reports, or the marker
                return None
            if [*read] == await self._get(keys):
                return page
        return None

    async def _read_page(self, pk: str, after: str, version: Item | None, marker: Marker) -> NodesPage:
        running = await registered_moves(self.store, pk, version, self._reads)
        pages = Pages(self.store, subtree(pk, "#").after(after), self._reads, limit=PAGE_NODES)
        items = await pages.next()
        records = _records(running.visible(items))
        keys = ancestor_keys(records[0].key) if records else []
        above = _records([one for one in await self._get(keys) if one is not None])
        nodes = [node for node in located(above, records) if _is_readable(node.record)]
        wanted = {key_of(item): item for node in nodes for item in node_items(marker.recipes, node)}
        stored = dict(zip(wanted, await self._get([*wanted]), strict=True))
        is_present = all(item and item.get("line") == wanted[key].get("line") for key, item in stored.items())
        moves = None if is_present else await self.moves()
        return NodesPage(marker, version, nodes, stored, moves, cast(str, items[-1]["sk"]) if pages.has_next else None)

    def changes(self, page: NodesPage, node: Located) -> list[Change]:
        """The changes that write the items of a node as they are made now, also where they are only outdated."""
        items = node_items(page.marker.recipes, node)
        return [Put(item) for item in items if page.stored[key_of(item)] != item]

    def problem(self, page: NodesPage, node: Located) -> str | None:
        """The problem of the items of a node, None where they are right, though perhaps outdated."""
        missing = wrong = 0
        for name, recipe in page.marker.recipes.items():
            if node.record.level not in recipe.levels:
                return f"what the search items of its level, {node.record.level}, are made of is not known"
            for item in KINDS[name].items(recipe, node):
                found = page.stored[key_of(item)]
                missing += found is None
                wrong += found is not None and found != item and not _is_outdated(KINDS[name], found, item, page.moves)
        problems = [f"{quantity(missing, 'search item')} missing"] if missing else []
        problems += [f"{quantity(wrong, 'search item')} not as the node is"] if wrong else []
        return " and ".join(problems) or None

    # -- items of no node ----------------------------------------------------------------------------------------------

    async def strays(self, items: Sequence[Item]) -> list[Strays]:
        """The findings on word and cell items of a page of the table that no node has."""
        of_node: dict[str, list[Key]] = {}
        for item in items:
            owner = next(filter(None, (kind.owner(item) for kind in KINDS.values())), "")
            if owner.startswith(f"{self.hierarchy.name}:"):
                of_node.setdefault(owner, []).append(key_of(item))
        if not (recipes := self.recipes):
            keys = [key for keys in of_node.values() for key in keys if not self.is_asked]
            problem = f"{quantity(len(keys), 'search item')}, but its class has no search="
            return [Strays(Finding(self.hierarchy.name, "", problem), keys)] if keys else []
        before = await self._nodes(recipes, list(of_node))
        suspects = {
            one: others
            for one, keys in of_node.items()
            if (others := [key for key in keys if key not in before[one].keys])
        }
        wanted = [key for keys in suspects.values() for key in keys]
        remaining = {key for key, item in zip(wanted, await self._get(wanted), strict=True) if item is not None}
        again = await self._nodes(recipes, list(suspects))
        present, marker = self.marker, await self.read_marker() if suspects else self.marker
        if marker != present:  # so others may be right
            return []
        return [
            self._stray(node_id, again[node_id], rest)
            for node_id, keys in suspects.items()
            if again[node_id] == before[node_id]
            and not again[node_id].is_unclear
            and (rest := [key for key in keys if key in remaining])
        ]

    def _stray(self, node_id: str, node: "_Node", keys: Sequence[Key]) -> Strays:
        text = quantity(len(keys), "search item")
        record = Check(id_key(node_id), {name: (node.record or {}).get(name) for name in ("tree", "key", "deleted")})
        marker = [Check(self._key, self.marker.when)] if self.marker is not None else []
        if node.item is None:
            problem = f"{text} of the node {shorten(node_id)}, which does not exist"
            return Strays(Finding(self.hierarchy.name, "", problem), keys, [record, *marker])
        key = key_of(node.item)
        same = Check(key, {"id": node_id, "revision": node.item.get("revision")})
        return Strays(
            self.finding(key, f"{text} of words or a place that it does not have"), keys, [record, same, *marker]
        )

    async def _nodes(self, recipes: Recipes, ids: Sequence[str]) -> dict[str, "_Node"]:
        """The nodes of these ids, with their id records and the keys of their items."""
        records = await self._get([id_key(node_id) for node_id in ids])
        places = [_place(record) or Key("", "") for record in records]
        trees = [key for place in places if place.pk for key in (Key(place.pk, "#"), tree_version_key(place.pk))]
        wanted = [*trees, *[place for place in places if place.pk]]
        found = dict(zip(wanted, await self._get(wanted), strict=True))
        nodes = {}
        for node_id, record, place in zip(ids, records, places, strict=True):
            item = found.get(place)
            moving = bool(place.pk) and _is_moving(found[tree_version_key(place.pk)])
            if item is None or item.get("id") != node_id:
                nodes[node_id] = _Node(record, None, moving, set())
                continue
            above = _records([root] if (root := found[Key(place.pk, "#")]) is not None and place.sk != "#" else [])
            (own,) = _records([item])
            items = node_items(recipes, Located.below(above, own)) if _is_readable(own) else []
            nodes[node_id] = _Node(record, item, moving or not _is_readable(own), set(map(key_of, items)))
        return nodes

    # -- moved nodes ---------------------------------------------------------------------------------------------------

    async def moves(self) -> Moves:
        """All moved nodes of the hierarchy whose items are not damaged."""
        moved: list[MovedNode] = []
        async for page in Pages(self.store, moved_nodes(self.hierarchy.name), self._reads):
            moved += [MovedNode.of(item) for item in page if _is_moved_node(item)]
        return Moves(moved)

    async def moved(self) -> AsyncIterator[Finding]:
        """The findings on the items of moved nodes."""
        async for page in Pages(self.store, moved_nodes(self.hierarchy.name), self._reads):
            for item in page:
                for _ in range(ATTEMPTS):
                    found = await self._moved(item)
                    (again,) = await self._get([key_of(item)])
                    if again == item or again is None:
                        break
                    item = again
                if found is not None and again == item:
                    yield found

    async def _moved(self, item: Item) -> Finding | None:
        """The finding on one item of a moved node, whose lineage may only be outdated by moves of its ancestors."""
        node_id, name = moved_id(item), self.hierarchy.name
        found = {attribute: item.get(attribute) for attribute in ("line", "deepest")}
        (record,) = await self._get([id_key(node_id)])
        place = _place(record)
        if place is None or not self.recipes:
            if self.is_asked and not self.recipes:
                return None  # found by the check of the marker
            problem = "which does not exist" if place is None else "but its class has no search="
            fix = Fix(key_of(item), None, found)
            return Finding(name, "", f"search has a move of {shorten(node_id)}, {problem}", fix)
        (version,) = await self._get([tree_version_key(place.pk)])
        above = _records([one for one in await self._get([*ancestor_keys(place), place]) if one is not None])
        moves = await self.moves()
        if await self._get([tree_version_key(place.pk)]) != [version] or _is_moving(version):
            return None
        if len(above) != depth_of(place.sk) + 1 or above[-1].id != node_id:
            return None  # found by the check of nodes and ids
        line = Located.below(above[:-1], above[-1]).line
        same = Check(id_key(node_id), {"tree": place.pk, "key": place.sk})
        if key_of(item) not in moved_keys(self.recipes, node_id, id_hash(above[0].id)):
            return self.finding(place, "search has its move in another tree", Fix(key_of(item), None, found, (same,)))
        if _is_moved_node(item) and moves.present(cast(str, item["line"])) == line:
            return None
        fix = Fix.of(key_of(item), item, {"line": line, "deepest": MAX_SEGMENTS - 1}, same)
        return self.finding(place, "what search has of its move is wrong", fix)

    # -- both ----------------------------------------------------------------------------------------------------------

    def finding(self, key: Key, problem: str, fix: Fix | None = None) -> Finding:
        """A finding on a node."""
        return Finding(self.hierarchy.name, path_text(*key), problem, fix)

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self.store.get(keys, self._reads, strong=True)


class _Node(NamedTuple):
    """The node of an id: its id record, its item, and the keys of its search items.

    `is_unclear` is whether these may be others, since a move runs in its tree, or the node cannot be read.
    """

    record: Item | None
    item: Item | None
    is_unclear: bool
    keys: set[Key]


def _records(items: Iterable[Item]) -> list[Record]:
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


def _is_readable(record: Record) -> bool:
    return record.level != ""


def _is_outdated(kind: NodeKind, found: Item, item: Item, moves: Moves | None) -> bool:
    """Whether an item is right but for what moves of its node's ancestors leave as it was."""
    with contextlib.suppress(DamagedItem):
        return kind.is_outdated(found, item, moves)
    return False


def _is_moved_node(item: Item) -> bool:
    """Whether the item of a moved node has valid attributes."""
    with contextlib.suppress(DamagedItem):
        found = MovedNode.of(item)
        return found.line[-STEP:] == id_hash(found.id)
    return False


def _place(record: Item | None) -> Key | None:
    """The node's key in an id record; None without one, for a tombstone and where it is damaged."""
    return None if record is None or "deleted" in record else id_record_key(record)


def _is_moving(version: Item | None) -> bool:
    """Whether a tree version lists a move; one that is damaged may."""
    return version is not None and bool(version.get("moves"))
