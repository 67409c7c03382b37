"""Inputs of mutations that are invalid: their faults have places, and nothing invalid reaches the store or others."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from clade import Decimal, Localized, Node, attribute
from resolvers.access.callers import Caller
from store.engine import Store
from tests.classes.shops import Place
from tests.rights.asking import Server, caller
from tests.systems.writing import Clients, plant

pytestmark = pytest.mark.both_stores

CREATE = """mutation($key: String!, $name: String = "n", $id: ID) { createLocation(input: {parent: {path: "US/NE"},
    key: $key, name: $name, id: $id, attributes: {city: {}}}) { node { key } } }"""
CREATE_CATEGORY = """mutation($parent: CategoryNodeBy, $key: String!) { createCategoryNode(input: {parent: $parent,
    key: $key, name: "n", attributes: {category: {}}}) { node { id } } }"""


async def places(clients: Clients, mutation: str, **variables: Any) -> list[tuple[str, list[str]]]:
    """The codes and fields of the user errors of a mutation."""
    return [(one["code"], one["field"]) for one in await clients.faults(mutation, **variables)]


async def test_an_invalid_id_is_not_looked_up_so_the_writes_beside_it_are_made(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    given = [("a", "a"), ("b", "b" * 3_000), ("c", "c")]
    found = await asyncio.gather(*[places(clients, CREATE, key=key, id=node_id) for key, node_id in given])
    assert found == [[], [("BAD_USER_INPUT", ["id"])], []]


async def test_a_name_that_is_too_long_is_no_fault_of_the_attributes(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    for name in ("", "x" * 500_000):
        assert await places(clients, CREATE, key="a", name=name) == [("BAD_USER_INPUT", ["name"])]


async def test_a_node_below_that_does_not_fit_is_a_fault_of_what_makes_the_new_path(store: Store) -> None:
    clients, long = Clients(store), "k" * 400
    for parent, key in [(None, "A"), ("A", "m"), ("A/m", long), (f"A/m/{long}", long), ("A", long)]:
        await clients.ask(CREATE_CATEGORY, parent=parent and {"path": parent}, key=key)
    for field, given in (("to", f'to: {{parent: {{path: "A/{long}"}}}}'), ("key", f'key: "{long[1:]}"')):
        move = f'mutation {{ moveCategoryNode(input: {{node: {{path: "A/m"}}, {given}}}) {{ node {{ id }} }} }}'
        assert await places(clients, move) == [("BAD_PATH", [field])]


async def test_a_node_that_does_not_fit_has_no_fault_of_its_position_as_well(store: Store) -> None:
    clients = Clients(store)
    for parent, key in [(None, "A"), ("A", "m"), (None, "B")]:
        await clients.ask(CREATE_CATEGORY, parent=parent and {"path": parent}, key=key)
    move = f"""mutation {{ moveCategoryNode(input: {{node: {{path: "B"}}, key: "{"k" * 1_020}",
        position: {{after: {{path: "A/m"}}}}}}) {{ node {{ id }} }} }}"""
    assert await places(clients, move) == [("BAD_PATH", ["position"])]


MALL = """mutation($key: String = "M", $id: ID = "m") { createPlace(input: {key: $key, name: "m", id: $id,
    attributes: {mall: {}}}) { plan { nodes } } }"""
REQUIRED = ("BAD_USER_INPUT", ["attributes", "shop", "owner"], "required")
NO_PARENT = ("NOT_FOUND", ["parent"], "missing")
SHOPS = {
    'parent: {path: "X"}, key: "a"': [REQUIRED, NO_PARENT],
    'parent: {id: "place:x"}, key: "a"': [REQUIRED, NO_PARENT],
    'parent: {path: "Hidden"}, key: "a"': [REQUIRED, NO_PARENT],
    'parent: {id: "place:h"}, key: "a"': [REQUIRED, NO_PARENT],
    'parent: {path: "//"}, key: "a"': [REQUIRED, ("BAD_PATH", ["parent"], "path")],
    f'parent: {{path: "X{"/x" * 31}"}}, key: "a"': [("BAD_PATH", ["key"], "depth"), REQUIRED, NO_PARENT],
    f'parent: {{path: "X/{"x" * 1_020}"}}, key: "ab"': [("BAD_PATH", ["key"], "maxLength"), REQUIRED, NO_PARENT],
    f'parent: {{path: "X/{"x" * 1_022}"}}, key: "a"': [("BAD_PATH", ["key"], "maxLength"), REQUIRED],
}


async def test_a_parent_that_is_not_found_hides_no_other_fault(store: Store) -> None:
    server, who = Server(store, Place), caller("write:place/M", "write:place/X")
    for key, node_id in (("M", "m"), ("Hidden", "h")):
        await server.write(caller("write:place"), MALL, key=key, id=node_id)
    for given, expected in SHOPS.items():
        shop = f'createPlace(input: {{{given}, name: "s", attributes: {{shop: {{}}}}}})'
        assert sorted(await told(server, who, shop), key=str) == sorted(expected, key=str), given


async def test_the_key_and_the_id_of_one_node_are_both_taken(store: Store) -> None:
    server, who = Server(store, Place), caller("write:place")
    mall = 'createPlace(input: {key: "M", name: "m", id: "m", attributes: {mall: {}}})'
    taken = [("ALREADY_EXISTS", ["id"], "taken"), ("ALREADY_EXISTS", ["key"], "taken")]
    assert [await told(server, who, mall) for _ in range(2)] == [[], taken]


async def test_a_text_that_is_too_long_and_does_not_match_breaks_both_rules(store: Store) -> None:
    server, field = Server(store, Place), ["attributes", "shop", "owner"]
    for text, rules in (
        ("x" * 16_400, ["maxLength", "pattern"]),
        ("X" + "x" * 16_400, ["maxLength"]),
        ("x", ["pattern"]),
    ):
        shop = f'createPlace(input: {{key: "s", name: "s", attributes: {{shop: {{owner: "{text}"}}}}}})'
        expected = [("BAD_USER_INPUT", field, rule) for rule in rules]
        assert await told(server, caller("write:place"), shop) == [*expected, ("MISPLACED", ["parent"], "misplaced")]


async def test_an_invalid_idempotency_key_is_listed_beside_the_faults_of_the_input(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    invalid = ("BAD_USER_INPUT", None)
    for given, expected in {
        'updateLocation(input: {node: {path: "US"}, name: "x"}': [invalid],
        'updateLocation(input: {node: {path: "FR"}, name: ""}': [
            ("BAD_USER_INPUT", ["name"]), invalid, ("NOT_FOUND", ["node"]),
        ],
        'moveLocation(input: {node: {path: "US/NE"}, key: "MO"}': [invalid, ("ALREADY_EXISTS", ["key"])],
        'deleteLocation(input: {node: {path: "US/NE"}}': [invalid, ("NOT_EMPTY", ["policy"])],
        'createLocation(input: {key: "US", name: "U", attributes: {country: {}}}': [
            invalid, ("ALREADY_EXISTS", ["key"]),
        ],
    }.items():  # fmt: skip
        for key in ("", "k" * 129):
            mutation = f'mutation {{ {given}, idempotencyKey: "{key}") {{ node {{ id }} }} }}'
            assert await places(clients, mutation) == expected, given


async def test_all_faults_of_the_children_that_a_deletion_moves_are_listed_with_the_child(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    for key, level in (("MO", "postalCode"), ("NE", "postalCode"), ("a", "city")):
        await clients.ask(
            """mutation($key: String!, $of: LocationAttributes!) { createLocation(input: {parent: {path: "US/NE"},
            key: $key, name: "n", attributes: $of}) { node { id } } }""",
            key=key, of={level: {}},
        )  # fmt: skip
    delete = 'mutation { deleteLocation(input: {node: {path: "US/NE"}, policy: REPARENT}) { node { id } } }'
    misplaced = "POSTAL_CODE may not stand under COUNTRY, only under CITY, COUNTY, NEIGHBORHOOD, STATE."
    assert [(one["code"], one["field"], one["message"]) for one in await clients.faults(delete)] == [
        ("MISPLACED", ["policy"], f"US/NE/MO: {misplaced}"),
        ("ALREADY_EXISTS", ["policy"], "US/NE/MO: There is another node at US/MO; move one of them first."),
        ("MISPLACED", ["policy"], f"US/NE/NE: {misplaced}"),
    ]


async def told(server: Server, who: Caller, mutation: str) -> list[tuple[str, list[str] | None, str | None]]:
    """The codes, fields and rules of the user errors of a mutation."""
    answer = await server.write(who, f"mutation {{ it: {mutation} {{ userErrors {{ code field rule }} }} }}")
    return [(one["code"], one["field"], one["rule"]) for one in answer["data"]["it"]["userErrors"]]


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """A site."""

    street_name: str | None = attribute("Street.", required=True, max_length=3)


class Thing(Node, hierarchy="thing"):
    """A thing of the test."""


class Box(Thing, under=[None, "self"], was="Crate"):
    """A box."""

    owner_name: str | None = attribute("Owner.", required=True)
    num_of: int | None = attribute("Number.", minimum=1)
    unit_price: Decimal | None = attribute("Price.")
    fill_level: float | None = attribute("Level.")
    long_text: Localized | None = attribute("Text.")
    main_site: Site | None = attribute("Site.")


BOX = """mutation { createThing(input: {key: "b", name: "b", names: [%s], attributes: {box: {%s}}}) { node { id }
    userErrors { field message } } }"""
MESSAGES = [
    ("", "", "ownerName is required; give it a value."),
    ("", "ownerName: null", "ownerName is required; give it a value."),
    ("", 'ownerName: "a", numOf: 0', "numOf: 0 is less than the minimum 1."),
    ("", 'ownerName: "a", mainSite: {streetName: "Lane"}', "streetName has 4 characters; at most 3 are allowed."),
    ("", 'ownerName: "a", mainSite: {}', "mainSite: streetName is required; give it a value."),
    ("", 'ownerName: "a", unitPrice: "\\u0000é"', 'unitPrice: "\\u0000é" is not a number; write one like 12.50.'),
    ("", 'ownerName: "a", unitPrice: 1e-400', 'unitPrice: "1e-400" is out of range; write at most 38 digits.'),
    ("", 'ownerName: "a", fillLevel: -1e400',
     "fillLevel: a number beyond 1.8e308 is out of range; write 0, or 1e-130 to 1e126 with either sign."),
    ("", 'ownerName: "a", longText: {language: "DE", text: ""}', "longText in de is empty; write a text."),
    ('{language: "fr", text: ""}', 'ownerName: "a"', "names in fr is empty; write a text."),
]  # fmt: skip


async def test_messages_name_attributes_and_values_as_clients_write_them(store: Store) -> None:
    server, who = Server(store, Thing), caller("write:thing")
    for names, attributes, message in MESSAGES:
        told = (await server.write(who, BOX % (names, attributes)))["data"]["createThing"]
        assert [one["message"] for one in told["userErrors"]] == [message]
    delete = "mutation($id: ID!) { deleteThing(input: {node: {id: $id}}) { node { id } } }"
    for node_id, way in (("fz", '; one begins with "thing:"'), ("", '; one begins with "thing:"'), ("thing:fz", "")):
        message = f'There is no node with the id "{node_id}"{way}.'
        assert await server.refusal(who, delete, id=node_id) == ("NOT_FOUND", message)
