"""Mutations, and the reads after them, on both stores."""

import pytest

from graph.errors import RULES
from graph.hierarchies.locations import Location
from resolvers.access.grants import Grants
from store.engine import ReadUsage
from store.model.records import derived_id, key_of
from store.writing.create_update import Create
from store.writing.writer import Writer
from tests import invariants
from tests.systems.writing import Clients


async def rename(clients, *changes):
    """Rename nodes, given by their path and new key, one after the other."""
    for path, key in changes:
        await clients.ask(
            f'mutation {{ moveLocation(input: {{node: {{path: "{path}"}}, key: "{key}"}}) {{ node {{ id }} }} }}'
        )


async def keys(clients, path):
    answer = await clients.ask("query($p: Path!) { location(path: $p) { children { nodes { key } } } }", p=path)
    return [node["key"] for node in answer["location"]["children"]["nodes"]]


async def test_everything_that_takes_a_path_leads_from_a_former_one_by_three_requests_more(clients):
    """After renames of the node and of what is above it, in an order that no path from root to node tells."""
    await rename(clients, ("US/NE", "N"), ("US/N/Omaha", "O"), ("US/N", "M"), ("US/M/O", "P"), ("US/M", "NE"))
    await clients.ask(
        """mutation { createLocation(input: {parent: {path: "US/NE/P"}, key: "new", name: "Newest",
            attributes: {postalCode: {latitude: 1, longitude: 1}}}) { node { id } } }"""
    )
    now, below = {"path": "US/NE/P"}, {"nodes": [{"path": "US/NE/P/new"}]}
    found = await clients.ask("""query($former: Path = "US/NE/Omaha", $entity: String = "US/NE/Omaha") {
        location(path: $former) { path } city(path: $former) { path } locationsByPath(paths: [$former]) { path }
        _entities(representations: [{__typename: "City", path: $entity}]) { ... on City { path } }
        searchLocations(text: "newest", under: $former) { nodes { path } } }""")
    assert found == {
        "location": now, "city": now, "locationsByPath": [now], "_entities": [now],
        "searchLocations": below,
    }  # fmt: skip
    reads = []
    for path in ("US/NE/P", "US/NE/Omaha", "US/N/Omaha", "US/M/O", "US/MO/never"):
        reader = Clients(clients.store)
        found = (await reader.ask("query($path: Path!) { location(path: $path) { path } }", path=path))["location"]
        assert found == (None if path.endswith("never") else now)
        reads.append(reader.request.reads.requests)
    assert reads == [1, 4, 4, 4, 2]


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


async def test_an_idempotency_key_is_of_one_mutation_in_any_order_of_its_input_and_ignored_by_a_dry_run(clients):
    """Also where the node was changed since, or is gone; see tests/rights/test_repetitions.py for what it leads to."""
    update = """mutation { updateLocation(input: {node: {path: "US/NE/Omaha"}, attributes: { city: { %s } }},
        idempotencyKey: "k") { node { path revision ... on City { timezone population } } } }"""
    one, other = 'timezone: "UTC", population: 7', 'population: 7, timezone: "UTC"'
    first = await clients.ask(update % one)
    await rename(clients, ("US/NE/Omaha", "X"))
    assert await clients.ask(update % other) == first
    forecast = update.replace("idempotencyKey", "dryRun: true, idempotencyKey") % one
    assert (await clients.faults(forecast))[0]["code"] == "NOT_FOUND", "a dry run tells what would be without the key"
    await clients.ask('mutation { deleteLocation(input: {node: {path: "US/NE"}, policy: CASCADE}) { node { id } } }')
    assert await clients.ask(update % one) == first
    code, message = await clients.refusal(update % 'population: 8, timezone: "UTC"')
    assert (code, "another change" in message) == ("BAD_USER_INPUT", True)


async def test_null_clears_one_name_or_all_of_them(clients):
    told = []
    for names in ('[{language: "de", text: "A"}, {language: "fr", text: "B"}]', '[{language: "DE"}]', "null", "[]"):
        update = f'updateLocation(input: {{node: {{path: "US"}}, names: {names}}})'
        written = await clients.ask(f"mutation {{ {update} {{ node {{ revision names {{ text }} }} }} }}")
        node = written["updateLocation"]["node"]
        told.append((node["revision"], [one["text"] for one in node["names"]]))
    assert told == [(2, ["A", "B"]), (3, ["B"]), (4, []), (4, [])], "the last one changes nothing"


async def test_a_server_that_may_not_write_says_so_whatever_the_input(store):
    for mutation in (
        'createLocation(input: {key: "X", name: "x", attributes: {country: {}}})',
        'updateLocation(input: {node: {path: "US/NE"}, name: ""})',
        'moveLocation(input: {node: {path: "US/NE"}, to: {root: true}}, dryRun: true)',
        'deleteLocation(input: {node: {path: "US"}, policy: CASCADE})',
    ):
        asked = Clients(store, writes=False).refusal(f"mutation {{ {mutation} {{ node {{ path }} }} }}")
        message = "Mutations are disabled on this server; CLADE_WRITES=granted or on enables them."
        assert await asked == ("FORBIDDEN", message)


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
CITY = f'{{id: "location:{derived_id("location", ("US", "MO", "St. Louis"))}"}}'
NEW = 'key: "ab", name: "a", attributes: {city: {}}})'
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
    f'createLocation(input: {{parent: {{path: "X{"/x" * 31}"}}, {NEW}': [
        ("BAD_PATH", ["key"], "depth"), ("NOT_FOUND", ["parent"], "missing"),
    ],
    f'createLocation(input: {{parent: {{path: "X/{"x" * 1_020}"}}, {NEW}': [
        ("BAD_PATH", ["key"], "maxLength"), ("NOT_FOUND", ["parent"], "missing"),
    ],
    f'updateLocation(input: {{node: {{path: "US"}}, name: "{"x" * 500_000}"}})': [(INPUT, ["name"], "maxLength")],
    'updateLocation(input: {node: {path: "US"}, expectedRevision: 3, attributes: {city: {code: "1"}}})': [
        ("CONFLICT", ["expectedRevision"], "conflict"), ("WRONG_LEVEL", ["attributes"], "level"),
    ],
    """updateLocation(input: {node: {path: "US"}, names: [{language: "d"}, {language: "de", text: ""},
        {language: "DE"}]})""": [
        (INPUT, ["names", "0", "language"], "type"), (INPUT, ["names", "1", "text"], "empty"),
        (INPUT, ["names", "2", "language"], "duplicate"),
    ],
    'moveLocation(input: {node: {path: "US/NE"}})': [(INPUT, None, "required")],
    'moveLocation(input: {node: {path: "US//NE"}, to: {root: false}, key: "", position: {first: false}})': [
        ("BAD_PATH", ["node"], "path"), (INPUT, ["to"], "required"), (INPUT, ["position"], "required"),
        ("BAD_PATH", ["key"], "empty"),
    ],
    """moveLocation(input: {node: {path: "US/KS"}, to: {parent: {path: "US"}}, key: "NE",
        position: {before: {id: "location:zz"}}})""": [
        ("NOT_FOUND", ["position"], "missing"), ("NOT_FOUND", ["node"], "missing"),
        ("ALREADY_EXISTS", ["key"], "taken"),
    ],
    f'moveLocation(input: {{node: {{path: "US/NE"}}, to: {{parent: {{path: "US"}}}}, position: {{before: {CITY}}}}})': [
        (INPUT, ["position"], "sibling"),
    ],
    'moveLocation(input: {node: {path: "US/NE"}, position: {after: {path: "US/NE/Omaha"}}})': [
        ("MISPLACED", ["position"], "misplaced"),
    ],
    'moveLocation(input: {node: {path: "US/NE"}, to: {parent: {path: "US/NE/Omaha"}}, key: "New\u00a0York"})': [
        ("BAD_PATH", ["key"], "characters"), ("MISPLACED", ["to"], "misplaced"),
    ],
    'deleteLocation(input: {node: {path: "US/NE"}, expectedRevision: null})': [
        (INPUT, ["expectedRevision"], "required"), ("NOT_EMPTY", ["policy"], "notEmpty"),
    ],
    'deleteLocation(input: {node: {path: "US"}, policy: REPARENT, expectedRevision: 1})': [
        ("MISPLACED", ["policy"], "misplaced"), ("MISPLACED", ["policy"], "misplaced"),
    ],
    """createAssetNode(input: {key: "E", name: "E", names: [$], attributes: {equipment: {}}})""".replace(
        "$", " ".join(f'{{language: "de-{number:04}", text: "x"}}' for number in range(51))
    ): [(INPUT, ["names"], "maxItems")],
    'createCategoryNode(input: {key: "TV", name: "x", attributes: {category: {none: false}}})': [
        (INPUT, ["attributes", "category", "none"], "type"),
    ],
}  # fmt: skip


async def test_all_faults_of_an_input_come_at_once_with_their_fields_and_nothing_is_written(clients):
    before = sorted(await invariants.all_items(clients.store), key=key_of)
    for mutation, expected in SEVERAL.items():
        assert await told(clients, mutation) == expected, mutation
        for option in ("dryRun: true", 'idempotencyKey: "once"'):
            faults = await told(clients, f"{mutation[:-1]}, {option})")
            assert faults == expected, (option, mutation)
    assert sorted(await invariants.all_items(clients.store), key=key_of) == before


async def test_more_than_a_hundred_faults_are_the_first_hundred_and_one_that_says_so(clients):
    create = """mutation($names: [LocalizedTextInput!]) { createAssetNode(input: {key: "", name: "x", names: $names,
        attributes: {equipment: {}}}) { node { id } } }"""
    names = [["names", f"{place}", "language"] for place in range(100)]
    for number, expected in ((99, [*names[:99], ["key"]]), (100, [*names, None]), (600, [*names, None])):
        faults = await clients.faults(create, names=[{"language": "d", "text": "x"}] * number)
        assert [one["field"] for one in faults] == expected
    assert (faults[-1]["code"], faults[-1]["rule"], faults[-1]["message"]) == (
        "BAD_USER_INPUT",
        "more",
        "The input has more faults than these 100; mend them, and send it again to see the others.",
    )


async def test_nodes_are_named_by_their_ids(clients):
    """tests/rights/test_repetitions.py has every mutation by path and by id."""
    ne, mo, omaha = await ids(clients, "US/NE", "US/MO", "US/NE/Omaha")
    move = f"""mutation {{ moveLocation(input: {{node: {{id: "{omaha}"}}, to: {{parent: {{id: "{mo}"}}}}, key: "New"}})
        {{ node {{ id path }} previousParent {{ id }} }} }}"""
    moved = {"node": {"id": omaha, "path": "US/MO/New"}, "previousParent": {"id": ne}}
    assert (await clients.ask(move))["moveLocation"] == moved
    for wrong in ("location:nobody", "asset:1", "", "location:", "x" * 5_000):
        given = f'updateLocation(input: {{node: {{id: "{wrong}"}}, name: "x"}})'
        assert await told(clients, given) == [("NOT_FOUND", ["node"], "missing")]
    given = 'createLocation(input: {parent: {id: "location:x"}, key: "a", name: "a", attributes: {city: {}}})'
    assert await told(clients, given) == [("NOT_FOUND", ["parent"], "missing")]


@pytest.mark.both_stores
async def test_an_expected_revision_is_never_that_of_another_node_which_came_to_the_path(clients):
    (omaha,) = await ids(clients, "US/NE/Omaha")
    create = """mutation { createLocation(input: {parent: {path: "US/NE"}, key: "Omaha", name: "Another", id: "own",
        attributes: {city: {}}}) { node { revision } } }"""

    async def outcomes(path):
        """What comes of each change of the node at the path, of which the editor knows revision 1."""
        node = f'node: {{path: "{path}"}}, expectedRevision: 1'
        given = [f'update@{node}, name: "Mine"', f'move@{node}, key: "Mine"', f"delete@{node}, policy: CASCADE"]
        return [await told(clients, f"{one.replace('@', 'Location(input: {')}}})") for one in given]

    await rename(clients, ("US/NE/Omaha", "Moved"))
    await clients.ask(create)
    assert await outcomes("US/NE/Omaha") == [[("CONFLICT", ["expectedRevision"], "conflict")]] * 3
    mine = f'mutation {{ updateLocation(input: {{node: {{id: "{omaha}"}}, name: "Mine", expectedRevision: 1}})'
    written = await clients.ask(f"{mine} {{ node {{ path revision }} }} }}")
    assert written["updateLocation"]["node"] == {"path": "US/NE/Moved", "revision": 2}


@pytest.mark.both_stores
async def test_a_deleted_node_is_told_from_the_next_one_at_its_path(clients):
    """One without an id of its own, one with a given id, and one that came from elsewhere, below a node that goes."""

    async def plant(parent, key, level="city", node_id=None):
        await clients.ask(
            """mutation($parent: Path!, $key: String!, $id: ID, $of: LocationAttributes!) { createLocation(input: {
            parent: {path: $parent}, key: $key, name: $key, id: $id, attributes: $of}) { node { id } } }""",
            parent=parent, key=key, id=node_id, of={level: {}},
        )  # fmt: skip

    async def delete(path):
        gone = f'deleteLocation(input: {{node: {{path: "{path}"}}, policy: CASCADE}})'
        await clients.ask(f"mutation {{ {gone} {{ node {{ id }} }} }}")

    await delete("US/MO/St. Louis")  # in a tree in which nothing was moved
    await plant("US/MO", "given", node_id="own")
    moved = 'moveLocation(input: {node: {path: "US/NE/Omaha/68118"}, to: {parent: {path: "US/MO/given"}}})'
    await clients.ask(f"mutation {{ {moved} {{ node {{ id }} }} }}")
    await delete("US/MO/given")
    for parent, key, level in (
        ("US/MO", "given", "city"), ("US/MO/given", "68118", "postalCode"), ("US/MO", "St. Louis", "city"),
    ):  # fmt: skip
        await plant(parent, key, level)
        update = f'updateLocation(input: {{node: {{path: "{parent}/{key}"}}, name: "x", expectedRevision: 1}})'
        assert await told(clients, update) == [("CONFLICT", ["expectedRevision"], "conflict")], key
    update = 'updateLocation(input: {node: {path: "US/NE/Lincoln"}, name: "L", expectedRevision: 1})'
    assert await told(clients, update) == []


@pytest.mark.both_stores
async def test_a_move_gives_parent_key_and_position_at_once_and_a_sibling_implies_the_parent(clients):
    move = """mutation { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {path: "US/MO"}}, key: "Z",
        position: {first: true}}) { node { path children { nodes { path } } } } }"""
    assert (await clients.ask(move))["moveLocation"]["node"] == {
        "path": "US/MO/Z", "children": {"nodes": [{"path": "US/MO/Z/68118"}]},
    }  # fmt: skip
    assert await keys(clients, "US/MO") == ["Z", "St. Louis"]
    implied = 'node: {path: "US/NE/Lincoln"}, position: {before: {path: "US/MO/Z"}}'
    for _ in range(2):  # the second time there is nothing to do
        moved = await clients.ask(f"mutation {{ moveLocation(input: {{{implied}}}) {{ node {{ path }} }} }}")
        assert moved["moveLocation"]["node"] == {"path": "US/MO/Lincoln"}
        implied = implied.replace("US/NE", "US/MO")
    last = 'moveLocation(input: {node: {path: "US/MO/Z"}, to: {parent: {path: "US/MO"}}, position: {last: true}})'
    await clients.ask(f"mutation {{ {last} {{ node {{ path }} }} }}")
    assert await keys(clients, "US/MO") == ["Lincoln", "St. Louis", "Z"]


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
