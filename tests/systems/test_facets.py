"""Facets of lists: against counting by hand, and what they read."""

from collections import Counter
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any

import pytest

import graph.hierarchies.attribute as values
from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from tests.rights.asking import Server, caller
from tests.systems.asking import Client, plant


class Colour(Enum):
    """Its members are not in the order of their names."""

    RED = "r"
    BLUE = "b"


class Ware(Node, hierarchy="ware", many="wares"):
    """A ware with attributes of all kinds that lists are counted by."""

    brand: str | None = attribute("A text.")
    stock: int | None = attribute("A small number.")
    price: values.Decimal | None = attribute("A decimal.")
    made_on: values.Date | None = attribute("A date.")
    is_new: bool | None = attribute("A boolean.")
    colour: Colour | None = attribute("An enum.")
    tags: list[str] | None = attribute("Texts.")


class Shelf(Ware, under=[None, "self"]):
    """A shelf of shelves and boxes."""


class Carton(Ware, under=[Shelf]):
    """A carton."""


CHOICES: dict[str, list[Any]] = {
    "brand": ["Ünal", "unal", "Vega", "", "Halo"],
    "stock": [-3, 0, 7, 2147483647],
    "price": ["1.0", "1.00", "9.99", "-2", "10"],
    "made_on": ["2026-01-01", "1999-12-31"],
    "is_new": [True, False],
    "colour": ["RED", "BLUE"],
    "tags": [[], ["a"], ["a", "b", "a"], ["á"]],
}
FIELDS = "LEVEL BRAND STOCK PRICE MADE_ON IS_NEW COLOUR TAGS".split()
NAMES = {"made_on": "madeOn", "is_new": "isNew"}
ORDERS = {"colour": ["RED", "BLUE"], "LEVEL": ["SHELF", "CARTON"], "is_new": [False, True]}
FACETS = f"facets(fields: [{', '.join(FIELDS)}], first: 3) {{ field distinctCount missingCount minimum maximum values {{ value count }} }}"  # noqa: E501


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311


Rows = list[tuple[Any, ...]]
Test = tuple[str, Any]  # the condition as it is written, and whether values meet it


def wares(chance: Random, size: int) -> Rows:
    """Random wares, in two trees of shelves in shelves."""
    shelves, rows = [("x",), ("y",), ("x", "s"), ("x", "s", "t")], Rows()
    for number in range(size):
        given = {name: chance.choice(some) for name, some in CHOICES.items() if chance.random() < 0.7}
        rows.append(((*chance.choice(shelves), f"c{number}"), "CARTON", "N", given))
    return [(path, "SHELF", "S", {"brand": "Vega"}) for path in shelves] + rows


def conditions(chance: Random) -> tuple[str, dict[str, list[Any]]]:
    """A random `where`, and the tests of each part by the name that it is an own condition of, others under ""."""
    parts: dict[str, Any] = {
        'brand: {ne: "Vega"}': ("brand", lambda row: row.get("brand") != "Vega"),
        'price: {gte: "1.00"}': ("price", lambda row: "price" in row and Decimal(row["price"]) >= 1),
        "stock: {in: [0, 7]}": ("stock", lambda row: row.get("stock") in (0, 7)),
        'tags: {contains: "a"}': ("tags", lambda row: "a" in row.get("tags", [])),
        "isNew: {isNull: false}": ("is_new", lambda row: "is_new" in row),
        "and: [{colour: {eq: RED}}]": ("", lambda row: row.get("colour") == "RED"),
        'or: [{brand: {eq: "Halo"}}, {stock: {lt: 5}}]': (
            "", lambda row: row.get("brand") == "Halo" or row.get("stock", 9) < 5
        ),
        'key: {ne: "c1"}': ("", lambda row: True),
    }  # fmt: skip
    del parts['key: {ne: "c1"}']  # keys have no such operator
    chosen = chance.sample(sorted(parts), chance.randint(0, 3))
    own: dict[str, list[Any]] = {}
    for one in chosen:
        own.setdefault(parts[one][0], []).append(parts[one][1])
    return ", ".join(chosen), own


def key_of(name: str, value: Any) -> Any:
    """What is equal for equal values, and sorts as they do."""
    if name == "price":
        return Decimal(value)
    return ORDERS[name].index(value) if name in ORDERS else value


def folded(name: str, key: Any) -> Any:
    return (key.lower().replace("ü", "u").replace("á", "a"), key) if name in ("brand", "tags") else key


def expected(rows: Rows, own: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The facets of these rows, counted one field after another."""
    found = []
    for field in FIELDS:
        name = field if field == "LEVEL" else field.lower()
        counted = [
            {"LEVEL": level, **given} for _, level, _, given in rows
            if all(test(given) for other, tests in own.items() if other in ("", *{*own} - {name}) for test in tests)
        ]  # fmt: skip
        counts, texts, missing = Counter[Any](), dict[Any, Any](), 0
        for one in counted:
            given = one.get(name)
            several = given if isinstance(given, list) else [] if given is None else [given]
            keys = list(dict.fromkeys(key_of(name, value) for value in several))
            for key, value in zip([key_of(name, value) for value in several], several, strict=True):
                texts.setdefault(
                    key, {True: "true", False: "false"}.get(value, str(value)) if name == "is_new" else str(value)
                )
            counts.update(keys)
            missing += given is None
        ranked = sorted(counts, key=lambda key: (-counts[key], folded(name, key)))
        ends = [texts[end(counts)] if counts and name in ("stock", "price", "made_on") else None for end in (min, max)]
        found.append({
            "field": field, "distinctCount": len(counts), "missingCount": missing,
            "minimum": ends[0], "maximum": ends[1],
            "values": [{"value": texts[key], "count": counts[key]} for key in ranked[:3]],
        })  # fmt: skip
    return found


async def test_facets_are_those_counted_by_hand(store):
    chance = seeded(7)
    rows = [*wares(chance, 130), (("z",), "SHELF", "Z", {})]
    await plant(store, Ware, rows)
    asked = Client(store, Ware)
    for _ in range(40):
        where, own = conditions(chance)
        given = f"(first: {chance.randint(0, 3)}, where: {{{where}}})" if where else "(last: 2)"
        deep = given.replace(")", ", level: [CARTON])")
        lists = {
            f'shelf(path: "x") {{ it: descendants{given} {{ {FACETS} }} }}': [
                row for row in rows if row[0][0] == "x" and len(row[0]) > 1
            ],
            f'shelf(path: "x/s") {{ it: children{given} {{ nodes {{ id }} {FACETS} }} }}': [
                row for row in rows if row[0][:2] == ("x", "s") and len(row[0]) == 3
            ],
            f'shelf(path: "z") {{ it: children{given} {{ {FACETS} }} }}': [],
            f"it: wares{deep} {{ {FACETS} totalCount }}": [row for row in rows if row[1] == "CARTON"],
            f"it: wares{given} {{ {FACETS} }}": [row for row in rows if len(row[0]) == 1],
        }
        for query, those in lists.items():
            reply = await asked.ask(f"{{ {query} }}")
            assert not reply.errors, (query, reply.errors)
            found = reply.data.get("shelf") or reply.data
            assert found["it"]["facets"] == expected(sorted(those), own), query


async def test_a_page_with_facets_is_the_page_without_and_its_cursors_are_the_same(store):
    await plant(store, Ware, wares(seeded(1), 60))
    asked = Client(store, Ware)
    page = "totalCount edges { cursor node { path } } pageInfo { endCursor hasNextPage }"
    query = f'{{ shelf(path: "x") {{ it: %s(first: 5%s) {{ %s {page} }} }} }}'
    for field in ("children", "descendants"):
        for more in ("", ", orderBy: {field: PRICE}", ', where: {brand: {ne: "Vega"}}'):
            after = ""
            for _ in range(3):
                pages = [await asked.ask(query % (field, more + after, facets)) for facets in ("", FACETS)]
                plain, counted = [page.data["shelf"]["it"] for page in pages]
                assert len(counted.pop("facets")) == len(FIELDS)
                assert counted == plain
                after = f', after: "{plain["pageInfo"]["endCursor"]}"'


@pytest.mark.both_stores
async def test_facets_read_the_list_once_and_afterwards_the_version_of_the_tree_alone(store):
    await plant(store, Ware, wares(seeded(2), 120))
    asked = Client(store, Ware, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    listed = 'shelf(path: "x") { it: descendants(first: %s%s) { nodes { path } %s } }'
    where = ', where: {price: {gt: "0"}}, orderBy: {field: STOCK}'
    whole = await Client(store, Ware).ask(f"{{ {listed % (100, '', '')} }}")
    for more in ("", where):
        first = await asked.ask(f"{{ {listed % (5, more, FACETS)} }}")
        assert not first.errors
        await asked.ask(f"{{ {listed % (5, more, FACETS)} }}")  # from the second on the version is known to be settled
        if not more:
            assert (first.requests, first.rounds) == (whole.requests, whole.rounds)
        for size in (5, 9):
            again = await asked.ask(f"{{ {listed % (size, more, FACETS)} }}")
            assert again.requests <= 1, "the version of the tree"
    two = await asked.ask(f"{{ a: {listed % (5, where, FACETS)} b: {listed % (6, where, FACETS.replace('3', '9'))} }}")
    assert not two.errors


async def test_facets_of_levels_read_nothing_and_nested_lists_are_read_together(store):
    rows = [(("x",), "SHELF"), *[(("x", f"s{n:02}"), "SHELF") for n in range(50)]]
    rows += [(("x", f"s{n:02}", f"c{k}"), "CARTON", "C", {"price": str(n + k)}) for n in range(50) for k in range(3)]
    await plant(store, Ware, rows)
    asked = Client(store, Ware)
    plain = await asked.ask('{ shelf(path: "x") { path descendantCount } }')
    levels = "facets(fields: LEVEL) { values { value count } }"
    counted = await asked.ask(
        f'{{ shelf(path: "x") {{ path descendants {{ {levels} }} children(first: 0) {{ {levels} }} }} }}'
    )
    assert counted.requests == plain.requests
    assert counted.data["shelf"]["descendants"]["facets"] == [
        {"values": [{"value": "CARTON", "count": 150}, {"value": "SHELF", "count": 50}]}
    ]
    assert counted.data["shelf"]["children"]["facets"] == [{"values": [{"value": "SHELF", "count": 50}]}]
    query = '{ shelf(path: "x") { children { nodes { path %s } } } }'
    listed = await asked.ask(query % "children { nodes { path } }")
    lowest = await asked.ask(query % "children(first: 0) { facets(fields: [PRICE]) { minimum maximum } }")
    assert (lowest.requests, lowest.rounds) == (listed.requests, listed.rounds)
    prices = [node["children"]["facets"][0] for node in lowest.data["shelf"]["children"]["nodes"]]
    assert prices == [{"minimum": str(n), "maximum": str(n + 2)} for n in range(50)]


async def test_a_list_with_facets_spends_its_nodes_once(store):
    await plant(store, Ware, [(("x",), "SHELF"), *[(("x", f"c{n:03}"), "CARTON") for n in range(150)]])
    several = " ".join(f"f{n}: {FACETS}" for n in range(5))
    for units, fails in ((8.0, False), (7.0, True)):
        asked = Client(store, Ware, budget=BudgetLimits(read_units=units))
        reply = await asked.ask(f'{{ shelf(path: "x") {{ children(first: 1) {{ {several} }} }} }}')
        assert [error["extensions"]["code"] for error in reply.errors] == ["BUDGET_EXCEEDED"] * fails


async def test_wrong_arguments_of_facets_are_errors_of_the_list(store):
    await plant(store, Ware, wares(seeded(3), 5))
    for arguments, message in {
        "fields: []": "facets has 0 fields; give 1 to 10.",
        "fields: [BRAND, BRAND]": "facets has BRAND twice; omit one.",
        "fields: [BRAND], first: 101": "first of facets is 101; it must be 0 to 100.",
        "fields: [BRAND], first: -1": "first of facets is -1; it must be 0 to 100.",
    }.items():
        query = f'{{ shelf(path: "x") {{ path children {{ totalCount f: facets({arguments}) {{ field }} }} }} }}'
        reply = await Client(store, Ware).ask(query)
        assert reply.data == {"shelf": {"path": "x", "children": None}}
        (error,) = reply.errors
        assert (error["message"], error["path"]) == (message, ["shelf", "children", "f"])


async def test_an_error_in_the_selection_of_values_is_one_of_lists_that_have_values(store):
    await plant(store, Ware, wares(seeded(3), 5))
    values = "facets(fields: [LEVEL]) { field values { ... @skip(if: $v) { value } } }"
    lists = f'full: shelf(path: "x") {{ children {{ {values} }} }} empty: shelf(path: "x/s/t") {{ it: children(where: {{or: []}}) {{ {values} }} }}'  # noqa: E501
    reply = await Client(store, Ware).ask(f"query Q($v: Boolean = true) {{ {lists} }}", v=None)
    assert reply.data == {
        "full": {"children": None}, "empty": {"it": {"facets": [{"field": "LEVEL", "values": []}]}},
    }  # fmt: skip
    assert [error["path"] for error in reply.errors] == [["full", "children", "facets", 0, "values", 0]]


async def test_facets_are_of_what_the_caller_sees(store):
    rows = wares(seeded(4), 80)
    await plant(store, Ware, rows)
    server, who = Server(store, Ware), caller("read:ware/x/s/t")
    seen = [row for row in rows if row[0][:3] == ("x", "s", "t")]
    found = await server.data(who, f"{{ it: wares(level: [CARTON]) {{ {FACETS} }} }}")
    assert found["it"]["facets"] == expected(sorted(row for row in seen if row[1] == "CARTON"), {})
