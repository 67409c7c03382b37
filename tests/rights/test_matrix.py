"""Every mutation, for callers with grants in every relation to the node that it names, which is Omaha.

The mutations are taken from the schema: one that has no expectation here fails the first test. What callers read is
compared in `test_two_worlds.py`.
"""

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.selection import core_schema
from resolvers.access.callers import Caller
from store.connect import open_store
from store.engine import Store
from store.model.records import derived_id
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import plant

PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/NE/Omaha2", "CITY"), ("US/NE/Lincoln", "CITY"), ("US/IA", "STATE"), ("FR", "COUNTRY"),
    ("US/NE/Omaha/old", "POSTAL_CODE"), ("US/NE/Gone", "CITY"), ("AT", "COUNTRY"), ("US/MO", "STATE"),
    ("US/MO/Joplin", "CITY"),
]  # fmt: skip
GOODS = [("Books", "CATEGORY"), ("Books/Maps", "CATEGORY"), ("Books/Old", "CATEGORY")]
OMAHA, CHILD = "US/NE/Omaha", "US/NE/Omaha/68118"
IDS = {
    "id": OMAHA, "lincoln": "US/NE/Lincoln", "old": "US/NE/Omaha/old", "gone": "US/NE/Gone", "at": "AT",
    "joplin": "US/MO/Joplin",
}  # fmt: skip
DELETED = [
    *[("Location", path) for path in ("US/NE/Omaha/old", "US/NE/Gone", "AT", "US/MO/Joplin", "US/MO")],
    ("CategoryNode", "Books/Old"),
]

CASES = {
    "none": [],
    "node": [f"location/{OMAHA}"],
    "ancestor": ["location/US"],
    "same prefix": ["location/US/NE/Omaha2", "location/US/NE/Oma", "location/U"],
    "child": [f"location/{CHILD}"],
    "other hierarchy": ["category"],
}
OK, UNSEEN, FORBIDDEN = "OK", "NOT_FOUND", "FORBIDDEN"


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
    "restoreLocation": [
        ('id: "$old"', writes()),
        ('id: "$old", key: "x"', writes()),
        ('id: "$old", to: {parent: {path: "US/NE/Lincoln"}}', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        ('id: "$old", to: {parent: {id: "$lincoln"}}', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        # Whose grant has a root beside hidden ones may make some root.
        ('id: "$old", to: {root: true}', [FORBIDDEN, FORBIDDEN, FORBIDDEN, UNSEEN, FORBIDDEN, FORBIDDEN]),
        ('id: "$gone"', [FORBIDDEN, UNSEEN, OK, UNSEEN, UNSEEN, FORBIDDEN]),
        ('id: "$gone", to: {root: true}, key: "x"', [FORBIDDEN] * 6),
        ('id: "$id"', [FORBIDDEN, UNSEEN, UNSEEN, UNSEEN, UNSEEN, FORBIDDEN]),  # which is not deleted
        ('id: "location:none"', [FORBIDDEN, UNSEEN, UNSEEN, UNSEEN, UNSEEN, FORBIDDEN]),
    ],
    **{
        f"{verb}CategoryNode": [(given, [FORBIDDEN] * 5 + [OK])]
        for verb, given in {
            "create": 'parent: {path: "Books"}, key: "x", name: "x", attributes: {category: {}}',
            "update": 'node: {path: "Books"}, name: "x"',
            "move": 'node: {path: "Books/Maps"}, to: {root: true}',
            "delete": 'node: {path: "Books"}, policy: CASCADE',
            "restore": 'id: "$books"',
        }.items()
    },
}  # fmt: skip

for listed, title in (("Locations", "Location"), ("Categories", "CategoryNode")):
    OF_MUTATION[f"edit{listed}"] = [
        (f"{verb}: {{{given}}}", outcomes)
        for verb in ("create", "update", "move", "delete")
        for given, outcomes in OF_MUTATION[f"{verb}{title}"]
    ]

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
    ("write:location/US/NE/Gone", 'restore@id: "$gone"', OK),  # where it was, below a parent that is hidden
    ("write:location/US/NE/Gone", 'restore@id: "$gone", key: "Gone2"', FORBIDDEN),
    ("write:location/US/NE/Gone write:location/US/NE/Gone2", 'restore@id: "$gone", key: "Gone2"', OK),
    ("write:location/US/NE/Gone", 'restore@id: "$gone", to: {parent: {path: "US/NE"}}', UNSEEN),
    ("write:location/US/NE/Gone read:location", 'restore@id: "$old"', FORBIDDEN),
    ("write:location/US/NE/Gone OPEN", 'restore@id: "$old"', FORBIDDEN),
    ("write:location/US/NE/Gone OPEN", 'restore@id: "location:none"', UNSEEN),
    ("write:location/US/NE OPEN", 'restore@id: "$old", to: {parent: {path: "US/IA"}}', FORBIDDEN),
    ("write:location/US/NE OPEN", 'restore@id: "location:none", to: {parent: {path: "US/IA"}}', FORBIDDEN),
    ("write:location/US/NE OPEN", 'restore@id: "location:none", to: {root: true}', FORBIDDEN),
    ("write:location/AT", 'restore@id: "$at"', OK),
    ("write:location/AT", 'restore@id: "$at", key: "BE"', FORBIDDEN),
    ("write:location/AT write:location/US", 'restore@id: "$at", to: {parent: {path: "US"}}', "MISPLACED"),
    ("write:location/US", 'restore@id: "$joplin"', UNSEEN),  # its parent is deleted as well
    ("write:location/US/MO/Joplin write:location/US/NE", 'restore@id: "$joplin"', UNSEEN),
    (
        "write:location/US/MO/Joplin write:location/US/NE",
        'restore@id: "$joplin", to: {parent: {path: "US/NE"}}',
        OK,
    ),
]

ONCE = """mutation { createLocation(input: {parent: {path: "US/NE"}, key: "KEY", name: "x", attributes: {city:
      {}}}, idempotencyKey: "once") { node { path changedBy } } }"""


# -- the world ---------------------------------------------------------------------------------------------------------


class World:
    """A server, and ids of nodes, some of which are deleted."""

    def __init__(self, server: Server, ids: dict[str, str]) -> None:
        self.server, self.ids = server, ids

    async def outcome(self, who: Caller, name: str, given: str) -> str:
        """The code of a mutation, which is a dry run."""
        for variable, text in self.ids.items():
            given = given.replace(f'"${variable}"', f'"{text}"')
        asked = f"edits: [{{{given}}}]" if name.startswith("edit") else f"input: {{{given}}}"
        answer = await self.server.write(who, f"mutation {{ {name}({asked}, dryRun: true) {{ __typename }} }}")
        (code,) = codes(answer) or [OK]
        return code


@pytest.fixture
async def world(store: Store) -> World:
    for cls, rows in ((Location, PLACES), (CategoryNode, GOODS)):
        await plant(store, cls, [(tuple(path.split("/")), level) for path, level in rows])
    server = Server(store, Location, CategoryNode)
    ids = {name: f"location:{derived_id('location', tuple(path.split('/')))}" for name, path in IDS.items()}
    ids["books"] = f"category:{derived_id('category', ('Books', 'Old'))}"
    for title, path in DELETED:
        delete = f'mutation {{ delete{title}(input: {{node: {{path: "{path}"}}}}) {{ node {{ id }} }} }}'
        answer = await server.write(caller("write:location", "write:category"), delete)
        assert "errors" not in answer
    return World(server, ids)


def test_every_mutation_has_an_expectation():
    server = Server(open_store("sqlite://:memory:"), Location, CategoryNode)
    assert core_schema(server.schema).mutation_type.fields.keys() == OF_MUTATION.keys()


async def test_every_mutation_follows_the_grants_of_each_caller(world):
    wrong = []
    for name, variants in OF_MUTATION.items():
        for given, outcomes in variants:
            for (case, grants), outcome in zip(CASES.items(), outcomes, strict=True):
                for verb, expected in (("write", outcome), ("read", FORBIDDEN)):
                    found = await world.outcome(caller(*(f"{verb}:{one}" for one in grants)), name, given)
                    wrong += [] if found == expected else [(name, verb, case, given, found, expected)]
    assert wrong == []


async def test_a_mutation_needs_grants_on_all_that_it_changes_or_discloses(world):
    for grants, asked, outcome in OF_GRANTS:
        who = caller(*[grant for grant in grants.split() if grant != OPEN], reads=OPEN not in grants)
        verb, _, given = asked.partition("@")
        assert await world.outcome(who, f"{verb}Location", given) == outcome, (grants, asked)


async def test_idempotency_keys_are_separate_for_each_caller(world):
    one, other = (caller("write:location/US", name=name) for name in ("one", "other"))
    first = await world.server.write(one, ONCE.replace("KEY", "Bellevue"))
    assert first["data"]["createLocation"]["node"] == {"path": "US/NE/Bellevue", "changedBy": "one"}
    assert await world.server.write(one, ONCE.replace("KEY", "Bellevue")) == first
    answers = [await world.server.write(who, ONCE.replace("KEY", "Kearney")) for who in (other, one)]
    assert [list(codes(answer)) for answer in answers] == [[], ["BAD_USER_INPUT"]]
