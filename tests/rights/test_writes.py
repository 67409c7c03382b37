"""The grants that each mutation requires: on both ends, and on the other nodes that it changes."""

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.engine.protocol import Store
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import plant

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/NE/Lincoln", "CITY"), ("US/NEVADA", "STATE"), ("US/NEVADA/Reno", "CITY"), ("FR", "COUNTRY"),
]  # fmt: skip

CREATE = """mutation($parent: LocationBy, $key: String!, $id: ID, $attributes: LocationAttributes!, $dryRun: Boolean) {
  createLocation(
    input: {parent: $parent, key: $key, id: $id, name: $key, attributes: $attributes}, dryRun: $dryRun
  ) { node { path changedBy } plan { nodes } } }"""
UPDATE = """mutation($node: LocationBy!) {
  updateLocation(input: {node: $node, name: "Else"}) { node { path changedBy } } }"""
MOVE = """mutation($node: LocationBy!, $to: LocationDestination, $key: String, $position: LocationPosition) {
  moveLocation(input: {node: $node, to: $to, key: $key, position: $position}) { node { path } } }"""
DELETE = """mutation($node: LocationBy!, $policy: DeletePolicy) {
  deleteLocation(input: {node: $node, policy: $policy}) { node { path } } }"""
EDIT = "mutation($edits: [LocationEdit!]!) { editLocations(edits: $edits) { nodes { path } } }"
CITY = {"city": {}}
STATE = {"state": {}}


@pytest.fixture
async def server(store: Store) -> Server:
    await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])
    return Server(store, Location, CategoryNode)


def sees_all(*grants):
    return caller(*grants, reads=False)


def at(path):
    return {"path": path}


def under(path):
    """A destination: below the node at a path."""
    return {"parent": at(path)}


def after(path):
    return {"after": at(path)}


async def outcome(server, who, mutation, **variables):
    """The code of a mutation's only error or user error, or None where it was made."""
    found = codes(await server.write(who, mutation, **variables))
    assert len(found) <= 1, found
    return found[0] if found else None


async def test_a_write_grant_allows_every_mutation_within_its_subtree(server):
    who = caller("write:location/US/NE")
    assert await outcome(server, who, CREATE, parent=at("US/NE"), key="Bellevue", attributes=CITY) is None
    assert await outcome(server, who, UPDATE, node=at("US/NE")) is None
    assert await outcome(server, who, MOVE, node=at("US/NE/Omaha/68118"), to=under("US/NE/Lincoln")) is None
    assert await outcome(server, who, MOVE, node=at("US/NE/Omaha"), key="OMA") is None
    assert await outcome(server, who, MOVE, node=at("US/NE/OMA"), position=after("US/NE/Lincoln")) is None
    assert await outcome(server, who, DELETE, node=at("US/NE/Lincoln"), policy="REPARENT") is None
    assert await outcome(server, who, DELETE, node=at("US/NE"), policy="CASCADE") is None


async def test_a_grant_root_is_put_only_where_its_parent_is_seen(server):
    """Else whether there is a parent, and of which level, would show."""
    who = caller("write:location/US/NE", "write:location/XX/NE")
    assert await outcome(server, who, DELETE, node=at("US/NE"), policy="CASCADE") is None
    for parent in ("US", "XX"):
        assert await outcome(server, who, CREATE, parent=at(parent), key="NE", attributes=STATE) == "NOT_FOUND"
    seeing = caller("write:location/US/NE", "read:location/US")
    assert await outcome(server, seeing, CREATE, parent=at("US"), key="NE", attributes=STATE) is None


async def test_the_caller_is_stored_as_changed_by(server):
    answer = await server.write(caller("write:location", name="ana"), UPDATE, node=at("US/NE"))
    assert answer["data"]["updateLocation"]["node"] == {"path": "US/NE", "changedBy": "ana"}


@pytest.mark.parametrize("path", ["US", "US/NEVADA", "US/NEVADA/Reno", "FR", "XX"])
async def test_nothing_outside_the_grant_is_changed_whether_it_exists_or_not(server, path):
    who = sees_all("write:location/US/NE")
    for mutation, more in ((UPDATE, {}), (MOVE, {"key": "x"}), (MOVE, {"to": under("US/NE")}), (DELETE, {})):
        assert await outcome(server, who, mutation, node=at(path), **more) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, node=at(path), position=after("US/NE")) == "FORBIDDEN"
    assert await outcome(server, who, CREATE, parent=at(path), key="x", attributes=STATE) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, node=at("US/NE/Omaha"), to=under(path)) == "FORBIDDEN"


async def test_a_hidden_node_has_the_error_of_a_missing_one(server):
    who = caller("write:location/US/NE")
    for mutation, more in ((UPDATE, {}), (MOVE, {"key": "x"}), (MOVE, {"to": under("US/NE")}), (DELETE, {})):
        hidden = await server.refusal(who, mutation, node=at("US/NEVADA"), **more)
        absent = await server.refusal(who, mutation, node=at("US/NOWHERE"), **more)
        assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))
        assert hidden[0] == "NOT_FOUND"
        assert await server.refusal(sees_all("write:location"), mutation, node=at("US/NOWHERE"), **more) == absent
    hidden = await server.refusal(who, CREATE, parent=at("US/NEVADA"), key="x", attributes=CITY)
    absent = await server.refusal(sees_all("write:location"), CREATE, parent=at("US/NOWHERE"), key="x", attributes=CITY)
    assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))
    assert await server.refusal(who, MOVE, node=at("US/NE/Omaha"), to=under("US/NEVADA")) == hidden
    hidden = await server.refusal(who, MOVE, node=at("US/NE"), position=after("US/NEVADA"))
    assert hidden == (absent[0], absent[1].replace("NOWHERE", "NEVADA"))


async def test_a_node_that_may_only_be_read_is_forbidden(server):
    who = caller("read:location", "write:location/FR")
    for mutation, more in ((UPDATE, {}), (MOVE, {"key": "x"}), (MOVE, {"to": under("FR")}), (DELETE, {})):
        assert await outcome(server, who, mutation, node=at("US/NE"), **more) == "FORBIDDEN"


async def test_a_node_above_a_grant_root_has_the_error_of_a_missing_one(server):
    who = caller("write:location/US/NE")
    for mutation, more in ((UPDATE, {}), (MOVE, {"key": "x"}), (MOVE, {"to": under("US/NE")}), (DELETE, {})):
        hidden = await server.refusal(who, mutation, node=at("US"), **more)
        absent = await server.refusal(who, mutation, node=at("XX"), **more)
        assert hidden == ("NOT_FOUND", absent[1].replace("XX", "US"))
    assert await outcome(server, who, MOVE, node=at("US/NE/Omaha"), to={"root": True}) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, node=at("US/NE"), key="NEB") == "FORBIDDEN"


async def test_errors_of_grants_disclose_no_levels_revisions_or_budgets(server):
    who = caller("write:location/FR")
    for path in ("US/NE", "US/NOWHERE"):
        wrong = f'node: {{path: "{path}"}}, expectedRevision: 7, attributes: {{ city: {{}} }}'
        query = f"mutation {{ updateLocation(input: {{{wrong}}}) {{ node {{ id }} }} }}"
        assert (await server.refusal(who, query))[0] == "NOT_FOUND"


async def test_a_dry_run_requires_the_same_grants(server):
    who = caller("write:location/US/NE")
    assert await outcome(server, who, CREATE, parent=at("US"), key="MO", attributes=STATE, dryRun=True) == "NOT_FOUND"
    made = await server.write(who, CREATE, parent=at("US/NE"), key="Bellevue", attributes=CITY, dryRun=True)
    assert made["data"]["createLocation"]["plan"] == {"nodes": 1}


async def test_a_root_requires_the_grant_on_its_own_path(server):
    who = caller("write:location/AT", "write:location/US/NE")
    assert await outcome(server, who, CREATE, key="AT", attributes={"country": {}}) is None
    assert await outcome(server, who, CREATE, key="BE", attributes={"country": {}}) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, node=at("AT"), to={"root": True}) is None  # to where it is
    assert await outcome(server, who, MOVE, node=at("US/NE"), to={"root": True}) == "FORBIDDEN"
    assert await outcome(server, who, MOVE, node=at("AT"), key="OE") == "FORBIDDEN"


async def test_reparenting_requires_the_grant_on_the_parent(server):
    assert await outcome(
        server, caller("write:location/US/NE/Omaha"), DELETE, node=at("US/NE/Omaha"), policy="REPARENT"
    ) == ("FORBIDDEN")
    assert await outcome(server, caller("write:location/US"), DELETE, node=at("US"), policy="REPARENT") == "FORBIDDEN"
    assert (
        await outcome(server, caller("write:location/US/NE"), DELETE, node=at("US/NE/Omaha"), policy="REPARENT") is None
    )


@pytest.mark.parametrize(
    "place", [{"first": True}, {"last": True}, after("US/NE/Lincoln"), {"before": at("US/NE/Lincoln")}]
)
async def test_reordering_requires_read_access_to_all_siblings(server, place):
    omaha = {"node": at("US/NE/Omaha"), "position": place}
    both = ("write:location/US/NE/Omaha", "write:location/US/NE/Lincoln")
    assert await outcome(server, caller(*both), MOVE, **omaha) == "FORBIDDEN"
    for who in (caller(*both, "read:location/US/NE"), sees_all(*both)):
        assert await outcome(server, who, MOVE, **omaha) is None
    root = {"node": at("US"), "position": {"first": True}}
    assert await outcome(server, caller("write:location/US"), MOVE, **root) == "FORBIDDEN"
    assert await outcome(server, caller("write:location/US", "read:location"), MOVE, **root) is None


async def test_choosing_an_id_requires_the_grant_on_the_hierarchy(server):
    more = {"parent": at("US/NE"), "key": "Bellevue", "id": "mine", "attributes": CITY}
    assert await outcome(server, caller("write:location/US"), CREATE, **more) == "FORBIDDEN"
    assert await outcome(server, caller("write:location"), CREATE, **more) is None


async def test_grants_of_another_hierarchy_have_no_effect(server):
    for who in (caller("write:category"), caller()):
        assert await outcome(server, who, UPDATE, node=at("US")) == "NOT_FOUND"
        assert await outcome(server, who, CREATE, key="AT", attributes={"country": {}}) == "FORBIDDEN"


async def test_idempotency_keys_are_separate_for_each_caller(server):
    query = """mutation($key: String!) {
      createLocation(
        input: {parent: {path: "US/NE"}, key: $key, name: "N", attributes: { city: {} }}, idempotencyKey: "once"
      ) { node { path } } }"""
    one, other = (caller("write:location/US", name=name) for name in ("one", "other"))
    first = await server.write(one, query, key="Bellevue")
    assert await server.write(one, query, key="Bellevue") == first
    assert await outcome(server, other, query, key="Kearney") is None
    assert await outcome(server, one, query, key="Kearney") == "BAD_USER_INPUT"
    taken = await server.refusal(other, query.replace("once", "twice"), key="Bellevue")
    assert taken[0] == "ALREADY_EXISTS"


async def id_of(server, path):
    found = await server.data(sees_all(), "query($path: Path!) { location(path: $path) { id } }", path=path)
    return found["location"]["id"]


async def test_a_hidden_id_has_the_error_of_a_missing_one(server):
    who, hidden, absent = caller("write:location/US/NE"), await id_of(server, "US/NEVADA"), "location:NOWHERE"
    omaha = {"node": at("US/NE/Omaha")}
    for mutation, given in (
        (UPDATE, lambda by: {"node": by}),
        (DELETE, lambda by: {"node": by}),
        (MOVE, lambda by: {"node": by, "key": "x"}),
        (MOVE, lambda by: {"node": by, "to": under("US/NE")}),
        (MOVE, lambda by: omaha | {"to": {"parent": by}}),
        (MOVE, lambda by: omaha | {"position": {"after": by}}),
        (CREATE, lambda by: {"parent": by, "key": "x", "attributes": CITY}),
        (EDIT, lambda by: {"edits": [{"update": {"node": by, "name": "x"}}]}),
    ):
        told = [await server.write(who, mutation, **given({"id": one})) for one in (hidden, absent)]
        assert [codes(one) for one in told] == [["NOT_FOUND"]] * 2
        assert str(told[0]).replace(hidden, absent) == str(told[1])


async def test_an_id_requires_the_grant_on_the_path_of_its_node(server):
    who = sees_all("write:location/US/NE")
    for path, expected in (("US/NEVADA", "FORBIDDEN"), ("US/NE", None)):
        assert await outcome(server, who, UPDATE, node={"id": await id_of(server, path)}) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"update": {"node": at("US/NEVADA"), "name": "x"}},
        {"create": {"key": "x", "name": "x", "attributes": {"country": {}}}},
        {"create": {"parent": at("US/NE"), "key": "x", "name": "x", "attributes": CITY, "id": "mine"}},
        {"move": {"node": at("US/NE/Omaha"), "to": under("US/NEVADA")}},
        {"move": {"node": at("US/NEVADA/Reno"), "to": under("US/NE")}},
        {"move": {"node": at("US/NE"), "position": {"first": True}}},
        {"delete": {"node": at("US/NE"), "policy": "REPARENT"}},
        {"delete": {"node": at("FR")}},
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_batch_with_a_forbidden_edit_writes_nothing(server, wrong, is_first):
    who = caller("write:location/US/NE", "read:location/FR", "read:location/US/NEVADA")
    allowed = [{"update": {"node": at("US/NE/Lincoln"), "name": "Else"}}, {"delete": {"node": at("US/NE/Omaha/68118")}}]
    edits = [wrong, *allowed] if is_first else [*allowed, wrong]
    every = "{ locations { nodes { path name revision descendants { nodes { path name revision } } } } }"
    before = await server.data(sees_all(), every)
    assert await outcome(server, who, EDIT, edits=edits) == "FORBIDDEN"
    assert await server.data(sees_all(), every) == before
    assert await outcome(server, who, EDIT, edits=allowed) is None


async def test_edits_of_a_batch_are_checked_at_the_paths_that_they_have_then(server):
    out = {"move": {"node": at("US/NE/Omaha"), "to": under("US/NEVADA")}}
    again = {"update": {"node": at("US/NEVADA/Omaha"), "name": "x"}}
    assert await outcome(server, caller("write:location/US/NE"), EDIT, edits=[out, again]) == "NOT_FOUND"
    assert await outcome(server, sees_all("write:location/US"), EDIT, edits=[out, again]) is None
