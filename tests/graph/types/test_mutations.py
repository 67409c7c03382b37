"""Mutations, and the reads after them, on both stores."""

import asyncio
import itertools

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
    made = await clients.ask("""mutation { createLocation(input: {parent: {path: "US/NE"}, key: "Bellevue",
      name: "Bellevue", id: "7", attributes: {city: {population: 64, timezone: "America/Chicago"}}}) {
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
    one = await clients.ask(
        f'mutation {{ updateLocation(input: {{node: {{path: "US/NE"}}, name: "Nebraska"}}) {node} }}'
    )
    assert one["updateLocation"]["node"] == {"name": "Nebraska", "revision": 2, "population": 1_900_000, "code": None}
    two = await clients.ask(
        f'mutation {{ updateLocation(input: {{node: {{path: "US/NE"}}, attributes: {{state: {{population: null,'
        f' code: "NE"}}}}}}) {node} }}'
    )
    assert two["updateLocation"]["node"] == {"name": "Nebraska", "revision": 3, "population": None, "code": "NE"}


async def test_an_update_that_changes_nothing_writes_nothing(clients):
    answer = await clients.ask(
        'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "NE", expectedRevision: 1})'
        " { node { revision } } }"
    )
    assert answer == {"updateLocation": {"node": {"revision": 1}}}


async def test_a_level_is_given_alone_where_it_has_no_attributes(clients):
    answer = await clients.ask("""mutation {
        a: createCategoryNode(input: {key: "TV", name: "Television", level: CATEGORY}) { node { path } }
        b: createCategoryNode(input: {parent: {path: "TV"}, key: "LG", name: "LG",
          attributes: {product: {price: "799.90"}}}) {
            node { ... on Product { price } } } }""")
    assert answer == {"a": {"node": {"path": "TV"}}, "b": {"node": {"price": "799.90"}}}


async def test_enums_and_lists_are_accepted_as_they_are_serialized(clients):
    answer = await clients.ask("""mutation {
        a: createAssetNode(input: {key: "E", name: "E", attributes: {equipment: {installed: "2026-10-05"}}})
          { node { path } }
        b: createAssetNode(input: {parent: {path: "E"}, key: "1", name: "1",
          attributes: {audit: {result: FAILED, findings: ["a"]}}}) {
            node { ... on Audit { result findings } } } }""")
    assert answer["b"]["node"] == {"result": "FAILED", "findings": ["a"]}


# -- moves and redirects -----------------------------------------------------------------------------------------------


async def test_after_a_rename_every_old_path_leads_to_its_node(clients):
    renamed = await clients.ask(
        'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Nebraska"}) { node { path revision } } }'
    )
    assert renamed["moveLocation"]["node"] == {"path": "US/Nebraska", "revision": 1}
    for planned in (True, False):
        reader = Clients(clients.store, planned=planned)
        found = await reader.ask('{ a: location(path: "US/NE") { path } b: city(path: "US/NE/Omaha") { path } }')
        assert found == {"a": {"path": "US/Nebraska"}, "b": {"path": "US/Nebraska/Omaha"}}


async def rename(clients, path, key):
    await clients.ask(
        "mutation($path: Path!, $key: String!) { moveLocation(input: {node: {path: $path}, key: $key})"
        " { node { path } } }",
        path=path,
        key=key,
    )


async def create(clients, parent, key, level="city"):
    await clients.ask(
        "mutation($parent: Path!, $key: String!) { createLocation(input: {parent: {path: $parent}, key: $key,"
        f" name: $key, attributes: {{{level}: {{}}}}}}) {{ node {{ path }} }} }}",
        parent=parent,
        key=key,
    )


async def at(clients, *paths):
    """The paths of the nodes that these paths lead to, by both ways to execute a query."""
    asked = " ".join(f'p{number}: location(path: "{path}") {{ path }}' for number, path in enumerate(paths))
    found = [await Clients(clients.store, planned=planned).ask(f"{{ {asked} }}") for planned in (True, False)]
    assert found[0] == found[1]
    return [node and node["path"] for node in found[0].values()]


async def test_a_former_path_follows_the_moves_in_their_order(clients):
    await rename(clients, "US/NE", "B")
    await rename(clients, "US/B/Omaha", "O")
    await rename(clients, "US/B", "C")
    former = ["US/NE/Omaha", "US/B/Omaha", "US/B/O", "US/NE/Omaha/68118"]
    assert await at(clients, *former) == [*["US/C/O"] * 3, "US/C/O/68118"]
    await create(clients, "US/C", "Omaha")
    assert await at(clients, *former) == [*["US/C/O"] * 3, "US/C/O/68118"]


async def test_a_former_path_leads_to_no_node_that_was_never_there(clients):
    await rename(clients, "US/NE", "B")
    await create(clients, "US/B", "new")
    await rename(clients, "US/B/new", "newer")
    assert await at(clients, "US/NE/new", "US/NE/newer", "US/B/new") == [None, None, "US/B/newer"]
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/B/Lincoln"}}) { node { path } } }')
    await create(clients, "US/B", "Lincoln")
    await rename(clients, "US/B/Lincoln", "L")
    assert await at(clients, "US/NE/Lincoln", "US/B/Lincoln") == [None, "US/B/L"]


async def test_a_former_path_leads_to_the_last_node_that_left_it_and_still_exists(clients):
    await rename(clients, "US/NE/Omaha", "O1")
    await create(clients, "US/NE", "Omaha")
    await rename(clients, "US/NE/Omaha", "O2")
    assert await at(clients, "US/NE/Omaha", "US/NE/Omaha/68118") == ["US/NE/O2", "US/NE/O1/68118"]
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE/O2"}}) { node { path } } }')
    assert await at(clients, "US/NE/Omaha") == ["US/NE/O1"]


async def test_former_paths_of_nodes_that_take_each_others_places_lead_to_each(clients):
    await create(clients, "US/NE/Lincoln", "part", "postalCode")
    await clients.ask("""mutation { editLocations(edits: [
        {move: {node: {path: "US/NE/Omaha"}, key: "Lincoln"}},
        {move: {node: {path: "US/NE/Lincoln"}, key: "Omaha"}},
        {move: {node: {path: "US/NE"}, key: "N"}}]) { nodes { path } } }""")
    found = await at(clients, "US/NE/Omaha/68118", "US/NE/Lincoln/part", "US/NE/Omaha/part", "US/N/Lincoln/part")
    assert found == ["US/N/Lincoln/68118", *["US/N/Omaha/part"] * 2, None], (
        "the third one was its path before the last edit"
    )


async def test_several_edits_of_a_tree_keep_where_earlier_moves_to_another_one_led(clients):
    await create(clients, "US/NE", "second")
    await clients.ask("""mutation {
        a: createLocation(input: {key: "CA", name: "CA", attributes: {country: {}}}) { node { path } }
        b: moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {path: "CA"}}}) { node { path } }
        c: moveLocation(input: {node: {path: "US/NE/second"}, key: "Omaha"}) { node { path } }
        d: editLocations(edits: [
            {move: {node: {path: "US/NE/Omaha"}, key: "third"}}, {move: {node: {path: "US/NE"}, key: "N"}}])
          { nodes { path } } }""")
    former = ["US/NE/Omaha", "US/NE/second", "US/NE/third", "US/NE/Omaha/68118"]
    assert await at(clients, *former) == [*["US/N/third"] * 3, "CA/Omaha/68118"]


async def test_later_moves_of_other_nodes_do_not_hide_the_node_of_a_former_path(clients):
    for one in range(6):
        keys = ["NE", *[f"S{one}-{number}" for number in range(7)]]
        for key, following in itertools.pairwise(keys):
            await rename(clients, f"US/{key}", following)
        await create(clients, "US", "NE", "state")
    assert await at(clients, "US/NE/Omaha", "US/NE") == ["US/S0-6/Omaha", "US/NE"]


async def test_a_former_path_is_followed_by_thirty_two_moves(clients):
    for number in range(32):
        await rename(clients, f"US/{f'NE{number}' if number else 'NE'}", f"NE{number + 1}")
    assert await at(clients, "US/NE/Omaha", "US/NE1/Omaha") == ["US/NE32/Omaha"] * 2
    await rename(clients, "US/NE32", "NE33")
    assert await at(clients, "US/NE/Omaha", "US/NE1/Omaha") == [None, "US/NE33/Omaha"]


async def test_a_redirect_costs_two_reads_and_nothing_where_the_tree_has_no_aliases(clients):
    reads = []
    for change in ('{ location(path: "US/KS/X") { path } }', None, '{ location(path: "US/NE/Omaha") { path } }'):
        if change is None:
            await clients.ask(
                'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Nebraska"}) { node { path } } }'
            )
            continue
        reader = Clients(clients.store)
        await reader.ask(change)
        reads.append(reader.request.reads.requests)
    assert reads == [1, 3]


async def test_redirects_follow_one_another_and_end_where_they_would_turn_around(clients):
    for path, key in [("US/NE", "A"), ("US/A", "B"), ("US/B", "C")]:
        await clients.ask(
            "mutation($path: Path!, $key: String!) { moveLocation(input: {node: {path: $path}, key: $key})"
            " { node { path } } }",
            path=path,
            key=key,
        )
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/C/Omaha"}, key: "O"}) { node { path } } }')
    await clients.ask(
        'mutation { moveLocation(input: {node: {path: "US/C/O"}, to: {parent: {path: "US/MO"}}}) { node { path } } }'
    )
    found = await clients.ask(
        '{ a: location(path: "US/NE/Omaha/68118") { path } b: location(path: "US/B/none") { path } }'
    )
    assert found == {"a": {"path": "US/MO/O/68118"}, "b": None}
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/C"}, key: "NE"}) { node { path } } }')
    found = await clients.ask('{ a: location(path: "US/NE") { path } b: location(path: "US/A/Lincoln") { path } }')
    assert found == {"a": {"path": "US/NE"}, "b": {"path": "US/NE/Lincoln"}}


async def test_a_new_node_at_an_old_path_wins_for_exactly_that_path(clients):
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Nebraska"}) { node { path } } }')
    await clients.ask(
        'mutation { createLocation(input: {parent: {path: "US"}, key: "NE", name: "New",'
        " attributes: {state: {}}}) { node { path } } }"
    )
    found = await clients.ask('{ a: location(path: "US/NE") { name } b: location(path: "US/NE/Omaha") { path } }')
    assert found == {"a": {"name": "New"}, "b": {"path": "US/Nebraska/Omaha"}}


async def test_mutations_follow_no_redirects(clients):
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Nebraska"}) { node { path } } }')
    code, _ = await clients.refusal(
        'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "x"}) { node { path } } }'
    )
    assert code == "NOT_FOUND"


async def test_a_subtree_moves_to_another_tree_and_becomes_one(clients):
    await clients.ask(
        'mutation { createLocation(input: {key: "CA", name: "CA", attributes: {country: {}}}) { node { path } } }'
    )
    moved = await clients.ask(
        'mutation { moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "CA"}}})'
        " { node { path descendantCount parent { path } } } }"
    )
    assert moved["moveLocation"]["node"] == {
        "path": "CA/NE", "descendantCount": 3, "parent": {"path": "CA"},
    }  # fmt: skip
    found = await clients.ask('{ location(path: "US") { descendantCount } city(path: "US/NE/Omaha") { path } }')
    assert found == {"location": {"descendantCount": 2}, "city": {"path": "CA/NE/Omaha"}}
    await clients.ask('mutation { createCategoryNode(input: {key: "a", name: "a", level: CATEGORY}) { node { id } } }')
    await clients.ask(
        'mutation { createCategoryNode(input: {parent: {path: "a"}, key: "b", name: "b", level: CATEGORY})'
        " { node { id } } }"
    )
    await clients.ask('mutation { moveCategoryNode(input: {node: {path: "a/b"}, to: {root: true}}) { node { path } } }')
    found = await clients.ask('{ categories { nodes { path } } categoryNode(path: "a/b") { path depth } }')
    assert found == {"categories": {"nodes": [{"path": "a"}, {"path": "b"}]}, "categoryNode": {"path": "b", "depth": 0}}


# -- order -------------------------------------------------------------------------------------------------------------


async def test_siblings_are_in_the_order_that_positions_give_them(clients):
    put = """mutation($p: Path!, $position: LocationPosition!) {
        moveLocation(input: {node: {path: $p}, position: $position}) { node { id } } }"""
    assert await keys(clients, "US") == ["MO", "NE"]
    await clients.ask(put, p="US/NE", position={"before": {"path": "US/MO"}})
    assert await keys(clients, "US") == ["NE", "MO"]
    await clients.ask(put, p="US/MO", position={"first": True})
    assert await keys(clients, "US") == ["MO", "NE"]
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/MO"}, key: "Z"}) { node { id } } }')
    assert await keys(clients, "US") == ["Z", "NE"]


# -- deletions ---------------------------------------------------------------------------------------------------------


async def test_a_node_with_children_is_deleted_with_them_or_without_or_not_at_all(clients):
    code, message = await clients.refusal(
        'mutation { deleteLocation(input: {node: {path: "US/NE"}}) { node { path } } }'
    )
    assert (code, message.startswith("US/NE has 2 children")) == ("NOT_EMPTY", True)
    await clients.ask(
        'mutation { deleteLocation(input: {node: {path: "US/NE/Omaha"}, policy: CASCADE}) { node { path } } }'
    )
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE"}, policy: REPARENT}) { node { path } } }')
    found = await clients.ask('{ location(path: "US") { descendants { nodes { path } } } }')
    paths = [node["path"] for node in found["location"]["descendants"]["nodes"]]
    assert paths == ["US/Lincoln", "US/MO", "US/MO/St. Louis"]


async def test_a_deletion_is_undone_by_a_creation_that_names_the_old_id(clients):
    gone = (
        await clients.ask(
            'mutation { gone: deleteLocation(input: {node: {path: "US/NE/Lincoln"}}) { node { id name } } }'
        )
    )["gone"]
    create = """mutation($id: ID) { made: createLocation(input: {parent: {path: "US/NE"}, key: "Lincoln",
      name: "Lincoln", id: $id, attributes: { city: {} }}) { node { id revision history { nodes { revision } } } } }"""
    other = (await clients.ask(create))["made"]["node"]
    assert (other["id"] != gone["node"]["id"], other["revision"]) == (True, 1)
    assert other["history"] == {"nodes": [{"revision": 1}]}
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE/Lincoln"}}) { node { id } } }')
    undone = (await clients.ask(create, id=gone["node"]["id"]))["made"]["node"]
    assert (undone["id"], undone["revision"]) == (gone["node"]["id"], 2)
    assert undone["history"] == {"nodes": [{"revision": 2}, {"revision": 1}]}


# -- terms -------------------------------------------------------------------------------------------------------------


async def test_a_dry_run_returns_its_plan_and_changes_nothing(clients):
    plan = "{ node { path } plan { nodes transactions writeUnits } }"
    answer = await clients.ask(f"""mutation {{
        move: moveLocation(input: {{node: {{path: "US/NE"}}, key: "X"}}, dryRun: true) {plan}
        nothing: moveLocation(input: {{node: {{path: "US/NE"}}, key: "NE"}}, dryRun: true) {plan} }}""")
    units = answer["move"]["plan"].pop("writeUnits")
    assert 4 * 10 < units + 20 < 4 * 20 + 20
    assert answer["move"] == {"node": None, "plan": {"nodes": 4, "transactions": 1}}
    assert answer["nothing"]["plan"] == {"nodes": 0, "transactions": 0, "writeUnits": 0}
    taken = 'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "MO"}, dryRun: true) { plan { nodes } } }'
    assert (await clients.refusal(taken))[0] == "ALREADY_EXISTS"
    assert await keys(clients, "US") == ["MO", "NE"]


async def test_another_revision_than_expected_is_a_conflict_that_names_the_current_one(clients):
    refused = await clients.refusal(
        'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "x", expectedRevision: 4}) { node { path } } }'
    )
    assert refused == ("CONFLICT", "US/NE is at revision 1, not 4; read it again and retry.")


async def test_the_same_idempotency_key_changes_nothing_twice_and_answers_the_same(clients):
    rename = (
        'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "X"}, idempotencyKey: "k1") { node { id path } } }'
    )
    first = await clients.ask(rename)
    assert await clients.ask(rename) == first
    code, message = await clients.refusal(rename.replace('"X"', '"Y"'))
    assert (code, "another change" in message) == ("BAD_USER_INPUT", True)
    delete = (
        'mutation { deleteLocation(input: {node: {path: "US/MO"}, policy: CASCADE}, idempotencyKey: "k2")'
        " { node { id path } } }"
    )
    assert await clients.ask(delete) == await clients.ask(delete)


async def test_a_repeated_mutation_returns_the_node_as_it_was_first_written(clients):
    update = """mutation { updateLocation(input: {node: {path: "US/NE/Omaha"}, attributes: { city: { %s } }},
      idempotencyKey: "k") {
        node { path revision ... on City { timezone population } } } }"""
    one, other = 'timezone: "UTC", population: 7', 'population: 7, timezone: "UTC"'
    first = await clients.ask(update % one)
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { updateLocation(input: {node: {path: "US/NE/Omaha"}, name: "O"}) { node { id } } }')
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/NE"}, key: "X"}) { node { id } } }')
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/X"}, policy: CASCADE}) { node { id } } }')
    assert await clients.ask(update % one) == first
    code, _ = await clients.refusal(update % 'population: 8, timezone: "UTC"')
    assert code == "BAD_USER_INPUT"


async def test_a_server_that_may_not_write_forbids_it(clients):
    reader = Clients(clients.store, writes=False)
    code, message = await reader.refusal(
        'mutation { deleteLocation(input: {node: {path: "US/MO"}}) { node { path } } }'
    )
    assert (code, "CLADE_WRITES=granted or on" in message) == ("FORBIDDEN", True)


@pytest.mark.parametrize(
    ("mutation", "code"),
    [
        ('createLocation(input: {key: "X", name: "x", attributes: {city: {}}})', "MISPLACED"),
        ('createLocation(input: {parent: {path: "US/KS"}, key: "X", name: "x", attributes: {city: {}}})', "NOT_FOUND"),
        (
            'createLocation(input: {parent: {path: "US"}, key: "NE", name: "x", attributes: {state: {}}})',
            "ALREADY_EXISTS",
        ),
        ('createLocation(input: {parent: {path: "US"}, key: "", name: "x", attributes: {state: {}}})', "BAD_PATH"),
        (
            'createLocation(input: {parent: {path: "US"}, key: "X", name: "x", id: "a b", attributes: {state: {}}})',
            "BAD_USER_INPUT",
        ),
        (
            'createLocation(input: {parent: {path: "US"}, key: "X", name: "x", id: "", attributes: {state: {}}})',
            "BAD_USER_INPUT",
        ),
        ('updateLocation(input: {node: {path: "US/NE"}, attributes: {city: {}}})', "WRONG_LEVEL"),
        ('updateLocation(input: {node: {path: "US/NE"}, name: null})', "BAD_USER_INPUT"),
        ('moveLocation(input: {node: {path: "US/NE"}, key: "MO"})', "ALREADY_EXISTS"),
        ('moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "US/NE/Omaha"}}})', "MISPLACED"),
        ('moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "US/MO"}}})', "MISPLACED"),
        ('moveLocation(input: {node: {path: "US/NE"}, to: {root: true}})', "MISPLACED"),
        ('moveLocation(input: {node: {path: "US/NE"}})', "BAD_USER_INPUT"),
        ('moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "FR"}}})', "NOT_FOUND"),
        ('moveLocation(input: {node: {path: "US/NE"}, position: {after: {path: "US/NE"}}})', "BAD_USER_INPUT"),
        ('moveLocation(input: {node: {path: "US/NE"}, position: {after: {path: "US/NE/Omaha"}}})', "MISPLACED"),
        ('deleteLocation(input: {node: {path: "US/KS"}})', "NOT_FOUND"),
        ('deleteLocation(input: {node: {path: "US/MO/St. Louis"}}, idempotencyKey: "")', "BAD_USER_INPUT"),
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
            ' createLocation(input: {parent: {path: $p}, key: $k, name: "x", attributes: $a}) { node { id } } }',
            p=parent,
            k=key,
            a={"neighborhood" if parent.endswith("Omaha") else "store": {}},
        )
    code, message = await clients.refusal(
        'mutation($k: String!) { moveLocation(input: {node: {path: "US/NE"}, key: $k}) { node { id } } }', k="y" * 500
    )
    assert (code, "1024" in message) == ("BAD_PATH", True)


async def test_a_cached_response_shows_the_next_write(clients):
    question = '{ location(path: "US/NE") { name childCount } }'
    assert (await clients.ask(question))["location"] == {"name": "NE", "childCount": 2}
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE/Lincoln"}}) { node { path } } }')
    assert (await clients.ask(question))["location"] == {"name": "NE", "childCount": 1}


async def test_each_field_of_one_operation_sees_what_those_before_it_wrote(clients):
    counted = "{ node { parent { childCount children { nodes { key } } } } }"
    answer = await clients.ask(f"""mutation {{
        a: createLocation(input: {{parent: {{path: "US"}}, key: "A", name: "A", attributes: {{state: {{}}}}}}) {counted}
        b: createLocation(input: {{parent: {{path: "US"}}, key: "B", name: "B", attributes: {{state: {{}}}}}})
          {counted} }}""")
    assert [answer[one]["node"]["parent"]["childCount"] for one in "ab"] == [3, 4]
    assert [node["key"] for node in answer["b"]["node"]["parent"]["children"]["nodes"]] == ["A", "B", "MO", "NE"]


CREATE = """mutation($key: String!) { createLocation(input: {parent: {path: "US/NE"}, key: $key, name: $key,
  attributes: {city: {}}}) {
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
    while crowd.writer.waiting < 3:  # noqa: ASYNC110 - they are on their way
        await asyncio.sleep(0)
    for gone in (first, late[1]):
        gone.cancel()
    counted.open.set()
    await asyncio.wait([first, second, third, *late])
    assert first.cancelled()
    assert late[1].cancelled()
    found = set(await keys(clients, "US/NE")) - {"Omaha", "Lincoln"}
    assert found == {"c0", "c1", "c2", "late0", "late2"}  # the commit of the first one had begun


# -- user errors, ids and batches --------------------------------------------------------------------------------------


async def told(clients, mutation):
    """Code, field and rule of each user error of a mutation."""
    faults = await clients.faults(f"mutation {{ {mutation} {{ __typename }} }}")
    return [(fault["code"], fault["field"], fault["rule"]) for fault in faults]


async def ids(clients, *paths):
    nodes = [f'n{n}: location(path: "{path}") {{ id }}' for n, path in enumerate(paths)]
    found = await clients.ask(f"{{ {' '.join(nodes)} }}")
    return [found[f"n{n}"]["id"] for n in range(len(paths))]


async def test_all_faults_of_an_input_come_at_once_with_their_fields(clients):
    create = """createLocation(input: {parent: {path: "US/KS"}, key: "a", name: "", id: "a b",
        names: [{language: "d", text: "x"}], attributes: {city: {population: 1, timezone: "%s"}}})""" % ("x" * 17_000)
    assert await told(clients, create) == [
        ("BAD_USER_INPUT", ["name"], None), ("BAD_USER_INPUT", ["names"], None),
        ("BAD_USER_INPUT", ["attributes", "city", "timezone"], "maxLength"), ("BAD_USER_INPUT", ["id"], None),
        ("NOT_FOUND", ["parent"], None),
    ]  # fmt: skip
    update = 'updateLocation(input: {node: {path: "US/KS"}, name: null, expectedRevision: 3})'
    assert await told(clients, update) == [("BAD_USER_INPUT", ["name"], None), ("NOT_FOUND", ["node"], None)]
    move = 'moveLocation(input: {node: {path: "US//NE"}, to: {root: false}, key: "", position: {first: false}})'
    assert await told(clients, move) == [
        ("BAD_PATH", ["node"], None), ("BAD_USER_INPUT", ["to"], None), ("BAD_USER_INPUT", ["position"], None),
        ("BAD_PATH", ["key"], None),
    ]  # fmt: skip
    beside = 'moveLocation(input: {node: {path: "US/NE"}, key: "MO", position: {after: {path: "US/KS"}}})'
    assert await told(clients, beside) == [("ALREADY_EXISTS", ["key"], None), ("NOT_FOUND", ["position"], None)]


async def test_faults_that_only_the_store_knows_come_with_those_of_a_key(clients):
    key = ("BAD_PATH", ["key"], None)
    create = (
        """createLocation(input: {parent: {path: "US/KS"}, key: "", name: "", id: "a b", attributes: {city: {}}})"""
    )
    assert await told(clients, create) == [
        ("BAD_USER_INPUT", ["name"], None), key, ("BAD_USER_INPUT", ["id"], None), ("NOT_FOUND", ["parent"], None),
    ]  # fmt: skip
    below_itself = 'moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "US/NE/Omaha"}}, key: "a\\u0000b"})'
    assert await told(clients, below_itself) == [key, ("MISPLACED", ["to"], None)]
    stale = 'moveLocation(input: {node: {path: "US/NE"}, key: "", expectedRevision: 9})'
    assert await told(clients, stale) == [key, ("CONFLICT", ["expectedRevision"], None)]
    beside = 'moveLocation(input: {node: {path: "US/NE"}, key: "", position: {after: {path: "US/KS"}}})'
    assert await told(clients, beside) == [key, ("NOT_FOUND", ["position"], None)]
    edits = """{create: {parent: {path: "US/NE"}, key: "", name: "a", level: COUNTRY}},
        {create: {parent: {path: "US/NE"}, key: "", name: "b", level: COUNTRY}},
        {move: {node: {path: "US/MO"}, key: ""}}, {update: {node: {path: "US/WY"}, name: ""}},
        {delete: {node: {path: "US/NE"}}}"""
    before = await invariants.all_items(clients.store)
    for options in ("", ", dryRun: true", ', idempotencyKey: "once"'):
        mutation = f"mutation {{ editLocations(edits: [{edits}]{options}) {{ nodes {{ id }} }} }}"
        faults = await clients.faults(mutation)
        assert [(one["edit"], one["code"], one["field"]) for one in faults] == [
            (0, "BAD_PATH", ["key"]), (0, "MISPLACED", ["parent"]), (1, "BAD_PATH", ["key"]),
            (1, "MISPLACED", ["parent"]), (2, "BAD_PATH", ["key"]), (3, "BAD_USER_INPUT", ["name"]),
            (3, "NOT_FOUND", ["node"]), (4, "NOT_EMPTY", ["policy"]),
        ]  # fmt: skip
    assert sorted(await invariants.all_items(clients.store), key=key_of) == sorted(before, key=key_of)


async def test_values_of_the_wrong_kind_are_faults_of_the_input(clients):
    dates = """createAssetNode(input: {key: "E", name: "E", attributes: {equipment: {installed: "2026-02-30"}}})"""
    assert await told(clients, dates) == [("BAD_USER_INPUT", ["attributes", "equipment", "installed"], None)]
    prices = 'createCategoryNode(input: {key: "TV", name: "x", attributes: {product: {price: "12,50"}}})'
    assert ("BAD_USER_INPUT", ["attributes", "product", "price"], None) in await told(clients, prices)


async def test_nodes_are_named_by_their_ids(clients):
    ne, mo, omaha, us = await ids(clients, "US/NE", "US/MO", "US/NE/Omaha", "US")
    await clients.ask(
        f'mutation {{ updateLocation(input: {{node: {{id: "{omaha}"}}, name: "O"}}) {{ node {{ id }} }} }}'
    )
    moved = await clients.ask(f"""mutation
      {{ moveLocation(input: {{node: {{id: "{omaha}"}}, to: {{parent: {{id: "{mo}"}}}},
        key: "New"}}) {{ node {{ id path name }} previousParent {{ id }} }} }}""")
    assert moved["moveLocation"] == {
        "node": {"id": omaha, "path": "US/MO/New", "name": "O"}, "previousParent": {"id": ne},
    }  # fmt: skip
    made = await clients.ask(f"""mutation {{ createLocation(input: {{parent: {{id: "{us}"}}, key: "KS", name: "K",
        level: STATE}}) {{ node {{ id path }} }} }}""")
    kansas = made["createLocation"]["node"]["id"]
    await clients.ask(f"""mutation {{ moveLocation(input: {{node: {{id: "{kansas}"}},
      position: {{after: {{id: "{ne}"}}}}}}) {{
        node {{ id }} }} }}""")
    assert await keys(clients, "US") == ["MO", "NE", "KS"]
    gone = await clients.ask(f'mutation {{ deleteLocation(input: {{node: {{id: "{kansas}"}}}}) {{ node {{ id }} }} }}')
    assert gone["deleteLocation"]["node"] == {"id": kansas}
    for wrong in (kansas, "location:nobody", "asset:1", "", "location:", "x" * 5_000):
        given = f'updateLocation(input: {{node: {{id: "{wrong}"}}, name: "x"}})'
        assert await told(clients, given) == [("NOT_FOUND", ["node"], None)]
    assert await told(
        clients, 'createLocation(input: {parent: {id: "location:x"}, key: "a", name: "a", level: CITY})'
    ) == [("NOT_FOUND", ["parent"], None)]


async def test_a_move_gives_parent_key_and_position_at_once(clients):
    for key in ("A", "B"):
        await clients.ask(f"""mutation {{ createLocation(input: {{parent: {{path: "US/MO"}}, key: "{key}",
          name: "{key}",
            level: CITY}}) {{ node {{ id }} }} }}""")
    move = """mutation { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {path: "US/MO"}}, key: "Z",
        position: {after: {path: "US/MO/A"}}}) { node { path children { nodes { path } } } } }"""
    assert (await clients.ask(move))["moveLocation"]["node"] == {
        "path": "US/MO/Z", "children": {"nodes": [{"path": "US/MO/Z/68118"}]},
    }  # fmt: skip
    assert await keys(clients, "US/MO") == ["A", "Z", "B", "St. Louis"]
    implied = (
        'mutation { moveLocation(input: {node: {path: "US/NE/Lincoln"},'
        ' position: {before: {path: "US/MO/A"}}}) { node { path } } }'
    )
    assert (await clients.ask(implied))["moveLocation"]["node"] == {"path": "US/MO/Lincoln"}
    assert await keys(clients, "US/MO") == ["Lincoln", "A", "Z", "B", "St. Louis"]
    against = """moveLocation(input: {node: {path: "US/MO/Z"}, to: {parent: {path: "US/NE"}},
        position: {before: {path: "US/MO/A"}}})"""
    assert await told(clients, against) == [("BAD_USER_INPUT", ["position"], None)]


async def test_the_level_of_a_new_node_is_given_once(clients):
    both = """createLocation(input: {parent: {path: "US"}, key: "a", name: "a", level: STATE,
        attributes: {state: {population: 1}}}) { node { level } }"""
    assert (await clients.ask(f"mutation {{ {both} }}"))["createLocation"]["node"] == {"level": "STATE"}
    for level, field in (("", ["level"]), ("level: CITY, attributes: {state: {}}", ["level"])):
        given = f'createLocation(input: {{parent: {{path: "US"}}, key: "b", name: "b", {level}}})'
        assert await told(clients, given) == [("BAD_USER_INPUT", field, None)]


async def test_several_edits_are_one_entry_or_none(clients):
    edits = """{move: {node: {path: "US/NE"}, key: "MO"}}, {move: {node: {path: "US/MO"}, key: "NE"}},
        {move: {node: {path: "US/MO/Omaha"}, key: "Lincoln"}}, {delete: {node: {path: "US/MO/Lincoln"}}}"""
    ne, mo, omaha = await ids(clients, "US/NE", "US/MO", "US/NE/Omaha")
    feed = '{ changes(hierarchy: LOCATION, tree: "US") { changes { event } cursor } }'
    cursor = (await clients.ask(feed))["changes"]["cursor"]
    made = await clients.ask(f"mutation {{ editLocations(edits: [{edits}]) {{ nodes {{ id path }} }} }}")
    assert [node["path"] for node in made["editLocations"]["nodes"][:3]] == ["US/MO", "US/NE", "US/MO/Lincoln"]
    assert await ids(clients, "US/MO", "US/NE", "US/MO/Lincoln") == [ne, mo, omaha]
    after = feed.replace("tree:", f'after: "{cursor}", tree:')
    changes = (await clients.ask(after))["changes"]["changes"]
    assert sorted(change["event"] for change in changes) == ["DELETED", "MOVED", "MOVED", "MOVED"]
    before = await invariants.all_items(clients.store)
    wrong = """{create: {parent: {path: "US"}, key: "KS", name: "K", level: STATE}},
        {create: {parent: {path: "US/KS"}, key: "T", name: "", level: CITY}}, {delete: {node: {path: "US/WY"}}},
        {update: {node: {path: "US"}, name: "U", expectedRevision: 9}}"""
    faults = await clients.faults(f"mutation {{ editLocations(edits: [{wrong}]) {{ nodes {{ id }} }} }}")
    assert [(fault["edit"], fault["code"], fault["field"]) for fault in faults] == [
        (1, "BAD_USER_INPUT", ["name"]), (2, "NOT_FOUND", ["node"]), (3, "CONFLICT", ["expectedRevision"]),
    ]  # fmt: skip
    for number in (0, 101):
        many = ", ".join(['{delete: {node: {path: "US/WY"}}}'] * number)
        (fault,) = await clients.faults(f"mutation {{ editLocations(edits: [{many}]) {{ nodes {{ id }} }} }}")
        assert (fault["code"], fault["field"]) == ("BAD_USER_INPUT", ["edits"])
    assert sorted(await invariants.all_items(clients.store), key=key_of) == sorted(before, key=key_of)


@pytest.mark.parametrize("size", [2, 3])
async def test_roots_change_their_keys_in_a_circle(clients, size):
    for number in range(size):
        await clients.ask(f"""mutation {{ root: createLocation(input: {{key: "R{number}", name: "R",
          level: COUNTRY}}) {{
            node {{ id }} }} below: createLocation(input: {{parent: {{path: "R{number}"}}, key: "S{number}", name: "S",
            level: STATE}}) {{ node {{ id }} }} }}""")
    before = await ids(clients, *[f"R{number}" for number in range(size)])
    turns = [f'{{move: {{node: {{path: "R{n}"}}, key: "R{(n + 1) % size}"}}}}' for n in range(size)]
    await clients.ask(f"mutation {{ editLocations(edits: [{', '.join(turns)}]) {{ nodes {{ id }} }} }}")
    assert await ids(clients, *[f"R{(n + 1) % size}" for n in range(size)]) == before
    below = await clients.ask(
        "{ " + " ".join(f'n{n}: location(path: "R{(n + 1) % size}/S{n}") {{ key }}' for n in range(size)) + " }"
    )
    assert [node["key"] for node in below.values()] == [f"S{n}" for n in range(size)]


async def test_faults_of_earlier_edits_come_with_one_that_stops_a_batch(clients):
    """A node that a failed deletion would have removed is not said to be missing."""
    city = (await clients.ask('{ location(path: "US/NE/Omaha") { id } }'))["location"]["id"]
    stale = '{delete: {node: {path: "US/NE"}, policy: CASCADE, expectedRevision: 9}}'
    faults = await clients.faults(
        f'mutation {{ editLocations(edits: [{stale} {{update: {{node: {{id: "{city}"}}, name: ""}}}}]) '
        "{ nodes { id } } }"
    )
    assert [(one["code"], one["edit"], one["field"]) for one in faults] == [
        ("CONFLICT", 0, ["expectedRevision"]),
        ("BAD_USER_INPUT", 1, ["name"]),
    ]
    none = '{delete: {node: {id: "location:none"}}}'
    faults = await clients.faults(f"mutation {{ editLocations(edits: [{stale} {none}]) {{ nodes {{ id }} }} }}")
    assert [(one["code"], one["edit"]) for one in faults] == [("CONFLICT", 0), ("NOT_FOUND", 1)]
    odd = '{create: {parent: {path: "US//NE"}, key: "a", name: "", level: CITY}}'
    own = '{update: {node: {path: "US/NE"}, name: ""}}'
    faults = await clients.faults(f"mutation {{ editLocations(edits: [{own} {odd}]) {{ nodes {{ id }} }} }}")
    assert sorted((one["edit"], one["code"]) for one in faults) == [
        (0, "BAD_USER_INPUT"),
        (1, "BAD_PATH"),
        (1, "BAD_USER_INPUT"),
    ]
