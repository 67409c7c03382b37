"""Documents that differ in the values written into them share what was parsed, and are answered as if they did not."""

import random
from typing import Any

import pytest
from graphql import GraphQLSyntaxError, Source, TokenKind
from graphql.language import Lexer

import graph.operation.prepared
from graph.operation.document import GraphQLRequest
from graph.operation.limits import DocumentLimits
from graph.operation.literals import MAX_CHARACTERS, scan
from graph.operation.prepared import Prepared, RequestCache
from graph.operation.selection import core_schema
from resolvers.access.callers import ANYONE
from store.connect import open_store
from store.engine import Store
from tests.model import Ground, Model
from tests.rights.asking import Server
from tests.schemas import schema_of
from tests.selection import examples

BELOW = "{ name children(first: 2) { nodes { path } } }"
MERGED = '{{ area(path: "{0}") {{ name }} area(path: "{1}") {{ key }} }}'
FRAGMENTS = (
    '{{ ...a ...b }} fragment a on Query {{ area(path: "{0}") {{ key }} }} '
    'fragment b on Query {{ area(path: "{0}") {{ name }} x: area(path: "{1}") {{ name }} }}'
)
LISTED = '{{ grounds(first: {0}, where: {{ name: {{ in: ["{1}", "N u"] }} }}) {{ totalCount nodes {{ path }} }} }}'
OPERATIONS = (
    'query A {{ area(path: "{0}") {{ ...b }} }} '
    "fragment b on Area {{ name children(first: {1}) {{ nodes {{ key }} }} }}"
)
CREATED = (
    'mutation {{ createGround(input: {{ key: "{0}", name: "{1}", attributes: {{ area: {{ note: "{2}" }} }} }}) '
    "{{ node {{ path name note }} userErrors {{ code message }} }} }}"
)
SHARED = {
    "paths": ['{ area(path: "t") { name } }', '{ area(path: "u") { name } }', '{ area(path: "none") { name } }'],
    "errors": [
        f'{{\n  a: area(path: "t") {{ name }} b: plot(path: "t/a") {BELOW} }}',
        f'{{\n  a: area(path: "none") {{ name }} b: plot(path: "t") {BELOW} }}',
        f'{{\n  a: area(path: "t//a") {{ name }} b: plot(path: "") {BELOW} }}',
    ],
    "lines": [
        '{ a: area(path: """t""") { name } plot(path: "v") { name } }',
        '{ a: area(path: """\n\n   t/é\U0001f600\n""") { name } plot(path: "u") { name } }',
        '{ a: area(path: """t\r\n\\"""/""") { name } plot(path: "\\u0074") { name } }',
    ],
    "escapes": [
        '{ ground(path: "") { name } }',
        *[f'{{ ground(path: "{text}") {{ name }} }}' for text in
          ("\\u0074", "\\u{74}", "\\\\\\/\\b\\f\\n\\r\\t", "\\uD83D\\uDE00", 'a\\"', "# t", "t\t", "%", "\x7f", "é")],
    ],
    "ids": [f"{{ area(id: {one}) {{ name }} }}" for one in ('"ground:n0"', "7", "-0", f'"{"9" * 999}"', '"ground:n3"')],
    "numbers": [f'{{ area(path: "t") {{ children(first: {one}) {{ nodes {{ key }} }} }} }}' for one in
                ("1", "2", "0", "-0", "-1", "2147483647", "-2147483648")],
    "conditions": [LISTED.format(*one) for one in ((1, "N t"), (2, "N a"), (0, ""), (3, "# \\\""))],
    "equal": [MERGED.format("t", "t"), MERGED.format("u", "u")],
    "equal values": [MERGED.format("t", "\\u0074"), MERGED.format("\\u0075", "u")],
    "fragments": [FRAGMENTS.format("t", "u"), FRAGMENTS.format("u", "none")],
    "comments": ['{ # "t" 5 """\n area(path: "t") { name } }', '{ # "t" 5 """\n area(path: "u") { name } }'],
    "without blanks": ['{a1:area(path:"t"id:null){a2:children(last:null,first:1){nodes{key}}}}',
                       '{a1:area(path:"u"id:null){a2:children(last:null,first:2){nodes{key}}}}'],
    "inline": ['{ ... on Query { area(path: "t") { ... { name } } } }',
               '{ ... on Query { area(path: "u") { ... { name } } } }'],
    "scalars": ['{ ground(path: "t") { atRevision(n: 1) { name } } move(id: "ground:n0") { id } }',
                '{ ground(path: "u") { atRevision(n: 7) { name } } move(id: 12) { id } }'],
    "several operations": [OPERATIONS.format(*one) for one in (("t", 1), ("u", 2))],
    "one for a list": ['{ groundsByPath(paths: "t") { name } nodes(ids: ["a", "b"]) { id } }',
                       '{ groundsByPath(paths: "u") { name } nodes(ids: ["ground:n0", 4]) { id } }'],
    "mutations": [CREATED.format(*one) for one in
                  (("x", "X", "1"), ("y", "\\u00dc", "n"), ("t", "T", ""), ("", "v w", "v"))],
}  # fmt: skip
"""Of each the first is parsed, the others share what is made of it."""
APART = {
    "values that are invalid": [
        '{ area(path: "t") { children(first: 1) { nodes { key } } } }',
        *[f'{{ area(path: "t") {{ children(first: {one}) {{ nodes {{ key }} }} }} }}' for one in
          ('"1"', "2147483648", "-2147483649", "1.0", "1e400", "9" * 1_999)],
        '{ area(path: 5) { children(first: 1) { nodes { key } } } }',
    ],
    "syntax": ['{ area(path: "t") { name } }', *[f"{{ area(path: {one}) {{ name }} }}" for one in
               ('"t', '"\\x"', '"""t"', "01", "1a", "t-1", '"\n"', '"\\u12"', '"\ud800"', '"\\ud800"', '""""', "-")]],
    "equality": [MERGED.format("t", "t"), MERGED.format("t", "u")],
    "difference": [MERGED.replace("}} area", "}} b: area").format("t", "u"),
                   MERGED.replace("}} area", "}} b: area").format("t", "t")],
    "a block string": ['{ area(path: "t") { name } }', '{ area(path: """t""") { name } }'],
    "languages of a leaf": ['{ area(path: "t") { name(languages: "de") } }',
                            '{ area(path: "t") { name(languages: "en") } }'],
    "defaults": ['query($n: Int = 1) { area(path: "t") { children(first: $n) { nodes { key } } } }',
                 'query($n: Int = 2) { area(path: "t") { children(first: $n) { nodes { key } } } }'],
    "types": ['{ __type(name: "Area") { name } area(path: "t") { name } }',
              '{ __type(name: "Plot") { name } area(path: "t") { name } }'],
    "entities": ['{ _entities(representations: {__typename: "Area", path: "t"}) { __typename } }',
                 '{ _entities(representations: {__typename: "Area", path: "u"}) { __typename } }'],
    "length": [f'{{ area(path: "{"t" * n}") {{ name }} }}' for n in (1, MAX_CHARACTERS)],
}  # fmt: skip
"""Documents that may not share, with a template that others have made."""


@pytest.fixture
async def server(store: Store) -> Server:
    await planted(store)
    return Server(store, Ground)


async def planted(store: Store) -> None:
    nodes = {("t",): "AREA", ("u",): "AREA"} | {(root, key): "PLOT" for root in "tu" for key in "ab"}
    await Model("ground", nodes).plant(store)


async def answers(server: Server, query: str, variables: Any = None) -> bytes:
    return (await server.how(ANYONE, query, variables, allow_mutations=True))[1]


def prepared(requests: RequestCache, query: str) -> Prepared:
    return requests.prepare(GraphQLRequest(query))


def requests_of() -> RequestCache:
    return RequestCache(core_schema(schema_of(Ground)[0]), DocumentLimits())


@pytest.mark.parametrize("name", SHARED)
def test_documents_share_a_template_until_they_come_again(name):
    first, *others = SHARED[name]
    requests = requests_of()
    assert prepared(requests, first).lifted is None
    for query in others:
        assert prepared(requests, query).lifted is not None
        assert prepared(requests, query).lifted is None


@pytest.mark.parametrize("name", APART)
def test_documents_that_may_not_share_are_parsed(name):
    first, *others = APART[name]
    requests = requests_of()
    for query in (first, *others):
        assert prepared(requests, query).lifted is None


@pytest.mark.both_stores
@pytest.mark.parametrize("name", [*SHARED, *APART])
async def test_answers_are_those_of_documents_alone(name, store):
    """Bytes, and errors with their locations, of a document that follows others, and then of the document alone."""
    await planted(store)
    server, documents = Server(store, Ground), (SHARED | APART)[name]
    kept = [await answers(server, query) for query in (*documents, *documents)] if name != "mutations" else []
    alone = [await answers(Server(store, Ground), query) for query in documents] if name != "mutations" else []
    assert kept == alone * 2


async def test_mutations_write_what_they_write_alone(tmp_path):
    written = []
    for shares in (True, False):
        async with open_store(f"sqlite:///{tmp_path / str(shares)}.db") as store:
            await store.create()
            await planted(store)
            server = Server(store, Ground)
            written.append([
                await answers(server if shares else Server(store, Ground), query) for query in SHARED["mutations"]
            ])  # fmt: skip
    assert written[0] == written[1]


async def test_variables_beside_literals_are_those_of_the_request(server, store):
    query = 'query($n: Int!) {{ area(path: "{0}") {{ children(first: $n) {{ nodes {{ path }} }} }} }}'
    await answers(server, query.format("t"), {"n": 1})
    for values in ({"n": 1}, {"n": 2, "0": "t"}, {"n": -1}, {"n": "1"}, {}):
        name = f"u{len(values)}" if values == {} else "u"
        kept = await answers(server, query.format(name), values)
        assert kept == await answers(Server(store, Ground), query.format(name), values)


def test_six_hundred_documents_are_parsed_and_validated_once(monkeypatch):
    parsed: list[str] = []
    parse = graph.operation.prepared.parse_document
    monkeypatch.setattr(
        graph.operation.prepared, "parse_document", lambda *given: parsed.append(given[-1]) or parse(*given)
    )
    requests = requests_of()
    queries = [f'{{ area(path: "US/NE/{number}") {{ name ancestors {{ name }} }} }}' for number in range(600)]
    documents = {prepared(requests, query).document for query in queries}
    assert (parsed, len(documents)) == (queries[:1], 2)


def test_literals_count_beside_variables():
    requests = RequestCache(core_schema(schema_of(Ground)[0]), DocumentLimits(max_input_values=4))
    query = 'query($i: [ID!]!) {{ area(path: "{0}") {{ key }} nodes(ids: $i) {{ id }} }}'
    for text in ("t", "u"):
        found = requests.prepare(GraphQLRequest(query.format(text), {"i": ["a", "b", "c"]}))
        assert [error.message for error in found.errors] == [
            "The query has 5 input values in literals and variables; the limit is 4. Ask in several requests."
        ]


def test_a_template_goes_with_all_that_holds_it():
    """Also what was bound to requests, when other documents take its place."""
    requests = requests_of()
    sent = [f'{{ area(path: "{number}") {{ name }} }}'.encode() for number in range(3)]
    read = lambda one: GraphQLRequest(one.decode())  # noqa: E731 - one function reads all
    found = [requests.get(one, read) for one in sent]
    assert [one.lifted is not None for one in found] == [False, True, True]
    assert requests.get(sent[2], read) is found[2]
    for number in range(50):
        for _ in range(2):  # else it would not take the place of one that was used again
            prepared(requests, f"{{ a{number}: __typename }} # {'x' * 20_000}")
    assert (found[1].document.is_cached, found[1].document.holders) == (False, {})
    assert requests.get(sent[2], read) is not found[2]


def test_the_skeleton_leaves_out_exactly_the_literals_of_the_lexer():
    parts = [
        '"',
        '"""',
        "\\",
        "a",
        "1",
        "-",
        ".",
        "e",
        "0",
        "#",
        "\n",
        " ",
        "{",
        '"b"',
        '""',
        "_",
        "12",
        "\r",
        ",",
        "é",
    ]
    random_ = random.Random(4)  # noqa: S311 - for a test
    kinds = (TokenKind.STRING, TokenKind.BLOCK_STRING, TokenKind.INT, TokenKind.FLOAT)
    seen = 0
    for _ in range(examples(4_000, 200_000)):
        text = "".join(random_.choices(parts, k=random_.randint(1, 9)))
        found = scan(text)
        lexer, literals = Lexer(Source(text)), list[str]()
        try:
            while (token := lexer.advance()).kind is not TokenKind.EOF:
                literals += [text[token.start : token.end]] if token.kind in kinds else []
        except GraphQLSyntaxError:
            continue
        if found is not None and "-" not in text:  # behind a name a sign is left to the skeleton, with its number
            seen += 1
            assert list(found.literals) == literals
        elif found is not None:
            assert set(found.literals) <= set(literals)
    assert seen > 100
