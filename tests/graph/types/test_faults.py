"""Any two faults of an input are told at once, unless one of them hides what the other one is about, and any move is
either possible or has faults; on both stores.
"""

import json
from itertools import combinations
from random import Random

import pytest

from clade import Date, DateTime, Decimal, Localized, Long, Node, Url, attribute
from graph.errors import RULES
from store.model.records import derived_id, key_of
from tests import invariants
from tests.classes.shops import Place
from tests.model import literal
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

pytestmark = pytest.mark.both_stores

ALL = caller("write:place")
NODES = [
    (["M"], "MALL"), (["M", "S"], "SHOP", "S", {"owner": "Ann"}), (["M", "T"], "SHOP", "T", {"owner": "Ann"}),
    (["N"], "MALL"), (["N", "T"], "SHOP", "T", {"owner": "Ann"}),
]  # fmt: skip
TAKE = """mutation { createPlace(input: {parent: {path: "N"}, key: "U", name: "U", id: "taken",
    attributes: {shop: {owner: "Ann"}}}) { node { id } } }"""
VALID = {
    "create": {"parent": {"path": "M"}, "key": "K", "name": "n", "attributes": {"shop": {"owner": "Eve"}}},
    "update": {"node": {"path": "M/S"}, "name": "n"},
    "move": {"node": {"path": "M/S"}, "to": {"parent": {"path": "N"}}, "key": "K"},
    "delete": {"node": {"path": "M/S"}},
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
        ("attributes", BAD, {"shop": {"owner": "bob", "area": "0"}}),
    ],
    "update": [
        *[("node", kind, value) for kind, value in NOWHERE], ("name", BAD, None), ("name", BAD, ""), *NAMES,
        ("attributes", BAD, {"shop": {"owner": None, "codes": ["A", "B"]}}),
        ("attributes", WRONG, {"mall": {"floors": 3}}), ("expectedRevision", WRONG, 7),
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
}  # fmt: skip


def is_hidden(one, other):
    """Whether nobody can tell the other fault beside the first: it is about a node or a place that is not there."""
    (name, kind, _), (of, about, value) = one, other
    if name == "node" and kind in (BAD, LOST):
        return about == WRONG and of != "key"  # since the new place is known
    return name == "to" and (of, value) == ("key", "T")


async def told(server, verb, *faults):
    """Field and rule of each fault: that of a position depends on whether there is a parent beside it."""
    given = {**VALID[verb], **{name: value for name, _, value in faults}}
    mutation = f"{verb}Place(input: {literal(given)}) {{ node {{ id }} userErrors {{ field rule }} }}"
    answer = (await server.write(ALL, f"mutation {{ {mutation} }}"))["data"][f"{verb}Place"]
    assert answer["node"] is None
    assert {one["rule"] for one in answer["userErrors"]} <= RULES.keys()
    return sorted((one["field"], "" if one["field"] == ["position"] else one["rule"]) for one in answer["userErrors"])


@pytest.mark.parametrize("verb", FAULTS)
async def test_any_two_faults_of_an_input_are_told_at_once_and_nothing_is_written(store, verb):
    await plant(store, Place, NODES)
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


def by(*paths):
    """Nodes by path and by id."""
    ids = {path: f"place:{derived_id('place', tuple(path.split('/')))}" for path in paths}
    return [one for path in paths for one in ({"path": path}, {"id": ids[path]})]


PARENTS = [*by("M", "N", "M/S", "X"), {"path": "//"}]
BESIDE = [*by("M/T", "M/S", "N", "N/T", "X"), {"path": "//"}]
PARTS = [
    [*by("M/S", "N/T", "M", "X"), {"path": "//"}],
    [None, {"root": True}, *[{"parent": one} for one in PARENTS], {"root": False}],
    [None, "S", "K", "U", "T", "", " "],
    [None, {"first": True}, {"last": True}, *[{"before": one} for one in BESIDE], {"last": False}],
    [None, None, None, 1, 9],
]


@pytest.mark.parametrize("number", [80, pytest.param(4_000, marks=pytest.mark.thorough)])
async def test_any_move_is_possible_or_has_faults_each_once(store, number):
    await plant(store, Place, NODES)
    server, other = Server(store, Place), caller("write:place/M/S", "read:place/M/T", "write:place/N")
    random = Random(7)  # noqa: S311
    for _ in range(number):
        parts = [random.choice(random.choice((part[:4], part))) for part in PARTS]  # the first ones are mostly possible
        names = ("node", "to", "key", "position", "expectedRevision")
        given = {name: part for name, part in zip(names, parts, strict=True) if part is not None}
        move = f"""mutation {{ movePlace(input: {literal(given)}, dryRun: true) {{ plan {{ nodes }}
            userErrors {{ code field message }} }} }}"""
        for who in (ALL, other):
            answer = await server.write(who, move)
            if answer["data"] is None:
                assert (who, [one["extensions"]["code"] for one in answer["errors"]]) == (other, ["FORBIDDEN"]), given
                continue
            found = answer["data"]["movePlace"]
            assert (found["plan"] is None) == bool(found["userErrors"]), given
            told = [json.dumps(one, ensure_ascii=False) for one in found["userErrors"]]
            assert len(set(told)) == len(told), told
            assert all(one.replace("\\", "").isprintable() and "\ufffd" not in one for one in told), told


# -- what faults say ---------------------------------------------------------------------------------------------------


class Sample(Node, hierarchy="sample", many="samples"):
    """A sample of all kinds of values."""


class Item(Sample, under=None):
    """An item."""

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
    ({"size": 1e130}, "type", "size: 1e+130 is out of range; write 0, or 1e-130 to 1e126 with either sign."),
    ({"price": "12,50"}, "type", 'price: "12,50" is not a number; write one like 12.50.'),
    ({"price": "9" * 39}, "type", "is out of range; write at most 38 digits."),
    ({"day": "31.12.2026"}, "type", 'day: "31.12.2026" is not a date; write one like 2026-10-05.'),
    ({"time": "2026-10-05T12:30"}, "type", "is not a time with date and offset; write one like 2026-10-05T12:30:00Z."),
    ({"site": "example.com"}, "type", "is not a web address; write one like https://example.com/a."),
    ({"site": f"https://example.com/{'a' * 2_029}"}, "maxLength", "has 2,049 characters; at most 2,048 are allowed."),
    ({"greeting": [{"language": "de", "text": ""}]}, "empty", "greeting in de is empty; write a text."),
    ({"greeting": [{"language": one, "text": "x"} for one in ("de", "DE")]}, "duplicate", "greeting has the language "
     "de twice; leave one out."),
]  # fmt: skip
NEW = """mutation($input: CreateSampleInput!) { createSample(input: $input) { node { id }
    userErrors { message rule } } }"""


async def test_each_fault_of_a_value_has_its_rule_and_a_short_sentence_with_a_way_out(store):
    server, who = Server(store, Sample), caller("write:sample")
    valid, attributes = {"key": "there", "name": "n"}, {"text": "a"}
    made = await server.write(who, NEW, input=valid | {"attributes": {"item": attributes}})
    assert "errors" not in made
    for wrong, rule, sentence in SAID:
        is_part = wrong.keys() <= {"key", "name", "names", "id", "parent"}
        given = {"key": "new", "name": "n"} | (wrong if is_part else {})
        item = attributes if is_part else attributes | wrong
        answer = await server.write(who, NEW, input=given | {"attributes": {"item": item}})
        faults = answer["data"]["createSample"]["userErrors"]
        assert rule in [one["rule"] for one in faults], (wrong, faults)
        assert any(one["message"].endswith(sentence) for one in faults), (wrong, faults)
        assert all(len(one["message"]) < 160 for one in faults), faults
