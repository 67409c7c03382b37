"""History, deleted nodes and the change feed for callers with grants."""

import pytest

from graph.hierarchies.locations import Location
from store.engine import Store
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import plant

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/MO", "STATE"), ("US/MO/Joplin", "CITY"), ("FR", "COUNTRY"), ("FR/Paris", "CITY"),
]  # fmt: skip
ALL = caller("write:location")
NE = caller("read:location/US/NE")
UPDATE = (
    "mutation($path: Path!, $name: String!) { updateLocation(input: {node: {path: $path}, name: "
    "$name}) { node { id } } }"
)
MOVE = (
    "mutation($path: Path!, $to: Path!) { moveLocation(input: {node: {path: $path}, to: {parent: "
    "{path: $to}}}) { node { path } } }"
)
RENAME = (
    "mutation($path: Path!, $key: String!) { moveLocation(input: {node: {path: $path}, key: $key}) { node { path } } }"
)
DELETE = "mutation($path: Path!) { deleteLocation(input: {node: {path: $path}, policy: CASCADE}) { node { id } } }"
HISTORY = """query($path: Path!) { location(path: $path) { revision first: atRevision(n: 1) { name }
  history { totalCount nodes { name } pageInfo { hasNextPage } } } }"""
CHANGES = """query($since: String, $under: Path, $tree: Path = "US") {
  changes(hierarchy: LOCATION, tree: $tree, after: $since, under: $under) {
  changes { event nodeId path level revision from to } cursor hasMore } }"""
DELETED = "query($id: ID!) { deletedNode(id: $id) { path deletedBy descendantCount history { totalCount } } }"
RESTORE = (
    "mutation($id: ID!, $to: Path!) { restoreLocation(input: {id: $id, to: {parent: {path: $to}}}) { node { path } } }"
)


@pytest.fixture
async def server(store: Store) -> Server:
    await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])
    return Server(store, Location)


async def make(server, mutation, **variables):
    answer = await server.write(ALL, mutation, **variables)
    assert "errors" not in answer, answer
    return answer["data"]


async def changes(server, who, **variables):
    """The changes since a cursor, without their ids; whether one has an id is told instead."""
    found = (await server.data(who, CHANGES, **variables))["changes"]
    return [
        (one["event"], one["path"], one["nodeId"] is not None, one["revision"], one["from"], one["to"])
        for one in found["changes"]
    ]


async def now(server):
    return (await server.data(ALL, CHANGES))["changes"]["cursor"]


async def test_revisions_at_hidden_paths_are_left_out(server):
    await make(server, UPDATE, path="US/MO/Joplin", name="Secret")
    await make(server, UPDATE, path="US/MO/Joplin", name="Also secret")
    await make(server, MOVE, path="US/MO/Joplin", to="US/NE")
    await make(server, UPDATE, path="US/NE/Joplin", name="Open")
    await make(server, UPDATE, path="US/NE/Joplin", name="More open")
    everything = (await server.data(ALL, HISTORY, path="US/NE/Joplin"))["location"]
    assert [one["name"] for one in everything["history"]["nodes"]] == [
        "More open", "Open", "Also secret", "Secret", "Joplin",
    ]  # fmt: skip
    seen = (await server.data(NE, HISTORY, path="US/NE/Joplin"))["location"]
    # The state that it was moved with was the current one at its new place too, before the next was written.
    assert [one["name"] for one in seen["history"]["nodes"]] == ["More open", "Open", "Also secret"]
    assert (seen["first"], seen["history"]["totalCount"]) == (None, 3)


async def test_pages_of_a_history_are_full_where_revisions_are_hidden(server):
    for away, home in (("US/MO", "US/NE"), ("US/NE", "US/MO"), ("US/MO", "US/NE")):
        for n in range(2):
            await make(server, UPDATE, path=f"{away}/Joplin", name=f"{away} {n}")
        await make(server, MOVE, path=f"{away}/Joplin", to=home)
    whole = (await server.data(NE, HISTORY, path="US/NE/Joplin"))["location"]["history"]
    pages, cursor = [], None
    query = """query($after: String) { location(path: "US/NE/Joplin") {
      history(first: 1, after: $after) { totalCount nodes { name } pageInfo { hasNextPage endCursor } } } }"""
    while True:
        page = (await server.data(NE, query, after=cursor))["location"]["history"]
        pages += page["nodes"]
        assert page["totalCount"] == whole["totalCount"]
        cursor = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert [one["name"] for one in pages] == [one["name"] for one in whole["nodes"]]
    assert 1 < len(pages) < 7


async def test_a_deleted_node_is_found_only_if_its_last_path_is_visible(server):
    ids = [(await make(server, DELETE, path=path))["deleteLocation"]["node"]["id"] for path in ("US/NE/Omaha", "US/MO")]
    found = {"path": "US/NE/Omaha", "deletedBy": "somebody", "descendantCount": 1, "history": {"totalCount": 1}}
    assert (await server.data(NE, DELETED, id=ids[0]))["deletedNode"] == found
    hidden, absent = [await server.ask(NE, DELETED, id=one) for one in (ids[1], "location:nowhere")]
    assert hidden == absent == {"data": {"deletedNode": None}}
    above = (await make(server, DELETE, path="US"))["deleteLocation"]["node"]["id"]
    assert (await server.data(NE, DELETED, id=above))["deletedNode"] is None
    assert (await server.data(ALL, DELETED, id=above))["deletedNode"]["deletedBy"] == "somebody"


async def test_a_feed_has_what_is_granted_and_a_move_across_its_border_is_a_deletion_or_a_creation(server):
    since = await now(server)
    await make(server, UPDATE, path="US/NE/Omaha", name="A")
    await make(server, UPDATE, path="US/MO/Joplin", name="B")
    await make(server, UPDATE, path="US", name="C")
    await make(server, RENAME, path="US/NE/Omaha", key="OMA")
    await make(server, MOVE, path="US/NE/OMA", to="US/MO")
    await make(server, MOVE, path="US/MO/Joplin", to="US/NE")
    await make(server, MOVE, path="FR/Paris", to="US/NE")
    await make(server, MOVE, path="US/NE/Paris", to="FR")
    seen = await changes(server, NE, since=since)
    assert seen == [
        ("UPDATED", "US/NE/Omaha", True, 2, None, None),
        ("MOVED", "US/NE/OMA", True, 2, "US/NE/Omaha", "US/NE/OMA"),
        ("DELETED", "US/NE/OMA", True, 2, None, None),
        ("CREATED", "US/NE/Joplin", True, 2, None, None),
        ("CREATED", "US/NE/Paris", True, 1, None, None),
        ("DELETED", "US/NE/Paris", True, 1, None, None),
    ]
    assert await changes(server, NE, since=since, under="US/NE") == seen
    # What lies under a hidden path is not told, so that nobody learns where something went by asking under many.
    for hidden in ("US/MO", "US/MO/OMA", "US/IA", "FR"):
        assert await changes(server, NE, since=since, under=hidden) == []
    assert await changes(server, NE, since=since, under="US/NE/Joplin/64801") == [seen[3]]


async def test_a_change_above_the_grants_that_moves_them_is_told_of_each_grant_root(server):
    omaha = caller("read:location/US/NE/Omaha", "read:location/US/NE/Omaha/1", "read:location/US/NE/AAA")
    since = await now(server)
    await make(server, UPDATE, path="US/NE", name="Other")
    await make(server, RENAME, path="US/NE", key="NEB")
    await make(server, RENAME, path="US/NEB", key="NE")
    await make(server, DELETE, path="US/NE")
    assert await changes(server, omaha, since=since) == [
        (event, path, False, None, None, None)
        for event in ("DELETED", "CREATED", "DELETED")
        for path in ("US/NE/AAA", "US/NE/Omaha")
    ]
    assert len(await changes(server, omaha, since=since, under="US/NE/Omaha")) == 3


async def test_the_list_of_roots_has_a_feed_for_who_sees_the_whole_hierarchy(server):
    since = (await server.data(ALL, CHANGES, tree=None))["changes"]["cursor"]
    await make(server, UPDATE, path="US", name="Not in the list")
    await make(server, RENAME, path="FR", key="F %/")
    await make(server, RENAME, path="F %25%2F", key="G")
    await make(server, DELETE, path="US")
    whole = caller("read:location", "write:location/US/MO")
    for who in (ALL, whole):
        seen = await changes(server, who, since=since, tree=None)
        assert {(event, source, target) for event, _, _, _, source, target in seen} == {
            ("MOVED", "FR", "F %25%2F"), ("MOVED", "F %25%2F", "G"), ("DELETED", None, None),
        }  # fmt: skip
        assert {path for _, path, *_ in seen} == {"FR", "F %25%2F", "G", "US"}
        assert len(await changes(server, who, since=since, tree=None, under="US")) == 1
    every_tree = caller("read:location/US", "read:location/FR", "read:location/G")
    nobody = await server.data(caller("read:category"), CHANGES, tree=None)
    assert nobody == await server.data(every_tree, CHANGES, tree=None)
    assert nobody["changes"]["changes"] == []
    assert codes(await server.ask(every_tree, CHANGES, tree=None, since=since)) == ["CURSOR_EXPIRED"]


async def test_another_place_of_the_top_of_a_grant_is_not_told_since_siblings_are_hidden(server):
    since, seen = await now(server), '{ location(path: "US/NE") { revision updatedAt history { totalCount } } }'
    before = await server.data(NE, seen)
    await make(
        server, 'mutation { moveLocation(input: {node: {path: "US/NE"}, position: {first: true}}) { node { id } } }'
    )
    await make(server, 'mutation { moveLocation(input: {node: {path: "US"}, position: {last: true}}) { node { id } } }')
    assert await changes(server, NE, since=since) == []
    assert await changes(server, caller("read:location/US/NE", "read:location/US/MO"), since=since) == []
    assert [one[:2] for one in await changes(server, caller("read:location/US"), since=since)] == [("MOVED", "US/NE")]
    assert ("MOVED", "US/NE") in [one[:2] for one in await changes(server, ALL, since=since)]
    assert await server.data(NE, seen) == before


async def test_a_restore_is_told_where_the_node_comes_to_of_it_or_of_the_grant_roots_below_it(server):
    seen = {
        "below": caller("read:location/US/NE/Omaha", "read:location/US/NE/none"), "at": NE, "above": ALL,
        "former": caller("read:location/US/MO"), "beside": caller("read:location/US/MO/Joplin"),
    }  # fmt: skip
    omaha = (await make(server, DELETE, path="US/NE/Omaha"))["deleteLocation"]["node"]["id"]
    state = (await make(server, DELETE, path="US/NE"))["deleteLocation"]["node"]["id"]
    since = await now(server)
    await make(server, RESTORE, id=state, to="US")
    await make(server, RESTORE, id=omaha, to="US/MO")
    whole, part = ("RESTORED", "US/NE", True, 2, None, None), ("RESTORED", "US/MO/Omaha", True, 2, None, None)
    assert {name: await changes(server, who, since=since) for name, who in seen.items()} == {
        "below": [("RESTORED", path, False, None, None, None) for path in ("US/NE/Omaha", "US/NE/none")],
        "at": [whole], "above": [whole, part], "former": [part], "beside": [],
    }  # fmt: skip
    assert await changes(server, seen["below"], since=since, under="US/NE/Omaha/68118") == [
        ("RESTORED", "US/NE/Omaha", False, None, None, None)
    ]
    read = '{ location(path: "US/MO/Omaha") { history { totalCount nodes { name } } atRevision(n: 1) { name } } }'
    assert (await server.data(seen["former"], read))["location"] == {
        "history": {"totalCount": 1, "nodes": [{"name": "Omaha"}]}, "atRevision": None,
    }, "its first revision was at a hidden path"  # fmt: skip
    assert (await server.data(NE, DELETED, id=omaha))["deletedNode"] is None
