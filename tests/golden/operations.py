"""Operations on the golden data: documents made of the schema, so that they ask for every field that there is.

Each node and each deleted node is asked for everything, each list is sorted and filtered by everything; former paths,
searches, feeds, entities and callers with keys come on top.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_required_argument,
)

from tests.golden.asking import Client
from tests.golden.seed import ONCE

CURSORS = frozenset(("edges", "cursor", "startCursor", "endCursor"))
"""Fields with cursors, whose bytes are not promised; what they lead to is asked for."""
LANGUAGES = '(languages: ["zh-TW", "la", "de", "en"])'
HIERARCHIES = {
    "PLACE": ("place", "places", "Place"),
    "THING": ("goldenThing", "goldenEverything", "GoldenThing"),
    "NOTE": ("note", "notes", "Note"),
}
"""By hierarchy: the field of one node, that of the roots, and the type."""
LARGEST = {"PLACE": ("XX", "DE"), "THING": ("Store",), "NOTE": ("B/3",)}
"""Nodes with descendants by hierarchy, whose lists are sorted and filtered."""
PAGE = "nodes { path } pageInfo { hasNextPage hasPreviousPage }"
CONDITIONS = {
    "PLACE": [
        '{name: {startsWith: "ł"}}', '{name: {contains: "o"}}', "{people: {gte: 3, lt: 8}}", "{people: {in: [1, 5]}}",
        "{not: {people: {isNull: true}}}", "{or: [{latitude: {lt: 0}}, {longitude: {lte: -3.5}}]}",
    ],
    "THING": [
        "{number: {lt: 0}}", "{serial: {gt: 9007199254740992}}", "{weight: {eq: 0.125}}", '{price: {lt: "0"}}',
        '{since: {gte: "9999-12-31"}}', '{checked: {lt: "2024-02-29T06:15:01Z"}}', "{grade: {in: [FIRST, THIRD]}}",
        "{printed: {eq: false}}", '{texts: {contains: "b"}}', "{numbers: {contains: 0}}", "{grades: {contains: FIRST}}",
    ],
    "NOTE": ["{level: {eq: PAGE}}"],
}  # fmt: skip
SEARCHES = [
    ("PLACE", 'text: "col"'), ("PLACE", 'text: "köln"'), ("PLACE", 'text: "bonn"'), ("PLACE", 'text: "ann"'),
    ("PLACE", 'text: "ки"'), ("PLACE", 'text: "東"'), ("PLACE", 'text: "izm"'), ("PLACE", 'text: "town", first: 3'),
    ("PLACE", 'text: "shop", under: "DE/Köln"'), ("PLACE", 'text: "ana", level: [SHOP]'),
    ("PLACE", 'text: "col", languages: ["it"]'), ("PLACE", 'text: "ehren"'), ("PLACE", 'text: "lug"'),
    ("THING", 'text: "київ", under: "Store"'), ("THING", 'text: "łódź", under: "Store"'),
    ("THING", 'text: "longest", under: "Store"'), ("THING", 'text: "d3", under: "Deep"'),
]  # fmt: skip
NEAR = [
    "latitude: 50.9375, longitude: 6.9603", "latitude: 50.9, longitude: 6.9, kilometers: 30, level: [SHOP]",
    "latitude: 0, longitude: -179.9, kilometers: 200", "latitude: 89.9, longitude: 3, kilometers: 100",
    'latitude: 50.9, longitude: 6.9, kilometers: 500, first: 100, under: "FR"',
]  # fmt: skip


@dataclass
class Operation:
    """A document with the variables and the name of the key that it is sent with."""

    query: str
    variables: dict[str, Any] = field(default_factory=dict)
    key: str | None = None


async def operations(schema: GraphQLSchema, client: Client) -> AsyncIterator[Operation]:
    """All operations; what they name is found out by asking."""
    for name, (one, roots, title) in HIERARCHIES.items():
        everything = selection(schema, schema.type_map[title])
        yield Operation(f"{{ {roots} {{ totalCount nodes {everything} }} }}")
        yield Operation(f"{{ {roots} {{ nodes {{ path descendants {{ totalCount nodes {everything} }} }} }} }}")
        for path in LARGEST[name]:
            for text in [*lists(schema, name), *await pages(client, one, path)]:
                yield Operation(f"query($path: Path!) {{ {one}(path: $path) {{ {text} }} }}", {"path": path})
        async for operation in of_the_past(schema, client, name):
            yield operation
    for operation in searches():
        yield operation
    for operation in of_callers():
        yield operation
    yield Operation(ONCE, key="editor")  # which is answered by the record of the first time


def lists(schema: GraphQLSchema, hierarchy: str) -> Iterator[str]:
    """Lists in every order, filtered by every attribute, and parts of them."""
    _, _, title = HIERARCHIES[hierarchy]
    orders, conditions = schema.type_map[f"{title}OrderField"], schema.type_map[f"{title}Condition"]
    assert isinstance(orders, GraphQLEnumType)
    assert isinstance(conditions, GraphQLInputObjectType)
    for order in orders.values:
        for direction in ("ASC", "DESC"):
            arguments = f"orderBy: [{{field: {order}, direction: {direction}}}]"
            yield f"descendants({arguments}) {{ {PAGE} }}"
    for name, condition in conditions.fields.items():
        if "isNull" in getattr(get_named_type(condition.type), "fields", {}):
            yield f"descendants(where: {{{name}: {{isNull: false}}}}) {{ totalCount {PAGE} }}"
    for where in CONDITIONS[hierarchy]:
        yield f"descendants(where: {where}) {{ totalCount {PAGE} }}"
    yield f"descendants(maxDepth: 1, first: 2) {{ totalCount {PAGE} }}"
    yield f"children(last: 2) {{ totalCount {PAGE} }}"
    levels = schema.type_map[f"{title}Level"]
    assert isinstance(levels, GraphQLEnumType)
    for level in levels.values:
        yield f"descendants(level: {level}) {{ totalCount {PAGE} }}"


async def pages(client: Client, one: str, path: str) -> list[str]:
    """The pages after and before a cursor, of each list in each way that has cursors of its own."""
    found = []
    for name, order in [("children", ""), ("descendants", ""), ("descendants", "orderBy: [{field: NAME}], ")]:
        page = f"{name}({order}first: 2) {{ pageInfo {{ endCursor }} }}"
        reply = await client.ask(f"query($path: Path!) {{ {one}(path: $path) {{ {page} }} }}", {"path": path})
        cursor = reply["data"][one][name]["pageInfo"]["endCursor"]
        found += [f'{name}({order}first: 2, after: "{cursor}") {{ {PAGE} }}']
        found += [f'{name}({order}last: 1, before: "{cursor}") {{ {PAGE} }}']
    return found


async def of_the_past(schema: GraphQLSchema, client: Client, hierarchy: str) -> AsyncIterator[Operation]:
    """Changes of each tree, whole and after a cursor, and everything that they name: paths, nodes, deleted nodes."""
    one, roots, title = HIERARCHIES[hierarchy]
    query, change = schema.type_map["Query"], schema.type_map["TreeChangeFeed"]
    assert isinstance(query, GraphQLObjectType)
    after = "after" if "after" in query.fields["changes"].args else "since"
    feed = "query($tree: Path!) {{ changes(hierarchy: {}, tree: $tree{}) {} }}"
    paths, moved, changed, deleted = {"No/Such/Node"}, set(), set(), set()
    trees = [
        root["path"] for root in (await client.ask(f"{{ {roots} {{ nodes {{ path }} }} }}"))["data"][roots]["nodes"]
    ]
    for tree in trees:
        found = await client.ask(
            feed.format(hierarchy, "", "{ cursor changes { event nodeId path from to } }"), {"tree": tree}
        )
        changes = found["data"]["changes"]
        paths |= {path for one in changes["changes"] for path in (one["path"], one["from"], one["to"]) if path}
        for event, nodes in (("MOVED", moved), ("UPDATED", changed), ("DELETED", deleted)):
            nodes |= {one["nodeId"] for one in changes["changes"] if one["event"] == event}
        yield Operation(feed.format(hierarchy, "", selection(schema, change)), {"tree": tree})
        cursor = f', {after}: "{changes["cursor"]}"'
        yield Operation(feed.format(hierarchy, cursor, "{ hasMore changes { nodeId } }"), {"tree": tree})
    for path in sorted(paths):
        yield Operation(f"query($path: Path!) {{ {one}(path: $path) {{ id path }} }}", {"path": path})
    yield Operation(f"query($paths: [Path!]!) {{ {roots}ByPath(paths: $paths) {{ id }} }}", {"paths": sorted(paths)})
    revision = next(iter(schema.type_map[title].fields["atRevision"].args))
    gone = schema.type_map["DeletedNode"]
    for node in sorted(changed | deleted):
        text = f"{one}(id: $id) {{ path atRevision({revision}: 1) {{ name revision }} }}"
        yield Operation(f"query($id: ID!) {{ {text} deletedNode(id: $id) {selection(schema, gone)} }}", {"id": node})
    nodes = sorted(moved | changed | deleted)
    yield Operation("query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }", {"ids": nodes})
    yield Operation(f"{{ moves(hierarchy: {hierarchy}) {selection(schema, schema.type_map['SubtreeMove'])} }}")
    entities = [{"__typename": title, "id": node} for node in sorted(moved)] + [{"__typename": title, "path": trees[0]}]
    document = (
        f"query($entities: [_Any!]!) {{ _entities(representations: $entities) {{ ... on {title} {{ id path }} }} }}"
    )
    yield Operation(document, {"entities": entities})


def searches() -> Iterator[Operation]:
    """Searches by words and near points."""
    for hierarchy, arguments in SEARCHES:
        _, roots, _ = HIERARCHIES[hierarchy]
        field_name = f"search{roots[0].upper()}{roots[1:]}"
        yield Operation(f"{{ {field_name}({arguments}) {{ complete nodes {{ path name }} }} }}")
    for arguments in NEAR:
        yield Operation(f"{{ placesNear({arguments}) {{ complete edges {{ kilometers node {{ path }} }} }} }}")


def of_callers() -> Iterator[Operation]:
    """What callers with keys see, who have a part of the data, or whose key is revoked."""
    for key in ("reader", "editor", "former"):
        yield Operation("{ places { nodes { path descendants { nodes { id path } } } } }", key=key)
        yield Operation(
            '{ goldenThing(path: "Store/Inner/most") { id ancestors { path } ... on GoldenSample { number } } }',
            key=key,
        )
        yield Operation('{ place(path: "FR") { id } note(path: "B") { id } }', key=key)
        yield Operation('{ searchPlaces(text: "bonn", under: "DE") { complete nodes { path } } }', key=key)


# -- selections --------------------------------------------------------------------------------------------------------


def selection(schema: GraphQLSchema, of: Any, without: frozenset[str] = frozenset()) -> str:
    """The selection set of all fields of a type, with those of nodes and of values below it."""
    return f"{{ __typename {' '.join(_fields(schema, of, without | CURSORS))} }}"


def _fields(schema: GraphQLSchema, of: Any, without: frozenset[str]) -> Iterator[str]:
    yield from _known(schema, of.fields, without)
    types = schema.get_possible_types(of) if is_abstract_type(of) else []
    for kind in types:
        own = {name: one for name, one in kind.fields.items() if name not in of.fields}
        clashing = {name for name, one in own.items() if len({*_types_of(name, types)}) > 1}
        texts = [*_known(schema, own, without | clashing)]
        texts += [
            f"{name}Of{kind.name}: {text}" for name in clashing for text in _known(schema, {name: own[name]}, without)
        ]
        if texts:
            yield f"... on {kind.name} {{ {' '.join(texts)} }}"


def _known(schema: GraphQLSchema, fields: dict[str, GraphQLField], without: frozenset[str]) -> Iterator[str]:
    for name, one in fields.items():
        if name not in without and (text := _field(schema, name, one, without)) is not None:
            yield text


def _types_of(name: str, types: Any) -> Iterator[str]:
    """The types of the field of this name."""
    return (str(one.type) for kind in types if (one := kind.fields.get(name)) is not None)


def _field(schema: GraphQLSchema, name: str, one: GraphQLField, without: frozenset[str]) -> str | None:
    """A field with its selection set; None for one with arguments that only a caller knows."""
    needed = {argument for argument, given in one.args.items() if is_required_argument(given)}
    if needed - {"languages"}:
        return None
    arguments = LANGUAGES if needed else ""
    kind = get_named_type(one.type)
    if is_leaf_type(kind):
        return f"{name}{arguments}"
    assert isinstance(kind, GraphQLObjectType | GraphQLInterfaceType)
    if "Node" in {interface.name for interface in kind.interfaces}:
        return f"{name}{arguments} {{ path }}"
    return f"{name}{arguments} {selection(schema, kind, without)}"
