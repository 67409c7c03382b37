"""Mutations, and the reads after them, on both stores."""

import asyncio

import pytest

from store.model.items import key_of
from tests import invariants
from tests.counting_store import CountingStore
from tests.systems.writing import Clients, plant


@pytest.fixture
async def clients(store):
    made = Clients(store)
    await plant(made)
    yield made
    await invariants.check(store)


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


async def test_an_update_that_changes_nothing_writes_nothing(clients):
    answer = await clients.ask(
        'mutation { updateLocation(path: "US/NE", name: "NE", expectedRevision: 1) { node { revision } } }'
    )
    assert answer == {"updateLocation": {"node": {"revision": 1}}}


async def test_levels_without_attributes_are_given_as_true(clients):
    answer = await clients.ask("""mutation {
        a: createCategoryNode(key: "TV", name: "Television", attributes: {category: true}) { node { path } }
        b: createCategoryNode(parent: "TV", key: "LG", name: "LG", attributes: {product: {price: "799.90"}}) {
            node { ... on Product { price } } } }""")
    assert answer == {"a": {"node": {"path": "TV"}}, "b": {"node": {"price": "799.90"}}}


async def test_enums_and_lists_are_accepted_as_they_are_serialized(clients):
    answer = await clients.ask("""mutation {
        a: createAssetNode(key: "E", name: "E", attributes: {equipment: {installed: "2026-10-05"}}) { node { path } }
        b: createAssetNode(parent: "E", key: "1", name: "1", attributes: {audit: {result: FAILED, findings: ["a"]}}) {
            node { ... on Audit { result findings } } } }""")
    assert answer["b"]["node"] == {"result": "FAILED", "findings": ["a"]}


# -- moves and redirects -----------------------------------------------------------------------------------------------


async def test_after_a_rename_every_old_path_leads_to_its_node(clients):
    renamed = await clients.ask(
        'mutation { renameLocation(path: "US/NE", key: "Nebraska") { node { path revision } } }'
    )
    assert renamed["renameLocation"]["node"] == {"path": "US/Nebraska", "revision": 1}
    for planned in (True, False):
        reader = Clients(clients.store, planned=planned)
        found = await reader.ask('{ a: location(path: "US/NE") { path } b: city(path: "US/NE/Omaha") { path } }')
        assert found == {"a": {"path": "US/Nebraska"}, "b": {"path": "US/Nebraska/Omaha"}}


async def test_a_redirect_costs_three_reads_and_nothing_where_the_tree_has_no_aliases(clients):
    reads = []
    for change in ('{ location(path: "US/KS/X") { path } }', None, '{ location(path: "US/NE/Omaha") { path } }'):
        if change is None:
            await clients.ask('mutation { renameLocation(path: "US/NE", key: "Nebraska") { node { path } } }')
            continue
        reader = Clients(clients.store)
        await reader.ask(change)
        reads.append(reader.request.reads.requests)
    assert reads == [1, 4]


async def test_redirects_follow_one_another_and_end_where_they_would_turn_around(clients):
    for path, key in [("US/NE", "A"), ("US/A", "B"), ("US/B", "C")]:
        await clients.ask(
            "mutation($path: Path!, $key: String!) { renameLocation(path: $path, key: $key) { node { path } } }",
            path=path,
            key=key,
        )
    await clients.ask('mutation { renameLocation(path: "US/C/Omaha", key: "O") { node { path } } }')
    await clients.ask('mutation { moveLocation(path: "US/C/O", to: "US/MO") { node { path } } }')
    found = await clients.ask(
        '{ a: location(path: "US/NE/Omaha/68118") { path } b: location(path: "US/B/none") { path } }'
    )
    assert found == {"a": {"path": "US/MO/O/68118"}, "b": None}
    await clients.ask('mutation { renameLocation(path: "US/C", key: "NE") { node { path } } }')
    found = await clients.ask('{ a: location(path: "US/NE") { path } b: location(path: "US/A/Lincoln") { path } }')
    assert found == {"a": {"path": "US/NE"}, "b": {"path": "US/NE/Lincoln"}}


async def test_everything_that_takes_a_path_leads_from_a_former_one(clients):
    """After renames of the node and of what is above it, in an order that no path from root to node tells."""
    for path, key in [("US/NE", "N"), ("US/N/Omaha", "O"), ("US/N", "Nebraska")]:
        await clients.ask(f'mutation {{ renameLocation(path: "{path}", key: "{key}") {{ node {{ id }} }} }}')
    await clients.ask(
        'mutation { createLocation(parent: "US/Nebraska/O", key: "new", name: "Newest", '
        "attributes: {postalCode: {latitude: 1, longitude: 1}}) { node { id } } }"
    )
    now = {"path": "US/Nebraska/O"}
    found = await clients.ask(
        """query($former: Path!, $entity: String!) {
        location(path: $former) { path } city(path: $former) { path } locationsByPath(paths: [$former]) { path }
        _entities(representations: [{__typename: "City", path: $entity}]) { ... on City { path } }
        searchLocations(text: "newest", under: $former) { nodes { path } }
        locationsNear(latitude: 1, longitude: 1, under: $former) { nodes { path } } }""",
        former="US/NE/Omaha",
        entity="US/NE/Omaha",
    )
    assert found == {
        "location": now, "city": now, "locationsByPath": [now], "_entities": [now],
        "searchLocations": {"nodes": [{"path": "US/Nebraska/O/new"}]},
        "locationsNear": {"nodes": [{"path": "US/Nebraska/O/new"}]},
    }  # fmt: skip
    # Between the two renames it had this path, too; and where its former path is taken, that node answers.
    assert await clients.ask('{ location(path: "US/N/Omaha") { path } }') == {"location": now}


async def test_a_former_path_takes_three_requests_more_however_many_moves_there_were(clients):
    for path, key in [
        ("US/NE", "N"),
        ("US/N/Omaha", "O"),
        ("US/N", "M"),
        ("US/M/O", "P"),
        ("US/M", "NE"),
        ("US/NE/P", "Q"),
    ]:
        await clients.ask(f'mutation {{ renameLocation(path: "{path}", key: "{key}") {{ node {{ id }} }} }}')
    await clients.ask('mutation { moveLocation(path: "US/NE/Q", to: "US/MO") { node { id } } }')
    reads = {}
    for path in ("US/MO/Q", "US/NE/Omaha", "US/N/Omaha", "US/M/P", "US/NE/Q", "US/MO/never"):
        reader = Clients(clients.store)
        found = (await reader.ask("query($path: Path!) { location(path: $path) { path } }", path=path))["location"]
        assert found == (None if path.endswith("never") else {"path": "US/MO/Q"})
        reads[path] = reader.request.reads.requests
    assert [*reads.values()] == [1, 4, 4, 4, 4, 2]


async def test_the_former_path_of_a_deleted_node_leads_nowhere_until_it_is_restored(clients):
    rename = 'mutation { renameLocation(path: "US/NE/Omaha", key: "O") { node { id } } }'
    node_id = (await clients.ask(rename))["renameLocation"]["node"]["id"]
    ask = '{ former: location(path: "US/NE/Omaha") { path } last: location(path: "US/NE/O") { path } }'
    await clients.ask('mutation { deleteLocation(path: "US/NE/O", policy: CASCADE) { node { id } } }')
    assert await clients.ask(ask) == {"former": None, "last": None}
    await clients.ask(
        "mutation($id: ID!) { createLocation(parent: "
        '"US/MO", key: "R", name: "R", id: $id, attributes: {city: {}}) { node { id } } }',
        id=node_id,
    )
    assert await clients.ask(ask) == {"former": {"path": "US/MO/R"}, "last": None}


async def test_a_new_node_at_an_old_path_wins_for_exactly_that_path(clients):
    await clients.ask('mutation { renameLocation(path: "US/NE", key: "Nebraska") { node { path } } }')
    await clients.ask(
        'mutation { createLocation(parent: "US", key: "NE", name: "New", attributes: {state: {}}) { node { path } } }'
    )
    found = await clients.ask('{ a: location(path: "US/NE") { name } b: location(path: "US/NE/Omaha") { path } }')
    assert found == {"a": {"name": "New"}, "b": {"path": "US/Nebraska/Omaha"}}


async def test_mutations_follow_no_redirects(clients):
    await clients.ask('mutation { renameLocation(path: "US/NE", key: "Nebraska") { node { path } } }')
    code, _ = await clients.refusal('mutation { updateLocation(path: "US/NE", name: "x") { node { path } } }')
    assert code == "NOT_FOUND"


async def test_a_subtree_moves_to_another_tree_and_becomes_one(clients):
    await clients.ask('mutation { createLocation(key: "CA", name: "CA", attributes: {country: {}}) { node { path } } }')
    moved = await clients.ask(
        'mutation { moveLocation(path: "US/NE", to: "CA") { node { path descendantCount parent { path } } } }'
    )
    assert moved["moveLocation"]["node"] == {
        "path": "CA/NE", "descendantCount": 3, "parent": {"path": "CA"},
    }  # fmt: skip
    found = await clients.ask('{ location(path: "US") { descendantCount } city(path: "US/NE/Omaha") { path } }')
    assert found == {"location": {"descendantCount": 2}, "city": {"path": "CA/NE/Omaha"}}
    await clients.ask(
        'mutation { createCategoryNode(key: "a", name: "a", attributes: {category: true}) { node { id } } }'
    )
    await clients.ask(
        'mutation { createCategoryNode(parent: "a", key: "b", name: "b", attributes: {category: true})'
        " { node { id } } }"
    )
    await clients.ask('mutation { moveCategoryNode(path: "a/b", to: null) { node { path } } }')
    found = await clients.ask('{ categories { nodes { path } } categoryNode(path: "a/b") { path depth } }')
    assert found == {"categories": {"nodes": [{"path": "a"}, {"path": "b"}]}, "categoryNode": {"path": "b", "depth": 0}}


# -- order -------------------------------------------------------------------------------------------------------------


async def test_siblings_are_in_the_order_that_reorder_gives_them(clients):
    put = "mutation($p: Path!, $b: Path, $f: Boolean) {"
    put += " reorderLocation(path: $p, before: $b, first: $f) { node { id } } }"
    assert await keys(clients, "US") == ["MO", "NE"]
    await clients.ask(put, p="US/NE", b="US/MO")
    assert await keys(clients, "US") == ["NE", "MO"]
    await clients.ask(put, p="US/MO", f=True)
    assert await keys(clients, "US") == ["MO", "NE"]
    await clients.ask('mutation { renameLocation(path: "US/MO", key: "Z") { node { id } } }')
    assert await keys(clients, "US") == ["Z", "NE"]


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


async def test_another_revision_than_expected_is_a_conflict_that_names_the_current_one(clients):
    refused = await clients.refusal(
        'mutation { updateLocation(path: "US/NE", name: "x", expectedRevision: 4) { node { path } } }'
    )
    assert refused == ("CONFLICT", "US/NE is at revision 1, not 4; read it again and retry.")


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
    await clients.ask('mutation { renameLocation(path: "US/NE", key: "X") { node { id } } }')
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { deleteLocation(path: "US/X", policy: CASCADE) { node { id } } }')
    assert await clients.ask(update % one) == first
    code, _ = await clients.refusal(update % 'population: 8, timezone: "UTC"')
    assert code == "BAD_USER_INPUT"


async def test_a_server_that_may_not_write_forbids_it(clients):
    reader = Clients(clients.store, writes=False)
    code, message = await reader.refusal('mutation { deleteLocation(path: "US/MO") { node { path } } }')
    assert (code, "CLADE_WRITES=granted or on" in message) == ("FORBIDDEN", True)


@pytest.mark.parametrize(
    ("mutation", "code"),
    [
        ('createLocation(key: "X", name: "x", attributes: {city: {}})', "MISPLACED"),
        ('createLocation(parent: "US/KS", key: "X", name: "x", attributes: {city: {}})', "NOT_FOUND"),
        ('createLocation(parent: "US", key: "NE", name: "x", attributes: {state: {}})', "ALREADY_EXISTS"),
        ('createLocation(parent: "US", key: "", name: "x", attributes: {state: {}})', "BAD_PATH"),
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


async def test_a_path_that_would_exceed_the_limits_anywhere_below_is_rejected(clients):
    key = "x" * 300
    for parent in ("US/NE/Omaha", f"US/NE/Omaha/{key}"):
        await clients.ask(
            "mutation($p: Path!, $k: String!, $a: LocationAttributes!) {"
            ' createLocation(parent: $p, key: $k, name: "x", attributes: $a) { node { id } } }',
            p=parent,
            k=key,
            a={"neighborhood" if parent.endswith("Omaha") else "store": {}},
        )
    code, message = await clients.refusal(
        'mutation($k: String!) { renameLocation(path: "US/NE", key: $k) { node { id } } }', k="y" * 500
    )
    assert (code, "1024" in message) == ("BAD_PATH", True)


async def test_a_cached_response_shows_the_next_write(clients):
    question = '{ location(path: "US/NE") { name childCount } }'
    assert (await clients.ask(question))["location"] == {"name": "NE", "childCount": 2}
    await clients.ask('mutation { deleteLocation(path: "US/NE/Lincoln") { node { path } } }')
    assert (await clients.ask(question))["location"] == {"name": "NE", "childCount": 1}


async def test_each_field_of_one_operation_sees_what_those_before_it_wrote(clients):
    counted = "{ node { parent { childCount children { nodes { key } } } } }"
    answer = await clients.ask(f"""mutation {{
        a: createLocation(parent: "US", key: "A", name: "A", attributes: {{state: {{}}}}) {counted}
        b: createLocation(parent: "US", key: "B", name: "B", attributes: {{state: {{}}}}) {counted} }}""")
    assert [answer[one]["node"]["parent"]["childCount"] for one in "ab"] == [3, 4]
    assert [node["key"] for node in answer["b"]["node"]["parent"]["children"]["nodes"]] == ["A", "B", "MO", "NE"]


CREATE = """mutation($key: String!) { createLocation(parent: "US/NE", key: $key, name: $key, attributes: {city: {}}) {
    node { path parent { childCount } } } }"""


async def test_mutations_of_many_clients_at_once_are_few_commits_and_each_reads_its_own(clients, store):
    counted = CountingStore(store)
    crowd = Clients(counted)
    answers = await asyncio.gather(*[crowd.ask(CREATE, key=f"c{n}") for n in range(20)])
    nodes = [answer["createLocation"]["node"] for answer in answers]
    assert [node["path"] for node in nodes] == [f"US/NE/c{n}" for n in range(20)]
    assert len(counted.commits) == 1
    assert len(await keys(clients, "US/NE")) == 22


async def test_a_mutation_whose_client_goes_while_it_waits_is_not_made(clients, store):
    counted = CountingStore(store)
    counted.open.clear()
    crowd = Clients(counted)
    first, second, third = [asyncio.create_task(crowd.ask(CREATE, key=f"c{n}")) for n in range(3)]
    await counted.begun.wait()
    late = [asyncio.create_task(crowd.ask(CREATE, key=f"late{n}")) for n in range(3)]
    while crowd._writer.waiting < 3:  # noqa: ASYNC110 - they are on their way
        await asyncio.sleep(0)
    for gone in (first, late[1]):
        gone.cancel()
    counted.open.set()
    await asyncio.wait([first, second, third, *late])
    assert first.cancelled()
    assert late[1].cancelled()
    found = set(await keys(clients, "US/NE")) - {"Omaha", "Lincoln"}
    assert found == {"c0", "c1", "c2", "late0", "late2"}  # the commit of the first one had begun
