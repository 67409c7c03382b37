"""Several edits or none: what the answer tells of them, on both stores."""

import pytest

from graph.hierarchies.locations import Location
from tests.invariants import all_items
from tests.rights.asking import Server, caller, codes

EDIT = """mutation($edits: [LocationEdit!]!, $dryRun: Boolean! = false, $key: String) {
    editLocations(edits: $edits, dryRun: $dryRun, idempotencyKey: $key) {
        nodes { path name revision parent { path } children { nodes { key } } history { totalCount } }
        plan { nodes transactions writeUnits } } }"""


def create(parent, key, **given):
    where = {} if parent is None else {"parent": {"path": parent}}
    level = {0: "country", 1: "state", 2: "city", 3: "postalCode"}[0 if parent is None else 1 + parent.count("/")]
    return {"create": {**where, "key": key, "name": key, "attributes": {level: {}}, **given}}


def update(path, **given):
    return {"update": {"node": {"path": path}, **given}}


def move(path, **given):
    return {"move": {"node": {"path": path}, **given}}


def delete(path, **given):
    return {"delete": {"node": {"path": path}, **given}}


async def made(clients, *edits, **options):
    return (await clients.ask(EDIT, edits=list(edits), **options))["editLocations"]


async def faults(clients, *edits, **options):
    before = await all_items(clients.store)
    found = [
        (one["edit"], one["code"], one["field"]) for one in await clients.faults(EDIT, edits=list(edits), **options)
    ]
    assert await all_items(clients.store) == before
    return found


async def test_each_edit_sees_those_before_it_and_nodes_are_as_all_have_left_them(clients):
    """By paths that earlier edits make, by ids that they give, and by those of nodes that they have moved."""
    omaha = (await clients.ask('{ location(path: "US/NE/Omaha") { id } }'))["location"]["id"]
    found = await made(
        clients,
        create("US", "KS", id="kansas"),
        move("US/NE/Omaha", to={"parent": {"id": "location:kansas"}}, key="Wichita"),
        {"update": {"node": {"id": omaha}, "name": "Wichita", "expectedRevision": 1}},
        update("US/KS/Wichita", names=[{"language": "de", "text": "W"}], expectedRevision=1),
        create("US/KS/Wichita", "67201"),
        delete("US/KS/Wichita/68118"),
        create("US/NE", "Omaha", name="Another"),
        delete("US/NE", policy="REPARENT"),
    )  # fmt: skip
    paths = "US/KS US/KS/Wichita US/KS/Wichita US/KS/Wichita US/KS/Wichita/67201 US/KS/Wichita/68118 US/Omaha US/NE"
    assert [one["path"] for one in found["nodes"]] == paths.split()
    wichita = found["nodes"][1]
    assert (wichita["name"], wichita["revision"], wichita["parent"]) == ("Wichita", 3, {"path": "US/KS"})
    assert wichita["children"] == {"nodes": [{"key": "67201"}]}
    assert wichita == found["nodes"][2] == found["nodes"][3]
    for gone in (found["nodes"][5], found["nodes"][7]):
        assert (gone["parent"], gone["children"]) == (None, {"nodes": []})


async def test_faults_of_all_edits_come_at_once_and_nothing_is_written(clients):
    """But those that may only follow from an earlier one, as of what is below a node that was not made."""
    found = await faults(
        clients,
        create("US/NE/Omaha", "68118"),
        create("US/NE", "Hall"),
        update("US/MO", attributes={"state": {"population": -1}}, expectedRevision=7),
        create("US", "KS", attributes={"state": {"population": -2}}, id="k"),
        create("US/KS", "Wichita"),
        {"create": {"parent": {"id": "location:k"}, "key": "x", "name": "x", "attributes": {"city": {}}}},
        move("US/NE/Lincoln", to={"parent": {"path": "US/KS"}}),
        delete("US/NE/Omaha"),
        delete("US/NE"),
        delete("US/Nowhere"),
    )
    assert found == [
        (0, "ALREADY_EXISTS", ["key"]),
        (2, "BAD_USER_INPUT", ["attributes", "state", "population"]),
        (2, "CONFLICT", ["expectedRevision"]),
        (3, "BAD_USER_INPUT", ["attributes", "state", "population"]),
        (7, "NOT_EMPTY", ["policy"]),
        (9, "NOT_FOUND", ["node"]),
    ]
    stale = {"expectedRevision": 99}
    lincoln = (await clients.ask('{ location(path: "US/NE/Lincoln") { id } }'))["location"]["id"]
    for first, second in [
        (delete("US/NE", policy="REPARENT", **stale), update("US/Omaha", name="O")),
        (delete("US/NE/Lincoln", **stale), create("US/MO", "Lincoln", id=lincoln)),
        (
            move("US/NE/Omaha", to={"parent": {"path": "US/MO"}}, **stale),
            delete("US/NE/Omaha/68118", policy="REFUSE", **stale),
        ),
        (delete("US/NE/Omaha/68118", **stale), delete("US/NE/Omaha")),
    ]:
        assert await faults(clients, first, second) == [(0, "CONFLICT", ["expectedRevision"])]
    absent = [{"delete": {"node": {"id": f"location:no{n}"}}} for n in range(3)]
    assert await faults(clients, *absent, update("US/N"), update("US/N")) == [
        (place, "NOT_FOUND", ["node"]) for place in range(4)
    ]
    assert await faults(clients) == [(None, "BAD_USER_INPUT", None)]
    assert await faults(clients, *[update("US/NE", name="x")] * 101) == [(None, "BAD_USER_INPUT", None)]
    revised = [update("US/NE", name=name, expectedRevision=number) for name, number in [("a", 1), ("b", 1), ("c", 2)]]
    assert await faults(clients, *revised) == [(2, "CONFLICT", ["expectedRevision"])]


async def test_a_batch_of_one_tree_is_one_version_and_one_entry_of_its_feed(clients):
    feed = """query($after: String) {
        changes(hierarchy: LOCATION, tree: "US", after: $after) { cursor changes { event path } } }"""
    since = (await clients.ask(feed))["changes"]["cursor"]
    planned = await made(
        clients, create("US/NE", "Hall"), update("US/NE/Hall", name="H"), create(None, "CA"), dryRun=True
    )
    assert (planned["nodes"], planned["plan"]["nodes"], planned["plan"]["transactions"]) == (None, 2, 1)
    before = {item["pk"]: item["n"] for item in await all_items(clients.store) if item["sk"] == "!"}
    await made(clients, create("US/NE", "Hall"), update("US/NE/Hall", name="H"), create(None, "CA"))
    after = {item["pk"]: item["n"] for item in await all_items(clients.store) if item["sk"] == "!"}
    assert after == before | {
        "location#US": before["location#US"] + 1,
        "location": before["location"] + 1,
        "location#CA": 1,
    }
    told = (await clients.ask(feed, after=since))["changes"]["changes"]
    assert [(one["event"], one["path"]) for one in told] == [("CREATED", "US/NE/Hall"), ("UPDATED", "US/NE/Hall")]


async def test_a_repeated_batch_answers_with_the_first_result(clients):
    edits = [create("US/NE", "Hall"), update("US/NE", name="N"), delete("US/NE/Omaha/68118")]
    first = await made(clients, *edits, key="k")
    assert await made(clients, *edits, key="k") == first
    assert await clients.faults(EDIT, edits=edits[:2], key="k") != []
    await made(clients, move("US/NE/Hall", key="Haul"), update("US/NE/Omaha", name="O"))
    again = await made(clients, *edits, key="k")
    assert [one["path"] for one in again["nodes"]] == [one["path"] for one in first["nodes"]]


async def test_rights_are_those_of_each_edit(clients):
    await made(clients, create("US/NE", "Hall"))
    server = Server(clients.store, Location)
    part = caller("write:location/US/NE", "read:location/US/MO")

    async def codes_of(*edits):
        return set(codes(await server.write(part, EDIT, edits=list(edits))))

    allowed = [update("US/NE/Hall", name="h"), create("US/NE", "York")]
    assert await codes_of(*allowed, update("US/MO", name="m"), create("US/NE", "York")) == {"FORBIDDEN"}
    assert await codes_of(create("US/NE", "Hall"), move("US/NE/Hall", to={"parent": {"path": "US/MO"}})) == {
        "FORBIDDEN"
    }
    assert await codes_of(*allowed, update("US", name="u"), update("CA", name="c")) == {"NOT_FOUND"}
    assert await codes_of(*allowed) == set()


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
async def test_too_many_changes_for_a_transaction_are_refused_with_the_edit(clients):
    edits = [create("US/NE", f"n{n}") for n in range(100)]
    (fault,) = await clients.faults(EDIT, edits=edits)
    assert (fault["edit"], fault["code"], "303 writes" in fault["message"]) == (32, "TOO_LARGE", True)
    assert await clients.faults(EDIT, edits=edits, dryRun=True) == [fault]
    wrong = await clients.faults(EDIT, edits=[*edits[:50], delete("US/Nowhere")])
    assert [(one["edit"], one["code"]) for one in wrong] == [(32, "TOO_LARGE"), (50, "NOT_FOUND")]
    await made(clients, *edits[:32], key="k")


async def test_many_edits_are_few_requests(clients):
    await made(clients, *[create("US/NE", f"n{n}") for n in range(20)])
    assert clients.request.reads.requests <= 4
    await made(clients, *[update(f"US/NE/n{n}", name="new") for n in range(20)], key="x")
    assert clients.request.reads.requests <= 4


async def test_values_that_the_schema_does_not_take_are_all_told_with_their_places(clients):
    one_of = "exactly one field must be specified"
    edits = [
        move("US/NE", position={"first": True, "last": True}),
        update("none"),
        move("US", position={"first": None}),
        {},
    ]
    found = await clients.errors(EDIT, edits=edits)
    assert [(error["extensions"]["code"], one_of in error["message"]) for error in found] == [
        ("BAD_USER_INPUT", True)
    ] * 3
    places = [error["message"].partition(" at ")[2].partition(":")[0] for error in found]
    assert places == ["[0].move.position", "[2].move.position.first", "[3]"]
