"""Mutations, and the reads after them, on both stores."""

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.engine import ReadUsage
from store.model.records import key_of
from store.writing.create_update import Create
from store.writing.writer import Writer
from tests import invariants
from tests.serving import serving
from tests.systems.writing import Clients, plant


@pytest.fixture
async def clients(store):
    made = Clients(store)
    await plant(made)
    yield made
    await invariants.check(store)


async def rename(clients, *changes):
    """Rename nodes, given by their path and new key, one after the other."""
    for path, key in changes:
        await clients.ask(f'mutation {{ renameLocation(path: "{path}", key: "{key}") {{ node {{ id }} }} }}')


async def keys(clients, path):
    answer = await clients.ask("query($p: Path!) { location(path: $p) { children { nodes { key } } } }", p=path)
    return [node["key"] for node in answer["location"]["children"]["nodes"]]


# -- create and update -------------------------------------------------------------------------------------------------


async def test_a_node_is_read_as_it_was_created(clients):
    made = await clients.ask("""mutation { createLocation(parent: "US/NE", key: "Bellevue", name: "Bellevue", id: "7",
        attributes: {city: {population: 64, timezone: "America/Chicago"}}) {
        plan { nodes } node { id path level revision changedBy parent { childCount } ... on City { timezone } } } }""")
    assert made["createLocation"] == {
        "plan": None,
        "node": {
            "id": "location:7", "path": "US/NE/Bellevue", "level": "CITY", "revision": 1, "changedBy": None,
            "parent": {"childCount": 3}, "timezone": "America/Chicago",
        },
    }  # fmt: skip
    found = await clients.ask('{ city(id: "location:7") { path population } location(path: "US") { descendantCount } }')
    assert found == {"city": {"path": "US/NE/Bellevue", "population": 64}, "location": {"descendantCount": 7}}


async def test_an_update_keeps_what_is_left_out_and_clears_what_is_null(clients):
    node = "{ node { name revision ... on State { population code } } }"
    one = await clients.ask(f'mutation {{ updateLocation(path: "US/NE", name: "Nebraska") {node} }}')
    assert one["updateLocation"]["node"] == {"name": "Nebraska", "revision": 2, "population": 1_900_000, "code": None}
    two = await clients.ask(
        f'mutation {{ updateLocation(path: "US/NE", attributes: {{state: {{population: null, code: "NE"}}}}) {node} }}'
    )
    assert two["updateLocation"]["node"] == {"name": "Nebraska", "revision": 3, "population": None, "code": "NE"}


# -- moves and redirects -----------------------------------------------------------------------------------------------


async def test_everything_that_takes_a_path_leads_from_a_former_one(clients):
    """After renames of the node and of what is above it, in an order that no path from root to node tells."""
    await rename(clients, ("US/NE", "N"), ("US/N/Omaha", "O"), ("US/N", "Nebraska"))
    await clients.ask(
        'mutation { createLocation(parent: "US/Nebraska/O", key: "new", name: "Newest", '
        "attributes: {postalCode: {latitude: 1, longitude: 1}}) { node { id } } }"
    )
    now = {"path": "US/Nebraska/O"}
    found = await clients.ask("""query($former: Path = "US/NE/Omaha", $entity: String = "US/NE/Omaha") {
        location(path: $former) { path } city(path: $former) { path } locationsByPath(paths: [$former]) { path }
        _entities(representations: [{__typename: "City", path: $entity}]) { ... on City { path } }
        searchLocations(text: "newest", under: $former) { nodes { path } }
        locationsNear(latitude: 1, longitude: 1, under: $former) { nodes { path } } }""")
    below = {"nodes": [{"path": "US/Nebraska/O/new"}]}
    assert found == {
        "location": now, "city": now, "locationsByPath": [now], "_entities": [now],
        "searchLocations": below, "locationsNear": below,
    }  # fmt: skip
    # Between the two renames it had this path, too; and where its former path is taken, that node answers.
    assert await clients.ask('{ location(path: "US/N/Omaha") { path } }') == {"location": now}


async def test_a_former_path_takes_three_requests_more_however_many_moves_there_were(clients):
    await rename(clients, ("US/NE", "N"), ("US/N/Omaha", "O"), ("US/N", "M"))
    await rename(clients, ("US/M/O", "P"), ("US/M", "NE"), ("US/NE/P", "Q"))
    await clients.ask('mutation { moveLocation(path: "US/NE/Q", to: "US/MO") { node { id } } }')
    reads = {}
    for path in ("US/MO/Q", "US/NE/Omaha", "US/N/Omaha", "US/M/P", "US/NE/Q", "US/MO/never"):
        reader = Clients(clients.store)
        found = (await reader.ask("query($path: Path!) { location(path: $path) { path } }", path=path))["location"]
        assert found == (None if path.endswith("never") else {"path": "US/MO/Q"})
        reads[path] = reader.request.reads.requests
    assert [*reads.values()] == [1, 4, 4, 4, 4, 2]


async def test_mutations_follow_no_redirects(clients):
    await rename(clients, ("US/NE", "Nebraska"))
    code, _ = await clients.refusal('mutation { updateLocation(path: "US/NE", name: "x") { node { path } } }')
    assert code == "NOT_FOUND"


# -- deletions ---------------------------------------------------------------------------------------------------------


async def test_a_node_with_children_is_deleted_with_them_or_without_or_not_at_all(clients):
    code, message = await clients.refusal('mutation { deleteLocation(path: "US/NE") { node { path } } }')
    assert (code, message.startswith("US/NE has 2 children")) == ("NOT_EMPTY", True)
    await clients.ask('mutation { deleteLocation(path: "US/NE/Omaha", policy: CASCADE) { node { path } } }')
    await clients.ask('mutation { deleteLocation(path: "US/NE", policy: REPARENT) { node { path } } }')
    found = await clients.ask('{ location(path: "US") { descendants { nodes { path } } } }')
    paths = [node["path"] for node in found["location"]["descendants"]["nodes"]]
    assert paths == ["US/Lincoln", "US/MO", "US/MO/St. Louis"]


async def test_a_deletion_is_undone_by_a_creation_that_names_the_old_id(clients):
    gone = (await clients.ask('mutation { gone: deleteLocation(path: "US/NE/Lincoln") { node { id name } } }'))["gone"]
    create = """mutation($id: ID) { made: createLocation(parent: "US/NE", key: "Lincoln", name: "Lincoln", id: $id,
        attributes: { city: {} }) { node { id revision history { nodes { revision } } } } }"""
    other = (await clients.ask(create))["made"]["node"]
    assert (other["id"] != gone["node"]["id"], other["revision"]) == (True, 1)
    assert other["history"] == {"nodes": [{"revision": 1}]}
    await clients.ask('mutation { deleteLocation(path: "US/NE/Lincoln") { node { id } } }')
    undone = (await clients.ask(create, id=gone["node"]["id"]))["made"]["node"]
    assert (undone["id"], undone["revision"]) == (gone["node"]["id"], 2)
    assert undone["history"] == {"nodes": [{"revision": 2}, {"revision": 1}]}


# -- terms -------------------------------------------------------------------------------------------------------------


async def test_a_dry_run_returns_its_plan_and_changes_nothing(clients):
    plan = "{ node { path } plan { nodes transactions collisions writeUnits } }"
    answer = await clients.ask(f"""mutation {{
        move: renameLocation(path: "US/NE", key: "X", dryRun: true) {plan}
        collision: renameLocation(path: "US/NE", key: "MO", dryRun: true) {plan}
        nothing: renameLocation(path: "US/NE", key: "NE", dryRun: true) {plan} }}""")
    units = answer["move"]["plan"].pop("writeUnits")
    assert 4 * 10 < units + 20 < 4 * 20 + 20
    assert answer["move"] == {"node": None, "plan": {"nodes": 4, "transactions": 1, "collisions": []}}
    nothing = {"nodes": 0, "transactions": 0, "collisions": [], "writeUnits": 0}
    assert answer["nothing"]["plan"] == nothing
    assert answer["collision"]["plan"] == nothing | {"collisions": ["US/MO"]}
    assert await keys(clients, "US") == ["MO", "NE"]


async def test_the_same_idempotency_key_changes_nothing_twice_and_answers_the_same(clients):
    rename = 'mutation { renameLocation(path: "US/NE", key: "X", idempotencyKey: "k1") { node { id path } } }'
    first = await clients.ask(rename)
    assert await clients.ask(rename) == first
    code, message = await clients.refusal(rename.replace('"X"', '"Y"'))
    assert (code, "another change" in message) == ("BAD_USER_INPUT", True)
    delete = 'mutation { deleteLocation(path: "US/MO", policy: CASCADE, idempotencyKey: "k2") { node { id path } } }'
    assert await clients.ask(delete) == await clients.ask(delete)


async def test_a_repeated_mutation_returns_the_node_as_it_was_first_written(clients):
    update = """mutation { updateLocation(path: "US/NE/Omaha", attributes: { city: { %s } }, idempotencyKey: "k") {
        node { path revision ... on City { timezone population } } } }"""
    one, other = 'timezone: "UTC", population: 7', 'population: 7, timezone: "UTC"'
    first = await clients.ask(update % one)
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { updateLocation(path: "US/NE/Omaha", name: "O") { node { id } } }')
    await rename(clients, ("US/NE", "X"))
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { deleteLocation(path: "US/X", policy: CASCADE) { node { id } } }')
    assert await clients.ask(update % one) == first
    code, _ = await clients.refusal(update % 'population: 8, timezone: "UTC"')
    assert code == "BAD_USER_INPUT"


def test_a_server_that_may_not_write_says_so_to_callers_without_a_grant():
    with serving(create_app(Settings(store="sqlite://:memory:"))) as url:
        for mutation in (
            'createLocation(key: "X", name: "x", attributes: {country: {}})',
            'updateLocation(path: "US/NE", name: "x")',
            'renameLocation(path: "US/NE", key: "X")',
            'moveLocation(path: "US/NE", to: null, dryRun: true)',
            'reorderLocation(path: "US/none", first: true)',
            'deleteLocation(path: "US", policy: CASCADE)',
        ):
            body = {"query": f"mutation {{ {mutation} {{ node {{ path }} }} }}"}
            (error,) = httpx.post(f"{url}/graphql", json=body).json()["errors"]
            assert error["extensions"]["code"] == "FORBIDDEN"
            assert error["message"].startswith("Mutations are disabled on this server; CLADE_WRITES=granted or on")


@pytest.mark.parametrize(
    ("mutation", "code"),
    [
        ('createLocation(key: "X", name: "x", attributes: {city: {}})', "MISPLACED"),
        ('createLocation(parent: "US/KS", key: "X", name: "x", attributes: {city: {}})', "NOT_FOUND"),
        ('createLocation(parent: "US", key: "NE", name: "x", attributes: {state: {}})', "ALREADY_EXISTS"),
        ('createLocation(parent: "US", key: "", name: "x", attributes: {state: {}})', "BAD_PATH"),
        ('createLocation(parent: "US", key: "N\\u200bE", name: "x", attributes: {state: {}})', "BAD_PATH"),
        ('createLocation(key: "\u2060", name: "x", attributes: {country: {}})', "BAD_PATH"),
        ('createLocation(parent: "US", key: " NE", name: "x", attributes: {state: {}})', "BAD_PATH"),
        ('renameLocation(path: "US/NE", key: "N\u00adE")', "BAD_PATH"),
        ('renameLocation(path: "US/NE", key: "New\u00a0York")', "BAD_PATH"),
        ('renameLocation(path: "US/NE", key: "New  York")', "BAD_PATH"),
        ('createLocation(parent: "US", key: "X", name: "x", id: "a b", attributes: {state: {}})', "BAD_USER_INPUT"),
        ('createLocation(parent: "US", key: "X", name: "x", id: "", attributes: {state: {}})', "BAD_USER_INPUT"),
        ('updateLocation(path: "US/NE", attributes: {city: {}})', "WRONG_LEVEL"),
        ('updateLocation(path: "US/NE", name: null)', "BAD_USER_INPUT"),
        ('renameLocation(path: "US/NE", key: "MO")', "ALREADY_EXISTS"),
        ('moveLocation(path: "US/NE", to: "US/NE/Omaha")', "MISPLACED"),
        ('moveLocation(path: "US/NE", to: "US/MO")', "MISPLACED"),
        ('moveLocation(path: "US/NE", to: null)', "MISPLACED"),
        ('moveLocation(path: "US/NE")', "BAD_USER_INPUT"),
        ('moveLocation(path: "US/NE", to: "FR")', "NOT_FOUND"),
        ('reorderLocation(path: "US/NE")', "BAD_USER_INPUT"),
        ('reorderLocation(path: "US/NE", after: "US/NE")', "BAD_USER_INPUT"),
        ('reorderLocation(path: "US/NE", after: "US/NE/Omaha")', "BAD_USER_INPUT"),
        ('deleteLocation(path: "US/KS")', "NOT_FOUND"),
        ('updateLocation(path: "US/NE", name: "x", expectedRevision: 4)', "CONFLICT"),
        ('deleteLocation(path: "US/MO/St. Louis", idempotencyKey: "")', "BAD_USER_INPUT"),
    ],
)
async def test_an_invalid_mutation_is_rejected_with_a_code_and_changes_nothing(clients, mutation, code):
    before = await invariants.all_items(clients.store)
    refused, message = await clients.refusal(f"mutation {{ {mutation} {{ node {{ path }} }} }}")
    assert refused == code
    assert message.endswith(".")
    after = await invariants.all_items(clients.store)
    assert sorted(after, key=key_of) == sorted(before, key=key_of)


async def test_a_stored_key_that_looks_like_another_is_changed_moved_and_renamed(clients):
    odd = "Om\u200baha "
    await Writer(clients.store).write(Create(Location.definition(), ("US", "NE", odd), "CITY", "x", {}), ReadUsage())
    for change in (
        f'updateLocation(path: "US/NE/{odd}", name: "New")',
        f'moveLocation(path: "US/NE/{odd}", to: "US/MO")',
        f'renameLocation(path: "US/MO/{odd}", key: "{odd}")',
        f'createLocation(parent: "US/MO/{odd}", key: "1", name: "One", attributes: {{store: {{}}}})',
        f'renameLocation(path: "US/MO/{odd}", key: "O")',
    ):
        await clients.ask(f"mutation {{ {change} {{ node {{ id }} }} }}")
    found = await clients.ask('{ location(path: "US/MO/O") { name children { nodes { key } } } }')
    assert found["location"] == {"name": "New", "children": {"nodes": [{"key": "1"}]}}


async def test_each_field_of_one_operation_sees_what_those_before_it_wrote(clients):
    counted = "{ node { parent { childCount children { nodes { key } } } } }"
    answer = await clients.ask(f"""mutation {{
        a: createLocation(parent: "US", key: "A", name: "A", attributes: {{state: {{}}}}) {counted}
        b: createLocation(parent: "US", key: "B", name: "B", attributes: {{state: {{}}}}) {counted} }}""")
    assert [answer[one]["node"]["parent"]["childCount"] for one in "ab"] == [3, 4]
    assert [node["key"] for node in answer["b"]["node"]["parent"]["children"]["nodes"]] == ["A", "B", "MO", "NE"]
