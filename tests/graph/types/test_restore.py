"""The mutations that undo deletions, on both stores."""

from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from store.engine import Store
from store.metadata.moves import MoveTiming
from store.model.records import derived_id
from tests import invariants
from tests.rights.asking import Server, caller
from tests.store.writing.journaled import SMALL, SOON
from tests.systems.asking import plant
from tests.systems.writing import Clients

NE, OMAHA, PART = [
    f"location:{derived_id('location', path)}"
    for path in [("US", "NE"), ("US", "NE", "Omaha"), ("US", "NE", "Omaha", "68118")]
]
WHOLE = "node { id path level revision childCount children { nodes { path } } } move { id } plan { nodes transactions }"


async def delete(clients: Clients, path: str) -> None:
    given = f'input: {{node: {{path: "{path}"}}, policy: CASCADE}}'
    await clients.ask(f"mutation {{ deleteLocation({given}) {{ node {{ id }} }} }}")


async def restore(clients: Clients, given: str, options: str = "") -> Any:
    answer = await clients.ask(f"mutation {{ restoreLocation(input: {{{given}}}{options}) {{ {WHOLE} }} }}")
    return answer["restoreLocation"]


async def told(clients: Clients, given: str) -> Any:
    """Code, field and message of each user error of a restore."""
    faults = await clients.faults(f"mutation {{ restoreLocation(input: {{{given}}}) {{ node {{ id }} }} }}")
    return [(one["code"], one["field"], one["message"]) for one in faults]


async def test_a_restore_brings_back_the_node_and_all_that_its_deletion_removed(clients):
    await delete(clients, "US/NE/Lincoln")  # stays deleted
    await delete(clients, "US/NE")
    deleted = f'{{ deletedNode(id: "{NE}") {{ path descendantCount }} }}'
    assert (await clients.ask(deleted))["deletedNode"] == {"path": "US/NE", "descendantCount": 2}
    assert await restore(clients, f'id: "{NE}"') == {
        "node": {
            "id": NE, "path": "US/NE", "level": "STATE", "revision": 2, "childCount": 1,
            "children": {"nodes": [{"path": "US/NE/Omaha"}]},
        },
        "move": None, "plan": None,
    }  # fmt: skip
    found = await clients.ask(f"""{{ deletedNode(id: "{NE}") {{ path }}
        state(path: "US/NE") {{ descendantCount population atRevision(n: 1) {{ name }} history {{ totalCount }} }}
        city(path: "US/NE/Omaha") {{ timezone history {{ totalCount }} }}
        changes(hierarchy: LOCATION, tree: "US") {{ changes {{
            event path withDescendants nodeId level revision }} }} }}""")
    changes = found.pop("changes")["changes"]
    assert found == {
        "deletedNode": None,
        "state": {
            "descendantCount": 2, "population": 1_900_000, "atRevision": {"name": "NE"}, "history": {"totalCount": 2},
        },
        "city": {"timezone": "America/Chicago", "history": {"totalCount": 2}},
    }  # fmt: skip
    assert changes[-1] == {
        "event": "RESTORED", "path": "US/NE", "withDescendants": True, "nodeId": NE, "level": "STATE", "revision": 2,
    }  # fmt: skip
    assert [one["event"] for one in changes].count("RESTORED") == 1


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (f'id: "{OMAHA}"', "US/NE/Omaha"),
        (f'id: "{OMAHA}", to: null, key: null', "US/NE/Omaha"),
        (f'id: "{OMAHA}", key: "OMA"', "US/NE/OMA"),
        (f'id: "{OMAHA}", to: {{parent: {{path: "US/MO"}}}}', "US/MO/Omaha"),
        (f'id: "{OMAHA}", to: {{parent: {{id: "{NE}"}}}}, key: "O"', "US/NE/O"),
    ],
)
async def test_the_place_is_the_former_one_or_the_given_one(clients, given, path):
    await delete(clients, "US/NE/Omaha")
    plan = await restore(clients, given, ", dryRun: true")
    assert plan == {"node": None, "move": None, "plan": {"nodes": 2, "transactions": 1}}
    once = ', idempotencyKey: "once"'
    first = await restore(clients, given, once)
    assert (first["node"]["path"], first["node"]["children"]) == (path, {"nodes": [{"path": f"{path}/68118"}]})
    assert await restore(clients, given, once) == first
    former = await clients.ask('{ location(path: "US/NE/Omaha") { path } }')
    assert former == {"location": {"path": path}}, "former paths are redirected"


async def test_the_former_parent_is_found_by_its_id(clients):
    await delete(clients, "US/NE/Omaha")
    await clients.ask('mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Neb"}) { node { id } } }')
    assert (await restore(clients, f'id: "{OMAHA}"'))["node"]["path"] == "US/Neb/Omaha"


async def test_a_root_comes_back_as_a_root_and_another_node_becomes_one(store):
    await plant(store, CategoryNode, [(("a",), "CATEGORY"), (("a", "b"), "CATEGORY"), (("a", "b", "c"), "CATEGORY")])
    clients, (a, b) = Clients(store), [f"category:{derived_id('category', path)}" for path in [("a",), ("a", "b")]]
    for path in ("a/b", "a"):
        given = f'input: {{node: {{path: "{path}"}}, policy: CASCADE}}'
        await clients.ask(f"mutation {{ deleteCategoryNode({given}) {{ node {{ id }} }} }}")
    asked = 'mutation { restoreCategoryNode(input: {id: "%s" %s}) { node { path childCount descendantCount } } }'
    for given, path, below in (((a, ""), "a", 0), ((b, "to: {root: true}"), "b", 1)):
        found = (await clients.ask(asked % given))["restoreCategoryNode"]["node"]
        assert found == {"path": path, "childCount": below, "descendantCount": below}
    roots = await clients.ask("{ categories { nodes { path descendantCount } } }")
    assert roots["categories"]["nodes"] == [{"path": "a", "descendantCount": 0}, {"path": "b", "descendantCount": 1}]
    await invariants.check(store)


NONE = "There is no deleted node with the id"


async def test_each_fault_is_told_at_its_field_and_nothing_is_changed(clients):
    await delete(clients, "US/NE/Omaha/68118")
    await delete(clients, "US/NE/Omaha")
    await clients.ask(
        """mutation { createLocation(input: {parent: {path: "US/NE"}, key: "Omaha", name: "x", id: "new",
        attributes: {city: {}}}) { node { id } } }"""
    )
    way = '; one begins with "location:".'
    for given, expected in {
        'id: "location:none"': [("NOT_FOUND", ["id"], f'{NONE} "location:none".')],
        'id: "none"': [("NOT_FOUND", ["id"], f'{NONE} "none"{way}')],
        'id: ""': [("NOT_FOUND", ["id"], f'{NONE} ""{way}')],
        f'id: "location:{"x" * 3_000}"': [("NOT_FOUND", ["id"], None)],
        f'id: "{OMAHA.partition(":")[2]}"': [("NOT_FOUND", ["id"], f'{NONE} "{OMAHA.partition(":")[2]}"{way}')],
        f'id: "{NE}"': [("NOT_FOUND", ["id"], f'{NONE} "{NE}".')],
        f'id: "{OMAHA}"': [
            ("ALREADY_EXISTS", ["key"], "There is a node at US/NE/Omaha already; choose another place.")
        ],
        f'id: "{OMAHA}", key: ""': [("BAD_PATH", ["key"], None)],
        f'id: "{OMAHA}", key: "a", to: {{root: false}}': [("BAD_USER_INPUT", ["to"], None)],
        f'id: "{OMAHA}", key: "a", to: {{parent: {{path: "X"}}}}': [("NOT_FOUND", ["to"], None)],
        f'id: "{OMAHA}", key: "a", to: {{parent: {{id: "location:none"}}}}': [("NOT_FOUND", ["to"], None)],
        f'id: "{OMAHA}", to: {{parent: {{path: "US/MO/St. Louis"}}}}': [("MISPLACED", ["to"], None)],
        f'id: "{OMAHA}", to: {{root: true}}': [("MISPLACED", ["to"], None)],
        f'id: "{PART}"': [
            ("NOT_FOUND", ["to"], f"The parent {OMAHA} is deleted as well; restore that first, or give to.")
        ],
        'id: "location:none", key: "", to: {parent: {path: "X"}}': [
            ("NOT_FOUND", ["id"], None),
            ("BAD_PATH", ["key"], None),
            ("NOT_FOUND", ["to"], None),
        ],
        f'id: "{OMAHA}", key: "{"k" * 1_020}"': [("BAD_PATH", ["key"], None)],
    }.items():
        found = await told(clients, given)
        wanted = [(code, field) for code, field, _ in expected]
        assert sorted(one[:2] for one in found) == sorted(wanted), (given, found)
        assert [text for *_, text in expected if text] in ([], [text for *_, text in found]), found
    assert (await restore(clients, f'id: "{OMAHA}", key: "old"'))["node"]["children"] == {"nodes": []}
    assert (await restore(clients, f'id: "{PART}"'))["node"]["path"] == "US/NE/old/68118"


async def test_an_input_needs_an_id(clients):
    for given in ("{}", "{id: null}", '{key: "x"}', "{id: 7.5}"):
        asked = f"mutation {{ restoreLocation(input: {given}) {{ node {{ id }} }} }}"
        assert await clients.codes(asked) == {"GRAPHQL_VALIDATION_FAILED"}, given
    assert await clients.codes("mutation { restoreLocation { node { id } } }") == {"GRAPHQL_VALIDATION_FAILED"}
    assert await told(clients, "id: 7") == [("NOT_FOUND", ["id"], f'{NONE} "7"; one begins with "location:".')]


async def test_a_server_that_may_not_write_says_so(store):
    asked = 'mutation { restoreLocation(input: {id: "location:none"}) { node { id } } }'
    code, _ = await Clients(store, writes=False).refusal(asked)
    assert code == "FORBIDDEN"


async def deleted(store: Store, *below: str) -> str:
    """The id of `r/a`, deleted with the nodes at these paths below it; a restore of them is a large one."""
    paths = ["r", "r/a", "q", *below]
    await plant(store, CategoryNode, [(tuple(path.split("/")), "CATEGORY") for path in paths])
    server = Server(store, CategoryNode, timing=SOON)
    sent = 'mutation { deleteCategoryNode(input: {node: {path: "r/a"}, policy: CASCADE}) { move { id } } }'
    await server.write(caller("write:category"), sent)
    await server.writer.move_worker.finished()
    store.max_commit_changes = SMALL
    return f"category:{derived_id('category', ('r', 'a'))}"


async def test_a_large_restore_has_its_move_in_the_payload(store: Store) -> None:
    a = await deleted(store, *[f"r/a/n{number}" for number in range(SMALL)], "r/a/n0/x")
    server, who = Server(store, CategoryNode, timing=SOON), caller("write:category")
    counts = "path childCount descendantCount children { totalCount } descendants { totalCount }"
    asked = f"""mutation($dryRun: Boolean!) {{ restoreCategoryNode(input: {{id: "{a}", to: {{parent: {{path: "q"}}}}}},
        dryRun: $dryRun, idempotencyKey: "k") {{ node {{ {counts} }} move {{ from to nodes }} plan {{ nodes }} }} }}"""
    plan = await server.write(who, asked, dryRun=True)
    nodes = SMALL + 2
    assert plan["data"]["restoreCategoryNode"] == {"node": None, "move": None, "plan": {"nodes": nodes}}
    first, again = [await server.write(who, asked, dryRun=False) for _ in range(2)]
    below = {"totalCount": nodes - 1}
    assert first["data"]["restoreCategoryNode"] == {
        "node": {
            "path": "q/a", "childCount": SMALL, "descendantCount": nodes - 1, "children": {"totalCount": SMALL},
            "descendants": below,
        },
        "move": {"from": "r/a", "to": "q/a", "nodes": nodes}, "plan": None,
    }  # fmt: skip
    assert again == first
    await server.writer.move_worker.finished()
    await invariants.check(store)


async def test_a_large_restore_that_is_sent_again_before_it_has_begun_has_the_same_payload(store: Store) -> None:
    a = await deleted(store, *[f"r/a/n{number}" for number in range(SMALL)])
    timing, who = MoveTiming(1.0, 0.0, 0.0, 5.0), caller("write:category")  # each request returns at once
    server = Server(store, CategoryNode, timing=timing)
    asked = f"""mutation {{ restoreCategoryNode(input: {{id: "{a}"}}, idempotencyKey: "k") {{
        node {{ id path name level revision }} move {{ id }} userErrors {{ code message }} }} }}"""
    answers = [(await server.write(who, asked))["data"]["restoreCategoryNode"] for _ in range(2)]
    await server.writer.move_worker.finished()
    answers.append((await server.write(who, asked))["data"]["restoreCategoryNode"])
    node = {"id": a, "path": "r/a", "name": "a", "level": "CATEGORY", "revision": 2}
    assert [one["node"] for one in answers] == [node] * 3
    assert [one["userErrors"] for one in answers] == [[]] * 3
    assert len({one["move"]["id"] for one in answers}) == 1
    await invariants.check(store)
