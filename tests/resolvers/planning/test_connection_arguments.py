"""Connection arguments: valid, contradicting and out of range; cursors of this and of other lists."""

from base64 import urlsafe_b64encode

import pytest

from resolvers.planning.cursors import CursorKind, decode_cursor, encode_cursor
from store.engine.protocol import Store
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


async def children(client: Client, arguments: str, **variables: object) -> Reply:
    declared = "query ($text: String) " if variables else ""
    return await client.ask(
        f'{declared}{{ area(path: "r") {{ children({arguments}) '
        "{ nodes { key } pageInfo { hasNextPage hasPreviousPage } } } }",
        **variables,
    )


def codes(reply: Reply) -> list[str]:
    return [error["extensions"]["code"] for error in reply.errors]


def cursor(position: str, order: CursorKind = CursorKind.CHILDREN, owner: str = OWNER) -> str:
    return encode_cursor(order, owner, position)


@pytest.mark.parametrize(
    "arguments", ["first: -1", "last: -3", "first: 1, last: 1", 'first: -1, after: "x"', "first: 0, last: 0"]
)
async def test_contradicting_arguments_are_rejected_without_a_read(client, arguments):
    reply = await children(client, arguments)
    assert codes(reply) == ["BAD_USER_INPUT"]
    assert reply.data == {"area": {"children": None}}
    assert reply.witness.spans == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "no cursor!",
        "ü",
        "A" * 5_000,
        "\0",
        "\ud800",
        urlsafe_b64encode(b"c\xff\xfe\xfd").decode(),
        urlsafe_b64encode(b"c" + b"\0" * 6 + b"\xff\xff").decode(),
        cursor(""),
        cursor("AREA#a#", CursorKind.CHILDREN_BY_KEY),
        cursor("AREA#a#", owner="ground:another"),
        cursor("é" * 600),
    ],
)
async def test_an_invalid_cursor_is_rejected_without_a_read(client, text):
    reply = await children(client, "after: $text", text=text)
    assert codes(reply) == ["BAD_CURSOR"]
    assert reply.witness.spans == []


@pytest.mark.parametrize("position", ["\0", "AREA#\0", "AREA#a#\U0010ffff", "zzz", "A", "[", "é" * 500])
async def test_a_forged_position_shows_only_nodes_of_the_list(client, position):
    reply = await children(client, "after: $text", text=cursor(position))
    assert not reply.errors
    assert [one["key"] for one in reply.data["area"]["children"]["nodes"]] in (
        ["a", "b", "c", "é"],
        ["b", "c", "é"],
        [],
    )


@pytest.mark.parametrize(
    ("arguments", "keys", "has_next", "has_previous"),
    [
        ("first: 0", [], True, False),
        ("last: 0", [], False, True),
        ("first: 2", ["a", "b"], True, False),
        ("first: 4", ["a", "b", "c", "é"], False, False),
        ("last: 2", ["c", "é"], False, True),
        ("orderBy: {field: POSITION, direction: DESC}", ["é", "c", "b", "a"], False, False),
        ("first: 1, orderBy: {field: POSITION, direction: DESC}", ["é"], True, False),
        ("last: 1, orderBy: {field: POSITION, direction: DESC}", ["a"], False, True),
        ('first: 9, after: "{b}"', ["c", "é"], False, True),
        ('first: 1, before: "{c}"', ["a"], True, False),
        ('last: 1, before: "{c}"', ["b"], True, True),
        ('last: 9, after: "{b}"', ["c", "é"], False, True),
        ('orderBy: {field: POSITION, direction: DESC}, before: "{b}"', ["é", "c"], True, False),
        ('orderBy: {field: POSITION, direction: DESC}, after: "{b}", first: 1', ["a"], False, True),
        ('first: 0, after: "{b}"', [], True, True),
        ('after: "{c}", before: "{b}"', [], True, True),
        ('where: {key: {gte: "b", lt: "b"}}', [], False, False),
        ('where: {key: {gte: "c", lt: "a"}}', [], False, False),
        ('where: {key: {gte: "b"}}', ["b", "c", "é"], False, False),
        ('where: {key: {gte: "e\\u0301"}}', ["é"], False, False),
    ],
)
async def test_a_page_has_the_nodes_of_its_arguments(client, arguments, keys, has_next, has_previous):
    for key in "abc":
        arguments = arguments.replace("{" + key + "}", cursor(f"AREA#{key}#"))
    reply = await children(client, arguments)
    assert not reply.errors
    page = reply.data["area"]["children"]
    assert [one["key"] for one in page["nodes"]] == keys
    assert (page["pageInfo"]["hasNextPage"], page["pageInfo"]["hasPreviousPage"]) == (has_next, has_previous)


@pytest.mark.parametrize("bound", ["", "\0", "a\x7f", "\ud800", "é" * 5_000])
async def test_a_bound_that_no_key_can_be_is_rejected(client, bound):
    reply = await children(client, "where: {key: {lt: $text}}", text=bound)
    assert len(reply.errors) == 1
    assert codes(reply)[0] in ("BAD_USER_INPUT", "BAD_PATH")
    assert reply.data == {"area": {"children": None}}


@pytest.mark.parametrize("node_id", ["ground:\ud800", "ground:" + "x" * 200, "ground:\0", "ground:", ":", ""])
async def test_an_impossible_id_finds_no_node(client, node_id):
    reply = await client.ask(
        "query ($id: ID!) { node(id: $id) { id } area(id: $id) { id } nodes(ids: [$id]) { id } }", id=node_id
    )
    assert reply.data == {"node": None, "area": None, "nodes": [None]}
    assert not reply.errors


async def test_a_cursor_is_valid_with_another_level_filter(client):
    reply = await children(client, f'level: AREA, after: "{cursor("AREA#a#")}", first: 1')
    assert [one["key"] for one in reply.data["area"]["children"]["nodes"]] == ["b"]


def test_a_cursor_does_not_contain_the_path_of_its_owner():
    made = encode_cursor(CursorKind.CHILDREN, "ground:secret-owner", "AREA#a#")
    assert decode_cursor(made, CursorKind.CHILDREN, "ground:secret-owner") == "AREA#a#"
    with pytest.raises(BadCursor, match="another list"):
        decode_cursor(made, CursorKind.CHILDREN, "ground:other")


@pytest.mark.parametrize("text", ["", "x", "ünicode", encode_cursor(CursorKind.CHILDREN, "ground:a", "")])
def test_what_is_no_cursor_is_refused_as_such(text):
    with pytest.raises(BadCursor, match=r"is not a cursor; use one from an earlier response"):
        decode_cursor(text, CursorKind.CHILDREN, "ground:a")
