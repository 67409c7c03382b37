"""Mutations, and the reads after them, on both stores."""

import httpx
import pytest

from graph.app import create_app
from graph.errors import RULES
from graph.hierarchies.locations import Location
from graph.settings import Settings
from resolvers.access.grants import Grants
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
        await clients.ask(
            f'mutation {{ moveLocation(input: {{node: {{path: "{path}"}}, key: "{key}"}}) {{ node {{ id }} }} }}'
        )


async def keys(clients, path):
    answer = await clients.ask("query($p: Path!) { location(path: $p) { children { nodes { key } } } }", p=path)
    return [node["key"] for node in answer["location"]["children"]["nodes"]]


async def test_a_move_that_names_the_present_parent_or_a_sibling_elsewhere_by_its_id(clients):
    ids = await clients.ask('{ us: location(path: "US") { id } city: location(path: "US/MO/St. Louis") { id } }')
    parent, elsewhere = f'to: {{parent: {{id: "{ids["us"]["id"]}"}}}}', f'{{id: "{ids["city"]["id"]}"}}'
    for given in ("", ', key: "MO"', ", position: {first: true}", ", expectedRevision: 1"):
        moved = await clients.ask(
            f'mutation {{ moveLocation(input: {{node: {{path: "US/MO"}}, {parent}{given}}}) {{ node {{ path }} }} }}'
        )
        assert moved == {"moveLocation": {"node": {"path": "US/MO"}}}, given
    assert await keys(clients, "US") == ["MO", "NE"]
    for given, code in (
        (f'node: {{path: "US/zz"}}, {parent}', "NOT_FOUND"),
        (f'node: {{path: "US/NE"}}, to: {{root: true}}, position: {{before: {elsewhere}}}', "BAD_USER_INPUT"),
        (f'node: {{path: "US/NE"}}, {parent}, position: {{before: {elsewhere}}}', "BAD_USER_INPUT"),
    ):
        faults = await clients.faults(f"mutation {{ moveLocation(input: {{{given}}}) {{ node {{ path }} }} }}")
        assert code in [one["code"] for one in faults], given


# -- moves and redirects -----------------------------------------------------------------------------------------------


async def test_everything_that_takes_a_path_leads_from_a_former_one(clients):
    """After renames of the node and of what is above it, in an order that no path from root to node tells."""
    await rename(clients, ("US/NE", "N"), ("US/N/Omaha", "O"), ("US/N", "Nebraska"))
    await clients.ask(
        """mutation { createLocation(input: {parent: {path: "US/Nebraska/O"}, key: "new", name: "Newest",
            attributes: {postalCode: {latitude: 1, longitude: 1}}}) { node { id } } }"""
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
    await clients.ask(
        'mutation { moveLocation(input: {node: {path: "US/NE/Q"}, to: {parent: {path: "US/MO"}}}) { node { id } } }'
    )
    reads = {}
    for path in ("US/MO/Q", "US/NE/Omaha", "US/N/Omaha", "US/M/P", "US/NE/Q", "US/MO/never"):
        reader = Clients(clients.store)
        found = (await reader.ask("query($path: Path!) { location(path: $path) { path } }", path=path))["location"]
        assert found == (None if path.endswith("never") else {"path": "US/MO/Q"})
        reads[path] = reader.request.reads.requests
    assert [*reads.values()] == [1, 4, 4, 4, 4, 2]


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
    assert await keys(clients, "US") == ["MO", "NE"]


async def test_the_same_idempotency_key_changes_nothing_twice_and_answers_the_same(clients):
    rename = (
        'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "X"}, idempotencyKey: "k1") { node { id path } } }'
    )
    first = await clients.ask(rename)
    assert await clients.ask(rename) == first
    forecast = rename.replace("idempotencyKey", "dryRun: true, idempotencyKey").replace(
        "{ node", "{ plan { nodes } node"
    )
    assert (await clients.faults(forecast))[0]["code"] == "NOT_FOUND", "a dry run tells what would be without the key"
    again = forecast.replace("US/NE", "US/X")
    assert await clients.ask(again) == {"moveLocation": {"plan": {"nodes": 0}, "node": None}}
    code, message = await clients.refusal(rename.replace('"X"', '"Y"'))
    assert (code, "another change" in message) == ("BAD_USER_INPUT", True)
    delete = (
        'mutation { deleteLocation(input: {node: {path: "US/MO"}, policy: CASCADE}, '
        'idempotencyKey: "k2") { node { id path } } }'
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
    await rename(clients, ("US/NE", "X"))
    assert await clients.ask(update % other) == first
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/X"}, policy: CASCADE}) { node { id } } }')
    assert await clients.ask(update % one) == first
    code, _ = await clients.refusal(update % 'population: 8, timezone: "UTC"')
    assert code == "BAD_USER_INPUT"


def test_a_server_that_may_not_write_says_so_to_callers_without_a_grant():
    with serving(create_app(Settings(store="sqlite://:memory:"))) as url:
        for mutation in (
            'createLocation(input: {key: "X", name: "x", attributes: {country: {}}})',
            'updateLocation(input: {node: {path: "US/NE"}, name: "x"})',
            'moveLocation(input: {node: {path: "US/NE"}, key: "X"})',
            'moveLocation(input: {node: {path: "US/NE"}, to: {root: true}}, dryRun: true)',
            'moveLocation(input: {node: {path: "US/none"}, position: {first: true}})',
            'deleteLocation(input: {node: {path: "US"}, policy: CASCADE})',
        ):
            body = {"query": f"mutation {{ {mutation} {{ node {{ path }} }} }}"}
            (error,) = httpx.post(f"{url}/graphql", json=body).json()["errors"]
            assert error["extensions"]["code"] == "FORBIDDEN"
            assert error["message"].startswith("Mutations are disabled on this server; CLADE_WRITES=granted or on")


INVALID = [
    ('createLocation(input: {parent: {path: "US"}, key: "N\\u200bE", name: "x", attributes: {state: {}}})', "BAD_PATH"),
    ('createLocation(input: {key: "\u2060", name: "x", attributes: {country: {}}})', "BAD_PATH"),
    ('createLocation(input: {parent: {path: "US"}, key: " NE", name: "x", attributes: {state: {}}})', "BAD_PATH"),
    ('moveLocation(input: {node: {path: "US/NE"}, key: "N\u00adE"})', "BAD_PATH"),
    ('moveLocation(input: {node: {path: "US/NE"}, key: "New\u00a0York"})', "BAD_PATH"),
    ('moveLocation(input: {node: {path: "US/NE"}, key: "New  York"})', "BAD_PATH"),
    ('moveLocation(input: {node: {path: "US/NE"}, to: {root: true}})', "MISPLACED"),
    ('moveLocation(input: {node: {path: "US/NE"}})', "BAD_USER_INPUT"),
    ('moveLocation(input: {node: {path: "US/NE"}, position: {after: {path: "US/NE"}}})', "BAD_USER_INPUT"),
    ('moveLocation(input: {node: {path: "US/NE"}, position: {after: {path: "US/NE/Omaha"}}})', "MISPLACED"),
]


async def test_an_invalid_mutation_is_rejected_with_a_code_and_changes_nothing(clients):
    before = sorted(await invariants.all_items(clients.store), key=key_of)
    for mutation, code in INVALID:
        refused, message = await clients.refusal(f"mutation {{ {mutation} {{ node {{ path }} }} }}")
        assert (refused, message.endswith(".")) == (code, True), mutation
    assert sorted(await invariants.all_items(clients.store), key=key_of) == before


async def test_a_stored_key_that_looks_like_another_is_changed_moved_and_renamed(clients):
    odd = "Om\u200baha "
    await Writer(clients.store).write(Create(Location.definition(), ("US", "NE", odd), "CITY", "x", {}), ReadUsage())
    for change in (
        f'updateLocation(input: {{node: {{path: "US/NE/{odd}"}}, name: "New"}})',
        f'moveLocation(input: {{node: {{path: "US/NE/{odd}"}}, to: {{parent: {{path: "US/MO"}}}}}})',
        f'moveLocation(input: {{node: {{path: "US/MO/{odd}"}}, key: "{odd}"}})',
        f'createLocation(input: {{parent: {{path: "US/MO/{odd}"}}, key: "1", name: "One", attributes: '
        f"{{store: {{}}}}}})",
        f'moveLocation(input: {{node: {{path: "US/MO/{odd}"}}, key: "O"}})',
    ):
        await clients.ask(f"mutation {{ {change} {{ node {{ id }} }} }}")
    found = await clients.ask('{ location(path: "US/MO/O") { name children { nodes { key } } } }')
    assert found["location"] == {"name": "New", "children": {"nodes": [{"key": "1"}]}}


async def test_each_field_of_one_operation_sees_what_those_before_it_wrote(clients):
    counted = "{ node { parent { childCount children { nodes { key } } } } }"
    answer = await clients.ask(f"""mutation {{
        a: createLocation(input: {{parent: {{path: "US"}}, key: "A", name: "A", attributes: {{state: {{}}}}}})
          {counted}
        b: createLocation(input: {{parent: {{path: "US"}}, key: "B", name: "B", attributes: {{state: {{}}}}}})
          {counted} }}""")
    assert [answer[one]["node"]["parent"]["childCount"] for one in "ab"] == [3, 4]
    assert [node["key"] for node in answer["b"]["node"]["parent"]["children"]["nodes"]] == ["A", "B", "MO", "NE"]


# -- user errors, ids and moves ----------------------------------------------------------------------------------------


async def told(clients, mutation):
    """Code, field and rule of each user error of a mutation."""
    faults = await clients.faults(f"mutation {{ {mutation} {{ __typename }} }}")
    assert all(fault["edit"] is None and fault["message"].endswith(".") for fault in faults)
    assert {fault["rule"] for fault in faults} <= RULES.keys()
    return [(fault["code"], fault["field"], fault["rule"]) for fault in faults]


async def ids(clients, *paths):
    nodes = [f'n{n}: location(path: "{path}") {{ id }}' for n, path in enumerate(paths)]
    found = await clients.ask(f"{{ {' '.join(nodes)} }}")
    return [found[f"n{n}"]["id"] for n in range(len(paths))]


INPUT = "BAD_USER_INPUT"
SEVERAL = {
    """createLocation(input: {parent: {path: "US/KS"}, key: "a", name: "", id: "a b", names: [{language: "d",
      text: "x"}],
        attributes: {city: {population: 1, timezone: "%s"}}})"""
    % ("x" * 17_000): [
        (INPUT, ["name"], "empty"), (INPUT, ["names", "0", "language"], "type"),
        (INPUT, ["attributes", "city", "timezone"], "maxLength"),
        (INPUT, ["id"], "characters"), ("NOT_FOUND", ["parent"], "missing"),
    ],
    'createLocation(input: {parent: {path: "US"}, key: "NE", name: "", id: "#", attributes: {postalCode: {}}})': [
        (INPUT, ["name"], "empty"), (INPUT, ["id"], "characters"), ("MISPLACED", ["parent"], "misplaced"),
        ("ALREADY_EXISTS", ["key"], "taken"),
    ],
    'updateLocation(input: {node: {path: "US"}, name: "", expectedRevision: 3, attributes: {city: {code: "1"}}})': [
        (INPUT, ["name"], "empty"), ("CONFLICT", ["expectedRevision"], "conflict"),
        ("WRONG_LEVEL", ["attributes"], "level"),
    ],
    'updateLocation(input: {node: {path: "US"}, name: "", expectedRevision: null, attributes: null})': [
        (INPUT, ["name"], "empty"), (INPUT, ["expectedRevision"], "required"),
    ],
    'deleteLocation(input: {node: {path: "US/NE"}, expectedRevision: null})': [
        (INPUT, ["expectedRevision"], "required"), ("NOT_EMPTY", ["policy"], "notEmpty"),
    ],
    'moveLocation(input: {node: {path: "US//NE"}, to: {root: false}, key: "", position: {first: false}})': [
        ("BAD_PATH", ["node"], "path"), (INPUT, ["to"], "required"), (INPUT, ["position"], "required"),
        ("BAD_PATH", ["key"], "empty"),
    ],
    'moveLocation(input: {node: {path: "US/KS"}, to: {parent: {path: "FR"}}, position: {after: {path: "FR/A"}}})': [
        ("NOT_FOUND", ["node"], "missing"), ("NOT_FOUND", ["to"], "missing"), ("NOT_FOUND", ["position"], "missing"),
    ],
    """moveLocation(input: {node: {path: "US/NE"}, key: "MO", expectedRevision: 7,
        position: {after: {path: "US/KS"}}})""": [
        ("CONFLICT", ["expectedRevision"], "conflict"), ("ALREADY_EXISTS", ["key"], "taken"),
        ("NOT_FOUND", ["position"], "missing"),
    ],
    """moveLocation(input: {node: {path: "US/NE/Omaha"}, key: "", to: {parent: {path: "US/NE"}},
        position: {before: {path: "US/MO/St. Louis"}}})""": [
        ("BAD_PATH", ["key"], "empty"), (INPUT, ["position"], "sibling"),
    ],
    'moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "US/NE/Omaha"}}, key: "\\u0007"})': [
        ("BAD_PATH", ["key"], "characters"), ("MISPLACED", ["to"], "misplaced"),
    ],
    """moveLocation(input: {node: {path: "US/KS"}, to: {parent: {path: "US"}}, key: "NE",
        position: {before: {id: "location:zz"}}})""": [
        ("NOT_FOUND", ["position"], "missing"), ("NOT_FOUND", ["node"], "missing"),
        ("ALREADY_EXISTS", ["key"], "taken"),
    ],
    """updateLocation(input: {node: {path: "US"}, names: [{language: "d"}, {language: "de", text: ""},
        {language: "DE"}]})""": [
        (INPUT, ["names", "0", "language"], "type"), (INPUT, ["names", "1", "text"], "empty"),
        (INPUT, ["names", "2", "language"], "duplicate"),
    ],
    """createAssetNode(input: {key: "E", name: "E", names: [$], attributes: {equipment: {}}})""".replace(
        "$", " ".join(f'{{language: "de-{number:04}", text: "x"}}' for number in range(51))
    ): [(INPUT, ["names"], "maxItems")],
    """createAssetNode(input: {parent: {path: "E"}, key: "E", name: "E",
        attributes: {audit: {findings: ["a", "%s", "", "%s"]}}})""".replace("%s", "x" * 17_000): [
        (INPUT, ["attributes", "audit", "findings", "1"], "maxLength"),
        (INPUT, ["attributes", "audit", "findings", "3"], "maxLength"), ("NOT_FOUND", ["parent"], "missing"),
    ],
    'deleteLocation(input: {node: {path: "US/NE"}, expectedRevision: 2})': [
        ("CONFLICT", ["expectedRevision"], "conflict"), ("NOT_EMPTY", ["policy"], "notEmpty"),
    ],
    'deleteLocation(input: {node: {path: "US"}, policy: REPARENT, expectedRevision: 9})': [
        ("CONFLICT", ["expectedRevision"], "conflict"),
    ],
    'deleteLocation(input: {node: {path: "US"}, policy: REPARENT, expectedRevision: 1})': [
        ("MISPLACED", ["policy"], "misplaced"), ("MISPLACED", ["policy"], "misplaced"),
    ],
    'createAssetNode(input: {key: "E", name: "E", attributes: {equipment: {installed: "2026-02-30"}}})': [
        (INPUT, ["attributes", "equipment", "installed"], "type"),
    ],
    'createCategoryNode(input: {key: "TV", name: "x", attributes: {product: {price: "12,50"}}})': [
        (INPUT, ["attributes", "product", "price"], "type"), ("MISPLACED", ["parent"], "misplaced"),
    ],
    'createCategoryNode(input: {key: "TV", name: "", attributes: {category: {none: false}}})': [
        (INPUT, ["name"], "empty"), (INPUT, ["attributes", "category", "none"], "type"),
    ],
}  # fmt: skip


@pytest.mark.both_stores
async def test_all_faults_of_an_input_come_at_once_with_their_fields_and_nothing_is_written(clients):
    before = sorted(await invariants.all_items(clients.store), key=key_of)
    for mutation, expected in SEVERAL.items():
        assert await told(clients, mutation) == expected, mutation
        for option in ("dryRun: true", 'idempotencyKey: "once"'):
            faults = await told(clients, f"{mutation[:-1]}, {option})")
            assert faults == expected, (option, mutation)
    assert sorted(await invariants.all_items(clients.store), key=key_of) == before


@pytest.mark.parametrize("more", [0, 1, 500])
async def test_more_than_a_hundred_faults_are_the_first_hundred_and_one_that_says_so(clients, more):
    create = """mutation($names: [LocalizedTextInput!]) { createAssetNode(input: {key: "", name: "x", names: $names,
        attributes: {equipment: {}}}) { node { id } } }"""
    faults = await clients.faults(create, names=[{"language": "d", "text": "x"}] * (99 + more))
    places = [one["field"] for one in faults]
    names = [["names", f"{place}", "language"] for place in range(99 + more)]
    if not more:
        assert places == [*names, ["key"]]
        return
    assert places == [*names[:100], None]
    assert (faults[-1]["code"], faults[-1]["rule"], faults[-1]["message"]) == (
        "BAD_USER_INPUT",
        "more",
        "The input has more faults than these 100; mend them, and send it again to see the others.",
    )


@pytest.mark.both_stores
async def test_nodes_are_named_by_their_ids(clients):
    ne, mo, omaha, us = await ids(clients, "US/NE", "US/MO", "US/NE/Omaha", "US")
    await clients.ask(
        f'mutation {{ updateLocation(input: {{node: {{id: "{omaha}"}}, name: "O"}}) {{ plan {{ nodes }} }} }}'
    )
    move = f"""mutation {{ moveLocation(input: {{node: {{id: "{omaha}"}}, to: {{parent: {{id: "{mo}"}}}}, key: "New"}},
        idempotencyKey: "once") {{ node {{ id path name }} previousParent {{ id }} }} }}"""
    for _ in range(2):  # its node is at another path the second time
        assert (await clients.ask(move))["moveLocation"] == {
            "node": {"id": omaha, "path": "US/MO/New", "name": "O"}, "previousParent": {"id": ne},
        }  # fmt: skip
    made = await clients.ask(f"""mutation {{ createLocation(input: {{parent: {{id: "{us}"}}, key: "KS", name: "K",
        attributes: {{state: {{}}}}}}) {{ node {{ id path }} }} }}""")
    kansas = made["createLocation"]["node"]["id"]
    after = f'node: {{id: "{kansas}"}}, position: {{after: {{id: "{ne}"}}}}'
    await clients.ask(f"mutation {{ moveLocation(input: {{{after}}}) {{ node {{ id }} }} }}")
    assert await keys(clients, "US") == ["MO", "NE", "KS"]
    delete = (
        f'mutation {{ deleteLocation(input: {{node: {{id: "{kansas}"}}}}, idempotencyKey: "d") {{ node {{ id }} }} }}'
    )
    for _ in range(2):  # the second time there is no node with this id
        assert (await clients.ask(delete))["deleteLocation"]["node"] == {"id": kansas}
    await clients.ask(
        f'mutation {{ deleteLocation(input: {{node: {{id: "{omaha}"}}, policy: CASCADE}}) {{ node {{ id }} }} }}'
    )
    again = await clients.ask(move)  # the node is gone, and its new parent is not
    assert again["moveLocation"]["node"] == {"id": omaha, "path": "US/MO/New", "name": "O"}
    for wrong in (kansas, "location:nobody", "asset:1", "", "location:", "x" * 5_000):
        given = f'updateLocation(input: {{node: {{id: "{wrong}"}}, name: "x"}})'
        assert await told(clients, given) == [("NOT_FOUND", ["node"], "missing")]
    given = 'createLocation(input: {parent: {id: "location:x"}, key: "a", name: "a", attributes: {city: {}}})'
    assert await told(clients, given) == [("NOT_FOUND", ["parent"], "missing")]


@pytest.mark.both_stores
async def test_an_expected_revision_is_never_that_of_another_node_which_came_to_the_path(clients):
    (omaha,) = await ids(clients, "US/NE/Omaha")
    create = """mutation { createLocation(input: {parent: {path: "US/NE"}, key: "Omaha", name: "Another",
        attributes: {city: {}}}) { node { revision } } }"""
    conflict = [("CONFLICT", ["expectedRevision"], "conflict")]

    async def outcomes(path):
        """What comes of each change of the node at the path, of which the editor knows revision 1."""
        node = f'node: {{path: "{path}"}}, expectedRevision: 1'
        given = [f'update@{node}, name: "Mine"', f'move@{node}, key: "Mine"', f"delete@{node}, policy: CASCADE"]
        return [await told(clients, f"{one.replace('@', 'Location(input: {')}}})") for one in given]

    await rename(clients, ("US/NE/Omaha", "Moved"))
    await clients.ask(create)
    assert await outcomes("US/NE/Omaha") == [conflict] * 3
    mine = f'mutation {{ updateLocation(input: {{node: {{id: "{omaha}"}}, name: "Mine", expectedRevision: 1}})'
    written = await clients.ask(f"{mine} {{ node {{ path revision }} }} }}")
    assert written["updateLocation"]["node"] == {"path": "US/NE/Moved", "revision": 2}
    for path in ("US/NE/Omaha", "US/MO/St. Louis"):  # a deletion leaves no redirect
        await clients.ask(f'mutation {{ deleteLocation(input: {{node: {{path: "{path}"}}}}) {{ node {{ id }} }} }}')
    await clients.ask(create.replace("US/NE", "US/MO").replace("Omaha", "St. Louis"))
    assert await outcomes("US/MO/St. Louis") == [conflict] * 3
    assert (
        await told(clients, 'updateLocation(input: {node: {path: "US/NE/Lincoln"}, name: "L", expectedRevision: 1})')
        == []
    )
    # Moved away, while the node that had come to the path is gone as well, and with it every redirect from there.
    for _ in range(2):
        await rename(clients, ("US/NE/Lincoln", "Away"))
        await clients.ask(create.replace("Omaha", "Lincoln"))
        await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE/Lincoln"}}) { node { id } } }')
        await clients.ask(create.replace("Omaha", "Lincoln"))
        assert await outcomes("US/NE/Lincoln") == [conflict] * 3
        await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE/Away"}}) { node { id } } }')


@pytest.mark.both_stores
async def test_a_deleted_node_with_an_id_of_its_own_is_told_from_the_next_one_at_its_path(clients):
    """A given id, and that of a node which came from elsewhere; alone, and below a node that goes."""
    create = """mutation($path: Path!, $key: String!, $id: ID, $attributes: LocationAttributes!) {
        createLocation(input: {parent: {path: $path}, key: $key, name: $key, id: $id, attributes: $attributes}) {
        node { id } } }"""

    async def plant(path, key, node_id=None, level="city"):
        made = await clients.ask(create, path=path, key=key, id=node_id, attributes={level: {}})
        return made["createLocation"]["node"]["id"]

    mine = {"US/MO/given": await plant("US/MO", "given", "own")}
    await clients.ask(
        'mutation { moveLocation(input: {node: {path: "US/NE/Omaha/68118"}, to: {parent: {path: "US/MO/given"}}})'
        "{ node { id } } }"
    )
    await plant("US/MO", "large", "top")
    for number in range(9):
        mine[f"US/MO/large/{number}"] = await plant("US/MO/large", str(number), f"low{number}", "postalCode")
    for path in ("US/MO/given", "US/MO/large"):
        await clients.ask(
            f'mutation {{ deleteLocation(input: {{node: {{path: "{path}"}}, policy: CASCADE}}) {{ move {{ id }} }} }}'
        )
    for path in ("US/MO/given", "US/MO/large", "US/MO/given/68118", "US/MO/large/0", "US/MO/large/8"):
        parent, _, key = path.rpartition("/")
        await plant(parent, key, level="postalCode" if parent.count("/") == 2 else "city")
        node = f'node: {{path: "{path}"}}, expectedRevision: 1'
        assert await told(clients, f'updateLocation(input: {{{node}, name: "Mine"}})') == [
            ("CONFLICT", ["expectedRevision"], "conflict")
        ]
    await plant("US/NE", "back", "low7")
    assert await clients.ask('{ location(path: "US/MO/large/7") { id } }') == {"location": None}


@pytest.mark.both_stores
async def test_a_move_gives_parent_key_and_position_at_once(clients):
    for key in ("A", "B"):
        await clients.ask(f"""mutation {{ createLocation(input: {{parent: {{path: "US/MO"}}, key: "{key}",
      name: "{key}",
            attributes: {{city: {{}}}}}}) {{ node {{ id }} }} }}""")
    move = """mutation { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {path: "US/MO"}}, key: "Z",
        position: {after: {path: "US/MO/A"}}}) { node { path children { nodes { path } } } } }"""
    assert (await clients.ask(move))["moveLocation"]["node"] == {
        "path": "US/MO/Z", "children": {"nodes": [{"path": "US/MO/Z/68118"}]},
    }  # fmt: skip
    assert await keys(clients, "US/MO") == ["A", "Z", "B", "St. Louis"]
    implied = 'node: {path: "US/NE/Lincoln"}, position: {before: {path: "US/MO/A"}}'
    for _ in range(2):  # the second time there is nothing to do
        moved = await clients.ask(f"mutation {{ moveLocation(input: {{{implied}}}) {{ node {{ path }} }} }}")
        assert moved["moveLocation"]["node"] == {"path": "US/MO/Lincoln"}
        implied = implied.replace("US/NE", "US/MO")
    assert await keys(clients, "US/MO") == ["Lincoln", "A", "Z", "B", "St. Louis"]
    for side, place in (("first", 0), ("last", -1)):
        path = f'node: {{path: "US/MO/{"Z" if side == "first" else "Y"}"}}, key: "Y", position: {{{side}: true}}'
        await clients.ask(f"mutation {{ moveLocation(input: {{{path}}}) {{ node {{ path }} }} }}")
        assert (await keys(clients, "US/MO"))[place] == "Y"


async def test_a_dry_run_has_the_faults_of_a_change_that_is_larger_than_a_transaction(clients):
    await clients.ask(
        'mutation { createCategoryNode(input: {key: "A", name: "a", attributes: {category: {}}}) { node { id } } }'
    )
    clients.store.max_commit_changes = 10
    update = 'updateCategoryNode(input: {node: {path: "A"}, name: "%s"}%s)'
    for option in (", dryRun: true", ""):
        given = update % (" ".join("abcdefghijklm"), option)
        assert await told(clients, given) == [("TOO_LARGE", None, "tooLarge")]


async def test_a_hidden_parent_is_not_disclosed_by_the_rename_of_a_grant_root_that_is_not_there(clients):
    answers = []
    for tree in ("US", "XX"):
        grants = Grants.parse([f"write:location/{tree}/A", f"write:location/{tree}/B"])
        caller = Clients(clients.store, grants=grants)
        answers.append(await told(caller, f'moveLocation(input: {{node: {{path: "{tree}/A"}}, key: "B"}})'))
    assert answers == [[("NOT_FOUND", ["node"], "missing")]] * 2
