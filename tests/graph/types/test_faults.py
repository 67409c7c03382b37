"""Faults of inputs: any two are told at once, unless one hides what the other one is about; and what each one says."""

import asyncio
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest

from clade import Date, DateTime, Decimal, Localized, Long, Node, Url, attribute
from graph.errors import RULES
from store.engine import Store
from store.model.records import derived_id, key_of
from tests import invariants
from tests.classes.shops import Place
from tests.model import Word, literal
from tests.rights.asking import Server, caller
from tests.systems.asking import plant
from tests.systems.writing import Clients
from tests.systems.writing import plant as plant_places

ALL = caller("write:place")
NODES = [
    (["M"], "MALL"), (["M", "S"], "SHOP", "S", {"owner": "Ann"}), (["M", "T"], "SHOP", "T", {"owner": "Ann"}),
    (["N"], "MALL"), (["N", "T"], "SHOP", "T", {"owner": "Ann"}), (["M", "D"], "SHOP", "D", {"owner": "Ann"}),
]  # fmt: skip
GONE = f"place:{derived_id('place', ('M', 'D'))}"
TAKE = """mutation { createPlace(input: {parent: {path: "N"}, key: "U", name: "U", id: "taken",
    attributes: {shop: {owner: "Ann"}}}) { node { id } } }"""
VALID = {
    "create": {"parent": {"path": "M"}, "key": "K", "name": "n", "attributes": {"shop": {"owner": "Eve"}}},
    "update": {"node": {"path": "M/S"}, "name": "n"},
    "move": {"node": {"path": "M/S"}, "to": {"parent": {"path": "N"}}, "key": "K"},
    "delete": {"node": {"path": "M/S"}},
    "restore": {"id": GONE, "to": {"parent": {"path": "N"}}, "key": "K"},
}
# Values of an input's fields that are at fault: BAD as such, LOST where there is no such node, WRONG for the node.
BAD, LOST, WRONG = "bad", "lost", "wrong"
MANY = [{"language": f"de-{number:04}", "text": "x"} for number in range(51)]
NOWHERE = [(BAD, {"path": "M//"}), (LOST, {"path": "X/Y"}), (LOST, {"id": "place:none"})]
NAMES = [("names", BAD, [{"language": "d"}, {"language": "de", "text": ""}]), ("names", WRONG, MANY)]
FAULTS = {
    "create": [
        *[("parent", kind, value) for kind, value in [*NOWHERE, (WRONG, {"path": "M/S"})]],
        ("key", BAD, ""), ("key", BAD, " "), ("name", BAD, ""), ("id", BAD, "a b"), ("id", BAD, "taken"), *NAMES,
        ("attributes", BAD, {"shop": {}}), ("attributes", BAD, {"shop": {"codes": ["a", "B"]}}),
        ("attributes", BAD, {"shop": {"owner": "x" * 16_400}}),
        ("attributes", BAD, {"shop": {"owner": "bob", "area": "0"}}),
    ],
    "update": [
        *[("node", kind, value) for kind, value in NOWHERE], ("name", BAD, None), ("name", BAD, ""), *NAMES,
        ("attributes", BAD, {"shop": {"owner": None, "codes": ["A", "B"]}}),
        ("attributes", WRONG, {"mall": {"floors": 3}}), ("expectedRevision", WRONG, 7),
        ("add", BAD, [{"field": Word("AREA"), "amount": "x"}] * 2),
        ("add", WRONG, [{"field": Word("AREA"), "amount": "-0.5"}]),
    ],
    "move": [
        *[("node", kind, value) for kind, value in NOWHERE],
        ("to", BAD, {"parent": {"path": "N//"}}), ("to", LOST, {"parent": {"path": "Z"}}),
        ("to", LOST, {"parent": {"id": "place:nil"}}), ("to", BAD, {"root": False}),
        ("key", BAD, ""), ("key", BAD, " "), ("key", WRONG, "T"),
        ("position", BAD, {"first": False}), ("position", BAD, {"before": {"path": "M//"}}),
        ("position", LOST, {"before": {"path": "N/none"}}), ("position", LOST, {"after": {"id": "place:none"}}),
        ("expectedRevision", WRONG, 7),
    ],
    "delete": [
        *[("node", kind, value) for kind, value in NOWHERE], ("node", WRONG, {"path": "M"}),
        ("expectedRevision", WRONG, 7),
    ],
    "restore": [
        ("id", LOST, "place:none"), ("id", LOST, "none"), ("id", LOST, "x" * 3_000),
        ("to", BAD, {"parent": {"path": "N//"}}), ("to", LOST, {"parent": {"path": "Z"}}),
        ("to", LOST, {"parent": {"id": "place:nil"}}), ("to", BAD, {"root": False}), ("to", WRONG, {"root": True}),
        ("key", BAD, ""), ("key", BAD, " "), ("key", WRONG, "T"),
    ],
}  # fmt: skip


def is_hidden(one, other):
    """Whether nobody can tell the other fault beside the first: it is about a node or a place that is not there."""
    (name, kind, _), (of, about, value) = one, other
    if (name == "node" and kind in (BAD, LOST)) or (name, kind) == ("id", LOST):
        return about == WRONG and of != "key"  # since the new place is known
    return name == "to" and (of, value) == ("key", "T")


async def plant_with_gone(store, *more):
    """The nodes, one of which is deleted."""
    await plant(store, Place, [*NODES, *more])
    deleted = await Server(store, Place).write(
        ALL, 'mutation { deletePlace(input: {node: {path: "M/D"}}) { node { id } } }'
    )
    assert deleted["data"]["deletePlace"]["node"] == {"id": GONE}


async def told(server, verb, *faults):
    """Field and rule of each fault: that of a position depends on whether there is a parent beside it."""
    given = {**VALID[verb], **{name: value for name, _, value in faults}}
    mutation = f"{verb}Place(input: {literal(given)}) {{ node {{ id }} userErrors {{ field rule message }} }}"
    answer = (await server.write(ALL, f"mutation {{ {mutation} }}"))["data"][f"{verb}Place"]
    assert answer["node"] is None
    assert {one["rule"] for one in answer["userErrors"]} <= RULES.keys()
    assert len({literal(one) for one in answer["userErrors"]}) == len(answer["userErrors"])
    return sorted((one["field"], "" if one["field"] == ["position"] else one["rule"]) for one in answer["userErrors"])


@pytest.mark.parametrize("verb", FAULTS)
async def test_any_two_faults_of_an_input_are_told_at_once_and_nothing_is_written(store, verb):
    await plant_with_gone(store)
    server = Server(store, Place)
    assert (await server.write(ALL, TAKE))["data"]["createPlace"]["node"] == {"id": "place:taken"}
    before = sorted(await invariants.all_items(store), key=key_of)
    alone = [(fault, await told(server, verb, fault)) for fault in FAULTS[verb]]
    assert [fault for fault, found in alone if not found] == []
    wrong = []
    for (one, of_one), (other, of_other) in combinations(alone, 2):
        if one[0] != other[0]:
            expected = [*([] if is_hidden(other, one) else of_one), *([] if is_hidden(one, other) else of_other)]
            found = await told(server, verb, one, other)
            wrong += [] if found == sorted(expected) else [(one, other, found, expected)]
    assert wrong == []
    assert sorted(await invariants.all_items(store), key=key_of) == before


CREATE = """mutation($key: String!, $id: ID, $level: LocationAttributes = {city: {}}) { createLocation(input: {
    parent: {path: "US/NE"}, key: $key, name: "n", id: $id, attributes: $level}) { node { id } } }"""


async def test_an_invalid_id_is_not_looked_up_so_the_writes_beside_it_are_made(store: Store) -> None:
    clients = Clients(store)
    await plant_places(clients)
    given = [("a", "a"), ("b", "b" * 3_000), ("c", "c")]
    made = await asyncio.gather(*[clients.faults(CREATE, key=key, id=own) for key, own in given])
    assert [[(one["code"], one["field"]) for one in faults] for faults in made] == [
        [], [("BAD_USER_INPUT", ["id"])], [],
    ]  # fmt: skip


async def test_the_faults_of_children_that_a_deletion_moves_name_the_child(store: Store) -> None:
    clients = Clients(store)
    await plant_places(clients)
    for key, level in (("MO", "postalCode"), ("NE", "postalCode"), ("a", "city")):
        await clients.ask(CREATE, key=key, level={level: {}})
    delete = 'mutation { deleteLocation(input: {node: {path: "US/NE"}, policy: REPARENT}) { node { id } } }'
    misplaced = "POSTAL_CODE may not stand under COUNTRY, only under CITY, COUNTY, NEIGHBORHOOD, STATE."
    assert [(one["code"], one["field"], one["message"]) for one in await clients.faults(delete)] == [
        ("MISPLACED", ["policy"], f"US/NE/MO: {misplaced}"),
        ("ALREADY_EXISTS", ["policy"], "US/NE/MO: There is another node at US/MO; move one of them first."),
        ("MISPLACED", ["policy"], f"US/NE/NE: {misplaced}"),
    ]


LONG = "k" * 400
TOO_LONG = {
    f'node: {{path: "A/m"}}, to: {{parent: {{path: "A/{LONG}"}}}}': "to",
    f'node: {{path: "A/m"}}, key: "{LONG[1:]}"': "key",
    f'node: {{path: "B"}}, key: "{"k" * 1_020}", position: {{after: {{path: "A/m"}}}}': "position",
}


async def test_a_path_that_does_not_fit_is_a_fault_of_what_makes_it_also_of_a_node_below(store: Store) -> None:
    clients = Clients(store)
    create = """mutation($parent: CategoryNodeBy, $key: String!) { createCategoryNode(input: {parent: $parent,
        key: $key, name: "n", attributes: {category: {}}}) { node { id } } }"""
    for parent, key in [(None, "A"), ("A", "m"), ("A/m", LONG), (f"A/m/{LONG}", LONG), ("A", LONG), (None, "B")]:
        await clients.ask(create, parent=parent and {"path": parent}, key=key)
    for given, field in TOO_LONG.items():
        faults = await clients.faults(f"mutation {{ moveCategoryNode(input: {{{given}}}) {{ node {{ id }} }} }}")
        assert [(one["code"], one["field"]) for one in faults] == [("BAD_PATH", [field])]


@pytest.mark.parametrize("key", ["", "k" * 129])
async def test_an_invalid_idempotency_key_is_listed_beside_the_faults_of_the_input(store: Store, key: str) -> None:
    clients = Clients(store)
    await plant_places(clients)
    invalid = ("BAD_USER_INPUT", None)
    for given, expected in {
        'updateLocation(input: {node: {path: "US"}, name: "x"}': [invalid],
        'updateLocation(input: {node: {path: "FR"}, name: ""}': [
            ("BAD_USER_INPUT", ["name"]), invalid, ("NOT_FOUND", ["node"]),
        ],
        'moveLocation(input: {node: {path: "US/NE"}, key: "MO"}': [invalid, ("ALREADY_EXISTS", ["key"])],
        'deleteLocation(input: {node: {path: "US/NE"}}': [invalid, ("NOT_EMPTY", ["policy"])],
    }.items():  # fmt: skip
        faults = await clients.faults(f'mutation {{ {given}, idempotencyKey: "{key}") {{ node {{ id }} }} }}')
        assert [(one["code"], one["field"]) for one in faults] == expected, given


# -- what faults say ---------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """A site."""

    street_name: str | None = attribute("Street.", required=True, max_length=3)


class Sample(Node, hierarchy="sample", many="samples"):
    """A sample of all kinds of values."""


class Item(Sample, under=None, was="Crate"):
    """An item."""

    num_of: int | None = attribute("Number.", minimum=1)
    unit_price: Decimal | None = attribute("Price.")
    fill_level: float | None = attribute("Level.")
    long_text: Localized | None = attribute("Text.")
    main_site: Site | None = attribute("Site.")
    text: str | None = attribute("Text.", required=True)
    long: Long | None = attribute("Long.")
    size: float | None = attribute("Size.")
    price: Decimal | None = attribute("Price.")
    day: Date | None = attribute("Day.")
    time: DateTime | None = attribute("Time.")
    site: Url | None = attribute("Site.")
    greeting: Localized | None = attribute("Greeting.")


# Parts of the input of a new node, or attributes of it; the rule that is broken, and the end of what is said.
SAID = [
    ({"key": ""}, "empty", "The key is empty; give one."),
    ({"key": " a"}, "characters", 'The key " a" has a blank too many, or a character that nobody sees; write "a".'),
    ({"key": "k" * 5_000}, "maxLength", "A key has 5,000 characters; at most 4,100 are allowed."),
    ({"name": ""}, "empty", "The name is empty; write a text."),
    ({"name": " \t\u3000"}, "empty", "The name is empty; write a text."),
    ({"name": "n" * 17_000}, "maxLength", "The name has 17,000 characters; at most 16,384 are allowed."),
    ({"names": [{"language": "d", "text": "x"}]}, "type", '"d" is not a language tag; write one like de, de-AT or '
     "zh-Hant."),
    ({"names": [{"language": "fr", "text": ""}]}, "empty", "names in fr is empty; write a text."),
    ({"id": ""}, "empty", "The id is empty; give one, or leave it out."),
    ({"id": "a b"}, "characters", 'The id "a b" has a blank, a control character, # or :; leave it out.'),
    ({"parent": {"path": ""}}, "empty", "The path is empty; give that of a node."),
    ({"parent": {"path": "a//b"}}, "path", "The path has an empty key; write one separator between two keys, and none "
     "at either end."),
    ({"parent": {"path": "gibt/es/nicht"}}, "missing", "There is no node at gibt/es/nicht; give the current path of "
     "one."),
    ({"parent": {"path": "/".join("a" * 33)}}, "depth", "The path has 33 keys; at most 32 are allowed."),
    ({"key": "there"}, "taken", "There is a node at there already; choose another place."),
    ({"parent": {"path": "there"}}, "misplaced", "ITEM may not stand under ITEM, only as a root."),
    ({"text": None}, "required", "text is required; give it a value."),
    ({"text": "a\ud800"}, "characters", "has characters that are no text; leave them out."),
    ({"long": "12 pieces"}, "type", 'long: "12 pieces" is not a whole number; write one like 12.'),
    ({"long": "9" * 20}, "type", "is out of range; write -9223372036854775808 to 9223372036854775807."),
    ({"size": 1e130}, "type", "size: 1e+130 is out of range; write 0, or 1e-130 to below 1e126 with either sign."),
    ({"price": "12,50"}, "type", 'price: "12,50" is not a number; write one like 12.50.'),
    ({"price": "9" * 39}, "type", "is out of range; write at most 38 digits."),
    ({"day": "31.12.2026"}, "type", 'day: "31.12.2026" is not a date; write one like 2026-10-05.'),
    ({"time": "2026-10-05T12:30"}, "type", "is not a time with date and offset; write one like 2026-10-05T12:30:00Z."),
    ({"site": "example.com"}, "type", "is not a web address; write one like https://example.com/a."),
    ({"site": f"https://example.com/{'a' * 2_029}"}, "maxLength", "has 2,049 characters; at most 2,048 are allowed."),
    ({"greeting": [{"language": "de", "text": ""}]}, "empty", "greeting in de is empty; write a text."),
    ({"greeting": [{"language": one, "text": "x"} for one in ("de", "DE")]}, "duplicate", "greeting has the language "
     "de twice; leave one out."),
    # By the names of the schema, and values as clients write them.
    ({"numOf": 0}, "minimum", "numOf: 0 is less than the minimum 1."),
    ({"mainSite": {"streetName": "Lane"}}, "maxLength", "streetName has 4 characters; at most 3 are allowed."),
    ({"mainSite": {}}, "required", "mainSite: streetName is required; give it a value."),
    ({"unitPrice": "\0é"}, "type", 'unitPrice: "\\u0000é" is not a number; write one like 12.50.'),
    ({"unitPrice": Word("1e-400")}, "type", 'unitPrice: "1e-400" is out of range; write at most 38 digits.'),
    ({"fillLevel": Word("-1e400")}, "type",
     "fillLevel: a number beyond 1.8e308 is out of range; write 0, or 1e-130 to below 1e126 with either sign."),
    ({"longText": [{"language": "DE", "text": ""}]}, "empty", "longText in de is empty; write a text."),
]  # fmt: skip
NEW = "mutation%s { createSample(input: %s) { node { id } userErrors { message rule } } }"
LOOKED_UP = "mutation($id: ID!) { deleteSample(input: {node: {id: $id}}) { node { id } } }"


@pytest.mark.both_stores
async def test_each_fault_of_a_value_has_its_rule_and_a_short_sentence_with_a_way_out(store):
    server, who = Server(store, Sample), caller("write:sample")
    by_variable = NEW % ("($input: CreateSampleInput!)", "$input")
    valid, attributes = {"key": "there", "name": "n"}, {"text": "a"}
    assert "errors" not in await server.write(who, by_variable, input=valid | {"attributes": {"item": attributes}})
    for wrong, rule, sentence in SAID:
        is_part = wrong.keys() <= {"key", "name", "names", "id", "parent"}
        given: dict[str, Any] = {"key": "new", "name": "n"} | (wrong if is_part else {})
        given["attributes"] = {"item": attributes if is_part else attributes | wrong}
        is_number = any(isinstance(value, Word) for value in wrong.values())  # that JSON does not have
        asked, variables = (NEW % ("", literal(given)), {}) if is_number else (by_variable, {"input": given})
        faults = (await server.write(who, asked, **variables))["data"]["createSample"]["userErrors"]
        assert rule in [one["rule"] for one in faults], (wrong, faults)
        assert any(one["message"].endswith(sentence) for one in faults), (wrong, faults)
        assert all(len(one["message"]) < 160 for one in faults), faults
        assert is_part or len(faults) == 1, faults
    for node_id, way in (("fz", '; one begins with "sample:"'), ("", '; one begins with "sample:"'), ("sample:fz", "")):
        message = f'There is no node with the id "{node_id}"{way}.'
        assert await server.refusal(who, LOOKED_UP, id=node_id) == ("NOT_FOUND", message)
