"""Invariants of a whole table, checked from all its items by code that is independent of the store's."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from itertools import starmap
from typing import Any

from graph.hierarchies.registry import hierarchies as default_hierarchies
from store.dynamodb import codec
from store.dynamodb.store import DynamoDBStore
from store.engine import Store
from store.kinds.cells import Point
from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import STEP, MovedNode, Moves, id_hash, lineage, moved_id
from store.kinds.marker import Marker, all_lacking
from store.kinds.recipe import Recipe
from store.kinds.registry import KINDS
from store.model.hierarchy import Hierarchy, SearchScope
from store.model.keys import Key
from store.model.records import Item, Record, canonical_item, key_of
from store.sqlite.store import SQLiteStore
from store.sqlite.table import ROW, decode
from tests.search_model import NodeWords


async def all_items(store: Store) -> list[dict[str, Any]]:
    """All items of the table, in no order."""
    if isinstance(store, SQLiteStore):
        rows = store.database.connection().execute(f"SELECT {ROW} FROM items")  # noqa: S608
        return list(starmap(decode, rows))
    assert isinstance(store, DynamoDBStore)
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = await store.client.call("Scan", TableName=store.table, ConsistentRead=True, **start)
        items += [codec.decode(item) for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


async def nodes(store: Store, hierarchy: str) -> dict[str, dict[str, Any]]:
    """The items of all nodes of a hierarchy, by partition and sort key."""
    found = _Table(await all_items(store)).nodes
    return {key: item for key, item in found.items() if item["pk"].startswith(f"{hierarchy}#")}


async def check(store: Store, hierarchies: Mapping[str, Hierarchy] | None = None) -> None:
    """Fail if a count, an id record, a tree version, a log, a parent or a search item is wrong.

    `hierarchies` define what is searched, by default those that are served without settings.
    """
    table = _Table(await all_items(store))
    table.check_nodes()
    table.check_search(hierarchies)
    table.check_counts()
    table.check_ids()
    table.check_stamps()


class _Table:
    def __init__(self, items: list[dict[str, Any]]) -> None:
        items = [item for item in items if item["pk"] != "!"]  # what the table says of itself
        self.nodes = {item["pk"] + item["sk"]: item for item in items if "tier" in item}
        self.ids = {item["pk"]: item for item in items if item["pk"].startswith("id#") and item["sk"] == "v0"}
        self.versions = {(i["pk"], i["sk"]): i for i in items if i["pk"].startswith("id#") and i["sk"] != "v0"}
        self.of_kinds = {name: [item for item in items if kind.owner(item) is not None] for name, kind in KINDS.items()}
        self.words, self.cells = self.of_kinds["words"], self.of_kinds["cells"]
        search = [item for item in items if item["pk"].startswith("kinds/")]
        self.markers = {item["pk"][6:]: item for item in search if item["sk"] == "-"}
        self.running = [item for item in search if item["sk"].startswith("~")]
        self.moved = [item for item in search if item["sk"] != "-" and not item["sk"].startswith("~")]
        self.stamps = {item["pk"]: item for item in items if item["sk"] == "!"}
        self.logs = [item for item in items if item["sk"].startswith("!") and item["sk"] != "!"]
        self.aliases = {(item["pk"], item["sk"]): item for item in items if item["pk"].startswith("alias#")}
        self.layout = [item for item in items if item["pk"] == "!"]
        self.moves = {item["sk"]: item for item in items if item["pk"] == "moves"}
        self.once = [item for item in items if item["pk"].startswith("once#")]
        self.keys = [item for item in items if item["pk"] == "keys"]
        kinds = [
            self.nodes, self.ids, self.versions, self.stamps, self.logs, self.aliases, self.once, self.moves,
            self.layout, self.keys, self.markers, self.moved, self.running, *self.of_kinds.values(),
        ]  # fmt: skip
        assert sum(map(len, kinds)) == len(items), "There are items of no known kind."

    def check_nodes(self) -> None:
        for key, node in self.nodes.items():
            *above, _ = node["sk"][1:].split("#")  # the last one is empty
            depth = len(above)
            hierarchy = node["pk"].split("#")[0]
            parent = node["pk"] + "#" + "".join(f"{segment}#" for segment in above[:-1])
            own = above[-1] if above else node["pk"].split("#")[1]
            assert node["parent"] == (parent if depth else hierarchy), key
            assert node["tier"] == f"{node['pk']}@{node['level']}@{depth}", key
            assert node["rank"].startswith(f"{node['level']}#"), key
            assert node["rank"] == f"{node['level']}#{own}#" or not node["rank"].endswith("#"), key
            assert not depth or parent in self.nodes, f"{key} has no parent"
            lines = [node["pk"] + "#" + "".join(f"{segment}#" for segment in above[:n]) for n in range(depth)]
            assert node["above"] == [self.nodes[line]["level"] for line in lines], key
        places = [(node["parent"], node["rank"]) for node in self.nodes.values()]
        assert len(set(places)) == len(places), "Two siblings have one rank."

    def check_counts(self) -> None:
        kids: dict[str, Counter[str]] = {key: Counter() for key in self.nodes}
        below: dict[str, Counter[str]] = {key: Counter() for key in self.nodes}
        for node in self.nodes.values():
            if node["sk"] != "#":
                kids[node["parent"]][node["level"]] += 1
            for end in [place for place, sign in enumerate(node["sk"][:-1]) if sign == "#"]:
                below[node["pk"] + node["sk"][: end + 1]][node["level"]] += 1
        for key, node in self.nodes.items():
            assert node["kids"] == dict(kids[key]), f"kids of {key}"
            assert node.get("below") == (None if node["sk"] == "#" else dict(below[key])), f"below of {key}"

    def check_ids(self) -> None:
        living = {f"id#{node['id']}": node for node in self.nodes.values()}
        assert len(living) == len(self.nodes), "Two nodes have one id."
        for pk, node in living.items():
            assert {**self.ids[pk]} == {"pk": pk, "sk": "v0", "tree": node["pk"], "key": node["sk"]}, pk
            assert self._revisions(pk) == list(range(1, node["revision"])), pk
        for pk in self.ids.keys() - living.keys():
            assert self.ids[pk]["deleted"], f"{pk} leads nowhere"
            assert self.ids[pk].get("rank") == (self.ids[pk]["key"] if "parent" in self.ids[pk] else None), pk
            assert self._revisions(pk) == list(range(1, self.ids[pk]["revision"] + 1)), pk
        assert {pk for pk, _ in self.versions} <= self.ids.keys()

    def _revisions(self, pk: str) -> list[int]:
        kept = sorted((sk, item["revision"]) for (owner, sk), item in self.versions.items() if owner == pk)
        assert all(sk == f"v{revision:010d}" for sk, revision in kept), pk
        return [revision for _, revision in kept]

    def check_stamps(self) -> None:
        shapes: dict[str, Counter[str]] = {pk: Counter() for pk in self.stamps}
        for node in self.nodes.values():
            shapes[node["pk"]][node["tier"].removeprefix(f"{node['pk']}@")] += 1
            if node["sk"] == "#":
                shapes[node["parent"]][f"{node['level']}@0"] += 1
        logs: dict[str, list[int]] = {}
        for log in self.logs:
            logs.setdefault(log["pk"], []).append(int(log["sk"][1:]))
        led = {owner for (owner, _), item in self.aliases.items() if "deleted" not in item}
        for pk, stamp in self.stamps.items():
            assert stamp["shape"] == dict(shapes[pk]), f"shape of {pk}"
            assert stamp["aliases"] or f"alias#{pk}" not in led, f"aliases of {pk}"
            assert sorted(logs[pk]) == list(range(1, stamp["n"] + 1)), f"log of {pk}"
        assert {owner.removeprefix("alias#") for owner, _ in self.aliases} <= self.stamps.keys()
        assert {f"id#{item['id']}" for item in self.aliases.values()} <= self.ids.keys()
        assert logs.keys() == self.stamps.keys()

    def check_search(self, hierarchies: Mapping[str, Hierarchy] | None) -> None:
        """Hierarchies with a marker have all search items, others none."""
        if hierarchies is None:
            hierarchies = default_hierarchies() if self.markers else {}
        found_of = {name: self.items_of(name) for name in KINDS}
        named = {hierarchy for found in found_of.values() for hierarchy in found}
        assert named | {item["pk"].partition("/")[2] for item in self.moved} <= self.markers.keys()
        for name, marker in self.markers.items():
            found = Marker.of(name, marker)
            assert found is not None
            assert not all_lacking(hierarchies[name], found), f"marker of {name}"
            assert found.is_complete, f"marker of {name}"
            levels = {node["level"] for node in self.nodes.values() if node["pk"].startswith(f"{name}#")}
            assert all(levels <= one.levels.keys() for one in found.recipes.values()), f"levels in the marker of {name}"
            if hierarchies[name].search is not None:
                _SearchItems(hierarchies[name], self).check()
            self.check_cells(hierarchies[name])
            for kind, recipe in found.recipes.items():
                self.check_kind(KINDS[kind], recipe, found_of[kind].get(name, {}))

    def items_of(self, kind: str) -> dict[str, dict[Key, Item]]:
        """The items of a kind by the hierarchies of their nodes."""
        found: dict[str, dict[Key, Item]] = {}
        for item in self.of_kinds[kind]:
            owner = KINDS[kind].owner(item)
            assert owner is not None
            found.setdefault(owner.partition(":")[0], {})[key_of(item)] = item
        return found

    def check_kind(self, kind: NodeKind, recipe: Recipe, found: Mapping[Key, Item]) -> None:
        """The items of a kind are those of all nodes, but for what moves leave as it was."""
        expected: dict[Key, Item] = {}
        for node in self.nodes.values():
            if node["pk"].startswith(f"{recipe.hierarchy}#"):
                line = lineage([self.nodes[above]["id"] for above in _ancestors(node)] + [node["id"]])
                expected |= {key_of(item): item for item in kind.items(recipe, Located(Record.of(node), line))}
        assert found.keys() == expected.keys(), kind.name
        moves = Moves([MovedNode.of(item) for item in self.moved if item["pk"] == f"kinds/{recipe.hierarchy}"])
        for key, item in expected.items():
            assert found[key] == canonical_item(item) or kind.is_outdated(found[key], item, moves), key

    def check_cells(self, hierarchy: Hierarchy) -> None:
        """Each node with a place has its cell item, and no other node has one."""
        names = hierarchy.location or ("", "")
        nodes = {node["id"]: node for node in self.nodes.values() if node["pk"].startswith(f"{hierarchy.name}#")}
        places = {one: [node.get(name) for name in names] for one, node in nodes.items()}
        points = {one: Point.of(*both) for one, both in places.items() if not {type(n) for n in both} - {int, float}}
        of_nodes = {one: point for one, point in points.items() if point is not None}
        own = [item for item in self.cells if item["pk"].split("/")[1].split("#")[0] == hierarchy.name]
        found = {f"{hierarchy.name}:{item['sk'].partition('#')[2]}": item for item in own}
        assert len(found) == len(own), "A node has two cell items."
        assert found.keys() == of_nodes.keys()
        for node_id, item in found.items():
            assert (item["latitude"], item["longitude"]) == of_nodes[node_id]
            first, rest = item["pk"].rpartition("#")[2], item["sk"].partition("#")[0]
            assert int(first, 16) << 34 | int(rest, 16) == of_nodes[node_id].cell
            assert item["line"].endswith(id_hash(node_id))
            assert item["level"] == nodes[node_id]["level"]


class _SearchItems:
    """The search items of one hierarchy, compared with its nodes."""

    def __init__(self, hierarchy: Hierarchy, table: "_Table") -> None:
        assert hierarchy.search is not None
        self.hierarchy = hierarchy
        self.search = hierarchy.search
        self.nodes = {key: node for key, node in table.nodes.items() if node["pk"].startswith(f"{hierarchy.name}#")}
        self.moved = [item for item in table.moved if item["pk"] == f"kinds/{hierarchy.name}"]
        self.moves = Moves([MovedNode.of(item) for item in self.moved])
        self.items: dict[str, dict[str, dict[str, Any]]] = {node["id"]: {} for node in self.nodes.values()}
        for item in table.words:
            if item["pk"].startswith(f"words/{hierarchy.name}#"):
                node_id = f"{hierarchy.name}:{item['sk'].rpartition('#')[2]}"
                assert node_id in self.items, f"{item['sk']} is of no node"
                text = item["sk"].partition("#")[0]
                assert self.items[node_id].setdefault(text, item) is item, f"{text} of {node_id} is there twice"

    def check(self) -> None:
        assert {moved_id(item) for item in self.moved} <= self.items.keys(), "There are moved nodes that do not exist."
        weights: set[tuple[Decimal, str]] = set()
        for key, node in self.nodes.items():
            ids = [self.nodes[above]["id"] for above in _ancestors(node)] + [node["id"]]
            line = [id_hash(one) for one in ids]
            words = NodeWords(self.hierarchy, node)
            found = self.items[node["id"]]
            assert found.keys() == words.found.keys(), key
            for text, item in found.items():
                weight, depth = self.check_item(node, words, text, item)
                weights.add((self.weight(node), weight))
                self.check_lineage(line, depth, item)
        numbers = dict(weights)
        assert len(numbers) == len(weights), "One weight is written in two ways."
        assert sorted(numbers, reverse=True) == sorted(numbers, key=lambda number: numbers[number])

    def weight(self, node: dict[str, Any]) -> Decimal:
        """The weight of a node, which may be under a former name of the attribute."""
        attribute = self.hierarchy.any_level(node["level"]).attributes.get(str(self.search.weight))
        names = (self.search.weight,) if attribute is None else (attribute.name, *attribute.was)
        return _weight(next((name for name in names if name in node), None), node)

    def check_item(self, node: dict[str, Any], words: NodeWords, text: str, item: dict[str, Any]) -> tuple[str, int]:
        """Check one item except for what may be outdated; returns its weight as it is written, and its depth."""
        own_id = node["id"].partition(":")[2]
        name = words.names.get("", "")
        is_name = begins = words.found[text]
        weight: str = item["sk"].removeprefix(f"{text}#{int(not is_name)}").removesuffix(f"#{own_id}")
        assert item["sk"] == f"{text}#{int(not is_name)}{weight}#{own_id}"
        depth = item["rank"].removeprefix(f"{int(not begins)}{weight}")[:2]
        assert item["rank"] == f"{int(not begins)}{weight}{depth}{name}#{own_id}"
        assert item["level"] == node["level"]
        assert item.get("names", {}) == {language: one for language, one in words.names.items() if language}
        others = [word for _, text in sorted(item.get("others", {}).items()) for word in text.split("+")]
        assert list(dict.fromkeys(others)) == words.others
        assert item["at"].endswith("#")
        root = item["pk"].split("#")[1] + "#" if self.search.scope is SearchScope.TREE else ""
        assert item["pk"] == f"words/{self.hierarchy.name}#{root}{text[0]}"
        first = text.split("+")[0]
        is_han = "\u4e00" <= text[0] <= "\u9fff"
        assert item["parent"] == f"words/{self.hierarchy.name}#{root}{first[: 1 if is_han else 3]}"
        return weight, int(depth)

    def check_lineage(self, line: list[str], depth: int, item: dict[str, Any]) -> None:
        """The lineage of an item leads to the present one, and the `depth` that it says is too great by `rise` at most.

        Where each tree is searched by itself, the item is in the partition of its tree.
        """
        own = item["line"]
        assert self.moves.present(own) == "".join(line), item
        assert self.moves.depth(own) == len(line) - 1, item
        assert depth - (len(line) - 1) <= self.moves.rise, item
        if self.search.scope is SearchScope.TREE:
            assert item["pk"].split("#")[1] == own[:STEP] == line[0], item


def _ancestors(node: dict[str, Any]) -> list[str]:
    """The partition and sort keys of all ancestors, the root's first."""
    ends = [place for place, sign in enumerate(node["sk"][:-1]) if sign == "#"]
    return [node["pk"] + node["sk"][: end + 1] for end in ends]


def _weight(attribute: str | None, node: dict[str, Any]) -> Decimal:
    value = node.get(attribute) if attribute else None
    return Decimal(0) if value is None else Decimal(str(value))
