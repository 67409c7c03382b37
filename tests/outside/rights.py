"""Rights: two stores that differ only in what a caller may not see give her the same responses, byte by byte."""

import base64
import hmac
import json
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.outside.failures import SETTLE_SECONDS, Wrong, settled
from tests.outside.parts import Part
from tests.outside.processes import Place, Server, import_things, on_things

HIDDEN = "A hidden node **looks as if it did not exist**, in every field"
NOT_FOUND = "it is null by path and by id, absent from lists, not counted, and `NOT_FOUND` for mutations, with the"
FORBIDDEN = "Who may write nothing in the hierarchy gets `FORBIDDEN` for every mutation, whatever it names"
PART_FOUND = "A caller who may read a part of a hierarchy finds only nodes of this part, in the same order."
PART_LISTED = "Callers with grants sort and filter what they see."
CODE_HIDDEN = "A hidden node is found by its unique value as one that does not exist, at the same cost."
CODES = ("sku-a", "sku-u", "nowhere")  # of hidden nodes of the second world, and of none
PROMISES = (
    ("rights.md", HIDDEN),
    ("rights.md", NOT_FOUND),
    ("rights.md", FORBIDDEN),
    ("find-nodes.md", PART_FOUND),
    ("lists.md", PART_LISTED),
    ("rights.md", "`totalCount` counts visible nodes"),
    ("rights.md", "The top of each grant is a **root** for its caller"),
    ("rights.md", "`parent` of Nebraska is null, and `ancestors` begin at it."),
    ("rights.md", "A former path of a hidden node is null, as a path at which there never was a node."),
    ("rights.md", CODE_HIDDEN),
    ("rights.md", "So does whoever sets a unique value"),
    ("writing.md", "a write grant on the path that the node had, and on its new one."),
    ("rights.md", "A move out of the visible paths is `DELETED`"),
    ("rights.md", "Reads never share a limit with hidden nodes"),
    ("rights.md", "Only callers who may read everything get `extensions.reads`"),
)
FIXED_BATCHES = 6  # which also a short run makes
VISIBLE_LIMIT = 2_000  # nodes of a part in which a search reads all of them and nothing else
SEARCH_ITEMS = 1_750  # that a search reads in a larger part
HEADERS = ("cache-control", "vary", "content-type", "surrogate-key", "cache-tag", "www-authenticate", "age")
SECRET = "a secret of the servers with 32 bytes or more"
CALLERS = {
    "reads a part": ("read:thing/T/a",),
    "reads parts": ("read:thing/T/a", "read:thing/T/c/x", "read:thing/U"),
    "writes a part": ("write:thing/T/a", "read:thing/T/c"),
    "writes below what is hidden": ("write:thing/T/b/mine", "write:thing/N"),
    "writes a tree": ("write:thing/U", "read:thing/T/c/x"),
}


@dataclass
class Worlds:
    """Two servers, the second of which has more, and the tokens of the callers, which are the same."""

    bare: Server
    more: Server
    keys: dict[str, str]
    script: list[str]
    counts: Counter[str]
    follow_until: float = 0.0

    def compare(self, caller: str, query: str, what: str) -> Any:
        """Ask both, and raise Wrong if the responses differ in anything but times, once lists have followed."""
        found = settled(partial(self._compare, caller, query), self.follow_until if query.startswith("{") else 0.0)
        self.counts[what] += 1
        return found

    def _compare(self, caller: str, query: str) -> Any:
        answers = [server.ask(query, key=self.keys[caller], clade_reads="2") for server in (self.bare, self.more)]
        got = [(masked(one.bytes), {name: one.headers.get(name) for name in HEADERS}) for one in answers]
        assert [one.status for one in answers] == [200, 200], (caller, query, [one.json for one in answers])
        grants = ", ".join(CALLERS.get(caller, (caller,)))
        script = [*self.script, f"a caller with {grants}: {query}"]
        if any("INTERNAL_SERVER_ERROR" in one.codes for one in answers):
            raise Wrong("no internal errors", script, "no INTERNAL", answers[1].json)
        if got[0] != got[1]:
            raise Wrong(HIDDEN, script, *got)
        return answers[0].json

    def written(self) -> None:
        """Note that something was written just now, which lists may show later."""
        self.follow_until = time.monotonic() + SETTLE_SECONDS["sqlite" if "sqlite" in self.store else "dynamodb"]

    @property
    def store(self) -> str:
        """The URL of the second store."""
        return self.more.settings["CLADE_STORE"]

    def expect(self, caller: str, query: str, promise: str, expected: object, got: object) -> None:
        """Raise Wrong unless a part of a response is as expected."""
        if expected != got:
            raise Wrong(promise, [*self.script, f"a caller with {', '.join(CALLERS[caller])}: {query}"], expected, got)


def masked(body: bytes) -> str:
    """A response without times and cursors: those of feeds disclose the number of transactions, as the docs say, and
    those of lists have the random digits of ranks.
    """
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", body.decode())
    text = re.sub(r'"(cursor|startCursor|endCursor)":"[^"]*"', r'"\1":"…"', text)
    return re.sub(r'"writeUnits":[\d.]+', '"writeUnits":0', text)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Worlds with one kind of hidden difference after the other."""
    chance = random.Random(seed)
    kinds = ["one node", "many nodes", "a history"]
    chance.shuffle(kinds)
    counts: Counter[str] = Counter()
    for number, kind in enumerate(kinds):
        if number and time.monotonic() > until - 15:
            break
        counts += differing(place, chance, kind, number, share=2 if until - time.monotonic() > 15 else 32)
    if until - time.monotonic() > 30:
        for visible in (VISIBLE_LIMIT, VISIBLE_LIMIT + 1):
            counts += full_search(place, visible)
    return counts


def differing(place: Place, chance: random.Random, kind: str, number: int, share: int) -> Counter[str]:
    """Two worlds; the second has a hidden difference of a kind. Callers read, write, and read again.

    Each asks one in `share` of all queries; where that is few, two of the callers do.
    """
    who = chance.sample(list(CALLERS), len(CALLERS) if share == 2 else 2)
    worlds = _worlds(place, _lines(), number, {name: CALLERS[name] for name in who})
    _differ(worlds, kind, place)
    queries = list(_queries())
    for caller in who:
        for under in (None, *_PATHS):
            settled(partial(_search_part, worlds, caller, under), worlds.follow_until)
        settled(partial(_list_parts, worlds, caller, chance, few=share > 2), worlds.follow_until)
    for turn in ("before", "after"):
        for caller in who:
            for query in chance.sample(queries, len(queries) // share):
                worlds.compare(caller, query, f"reads compared {turn} the writes")
            if turn == "before":
                batches = list(_batches(_home(caller)))
                few = chance.sample(batches[:-FIXED_BATCHES], 10) + batches[-FIXED_BATCHES:]
                own = _mutations(caller, chance, few=share > 2)
                for field in (*own, *(batches if share == 2 else few)):
                    answer = worlds.compare(caller, mutation(field), "mutations compared")
                    if field.startswith("restore"):
                        is_made = ((answer["data"] or {}).get("restoreThing") or {}).get("node") is not None
                        worlds.counts[f"restores {'made' if is_made else 'not made'}"] += 1
                    path = re.match(r'(?:update|delete)Thing\(input: {node: {path: "([^"]+)"', field)
                    if path and not is_visible(caller, path[1]):
                        codes = [error["extensions"]["code"] for error in answer["errors"]]
                        writes = any(grant.startswith("write:") for grant in CALLERS[caller])
                        promised = (NOT_FOUND, ["NOT_FOUND"]) if writes else (FORBIDDEN, ["FORBIDDEN"])
                        worlds.expect(caller, mutation(field), *promised, codes)
        worlds.written()
    _end(worlds)
    return worlds.counts


def mutation(field: str) -> str:
    """The document of a mutation."""
    former = "previousParent { path }" if field.startswith(("move", "delete")) else ""
    node = f"node{'s' * field.startswith('edit')} {{ id path revision parent {{ path }} }} {former}"
    return f"mutation {{ {field} {{ {node} plan {{ nodes transactions writeUnits }} }} }}"


def tops_of(caller: str) -> list[str]:
    """The highest paths that a caller may read."""
    tops = [grant.partition("/")[2] for grant in CALLERS[caller]]
    return [top for top in tops if not any(top.startswith(f"{other}/") for other in tops)]


def is_visible(caller: str, path: str) -> bool:
    return any(f"{path}/".startswith(f"{top}/") for top in tops_of(caller))


def _search_part(worlds: Worlds, caller: str, under: str | None) -> None:
    """A caller finds of what everybody may find that which is granted to her, in the same order."""
    below = f', under: "{under}"' if under else ""
    query = f'{{ searchThings(text: "lamp", first: 100{below}) {{ nodes {{ path }} complete }} }}'
    found = worlds.bare.ask(query, key=worlds.keys["admin"]).data["searchThings"]
    if under and not is_visible(caller, under):
        found["nodes"] = []
    got = worlds.bare.ask(query, key=worlds.keys[caller]).data["searchThings"]
    expected = [node for node in found["nodes"] if is_visible(caller, node["path"])]
    if found["complete"]:
        worlds.expect(caller, query, PART_FOUND, expected, got["nodes"])
        worlds.counts["searches compared with all nodes"] += 1


PLACES = (
    '(where: {path: {gte: "T/a/n03", lt: "T/b/mine/n07"}}%s)',
    '(orderBy: {field: PATH, direction: DESC}, where: {not: {path: {startsWith: "T/b/mine"}}}%s)',
    '(where: {or: [{key: {startsWith: "n0"}}, {path: {startsWith: "T/b"}}, {path: {in: ["T/c", "T/c/x/n05"]}}]}%s)',
    '(orderBy: {field: KEY}, where: {key: {gt: "a", lte: "n04"}}%s)',
    "(orderBy: [{field: NAME}, {field: PATH}]%s)",
    "(level: [BOX, CARD], orderBy: {field: KEY, direction: DESC}%s)",
)
BACKWARDS = "(orderBy: {field: POSITION, direction: DESC}%s)"


def _list_parts(worlds: Worlds, caller: str, chance: random.Random, *, few: bool) -> None:
    """A caller has of each list that she may see all of it, also by pages; her roots are the tops of her grants."""
    for path in ("T/a", "T/c", "T/c/x", "T/b/mine", "U"):
        if not is_visible(caller, path):
            continue
        for relation in ("children", "descendants"):
            arguments = (*PLACES, BACKWARDS) if relation != "descendants" else PLACES
            for given in chance.sample(arguments, 2) if few else arguments:
                size, number = chance.choice(("first", "last")), chance.choice((1, 3, 5))
                one = f"{relation}{given} {{ nodes {{ path }} }}"
                query = f'{{ list: thing(path: "{path}") {{ {one} }} }}'
                wholes = [worlds.bare.ask(query % "", key=worlds.keys[each]).data for each in ("admin", caller)]
                page = worlds.bare.ask(query % f", {size}: {number}", key=worlds.keys[caller]).data
                whole, seen, part = (got["list"][relation] for got in (*wholes, page))
                nodes = whole["nodes"]
                worlds.expect(caller, query % "", PART_LISTED, nodes, seen["nodes"])
                nodes = nodes[:number] if size == "first" else nodes[-number:]
                worlds.expect(caller, query % f", {size}: {number}", PART_LISTED, nodes, part["nodes"])
                worlds.counts["lists compared with all nodes"] += 1
    query = "{ things(orderBy: {field: PATH}) { nodes { path parent { id } ancestors { id } } totalCount } }"
    listed = worlds.bare.ask(query, key=worlds.keys[caller])
    paths = ", ".join(f'"{top}"' for top in tops_of(caller))
    every = worlds.bare.ask(f"{{ thingsByPath(paths: [{paths}]) {{ path }} }}", key=worlds.keys["admin"])
    tops = sorted([node["path"] for node in every.data["thingsByPath"] if node], key=lambda path: path.split("/"))
    expected = {"nodes": [{"path": top, "parent": None, "ancestors": []} for top in tops], "totalCount": len(tops)}
    worlds.expect(caller, query, PART_LISTED, expected, listed.data["things"])


def _end(worlds: Worlds) -> None:
    for server in (worlds.bare, worlds.more):
        server.kill()


def _worlds(place: Place, lines: list[dict[str, Any]], number: int, callers: dict[str, Any] = CALLERS) -> Worlds:
    """A store with these nodes, a copy of it, a server of each, and a token for each caller."""
    sqlite = place.kind == "sqlite"
    bare = place.new_store(created=not sqlite)  # an import makes a file
    file = place.folder / f"world-{number}.jsonl"
    import_things(file, bare, lines)
    more = place.new_store(created=not sqlite)
    if sqlite:
        shutil.copy(bare.removeprefix("sqlite:///"), more.removeprefix("sqlite:///"))
    else:
        on_things("copy", bare, more, store=bare)
    keys = {name: _token(name, grants) for name, grants in {**callers, "admin": ("write:thing",)}.items()}
    serve = partial(place.server, reads="granted", writes="granted", jwt_secret=SECRET)
    with ThreadPoolExecutor() as both:
        servers = [*both.map(serve, (bare, more))]
    return Worlds(servers[0], servers[1], keys, [f"two copies of a store with the nodes of {file.name}"], Counter())


def _token(name: str, grants: Sequence[str]) -> str:
    """A token of a caller with these grants."""
    claims = {"sub": name, "exp": 1 << 33, "grants": list(grants)}
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()) for one in ({"alg": "HS256"}, claims)]
    signed = b".".join(part.rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(SECRET.encode(), signed, "sha256"))
    return b".".join((signed, signature.rstrip(b"="))).decode()


def _lines() -> list[dict[str, Any]]:
    """Trees T, U and H; every second node has a place on the map, and all names have words in common."""
    paths = [["T"], ["U"], ["H"], *(["T", key] for key in "abc"), ["T", "b", "mine"], ["T", "c", "x"], ["H", "h"]]
    tops = [["T", "a"], ["T", "b"], ["T", "c", "x"], ["U"], ["H", "h"], ["T", "b", "mine"]]
    paths += [[*top, f"n{number:02}"] for top in tops for number in range(12)]
    return [_line(path, number) for number, path in enumerate(paths)]


def _line(path: list[str], number: int, name: str = "") -> dict[str, Any]:
    point = {"latitude": 10 + number / 1000, "longitude": 20.0} if number % 2 else {}
    named = name or f"Lamp {path[-1]} word{number}"
    return {"path": path, "level": "BOX", "name": named, "id": "-".join(path), "small": number, **point}


def _differ(worlds: Worlds, kind: str, place: Place) -> None:
    """Write what no caller may see into the second world alone."""
    _admin(
        worlds, 'updateThing(input: {node: {path: "T"}, attributes: {box: {small: 77, note: "withheld", state: OPEN}}})'
    )
    # What comes from a hidden place or goes to one looks the same wherever that is.
    for home, servers in (("T/b", [worlds.bare]), ("H", [worlds.more])):
        for field in (
            _creation([*home.split("/"), "in"], 3, id="in"),
            f'updateThing(input: {{node: {{path: "{home}/in"}}, name: "Lamp in"}})',
            f'moveThing(input: {{node: {{path: "{home}/in"}}, to: {{parent: {{path: "T/a"}}}}}})',
            _creation(["T", "a", "out"], 4, id="out"),
            f'moveThing(input: {{node: {{path: "T/a/out"}}, to: {{parent: {{path: "{home}"}}}}}})',
            # What is deleted in a hidden place, and comes back in a visible one.
            _creation([*home.split("/"), "back"], 5, id="back"),
            f'deleteThing(input: {{node: {{path: "{home}/back"}}}})',
            'restoreThing(input: {id: "thing:back", to: {parent: {path: "T/a"}}})',
            # What is deleted in a visible place, and whose parent is hidden since.
            *_lost_children("T/a", home, "a"),
            *_lost_children("U", home, "u"),
            *_with_sku("T/a", "a"),
            *_with_sku("U", "u"),
            *(
                f'updateThing(input: {{node: {{path: "{top}/n10"}}, attributes: {{box: {{sku: "{top}"}}}}}})'
                for top in ("T/a", "U", "T/b/mine")
            ),
            # What is deleted in a visible place, and comes back in a hidden one.
            _creation(["T", "a", "away"], 6, id="away"),
            'deleteThing(input: {node: {path: "T/a/away"}})',
            f'restoreThing(input: {{id: "thing:away", to: {{parent: {{path: "{home}"}}}}}})',
            # What is deleted in a hidden place.
            _creation([*home.split("/"), "dead"], 7, id="dead"),
            f'deleteThing(input: {{node: {{path: "{home}/dead"}}}})',
        ):
            _admin(worlds, field, servers)
    # A hidden parent that is deleted, and one in a hidden place.
    for id in ("above-a", "above-u"):
        _admin(worlds, f'deleteThing(input: {{node: {{id: "thing:{id}"}}}})')
    # Hidden nodes that have the unique values of deleted ones.
    for path, sku in (("T/b", "sku-a"), ("H", "sku-u")):
        _admin(worlds, f'updateThing(input: {{node: {{path: "{path}"}}, attributes: {{box: {{sku: "{sku}"}}}}}})')
    spots = [["H", "extra"], ["T", "b", "extra"], ["T", "aa"], ["T", "Z"], ["A"], ["T", "b", "n00", "extra"]]
    if kind == "one node":
        for number, path in enumerate(spots):
            _admin(worlds, _creation(path, number))
    elif kind == "many nodes":
        lines = [_line(["H", f"m{number:04}"], number, "Lamp") for number in range(501)]
        lines += [_line(["T", "b", f"m{number:04}"], number, "Lamp") for number in range(500)]
        import_things(place.folder / "more.jsonl", worlds.store, lines)
        worlds.script.append("to the second: 1,001 nodes named Lamp in H and T/b")
    else:
        for field in (
            'moveThing(input: {node: {path: "T/b/n01"}, key: "renamed"})',
            'moveThing(input: {node: {path: "T/b/n02"}, to: {parent: {path: "H"}}})',
            'deleteThing(input: {node: {path: "T/b/n03"}})',
            'updateThing(input: {node: {path: "T/b/n04"}, name: "Lamp Aaa"})',
            'moveThing(input: {node: {path: "H/h"}, to: {parent: {path: "T/b"}}})',
            'moveThing(input: {node: {path: "T/b/n05"}, position: {first: true}})',
            _creation(["T", "ab"], 1),
            'moveThing(input: {node: {path: "T/ab"}, key: "ac"})',
            'deleteThing(input: {node: {path: "T/ac"}})',
            'moveThing(input: {node: {path: "T/b"}, position: {first: true}})',
        ):
            _admin(worlds, field)
    worlds.written()


def _lost_children(place: str, home: str, mark: str) -> Iterator[str]:
    """Make a node that was deleted in a place and whose parent comes to another one, its home, then."""
    above = f"above-{mark}"
    yield _creation([*place.split("/"), above], 8, id=above)
    yield _creation([*place.split("/"), above, "lost"], 9, id=f"lost-{mark}")
    yield f'deleteThing(input: {{node: {{path: "{place}/{above}/lost"}}}})'
    yield f'moveThing(input: {{node: {{path: "{place}/{above}"}}, to: {{parent: {{path: "{home}"}}}}}})'


def _with_sku(place: str, mark: str) -> Iterator[str]:
    """Make a node with a unique value that was deleted in a place."""
    yield _creation([*place.split("/"), "sku"], 8, id=f"sku-{mark}")
    yield f'updateThing(input: {{node: {{path: "{place}/sku"}}, attributes: {{box: {{sku: "sku-{mark}"}}}}}})'
    yield f'deleteThing(input: {{node: {{path: "{place}/sku"}}}})'


def _creation(path: list[str], number: int, id: str = "") -> str:
    parent = f'parent: {{path: "{"/".join(path[:-1])}"}}, ' if path[:-1] else ""
    values = f"small: -1, latitude: 10.0{number}, longitude: 20.0"
    key = f'key: "{path[-1]}", id: "{id or "-".join(path)}"'
    return f'createThing(input: {{{parent}{key}, name: "Lamp Aaa word1", attributes: {{box: {{{values}}}}}}})'


def _admin(worlds: Worlds, field: str, servers: Sequence[Server] = ()) -> None:
    for server in servers or [worlds.more]:
        server.ask(f"mutation {{ {field} {{ node {{ id }} }} }}", key=worlds.keys["admin"]).data  # noqa: B018
        worlds.script.append(f"to the {'second' if server is worlds.more else 'first'}: {field}")


_NEAREST = "totalCount edges { kilometers node { path } }"


def _near(kilometers: int, first: int) -> str:
    """The arguments of a list by the distance from a point."""
    near = f"{{latitude: 10, longitude: 20, kilometers: {kilometers}}}"
    return f"where: {{near: {near}}}, orderBy: {{field: DISTANCE}}, first: {first}"


def _queries() -> Iterator[str]:
    """Every kind of read, of nodes that are visible, above, hidden, only in the second world, and nowhere."""
    paths = _PATHS
    for path in paths:
        for selection in _selections():
            yield f'{{ thing(path: "{path}") {{ {selection} }} }}'
        yield f'{{ box(path: "{path}") {{ name }} }}'
        node = f'id: "thing:{path.replace("/", "-")}"'
        yield f"{{ thing({node}) {{ path name }} node({node}) {{ id }} deletedNode({node}) {{ path }} }}"
        yield f'{{ searchThings(text: "lamp", under: "{path}") {{ nodes {{ path }} complete totalCount }} }}'
        yield f'{{ thing(path: "{path}") {{ descendants({_near(50, 10)}) {{ {_NEAREST} }} }} }}'
    for id in ("back", "away", "dead", "lost-a", "lost-u", "above-a", "U-n11", "T-a-n11"):
        asked = f'(id: "thing:{id}") {{ path'
        yield f"{{ thing{asked} revision }} deletedNode{asked} descendantCount history {{ totalCount }} }} }}"
    for code in (*CODES, "T/a", "U"):
        asked = f'(sku: "{code}") {{ path revision }}'
        yield f"{{ thing{asked} box{asked} card{asked} }}"
    entities = ", ".join(f'{{__typename: "{level}", sku: "{code}"}}' for code in CODES for level in ("Thing", "Card"))
    yield f"{{ _entities(representations: [{entities}]) {{ ... on Thing {{ path sku }} }} }}"
    many = ", ".join(f'"{path}"' for path in paths)
    yield f"{{ thingsByPath(paths: [{many}]) {{ path name }} }}"
    ids = ", ".join(f'"thing:{path.replace("/", "-")}"' for path in paths)
    yield f"{{ nodes(ids: [{ids}]) {{ id }} }}"
    for text in ("lamp", "l", "n0", "word1", "aaa", "extra", "lamp n", "n0 withheld", "n0 extra lamp"):
        for first in (1, 10, 100):
            found = "nodes { id path name } complete totalCount"
            yield f'{{ searchThings(text: "{text}", first: {first}) {{ {found} }} }}'
            yield f"{{ things({_near(len(text) * 3, first)}) {{ {_NEAREST} }} }}"
    for tree in ("T", "U", "H", "A", "N"):
        for under in (tree, f"{tree}/a", f"{tree}/b"):
            fields = "event nodeId path level revision from to withDescendants"
            feed = f'changes(hierarchy: THING, tree: "{tree}", under: "{under}")'
            yield f"{{ {feed} {{ changes {{ {fields} }} cursor hasMore }} }}"
    for given in _LISTS:
        yield f"{{ things({given}) {{ {_PAGE} {_COUNTED} }} }}"
        yield f"{{ things(level: SLIP, {given}) {{ {_PAGE} {_COUNTED} }} }}"
    yield "{ things { nodes { path name children(first: 0) { facets(fields: SMALL) { minimum } } } totalCount } }"
    yield "{ things(orderBy: [{field: NAME, direction: DESC}]) { nodes { path childCount } } }"
    yield "{ things(last: 2) { edges { cursor node { path } } pageInfo { hasPreviousPage hasNextPage } } }"
    yield "{ moves(hierarchy: THING) { from to state } hierarchies { name mayWrite } }"


_PATHS = ["T", "T/a", "T/a/n01", "T/aa", "T/b", "T/b/mine", "T/b/mine/n02", "T/b/n01", "T/b/extra", "T/c", "T/c/x"]
_PATHS += ["U", "U/n03", "H", "H/h", "H/extra", "A", "N", "T/ab", "T/b/h/n01", "T/nowhere", "T/a/back"]


def _selections() -> Iterator[str]:
    """What is asked of one node."""
    yield "path key name level depth"
    yield "id revision childCount descendantCount updatedAt ... on Box { small }"
    yield "path note ... on Box { small state }"
    for relation in ("children", "descendants"):
        yield f"{relation} {{ nodes {{ path name }} }}"
        yield f"{relation}(first: 3) {{ {_PAGE} }}"
        yield f"{relation}(orderBy: [{{field: NAME}}, {{field: SMALL}}], last: 4) {{ {_PAGE} }}"
        some = 'where: {or: [{name: {contains: "1"}}, {small: {lt: 3}}, {childCount: {gt: 1}}]}'
        yield f"{relation}({some}) {{ totalCount nodes {{ path }} }}"
        yield f"{relation}{PLACES[0] % ', last: 3'} {{ {_PAGE} }}"
        yield f"{relation}{PLACES[1] % ', first: 3'} {{ {_PAGE} }}"
        for given in _LISTS:
            yield f"{relation}({given}) {{ {_PAGE} {_COUNTED} }}"
    yield "parent { path } ... on TreeNode { levelName } ancestors { path name }"
    yield "history(first: 2) { totalCount nodes { name changedBy } } atRevision(n: 1) { name }"


_PAGE = "totalCount edges { cursor node { path } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"


_COUNTED = "facets(fields: [LEVEL, NOTE, SMALL, STATE], first: 4) "
_COUNTED += "{ distinctCount missingCount minimum maximum values { value count } }"
_NEAR = "near: {latitude: 10, longitude: 20, kilometers: 5}"
_LISTS = (
    "first: 2, where: {small: {lt: 40}, and: [{note: {isNull: true}}]}",
    'first: 2, where: {search: {text: "lamp"}}, orderBy: {field: RELEVANCE}',
    # Words of nodes, of hidden ancestors, and of what is only in the second world.
    'where: {search: {text: "n0 withheld"}}',
    'where: {search: {text: "n lamp extra"}}, orderBy: {field: RELEVANCE, direction: DESC}',
    f'where: {{or: [{{search: {{text: "word1"}}}}, {{{_NEAR}}}]}}, last: 3',
    f"where: {{{_NEAR}}}, orderBy: [{{field: DISTANCE, direction: DESC}}]",
    'where: {children: {some: {name: {contains: "n0"}, small: {gt: 3}}}}',
    f"where: {{children: {{none: {{{_NEAR}}}}}, not: {{children: {{some: {{note: {{isNull: false}}}}}}}}}}",
    "orderBy: {field: POSITION}, first: 5",
    "orderBy: [{field: STATE}, {field: POSITION, direction: DESC}], last: 4",
)


def _mutations(caller: str, chance: random.Random, *, few: bool) -> Iterator[str]:
    """Mutations that are made, and ones that meet what is hidden, above or not there."""
    home = _home(caller)
    box = "attributes: {box: {small: 5}}"
    yield f'createThing(input: {{parent: {{path: "{home}"}}, key: "new", name: "Lamp new", {box}}})'
    yield f'createThing(input: {{parent: {{path: "{home}"}}, key: "own", id: "T-b-extra", name: "x", {box}}})'
    yield f'createThing(input: {{key: "A", name: "x", {box}}})'
    yield f'createThing(input: {{key: "N", name: "x", {box}}})'
    for hidden in ("T/b", "T/b/extra", "T/aa", "H", "H/extra", "T/nowhere"):
        yield f'createThing(input: {{parent: {{path: "{hidden}"}}, key: "new", name: "x", {box}}})'
        by_id = f'id: "thing:{hidden.replace("/", "-")}"'
        yield f'createThing(input: {{parent: {{{by_id}}}, key: "new", name: "x", {box}}})'
        yield f'updateThing(input: {{node: {{{by_id}}}, name: "x"}})'
        yield f'moveThing(input: {{node: {{path: "{home}/n00"}}, to: {{parent: {{{by_id}}}}}}})'
        yield f'updateThing(input: {{node: {{path: "{hidden}"}}, name: "x", expectedRevision: 7}})'
        yield f'moveThing(input: {{node: {{path: "{home}/n00"}}, to: {{parent: {{path: "{hidden}"}}}}}})'
        yield f'moveThing(input: {{node: {{path: "{hidden}"}}, to: {{parent: {{path: "{home}"}}}}}}, dryRun: true)'
        yield f'deleteThing(input: {{node: {{path: "{hidden}"}}, policy: CASCADE}}, dryRun: true)'
        yield f'moveThing(input: {{node: {{path: "{home}/n01"}}, position: {{before: {{path: "{hidden}"}}}}}})'
        yield f'moveThing(input: {{node: {{path: "{hidden}"}}, key: "other"}})'
    for code in CODES:
        by = f'sku: "{code}"'
        yield f'updateThing(input: {{node: {{{by}}}, name: "x"}})'
        yield f"deleteThing(input: {{node: {{{by}}}, policy: CASCADE}}, dryRun: true)"
        yield f'createThing(input: {{parent: {{{by}}}, key: "new", name: "x", {box}}})'
        yield f'moveThing(input: {{node: {{sku: "{home}"}}, to: {{parent: {{{by}}}}}}})'
        yield f'moveThing(input: {{node: {{path: "{home}/n01"}}, position: {{before: {{{by}}}}}}})'
        yield f'updateThing(input: {{node: {{path: "{home}/n08"}}, attributes: {{box: {{{by}}}}}}})'
    yield f'updateThing(input: {{node: {{sku: "{home}"}}, name: "Lamp by code"}})'
    yield from _restores(home, chance, few=few)
    top = home.rsplit("/", 1)[0]
    yield f'moveThing(input: {{node: {{path: "{home}"}}, key: "extra"}}, dryRun: true)'
    yield f'moveThing(input: {{node: {{path: "{home}"}}, position: {{first: true}}}})'
    yield f'deleteThing(input: {{node: {{path: "{top}"}}, policy: REPARENT}})'
    yield f'moveThing(input: {{node: {{path: "{home}/n02"}}, key: "n99"}})'
    yield f'moveThing(input: {{node: {{path: "{home}/n03"}}, to: {{parent: {{path: "{home}/n04"}}}}}})'
    yield f'deleteThing(input: {{node: {{path: "{home}/n04"}}, policy: REFUSE}})'
    yield f'deleteThing(input: {{node: {{path: "{home}/n04"}}, policy: REPARENT}})'
    yield f'updateThing(input: {{node: {{path: "{home}/n05"}}, name: "Lamp five", {box}}}, idempotencyKey: "five")'
    yield f'moveThing(input: {{node: {{path: "{home}/n06"}}, position: {{after: {{path: "{home}/n07"}}}}}})'


def _restores(home: str, chance: random.Random, *, few: bool) -> Iterator[str]:
    """Restores of what is hidden, in the second world alone or nowhere, to such a place, and ones that are made."""
    gone, to = f"{home.replace('/', '-')}-n11", f'to: {{parent: {{path: "{home}"}}}}'
    ids = ["T-b-extra", "T-b-n03", "T-ac", "T-aa", "H-extra", "T-nowhere", "out", "away", "dead", "above-a", "back"]
    ids += ["lost-a", "lost-u", "sku-a", "sku-u", gone]
    for id in chance.sample(ids, 6) if few else ids:
        ways = [f'id: "thing:{id}"}}, dryRun: true', f'id: "thing:{id}"}}', f'id: "thing:{id}", {to}, key: "again"}}']
        for given in chance.sample(ways, 1) if few else ways:
            yield f"restoreThing(input: {{{given})"
    yield f'deleteThing(input: {{node: {{path: "{home}/n11"}}}})'
    known, places = f'id: "thing:{gone}"', ("T/b", "T/b/extra", "T/aa", "H/extra", "T/nowhere")
    for path in chance.sample(places, 2) if few else places:
        for by in (f'path: "{path}"', f'id: "thing:{path.replace("/", "-")}"'):
            yield f"restoreThing(input: {{{known}, to: {{parent: {{{by}}}}}}})"
    yield f'restoreThing(input: {{{known}, to: {{root: true}}, key: "A"}})'
    yield f'restoreThing(input: {{{known}, key: "n10"}})'
    yield f"restoreThing(input: {{{known}}}, dryRun: true)"
    yield f'restoreThing(input: {{{known}, {to}, key: "n12"}}, idempotencyKey: "restore")'
    yield f'restoreThing(input: {{{known}, {to}, key: "n12"}}, idempotencyKey: "restore")'
    yield f'moveThing(input: {{node: {{path: "{home}/n12"}}, key: "n11"}})'
    for id in ("lost-a", "lost-u"):
        yield f'restoreThing(input: {{id: "thing:{id}", {to}}})'


def _home(caller: str) -> str:
    """Where a caller may write, if she may anywhere."""
    homes = {"writes a part": "T/a", "writes below what is hidden": "T/b/mine", "writes a tree": "U"}
    return homes.get(caller, "T/a")


def _batches(home: str) -> Iterator[str]:
    """Several edits, which meet what is hidden, only in the second world, or nowhere, first, in between or last."""
    box = "attributes: {box: {small: 5}}"
    own = f'update: {{node: {{path: "{home}/n08"}}, name: "Lamp eight", add: [{{field: SMALL, amount: "3"}}]}}'
    new = f'create: {{parent: {{path: "{home}"}}, key: "batch", name: "Lamp batch", {box}}}'
    inside = f'create: {{parent: {{path: "{home}/batch"}}, key: "in", name: "Lamp in", {box}}}'
    move = f'move: {{node: {{path: "{home}/n09"}}, to: {{parent: {{path: "{home}/batch"}}}}}}'
    for hidden in ("T/b/extra", "T/b/n01", "H/extra", "T/nowhere"):
        for by in (f'path: "{hidden}"', f'id: "thing:{hidden.replace("/", "-")}"'):
            meets = (
                f'update: {{node: {{{by}}}, add: [{{field: SMALL, amount: "1"}}], expectedRevision: 1}}',
                f'create: {{parent: {{{by}}}, key: "batch", name: "x", {box}}}',
                f'move: {{node: {{path: "{home}/batch"}}, to: {{parent: {{{by}}}}}}}',
                f'move: {{node: {{path: "{home}/n10"}}, position: {{after: {{{by}}}}}}}',
                f"delete: {{node: {{{by}}}, policy: CASCADE}}",
            )
            for met in meets:
                yield _batch(new, met, move)
            yield _batch(own, new, inside, *meets[:1], move, *meets[1:2])
            yield _batch(*meets[:1], own, dry=True)
    for code in CODES:
        meets = (
            f'update: {{node: {{sku: "{code}"}}, name: "x"}}',
            f'move: {{node: {{sku: "{home}"}}, to: {{parent: {{sku: "{code}"}}}}}}',
        )
        yield _batch(new, *meets)
        yield _batch(*meets[:1], own, dry=True)
    yield _batch(own, f'create: {{parent: {{path: "{home}"}}, key: "own", id: "T-b-extra", name: "x", {box}}}')
    yield _batch(f'move: {{node: {{path: "{home}"}}, key: "extra"}}', own)
    yield _batch(own, new, inside, move, dry=True)
    yield _batch(own, new, inside, move, f'delete: {{node: {{path: "{home}/n10"}}}}')
    yield _batch(f'move: {{node: {{path: "{home}/batch"}}, key: "n10"}}', own, key="batch")
    yield _batch(f'move: {{node: {{path: "{home}/batch"}}, key: "n10"}}', own, key="batch")


def _batch(*edits: str, dry: bool = False, key: str = "") -> str:
    more = ", dryRun: true" * dry + (f', idempotencyKey: "{key}"' if key else "")
    return f"editThings(edits: [{', '.join(f'{{{edit}}}' for edit in edits)}]{more})"


def full_search(place: Place, visible: int) -> Counter[str]:
    """A caller whose part has this many nodes, all with one word, and more hidden ones with it than a search reads."""
    own = [_line(["U"], 0), *(_line(["U", f"k{number:04}"], 1, f"Lamp {number:04}") for number in range(visible - 1))]
    worlds = _worlds(place, [*own, _line(["H"], 0)], visible, {"reads U": ("read:thing/U",)})
    lines = [_line(["H", f"m{number:04}"], 1, "Lamp") for number in range(SEARCH_ITEMS + 50)]
    import_things(place.folder / f"hidden-{visible}.jsonl", worlds.store, lines)
    worlds.script.append(
        f"to the second: {len(lines):,} hidden nodes named Lamp; the caller may see {visible:,} named Lamp"
    )
    worlds.written()
    for first in (1, 10, 100):
        for text in ("lamp", "la", "lamp 0"):
            query = f'{{ searchThings(text: "{text}", first: {first}) {{ nodes {{ path }} complete }} }}'
            worlds.compare("reads U", query, "searches at the limits compared")
        near = f"{{ things({_near(50, first)}) {{ {_NEAREST} }} }}"
        worlds.compare("reads U", near, "searches at the limits compared")
    _end(worlds)
    return worlds.counts


RIGHTS = Part("rights", run, PROMISES)
