"""Examples: requests that once stopped a server or took all of its memory, and others at the limits, by name."""

import json
from collections.abc import Iterator
from typing import Any

from bench.cost.meter import Sent
from bench.cost.nodes import COUNTRIES, DEEP, DEPTH, LARGE, LARGE_NODES, OLD, SCRATCH, WIDE
from bench.cost.values import ALTERNATING
from resolvers.window import Order, encode_cursor
from store.records import made_id

ALIASES, ENTITIES, IDS = 30, 190, 200
MARKS = ALTERNATING * 29_000
LONG = "a/" * 20_000
OUTSIDE = "!" * 40_000
TRUSTED = {
    "wide": "query($path: Path!) { location(path: $path) { descendants { nodes { id path name } } } }",
    "marks": "query($path: Path!) { location(path: $path) { isDescendantOf(path: $path) } }",
}


def examples() -> dict[str, Sent]:
    """All of them."""
    return dict((*_paths(), *_syntax())) | reading_examples()


def reading_examples() -> dict[str, Sent]:
    """Those that read, so that they cost more or less on one store than on another."""
    return dict((*_cursors(), *_walks(), *_answers(), *_counts(), *_writes(), *_errors()))


def location_id(*path: str) -> str:
    return f"location:{made_id('location', path)}"


def many(count: int, field: str, below: str = "") -> str:
    """A field under so many aliases."""
    return " ".join(f"a{number}: {field}{below}" for number in range(count))


def _paths() -> Iterator[tuple[str, Sent]]:
    """Texts whose normal form is dear, and long ones, wherever a path is taken."""
    by_path = "query($p: Path!) { location(path: $p) { id } }"
    yield "path of combining marks", Sent(by_path, {"p": MARKS})
    yield "path of one letter with combining marks", Sent(by_path, {"p": "a" + "\u0301" * 100_000})
    yield "path of many segments", Sent(by_path, {"p": LONG})
    yield "path of escapes", Sent(by_path, {"p": "%2F" * 60_000})
    yield "path of lone escapes", Sent(by_path, {"p": "%" * 200_000})
    yield "path of precomposed letters", Sent(by_path, {"p": "\uac01" * 80_000})
    yield "paths under aliases", Sent(f"query($p: Path!) {{ {many(20, 'location(path: $p)', ' { id }')} }}", {"p": LONG})
    entities = " ".join('{__typename: "City", path: $p}' for _ in range(ENTITIES))
    marks, long = MARKS[:10_500], LONG
    by_reference = f"query($p: String!) {{ _entities(representations: [{entities}]) {{ __typename }} }}"
    yield "entities of one path of marks", Sent(by_reference, {"p": marks})
    yield "entities of one long path", Sent(by_reference, {"p": long})
    whole = "query($r: _Any!) { _entities(representations: [%s]) { __typename } }" % " ".join(["$r"] * 900)
    yield "entities of one representation", Sent(whole, {"r": {"__typename": "City", "path": long}})
    every = [{"__typename": "City", "path": f"{WIDE}/S{number:04}"} for number in range(1_000)]
    entities_of = "query($r: [_Any!]!) { _entities(representations: $r) { ... on State { id ancestors { id } } } }"
    yield "a thousand entities", Sent(entities_of, {"r": [one | {"__typename": "State"} for one in every]})
    yield "a thousand entities of another level", Sent(entities_of, {"r": every})
    inside = "query($p: Path!) { location(path: %s) { descendants { nodes { isDescendantOf(path: $p) } } } }"
    yield "a path compared with every node", Sent(inside % json.dumps(WIDE), {"p": MARKS})
    yield "a long path compared with every node", Sent(inside % json.dumps(WIDE), {"p": LONG})
    changes = 'query($p: Path!) { changes(hierarchy: "location", tree: $p, under: $p) { cursor } }'
    yield "changes of a path of marks", Sent(changes, {"p": MARKS})
    mutation = "mutation($p: Path!) { moveLocation(path: $p, to: $p, dryRun: true) { plan { nodes } } }"
    yield "a move of a path of marks", Sent(mutation, {"p": MARKS})
    make = """mutation($k: String!) {
      createLocation(parent: "SCRATCH", key: $k, name: $k, id: "x", dryRun: true, attributes: {state: {code: $k}}) {
        plan { nodes } } }"""
    yield "a key of combining marks", Sent(make, {"k": MARKS})
    yield "a key of many letters", Sent(make, {"k": "x" * 200_000})


def _cursors() -> Iterator[tuple[str, Sent]]:
    """Texts that say where a list begins, once for each of many lists."""
    cursor = encode_cursor(Order.CHILDREN, location_id(WIDE), "S" * 22_000)
    below = many(ALIASES, "children(first: 1, after: $c)", " { totalCount }")
    lists = f'query($c: String!) {{ location(path: "{WIDE}") {{ children {{ nodes {{ {below} }} }} }} }}'
    yield "a long cursor for many lists", Sent(lists, {"c": cursor})
    yield "a cursor of wrong bytes for many lists", Sent(lists, {"c": "\u00e9" * 15_000})
    yield "a short cursor of another list for many lists", Sent(lists, {"c": cursor[:40]})
    fewer = lists.replace("children {", "children(first: 200) {")
    yield "a long cursor for fewer lists", Sent(fewer, {"c": cursor})
    for name, argument in (("from", "from: $t"), ("to", "to: $t"), ("from and to", "from: $t, to: $t")):
        ranges = many(ALIASES - 1, f"children({argument})", " { nodes { id } }")
        roots = f"query($t: String!) {{ locations(first: {COUNTRIES - 1}) {{ nodes {{ {ranges} }} }} }}"
        yield f"a long {name} for many lists", Sent(roots, {"t": OUTSIDE})
    roots = roots.replace("children(", "descendants(")
    yield "a range of combining marks for many lists", Sent(roots, {"t": MARKS})
    history = many(ALIASES, "history(first: 1, after: $c)", " { nodes { id } }")
    past = f'query($c: String!) {{ location(path: "{WIDE}") {{ children(first: 300) {{ nodes {{ {history} }} }} }} }}'
    yield "a long cursor for many histories", Sent(past, {"c": cursor})
    since = f'query($c: String!) {{ {many(20, _changes("since: $c"))} }}'
    yield "a long cursor for changes", Sent(since, {"c": cursor})


def _changes(argument: str) -> str:
    return f'changes(hierarchy: "location", tree: "{WIDE}", {argument}) {{ changes {{ path }} cursor }}'


def _walks() -> Iterator[tuple[str, Sent]]:
    """Ways that lead from every node to others, many times, by states of before as well."""
    leaves = "id path name level depth revision updatedAt changedAt"
    outer = f'{{ location(path: "{WIDE}") {{ %s }} }}'
    again = many(15, "descendants(first: 300)", f" {{ nodes {{ root {{ {leaves} }} }} }}")
    yield "roots of many nodes in an old state", Sent(outer % f"atRevision(n: 1) {{ {again} }}")
    whole = f"descendants {{ nodes {{ {leaves} }} }}"
    yield "all nodes below an old state", Sent(outer % f"atRevision(n: 1) {{ root {{ {whole} }} }}")
    old = many(ALIASES, "atRevision(n: 1)", f" {{ {leaves} parent {{ {leaves} }} root {{ {leaves} }} }}")
    yield "old states of many nodes", Sent(outer % f"descendants(first: 500) {{ nodes {{ {old} }} }}")
    rooted = "root { " * 12 + leaves + " }" * 12
    yield "roots of roots", Sent(outer % f"descendants {{ nodes {{ {rooted} }} }}")
    roots_of = many(ALIASES, "root", f" {{ {leaves} root {{ {leaves} root {{ {leaves} }} }} }}")
    yield "roots of every root", Sent(f"{{ locations {{ nodes {{ {roots_of} }} }} }}")
    yield "an old state in itself", Sent(outer % ("atRevision(n: 1) { " * 13 + leaves + " }" * 13))
    states = many(ALIASES, "atRevision(n: 1)", " { ...f } ")
    nested = f"atRevision(n: 1) {{ {states} }}"
    fragment = f" fragment f on Location {{ root {{ {whole} }} }}"
    yield "all nodes below many old states", Sent(outer % nested + fragment)
    repeated = " ".join(["descendants { nodes { " + leaves + " } }"] * 90)
    yield "one list many times", Sent(outer % repeated)
    chains = f'{{ categoryNode(path: "{DEEP}") {{ descendants {{ nodes {{ {leaves} ancestors {{ {leaves} }} }} }} }} }}'
    yield "ancestors of deep nodes", Sent(chains)
    up_and_down = "parent { children { nodes { " * 3 + leaves + " } } }" * 3
    deepest = "/".join([DEEP, *["c0"] * (DEPTH - 1)])
    yield "up and down", Sent(f'{{ categoryNode(path: "{deepest}") {{ {up_and_down} }} }}')
    yield "siblings of siblings", Sent(
        f'{{ location(path: "{WIDE}/S0000") {{ siblings(first: 3) {{ nodes {{ siblings {{ nodes {{ id }} }} }} }} }} }}'
    )
    yield "all nodes with all leaves", Sent(
        outer % "descendants { edges { cursor node { ...f } } }"
        + f" fragment f on Location {{ {leaves} changedBy key childCount descendantCount code population latitude"
        " longitude pathOf(level: COUNTRY) isDescendantOf(path: \"WIDE\") ... on City { timezone } }"
    )
    yield "all nodes with an error each", Sent(
        outer % "descendants { nodes { id pathOf(level: CITY) history(first: -1) { nodes { id } } } }"
    )
    yield "histories of many nodes", Sent(outer % "descendants(first: 900) { nodes { history { nodes { id } } } }")
    revised = f'{{ location(path: "{OLD}/revised") {{ {many(ALIASES, "history", " { nodes { name } }")} }} }}'
    yield "one long history many times", Sent(revised)


def _answers() -> Iterator[tuple[str, Sent]]:
    """Large texts, many times."""
    ids = [location_id(LARGE, f"L{number:02}") for number in range(LARGE_NODES)]
    nodes = f"query($ids: [ID!]!) {{ {many(20, 'nodes(ids: $ids)', ' { ... on Location { name } }')} }}"
    yield "one large node many times", Sent(nodes, {"ids": ids[:1] * IDS})
    yield "large nodes many times", Sent(nodes, {"ids": ids * 10})
    names = many(ALIASES, "name")
    yield "a large text under aliases", Sent(
        f'{{ location(path: "{LARGE}") {{ children {{ nodes {{ {names} }} }} descendants {{ nodes {{ name }} }} }} }}'
    )
    siblings = f"siblings {{ nodes {{ {names} }} }}"
    yield "large siblings of each other", Sent(
        f'{{ location(path: "{LARGE}") {{ children {{ nodes {{ name {siblings} }} }} }} }}'
    )
    entities = [{"__typename": "State", "id": ids[0]}] * 1_000
    yield "one large entity many times", Sent(
        "query($r: [_Any!]!) { _entities(representations: $r) { ... on State { name } } }", {"r": entities}
    )
    spread = "query($ids: [ID!]!) { nodes(ids: [%s]) { ... on Location { name } } }" % " ".join([f'"{ids[0]}"'] * 900)
    yield "one large id in many places", Sent(spread.replace("($ids: [ID!]!)", ""))
    misses = [f"location:{number}" for number in range(9_000)]
    yield "ids of no nodes", Sent("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": misses})


def _counts() -> Iterator[tuple[str, Sent]]:
    """Counts of ranges, and look-ups that find nothing: they return no nodes."""
    ranges = " ".join(
        f'a{number}: descendants(first: 0, from: "S{number:04}") {{ totalCount }}' for number in range(ALIASES)
    )
    yield "counts of many ranges", Sent(f'{{ location(path: "{WIDE}") {{ {ranges} }} }}')
    lists = f'{{ location(path: "{WIDE}") {{ children(first: 300) {{ nodes {{ {ranges.replace("S0", "T0")} }} }} }} }}'
    yield "counts of ranges of many nodes", Sent(lists)
    roots = ranges.replace("S0", "A0").replace("first: 0, ", "")
    yield "counts of ranges of many roots", Sent(f"{{ locations {{ nodes {{ {roots} }} }} }}")
    missing = many(20, f'location(path: "{OLD}/moved0/nothing/at/all")', " { id }")
    yield "old paths that lead nowhere", Sent(f"{{ {missing} }}")
    lost = [{"__typename": "City", "path": f"{OLD}/moved{number % 8}/{number}/a/b/c/d"} for number in range(1_000)]
    yield "many old paths", Sent("query($r: [_Any!]!) { _entities(representations: $r) { __typename } }", {"r": lost})
    feeds = many(20, _changes("under: \"WIDE/S0000\""))
    yield "changes many times", Sent(f"{{ {feeds} }}")


def _syntax() -> Iterator[tuple[str, Sent]]:
    """Documents that are dear to validate, and those that ask for the schema."""
    kinds = "kind name description fields(includeDeprecated: true) { name args { name type { name } } type { name } }"
    yield "the schema", Sent(f"{{ __schema {{ types {{ {kinds} interfaces {{ {kinds} }} possibleTypes {{ {kinds} }} }} }} }}")
    types = many(19, '__type(name: "Location")', f" {{ {kinds} possibleTypes {{ {kinds} }} }}")
    yield "a type many times", Sent(f"{{ {types} }}")
    yield "the subgraph's schema many times", Sent(f"{{ {' '.join(['_service { sdl }'] * 19)} }}")
    parents = " ".join(["parent { name id parent { name id } }"] * 100)
    yield "one field many times", Sent(f'{{ location(path: "{WIDE}") {{ {parents} }} }}')
    conflicts = " ".join(f'... on City {{ x{number}: pathOf(level: CITY) }}' for number in range(30))
    yield "fields in many fragments", Sent(f'{{ location(path: "{WIDE}") {{ {" ".join([conflicts])} }} }}')
    unknown = " ".join(f"nothing{number}" for number in range(1_500))
    yield "many unknown fields", Sent(f'{{ location(path: "{WIDE}") {{ {unknown} }} }}')
    yield "a long name", Sent("query " + "a" * 200_000 + " { locations { nodes { id } } }")
    yield "a long text", Sent('{ location(path: "' + "\\u0301" * 40_000 + '") { id } }')
    yield "a long number", Sent("{ locations(first: " + "9" * 200_000 + ") { totalCount } }")
    yield "deep braces", Sent("{ a " * 1_000)
    yield "deep lists", Sent("{ nodes(ids: " + "[" * 900 + "]" * 900 + ") { id } }")
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    yield "a deep variable", Sent("query($r: [_Any!]!) { _entities(representations: $r) { __typename } }", {"r": deep})
    yield "a trusted document", Sent(document_id="wide", variables={"path": WIDE})
    yield "a trusted document with combining marks", Sent(document_id="marks", variables={"path": MARKS})


def _writes() -> Iterator[tuple[str, Sent]]:
    """Dry runs, which read as much as a change does."""
    delete = f'deleteLocation(path: "{WIDE}", policy: CASCADE, dryRun: true) {{ plan {{ nodes writeUnits }} }}'
    yield "a dry run of a large deletion", Sent(f"mutation {{ {delete} }}")
    yield "many dry runs of a large deletion", Sent(f"mutation {{ {many(20, delete)} }}")
    move = f'moveLocation(path: "{WIDE}", to: "{SCRATCH}", dryRun: true) {{ plan {{ nodes writeUnits collisions }} }}'
    yield "many dry runs of a large move", Sent(f"mutation {{ {many(20, move)} }}")
    order = f'reorderLocation(path: "{WIDE}/S0000", last: true, dryRun: true) {{ plan {{ writeUnits }} }}'
    yield "many dry runs of an order among many", Sent(f"mutation {{ {many(20, order)} }}")
    text = "mutation($t: String!) { %s }"
    update = f'updateLocation(path: "{SCRATCH}/N0", name: $t, attributes: {{state: {{code: $t}}}}) {{ node {{ name }} }}'
    yield "an update by a long text", Sent(text % update, {"t": "x" * 200_000})
    yield "many updates by a long text", Sent(text % many(20, update), {"t": "\\" * 15_000})
    once = update.replace("name: $t", "name: \"n\", idempotencyKey: $t")
    yield "a long idempotency key", Sent(text % once, {"t": "k" * 200_000})


def _errors() -> Iterator[tuple[str, Sent]]:
    """Errors in every item of a list, at the end of a large answer, and in every argument."""
    outer = f'{{ location(path: "{WIDE}") {{ %s }} }}'
    yield "an error at the end of a large answer", Sent(
        f'{{ location(path: "{WIDE}") {{ descendants {{ nodes {{ id path name }} }} }} last: city(path: "{WIDE}") {{ id }} }}'
    )
    lists = many(ALIASES, "children(first: 1, last: 1)", " { nodes { id } }")
    yield "an error in every list", Sent(outer % f"children {{ nodes {{ {lists} }} }}")
    missing = many(ALIASES, 'descendants(maxDepth: -1)', " { totalCount }")
    yield "an error in every count", Sent(outer % f"children {{ nodes {{ {missing} }} }}")
    yield "an unknown value in every list", Sent(outer % many(ALIASES, "children(level: NOTHING)", " { totalCount }"))
