"""Lists sorted and filtered by values of every kind: their nodes, their pages, and what callers see of them."""

from enum import Enum

import pytest

import graph.hierarchies.attribute as values
from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from resolvers.sorting.ordering import OrderField
from resolvers.sorting.values import NodeValue
from store.model.attributes import Kind
from tests.rights.asking import Server, caller
from tests.systems.asking import Client, plant


class Size(Enum):
    """Its members are not in the order of their names."""

    SMALL = "s"
    MEDIUM = "m"
    LARGE = "l"


class Thing(Node, hierarchy="thing", many="things"):
    """A thing with attributes of all kinds."""

    label: str | None = attribute("A text.")
    pieces: int | None = attribute("A small number.")
    grams: values.Long | None = attribute("A large number.")
    ratio: float | None = attribute("A fraction.")
    price: values.Decimal | None = attribute("A decimal.")
    made_on: values.Date | None = attribute("A date.")
    sold_at: values.DateTime | None = attribute("A time.")
    is_new: bool | None = attribute("A boolean.")
    size: Size | None = attribute("An enum.")
    words: list[str] | None = attribute("Texts.")


class Box(Thing, under=[None, "self"]):
    """A box of boxes and items."""


class Item(Thing, under=[Box]):
    """An item."""


LONG = "long " * 20  # as many characters as are sorted by
BOX = [
    (("x",), "BOX", "X", {"pieces": 5}),
    (("x", "a"), "ITEM", "Zoe", {
        "label": "ß", "pieces": -2, "grams": -(2**60), "ratio": 1e20, "price": "10", "made_on": "2026-01-01",
        "sold_at": "2026-01-01T00:00:00.500000Z", "is_new": True, "size": "LARGE", "words": ["a"],
        "names": {"de": "Aachen"},
    }),
    (("x", "b"), "ITEM", "Évora", {
        "label": "SS", "pieces": 7, "grams": 2**53 + 1, "ratio": -1.5, "price": "2.00", "made_on": "1999-12-31",
        "sold_at": "2026-01-01T00:00:00Z", "is_new": False, "size": "SMALL", "words": ["á", "b"],
    }),
    (("x", "c"), "ITEM", "evora", {
        "label": "ﬁx", "pieces": 0, "grams": 2**53, "ratio": 0.25, "price": "9.99", "made_on": "2026-11-22",
        "sold_at": "2026-01-01T00:00:01Z", "is_new": False, "size": "MEDIUM", "words": [],
    }),
    (("x", "d"), "BOX", "中", {"label": f"{LONG}b", "pieces": 0, "price": "2"}),
    (("x", "d", "f"), "ITEM", "F", {"label": f"{LONG}a"}),
    (("x", "e"), "ITEM", "Łódź", {"names": {"fa": "کتاب\u200cخانهٔ ۲"}}),
    (("y",), "BOX", "Y", {"pieces": 1}),
]  # fmt: skip

SORTED = {  # the children of x, which are d, a, b, c and e by themselves: first by level, then by position
    "{field: LABEL}": "c d a b e",
    "{field: LABEL, direction: DESC}": "a b d c e",
    "{field: PIECES}": "a d c b e",
    "{field: PIECES, direction: DESC}": "b d c a e",
    "{field: GRAMS}": "a c b d e",
    "{field: RATIO, direction: DESC}": "a c b d e",
    "{field: PRICE}": "d b c a e",
    "{field: MADE_ON}": "b a c d e",
    "{field: SOLD_AT}": "b a c d e",
    "{field: SOLD_AT, direction: DESC}": "c a b d e",
    "{field: IS_NEW}": "b c a d e",
    "{field: IS_NEW, direction: DESC}": "a b c d e",
    "{field: SIZE}": "b c a d e",
    "{field: NAME}": "b c e a d",
    '{field: NAME, languages: ["de-AT"]}': "a b c e d",
    "{field: LEVEL, direction: DESC}": "a b c e d",
    "{field: CHILD_COUNT}": "a b c e d",
    "{field: CHILD_COUNT, direction: DESC}": "d a b c e",
    "[{field: IS_NEW}, {field: PRICE, direction: DESC}]": "c b a d e",
    "[{field: NAME}, {field: PIECES}]": "c b e a d",
    "[{field: PIECES}, {field: KEY, direction: DESC}]": "a d c b e",
    "[{field: IS_NEW, direction: DESC}, {field: KEY, direction: DESC}]": "a c b e d",
    "[{field: IS_NEW}, {field: POSITION, direction: DESC}]": "c b a e d",
    "{field: POSITION, direction: DESC}": "e c b a d",
    "{field: KEY, direction: DESC}": "e d c b a",
    "{field: PATH}": "a b c d e",
}
FILTERED = {
    'label: {eq: "ss"}': "", 'label: {eq: "ß"}': "a", 'label: {ne: "ß"}': "b c d e",
    'label: {in: ["ß", "SS"]}': "a b", "label: {in: []}": "", 'label: {lt: "SS"}': "c d",
    'label: {lte: "Ss"}': "a b c d",
    'label: {gt: "fix"}': "a b d", 'label: {gte: "FIX"}': "a b c d", 'label: {startsWith: "FI"}': "c",
    'label: {contains: "S"}': "a b", "label: {isNull: true}": "e", "label: {isNull: false}": "a b c d",
    "pieces: {gt: -2, lte: 0}": "c d", "pieces: {ne: 0}": "a b e",
    "grams: {eq: 9007199254740992}": "c", "grams: {gt: 9007199254740992}": "b", "ratio: {lt: 0.25}": "b",
    'price: {eq: "2.0"}': "b d", 'price: {ne: "2"}': "a c e", 'price: {in: ["2", "10.0"]}': "a b d",
    'price: {gt: "2"}': "a c", 'price: {gte: "2"}': "a b c d", 'madeOn: {lt: "2026-01-01"}': "b",
    'soldAt: {eq: "2026-01-01T00:00:00.5Z"}': "a", 'soldAt: {gt: "2026-01-01T00:00:00Z"}': "a c",
    'soldAt: {lt: "2026-01-01T00:00:00.50001Z"}': "a b",
    "isNew: {eq: false}": "b c", "isNew: {ne: true}": "b c d e", "isNew: {isNull: true}": "d e",
    "size: {eq: SMALL}": "b", "size: {in: [SMALL, LARGE]}": "a b", "size: {ne: LARGE}": "b c d e",
    'words: {contains: "a"}': "a", 'words: {contains: "á"}': "b", "words: {isNull: true}": "d e",
    "words: {isNull: false}": "a b c", "childCount: {gte: 1}": "d", "childCount: {eq: 0}": "a b c e",
    'updatedAt: {gt: "2000-01-01T00:00:00Z"}': "a b c d e", 'updatedAt: {lt: "2000-01-01T00:00:00Z"}': "",
    'name: {eq: "Évora"}': "b", 'name: {startsWith: "EVO"}': "b c", 'name: {eq: "Aachen", languages: ["de-AT"]}': "a",
    'name: {startsWith: "LOD"}': "e", 'name: {contains: "ł"}': "e", 'name: {gt: "lm", lt: "m"}': "e",
    'name: {contains: "ابخانه 2", languages: ["fa"]}': "e", 'name: {startsWith: "كت", languages: ["fa"]}': "e",
    'name: {eq: "Lodz"}': "", 'name: {ne: "Zoe", languages: ["de"]}': "a b c d e", 'key: {gte: "b", lt: "d"}': "b c",
    'key: {in: ["e", "a"]}': "a e",
    'path: {gt: "x/c"}': "d e", "and: []": "a b c d e", "or: []": "", "not: {}": "",
    "not: {isNew: {eq: false}}": "a d e", 'or: [{size: {eq: LARGE}}, {key: {gt: "c"}}]': "a d e",
    'and: [{isNew: {eq: false}}, {not: {key: {eq: "b"}}}]': "c", 'price: {lt: "9"}, size: {eq: SMALL}': "b",
}  # fmt: skip


async def keys(asked: Client, arguments: str, field: str = "children") -> str:
    reply = await asked.ask(f'{{ box(path: "x") {{ it: {field}{arguments} {{ totalCount nodes {{ key }} }} }} }}')
    assert not reply.errors, (arguments, reply.errors)
    found = reply.data["box"]["it"]
    assert found["totalCount"] == len(found["nodes"])
    return " ".join(node["key"] for node in found["nodes"])


async def test_nodes_are_in_the_order_of_their_values_and_those_without_a_value_come_last(store):
    await plant(store, Thing, BOX)
    asked = Client(store, Thing)
    assert {order: await keys(asked, f"(orderBy: {order})") for order in SORTED} == SORTED


async def test_a_filtered_list_has_the_nodes_that_meet_the_condition(store):
    await plant(store, Thing, BOX)
    asked = Client(store, Thing)
    given = {where: await keys(asked, f"(where: {{{where}}}, orderBy: {{field: KEY}})") for where in FILTERED}
    assert given == FILTERED
    assert await keys(asked, '(level: [ITEM], where: {key: {lt: "e"}}, orderBy: {field: PRICE})') == "b c a"
    long = '(where: {label: {startsWith: "LONG"}}, orderBy: {field: LABEL, direction: DESC})'
    assert await keys(asked, long, "descendants") == "d f", "texts are sorted by their first hundred characters"


def test_a_text_in_a_cursor_is_folded_again_since_folding_may_have_been_another_one() -> None:
    assert OrderField(NodeValue("name", Kind.TEXT)).checked("łódź" + "æ" * 100) == "lodz" + "ae" * 48


PARTS = ["read:thing/x/a", "read:thing/x/c", "read:thing/x/d/f", "read:thing/x/e", "read:thing/y/a", "read:thing/no"]
LISTED_IN_PART = {
    "": "x/a y/a x/c x/e x/d/f",
    "orderBy: {field: PRICE}": "x/c x/a y/a x/e x/d/f",
    "orderBy: {field: NAME, direction: DESC}": "x/a y/a x/e x/d/f x/c",
    "level: [ITEM, BOX]": "x/a x/c x/d/f x/e y/a",
    "level: ITEM, orderBy: {field: PATH, direction: DESC}": "y/a x/e x/d/f x/c x/a",
    "orderBy: {field: POSITION, direction: DESC}": "x/d/f x/e x/c y/a x/a",
    "orderBy: {field: KEY, direction: DESC}": "x/d/f x/e x/c y/a x/a",
    "orderBy: {field: PATH}": "x/a x/c x/d/f x/e y/a",
    'where: {key: {gt: "a", lt: "f"}}': "x/c x/e",
    'where: {path: {startsWith: "x/d"}}': "x/d/f",
    "where: {pieces: {eq: 5}}": "",
}


async def test_pages_of_what_callers_see_are_cuts_of_the_list_of_their_part(store):
    """Nothing above her grant roots is known, and those with one key have a place of their own each."""
    await plant(store, Thing, [*BOX, (("y", "a"), "ITEM", "Zoe", {"price": "10"})])
    server, who = Server(store, Thing), caller(*PARTS)
    for listing, paths in LISTED_IN_PART.items():
        for size, cursor, end in (("first", "after", "endCursor"), ("last", "before", "startCursor")):
            found: list[str] = []
            expected, place = paths.split(), ""
            while True:
                given = f"({', '.join(filter(None, (listing, f'{size}: 2', place)))})"
                told = "nodes { path } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
                page = (await server.data(who, f"{{ things{given} {{ {told} }} }}"))["things"]
                some = [node["path"] for node in page["nodes"]]
                found = [*found, *some] if size == "first" else [*some, *found]
                more = [page["pageInfo"][f"has{one}Page"] for one in ("Next", "Previous")]
                ahead, behind = more if size == "first" else more[::-1]
                assert (page["totalCount"], ahead, behind) == (
                    len(expected), len(found) < len(expected), bool(place)
                ), given  # fmt: skip
                if not ahead:
                    break
                place = f'{cursor}: "{page["pageInfo"][end]}"'
            assert found == expected, given
    above = '{ x: thing(path: "x") { key } a: thing(path: "y/a") { parent { path } } }'
    assert await server.data(who, above) == {"x": None, "a": {"parent": None}}


OTHERS = [
    "children(orderBy: {field: PRICE, direction: DESC}", 'children(where: {name: {ne: "x"}}, orderBy: {field: PRICE}',
    "children(orderBy: {field: RATIO}", "descendants(orderBy: {field: PRICE}", "children(first: 9",
]  # fmt: skip


async def test_a_cursor_is_of_one_order_and_condition(store):
    await plant(store, Thing, BOX)
    asked = Client(store, Thing)
    query = '{ box(path: "%s") { it: %s, after: "%s") { edges { cursor } } } }'
    own = "children(orderBy: {field: PRICE}"
    whole = await asked.ask(f'{{ box(path: "x") {{ it: {own}) {{ edges {{ cursor }} }} }} }}')
    cursor = whole.data["box"]["it"]["edges"][1]["cursor"]
    assert len((await asked.ask(query % ("x", own, cursor))).data["box"]["it"]["edges"]) == 3
    for path, listing in [*[("x", other) for other in OTHERS], ("x/d", own)]:
        (error,) = (await asked.ask(query % (path, listing, cursor))).errors
        assert (listing, error["extensions"]["code"]) == (listing, "BAD_CURSOR")


UNREAD = [
    "children(first: 1, %s) { facets(fields: [PRICE]) { minimum } }",
    "children(%s) { facets(fields: [SIZE]) { minimum } }",
    "children(%s, orderBy: {field: PRICE}) { nodes { key } }",
    "descendants(%s, orderBy: {field: POSITION}) { nodes { key } }",
    'children(%s, where: {name: {ne: "x"}}) { totalCount }',
]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # DynamoDB reads a list together with its node
@pytest.mark.parametrize("listing", UNREAD)
async def test_a_cursor_of_another_list_is_refused_before_anything_of_the_list_is_read(store, listing):
    await plant(store, Thing, BOX)
    asked = Client(store, Thing)
    roots = await asked.ask("{ things { edges { cursor } } }")
    paging = f'after: "{roots.data["things"]["edges"][0]["cursor"]}"'
    alone = await Client(store, Thing).ask('{ box(path: "x") { name } }')
    found = await Client(store, Thing).ask(f'{{ box(path: "x") {{ {listing % paging} }} }}')
    assert [error["extensions"]["code"] for error in found.errors] == ["BAD_CURSOR"]
    assert (found.items, found.requests) == (alone.items, alone.requests)
