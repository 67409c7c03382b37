"""Requests that once stopped a server or took all of its memory, and others at the limits, by name."""

from typing import Any

from resolvers.planning.cursors import CursorKind, encode_cursor
from tests.abuse.costly_nodes import COUNTRIES, DEEP, DEPTH, LARGE, LARGE_NODES, WIDE, id_of

Body = dict[str, Any]
Bodies = dict[str, Body]

ALIASES, ENTITIES, IDS = 30, 190, 200
MARKS = "\u0301\u0323" * 29_000  # above and below: each pair has to be put in order
LONG = "a/" * 20_000
OUTSIDE = "!" * 40_000
LEAVES = "id path name level levelName depth revision updatedAt"
OLD_LEAVES = "id name level revision changedAt changedBy"
TRUSTED = {
    "wide": "query($path: Path!) { location(path: $path) { descendants { nodes { id path name } } } }",
    "marks": "query($path: Path!) { locations(where: {path: {startsWith: $path}}) { totalCount } }",
}


def requests() -> Bodies:
    """The bodies of all requests, by name."""
    walks = _cursors() | _walks() | _returns() | _past() | _answers()
    return _paths() | _references() | _documents() | walks | _counts() | _dry_runs() | _errors() | _inputs()


def many(count: int, field: str) -> str:
    """A field under so many aliases."""
    return " ".join(f"a{number}: {field}" for number in range(count))


def within(field: str, below: str) -> str:
    return field + " { " + below + " }"


def query(root: str, declared: str = "", **variables: Any) -> Body:
    """A query with declared variables."""
    return {"query": within(f"query({declared})" if declared else "query", root), "variables": variables}


def wide(below: str, declared: str = "", **variables: Any) -> Body:
    """A query below the node with most children."""
    return query(within(f'location(path: "{WIDE}")', below), declared, **variables)


def mutation(root: str, declared: str = "", **variables: Any) -> Body:
    return {"query": within(f"mutation({declared})" if declared else "mutation", root), "variables": variables}


def _paths() -> Bodies:
    """Texts that are expensive to normalize, and long ones, in every argument that is a path."""
    path, key = "$p: Path!", "$k: String!"
    find = "location(path: $p) { id }"
    compared = within("descendants", "nodes { children(where: {path: {lte: $p}}) { totalCount } }")
    create = """createLocation(parent: "SCRATCH", key: $k, name: $k, id: "x", dryRun: true,
        attributes: {state: {code: $k}}) { plan { nodes } }"""
    return {
        "path of combining marks": query(find, path, p=MARKS),
        "path of one letter with combining marks": query(find, path, p="a" + "\u0301" * 100_000),
        "path of many segments": query(find, path, p=LONG),
        "path of escapes": query(find, path, p="%2F" * 60_000),
        "path of lone escapes": query(find, path, p="%" * 200_000),
        "path of letters that are composed": query(find, path, p="\uac01" * 80_000),
        "paths under aliases": query(many(ALIASES, find), path, p=LONG),
        "path of combining marks for the children of every node": wide(compared, path, p=MARKS),
        "long path for the children of every node": wide(compared, path, p=LONG),
        "changes of a path of combining marks": query(
            "changes(hierarchy: LOCATION, tree: $p, under: $p) { cursor }", path, p=MARKS
        ),
        "move of a path of combining marks": mutation(
            "moveLocation(path: $p, to: $p, dryRun: true) { plan { nodes } }", path, p=MARKS
        ),
        "key of combining marks": mutation(create, key, k=MARKS),
        "key of many letters": mutation(create, key, k="x" * 200_000),
    }


def _references() -> Bodies:
    """Entities for a gateway, some of them one variable many times."""
    entities = '{__typename: "City", path: $p} ' * ENTITIES
    one_path = f"_entities(representations: [{entities}]) {{ __typename }}"
    one_variable = f"_entities(representations: [{'$r ' * 900}]) {{ __typename }}"
    all_at_once = "_entities(representations: $r) { __typename ... on State { id ancestors { id } } }"
    every = [{"__typename": "State", "path": f"{WIDE}/S{number:04}"} for number in range(1_000)]
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    return {
        "entities of one path of combining marks": query(one_path, "$p: String!", p=MARKS[:10_500]),
        "entities of one long path": query(one_path, "$p: String!", p=LONG),
        "entities of one representation": query(one_variable, "$r: _Any!", r={"__typename": "City", "path": LONG}),
        "thousand entities": query(all_at_once, "$r: [_Any!]!", r=every),
        "thousand entities of another level": query(
            all_at_once, "$r: [_Any!]!", r=[one | {"__typename": "City"} for one in every]
        ),
        "representations that are lists": query(all_at_once, "$r: [_Any!]!", r=deep),
    }


def _cursors() -> Bodies:
    """Cursors, one for each of many lists."""
    cursor = encode_cursor(CursorKind.CHILDREN, id_of(WIDE), "S" * 22_000)
    lists = many(ALIASES, "children(first: 1, after: $t) { totalCount }")
    states = many(ALIASES, "history(first: 1, after: $t) { nodes { id } }")
    every, some = within("children", f"nodes {{ {lists} }}"), within("children(first: 200)", f"nodes {{ {lists} }}")
    feed = f'changes(hierarchy: LOCATION, tree: "{WIDE}", after: $t) {{ cursor }}'
    text = "$t: String!"
    found = {
        "long cursor for every list": wide(every, text, t=cursor),
        "cursor of wrong bytes for every list": wide(every, text, t="\u00e9" * 15_000),
        "short cursor of another list for every list": wide(every, text, t=cursor[:40]),
        "long cursor for some lists": wide(some, text, t=cursor),
        "long cursor for some histories": wide(within("children(first: 300)", f"nodes {{ {states} }}"), text, t=cursor),
        "long cursor for changes": query(many(ALIASES, feed), text, t=cursor),
    }
    for name, arguments, declared, value in (
        ("keys from a long one for every root", "children(where: {key: {gte: $t}})", text, OUTSIDE),
        ("keys to a long one for every root", "children(where: {key: {lt: $t}}, orderBy: {field: KEY})", text, OUTSIDE),
        ("keys to the longest for every root", "children(where: {key: {lt: $t}})", text, OUTSIDE[:4_000]),
        ("long paths for every root", "descendants(where: {path: {gte: $t, lt: $t}})", "$t: Path!", OUTSIDE),
        ("paths of combining marks for every root", "descendants(where: {path: {gte: $t}})", "$t: Path!", MARKS),
    ):
        ranges = many(ALIASES - 1, arguments + " { nodes { id } }")
        roots = within(f"locations(first: {COUNTRIES - 1})", f"nodes {{ {ranges} }}")
        found[name] = query(roots, declared, t=value)
    return found


def _walks() -> Bodies:
    """Relations from every node to others, many times."""
    nodes = f"descendants {{ nodes {{ {LEAVES} }} }}"
    up_and_down = "parent { children { nodes { " * 3 + LEAVES + " } } }" * 3
    deepest = "/".join([DEEP, *["c0"] * (DEPTH - 1)])
    everything = f"""{LEAVES} changedBy key childCount descendantCount code population latitude longitude
        ... on City {{ timezone }}"""
    return {
        "all nodes": wide("descendants { nodes { id path name } }"),
        "all nodes with all leaves": wide(f"descendants {{ edges {{ cursor node {{ {everything} }} }} }}"),
        "one list many times": wide(" ".join([nodes] * 90)),
        "one list under many aliases": wide(many(ALIASES, nodes)),
        "ancestors of deep nodes": query(
            f'categoryNode(path: "{DEEP}") {{ descendants {{ nodes {{ {LEAVES} ancestors {{ {LEAVES} }} }} }} }}'
        ),
        "up and down": query(within(f'categoryNode(path: "{deepest}")', up_and_down)),
        "histories of some nodes": wide("descendants(first: 900) { nodes { history { nodes { id } } } }"),
    }


def _returns() -> Bodies:
    """Relations back to the same nodes: parents and ancestors of nodes."""
    above = many(ALIASES, f"ancestors {{ {LEAVES} ancestors {{ {LEAVES} }} }}")
    return {
        "ancestors of all nodes many times": wide(f"descendants {{ nodes {{ {above} }} }}"),
        "parents of all children": wide(
            f"children {{ nodes {{ {many(ALIASES, f'parent {{ {LEAVES} }}')} }} }}",
        ),
    }


def _past() -> Bodies:
    """Revisions."""
    old = many(ALIASES, f"atRevision(n: 1) {{ {OLD_LEAVES} }}")
    revised = 'location(path: "OLD/revised")'
    return {
        "old states of one node": wide(old),
        "many old states of some nodes": wide(f"descendants(first: 500) {{ nodes {{ {old} }} }}"),
        "old state of all nodes": wide(f"descendants {{ nodes {{ atRevision(n: 1) {{ {OLD_LEAVES} }} }} }}"),
        "long history under many aliases": query(within(revised, many(ALIASES, "history { nodes { name } }"))),
    }


def _answers() -> Bodies:
    """Large texts, many times."""
    large = [id_of(LARGE, f"L{number:02}") for number in range(LARGE_NODES)]
    nodes = many(ALIASES, "nodes(ids: $ids) { ... on Location { name } }")
    names = many(ALIASES, "name")
    one = f'"{large[0]}" '
    entities = [{"__typename": "State", "id": large[0]}] * 1_000
    return {
        "large node many times": query(nodes, "$ids: [ID!]!", ids=large[:1] * IDS),
        "large nodes many times": query(nodes, "$ids: [ID!]!", ids=large * 10),
        "large texts under aliases": query(within(f'location(path: "{LARGE}")', f"children {{ nodes {{ {names} }} }}")),
        "large siblings of each other": query(
            within(f'location(path: "{LARGE}")', "children { nodes { name parent { children { nodes { name } } } } }")
        ),
        "large entity many times": query(
            "_entities(representations: $r) { ... on State { name } }", "$r: [_Any!]!", r=entities
        ),
        "large id written many times": query(f"nodes(ids: [{one * 900}]) {{ ... on Location {{ name }} }}"),
        "ids of no nodes": query(
            "nodes(ids: $ids) { id }", "$ids: [ID!]!", ids=[f"location:{number}" for number in range(9_000)]
        ),
    }


def _counts() -> Bodies:
    """Counts of ranges, and look-ups that find nothing: they return no nodes."""
    counts = 'a{0}: {1}, where: {{{2}: {{gte: "{3}"}}}}) {{ totalCount }}'
    ranges, below, roots = [
        " ".join(counts.format(n, relation, value, f"{first}{n:04}") for n in range(ALIASES))
        for relation, value, first in (
            ("descendants(first: 0", "path", f"{WIDE}/S"),
            ("children(first: 0", "key", "T"),
            ("descendants(level: STATE", "path", "C000/A"),
        )
    ]
    lost = [{"__typename": "City", "path": f"OLD/moved{number % 8}/{number}/a/b/c/d"} for number in range(1_000)]
    feed = f'changes(hierarchy: LOCATION, tree: "{WIDE}", under: "{WIDE}/S0000") {{ changes {{ path }} cursor }}'
    return {
        "counts of many ranges": wide(ranges),
        "counts of ranges of some nodes": wide(f"children(first: 300) {{ nodes {{ {below} }} }}"),
        "counts of ranges of every root": query(f"locations {{ nodes {{ {roots} }} }}"),
        "old paths that lead nowhere": query(
            many(ALIASES, 'location(path: "OLD/moved0/nothing/at/all") { id }'),
        ),
        "many old paths": query("_entities(representations: $r) { __typename }", "$r: [_Any!]!", r=lost),
        "changes": query(feed),
        "changes many times": query(many(ALIASES, feed)),
    }


def _documents() -> Bodies:
    """Documents that are expensive to parse and validate, introspection, and persisted documents."""
    kinds = "kind name description fields(includeDeprecated: true) { name args { name type { name } } type { name } }"
    related = f"interfaces {{ {kinds} }} possibleTypes {{ {kinds} }}"
    return {
        "schema": query(f"__schema {{ types {{ {kinds} {related} }} }}"),
        "type many times": query(many(19, f'__type(name: "Location") {{ {kinds} {related} }}')),
        "schema of the subgraph many times": query(" ".join(["_service { sdl }"] * (ALIASES - 1))),
        "one field many times": wide(" ".join(["parent { name id parent { name id } }"] * 100)),
        "aliases in many fragments": wide(
            " ".join(f"... on City {{ x{n}: childCount(level: CITY) }}" for n in range(30))
        ),
        "many unknown fields": wide(" ".join(f"nothing{number}" for number in range(1_500))),
        "many directives": wide("name " + "@nothing " * 900),
        "long name": {"query": "query " + "a" * 200_000 + " { locations { nodes { id } } }"},
        "long text": query('location(path: "' + "\\u0301" * 40_000 + '") { id }'),
        "long number": query("locations(first: " + "9" * 200_000 + ") { totalCount }"),
        "deep braces": {"query": "{ a " * 1_000},
        "deep lists": query("nodes(ids: " + "[" * 900 + "]" * 900 + ") { id }"),
        "trusted document": {"documentId": "wide", "variables": {"path": WIDE}},
        "trusted document with combining marks": {"documentId": "marks", "variables": {"path": MARKS}},
    }


def _dry_runs() -> Bodies:
    """Dry runs, which read as much as a change does, and changes with long texts."""
    delete = f'deleteLocation(path: "{WIDE}", policy: CASCADE, dryRun: true) {{ plan {{ nodes writeUnits }} }}'
    move = f'moveLocation(path: "{WIDE}", to: "SCRATCH", dryRun: true) {{ plan {{ nodes writeUnits collisions }} }}'
    order = f'reorderLocation(path: "{WIDE}/S0000", last: true, dryRun: true) {{ plan {{ writeUnits }} }}'
    update = 'updateLocation(path: "SCRATCH/N0", name: $t, attributes: {state: {code: $t}}) { node { name } }'
    once = 'updateLocation(path: "SCRATCH/N0", name: "n", idempotencyKey: $t) { node { name } }'
    text = "$t: String!"
    return {
        "dry run of a large deletion": mutation(delete),
        "dry runs of a large deletion": mutation(many(ALIASES, delete)),
        "dry runs of a large move": mutation(many(ALIASES, move)),
        "dry runs of an order among many": mutation(many(ALIASES, order)),
        "update by a long text": mutation(update, text, t="x" * 200_000),
        "many updates by a long text": mutation(many(ALIASES, update), text, t="\\" * 15_000),
        "long idempotency key": mutation(once, text, t="k" * 200_000),
    }


def _errors() -> Bodies:
    """Errors in every item of a list, at the end of a large response, and in every argument."""
    lists = many(ALIASES, "children(first: 1, last: 1) { nodes { id } }")
    counts = many(ALIASES, "descendants(maxDepth: -1) { totalCount }")
    all_nodes = f'location(path: "{WIDE}") {{ descendants(first: 9900) {{ nodes {{ id path name }} }} }}'
    return {
        "error at the end of a large answer": query(f'{all_nodes} last: city(path: "{WIDE}") {{ id }}'),
        "error in every node": wide("descendants { nodes { id history(first: -1) { nodes { id } } } }"),
        "error in every list": wide(f"children {{ nodes {{ {lists} }} }}"),
        "error in every count": wide(f"children {{ nodes {{ {counts} }} }}"),
        "unknown value in every list": wide(many(ALIASES, "children(level: NOTHING) { totalCount }")),
    }


def _inputs() -> Bodies:
    """Lists in arguments, near the limit of input values and past it, of one list and of the lists of many nodes."""
    condition, order = "$v: LocationCondition", "$v: [LocationOrderBy!]"
    some = {
        "or": [{"key": {"in": [f"{key:02}" for key in range(80)]}}] * 18,
        "and": [{"name": {"startsWith": "S"}}] * 10,
    }
    each = "children(first: 1, where: $v) { totalCount }"
    below = f"descendants(first: 5000) {{ nodes {{ {each} }} }}"
    literal = each.replace("$v", "{or: [" + '{key: {eq: "x"}} ' * 40 + "]}")
    ordered = "children(first: 60) { nodes { children(first: 1, orderBy: $v) { totalCount } } }"
    listed = "locations(where: $v) { totalCount }"
    nested: dict[str, Any] = {"key": {"eq": "x"}}
    for _ in range(60):
        nested = {"not": {"or": [nested]}}
    return {
        "conditions of many lists": wide(below, condition, v=some),
        "conditions of many lists beside an error": wide(
            f"{below} children(first: -1) {{ totalCount }}", condition, v=some
        ),
        "literal conditions of many lists": wide(below.replace(each, literal) + " children(first: -1) { totalCount }"),
        "orders of many lists": wide(ordered, order, v=[{"field": "NAME", "direction": "ASC"}] * 600),
        "more orders of many lists": wide(ordered, order, v=[{"field": "NAME", "direction": "ASC"}] * 5_000),
        "many alternatives": query(listed, condition, v={"or": [{"key": {"eq": "x"}}] * 600}),
        "more alternatives": query(listed, condition, v={"or": [{"key": {"eq": "x"}}] * 5_000}),
        "nested conditions": query(listed, condition, v=nested),
        "many paths": query("locationsByPath(paths: $v) { id }", "$v: [Path!]!", v=["C000/S/A", "C001"] * 990),
        "more paths": query("locationsByPath(paths: $v) { id }", "$v: [Path!]!", v=["C000/S/A", "C001"] * 4_500),
    }
