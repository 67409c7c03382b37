"""Reads: fields of Query with arguments at random, and the answer that each must have."""

import random
from dataclasses import dataclass
from typing import Any

from tests.outside.model import codes, facets, fields, lists, values
from tests.outside.model.conditions import Word
from tests.outside.model.fields import (
    Failure,
    Field,
    answer,
    connection,
    difference,
    some_fields,
    some_tree_fields,
    text_of,
)
from tests.outside.model.literals import arguments, literal
from tests.outside.model.promises import (
    BY_CODE,
    BY_ID,
    BY_PATH,
    CHILDREN,
    CODED_ENTITIES,
    DELETED,
    DESCENDANTS,
    ENTITIES,
    FILTERED,
    REDIRECT,
    REJECTED,
    ROOTS,
    SORTED,
    Promise,
)
from tests.outside.model.trees import LEVELS, Trees

Read = dict[str, Any]
MOST_ALIASES = 20  # "aliases | 30" (security.md), of which each look-up of several and the field of an error is one
KINDS = ("thing", "thing", "id", "level", "paths", "ids", "roots", "entities", "old", "deleted", "refused",
         "code", "code", "coded entities", *("list",) * 4)  # fmt: skip


@dataclass
class Expected:
    """A field with its answer: data, in which failures have their places, and codes of errors at other places."""

    text: str
    data: Any
    codes: frozenset[str] = frozenset()
    promise: Promise = BY_ID
    codes_asked: int = 0


def some_read(chance: random.Random, trees: Trees, ids: dict[int, str]) -> Read:
    """A read with its arguments."""
    read: Read = {"do": "read", "server": chance.randrange(2)}
    kind = chance.choice(KINDS)
    paths = [trees.path(node) for node in trees.nodes.values()]
    read["read"] = kind
    if kind == "old":
        former = sorted(trees.former)
        read["paths"] = chance.sample(former, min(len(former), 5)) or ["nowhere"]
    elif kind in ("thing", "level", "list", "refused"):
        read["path"] = chance.choice([*paths * 3, *trees.former, "nowhere"])
    elif kind in ("id", "deleted"):
        read["id"] = _some_id(chance, trees)
    elif kind == "ids":
        read["ids"] = [_some_id(chance, trees) for _ in range(chance.choice((0, 1, 3, 20)))]
    elif kind in ("paths", "entities"):
        read["paths"] = [
            chance.choice([*paths * 3, *trees.former, "nowhere"]) for _ in range(chance.choice((1, 3, 20)))
        ]
    elif kind in ("code", "coded entities"):
        read["codes"] = codes.some_codes(chance, trees)
        if kind == "code":
            del read["codes"][1:]
            read["level"] = chance.choice(("THING", "THING", *LEVELS))
    if kind in ("level", "entities", "coded entities"):
        read["level"] = chance.choice(LEVELS)
    if kind in ("roots", "list"):
        read["kind"] = "roots" if kind == "roots" else chance.choice(("children", "descendants"))
        read["with"] = lists.some_arguments(chance, trees, read["kind"], list(trees.nodes.values()))
        read |= fields.some_parts(chance, read["with"])
        if chance.random() < 0.4:
            read["with"][chance.choice(("first", "last"))] = chance.choice((0, 1, 2, 5, 100))
    elif kind == "refused":
        read["kind"] = chance.choice(("roots", "children", "descendants"))
        read["with"] = lists.refused_arguments(chance, read["kind"])
        if chance.random() < 0.2:
            read |= {"with": {}, "refused": facets.refused_facets(chance)}
    if kind in ("id", "ids") and chance.random() < 0.3:
        read["pick"] = some_tree_fields(chance)
        return read
    read["pick"] = some_fields(chance, trees, 0 if kind in ("old", "deleted") else 2)
    while str(read["pick"]).count("'as':") > MOST_ALIASES:
        read["pick"] = some_fields(chance, trees, 2)
    return read


def _some_id(chance: random.Random, trees: Trees) -> Any:
    """An id by the step that created its node, so that a script can be made again on another store."""
    pool = [*trees.nodes.values()] * 3 + [*trees.deleted.values()]
    if not pool or chance.random() < 0.05:
        return "thing:nobody"
    return {"of": chance.choice(pool)["step"]}


def real_id(id: Any, ids: dict[int, str]) -> str:
    return ids.get(id["of"], f"thing:gone-{id['of']}") if isinstance(id, dict) else id


def expected(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    """The field of a read, and what it must be."""
    return _READS[read["read"]](trees, read, ids)


def _led(trees: Trees, path: str, pick: list[Field]) -> Any:
    """The answer at a path, current or former."""
    node = trees.led_to(path)
    return answer(trees, node, pick) if node else None


def _thing(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    text = f"thing(path: {literal(read['path'])}) {{ {text_of(read['pick'])} }}"
    return Expected(text, _led(trees, read["path"], read["pick"]), promise=BY_PATH)


def _old(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    answers = [_led(trees, path, read["pick"]) for path in read["paths"]]
    text = f"thingsByPath(paths: {literal(read['paths'])}) {{ {text_of(read['pick'])} }}"
    return Expected(text, answers, promise=REDIRECT)


def _id(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    id = real_id(read["id"], ids)
    node = trees.nodes.get(id)
    data = answer(trees, node, read["pick"]) if node else None
    if all("on" in one for one in read["pick"]):
        return Expected(f"node(id: {literal(id)}) {{ {text_of(read['pick'])} }}", data, promise=BY_ID)
    if len(read["pick"]) % 2:
        return Expected(f"thing(id: {literal(id)}) {{ {text_of(read['pick'])} }}", data, promise=BY_ID)
    return Expected(f"node(id: {literal(id)}) {{ ... on Thing {{ {text_of(read['pick'])} }} }}", data, promise=BY_ID)


def _level(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    led = trees.led_to(read["path"])
    text = f"{read['level'].lower()}(path: {literal(read['path'])}) {{ {text_of(_only(read))} }}"
    if led and led["level"] != read["level"]:
        return Expected(text, None, frozenset({"WRONG_LEVEL"}), BY_PATH)
    return Expected(text, _led(trees, read["path"], _only(read)), promise=BY_PATH)


def _only(read: Read) -> list[Field]:
    """The selection without attributes of other levels, which GraphQL does not allow on an object type."""
    foreign = set(values.KINDS) - set(values.ATTRIBUTES[read["level"]])
    foreign |= {"label"} if read["level"] != "BOX" else set()
    return [field for field in read["pick"] if field["field"] not in foreign] or [{"field": "id"}]


def _ids(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    asked = [real_id(id, ids) for id in read["ids"]]
    data = [answer(trees, trees.nodes[id], read["pick"]) if id in trees.nodes else None for id in asked]
    picked = text_of(read["pick"])
    if not all("on" in one for one in read["pick"]):
        picked = f"... on Thing {{ {picked} }}"
    return Expected(f"nodes(ids: {literal(asked)}) {{ {picked} }}", data, promise=BY_ID)


def _roots(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    one = {**read, "field": "roots", "edges": False}
    nodes = f"nodes {{ {text_of(read['pick'])} }}"
    text = f"things{arguments(read['with'])} {{ {fields.of_list(one, nodes)} }}"
    return _sorted(trees, read, Expected(text, connection(trees, "roots", None, one), promise=ROOTS))


def _list(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    one = {**read, "field": read["kind"]}
    text = f"thing(path: {literal(read['path'])}) {{ {text_of([one])} }}"
    data = _led(trees, read["path"], [one])
    promise = CHILDREN if read["kind"] == "children" else DESCENDANTS
    return _sorted(trees, read, Expected(text, data, promise=promise))


def _refused(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    """Arguments that a list does not take: an error of its field."""
    counted = f"facets{arguments(read['refused'])} {{ field }}" if "refused" in read else ""
    text = f"{read['kind']}{arguments(read['with'])} {{ totalCount {counted} }}"
    refused = Failure("BAD_USER_INPUT", ("facets",) if counted else ())
    if read["kind"] == "roots":
        return Expected(f"things{text.removeprefix('roots')}", refused, promise=REJECTED)
    text = f"thing(path: {literal(read['path'])}) {{ {text} }}"
    if trees.led_to(read["path"]) is None:
        return Expected(text, None, promise=BY_PATH)
    return Expected(text, {read["kind"]: refused}, promise=REJECTED)


def _sorted(trees: Trees, read: Read, found: Expected) -> Expected:
    given = read["with"]
    if "orderBy" in given:
        found.promise = SORTED
    elif "where" in given:
        found.promise = FILTERED
    return found


def _entities(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    """ "An entity that does not exist is null without an error", `WRONG_LEVEL` for a node of another level."""
    named = [
        {"__typename": ("Thing", read["level"].title())[n % 2], "path": path} for n, path in enumerate(read["paths"])
    ]
    data: list[Any] = []
    codes: set[str] = set()
    for one in named:
        led = trees.led_to(one["path"])
        is_wrong = led is not None and one["__typename"] not in ("Thing", led["level"].title())
        if is_wrong:
            codes.add("WRONG_LEVEL")
        data.append(None if is_wrong else _led(trees, one["path"], read["pick"]))
    representations = [{name: one[name] for name in one} for one in named]
    text = f"_entities(representations: {literal(representations)}) {{ ... on Thing {{ {text_of(read['pick'])} }} }}"
    return Expected(text, data, frozenset(codes), ENTITIES)


def _found(trees: Trees, code: str, level: str, pick: list[Field]) -> tuple[Any, str | None]:
    """What is found by a unique value as a node of a level, or of any one; and the code of its error."""
    if len(code) > codes.LONGEST:
        return None, "BAD_USER_INPUT"
    node = next(iter(trees.with_sku(code)), None)
    if node and level not in ("THING", node["level"]):
        return None, "WRONG_LEVEL"
    return (answer(trees, node, pick) if node else None), None


def _code(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    """The node that has a unique value; null "whether a node has it or not"."""
    (code,), level = read["codes"], read["level"]
    pick = read["pick"] if level == "THING" else _only(read)
    data, error = _found(trees, code, level, pick)
    text = f"{level.lower()}(sku: {literal(code)}) {{ {text_of(pick)} }}"
    return Expected(text, data, frozenset({error} if error else ()), BY_CODE, 1)


def _coded_entities(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    levels = [("THING", read["level"])[place % 2] for place in range(len(read["codes"]))]
    found = [_found(trees, code, level, read["pick"]) for code, level in zip(read["codes"], levels, strict=True)]
    pairs = zip(levels, read["codes"], strict=True)
    representations = [{"__typename": level.title(), "sku": code} for level, code in pairs]
    text = f"_entities(representations: {literal(representations)}) {{ ... on Thing {{ {text_of(read['pick'])} }} }}"
    errors = frozenset(error for _, error in found if error)
    return Expected(text, [data for data, _ in found], errors, CODED_ENTITIES, len(found))


def _deleted(trees: Trees, read: Read, ids: dict[int, str]) -> Expected:
    id = real_id(read["id"], ids)
    gone = trees.deleted.get(id)
    text = (
        f"deletedNode(id: {literal(id)}) {{ nodeId path level deletedAt deletedBy descendantCount "
        "lastRevision { revision name } history { totalCount nodes { revision name changedAt } } }"
    )
    data: Any = None
    if gone:
        past = gone["history"]
        data = {
            "nodeId": id,
            "path": gone["path"],
            "level": gone["level"],
            "deletedAt": gone["deletedAt"],
            "deletedBy": None,
            "descendantCount": gone["below"],
            "lastRevision": {part: past[-1][part] for part in ("revision", "name")},
            "history": {
                "totalCount": len(past),
                "nodes": [{"revision": k["revision"], "name": k["name"], "changedAt": k["at"]} for k in reversed(past)],
            },
        }
    return Expected(text, data, promise=DELETED)


_READS = {
    "thing": _thing, "id": _id, "level": _level, "paths": _old, "old": _old, "ids": _ids, "roots": _roots,
    "list": _list, "refused": _refused, "entities": _entities, "deleted": _deleted, "code": _code,
    "coded entities": _coded_entities,
}  # fmt: skip

__all__ = ["Expected", "Word", "difference", "expected", "some_read"]
