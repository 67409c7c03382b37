"""Check of derived items: every node has all items that follow from it by the kinds, and there are no others.

Nodes are read a page at a time with their items. Others may write meanwhile: a page is read again where the version of
its tree has changed, and an item that seems to be of no node is only reported where the node and the record of its id
are the same after the item was read as before. Of a node whose ancestors were renamed or moved the items may have
another key, lineage and depth than now, as long as what search has of the moves leads from them to the present ones.
The items of a node that cannot be read, which the check of nodes finds, stay as they are until it can be.

In a scan each item is a fact, stated by its node and by itself. A scan finds the nodes of a tree in the order of their
keys, so that the ancestors on whose ids items depend have just been seen; in any other order they are read.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from store.checking.findings import Finding, Fix, path_text
from store.checking.suspects import Statements
from store.checking.trees import number_of
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadData
from store.kinds.kinds import checked_kinds
from store.kinds.node_kind import Located, NodeKind, NodeKinds
from store.kinds.search import is_indexed, searched_tree
from store.metadata.history import current_key
from store.metadata.tree_version import decode_moves
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.items import Check, Item, key_of
from store.model.keys import MAX_SEGMENTS, Key, ancestor_keys, depth_of, id_key, parent_sort_key, tree_version_key
from store.model.ranges import subtree
from store.model.records import Record
from store.reading.active_moves import active_moves
from store.reading.pages import Pages
from store.search.lineage import STEP, Lineage, MovedNode, Moves, id_hash, moved_id, moved_key, moved_nodes
from store.search.word_items import is_by_tree
from store.text import quantity, shorten

MAX_LINES = 50_000  # of nodes with children, of some 300 bytes each
PAGE_NODES = 200  # some thousand items at most
ATTEMPTS = 10  # to read a page while nobody writes to its tree
KEYS = ("pk", "sk")


class DerivedFacts:
    """States the facts of the nodes of one hierarchy by some `kinds`; with `exactly`, items that are outdated by moves
    do not match.

    `moved` are the moved nodes, by the keys of their items, whose lineages were not yet seen to lead to their nodes.
    """

    def __init__(
        self,
        store: Store,
        hierarchy: Hierarchy,
        kinds: NodeKinds,
        reads: ReadUsage,
        moved: Mapping[Key, MovedNode],
        *,
        exactly: bool,
    ) -> None:
        self._kinds = kinds
        self.moved = dict(moved)
        self._moves = Moves(moved.values())
        self._by_tree = is_by_tree(hierarchy)
        self._item_moves = None if exactly else self._moves
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads
        self._lines: dict[Key, Lineage] = {}  # of nodes with children

    async def prepare(self, nodes: Sequence[Item]) -> None:
        """Find the lineages of the nodes of a page; reads the ancestors that were not seen."""
        if not self._kinds.by_ancestors:
            return
        if len(self._lines) > MAX_LINES:
            self._lines.clear()
        unknown = [item for item in nodes if not self._see(item)]
        keys = [key_of(item) for item in unknown]
        above = dict.fromkeys([one for key in keys for one in ancestor_keys(key) if one not in self._lines])
        for key, item in zip(above, await self._store.get(list(above), self._reads, strong=True), strict=True):
            self._lines[key] = self._line_above(key) + ("" if item is None else _hash(item))
        for item in unknown:
            self._see(item)

    def state(self, item: Item, statements: Statements) -> None:
        """State the facts of a node that was prepared."""
        record = readable(item)
        if record is None:
            return
        key = record.key
        line = self._line_above(key) + _hash(item) if self._kinds.by_ancestors else ""
        place = moved_key(self._hierarchy.name, record.id, line[:STEP] if self._by_tree else "")
        if (former := self.moved.get(place)) is not None and self._moves.present(former.line) == line:
            del self.moved[place]
        for kind in self._kinds:
            for fact in kind.facts(kind.items(Located(record, line)), self._item_moves):
                statements.state(f"s{fact}", 1, key)

    def state_item(self, kind: NodeKind, item: Item, statements: Statements) -> None:
        """State the fact of an item."""
        for fact in kind.facts([item], self._item_moves):
            statements.state(f"s{fact}", -1, key_of(item))

    def _see(self, item: Item) -> bool:
        """Keep the lineage of a node that may have children; False where that of its parent is not known."""
        key = key_of(item)
        if key.sk != "#" and Key(key.pk, parent_sort_key(key.sk)) not in self._lines:
            return False
        if item.get("kids") != {}:
            self._lines[key] = self._line_above(key) + _hash(item)
        return True

    def _line_above(self, key: Key) -> Lineage:
        return self._lines[Key(key.pk, parent_sort_key(key.sk))] if key.sk != "#" else ""


def readable(item: Item) -> Record | None:
    """The record of a node, None where it cannot be read."""
    if isinstance(item.get("id"), str) and isinstance(item.get("name"), str) and isinstance(item.get("level"), str):
        with contextlib.suppress(BadData):
            return Record.of(item)
    return None


def _hash(node: Item) -> Lineage:
    """The step of a node in lineages; one without an id has none."""
    return id_hash(cast(str, node["id"])) if isinstance(node.get("id"), str) else ""


class DerivedNode(NamedTuple):
    """A node, and the items that follow from it, each with its kind."""

    record: Record
    items: list[tuple[NodeKind, Item]]


class NodesPage(NamedTuple):
    """Nodes of one tree in key order, with what is stored at the keys of their items, as of a tree version.

    `moves` are those that some of the items may be outdated by; `last` is the sort key after which the tree continues,
    None at its end.
    """

    version: Item | None
    nodes: list[DerivedNode]
    stored: dict[Key, Item | None]
    moves: Moves
    last: str | None


class Strays(NamedTuple):
    """Items that no node has: the finding on them, their keys, and what was read elsewhere that shows it."""

    finding: Finding
    keys: Sequence[Key]
    checks: Sequence[Check] = ()


class DerivedCheck:
    """Checks the items of one hierarchy; of kinds that do not apply to it that there are none."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self.store = store
        self.hierarchy = hierarchy
        self._all = checked_kinds(hierarchy)
        self._kinds = [kind for kind in self._all if kind.applies]
        self._reads = reads

    async def markers(self, *, has_nodes: bool = True, only_applying: bool = False) -> list[Finding]:
        """The findings on the markers, which are only written with all items; their fixes are the markers."""
        kinds: dict[Key, NodeKind] = {}
        for kind in self._all:
            marker = kind.marker()
            if marker is not None and (kind.applies or not (only_applying or key_of(marker) in kinds)):
                kinds[key_of(marker)] = kind
        found = await self._get([tree_version_key(self.hierarchy.name), *kinds])
        findings = []
        for kind, item in zip(kinds.values(), found[1:], strict=True):
            finding = self._marker(kind, item, is_empty=not has_nodes and not number_of(found[0]))
            findings += [] if finding is None else [finding]
        return findings

    def _marker(self, kind: NodeKind, found: Item | None, *, is_empty: bool) -> Finding | None:
        marker, (missing, outdated, unwanted) = cast(Item, kind.marker()), kind.unmarked
        if not kind.applies:
            fix = Fix(key_of(marker), None, {name: value for name, value in (found or {}).items() if name not in KEYS})
            return None if found is None else Finding(self.hierarchy.name, "", unwanted, fix)
        if found == marker or (found is None and is_empty):
            return None
        values: dict[str, Value] = {**dict.fromkeys(found or (), None), **marker}
        problem = missing if found is None else outdated
        return Finding(self.hierarchy.name, "", problem, Fix.of(key_of(marker), found, values))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def nodes(self, pk: str, sort_keys: Collection[str]) -> AsyncIterator[Finding]:
        """The findings on the items of some nodes of a tree."""
        keys = sorted(sort_keys)
        for start in range(0, len(keys), PAGE_NODES):
            page = await self.page(pk, keys[start : start + PAGE_NODES])
            if page is None:
                text = "what follows from nodes was not checked, since other writes to the tree did not stop"
                yield Finding(self.hierarchy.name, path_text(pk, "#"), f"{text}; check again later")
                return
            for node in page.nodes:
                if problem := problem_of(page, node):
                    yield self.finding(node.record.key, problem)

    async def page(self, pk: str, nodes: str | Sequence[str]) -> NodesPage | None:
        """The nodes of a tree after a sort key, or at some; None where other writes to it do not stop."""
        for _ in range(ATTEMPTS):
            (version,) = await self._get([tree_version_key(pk)])
            page = await self._read_page(pk, nodes, version)
            if await self._get([tree_version_key(pk)]) == [version]:
                return page
        return None

    async def _read_page(self, pk: str, nodes: str | Sequence[str], version: Item | None) -> NodesPage:
        running, last = await active_moves(self.store, decode_moves(version), self._reads), None
        if isinstance(nodes, str):
            pages = Pages(self.store, subtree(pk, "#").after(nodes), self._reads, limit=PAGE_NODES)
            items = await pages.next()
            last = cast(str, items[-1]["sk"]) if pages.has_next else None
        else:
            items = [item for item in await self._get([Key(pk, sk) for sk in nodes]) if item is not None]
        records = _records(running.visible(items))
        keys = list(dict.fromkeys([above for record in records for above in ancestor_keys(record.key)]))
        above = {key: item for key, item in zip(keys, await self._get(keys), strict=True) if item is not None}
        found = [
            Located.below(_records([above[key] for key in ancestor_keys(record.key) if key in above]), record)
            for record in records
            if _is_readable(record)
        ]
        derived = [
            DerivedNode(node.record, [(kind, item) for kind in self._kinds for item in kind.items(node)])
            for node in found
        ]
        wanted = {key_of(item): item for node in derived for _, item in node.items}
        stored = dict(zip(wanted, await self._get(list(wanted)), strict=True))
        moves = Moves([]) if stored == wanted else await self.moves()
        return NodesPage(version, derived, stored, moves, last)

    # -- items of no node ----------------------------------------------------------------------------------------------

    async def strays(self, items: Sequence[Item]) -> list[Strays]:
        """The findings on items of a page of the table that no node has."""
        kinds = {first: kind for kind in self._all for first in kind.partitions}
        of_node: dict[str, list[tuple[NodeKind, Key]]] = {}
        unwanted: dict[tuple[str, str], list[Key]] = {}
        for item in items:
            kind = kinds.get(cast(str, item["pk"]).partition("#")[0])
            if kind is not None and kind.applies:
                of_node.setdefault(kind.owner(item), []).append((kind, key_of(item)))
            elif kind is not None:
                unwanted.setdefault((kind.noun, kind.unwanted), []).append(key_of(item))
        before = await self._nodes(list(of_node))
        suspects = {
            one: others
            for one, found in of_node.items()
            if (others := [(kind, key) for kind, key in found if key not in before[one].keys])
        }
        wanted = [key for others in suspects.values() for _, key in others]
        remaining = {key for key, item in zip(wanted, await self._get(wanted), strict=True) if item is not None}
        again = await self._nodes(list(suspects))
        return [
            Strays(Finding(self.hierarchy.name, "", unwanted_items(len(keys), noun, reason)), keys)
            for (noun, reason), keys in unwanted.items()
        ] + [
            self._stray(node_id, again[node_id], kind, rest)
            for node_id, others in suspects.items()
            if again[node_id] == before[node_id] and not again[node_id].is_unclear
            for noun, kind in {kind.noun: kind for kind, _ in others}.items()
            if (rest := [key for one, key in others if one.noun == noun and key in remaining])
        ]

    def _stray(self, node_id: str, node: "_Node", kind: NodeKind, keys: Sequence[Key]) -> Strays:
        text = quantity(len(keys), kind.noun)
        record = Check(id_key(node_id), {name: (node.record or {}).get(name) for name in ("tree", "key", "deleted")})
        if node.item is None:
            problem = f"{text} of the node {shorten(node_id)}, which does not exist"
            return Strays(Finding(self.hierarchy.name, "", problem), keys, [record])
        key = key_of(node.item)
        same = Check(key, {"id": node_id, "revision": node.item.get("revision")})
        return Strays(self.finding(key, f"{text} {kind.stray}"), keys, [record, same])

    async def _nodes(self, ids: Sequence[str]) -> dict[str, "_Node"]:
        """The nodes of these ids, with their id records and the keys of their items."""
        records = await self._get([id_key(node_id) for node_id in ids])
        places = [current_key(record) or Key("", "") for record in records]
        trees = [key for place in places if place.pk for key in (Key(place.pk, "#"), tree_version_key(place.pk))]
        wanted = [*trees, *[place for place in places if place.pk]]
        found = dict(zip(wanted, await self._get(wanted), strict=True))
        nodes = {}
        for node_id, record, place in zip(ids, records, places, strict=True):
            item = found.get(place)
            if item is None or item.get("id") != node_id:
                moving = bool(place.pk) and bool(decode_moves(found[tree_version_key(place.pk)]))
                nodes[node_id] = _Node(record, None, moving, set())
                continue
            above = _records([root] if (root := found[Key(place.pk, "#")]) is not None and place.sk != "#" else [])
            (own,) = _records([item])
            node = Located.below(above, own)
            keys = {key_of(item) for kind in self._kinds for item in kind.items(node)} if _is_readable(own) else set()
            moving = bool(decode_moves(found[tree_version_key(place.pk)]))
            nodes[node_id] = _Node(record, item, moving or not _is_readable(own), keys)
        return nodes

    # -- moved nodes ---------------------------------------------------------------------------------------------------

    async def moves(self) -> Moves:
        """All moved nodes of the hierarchy whose items are not damaged."""
        moved: list[MovedNode] = []
        async for page in Pages(self.store, moved_nodes(self.hierarchy.name), self._reads):
            moved += [MovedNode.of(item) for item in page if is_moved_node(item)]
        return Moves(moved)

    async def moved(self, key: Key) -> Finding | None:
        """The finding on the item of a moved node, None where it is right, or where others write it."""
        (item,) = await self._get([key])
        found = await self._moved(item) if item is not None else None
        return found if found is not None and await self._get([key]) == [item] else None

    async def _moved(self, item: Item) -> Finding | None:
        """The finding on one item of a moved node, whose lineage may only be outdated by moves of its ancestors."""
        node_id, name = moved_id(item), self.hierarchy.name
        (record,) = await self._get([id_key(node_id)])
        place = current_key(record)
        if place is None or not is_indexed(self.hierarchy):
            problem = "which does not exist" if is_indexed(self.hierarchy) else "but its class has no search="
            fix = Fix(key_of(item), None, {attribute: item.get(attribute) for attribute in ("line", "deepest")})
            return Finding(name, "", f"search has a move of {shorten(node_id)}, {problem}", fix)
        (version,) = await self._get([tree_version_key(place.pk)])
        above = _records([one for one in await self._get([*ancestor_keys(place), place]) if one is not None])
        moves = await self.moves()
        if await self._get([tree_version_key(place.pk)]) != [version] or decode_moves(version):
            return None
        if len(above) != depth_of(place.sk) + 1 or above[-1].id != node_id:
            return None  # found by the check of nodes and ids
        line = Located.below(above[:-1], above[-1]).line
        if key_of(item) != moved_key(name, node_id, searched_tree(self.hierarchy, above[0].id)):
            fix = Fix(key_of(item), None, {"line": item.get("line")})
            return self.finding(place, "search has its move in another tree", fix)
        if is_moved_node(item) and moves.present(cast(str, item["line"])) == line:
            return None
        same = Check(id_key(node_id), {"tree": place.pk, "key": place.sk})
        fix = Fix.of(key_of(item), item, {"line": line, "deepest": MAX_SEGMENTS - 1}, same)
        return self.finding(place, "what search has of its move is wrong", fix)

    # -- both ----------------------------------------------------------------------------------------------------------

    def finding(self, key: Key, problem: str, fix: Fix | None = None) -> Finding:
        """A finding on a node."""
        return Finding(self.hierarchy.name, path_text(*key), problem, fix)

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self.store.get(keys, self._reads, strong=True)


class _Node(NamedTuple):
    """The node of an id: its id record, its item, and the keys of what follows from it.

    `is_unclear` is whether these may be others, since a move runs in its tree, or the node cannot be read.
    """

    record: Item | None
    item: Item | None
    is_unclear: bool
    keys: set[Key]


def problem_of(page: NodesPage, node: DerivedNode) -> str | None:
    """The problem of the items of a node, None where they are right, though perhaps outdated."""
    missing, wrong = Counter[str](), Counter[str]()
    for kind, item in node.items:
        found = page.stored[key_of(item)]
        missing[kind.noun] += found is None
        wrong[kind.noun] += (
            found is not None
            and found != item
            and list(kind.facts([found], page.moves)) != list(kind.facts([item], page.moves))
        )
    problems = [f"{quantity(number, noun)} missing" for noun, number in missing.items() if number]
    problems += [f"{quantity(number, noun)} not as the node is" for noun, number in wrong.items() if number]
    return " and ".join(problems) or None


def unwanted_items(number: int, noun: str, reason: str) -> str:
    """The problem of so many items of a kind that does not apply."""
    return f"{quantity(number, noun)}, {reason}"


def _records(items: Iterable[Item]) -> list[Record]:
    """The records of nodes; of those that cannot be read, which the check of nodes finds, only keys and ids."""
    return [readable(item) or _unreadable(item) for item in items if isinstance(item.get("id"), str)]


def _unreadable(item: Item) -> Record:
    pk, sk, node_id = [cast(str, item[name]) for name in ("pk", "sk", "id")]
    return Record(
        pk=pk, sk=sk, rank="", id=node_id, level="", name="", above=[], kids={}, below={}, revision=0, updated_at="",
        attributes={},
    )  # fmt: skip


def _is_readable(record: Record) -> bool:
    return record.level != ""


def is_moved_node(item: Item) -> bool:
    """Whether the item of a moved node has valid attributes."""
    line, deepest = item.get("line"), item.get("deepest")
    return (
        isinstance(line, str)
        and line[-STEP:] == id_hash(moved_id(item))
        and len(line) % STEP == 0
        and isinstance(deepest, int)
        and 0 <= deepest < MAX_SEGMENTS
    )
