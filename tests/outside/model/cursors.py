"""Cursors: two of a list in one request, and one that is used again after the list has changed."""

import random
from dataclasses import dataclass
from typing import Any

from tests.outside.model import lists
from tests.outside.model.feeds import ask
from tests.outside.model.literals import arguments, literal
from tests.outside.model.promises import MOVED_CURSOR, PAGES, VALID
from tests.outside.model.session import Session
from tests.outside.model.trees import Node, Trees
from tests.outside.model.words import Open

Step = dict[str, Any]
MAX_KEPT = 20
WINDOWS = 6


@dataclass(frozen=True)
class Kept:
    """The cursors of a list by the ids of its nodes, in its order, and how these nodes were."""

    step: Step
    owner: str | None
    cursors: dict[Any, str]
    states: dict[Any, Any]
    paths: dict[Any, str]


def some_cursors(chance: random.Random, trees: Trees) -> Step:
    """A list with two of its cursors, or a cursor that an earlier step has kept."""
    step: Step = {"do": "again", "server": chance.randrange(2), "seed": chance.randrange(2**31)}
    nodes = list(trees.nodes.values())
    if not nodes or chance.random() < 0.5:
        return step
    kind = chance.choice(("roots", "children", "descendants", "history"))
    step |= {"do": "window", "kind": kind, "path": trees.path(chance.choice(nodes))}
    return {**step, "with": lists.some_arguments(chance, trees, kind, nodes)}


def make_cursors(session: Session, step: Step) -> None:
    session.steps.append(step)
    shown = len(session.shown)
    _MAKE[step["do"]](session, step, random.Random(step["seed"]))
    del session.shown[shown:]


def _window(session: Session, step: Step, chance: random.Random) -> None:
    """ "`first` and `after` page forwards, `last` and `before` backwards": a part of what is between two cursors."""
    trees = session.trees
    owner = None if step["kind"] == "roots" else trees.at(step["path"])
    if (step["kind"] != "roots" and owner is None) or lists.is_refused(step["kind"], owner, step["with"]):
        return
    try:
        whole = lists.whole_list(trees, step["kind"], owner, step["with"])
    except Open:
        return
    (page,) = _pages(session, step, owner, [{}], PAGES)
    edges = page["edges"]
    if [edge["node"]["id"] for edge in edges] != [node["id"] for node in whole]:
        session.wrong(PAGES, [node["id"] for node in whole], edges)
    if not edges:
        return
    session.counts["windows of lists compared"] += WINDOWS
    cursors = [edge["cursor"] for edge in edges]
    is_history = step["kind"] == "history"  # which goes forwards alone
    windows = [_some_window(chance, cursors, backwards=not is_history) for _ in range(WINDOWS)]
    for given, got in zip(windows, _pages(session, step, owner, windows, PAGES), strict=True):
        expected = _expected([node["id"] for node in whole], cursors, given)
        info = got["pageInfo"]
        found = {"ids": [edge["node"]["id"] for edge in got["edges"]], "totalCount": got["totalCount"], **info}
        if expected != {name: found[name] for name in expected}:
            session.wrong(PAGES, {"window": given, **expected}, found)
    states = _states(trees, step, owner, whole)
    paths = {} if is_history else {node["id"]: trees.path(node) for node in whole}
    kept = Kept(step, owner["id"] if owner else None, dict(zip(states, cursors, strict=True)), states, paths)
    session.kept = [*session.kept[-MAX_KEPT:], kept]


def _some_window(chance: random.Random, cursors: list[str], *, backwards: bool) -> dict[str, Any]:
    low, high = sorted(chance.choices(range(-1, len(cursors) + 1), k=2))
    given: dict[str, Any] = {"after": cursors[low]} if 0 <= low < len(cursors) else {}
    given |= {"before": cursors[high]} if backwards and low < high < len(cursors) else {}
    sizes = [("first", 1), ("first", 3), ("last", 1), ("last", 3), ("last", len(cursors))]
    size, count = chance.choice(sizes if backwards else sizes[:2])
    return {**given, size: count}


def _expected(ids: list[str], cursors: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """What is between the cursors, its first or last; and whether there is more, as on the other side of a cursor."""
    inside = ids[: cursors.index(given["before"])] if "before" in given else ids
    inside = inside[cursors.index(given["after"]) + 1 :] if "after" in given else inside
    found: dict[str, Any] = {"ids": inside[: given.get("first")], "totalCount": len(ids)}
    if "last" in given:
        found["ids"] = inside[max(len(inside) - given["last"], 0) :]
    if "first" in given:
        found["hasNextPage"] = "before" in given or len(found["ids"]) < len(inside)
    if "last" in given:
        found["hasPreviousPage"] = "after" in given or len(found["ids"]) < len(inside)
    return found


def _again(session: Session, step: Step, chance: random.Random) -> None:
    """A kept cursor still divides the list: what has not changed since is on the side on which it was."""
    trees = session.trees
    if not session.kept:
        return
    kept = chance.choice(session.kept)
    owner = trees.nodes.get(kept.owner) if kept.owner else None
    if kept.owner and owner is None:
        return
    try:
        found = lists.whole_list(trees, kept.step["kind"], owner, kept.step["with"])
    except Open:
        return
    session.counts["cursors used again"] += 1
    states, whole = _states(trees, kept.step, owner, found), [node["id"] for node in found]
    same = {id for id, state in states.items() if kept.states.get(id) == state}
    ids = list(kept.cursors)
    place = ids.index(chance.choice([id for id in ids if id not in same] or ids))
    before, after = same & {*ids[: place + 1]}, same & {*ids[place + 1 :]}
    if lists.is_by_position(kept.step["kind"], kept.step["with"]):
        _again_by_position(session, {**kept.step, **step}, owner, kept, found)
        return
    (got,) = _pages(session, {**kept.step, **step}, owner, [{"after": kept.cursors[ids[place]]}], VALID)
    found = [edge["node"]["id"] for edge in got["edges"]]
    if found != whole[len(whole) - len(found) :] or before & {*found} or after - {*found}:
        session.wrong(VALID, {"before it": [*before], "after it": [*after], "list": whole}, found)


def _again_by_position(session: Session, step: Step, owner: Node | None, kept: Kept, found: list[Node]) -> None:
    """ "A cursor in this order is the path of its node. It goes on from wherever the node is now; once the node was
    moved or deleted, or has left the list, it is rejected with `BAD_CURSOR`" (lists.md).
    """
    if len(lists.several(step["with"]["orderBy"])) > 1:
        return  # then it has values of the node, too
    id = random.Random(step["seed"]).choice(list(kept.cursors))
    ids = [node["id"] for node in found]
    node = session.trees.nodes.get(id)
    here = [each["id"] for each in found if session.trees.path(each) == kept.paths[id]]
    given = arguments({**step["with"], "after": kept.cursors[id]})
    field = f"{'things' if owner is None else step['kind']}{given} {{ nodes {{ id }} }}"
    text = field if owner is None else f"thing(path: {literal(session.trees.path(owner))}) {{ {field} }}"
    if here and here != [id]:
        return  # another node has come to the path
    session.shown.append(text)
    reply = session.server(step).ask(f"{{ read: {text} }}")
    if not here:
        if reply.codes != ["BAD_CURSOR"]:
            session.wrong(MOVED_CURSOR, "BAD_CURSOR", [node, reply.json])
        return
    got = reply.data["read"]
    got = got if owner is None else got[step["kind"]]
    if [each["id"] for each in got["nodes"]] != ids[ids.index(id) + 1 :]:
        session.wrong(MOVED_CURSOR, ids[ids.index(id) + 1 :], got)


def _pages(
    session: Session, step: Step, owner: Node | None, windows: list[dict[str, Any]], promise: tuple[str, str]
) -> list[Any]:
    """These parts of a list; those of a node's list in one request."""
    id = lists.ID[step["kind"]]
    picked = f"{{ totalCount pageInfo {{ hasNextPage hasPreviousPage }} edges {{ cursor node {{ {id} }} }} }}"
    given = [arguments({**step["with"], **window}) for window in windows]
    if owner is None:
        return [ask(session, step, f"things{each} {picked}", promise) for each in given]
    fields = " ".join(f"p{number}: {step['kind']}{each} {picked}" for number, each in enumerate(given))
    got = ask(session, step, f"thing(path: {literal(session.trees.path(owner))}) {{ {fields} }}", promise)
    return list(got.values())


def _states(trees: Trees, step: Step, owner: Node | None, found: list[Node]) -> dict[Any, Any]:
    """By id; a revision never changes."""
    if step["kind"] == "history":
        return {each["id"]: None for each in found}
    return {each["id"]: _state(trees, step, owner, each) for each in found}


def _state(trees: Trees, step: Step, owner: Node | None, node: Node) -> Any:
    """Everything that the place of a node in a list can depend on, but the other nodes of it."""
    above = len(trees.keys(owner)) if owner else 0
    changes = sum(entry["nodeId"] == node["id"] for log in trees.logs.values() for entry in log)
    beside = [each["revision"] for each in (*trees.ancestors(node), *trees.children(node["id"]))]
    return node["revision"], trees.keys(node)[above:], len(trees.children(node["id"])), changes, beside


_MAKE = {"window": _window, "again": _again}
