"""Damaged items: every attribute of every kind of item in wrong shapes; what is said to clients that read it, by a
check, and by a repair.
"""

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from resolvers.access.grants import Grants
from resolvers.changes import ChangeFollower
from store.api_keys import add_key, find_keys, new_key
from store.checking.check import Check
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.errors import CladeError, rfc3339
from store.metadata.history import former_key, revision_item, with_revision
from store.metadata.moves import MoveTiming, new_move
from store.metadata.tree_version import TreeVersion, log_item
from store.model.keys import Index, Key, node_key, tree_version_key
from store.model.records import Item, Put, Record
from store.reading import recent_moves
from store.transfer.export import export
from tests import invariants
from tests.selection import examples
from tests.systems.writing import DEFINITIONS, Clients, plant

pytestmark = pytest.mark.both_stores

WRONG: list[Any] = [None, True, -1, 1.5, "x", [], [["x", 1]], {"x": {}}]
OPTIONAL = set(
    "moves log_expires names others ranks deleted deleted_by under move line before shape below redirects is_logged "
    "top_rank".split()
)
COLUMNS = {name for index in Index for name in index.value} | {"expires"}
"""Attributes whose types the engines themselves guard."""
ATTRIBUTES = {"iso3", "latitude", "longitude", "timezone", "population"}
"""Attributes of levels, which are checked field by field."""
FORMER = ("alias#location#US", "#NE#Omaha#68118#")
AT = "2026-11-20T12:00:00.000Z"

ONCE = (
    'createLocation(input: {parent: {path: "US/N"}, key: "once", name: "x", attributes: {city: '
    '{}}}, idempotencyKey: "k")'
)
NODE = "path name levelName updatedAt changedBy revision childCount descendantCount"
QUERY = f"""query($id: ID!, $move: ID!) {{
  a: location(path: "US/N/Omaha") {{ {NODE} parent {{ path }} ancestors {{ {NODE} }} atRevision(n: 1) {{
    name }} history {{ nodes {{ revision name changedAt }} }} descendants {{ nodes {{ {NODE} }} }} }}
  b: location(path: "US/NE/Omaha/68118") {{ path }}
  c: location(id: $id) {{ {NODE} }}
  d: deletedNode(id: "location:gone") {{ path deletedAt deletedBy lastRevision {{ name }}
    history {{ nodes {{ name }} }} }}
  e: changes(hierarchy: LOCATION, tree: "US") {{ changes {{ event nodeId path revision }} }}
  f: moves(hierarchy: LOCATION) {{ id state nodes startedAt }}
  g: move(id: $move) {{ id state nodes startedAt endedAt }}
  h: locations {{ totalCount nodes {{ {NODE} children {{ nodes {{ {NODE} }} }} }} }}
  i: searchLocations(text: "oma") {{ complete nodes {{ path name }} }}
  j: searchLocations(text: "oma", under: "US/N") {{ complete nodes {{ path name }} }}
  k: locations(level: POSTAL_CODE, where: {{near: {{latitude: 41.2, longitude: -95.9, kilometers: 50}}}}) {{
    nodes {{ path }} }}
}}"""
MUTATIONS = [
    'updateLocation(input: {node: {path: "US/N/Omaha"}, name: "x"}, dryRun: true)',
    'moveLocation(input: {node: {path: "US/N"}, key: "NE"}, dryRun: true)',
    'moveLocation(input: {node: {path: "US/N/Omaha"}, to: {parent: {path: "US/MO"}}}, dryRun: true)',
    'moveLocation(input: {node: {path: "US/N/Omaha"}, position: {first: true}}, dryRun: true)',
    'createLocation(input: {parent: {path: "US/N"}, key: "gone", name: "x", id: "gone", attributes: '
    "{city: {}}}, dryRun: true)",
    'deleteLocation(input: {node: {path: "US/N/Omaha"}, policy: CASCADE}, dryRun: true)',
    'restoreLocation(input: {id: "location:gone"}, dryRun: true)',
    ONCE,
]
MUTATION = (
    f"mutation {{ {' '.join(f'm{number}: {one} {{ node {{ path }} }}' for number, one in enumerate(MUTATIONS))} }}"
)
UNREAD = {"log 0: at", "log 0: changes", "tombstone: kids"}
"""What only the order of roots reads; and a number that is right where it is absent."""


UNMENDED = {"node", "root", "revision"}
"""Kinds with what nothing else tells."""


@pytest.fixture(autouse=True)
def caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes of local engines do not trail behind, so nothing has to be waited for."""
    monkeypatch.setattr("store.checking.sums.SETTLE_SECONDS", 0)


@pytest.fixture
async def clients(store: Store) -> Clients:
    """A store with an item of each kind."""
    made = Clients(store)
    await plant(made)
    for mutation in (
        'moveLocation(input: {node: {path: "US/NE"}, key: "N"})',
        'updateLocation(input: {node: {path: "US/N/Omaha"}, name: "Omaha!", attributes: {city: '
        "{latitude: 41.2, longitude: -95.9}}})",
        'createLocation(input: {parent: {path: "US/N"}, key: "gone", name: "x", id: "gone", attributes: {city: {}}})',
        'deleteLocation(input: {node: {path: "US/N/gone"}})',
        ONCE,
        'moveLocation(input: {node: {path: "US/N/Lincoln"}, position: {last: true}})',
        'moveLocation(input: {node: {path: "US/N/Omaha"}, to: {parent: {path: "US/MO"}}})',
        'moveLocation(input: {node: {path: "US/MO/Omaha"}, to: {parent: {path: "US/N"}}})',
    ):
        await made.ask(f"mutation {{ {mutation} {{ node {{ path }} }} }}")
    await add_key(store, new_key("reader", ["read:location"], None)[0])
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
    return partition if partition != "kinds" else f"kinds {sk[0]}"


async def items_to_damage(store: Store) -> tuple[dict[str, Item], str]:
    """One item of each kind, in a plain run of some, and the id of the node that is asked for."""
    stored = [item for item in await invariants.all_items(store) if item["sk"] != "layout"]  # which tables check
    items = {kind_of(item): item for item in stored}
    (omaha,) = [item for item in stored if item.get("name") == "Omaha!" and "tier" in item]
    items |= {kind_of(item): item for item in stored if item["pk"] == f"id#{omaha['id']}"} | {"node": omaha}
    items["words"] = next(item for item in stored if str(item["sk"]).startswith("omaha#"))
    items["alias"] = next(
        item for item in stored if item["pk"] == "alias#location#US" and item["sk"] == "#NE#Omaha#68118#"
    )
    kinds = Random(str(type(store))).sample(sorted(items), examples(6, len(items)))  # noqa: S311 - no secret
    assert len(items) in (17, 18), sorted(items)  # without and with a running move
    return {kind: items[kind] for kind in kinds}, str(omaha["id"])


def damages(store: Store, item: Item) -> Iterator[tuple[str, Item]]:
    """The item with one attribute in a wrong shape, but for those of which the engines themselves know the type.

    A plain run has one attribute of each kind of items, on either store another.
    """
    chance = Random(f"{kind_of(item)}{type(store)}")  # noqa: S311 - no secret
    names = sorted(item.keys() - COLUMNS - ATTRIBUTES)
    for name in chance.sample(names, min(len(names), examples(1, len(names)))):
        right = (_shape(item[name]), _shape(None) if name in OPTIONAL else None)
        wrong = [value for value in WRONG if _shape(value) not in right]
        for value in chance.sample(wrong, examples(1, len(wrong))):
            yield name, {**item, name: value}


def _shape(value: object) -> type:
    return float if type(value) is int else type(value)


async def test_what_is_damaged_is_bad_data_in_whatever_reads_it(clients: Clients) -> None:
    store = clients.store
    await begin_move(store)
    items, omaha = await items_to_damage(store)
    (move,) = await recent_moves(store, ReadUsage())
    variables = {"id": omaha, "move": move.id}
    silent, strange = set[str](), list[Any]()
    for kind, item in items.items():
        for name, damaged in damages(store, item):
            await store.commit([Put(damaged)])
            reader = Clients(store)
            codes = await reader.codes(QUERY, **variables) | await reader.codes(MUTATION)
            codes |= await _codes_of_commands(store)
            silent |= {f"{kind}: {name}"} if "BAD_DATA" not in codes else set()
            if "INTERNAL_SERVER_ERROR" in codes or not ("FOUND" in codes or kind == "kinds l"):  # as a move is running
                strange.append((kind, name, damaged[name], codes))
        await store.commit([Put(item)])
    assert strange == [], str(strange)
    assert silent <= UNREAD


async def _codes_of_commands(store: Store) -> set[str]:
    """The codes of an export and of the list of keys, and FOUND where a check has findings."""
    codes = {"FOUND" async for _ in Check(store, DEFINITIONS, AT).findings()}
    try:
        await find_keys(store, ReadUsage())
        assert [line async for line in export(store, DEFINITIONS["location"])]
    except CladeError as error:
        codes.add(error.code)
    return codes


@pytest.mark.both_stores(False)
async def test_a_repair_mends_what_follows_from_the_rest_and_names_what_does_not(clients: Clients) -> None:
    store = clients.store
    items, omaha = await items_to_damage(store)
    variables = {"id": omaha, "move": "0"}
    assert await clients.codes(QUERY, **variables) == set()
    left: dict[str, str] = {}
    for kind, item in items.items():
        for name, damaged in damages(store, item):
            await store.commit([Put(damaged)])
            results = [one async for one in Repair(Check(store, DEFINITIONS, AT), MoveTiming(0, 0)).run()]
            codes = await Clients(store).codes(QUERY, **variables) | await _codes_of_commands(store)
            if kind.startswith("log"):
                await store.commit([Put(item)])
                assert codes <= {"FOUND"}
                continue
            assert (codes == set()) is all(one.is_fixed for one in results), (kind, name, damaged[name], codes, results)
            if codes:
                left[f"{kind}: {name}"] = str(next(one.finding for one in results if not one.is_fixed))
                await store.commit([Put(item)])
    assert {kind.partition(":")[0] for kind in left} <= UNMENDED, left


def test_attributes_may_have_the_names_of_what_other_items_hold() -> None:
    named: Any = dict.fromkeys(("deleted", "tree", "at", "n", "attributes", "moves"), 7)
    kept = {name: 7 for name in named if name != "tree"}  # which a revision has itself
    record = Record.new("location", ("US",), "COUNTRY", "US", "us", AT, named, above=[])
    former = revision_item(replace(record, attributes=kept))
    assert former_key(former) == record.key
    assert with_revision(record, former).attributes == kept
    assert Record.of(record.item()).attributes == named


LISTS_OF_OMAHA = [
    "children { nodes { children { nodes { path } } } }",
    "children { edges { node { children(first: 5) { nodes { path } } } } }",
    "children { nodes { children(orderBy: {field: NAME}) { nodes { path } } } }",
    "descendants { nodes { path } }",
    "descendants(level: CITY) { nodes { path } }",
]


@pytest.mark.parametrize("listing", LISTS_OF_OMAHA)
async def test_a_node_of_an_unknown_level_is_an_error_of_each_list_that_it_is_in(
    clients: Clients, listing: str
) -> None:
    (item,) = await clients.store.get([node_key("location", ("US", "N", "Omaha"))], ReadUsage())
    assert item is not None
    await clients.store.commit([Put({**item, "level": "NOTHING"})])
    message, code = "The location US/N/Omaha: unknown level NOTHING.", "BAD_DATA"
    reader = Clients(clients.store)
    assert await reader.refusal(f'{{ location(path: "US") {{ {listing} }} }}') == (code, message)


@pytest.mark.both_stores(False)
async def test_the_key_is_not_shown_to_callers_who_may_read_a_part(clients: Clients) -> None:
    key = node_key("location", ("US", "N"))
    (item,) = await clients.store.get([key], ReadUsage())
    assert item is not None
    await clients.store.commit([Put({**item, "kids": "x"})])
    reader = Clients(clients.store, grants=Grants.parse(["read:location/US/N"]))
    refusals = [await one.refusal('{ location(path: "US/N") { path } }') for one in (clients, reader)]
    assert [code for code, _ in refusals] == ["BAD_DATA", "BAD_DATA"]
    assert ["#N#" in message and "clade check" in message for _, message in refusals] == [True, False]
    assert "clade check" in refusals[1][1]


@pytest.mark.both_stores(False)
async def test_a_damaged_tree_is_told_to_the_streams_of_it_alone(clients: Clients) -> None:
    follower = ChangeFollower(clients.store)
    trees = [follower.join(key) for key in ("location#US", "category#A")]
    await follower._poll()
    seen = [tree.number for tree in trees]
    (version,) = await clients.store.get([tree_version_key("location#US")], ReadUsage())
    assert version is not None
    await clients.store.commit([Put({**version, "n": "x"})])
    await follower._poll()
    assert [tree.number == number for tree, number in zip(trees, seen, strict=True)] == [False, True]
