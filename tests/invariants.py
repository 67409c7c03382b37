"""Invariants of a whole table, checked from all its items by code that is independent of the store's."""

from collections import Counter
from typing import Any

import msgspec

from store.dynamodb import codec
from store.dynamodb.store import DynamoDBStore
from store.engine.protocol import Store
from store.sqlite.store import SQLiteStore


async def all_items(store: Store) -> list[dict[str, Any]]:
    """All items of the table, in no order."""
    if isinstance(store, SQLiteStore):
        rows = store._database.connection().execute("SELECT body FROM items")
        return [msgspec.msgpack.decode(body) for (body,) in rows]
    assert isinstance(store, DynamoDBStore)
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = await store._client.call("scan", TableName=store.table, ConsistentRead=True, **start)
        items += [codec.decode(item) for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


async def nodes(store: Store, hierarchy: str) -> dict[str, dict[str, Any]]:
    """The items of all nodes of a hierarchy, by partition and sort key."""
    found = _Table(await all_items(store)).nodes
    return {key: item for key, item in found.items() if item["pk"].startswith(f"{hierarchy}#")}


async def check(store: Store) -> None:
    """Fail if a count, an id record, a tree version, a log or a parent is wrong."""
    table = _Table(await all_items(store))
    table.check_nodes()
    table.check_counts()
    table.check_ids()
    table.check_stamps()


class _Table:
    def __init__(self, items: list[dict[str, Any]]) -> None:
        items = [item for item in items if item["pk"] != "!"]  # what the table says of itself
        self.nodes = {item["pk"] + item["sk"]: item for item in items if "tier" in item}
        self.ids = {item["pk"]: item for item in items if item["pk"].startswith("id#") and item["sk"] == "v0"}
        self.versions = {(i["pk"], i["sk"]): i for i in items if i["pk"].startswith("id#") and i["sk"] != "v0"}
        self.stamps = {item["pk"]: item for item in items if item["sk"] == "!"}
        self.logs = [item for item in items if item["sk"].startswith("!") and item["sk"] != "!"]
        self.aliases = {(item["pk"], item["sk"]): item["id"] for item in items if item["pk"].startswith("alias#")}
        self.layout = [item for item in items if item["pk"] == "!"]
        self.moves = {item["sk"]: item for item in items if item["pk"] == "moves"}
        self.once = [item for item in items if item["pk"].startswith("once#")]
        self.keys = [item for item in items if item["pk"] == "keys"]
        kinds = [
            self.nodes, self.ids, self.versions, self.stamps, self.logs, self.aliases, self.once, self.moves,
            self.layout, self.keys,
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
        for pk, stamp in self.stamps.items():
            assert stamp["shape"] == dict(shapes[pk]), f"shape of {pk}"
            assert stamp["aliases"] == sum(owner == f"alias#{pk}" for owner, _ in self.aliases), f"aliases of {pk}"
            if "#" in pk:
                assert sorted(logs[pk]) == list(range(1, stamp["n"] + 1)), f"log of {pk}"
        assert {owner.removeprefix("alias#") for owner, _ in self.aliases} <= self.stamps.keys()
        assert {f"id#{node_id}" for node_id in self.aliases.values()} <= self.ids.keys()
        assert {pk for pk in logs if "#" in pk} == {pk for pk in self.stamps if "#" in pk}
