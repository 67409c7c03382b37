"""Every field and mutation that reaches a node, for callers with grants in every relation to it.

The fields are taken from the schema: one that has no expectation here fails the first tests. The node is Omaha.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, get_named_type, is_leaf_type, is_required_argument

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.selection import core_schema
from store.connect import open_store
from store.engine import Store
from store.metadata.moves import Move, MoveState
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import Put
from tests.model import AT
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import plant

PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"),
    ("US/NE/Omaha", "CITY", "Omaha", {
        "code": "OMA", "population": 486_051, "latitude": 41.25, "longitude": -96.0, "timezone": "America/Chicago",
        "names": {"uk": "Омаха"},
    }),
    ("US/NE/Omaha/68118", "POSTAL_CODE"), ("US/NE/Omaha/68102", "POSTAL_CODE"), ("US/NE/Omaha2", "CITY"),
    ("US/NE/Lincoln", "CITY"), ("US/IA", "STATE"), ("FR", "COUNTRY"),
]  # fmt: skip
GOODS = [
    ("Books", "CATEGORY"),
    ("Books/Maps", "CATEGORY"),
    ("Books/Maps/Atlas", "PRODUCT"),
    ("Books/Maps/Atlas/A4", "VARIANT"),
]
OMAHA, CHILD = "US/NE/Omaha", "US/NE/Omaha/68118"

CASES = {
    "none": [],
    "node": [f"location/{OMAHA}"],
    "ancestor": ["location/US"],
    "same prefix": ["location/US/NE/Omaha2", "location/US/NE/Oma", "location/U"],
    "child": [f"location/{CHILD}"],
    "other hierarchy": ["category"],
}

SAME = "what somebody gets who may read everything"
NULL, EMPTY, FORBIDDEN = None, {"nodes": []}, "FORBIDDEN"

# -- the fields of a node ----------------------------------------------------------------------------------------------

# A selection on Omaha, and its value for a grant on Omaha itself.
OF_A_NODE: dict[str, tuple[str, Any]] = {
    "id": ("id", SAME),
    "path": ("path", SAME),
    "key": ("key", SAME),
    "name": ('name(languages: ["uk"])', SAME),
    "nameLanguage": ('nameLanguage(languages: ["uk"])', SAME),
    "names": ("names { language text }", SAME),
    "level": ("level", SAME),
    "depth": ("depth", SAME),
    "levelName": ("levelName", SAME),
    "childCount": ("childCount", SAME),
    "descendantCount": ("descendantCount(level: POSTAL_CODE)", SAME),
    "revision": ("revision", SAME),
    "updatedAt": ("updatedAt", SAME),
    "changedBy": ("changedBy", SAME),
    "code": ("code", SAME),
    "population": ("population", SAME),
    "latitude": ("latitude", SAME),
    "longitude": ("longitude", SAME),
    "timezone": ("... on City { timezone }", SAME),
    "parent": ("parent { path name }", NULL),
    "ancestors": ("ancestors { path level }", []),
    "children": ("children { nodes { path } }", SAME),
    "descendants": ("descendants { nodes { path } }", SAME),
    "history": ("history { nodes { revision } }", SAME),
    "atRevision": ("atRevision(n: 1) { revision }", SAME),
}

# -- the fields of Query -----------------------------------------------------------------------------------------------


def on_omaha(own: Any = SAME) -> list[Any]:
    """What the cases get of something that is about Omaha, in their order; `own` with a grant on Omaha itself."""
    return [NULL, own, SAME, NULL, NULL, NULL]


def roots(*paths: str) -> Any:
    """A list of roots."""
    return {"nodes": [{"path": path} for path in paths]}


PATH = "{ ... on Location { path } ... on CategoryNode { path } }"
GOODS_ONLY = [NULL, NULL, NULL, NULL, NULL, SAME]


def told(*events: str) -> Any:
    """Changes of Omaha, and with a plus of a child that was made and deleted."""
    found = [{"event": one.strip("+"), "path": f"{OMAHA}/gone" if "+" in one else OMAHA} for one in events]
    return {"changes": found}


def found(*paths: str) -> Any:
    """What a search returns that finds these."""
    return {"complete": True, "nodes": [{"path": path} for path in paths]}


# The field with its selection, and the value for each case: SAME, or the value in a response without an error.
OF_QUERY: dict[str, list[tuple[str, list[Any]]]] = {
    "location": [
        (f'location(path: "{OMAHA}") {{ path }}', on_omaha()),
        ("location(id: $id) { path }", on_omaha()),
        (f'location(path: "{OMAHA}-old") {{ path }}', on_omaha()),
        ('location(path: "US/NE/Oma") { path }', [NULL] * 6),
    ],
    "city": [(f'city(path: "{OMAHA}") {{ path }}', on_omaha()), ("city(id: $id) { path }", on_omaha())],
    **{
        level: [(f'{level}(path: "{OMAHA}") {{ path }}', on_omaha())]  # it is of another, for who may see it
        for level in ("country", "region", "state", "county", "neighborhood", "postalCode", "store")
    },
    "locations": [
        (
            "locations { nodes { path } }",
            [roots(), roots(OMAHA), roots("US"), roots("US/NE/Omaha2"), roots(CHILD), roots()],
        ),
        (
            "locations(orderBy: [{field: UPDATED_AT}], where: {childCount: {gt: 0}}) { totalCount nodes { path } }",
            [{"totalCount": len(paths)} | roots(*paths) for paths in ((), (OMAHA,), ("US",), (), (), ())],
        ),
    ],
    "locationsByPath": [
        (
            f'locationsByPath(paths: ["{OMAHA}", "US/NE/Oma", "{OMAHA}-old"]) {{ path }}',
            [[NULL] * 3, SAME, SAME, [NULL] * 3, [NULL] * 3, [NULL] * 3],
        )
    ],
    "categoriesByPath": [('categoriesByPath(paths: ["Books"]) { path }', [[NULL]] * 5 + [SAME])],
    "node": [(f"node(id: $id) {PATH}", on_omaha())],
    "nodes": [(f"nodes(ids: [$id]) {PATH}", [[NULL], SAME, SAME, [NULL], [NULL], [NULL]])],
    "categoryNode": [('categoryNode(path: "Books") { path }', GOODS_ONLY)],
    "category": [('category(path: "Books/Maps") { id }', GOODS_ONLY)],
    "product": [('product(path: "Books/Maps/Atlas") { name }', GOODS_ONLY)],
    "variant": [('variant(path: "Books/Maps/Atlas/A4") { path }', GOODS_ONLY)],
    "categories": [("categories { nodes { path } }", [EMPTY] * 5 + [SAME])],
    "move": [("move(id: $move) { from to }", [NULL, SAME, SAME, NULL, NULL, NULL])],
    "hierarchies": [("hierarchies { name }", [[], *[[{"name": "LOCATION"}]] * 4, [{"name": "CATEGORY"}]])],
    # Who may see a part is told of running moves alone.
    "moves": [("moves(hierarchy: LOCATION) { from to }", [[], [], [], [], [], []])],
    "deletedNode": [("deletedNode(id: $gone) { nodeId path }", [NULL, SAME, SAME, NULL, NULL, NULL])],
    "changes": [
        (
            f'changes(hierarchy: LOCATION, tree: "US", under: "{OMAHA}") {{ changes {{ event path }} }}',
            [
                told(),
                told("CREATED", "+CREATED", "+DELETED"),
                SAME,
                told(),
                {"changes": [{"event": "CREATED", "path": CHILD}]},
                told(),
            ],
        )
    ],
    "_entities": [
        (
            f'_entities(representations: [{{__typename: "City", path: "{OMAHA}"}}]) {{ ... on City {{ path }} }}',
            [[NULL], SAME, SAME, [NULL], [NULL], [NULL]],
        ),
        (
            '_entities(representations: [{__typename: "City", id: $id}]) { ... on City { path } }',
            [[NULL], SAME, SAME, [NULL], [NULL], [NULL]],
        ),
    ],
    "searchLocations": [
        (
            'searchLocations(text: "oma") { complete nodes { path } }',
            [found(), found(OMAHA), SAME, found("US/NE/Omaha2"), found(), found()],
        ),
        (
            'searchLocations(text: "омаха", under: "US/NE") { complete nodes { path } }',
            [found(), found(), SAME, found(), found(), found()],
        ),
        (
            'searchLocations(text: "68118") { complete nodes { path } }',
            [found(), found(CHILD), SAME, found(), found(CHILD), found()],
        ),
    ],
    "locationsNear": [
        (
            "locationsNear(latitude: 41.2, longitude: -96.1) { complete nodes { path } }",
            [found(), found(OMAHA), SAME, found(), found(), found()],
        ),
    ],
    "searchCategories": [
        ('searchCategories(text: "maps") { complete nodes { path } }', [found()] * 5 + [SAME]),
    ],
    "_service": [("_service { sdl }", [SAME] * 6)],
}


# -- the mutations -----------------------------------------------------------------------------------------------------

OK, UNSEEN = "OK", "NOT_FOUND"


def writes(node: str = OK) -> list[str]:
    """What the cases get of a mutation on Omaha, in their order."""
    return [FORBIDDEN, node, OK, UNSEEN, UNSEEN, FORBIDDEN]


POSTAL = "attributes: {postalCode: {}}"


def at(path: str) -> str:
    return f'node: {{path: "{path}"}}'


# The input of each mutation, and what the cases get, in their order.
OF_MUTATION: dict[str, list[tuple[str, list[str]]]] = {
    "createLocation": [
        (f'parent: {{path: "{OMAHA}"}}, key: "x", name: "x", {POSTAL}', writes()),
        (f'parent: {{id: "$id"}}, key: "x", name: "x", {POSTAL}', writes()),
        (f'parent: {{path: "{OMAHA}"}}, key: "x", id: "x", name: "x", {POSTAL}', [FORBIDDEN] * 6),
        ('key: "AT", name: "x", attributes: {country: {}}', [FORBIDDEN] * 6),
    ],
    "updateLocation": [
        (f'{at(OMAHA)}, name: "x"', writes()),
        ('node: {id: "$id"}, name: "x"', writes()),
    ],
    "moveLocation": [
        (f'{at(OMAHA)}, key: "x"', writes(FORBIDDEN)),
        ('node: {id: "$id"}, key: "x"', writes(FORBIDDEN)),
        (f'{at(OMAHA)}, to: {{parent: {{path: "US/IA"}}}}', writes(UNSEEN)),
        (f'{at(OMAHA)}, to: {{parent: {{path: "US/IA"}}}}, key: "x", position: {{first: true}}', writes(UNSEEN)),
        (f'{at(CHILD)}, to: {{parent: {{path: "US/NE/Lincoln"}}}}', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        (f'{at(CHILD)}, to: {{parent: {{id: "$lincoln"}}}}', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        (f"{at(OMAHA)}, position: {{last: true}}", writes(FORBIDDEN)),
        (f'{at(OMAHA)}, position: {{after: {{path: "US/NE/Omaha2"}}}}',
         [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        (f'{at(OMAHA)}, position: {{after: {{id: "$lincoln"}}}}', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
    ],
    "deleteLocation": [
        (f"{at(OMAHA)}, policy: CASCADE", writes()),
        ('node: {id: "$id"}, policy: CASCADE', writes()),
        (f"{at(OMAHA)}, policy: REPARENT", writes(FORBIDDEN)),
    ],
    **{
        f"{verb}CategoryNode": [(given, [FORBIDDEN] * 5 + [OK])]
        for verb, given in {
            "create": 'parent: {path: "Books"}, key: "x", name: "x", attributes: {category: {}}',
            "update": 'node: {path: "Books"}, name: "x"',
            "move": 'node: {path: "Books/Maps"}, to: {root: true}',
            "delete": 'node: {path: "Books"}, policy: CASCADE',
        }.items()
    },
}  # fmt: skip

# Mutations that depend on more than the node. OPEN: the caller may read everything, so that nothing is NOT_FOUND.
OPEN, BOTH = "OPEN", "write:location/US/NE/Omaha write:location/US/NE/Lincoln"
OF_GRANTS = [
    ("write:location/US/NE", f'move@node: {{path: "{CHILD}"}}, to: {{parent: {{path: "US/NE/Lincoln"}}}}', OK),
    ("write:location/US/NE", 'create@parent: {path: "US"}, key: "NE2", name: "x", attributes: {state: {}}', UNSEEN),
    ("write:location/US/NE2", 'create@parent: {path: "US"}, key: "NE2", name: "x", attributes: {state: {}}', UNSEEN),
    ("write:location/US/NE", 'move@node: {path: "US/NE"}, key: "NE2"', FORBIDDEN),
    ("write:location/US/NE write:location/US/NE2", 'move@node: {path: "US/NE"}, key: "NE2"', OK),
    ("write:location/US/NE", 'move@node: {path: "US/NE/Omaha"}, to: {parent: {path: "US"}}', UNSEEN),
    ("write:location/US/NE", 'move@node: {path: "US/NE/Omaha"}, to: {root: true}', FORBIDDEN),
    (
        "write:location/US/NE read:location",
        'move@node: {path: "US/NE/Lincoln"}, to: {parent: {path: "US/IA"}}',
        FORBIDDEN,
    ),
    ("write:location/US/NE OPEN", 'update@node: {path: "US/IA"}, name: "x"', FORBIDDEN),
    (
        "write:location/US/NE OPEN",
        'create@parent: {path: "XX"}, key: "x", name: "x", attributes: {city: {}}',
        FORBIDDEN,
    ),
    ("write:location/AT", 'create@key: "AT", name: "x", attributes: {country: {}}', OK),
    ("write:location/AT", 'create@key: "BE", name: "x", attributes: {country: {}}', FORBIDDEN),
    ("write:location/US/NE", 'move@node: {path: "US/NE"}, to: {root: true}', FORBIDDEN),
    ("write:location/US", 'move@node: {path: "US"}, to: {root: true}', OK),  # to where it is
    ("write:location/US", 'move@node: {path: "US"}, key: "USA"', FORBIDDEN),
    ("write:location/US", 'delete@node: {path: "US"}, policy: REPARENT', FORBIDDEN),
    ("write:location/US/NE", f'delete@node: {{path: "{OMAHA}"}}, policy: REPARENT', OK),
    *[
        (f"{BOTH} {more}", f"move@{at(OMAHA)}, position: {{{place}}}", outcome)
        for place in ("first: true", "last: true", 'after: {path: "US/NE/Lincoln"}', 'before: {path: "US/NE/Lincoln"}')
        for more, outcome in (("", FORBIDDEN), ("read:location/US/NE", OK), (OPEN, OK))
    ],
    ("write:location/US", 'move@node: {path: "US"}, position: {first: true}', FORBIDDEN),
    ("write:location/US read:location", 'move@node: {path: "US"}, position: {first: true}', OK),
    (
        "write:location/US",
        'create@parent: {path: "US/NE"}, key: "x", id: "x", name: "x", attributes: {city: {}}',
        FORBIDDEN,
    ),
    ("write:location", 'create@parent: {path: "US/NE"}, key: "x", id: "x", name: "x", attributes: {city: {}}', OK),
]

# What one grant allows, made one after the other.
ALLOWED = [
    'createLocation(input: {parent: {path: "US/NE"}, key: "Bellevue", name: "x", attributes: {city: {}}})',
    'updateLocation(input: {node: {path: "US/NE"}, name: "x"})',
    'moveLocation(input: {node: {path: "US/NE/Omaha/68118"}, to: {parent: {path: "US/NE/Lincoln"}}})',
    'moveLocation(input: {node: {path: "US/NE/Omaha"}, key: "OMA"})',
    'moveLocation(input: {node: {path: "US/NE/OMA"}, position: {after: {path: "US/NE/Lincoln"}}})',
    'deleteLocation(input: {node: {path: "US/NE/Lincoln"}, policy: REPARENT})',
    'deleteLocation(input: {node: {path: "US/NE"}, policy: CASCADE})',
]
ONCE = """mutation { createLocation(input: {parent: {path: "US/NE"}, key: "KEY", name: "x", attributes: {city:
      {}}}, idempotencyKey: "once") { node { path changedBy } } }"""


# -- the world ---------------------------------------------------------------------------------------------------------

ALL = caller("write:location", "write:category")


SOURCE, TARGET = [node_key("location", parse_path(path)) for path in (f"{OMAHA}/old", CHILD)]
MOVED = Move(
    id="0" * 24, from_pk=SOURCE.pk, from_sk=SOURCE.sk, to_pk=TARGET.pk, to_sk=TARGET.sk, top_id="location:x",
    state=MoveState.DONE, nodes=1, written=1, epoch=1, lease=time.time(), started_at=AT, ended_at=AT,
)  # fmt: skip


class World:
    """A server, and the ids of Omaha, of a child of it that was deleted, and of a move of another child."""

    def __init__(self, server: Server, ids: dict[str, str]) -> None:
        self.server = server
        self.ids = ids

    async def answer(self, who: Any, asked: str) -> tuple[Any, list[str]]:
        """What stands at the only field of an answer, and the codes of its errors."""
        answer = await self.server.ask(who, self.query(asked), **self.ids)
        return (answer["data"] or {}).get("it"), list(codes(answer))

    def query(self, asked: str) -> str:
        declared = [f"${name}: ID!" for name in self.ids if f"${name}" in asked]
        return (f"query({', '.join(declared)}) " if declared else "") + f"{{ it: {asked} }}"


@pytest.fixture
async def world(store: Store) -> World:
    # It had another name, to which its children were born.
    old = [(path.replace("Omaha/", "Omaha-old/").replace("Omaha", "Omaha-old") if path == OMAHA else
            path.replace(f"{OMAHA}/", f"{OMAHA}-old/"), *rest) for path, *rest in PLACES]  # fmt: skip
    for cls, rows in ((Location, old), (CategoryNode, GOODS)):
        await plant(store, cls, [(tuple(path.split("/")), *rest) for path, *rest in rows])
    server = Server(store, Location, CategoryNode)

    async def make(mutation: str) -> str:
        answer = await server.write(ALL, f"mutation {{ it: {mutation} {{ node {{ id }} }} }}")
        assert "errors" not in answer, answer
        return answer["data"]["it"]["node"]["id"]

    omaha = await make(f'moveLocation(input: {{node: {{path: "{OMAHA}-old"}}, key: "Omaha"}})')
    await make(
        f'createLocation(input: {{parent: {{path: "{OMAHA}"}}, key: "gone", name: "g", attributes: '
        f"{{postalCode: {{}}}}}})"
    )
    gone = await make(f'deleteLocation(input: {{node: {{path: "{OMAHA}/gone"}}}})')
    await store.commit([Put(MOVED.item())])
    lincoln = (await server.data(ALL, '{ it: location(path: "US/NE/Lincoln") { id } }'))["it"]["id"]
    return World(server, {"id": omaha, "lincoln": lincoln, "gone": gone, "move": MOVED.id})


def fields_of(kind: str) -> set[str]:
    """The names of a type's fields, as the schema has them."""
    server = Server(open_store("sqlite://:memory:"), Location, CategoryNode)
    found = core_schema(server.schema).get_type(kind)
    assert isinstance(found, GraphQLObjectType | GraphQLInterfaceType)
    return set(found.fields)


def test_every_field_that_reaches_a_node_has_an_expectation():
    assert fields_of("City") == OF_A_NODE.keys()
    assert fields_of("CategoryNode") <= OF_A_NODE.keys()
    assert fields_of("Query") == OF_QUERY.keys()
    assert fields_of("Mutation") == OF_MUTATION.keys()


async def test_every_field_of_a_node_follows_the_grants_of_each_caller(world):
    wrong = []
    for name, (asked, on_node) in OF_A_NODE.items():
        query = f'location(path: "{OMAHA}") {{ {asked} }}'
        whole, none = await world.answer(ALL, query)
        assert none == []
        assert whole[name] is not None or name == "changedBy"
        for (case, grants), outcome in zip(CASES.items(), on_omaha({name: on_node}), strict=True):
            found = await world.answer(caller(*(f"read:{one}" for one in grants)), query)
            is_same = outcome is SAME or (outcome is not None and outcome[name] is SAME)
            fits = found == ((whole if is_same else outcome), [])
            wrong += [] if fits else [(name, case, found)]
    assert wrong == []


async def test_every_field_that_leads_to_a_node_follows_the_grants_of_each_caller(world):
    wrong = []
    for name, variants in OF_QUERY.items():
        for asked, outcomes in variants:
            whole = await world.answer(ALL, asked)
            assert whole != (None, []) or 'Oma"' in asked, asked
            for (case, grants), outcome in zip(CASES.items(), outcomes, strict=True):
                found = await world.answer(caller(*(f"read:{one}" for one in grants)), asked)
                expected = whole if outcome is SAME else (outcome, [])
                wrong += [] if found == expected else [(name, case, asked, found)]
    assert wrong == []


def every_field(kind: Any, expanded: set[str]) -> Iterator[str]:
    """Selections of all fields of a type, and of the types that they lead to and that are not `expanded` yet."""
    fields = getattr(kind, "fields", {})  # none of a union
    yield f"{{ __typename {' '.join(name for name, one in fields.items() if is_leaf_type(get_named_type(one.type)))} }}"
    if kind.name in expanded:
        return
    expanded.add(kind.name)
    for name, one in fields.items():
        if not is_leaf_type(inner := get_named_type(one.type)):
            given = "(n: 1)" if any(map(is_required_argument, one.args.values())) else ""
            yield from (f"{{ {name}{given} {below} }}" for below in every_field(inner, expanded))


async def test_a_cached_response_depends_on_nothing_of_its_caller_but_what_it_may_read(world):
    """Every field, asked by two who may read the same and write other nodes."""
    who = caller("write:location/US", "write:category", name="editor"), caller("read:location/US", "read:category")
    wrong_level = {"country", "region", "state", "county", "neighborhood", "postalCode", "store"}
    executed = {"move", "moves", "hierarchies", "deletedNode", "changes", "_service"}
    expanded, differing, cached, server = {"Query"}, set(), set(), world.server
    for name, field in core_schema(server.schema).query_type.fields.items():
        asked = OF_QUERY[name][0][0]
        head = asked[: asked.index(") {") + 1] if ") {" in asked else name
        for below in every_field(get_named_type(field.type), expanded) if name not in wrong_level else ():
            query = world.query(f"{head} {below}")
            (_, first), (how, second) = [await server.how(one, query, world.ids) for one in who]
            differing |= {name} if first != second else set()
            cached |= {name} if how == "cached" else set()
    assert differing == {"hierarchies"}, "what a caller may write is told here alone"
    may_be_cached = OF_QUERY.keys() - wrong_level - executed
    assert cached == (may_be_cached if server.store.is_embedded else set())


async def test_every_mutation_follows_the_grants_of_each_caller(world):
    wrong = []
    for name, variants in OF_MUTATION.items():
        for given, outcomes in variants:
            for (case, grants), outcome in zip(CASES.items(), outcomes, strict=True):
                mutation = dry_run(world, name, given)
                for verb, expected in (("write", outcome), ("read", FORBIDDEN)):
                    answer = await world.server.write(caller(*(f"{verb}:{one}" for one in grants)), mutation)
                    found = (list(codes(answer)) or [OK])[0]
                    wrong += [] if found == expected else [(name, verb, case, given, found, expected)]
    assert wrong == []


def dry_run(world: World, name: str, given: str) -> str:
    """A mutation that changes nothing."""
    for variable, text in world.ids.items():
        given = given.replace(f'"${variable}"', f'"{text}"')
    return f"mutation {{ {name}(input: {{{given}}}, dryRun: true) {{ plan {{ nodes }} }} }}"


async def test_a_mutation_needs_grants_on_all_that_it_changes_or_discloses(world):
    for grants, asked, outcome in OF_GRANTS:
        who = caller(*[grant for grant in grants.split() if grant != OPEN], reads=OPEN not in grants)
        verb, _, given = asked.partition("@")
        answer = await world.server.write(who, dry_run(world, f"{verb}Location", given))
        assert (list(codes(answer)) or [OK]) == [outcome], (grants, asked)


async def test_a_grant_allows_every_mutation_within_its_subtree(world):
    for mutation in ALLOWED:
        answer = await world.server.write(
            caller("write:location/US/NE"), f"mutation {{ {mutation} {{ node {{ id }} }} }}"
        )
        assert "errors" not in answer, (mutation, answer)


async def test_idempotency_keys_are_separate_for_each_caller(world):
    one, other = (caller("write:location/US", name=name) for name in ("one", "other"))
    first = await world.server.write(one, ONCE.replace("KEY", "Bellevue"))
    assert first["data"]["createLocation"]["node"] == {"path": "US/NE/Bellevue", "changedBy": "one"}
    assert await world.server.write(one, ONCE.replace("KEY", "Bellevue")) == first
    answers = [await world.server.write(who, ONCE.replace("KEY", "Kearney")) for who in (other, one)]
    assert [list(codes(answer)) for answer in answers] == [[], ["BAD_USER_INPUT"]]
