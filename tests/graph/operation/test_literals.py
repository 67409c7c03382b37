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
AREA = "{{ area(path: {0}) {{ name }} }}"
MERGED = '{{ area(path: "{0}") {{ name }} area(path: "{1}") {{ key }} }}'
FRAGMENTS = (
    '{{ ...a ...b }} fragment a on Query {{ area(path: "{0}") {{ key }} }} '
    'fragment b on Query {{ area(path: "{0}") {{ name }} ... on Query {{ x: area(path: "{0}") {{ name }} }} }}'
)
LISTED = '{{ grounds(first: {0}, where: {{ name: {{ in: ["{1}", "N u"] }} }}) {{ totalCount nodes {{ path }} }} }}'
CREATED = (
    'mutation {{ createGround(input: {{ key: "{0}", name: "{1}", attributes: {{ area: {{ note: "{2}" }} }} }}) '
    "{{ node {{ path name note }} userErrors {{ code message }} }} }}"
)
CHILDREN = '{{ area(path: "t") {{ children(first: {0}) {{ nodes {{ key }} }} }} }}'
SHARED = {
    "paths": [AREA.format(one) for one in ('"t"', '"u"', '"none"', '"\\u0074"', '"a\\""', '"# t"', '"\x7f"', '"é"')],
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
    "ids": [f"{{ area(id: {one}) {{ name }} }}" for one in ('"ground:n0"', "7", "-0", f'"{"9" * 999}"', '"ground:n3"')],
    "numbers": [CHILDREN.format(one) for one in ("1", "2", "0", "-0", "-1", "2147483647", "-2147483648")],
    "conditions": [LISTED.format(*one) for one in ((1, "N t"), (2, "N a"), (0, ""), (3, "# \\\""))],
    "equal": [MERGED.format("t", "t"), MERGED.format("u", "u"), MERGED.format("\\u0074", "t")],
    "fragments": [FRAGMENTS.format("t"), FRAGMENTS.format("u")],
    "comments": ['{ # "t" 5 """\n area(path: "t") { name } }', '{ # "t" 5 """\n area(path: "u") { name } }'],
    "without blanks": ['{a1:area(path:"t"id:null){a2:children(last:null,first:1){nodes{key}}}}',
                       '{a1:area(path:"u"id:null){a2:children(last:null,first:2){nodes{key}}}}'],
    "one for a list": ['{ groundsByPath(paths: "t") { name } nodes(ids: ["a", "b"]) { id } }',
                       '{ groundsByPath(paths: "u") { name } nodes(ids: ["ground:n0", 4]) { id } }'],
    "mutations": [CREATED.format(*one) for one in
                  (("x", "X", "1"), ("y", "\\u00dc", "n"), ("t", "T", ""), ("", "v w", "v"))],
}  # fmt: skip
"""Of each the first is parsed, the others share what is made of it."""
APART = {
    "values that are invalid": [
        *[CHILDREN.format(one) for one in ("1", '"1"', "2147483648", "-2147483649", "1.0", "1e400", "9" * 1_999)],
        '{ area(path: 5) { children(first: 1) { nodes { key } } } }',
    ],
    "syntax": [AREA.format(one) for one in
               ('"t"', '"t', '"\\x"', '"""t"', "01", "1a", "t-1", '"\n"', '"\\u12"', '"\ud800"', '""""', "-")],
    "equality": [MERGED.format("t", "t"), MERGED.format("t", "u")],
    "difference": [MERGED.replace("}} area", "}} b: area").format("t", "u"),
                   MERGED.replace("}} area", "}} b: area").format("t", "t")],
    "a block string": [AREA.format('"t"'), AREA.format('"""t"""')],
    "languages of a leaf": ['{ area(path: "t") { name(languages: "de") } }',
                            '{ area(path: "t") { name(languages: "en") } }'],
    "defaults": ['query($n: Int = 1) { area(path: "t") { children(first: $n) { nodes { key } } } }',
                 'query($n: Int = 2) { area(path: "t") { children(first: $n) { nodes { key } } } }'],
    "types": ['{ __type(name: "Area") { name } area(path: "t") { name } }',
              '{ __type(name: "Plot") { name } area(path: "t") { name } }'],
    "entities": ['{ _entities(representations: {__typename: "Area", path: "t"}) { __typename } }',
                 '{ _entities(representations: {__typename: "Area", path: "u"}) { __typename } }'],
    "length": [AREA.format(f'"{"t" * n}"') for n in (1, MAX_CHARACTERS)],
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


def test_documents_share_a_template_until_they_come_again_unless_they_may_not():
    for first, *others in SHARED.values():
        requests = requests_of()
        assert prepared(requests, first).lifted is None
        for query in others:
            assert prepared(requests, query).lifted is not None
            assert prepared(requests, query).lifted is None
    for documents in APART.values():
        requests = requests_of()
        assert [prepared(requests, query).lifted for query in documents] == [None] * len(documents)


async def test_answers_are_those_of_documents_alone(server, store):
    """Bytes, and errors with their locations, of a document that follows others, and then of the document alone."""
    for name, documents in (SHARED | APART).items():
        if name != "mutations":
            server = Server(store, Ground)
            kept = [await answers(server, query) for query in (*documents, *documents)]
            assert kept == [await answers(Server(store, Ground), query) for query in documents] * 2, name


async def test_mutations_write_what_they_write_alone(tmp_path):
    written = []
    for shares in (True, False):
        async with open_store(f"sqlite:///{tmp_path / str(shares)}.db") as store:
            await store.create()
            await planted(store)
            shared, asked = Server(store, Ground), SHARED["mutations"]
            written.append([await answers(shared if shares else Server(store, Ground), query) for query in asked])
    assert written[0] == written[1]


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


def test_the_skeleton_leaves_out_exactly_the_literals_of_the_lexer():
    parts = ['"', '"""', "\\", *"a1-.e0#\n {", '"b"', '""', "_", "12", "\r", ",", "é"]
    random_ = random.Random(4)  # noqa: S311 - for a test
    kinds = (TokenKind.STRING, TokenKind.BLOCK_STRING, TokenKind.INT, TokenKind.FLOAT)
    seen = 0
    for _ in range(examples(2_000, 200_000)):
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
