"""The grants that each mutation requires: on both ends, and on the other nodes that it changes."""

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.engine.protocol import Store
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/NE/Lincoln", "CITY"), ("US/NEVADA", "STATE"), ("US/NEVADA/Reno", "CITY"), ("FR", "COUNTRY"),
]  # fmt: skip

CREATE = """mutation($parent: Path, $key: String!, $id: ID, $attributes: LocationAttributes!, $dryRun: Boolean) {
  createLocation(parent: $parent, key: $key, id: $id, name: $key, attributes: $attributes, dryRun: $dryRun)
  { node { path changedBy } plan { nodes } } }"""
UPDATE = 'mutation($path: Path!) { updateLocation(path: $path, name: "Else") { node { path changedBy } } }'
MOVE = "mutation($path: Path!, $to: Path) { moveLocation(path: $path, to: $to) { node { path } } }"
RENAME = "mutation($path: Path!, $key: String!) { renameLocation(path: $path, key: $key) { node { path } } }"
REORDER = "mutation($path: Path!, $after: Path) { reorderLocation(path: $path, after: $after) { node { path } } }"
DELETE = (
    "mutation($path: Path!, $policy: DeletePolicy) { deleteLocation(path: $path, policy: $policy) { node { path } } }"
)
CITY = {"city": {}}
STATE = {"state": {}}


@pytest.fixture
async def server(store: Store) -> Server:
    await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])
    return Server(store, Location, CategoryNode)


def sees_all(*grants):
    return caller(*grants, reads=False)


async def outcome(server, who, mutation, **variables):
    """The code of a mutation's error, or None where it was made."""
    answer = await server.write(who, mutation, **variables)
    return answer["errors"][0]["extensions"]["code"] if "errors" in answer else None


async def test_a_write_grant_allows_every_mutation_within_its_subtree(server):
    who = caller("write:location/US/NE")
    assert await outcome(server, who, CREATE, parent="US/NE", key="Bellevue", attributes=CITY) is None
    assert await outcome(server, who, UPDATE, path="US/NE") is None
    assert await outcome(server, who, MOVE, path="US/NE/Omaha/68118", to="US/NE/Lincoln") is None
    assert await outcome(server, who, RENAME, path="US/NE/Omaha", key="OMA") is None
    assert await outcome(server, who, REORDER, path="US/NE/OMA", after="US/NE/Lincoln") is None
    assert await outcome(server, who, DELETE, path="US/NE/Lincoln", policy="REPARENT") is None
    assert await outcome(server, who, DELETE, path="US/NE", policy="CASCADE") is None
    assert await outcome(server, who, CREATE, parent="US", key="NE", attributes=STATE) is None


async def test_the_caller_is_stored_as_changed_by(server):
    answer = await server.write(caller("write:location", name="ana"), UPDATE, path="US/NE")
    assert answer["data"]["updateLocation"]["node"] == {"path": "US/NE", "changedBy": "ana"}


@pytest.mark.parametrize("path", ["US", "US/NEVADA", "US/NEVADA/Reno", "FR", "XX"])
async def test_nothing_outside_the_grant_is_changed_whether_it_exists_or_not(server, path):
    who = sees_all("write:location/US/NE")
    for mutation, more in ((UPDATE, {}), (RENAME, {"key": "x"}), (MOVE, {"to": "US/NE"}), (DELETE, {})):
        assert await outcome(server, who, mutation, path=path, **more) == "FORBIDDEN"
    assert await outcome(server, who, REORDER, path=path, after="US/NE") == "FORBIDDEN"
    assert await outcome(server, who, CREATE, parent=path, key="x", attributes=STATE) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, path="US/NE/Omaha", to=path) == "FORBIDDEN"


async def test_a_hidden_node_has_the_error_of_a_missing_one(server):
    who = caller("write:location/US/NE")
    for mutation, more in ((UPDATE, {}), (RENAME, {"key": "x"}), (MOVE, {"to": "US/NE"}), (DELETE, {})):
        hidden = await server.refusal(who, mutation, path="US/NEVADA", **more)
        absent = await server.refusal(who, mutation, path="US/NOWHERE", **more)
        assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))
        assert hidden[0] == "NOT_FOUND"
        assert await server.refusal(sees_all("write:location"), mutation, path="US/NOWHERE", **more) == absent
    hidden = await server.refusal(who, CREATE, parent="US/NEVADA", key="x", attributes=CITY)
    absent = await server.refusal(sees_all("write:location"), CREATE, parent="US/NOWHERE", key="x", attributes=CITY)
    assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))
    assert await server.refusal(who, MOVE, path="US/NE/Omaha", to="US/NEVADA") == hidden
    hidden = await server.refusal(who, REORDER, path="US/NE", after="US/NEVADA")
    assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))


async def test_a_node_that_may_only_be_read_is_forbidden(server):
    who = caller("read:location", "write:location/FR")
    for mutation, more in ((UPDATE, {}), (RENAME, {"key": "x"}), (MOVE, {"to": "FR"}), (DELETE, {})):
        assert await outcome(server, who, mutation, path="US/NE", **more) == "FORBIDDEN"


async def test_a_redacted_node_is_forbidden(server):
    assert await outcome(server, caller("write:location/US/NE"), UPDATE, path="US") == "FORBIDDEN"


async def test_errors_of_grants_disclose_no_levels_revisions_or_budgets(server):
    who = caller("write:location/FR")
    for path in ("US/NE", "US/NOWHERE"):
        wrong = f'path: "{path}", expectedRevision: 7, attributes: {{ city: {{}} }}'
        query = f"mutation {{ updateLocation({wrong}) {{ node {{ id }} }} }}"
        assert (await server.refusal(who, query))[0] == "NOT_FOUND"


async def test_a_dry_run_requires_the_same_grants(server):
    who = caller("write:location/US/NE")
    assert await outcome(server, who, CREATE, parent="US", key="MO", attributes=STATE, dryRun=True) == "FORBIDDEN"
    made = await server.write(who, CREATE, parent="US/NE", key="Bellevue", attributes=CITY, dryRun=True)
    assert made["data"]["createLocation"]["plan"] == {"nodes": 1}


async def test_a_root_requires_the_grant_on_its_own_path(server):
    who = caller("write:location/AT", "write:location/US/NE")
    assert await outcome(server, who, CREATE, key="AT", attributes={"country": {}}) is None
    assert await outcome(server, who, CREATE, key="BE", attributes={"country": {}}) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, path="AT", to=None) is None  # to where it is
    assert await outcome(server, who, MOVE, path="US/NE", to=None) == "FORBIDDEN"
    assert await outcome(server, who, RENAME, path="AT", key="OE") == "FORBIDDEN"


async def test_reparenting_requires_the_grant_on_the_parent(server):
    assert await outcome(
        server, caller("write:location/US/NE/Omaha"), DELETE, path="US/NE/Omaha", policy="REPARENT"
    ) == ("FORBIDDEN")
    assert await outcome(server, caller("write:location/US"), DELETE, path="US", policy="REPARENT") == "FORBIDDEN"
    assert await outcome(server, caller("write:location/US/NE"), DELETE, path="US/NE/Omaha", policy="REPARENT") is None


@pytest.mark.parametrize("place", ["first: true", "last: true", 'after: "US/NE/Lincoln"', 'before: "US/NE/Lincoln"'])
async def test_reordering_requires_read_access_to_all_siblings(server, place):
    dry = f'mutation {{ reorderLocation(path: "US/NE/Omaha", {place}, dryRun: true) {{ plan {{ nodes }} }} }}'
    both = ("write:location/US/NE/Omaha", "write:location/US/NE/Lincoln")
    assert (await server.refusal(caller(*both), dry))[0] == "FORBIDDEN"
    for who in (caller(*both, "read:location/US/NE"), sees_all(*both)):
        assert "errors" not in await server.write(who, dry)
    root = 'mutation { reorderLocation(path: "US", first: true, dryRun: true) { plan { nodes } } }'
    assert (await server.refusal(caller("write:location/US"), root))[0] == "FORBIDDEN"
    assert "errors" not in await server.write(caller("write:location/US", "read:location"), root)


async def test_choosing_an_id_requires_the_grant_on_the_hierarchy(server):
    more = {"parent": "US/NE", "key": "Bellevue", "id": "mine", "attributes": CITY}
    assert await outcome(server, caller("write:location/US"), CREATE, **more) == "FORBIDDEN"
    assert await outcome(server, caller("write:location"), CREATE, **more) is None


async def test_grants_of_another_hierarchy_have_no_effect(server):
    for who in (caller("write:category"), caller()):
        assert await outcome(server, who, UPDATE, path="US") == "NOT_FOUND"
        assert await outcome(server, who, CREATE, key="AT", attributes={"country": {}}) == "FORBIDDEN"


async def test_idempotency_keys_are_separate_for_each_caller(server):
    query = """mutation($key: String!) { createLocation(parent: "US/NE", key: $key, name: "N", idempotencyKey: "once",
      attributes: { city: {} }) { node { path } } }"""
    one, other = (caller("write:location/US", name=name) for name in ("one", "other"))
    first = await server.write(one, query, key="Bellevue")
    assert await server.write(one, query, key="Bellevue") == first
    assert "errors" not in await server.write(other, query, key="Kearney")
    assert await outcome(server, one, query, key="Kearney") == "BAD_USER_INPUT"
    taken = await server.refusal(other, query.replace("once", "twice"), key="Bellevue")
    assert taken[0] == "ALREADY_EXISTS"
