"""Damaged items: every attribute of every kind of item in wrong shapes, and what clients are told that read it."""

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.change_log import log_item
from store.metadata.move_record import new_move
from store.metadata.tree_version import TreeVersion
from store.model.items import Item, Put
from store.model.keys import Index, Key, node_key, tree_version_key
from store.model.records import Record
from store.text import rfc3339
from tests import invariants
from tests.selection import examples
from tests.systems.writing import Clients, plant

WRONG: list[Any] = [None, True, -1, "x", [], [["x", 1]], {"x": {}}]
COLUMNS = {name for index in Index for name in index.value} | {"expires"}
"""Attributes whose types the engines themselves guard."""

ONCE = (
    'createLocation(input: {parent: {path: "US/N"}, key: "once", name: "x", attributes: {city: {}}},'
    ' idempotencyKey: "k")'
)
ATTRIBUTES = {"iso3", "latitude", "longitude", "timezone"}  # of levels, which are checked field by field
UNREAD = {"search -: made_of", "log 0: at", "log 0: changes"}
"""Of which a wrong value is said otherwise (search needs a repair), and what only the order of roots reads."""
NODE = "path name level updatedAt changedBy revision childCount descendantCount"
QUERY = f"""query($id: ID!, $move: ID!) {{
  a: location(path: "US/N/Omaha") {{ {NODE} parent {{ path }} ancestors {{ {NODE} }} atRevision(n: 1) {{ name }}
    history {{ nodes {{ revision name changedAt }} }} descendants {{ nodes {{ {NODE} }} }}
    siblings {{ nodes {{ path }} }} }}
  b: location(path: "US/NE/Omaha/68118") {{ path }}
  c: location(id: $id) {{ {NODE} }}
  d: deletedNode(id: "location:gone") {{ path level deletedAt deletedBy lastRevision {{ name }}
    history {{ nodes {{ name }} }} }}
  e: changes(hierarchy: LOCATION, tree: "US") {{ changes {{ event nodeId path from to level revision at }} }}
  f: moves(hierarchy: LOCATION) {{ id state nodes startedAt }}
  g: move(id: $move) {{ id state nodes startedAt endedAt }}
  h: locations {{ totalCount nodes {{ {NODE} children {{ nodes {{ {NODE} }} }} }} }}
  i: searchLocations(text: "oma") {{ complete nodes {{ path name }} }}
  j: searchLocations(text: "oma", under: "US/NE") {{ complete nodes {{ path name }} }}
  k: locationsNear(latitude: 41.2, longitude: -95.9, kilometers: 50) {{ complete nodes {{ path }} }}
}}"""
MUTATION = f"""mutation($id: ID!) {{
  a: updateLocation(input: {{node: {{path: "US/N/Omaha"}}, name: "x"}}, dryRun: true) {{ plan {{ nodes }} }}
  b: moveLocation(input: {{node: {{path: "US/N"}}, key: "NE"}}, dryRun: true) {{ plan {{ nodes }} }}
  c: moveLocation(input: {{node: {{path: "US/N/Omaha"}}, position: {{first: true}}}}, dryRun: true)
    {{ plan {{ nodes }} }}
  d: createLocation(input: {{parent: {{path: "US/N"}}, key: "gone", name: "x", id: "gone",
    attributes: {{city: {{}}}}}}, dryRun: true) {{ plan {{ nodes }} }}
  e: {ONCE} {{ node {{ path }} }}
  f: deleteLocation(input: {{node: {{id: $id}}, policy: CASCADE}}, dryRun: true) {{ plan {{ nodes }} }}
}}"""


@pytest.fixture
async def clients(store: Store) -> Clients:
    """A store with an item of each kind."""
    made = Clients(store)
    await plant(made)
    for mutation in (
        'moveLocation(input: {node: {path: "US/NE"}, key: "N"})',
        'updateLocation(input: {node: {path: "US/N/Omaha"}, name: "Omaha!", attributes: {city: {latitude: 41.2,'
        " longitude: -95.9}}})",
        'createLocation(input: {parent: {path: "US/N"}, key: "gone", name: "x", id: "gone", attributes: {city: {}}})',
        'deleteLocation(input: {node: {path: "US/N/gone"}})',
        ONCE,
        'moveLocation(input: {node: {path: "US/N/Lincoln"}, position: {last: true}})',
        'moveLocation(input: {node: {path: "US/N/Omaha"}, to: {parent: {path: "US/MO"}}})',
        'moveLocation(input: {node: {path: "US/MO/Omaha"}, to: {parent: {path: "US/N"}}})',
    ):
        await made.ask(f"mutation {{ {mutation} {{ userErrors {{ message }} }} }}")
    await begin_move(store)
    return made


async def begin_move(store: Store) -> None:
    """Register a large move of US/MO, on which another process works."""
    top, partition = node_key("location", ("US", "MO")), "location#US"
    found, item = await store.get([top, tree_version_key(partition)], ReadUsage(), strong=True)
    assert found is not None
    version, now = TreeVersion.of(partition, item), time.time()
    move = new_move(Record.of(found), Key(partition, "#M#"), now + 3600, rfc3339(now), None)
    raised = version.incremented({}, moves=(move.running,), now=now)
    await store.commit([Put(move.item()), raised, log_item(version, [], rfc3339(now), now)])


def kind_of(item: Item) -> str:
    """What an item is; of several alike, one is damaged."""
    pk, sk = str(item["pk"]), str(item["sk"])
    partition = "root" if "tier" in item and sk == "#" else "node" if "tier" in item else pk.split("#")[0].split("/")[0]
    if partition == "id":
        return "tombstone" if "deleted" in item else "id record" if sk == "v0" else "revision"
    if sk.startswith("!"):
        changes: Any = item.get("changes", ())
        moved = " of a move" if any("MOVED" in entry for entry in changes) else ""
        return f"{'log' if sk != '!' else 'version'} {pk.count('#')}{moved}"
    return partition if partition != "search" else f"search {sk[0]}"


def damages(item: Item) -> Iterator[tuple[str, Item]]:
    """The item with one attribute in a wrong shape, but for those of which the engines themselves know the type."""
    chance = Random(f"{item['pk']}{item['sk']}")  # noqa: S311
    for name in sorted(item.keys() - COLUMNS - ATTRIBUTES):
        for value in chance.sample(WRONG, examples(2, len(WRONG))):
            if item[name] != value:
                yield name, {**item, name: value}


async def test_what_is_damaged_is_bad_data_in_whatever_reads_it(clients: Clients) -> None:
    store, stored = clients.store, await invariants.all_items(clients.store)
    stored = [item for item in stored if item["sk"] != "layout"]  # it is read when a table is opened, and never again
    items = {kind_of(item): item for item in stored}
    (omaha,) = [item for item in stored if item.get("name") == "Omaha!" and "tier" in item]
    items |= {kind_of(item): item for item in stored if item["pk"] == f"id#{omaha['id']}"} | {"node": omaha}
    items["words"] = next(item for item in stored if str(item["sk"]).startswith("omaha#"))
    assert len(items) == 17, sorted(items)
    variables = {"id": omaha["id"], "move": items["moves"]["sk"]}
    told, silent, strange = set[str](), set[str](), list[Any]()
    for kind, item in items.items():
        for number, (name, damaged) in enumerate(damages(item)):
            await store.commit([Put(damaged)])
            reader = Clients(store, planned=number % 2 == 0)
            codes = await reader.codes(QUERY, **variables) | await reader.codes(MUTATION, id=variables["id"])
            (told if "BAD_DATA" in codes else silent).add(f"{kind}: {name}")
            if "INTERNAL_SERVER_ERROR" in codes:
                strange.append((kind, name, damaged[name]))
        await store.commit([Put(item)])
    assert strange == []
    assert silent - told <= UNREAD
