"""Change feeds, pages, searches and nearby nodes: reads of several requests, or of which only bounds are said."""

import random
from typing import Any

from tests.outside.model import folding, lists, values, words
from tests.outside.model.conditions import Word
from tests.outside.model.literals import arguments, literal
from tests.outside.model.promises import BEST, FEED, NEAR, PAGES, SEARCH
from tests.outside.model.session import HIERARCHIES, Session
from tests.outside.model.trees import LEVELS, Node, Trees

Step = dict[str, Any]
ENTRY = "event nodeId path level from to revision withDescendants"


def some_feed(chance: random.Random, trees: Trees) -> Step:
    """One of these reads at random."""
    kind = chance.choice(("feed", "feed", "walk", "walk", "search", "search", "near"))
    step: Step = {"do": kind, "server": chance.randrange(2), "seed": chance.randrange(2**31)}
    nodes = list(trees.nodes.values())
    paths = [trees.path(node) for node in nodes]
    if kind == "feed":
        step["tree"] = chance.choice(sorted(trees.logs) or ["nowhere"])
        inside = [path for path in paths if path.split("/")[0] == step["tree"]]
        if inside and chance.random() < 0.3:
            step["under"] = chance.choice(inside)
    elif kind == "walk":
        step |= {
            "kind": chance.choice(("roots", "children", "descendants", "history")),
            "size": chance.choice((1, 2, 3, 7)),
        }
        if step["kind"] != "roots":
            step["path"] = chance.choice(paths) if paths else "nowhere"
        step["with"] = lists.some_arguments(chance, trees, step["kind"], nodes)
    elif kind == "search":
        step["text"] = words.some_text(chance, nodes)
        step["languages"] = chance.choice((None, None, ["de"], ["fr", "de"]))
    else:
        at = (chance.choice(values.CHOICES["latitude"]), chance.choice((*values.CHOICES["longitude"], 359.5, -340.1)))
        step |= {"at": at, "kilometers": chance.choice((1, 50.5, 2000))}
    if kind in ("search", "near"):
        step["under"] = chance.choice([None, None, None, *paths])
        step["level"] = chance.choice((None, None, *LEVELS))
        step["first"] = chance.choice((100, 100, 1, 3))
    return step


def make_feed(session: Session, step: Step) -> None:
    """Make one of these reads."""
    session.steps.append(step)
    session.counts[f"{_NAMES[step['do']]} compared"] += 1
    _MAKE[step["do"]](session, step)


def ask(session: Session, step: Step, text: str, promise: tuple[str, str], server: int | None = None) -> Any:
    """The answer to a field, perhaps beside another one; raises Wrong for an error."""
    beside = random.Random(f"{step['seed']}{text}").choice(("", "", HIERARCHIES))
    server = step["server"] if server is None else server
    text = f"{{ read: {text} {beside} }}"
    session.shown.append(f"server {server}: {text}")
    got = session.servers[server % len(session.servers)].ask(text)
    if got.errors or got.json.get("data") is None:
        session.wrong(promise, "no error", got.json)
    return got.json["data"]["read"]


# Feeds


def _feed(session: Session, step: Step) -> None:
    """The whole log of a tree; then what is new since the last cursor, on whichever server."""
    trees = session.trees
    log = trees.logs.get(step["tree"], [])
    shown = len(session.shown)
    under = {"under": step["under"]} if "under" in step else {}
    last = session.cursors.get(step["tree"]) if not under else None
    for cursor, skipped in ((None, 0), last or (None, 0)):
        given = {"hierarchy": Word("THING"), "tree": step["tree"], **under, **({"after": cursor} if cursor else {})}
        expected = log[skipped:]
        got: list[Node] = []
        while True:
            text = f"changes{arguments(given)} {{ changes {{ {ENTRY} }} cursor hasMore }}"
            page = ask(session, step, text, FEED)
            got += page["changes"]
            given["after"] = page["cursor"]
            if not page["hasMore"]:
                break
        if under:
            expected = _limited(expected, step["under"])
        problem = _entries_differ(expected, got)
        if problem:
            session.wrong(FEED, *problem)
        if not under:
            session.cursors[step["tree"]] = (page["cursor"], len(log))
    del session.shown[shown:]


def _limited(log: list[Node], under: str) -> list[Node]:
    """ "Only changes of this subtree … and moves and deletions of an ancestor with its subtree" (schema)."""
    found: list[Node] = []
    for entry in log:
        own = entry["path"] if isinstance(entry["path"], tuple) else (entry["path"],)
        paths = [path for path in (*own, entry["from"], entry["to"]) if path]
        inside = any(path == under or path.startswith(under + "/") for path in paths)
        above = any(under.startswith(path + "/") for path in paths)
        if inside or (above and entry["withDescendants"]):
            found.append(entry)
    return found


def _entries_differ(expected: list[Node], got: list[Node]) -> tuple[Any, Any] | None:
    if len(expected) != len(got):
        return [(e["event"], e["path"]) for e in expected], [(e["event"], e["path"]) for e in got]
    for one, other in zip(expected, got, strict=True):
        paths = one["path"] if isinstance(one["path"], tuple) else (one["path"],)
        if {**one, "path": None} != {**other, "path": None} or other["path"] not in paths:
            return one, other
    return None


# Pages


def _walk(session: Session, step: Step) -> None:
    """A list by pages of some size, forwards and then backwards, a history forwards alone, on both servers in turns."""
    trees = session.trees
    node = trees.at(step["path"]) if "path" in step else None
    if (step["kind"] != "roots" and node is None) or lists.is_refused(step["kind"], node, step["with"]):
        return
    try:
        whole = [each["id"] for each in lists.whole_list(trees, step["kind"], node, step["with"])]
    except words.Open:
        return
    shown = len(session.shown)
    ways = [("first", "after"), ("last", "before")]
    for size, cursor in ways[:1] if step["kind"] == "history" else ways:
        problem = _pages(session, step, whole, size, cursor)
        if problem:
            session.wrong(PAGES, *problem)
    del session.shown[shown:]


def _pages(session: Session, step: Step, whole: list[str], size: str, cursor: str) -> tuple[Any, Any] | None:
    left, seen = list(whole), 0
    given: dict[str, Any] = {**step["with"], size: step["size"]}
    ahead, behind = ("hasNextPage", "hasPreviousPage") if size == "first" else ("hasPreviousPage", "hasNextPage")
    id = lists.ID[step["kind"]]
    picked = f"totalCount edges {{ cursor node {{ {id} }} }} "
    picked += "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    for number in range(len(whole) // step["size"] + 2):
        field = f"{'things' if step['kind'] == 'roots' else step['kind']}{arguments(given)} {{ {picked} }}"
        text = field if step["kind"] == "roots" else f"thing(path: {literal(step['path'])}) {{ page: {field} }}"
        got = ask(session, step, text, PAGES, number)
        got = got if step["kind"] == "roots" else got["page"]
        page = left[: step["size"]] if size == "first" else left[max(len(left) - step["size"], 0) :]
        left = left[step["size"] :] if size == "first" else left[: max(len(left) - step["size"], 0)]
        ids, cursors = [edge["node"]["id"] for edge in got["edges"]], [edge["cursor"] for edge in got["edges"]]
        info = got["pageInfo"]
        # "Whether there are items before this page; with `first`, whether `after` was given" (schema).
        expected = [
            page,
            len(whole),
            bool(left),
            cursor in given,
            *((cursors[0], cursors[-1]) if cursors else (None, None)),
        ]
        found = [ids, got["totalCount"], info[ahead], info[behind], info["startCursor"], info["endCursor"]]
        if expected != found:
            return expected, found
        seen += len(page)
        if not left:
            return None
        given[cursor] = cursors[-1] if size == "first" else cursors[0]
    return len(whole), seen


# Searches


def _search(session: Session, step: Step) -> None:
    """Hits that must be there, hits that may be, and their order; filters leave out what they say and nothing else."""
    trees = session.trees
    given = {"text": step["text"]} | ({"languages": step["languages"]} if step["languages"] else {})
    scope, more = _scope(trees, step)
    sent = {**given, "first": step["first"], **more}
    field = f"searchThings{arguments(sent)} {{ complete totalCount nodes {{ id }} }}"
    shown = len(session.shown)
    got = ask(session, step, field, SEARCH)
    ids = [node["id"] for node in got["nodes"]]
    asked = folding.clear_words(step["text"])
    must = {node["id"] for node in scope if all(words.begins(node, word, given) for word in asked)}
    must |= {node["id"] for node in scope if _is_certain(trees, node, given)}
    may = {node["id"] for node in scope if _may_match(trees, node, given)}
    if not set(ids) <= may or len(set(ids)) != len(ids) or len(ids) > step["first"]:
        session.wrong(SEARCH, [trees.path(trees.nodes[id]) for id in may], ids)
    if got["complete"] and len(ids) < step["first"] and not must <= set(ids):
        session.wrong(SEARCH, sorted(must), ids)
    if got.get("totalCount") is not None and not max(len(must), len(ids)) <= got["totalCount"] <= len(may):
        session.wrong(SEARCH, [len(must), len(may)], got)
    session.counts["searches complete" if got["complete"] else "searches not complete"] += 1
    ranks = [
        (rank, len(trees.keys(trees.nodes[id]))) for id in ids if (rank := _rank(trees.nodes[id], given)) is not None
    ]
    if ranks != sorted(ranks):
        session.wrong(BEST, sorted(ranks), [*zip(ranks, ids, strict=True)])
    del session.shown[shown:]


def _is_certain(trees: Trees, node: Node, given: Step) -> bool:
    try:
        return words.matches(trees, node, given)
    except words.Open:
        return False


def _rank(node: Node, given: Step) -> int | None:
    try:
        return words.rank(node, given)
    except words.Open:
        return None


def _may_match(trees: Trees, node: Node, given: Step) -> bool:
    """Whether a node has the words somewhere in its texts, all but the first one perhaps in those of its ancestors."""
    first, *others = folding.clear_words(given["text"]) or [[]]
    lineage = [node, *trees.ancestors(node)]
    return words.contains(node, first) and all(any(words.contains(one, word) for one in lineage) for word in others)


def _scope(trees: Trees, step: Step) -> tuple[list[Node], dict[str, Any]]:
    """The nodes in question, and the arguments that say so."""
    more: dict[str, Any] = {"level": [Word(step["level"])]} if step["level"] else {}
    scope = list(trees.nodes.values())
    top = trees.at(step["under"]) if step["under"] else None
    if top:
        more["under"] = step["under"]
        scope = trees.descendants(top["id"])
    return [node for node in scope if step["level"] in (None, node["level"])], more


def _near(session: Session, step: Step) -> None:
    """Every node below a box, or every root, within the radius, by distance: boxes have coordinates."""
    trees = session.trees
    scope, more = _scope(trees, step | {"level": step["level"] and "BOX"})
    under = more.pop("under", None)
    top = trees.at(under) if under else None
    if top is None or top["level"] != "BOX":
        under = None
        scope, more = [node for node in trees.nodes.values() if len(trees.keys(node)) == 1], {}
    near = {**dict(zip(("latitude", "longitude"), step["at"], strict=True)), "kilometers": step["kilometers"]}
    given = {"where": {"near": near}, "orderBy": [{"field": Word("DISTANCE")}], "first": step["first"], **more}
    field = f"{arguments(given)} {{ totalCount edges {{ kilometers node {{ id }} }} }}"
    text = f"things{field}" if under is None else f"thing(path: {literal(under)}) {{ descendants{field} }}"
    shown = len(session.shown)
    got = ask(session, step, text, NEAR)
    got = got if under is None else got["descendants"]
    far: list[tuple[float, str]] = []
    for node in scope:
        place = (node["values"].get("latitude"), node["values"].get("longitude"))
        if None not in place:
            far.append((round(folding.kilometers(place, step["at"]), 6), node["id"]))
    inside = sorted(each for each in far if each[0] <= step["kilometers"])
    expected = inside[: step["first"]]
    found = [(edge["kilometers"], edge["node"]["id"]) for edge in got["edges"]]
    same = len(found) == len(expected) and all(abs(a[0] - b[0]) < 1e-3 for a, b in zip(expected, found, strict=True))
    distances = [distance for distance, _ in found]
    is_wrong = not same or {id for _, id in found} - {id for _, id in far} or distances != sorted(distances)
    if is_wrong or got["totalCount"] != len(inside):
        session.wrong(NEAR, expected, got)
    del session.shown[shown:]


_MAKE = {"feed": _feed, "walk": _walk, "search": _search, "near": _near}
_NAMES = {"feed": "feeds", "walk": "lists by pages", "search": "searches", "near": "nearby lists"}
