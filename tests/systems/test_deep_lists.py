"""Conditions on children, and the order in which editors put nodes at any depth: against brute force over random trees,
and their reads.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from graph.hierarchies.attribute import attribute
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from store.engine import ReadUsage
from store.errors import Unavailable
from store.model.keys import Path, encode_segment, first_rank, last_segment
from store.model.records import Record
from store.sqlite.store import SQLiteStore
from store.writing.move_delete import Move
from store.writing.positions import Side
from store.writing.writer import Writer
from tests.model import Model, Word, literal
from tests.reordering import reorder
from tests.rights.asking import Server, caller
from tests.selection import examples
from tests.stores import Interrupted, once
from tests.systems.asking import Client, plant

pytestmark = pytest.mark.both_stores


class Shelf(Node, hierarchy="shelf", many="shelves"):
    """A place or a thing of a shop."""

    weight: int | None = attribute("Weight.")


class Room(Shelf, under=[None, "self"]):
    """A room in a room."""


class Ware(Shelf, under=[Room]):
    """A ware."""

    price: int | None = attribute("Price.")


class Kind(Shelf, under=[Ware]):
    """A kind of a ware."""

    price: int | None = attribute("Price.")
    color: str | None = attribute("Colour.")


class Note(Shelf, under=[Room, Ware]):
    """A note at a ware, or in a room."""


LEVELS = ["ROOM", "WARE", "KIND", "NOTE"]
UNDER = {"ROOM": ["ROOM", "WARE", "NOTE"], "WARE": ["KIND", "NOTE"], "KIND": [], "NOTE": []}
HAVE = {"ROOM": ["weight"], "WARE": ["weight", "price"], "KIND": ["weight", "price", "color"], "NOTE": ["weight"]}


def shop(random: Random, size: int) -> Model:
    """Trees with so many nodes, siblings of which were put into another order."""
    nodes: dict[Path, str] = {(root,): "ROOM" for root in "ab#"[: random.randint(1, 3)]}
    while len(nodes) < size:
        parent = random.choice(list(nodes))
        if len(parent) < 6 and (levels := UNDER[nodes[parent]]):
            nodes[(*parent, random.choice("abcdefghijklm %é"))] = random.choice(levels)
    legal = {path: level for path, level in nodes.items() if is_legal(nodes, path)}
    model = Model("shelf", legal)
    for path, record in model.nodes.items():
        values = {"weight": random.choice([None, 1, 2, 3]), "price": random.choice([None, 1, 2, 3])}
        values |= {"color": random.choice([None, "red", "blue"])}
        own = {name: values[name] for name in HAVE[record.level] if values[name] is not None}
        rank = record.rank
        if random.random() < 0.5:
            beside = random.choice(model.families[path[:-1]])
            rank = (
                f"{record.level}#{beside.rank.split('#')[1]}#{random.choice('1Vz')}{len(path)}{random.randint(1, 999)}"
            )
        model.nodes[path] = replace(record, rank=rank, attributes=own)
    for parent in model.families:
        model.families[parent] = sorted(
            [model.nodes[one.path] for one in model.families[parent]], key=lambda one: one.rank
        )
    return model


def is_legal(nodes: dict[Path, str], path: Path) -> bool:
    """Whether a node and all above it stand where their levels may."""
    return len(path) == 1 or (nodes[path] in UNDER[nodes[path[:-1]]] and is_legal(nodes, path[:-1]))


def some_where(random: Random, depth: int = 2, *, inside: bool = False) -> dict[str, Any]:
    """A condition."""
    found: dict[str, Any] = {}
    for _ in range(random.choice((1, 1, 2))):
        match random.randrange(9 if depth else 5):
            case 0:
                found["weight"] = {random.choice(("gte", "ne", "lt")): random.randint(1, 3)}
            case 1:
                found["price"] = {random.choice(("gte", "ne")): random.randint(1, 3)}
            case 2 if inside:
                found["color"] = {"eq": random.choice(("red", "blue"))}
            case 3:
                found["key"] = {random.choice(("lt", "gte")): random.choice("cdf")}
            case 4:
                found["childCount"] = {"gt": random.randint(0, 1)}
            case 5:
                found["not"] = some_where(random, depth - 1, inside=inside)
            case 6:
                found["or"] = [some_where(random, depth - 1, inside=inside) for _ in range(random.randint(1, 3))]
            case _ if not inside:
                children = {one: some_where(random, 1, inside=True) for one in random.choice(
                    (["some"], ["none"], ["some", "none"]))}  # fmt: skip
                if random.random() < 0.3:
                    children["some"] = {}
                if random.random() < 0.3:
                    children["level"] = [Word(one) for one in random.sample(LEVELS[1:], random.randint(1, 2))]
                found["children"] = children
    return found


def meets(model: Model, record: Record, where: dict[str, Any]) -> bool:
    """Whether a node meets a condition."""
    return all(_meets(model, record, name, inner) for name, inner in where.items())


def _meets(model: Model, record: Record, name: str, inner: Any) -> bool:
    if name == "not":
        return not meets(model, record, inner)
    if name == "or":
        return any(meets(model, record, one) for one in inner)
    if name == "children":
        levels = [one.name for one in inner.get("level", [])]
        children = [one for one in model.families.get(record.path, []) if not levels or one.level in levels]
        some = "some" not in inner or any(meets(model, one, inner["some"]) for one in children)
        return some and not ("none" in inner and any(meets(model, one, inner["none"]) for one in children))
    found: Any = record.attributes.get(name)
    if name == "key":
        found = encode_segment(record.path[-1]) + "#"
        inner = {operator: operand + "#" for operator, operand in inner.items()}
    if name == "childCount":
        found = sum(record.kids.values())
    ((operator, operand),) = inner.items()
    if found is None:
        return bool(operator == "ne")
    compared = {"gte": found >= operand, "ne": found != operand, "lt": found < operand, "gt": found > operand}
    return compared.get(operator, found == operand)


def by_position(model: Model, tops: list[Record]) -> Iterator[Record]:
    for top in tops:
        yield top
        yield from by_position(model, model.families.get(top.path, []))


ORDERS: list[list[tuple[str, str]]] = [
    [], [("POSITION", "ASC")], [("POSITION", "DESC")], [("PRICE", "ASC"), ("POSITION", "ASC")],
    [("WEIGHT", "DESC"), ("POSITION", "DESC")],
]  # fmt: skip


def in_order(model: Model, records: list[Record], tops: list[Record], order: list[tuple[str, str]]) -> list[str]:
    """The paths of nodes in an order; `tops` are where the list begins, in their order."""
    found = sorted(records, key=lambda one: (one.pk, one.sk))
    for field, direction in reversed(order):
        if field == "POSITION":
            places = {one.key: place for place, one in enumerate(by_position(model, tops))}
            found = sorted(records, key=lambda one: places[one.key], reverse=direction == "DESC")
        else:
            have = [one for one in found if one.attributes.get(field.lower()) is not None]
            have.sort(key=lambda one: one.attributes[field.lower()], reverse=direction == "DESC")  # type: ignore[arg-type, return-value]  # numbers
            found = have + [one for one in found if one.attributes.get(field.lower()) is None]
    return [one.path_text for one in found]


def arguments(where: dict[str, Any], levels: list[str], order: list[tuple[str, str]]) -> str:
    given: dict[str, Any] = {"where": where} if where else {}
    given |= {"level": [Word(one) for one in levels]} if levels else {}
    given |= {"orderBy": [{"field": Word(field), "direction": Word(way)} for field, way in order]} if order else {}
    return ", ".join([f"{name}: {literal(value)}" for name, value in given.items()])


async def pages_of(ask: Any, listing: str, size: str) -> list[str]:
    """The paths of a list, read page by page; `listing` has room for arguments."""
    found, place = list[str](), ""
    while True:
        told = "nodes { path } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
        data = await ask(listing % f"{size}: 3{place}", told)
        if data is None:
            return []
        some = [node["path"] for node in data["nodes"]]
        found = [*found, *some] if size == "first" else [*some, *found]
        info = data["pageInfo"]
        if not info["hasNextPage" if size == "first" else "hasPreviousPage"]:
            assert data["totalCount"] == len(found)
            return found
        place = f', after: "{info["endCursor"]}"' if size == "first" else f', before: "{info["startCursor"]}"'


def facet_of(records: list[Record], name: str) -> dict[str, Any]:
    """What a facet has of these nodes."""
    found = [one.attributes[name] for one in records if name in one.attributes]
    values: list[Any] = sorted(Counter(found).items(), key=lambda one: (-one[1], one[0]))
    return {
        "missingCount": len(records) - len(found),
        "minimum": str(min(found)) if found else None,  # type: ignore[type-var]  # numbers
        "values": [{"value": str(value), "count": count} for value, count in values],
    }


@pytest.mark.parametrize("seed", range(examples(1, 100)))
async def test_lists_have_what_brute_force_finds(store, seed):
    random = Random(seed)  # noqa: S311 - no secret
    model = shop(random, 150)
    await model.plant(store)
    grants = random.sample([one for one in model.nodes if len(one) < 4], 3)
    tops = [one for one in grants if not any(one[:length] in grants for length in range(1, len(one)))]
    server, everybody = Server(store, Shelf), caller("read:shelf")
    somebody = caller(*[f"read:shelf/{model.nodes[top].path_text}" for top in tops])
    for _ in range(25):
        where, order = some_where(random) if random.random() < 0.8 else {}, random.choice(ORDERS)
        levels = random.choice(([], ["WARE"], ["WARE", "NOTE"], ["KIND"], ["ROOM", "KIND"]))
        owner = random.choice([one for one in model.nodes.values() if one.kids and one.depth < 3])
        who = random.choice((everybody, everybody, somebody))
        below = [one for one in model.nodes.values() if one.path[: len(owner.path)] == owner.path and one != owner]
        starts = model.families.get(owner.path, [])
        match random.choice(("children", "descendants", "descendants", "roots")):
            case "children":
                field, listed = "children", [one for one in below if one.depth == owner.depth + 1]
                order = order or [("POSITION", "ASC")]
            case "descendants":
                field, listed = "descendants", below
            case _:
                field, levels = "roots", levels if "ROOM" not in levels else []
                starts = model.families[()]
                if who is somebody:
                    starts = [model.nodes[top] for top in tops]
                    starts.sort(key=lambda one: first_rank(one.level, last_segment(*one.key)) + one.pk + one.sk)
                listed = list(by_position(model, starts)) if levels else starts
                order = order or ([] if levels else [("POSITION", "ASC")])
        if who is somebody and field != "roots" and not any(owner.path[: len(top)] == top for top in tops):
            continue
        of_levels = [one for one in listed if not levels or one.level in levels]
        listed = [one for one in of_levels if meets(model, one, where)]
        text = arguments(where, levels, order)
        document = f"it: {'shelves' if field == 'roots' else field}({text}{', ' if text else ''}%s)"

        async def ask(listing: str, told: str, field: str = field, owner: Record = owner, who: Any = who) -> Any:
            listing = f"{listing} {{ {told} }}"
            of_node = f'{{ node(id: "{owner.id}") {{ ... on Shelf {{ {listing} }} }} }}'
            answer = await server.ask(who, f"{{ {listing} }}" if field == "roots" else of_node)
            if errors := answer.get("errors"):
                assert ["can meet where" in error["message"] for error in errors] == [True], (listing, errors)
                return None
            return answer["data"]["it"] if field == "roots" else answer["data"]["node"]["it"]

        expected = in_order(model, listed, starts, order)
        for size in ("first", "last"):
            assert await pages_of(ask, document, size) == expected, (document, who)
        told = "facets(fields: [PRICE, WEIGHT]) { missingCount minimum values { value count } }"
        if (found := await ask(document % "first: 0", told)) is not None:
            for facet, name in zip(found["facets"], ("price", "weight"), strict=True):
                others = {one: inner for one, inner in where.items() if one != name}
                assert facet == facet_of([one for one in of_levels if meets(model, one, others)], name), document


WARES = [(("r",), "ROOM"), *[(("r", f"w{n:02}"), "WARE", f"W{n}", {"weight": n, "price": 50 - n}) for n in range(50)]]
WARES += [
    (("r", f"w{n:02}", f"k{kind}"), "KIND", "K", {"color": ("red", "blue")[n % 2], "price": 10 * n + kind})
    for n in range(40)
    for kind in range(3)
]
"""A room of fifty wares, forty of which are of three kinds each."""

RED = 'children: {some: {color: {eq: "red"}}}'
READ = {  # how many items, beside those of the list, and how many nodes are found
    RED: (120, 20),
    f"weight: {{lt: 4}}, {RED}": (12, 2),
    f"or: [{{weight: {{lt: 4}}}}, {{{RED}}}]": (108, 22),
    'children: {none: {color: {eq: "red"}}}': (120, 30),
    "children: {some: {}}": (0, 40),
    "children: {none: {}, level: NOTE}": (0, 50),
    f"weight: {{gt: 39}}, {RED}": (0, 0),
    'weight: {lt: 4}, children: {none: {name: {eq: "no"}}, some: {price: {gt: 11}}}': (12, 3),
}


async def test_only_children_are_read_that_decide_if_a_node_is_in_the_list(store):
    await plant(store, Shelf, WARES)
    asked = Client(store, Shelf)
    plain = await asked.ask('{ room(path: "r") { children { nodes { path } } } }')
    for where, (items, nodes) in READ.items():
        reply = await asked.ask(f'{{ room(path: "r") {{ children(where: {{{where}}}) {{ nodes {{ path }} }} }} }}')
        assert not reply.errors, (where, reply.errors)
        assert (reply.items - plain.items, len(reply.data["room"]["children"]["nodes"])) == (items, nodes), where
        assert (reply.requests - plain.requests, reply.rounds - plain.rounds) == ((1, 1) if items else (0, 0)), where


@pytest.mark.parametrize("levels", ["[ROOM, WARE, KIND, NOTE]", "[WARE, KIND]", "KIND"])
@pytest.mark.parametrize("field", ["POSITION", "KEY", "PATH", "WEIGHT"])
async def test_a_list_of_no_depth_is_empty_in_every_order(store, levels, field):
    await plant(store, Shelf, WARES)
    given = f"maxDepth: 0, level: {levels}, orderBy: {{field: {field}}}"
    reply = await Client(store, Shelf).ask(f'{{ room(path: "r") {{ it: descendants({given}) {{ totalCount }} }} }}')
    assert not reply.errors, reply.errors
    assert reply.data["room"]["it"] == {"totalCount": 0}


async def test_further_pages_and_facets_read_the_version_of_the_tree_alone(store):
    await plant(store, Shelf, WARES)
    asked = Client(store, Shelf, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    query = """{ room(path: "r") { it: %s {
      nodes { path } totalCount pageInfo { endCursor } facets(fields: [PRICE]) { minimum }
    } } }"""
    for listing in (
        f"children(where: {{{RED}}}, orderBy: {{field: PRICE}}, first: 2%s)",
        f"descendants(level: WARE, where: {{{RED}}}, orderBy: {{field: POSITION}}, first: 2%s)",
        "descendants(level: KIND, orderBy: [{field: WEIGHT}, {field: POSITION, direction: DESC}], first: 2%s)",
    ):
        for _ in range(2):  # the version is settled
            cursor = (await asked.ask(query % listing % "")).data["room"]["it"]["pageInfo"]["endCursor"]
        reply = await asked.ask(query % listing % f', after: "{cursor}"')
        assert not reply.errors, reply.errors
        expected = (0, 0) if isinstance(store, SQLiteStore) else (1, 1.0)
        assert (reply.requests, reply.units) == expected, listing


async def test_the_children_of_nested_lists_are_read_together(store):
    """Fifty lists below those of one list, and the prices from which wares are sold."""
    rows: list[Any] = [(("r",), "ROOM"), *[(("r", f"s{n:02}"), "ROOM") for n in range(50)]]
    rows += [((*room, f"w{n}"), "WARE", "W", {"price": n}) for room, _ in rows[1:] for n in range(4)]
    rows += [((*row[0], f"k{n}"), "KIND", "K", {"price": n + 2}) for row in rows if row[1] == "WARE" for n in range(2)]
    await plant(store, Shelf, rows)
    asked = Client(store, Shelf)
    query = '{ room(path: "r") { children { nodes { children%s { totalCount nodes { path %s } } } } } }'
    plain, deep = await asked.ask(query % ("", "")), await asked.ask(query % ("", "children { nodes { path } }"))
    reply = await asked.ask(query % ("(where: {children: {some: {price: {gte: 3}}}, price: {lt: 2}})", ""))
    assert [one["children"]["totalCount"] for one in reply.data["room"]["children"]["nodes"]] == [2] * 50
    assert (reply.rounds, reply.requests) == (plain.rounds + 1, plain.requests + 1)
    prices = await asked.ask(query % ("", "children(first: 0) { facets(fields: [PRICE]) { minimum } }"))
    assert prices.data["room"]["children"]["nodes"][7]["children"]["nodes"][1]["children"]["facets"] == [
        {"minimum": "2"}
    ]
    assert (prices.rounds, prices.requests, prices.items) == (deep.rounds, deep.requests, deep.items)


async def test_nodes_in_between_are_read_with_a_list_in_position_order_or_by_key_where_they_are_few(store):
    rows: list[Any] = [(("r",), "ROOM"), *[(("r", f"s{n:03}"), "ROOM") for n in range(300)]]
    rows += [(("r", f"s{n:03}", f"w{n}"), "WARE") for n in range(3)]
    rows += [(("r", f"s{n:03}", f"n{note}"), "NOTE") for n in range(300) for note in range(2)]
    await plant(store, Shelf, rows)
    asked = Client(store, Shelf)
    for level, more in {"WARE": (1, 1, 3), "NOTE": (2, 0, 303)}.items():
        query = f'{{ room(path: "r") {{ descendants(level: {level}, first: 5%s) {{ nodes {{ path }} }} }} }}'
        plain = await asked.ask(query % ", orderBy: {field: NAME}")
        reply = await asked.ask(query % ", orderBy: {field: POSITION}")
        assert not reply.errors
        found = tuple(getattr(reply, one) - getattr(plain, one) for one in ("requests", "rounds", "items"))
        assert found == more, level
    listed = "shelves(level: NOTE, orderBy: {field: %s}, first: 5) { nodes { path } }"
    plain, reply = [await asked.ask(f"{{ {listed % field} }}") for field in ("NAME", "POSITION")]
    assert (reply.requests - plain.requests, reply.items - plain.items) == (2, 303)


async def test_children_count_as_compared_nodes_and_are_refused_before_they_are_read(store):
    await plant(store, Shelf, WARES)
    query = f'{{ room(path: "r") {{ children(where: {{{RED}}}) {{ totalCount }} }} }}'
    for units, is_met in ((9.0, True), (8.0, False)):
        reply = await Client(store, Shelf, budget=BudgetLimits(read_units=units)).ask(query)
        assert bool(reply.errors) is not is_met
    assert reply.errors[0]["extensions"]["code"] == "BUDGET_EXCEEDED"
    assert "The children of r/w00 and 39 other lists would be 120 nodes" in reply.errors[0]["message"]
    assert reply.items < 60


REFUSED = {
    "children: {}": "children in where has neither some nor none",
    "children: {some: {children: {some: {}}}}": "children inside of children",
    "children: {some: {not: {children: {none: {}}}}}": "children inside of children",
    "children: {some: null}": "some of children is null in where",
    "children: {some: {}, level: null}": "level of children is null in where",
    "children: {some: {}, level: []}": "level of children is empty in where",
    "not: {not: {not: {not: {children: {some: {}}}}}}": "where has more than 5 levels",
    f"children: {{some: {{or: [{', '.join(['{}'] * 50)}]}}}}": "where has more than 50 conditions",
    "children: {some: {color: {isNull: false}}}": "ROOM has no children with color",
    "children: {some: {}, level: KIND}": "ROOM has no children of such levels",
}


async def test_conditions_that_no_list_has_are_refused_before_anything_is_read(store):
    asked = Client(store, Shelf)
    for where, message in REFUSED.items():
        reply = await asked.ask(f"{{ shelves(where: {{{where}}}) {{ totalCount }} }}")
        assert [message in error["message"] for error in reply.errors] == [True], (where, reply.errors)
        assert reply.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
        assert reply.requests == 0
    kinds = 'level: KIND, where: {children: {some: {color: {eq: "red"}}}}'
    (error,) = (await asked.ask(f"{{ shelves({kinds}) {{ totalCount }} }}")).errors
    assert "KIND has no children of such levels" in error["message"]


async def test_a_cursor_in_position_order_is_the_path_of_a_node_wherever_it_is_now(store):
    rows: list[Any] = [(("r",), "ROOM"), *[(("r", room), "ROOM") for room in "ab"]]
    rows += [(("r", room, ware), "WARE") for room in "ab" for ware in "xyz"]
    await plant(store, Shelf, rows)
    asked, hierarchy, writer = Client(store, Shelf), Shelf.definition(), Writer(store)
    listing = "descendants(orderBy: {field: POSITION}, level: WARE%s) { edges { cursor node { path } } }"
    query = f'{{ room(path: "r") {{ {listing} }} }}'

    async def edges(place: str = "") -> list[dict[str, Any]]:
        reply = await asked.ask(query % place)
        assert not reply.errors, reply.errors
        return [(one["node"]["path"][2:], one["cursor"]) for one in reply.data["room"]["descendants"]["edges"]]

    assert [path for path, _ in await edges()] == "a/x a/y a/z b/x b/y b/z".split()
    cursor = dict(await edges())["a/y"]
    await writer.write(reorder(hierarchy, ("r", "b"), Side.BEFORE, ("r", "a")), ReadUsage())
    await writer.write(reorder(hierarchy, ("r", "a", "y"), Side.LAST), ReadUsage())
    assert [path for path, _ in await edges()] == "b/x b/y b/z a/x a/z a/y".split()
    assert await edges(f', after: "{cursor}"') == []
    assert [path for path, _ in await edges(f', before: "{cursor}", last: 2')] == ["a/x", "a/z"]
    await writer.write(Move(hierarchy, ("r", "a", "y"), ("r", "b", "v")), ReadUsage())
    (error,) = (await asked.ask(query % f', after: "{cursor}"')).errors
    assert error["extensions"]["code"] == "BAD_CURSOR"
    assert "has moved, or is no longer in the list" in error["message"]


async def test_children_may_lie_near_a_point_and_what_is_near_comes_in_position_order(store):
    rows: list[Any] = [((country,), "COUNTRY") for country in "ab"]
    rows += [((country, state), "STATE") for country in "ab" for state in "xyz"]
    rows += [
        ((*path, f"c{n}"), "CITY", "C", {"latitude": float(10 * place + n), "longitude": 20.0})
        for place, (path, level) in enumerate(rows)
        for n in range(2)
        if level == "STATE"
    ]
    await plant(store, Location, rows)
    await Writer(store).write(reorder(Location.definition(), ("b", "y"), Side.FIRST), ReadUsage())
    near = "near: {latitude: %s, longitude: 20, kilometers: 150}"
    given = {
        f"level: STATE, where: {{children: {{some: {{{near % 31}}}}}}}": ["a/y"],
        f"level: CITY, where: {{or: [{{{near % 50.5}}}, {{{near % 60.5}}}]}}, orderBy: {{field: POSITION}}": [
            "b/y/c0", "b/y/c1", "b/x/c0", "b/x/c1"
        ],
        f"level: CITY, where: {{{near % 60.5}}}, orderBy: {{field: POSITION, direction: DESC}}": ["b/y/c1", "b/y/c0"],
    }  # fmt: skip
    for arguments, paths in given.items():
        reply = await Client(store, Location).ask(f"{{ locations({arguments}) {{ nodes {{ path }} }} }}")
        assert not reply.errors
        assert [node["path"] for node in reply.data["locations"]["nodes"]] == paths, arguments


async def test_a_count_that_fails_is_the_error_of_its_list_alone(store):
    await plant(store, Shelf, [(("r", *"abcd"[:depth]), "ROOM") for depth in range(5)])
    query = '{ room(path: "r") { name it: descendants(maxDepth: 2, first: 1) { totalCount } } }'
    assert (await Client(store, Shelf).ask(query)).data["room"]["it"] == {"totalCount": 2}

    async def fails() -> None:
        raise Unavailable("The store cannot count now.")

    reply = await Client(Interrupted(store, "count", before=once(1, fails)), Shelf).ask(query)
    assert reply.data == {"room": {"name": "r", "it": None}}
    assert [error["extensions"]["code"] for error in reply.errors] == ["UNAVAILABLE"]
