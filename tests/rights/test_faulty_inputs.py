"""Rights and faults: who may not make a change is told that alone, whatever else is wrong with the input; and what is
hidden cannot be told from what is not there, in any input.
"""

import json
from itertools import combinations

import pytest

from store.model.records import derived_id
from tests.classes.shops import Place
from tests.graph.types.test_faults import FAULTS, GONE, VALID, plant_with_gone
from tests.model import plain
from tests.rights.asking import Server, caller, codes
from tests.selection import examples

READER, ELSEWHERE = caller("read:place"), caller("write:place/Q", "read:place")


async def ask(server, who, verb, given):
    mutation = f"mutation($input: {verb.title()}PlaceInput!) {{ {verb}Place(input: $input) {{ node {{ id }} }} }}"
    return await server.write(who, mutation, input=plain(given))


def inputs(verb):
    """A possible input, and every one with a fault or two."""
    faults = [{name: value} for name, _, value in FAULTS[verb]]
    pairs = [one | other for one, other in combinations(faults, 2) if one.keys().isdisjoint(other)]
    return [VALID[verb] | some for some in [{}, *faults, *pairs]]


def is_place_known(given):
    """Whether an input tells a node or a parent, by a path that there could be."""
    places = [given.get("node"), given.get("parent"), (given.get("to") or {}).get("parent")]
    return any(place.get("path", "//")[-2:] != "//" for place in places if place)


@pytest.mark.parametrize("verb", FAULTS)
async def test_who_may_not_make_a_change_is_told_that_alone_whatever_is_wrong(store, verb):
    await plant_with_gone(store, (["Q"], "MALL"))
    server, wrong = Server(store, Place), []
    for given in inputs(verb):
        for who in (READER, ELSEWHERE) if is_place_known(given) else (READER,):
            answer = await ask(server, who, verb, given)
            refused = (answer["data"], [one["extensions"]["code"] for one in answer["errors"]])
            wrong += [] if refused == (None, ["FORBIDDEN"]) else [(who, given, answer)]
    assert wrong == []


# The grants, what is asked for, and the code of the answer.
SOME = [
    ("write:place/M/K read:place", "create", {"parent": {"path": "M"}, "key": ""}, "BAD_PATH"),
    ("write:place/M/K read:place", "create", {"parent": {"path": "M"}, "key": "L"}, "FORBIDDEN"),
    ("write:place/M/K/x read:place", "create", {"parent": {"path": "M"}, "key": ""}, "FORBIDDEN"),
    ("write:place/K", "create", {"parent": None, "key": "", "attributes": {"mall": {}}}, "BAD_PATH"),
    ("write:place/K/x", "create", {"parent": None, "key": "", "attributes": {"mall": {}}}, "FORBIDDEN"),
    ("write:place/M", "create", {"id": "a b"}, "FORBIDDEN"),
    ("write:place", "create", {"id": "a b"}, "BAD_USER_INPUT"),
    ("write:place/M", "create", {"attributes": {"shop": {}}}, "BAD_USER_INPUT"),
    ("write:place/M read:place", "move", {"key": ""}, "FORBIDDEN"),
    ("write:place/M write:place/N/K read:place", "move", {"key": ""}, "BAD_PATH"),
    ("write:place/M/S", "move", {"to": None, "key": None, "position": {"first": False}}, "FORBIDDEN"),
    ("write:place/M/S read:place/M", "move", {"to": None, "key": None, "position": {"first": False}}, "BAD_USER_INPUT"),
    ("write:place/M write:place/N/K", "move", {"to": None, "position": {"before": {"path": "N"}}}, "NOT_FOUND"),
    ("write:place/M", "restore", {}, "NOT_FOUND"),
    ("write:place/M read:place", "restore", {"key": ""}, "FORBIDDEN"),
    ("write:place/M write:place/N/K read:place", "restore", {"key": ""}, "BAD_PATH"),
    ("write:place/M write:place/N/L read:place", "restore", {}, "FORBIDDEN"),
    ("write:place/N read:place", "restore", {"key": ""}, "FORBIDDEN"),
    ("write:place/N read:place", "restore", {"id": "place:none"}, "NOT_FOUND"),
    ("write:place/M/K read:place", "restore", {"id": "place:none"}, "FORBIDDEN"),
    ("write:place/M/D", "restore", {"to": None, "key": None}, "OK"),
    ("write:place/M", "delete", {"node": {"path": "M"}, "policy": "REPARENT", "expectedRevision": None}, "FORBIDDEN"),
]  # fmt: skip


async def test_a_part_at_fault_takes_no_more_rights_than_some_value_there_would(store):
    await plant_with_gone(store)
    server = Server(store, Place)
    for grants, verb, given, expected in SOME:
        given = {name: value for name, value in (VALID[verb] | given).items() if value is not None or "Rev" in name}
        answer = await ask(server, caller(*grants.split()), verb, given)
        assert (codes(answer) or ["OK"]) == [expected], (grants, verb, given)


# Nodes of the possible inputs, which are hidden, by their paths and ids; and others, which are not there.
HIDDEN = {"M/S": "Y/S", "M": "Y", "N": "W"}
IDS = {path: derived_id("place", tuple(path.split("/"))) for path in HIDDEN}


def named(value, names):
    """An input that names the nodes of the possible ones so."""
    if isinstance(value, dict):
        found = names.get(value.get("path"))
        return found or {name: named(part, names) for name, part in value.items()}
    return names.get(value, value) if value == GONE else value


@pytest.mark.parametrize("verb", FAULTS)
async def test_a_hidden_node_is_as_one_that_is_not_there_whatever_else_is_wrong(store, verb):
    await plant_with_gone(store, (["Q"], "MALL"))
    server, who = Server(store, Place), caller("write:place/Q")
    for given in inputs(verb)[:: examples(4, 1)]:
        for by, there, absent in (("path", {}, HIDDEN), ("id", IDS, {path: f"no-{path[::-2]}" for path in HIDDEN})):
            prefix, told = "place:" if by == "id" else "", []
            for names in (there, absent):
                places = {path: {by: f"{prefix}{names.get(path, path)}"} for path in HIDDEN}
                gone = {GONE: GONE if names is there else "place:gone"}
                answer = json.dumps(await ask(server, who, verb, named(given, places | gone)))
                answer = answer.replace(gone[GONE], GONE)
                for path, place in places.items():
                    answer = answer.replace(f"{place[by]}", path) if by == "id" else answer
                    answer = answer.replace(f" at {place[by]};", f" at {path};")
                told.append(answer)
            assert told[0] == told[1], given
            assert "data" in told[0], given
