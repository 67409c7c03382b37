"""Invalid values: each is a clean error without internal details."""

import base64
import json
import re
from pathlib import Path

import httpx
import pytest

from store.model.keys import MAX_SEGMENTS
from tests.graph.small_app import MAX_BODY_BYTES, SmallStore, small_app
from tests.serving import serving

GRAPHQL = "application/graphql-response+json"
# What only the inside knows: Python's words, files, keys of the table.
INTERNAL = re.compile(
    r"Traceback|Error\(|site-packages|\bpk\b|\bsk\b|sqlite|\.py\b|<class|object at 0x|"
    + re.escape(str(Path(__file__).parents[2]))
)


@pytest.fixture(scope="module")
def client(demo_server):
    with httpx.Client(base_url=demo_server, timeout=60) as client:
        yield client


def send(client, query, variables=None):
    """The answer to a query, told with its reads, in which nothing internal stands."""
    return checked(client.post("/graphql", json={"query": query, "variables": variables}, headers=HEADERS))


HEADERS = {"accept": GRAPHQL, "clade-reads": "1", "content-type": "application/json"}


def checked(answer):
    assert answer.status_code < 500, answer.text
    assert not INTERNAL.search(answer.text), answer.text
    assert len(answer.content) < 30_000
    return answer.json()


def codes(body):
    return {error["extensions"]["code"] for error in body["errors"]}


LONG = "x" * 100_000
IDS = "query($i: [ID!]!) { nodes(ids: $i) { id } }"
TWICE = "query($i: [ID!]!) { a: nodes(ids: $i) { id } b: nodes(ids: $i) { id } }"
ENTITIES = "query($r: [_Any!]!) { _entities(representations: $r) { __typename } }"
BY_PATH = "query($p: [Path!]!) { locationsByPath(paths: $p) { id } }"
WHERE = "query($w: LocationCondition) { locations(where: $w) { totalCount } }"
ORDER = "query($o: [LocationOrderBy!]) { locations(orderBy: $o) { totalCount } }"
INVALID = "GRAPHQL_VALIDATION_FAILED"
PLACE = '{ city(path: "US/NE/Omaha") { %s } }'


PATH = "query($p: Path!) { location(path: $p) { id } }"
WRONG = "Variable '$%s' has invalid value%s: "


@pytest.mark.parametrize(
    ("query", "variables", "message"),
    [
        (PATH, {"p": ["US", None]}, WRONG % ("p", "") + "A Path is a string, such as US/NE/Omaha."),
        (PATH, {"p": None}, WRONG % ("p", "") + "Expected value of non-null type 'Path!' not to be null."),
        (PATH, {}, WRONG % ("p", "") + "Expected a value of non-null type 'Path!' to be provided."),
        (IDS, {"i": ["a", None]}, WRONG % ("i", " at [1]") + "Expected value of non-null type 'ID!' not to be null."),
        ("{ location(path: 5) { id } }", None, "A Path is a string, such as US/NE/Omaha."),
    ],
)
def test_a_value_of_a_wrong_type_is_an_error_with_its_variable(client, query, variables, message):
    (error,) = send(client, query, variables)["errors"]
    assert (error["message"], error["extensions"]["code"]) == (message, "BAD_USER_INPUT")


def nested(levels):
    """A condition of so many objects in each other."""
    return {"not": nested(levels - 1)} if levels > 1 else {}


@pytest.mark.parametrize(
    ("query", "variables", "code"),
    [
        (f'{{ city(path: "US/NE/{LONG}") {{ name }} }}', None, "BAD_PATH"),
        ("query($p: Path) { city(path: $p) { name } }", {"p": LONG}, "BAD_PATH"),
        ("{ city { name } }", None, "BAD_USER_INPUT"),
        ('{ city(path: "US", id: "location:1") { name } }', None, "BAD_USER_INPUT"),
        ("query($p: Path) { city(path: $p) { name } }", {"p": "x/" * 100_000}, "BAD_PATH"),
        ("query($p: Path) { city(path: $p) { name } }", {"p": "%" * 100_000}, "BAD_PATH"),
        ("query($p: Path) { city(path: $p) { name } }", {"p": "US/\0"}, "BAD_PATH"),
        ("query($p: Path) { city(path: $p) { name } }", {"p": "US/\u202e\u0007"}, "BAD_PATH"),
        (f"{{ {LONG} }}", None, INVALID),
        (PLACE % f"... on {LONG} {{ name }}", None, INVALID),
        (PLACE % f"childCount(level: {LONG})", None, INVALID),
        (f"query {LONG} {{ {' '.join(['city(path: $x) { name }'] * 20)} }}", None, INVALID),
        (PLACE % " ".join(f"nothing{number}" for number in range(1_500)), None, INVALID),
        (PLACE % f"name {'@nothing ' * 900}", None, INVALID),
        (PLACE % " ".join(f"a{n}: children(level: NO) {{ totalCount }}" for n in range(30)), None, INVALID),
        (PLACE % f"children(first: {'9' * 100_000}) {{ totalCount }}", None, INVALID),
        (PLACE % "children(first: 2147483648) { nodes { id } }", None, INVALID),
        (PLACE % "children(first: 1.5) { nodes { id } }", None, INVALID),
        ("query($f: Int) { countries: locations(first: $f) { totalCount } }", {"f": 1e300}, "BAD_USER_INPUT"),
        ("query($f: Int) { locations(first: $f) { totalCount } }", {"f": {"a": [None]}}, "BAD_USER_INPUT"),
        (IDS, {"i": ["x:1"] * 20_000}, "LIMIT_EXCEEDED"),
        (TWICE, {"i": ["x:1"] * 1_000}, "LIMIT_EXCEEDED"),
        (ENTITIES, {"r": [{}] * 2_000}, "LIMIT_EXCEEDED"),
        (BY_PATH, {"p": ["US"] * 9_000}, "LIMIT_EXCEEDED"),
        (WHERE, {"w": {"or": [{"key": {"eq": "x"}}] * 5_000}}, "LIMIT_EXCEEDED"),
        (WHERE, {"w": nested(300)}, "LIMIT_EXCEEDED"),
        (ORDER, {"o": [{"field": "NAME", "direction": "ASC"}] * 5_000}, "LIMIT_EXCEEDED"),
        (WHERE, {"w": {"key": {"in": [["x"] * 1_000] * 20}}}, "LIMIT_EXCEEDED"),
        ("{ a" + "{ a" * 10_000, None, "GRAPHQL_PARSE_FAILED"),
        ("{ a" + " a" * 10_000, None, "LIMIT_EXCEEDED"),
        ("{ a(b: " + "[" * 900 + "]" * 900 + ") }", None, "GRAPHQL_PARSE_FAILED"),
        ("{ a(b: " + "{a:" * 300 + "1" + "}" * 300 + ") }", None, "GRAPHQL_PARSE_FAILED"),
    ],
)  # fmt: skip
def test_an_excessive_value_is_rejected_before_any_read(client, query, variables, code):
    body = send(client, query, variables)
    assert codes(body) == {code}
    assert body.get("extensions", {}).get("reads", {}).get("requests", 0) == 0


def test_a_depth_of_billions_is_answered_as_that_of_the_deepest_path(client):
    found = 'descendants(maxDepth: $d, where: {key: {gte: "O"}}) { nodes { path } }'
    query = f'query($d: Int) {{ state(path: "US/NE") {{ {found} }} }}'
    deepest, billions = [send(client, query, {"d": depth})["data"] for depth in (MAX_SEGMENTS, 2**31 - 1)]
    assert billions == deepest
    assert {"path": "US/NE/Omaha"} in billions["state"]["descendants"]["nodes"]


def test_a_query_string_has_the_limit_of_a_body():
    with serving(small_app(SmallStore())) as url:
        answer = httpx.get(f"{url}/graphql?query={'x' * MAX_BODY_BYTES}", headers=HEADERS)
    assert answer.status_code == 414
    assert codes(checked(answer)) == {"BAD_REQUEST"}


# -- cursors and ids that were tampered with ---------------------------------------------------------------------------

LIST = 'query($after: String) { country(path: "US") { children(first: 2, after: $after) { pageInfo { endCursor } } } }'


def test_a_changed_cursor_is_rejected_or_is_a_position_in_the_same_list(client):
    cursor = send(client, LIST)["data"]["country"]["children"]["pageInfo"]["endCursor"]
    outcomes = set()
    for place in range(0, len(cursor), 3):
        for letter in "A_\0":
            body = send(client, LIST, {"after": cursor[:place] + letter + cursor[place + 1 :]})
            outcomes |= codes(body) if "errors" in body else {"page"}
    assert outcomes <= {"BAD_CURSOR", "page"}
    assert "BAD_CURSOR" in outcomes


@pytest.mark.parametrize(
    "cursor", ["", "AAAA", "\0", LONG, base64.b64encode(b"#NE#").decode(), base64.b64encode(b"\xff" * 99).decode()]
)
def test_a_made_up_cursor_is_rejected(client, cursor):
    assert codes(send(client, LIST, {"after": cursor})) == {"BAD_CURSOR"}


@pytest.mark.parametrize(
    "node_id",
    ["", ":", "location", "location:", "nothing:1", f"location:{LONG}", "location:#", "location:a:b", "location:\0",
     "id#location:1", "location#US", "category:../location:1", "location:' OR 1=1 --", "location:\U0010ffff"],
)  # fmt: skip
def test_a_made_up_id_finds_nothing(client, node_id):
    body = send(client, "query($id: ID!) { node(id: $id) { id } city(id: $id) { id } }", {"id": node_id})
    assert json.dumps(body["data"]) == '{"node": null, "city": null}'
