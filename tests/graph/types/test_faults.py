"""Any two faults of an input are told at once, unless one of them hides what the other one is about, and any move is
either possible or has faults; on both stores.
"""

import json
from itertools import combinations
from random import Random

import pytest

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
    """Field and rule of each fault: the code of a position depends on whether there is a parent beside it."""
    given = {**VALID[verb], **{name: value for name, _, value in faults}}
    mutation = f"{verb}Place(input: {literal(given)}) {{ node {{ id }} userErrors {{ field rule }} }}"
    answer = (await server.write(ALL, f"mutation {{ {mutation} }}"))["data"][f"{verb}Place"]
    assert answer["node"] is None
    return sorted((one["field"], one["rule"] or "") for one in answer["userErrors"])


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
