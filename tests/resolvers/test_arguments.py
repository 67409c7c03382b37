"""Connection arguments: valid, contradicting and out of range; cursors of this and of other lists."""

from base64 import urlsafe_b64encode

import pytest

from resolvers.lists.arguments import CursorKind, decode_cursor, encode_cursor
from store.engine import Store
from store.errors import BadCursor
from tests.model import Ground, Model
from tests.systems.asking import Client, Reply

NODES = (
    {("r",): "AREA"} | {("r", key): "AREA" for key in ("a", "b", "c", "é")} | {("r", "a", "p"): "PLOT", ("s",): "AREA"}
)
MODEL = Model("ground", NODES)
OWNER = MODEL.nodes["r",].id


@pytest.fixture
async def client(store: Store) -> Client:
    await MODEL.plant(store)
    return Client(store, Ground)


async def children(client: Client, arguments: str, text: str = "") -> Reply:
    head, variables = ("query ($text: String) ", {"text": text}) if "$text" in arguments else ("", {})
    selected = "nodes { key } pageInfo { hasNextPage hasPreviousPage }"
    return await client.ask(f'{head}{{ area(path: "r") {{ children({arguments}) {{ {selected} }} }} }}', **variables)


def cursor(position: str, order: CursorKind = CursorKind.CHILDREN, owner: str = OWNER) -> str:
    return encode_cursor(order, owner, position)


CONTRADICTING = ["first: -1", "last: -3", "first: 1, last: 1", 'first: -1, after: "x"', "first: 0, last: 0"]
INVALID_CURSORS = [
    "x", "no cursor!", "ü", "A" * 5_000, "\0", "\ud800",
    *[urlsafe_b64encode(b"c" + some).decode() for some in (b"\xff\xfe\xfd", b"\0" * 6 + b"\xff\xff")],
    cursor(""), cursor("AREA#a#", CursorKind.CHILDREN_BY_KEY), cursor("AREA#a#", owner="ground:another"),
    cursor("é" * 600),
]  # fmt: skip
IMPOSSIBLE_KEYS = ["", "\0", "a\x7f", "\ud800", "é" * 5_000]


REJECTED = [
    *[(arguments, "", "BAD_USER_INPUT") for arguments in CONTRADICTING],
    *[("after: $text", text, "BAD_CURSOR") for text in INVALID_CURSORS],
    *[("where: {key: {lt: $text}}", text, "BAD_USER_INPUT") for text in IMPOSSIBLE_KEYS],
]


async def test_invalid_arguments_are_rejected_without_a_read(client):
    for arguments, text, code in REJECTED:
        reply = await children(client, arguments, text)
        assert [error["extensions"]["code"] for error in reply.errors] == [code], (arguments, text)
        assert reply.data == {"area": {"children": None}}
        assert reply.witness.spans == []


EMPTY = """query ($text: String) {
  grounds(PAGE) { totalCount }
  area(path: "r") {
    children(PAGE) { totalCount } descendants(PAGE, orderBy: { field: NAME }) { totalCount }
    HISTORY
  } CHANGES
}"""
HISTORY = "history(after: $text) { totalCount }"
CHANGES = 'changes(hierarchy: GROUND, tree: "r", after: $text) { cursor }'


@pytest.mark.parametrize(("name", "page"), [("after", "first"), ("before", "last")])
async def test_an_empty_cursor_is_rejected_with_the_way_out(client, name, page):
    forwards = name == "after"
    query = EMPTY.replace("HISTORY", HISTORY * forwards).replace("CHANGES", CHANGES * forwards)
    reply = await client.ask(query.replace("PAGE", f"{name}: $text"), text="")
    sentence = f"{name} is empty, which no cursor is; omit {name} for the {page} page."
    rejected = {"/".join(error["path"]): (error["message"], error["extensions"]["code"]) for error in reply.errors}
    fields = [
        "grounds",
        *[f"area/{field}" for field in ("children", "descendants", *["history"] * forwards)],
        *["changes"] * forwards,
    ]
    assert rejected == dict.fromkeys(fields, (sentence, "BAD_CURSOR"))


async def test_a_forged_position_shows_only_nodes_of_the_list(client):
    for position in ("\0", "AREA#\0", "AREA#a#\U0010ffff", "zzz", "A", "[", "é" * 500):
        reply = await children(client, "after: $text", cursor(position))
        keys = [one["key"] for one in reply.data["area"]["children"]["nodes"]]
        assert keys in (["a", "b", "c", "é"], ["b", "c", "é"], [])


PAGES = [  # the arguments, the keys of the page, and whether there is a next page and a previous one
    ("first: 0", [], True, False),
    ("last: 0", [], False, True),
    ('first: 9, after: "{b}"', ["c", "é"], False, True),
    ('first: 1, before: "{c}"', ["a"], True, False),
    ('orderBy: {field: POSITION, direction: DESC}, before: "{b}"', ["é", "c"], True, False),
    ('orderBy: {field: POSITION, direction: DESC}, after: "{b}", first: 1', ["a"], False, True),
    ('first: 0, after: "{b}"', [], True, True),
    ('after: "{c}", before: "{b}"', [], True, True),
    ('level: AREA, after: "{a}", first: 1', ["b"], True, True),
    ('where: {key: {gte: "b", lt: "b"}}', [], False, False),
    ('where: {key: {gte: "c", lt: "a"}}', [], False, False),
    ('where: {key: {gte: "e\\u0301"}}', ["é"], False, False),
]


async def test_a_page_has_the_nodes_of_its_arguments(client):
    for arguments, keys, has_next, has_previous in PAGES:
        for key in "abc":
            arguments = arguments.replace("{" + key + "}", cursor(f"AREA#{key}#"))
        reply = await children(client, arguments)
        assert not reply.errors
        page = reply.data["area"]["children"]
        assert [one["key"] for one in page["nodes"]] == keys, arguments
        assert (page["pageInfo"]["hasNextPage"], page["pageInfo"]["hasPreviousPage"]) == (has_next, has_previous)


async def test_impossible_ids_find_no_node(client):
    ids = ["ground:\ud800", "ground:" + "x" * 200, "ground:\0", "ground:", ":", ""]
    query = "query ($ids: [ID!]!, $id: ID!) { nodes(ids: $ids) { id } node(id: $id) { id } area(id: $id) { id } }"
    for node_id in ids:
        reply = await client.ask(query, ids=ids, id=node_id)
        assert reply.data == {"nodes": [None] * len(ids), "node": None, "area": None}
        assert not reply.errors


def test_a_cursor_does_not_contain_the_path_of_its_owner():
    made = encode_cursor(CursorKind.CHILDREN, "ground:secret-owner", "AREA#a#")
    assert decode_cursor(made, CursorKind.CHILDREN, "ground:secret-owner") == "AREA#a#"
    with pytest.raises(BadCursor, match="another list"):
        decode_cursor(made, CursorKind.CHILDREN, "ground:other")
    for text in ("", "x", "ünicode", encode_cursor(CursorKind.CHILDREN, "ground:a", "")):
        with pytest.raises(BadCursor, match=r"is not a cursor; use one from an earlier response"):
            decode_cursor(text, CursorKind.CHILDREN, "ground:a")
