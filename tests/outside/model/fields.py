"""Fields of nodes and revisions: random selections, and what each has to be by the model.

A selection is a list of fields, each a dictionary with `field`, `as` (its name in the response), `with` (arguments) and
`pick` (the selection of what it leads to).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.outside.model import lists, values
from tests.outside.model.conditions import Word, distance, name_in
from tests.outside.model.facets import SELECTED, Text, facets, some_facets
from tests.outside.model.literals import arguments
from tests.outside.model.trees import LEVELS, Node, Trees
from tests.outside.model.words import Open

Field = dict[str, Any]
PLAIN = ("id", "path", "key", "name", "level", "levelName", "depth", "revision", "updatedAt", "changedBy", "__typename")
TREE = ("id", "path", "key", "name", "levelName", "depth", "childCount", "__typename")
REVISION = ("revision", "changedAt", "changedBy", "name", "level")
RELATIONS = ("parent", "ancestors")
LISTS = ("children", "descendants")
NAMES = {"language", "text"}
METER = 0.001  # of a kilometer
SUBFIELDS = {
    "money": "{ amount currency }",
    "localized": "{ texts { language text } }",
    "parcel": "{ code size corner { x y } days price { amount currency } }",
}


class OneOf(tuple[Any, ...]):
    """Any of these answers is right."""


class Kilometers(float):
    """A distance, which is computed in another way."""

    def is_near(self, got: Any) -> bool:
        return isinstance(got, float) and abs(self - got) < METER


class Anything:
    """An answer of which nothing is said."""


@dataclass(frozen=True)
class Failure:
    """Null, because of an error with this code at its place, or at a place below it."""

    code: str
    below: tuple[str, ...] = ()


# Random selections


def some_fields(chance: random.Random, trees: Trees, deeper: int, *, lists_too: bool = True) -> list[Field]:
    """A selection of fields of a node of any level."""
    found: list[Field] = [{"field": name} for name in chance.sample(PLAIN, chance.choice((1, 2, 3, 11)))]
    if chance.random() < 0.4:
        found += [{"field": name} for name in ("childCount", "descendantCount") if chance.random() < 0.7]
        found += [
            {"field": name, "as": f"{name}{level}", "with": {"level": Word(level)}}
            for name in ("childCount", "descendantCount")
            for level in LEVELS
            if chance.random() < 0.3
        ]
        several = [Word(level) for level in chance.choices(LEVELS, k=3)]
        found.append({"field": "descendantCount", "as": "countOfSeveral", "with": {"level": several}})
    if chance.random() < 0.3:
        found += [
            {"field": "name", "as": "named", "with": {"languages": chance.choice(values.ASKED)}},
            {"field": "nameLanguage", "with": {"languages": chance.choice(values.ASKED)}},
            {"field": "names"},
        ]
    if chance.random() < 0.2:
        found += some_tree_fields(chance)
    if chance.random() < 0.4:
        found += [{"field": name} for name in chance.sample(sorted(values.KINDS), chance.choice((1, 3, 29)))]
        found += [{"field": "label"}] if chance.random() < 0.3 else []
    if deeper:
        for name in RELATIONS:
            if chance.random() < 0.25:
                found.append({"field": name, "pick": some_fields(chance, trees, deeper - 1, lists_too=False)})
        if lists_too:
            found += _some_lists(chance, trees, deeper)
    return found


def _some_lists(chance: random.Random, trees: Trees, deeper: int) -> list[Field]:
    found: list[Field] = []
    for name in LISTS:
        if chance.random() < 0.2:
            nodes = list(trees.nodes.values())
            given = lists.some_arguments(chance, trees, name, nodes) if chance.random() < 0.6 else {}
            if chance.random() < 0.4:
                given[chance.choice(("first", "last"))] = chance.choice((0, 1, 2, 5, 100))
            pick = some_fields(chance, trees, deeper - 1)
            found.append({"field": name, "with": given, "pick": pick, **some_parts(chance, given)})
    if chance.random() < 0.1:
        given = {"first": chance.choice((0, 1, 2, 100))} if chance.random() < 0.6 else {}
        found.append({"field": "history", "with": given, "pick": some_revision_fields(chance)})
    if chance.random() < 0.1:
        found.append(
            {"field": "atRevision", "with": {"n": chance.choice((1, 1, 2, 9))}, "pick": [{"field": "revision"}]}
        )
    return found


def some_parts(chance: random.Random, given: dict[str, Any]) -> Field:
    """What is asked of a list beside its nodes: edges in place of them, facets, also twice."""
    asked = [some_facets(chance, given.get("where", {})) for _ in range(chance.choice((0, 0, 0, 1, 1, 1, 2)))]
    return {"edges": chance.random() < 0.3, "facets": asked}


def some_tree_fields(chance: random.Random) -> list[Field]:
    """Fields of the interface of all hierarchies, `TreeNode`."""
    found: list[Field] = [{"field": name} for name in chance.sample(TREE, chance.choice((1, 3, 8)))]
    if chance.random() < 0.5:
        found.append({"field": "name", "as": "treeName", "with": {"languages": chance.choice(values.ASKED)}})
    for name in RELATIONS:
        if chance.random() < 0.5:
            pick = [{"field": name} for name in chance.sample(TREE, chance.choice((1, 2, 8)))]
            found.append({"field": name, "as": f"tree{name.title()}", "pick": pick})
    return [{**field, "on": "TreeNode"} for field in found]


def some_revision_fields(chance: random.Random) -> list[Field]:
    found: list[Field] = [{"field": name} for name in chance.sample(REVISION, chance.choice((1, 5)))]
    if chance.random() < 0.5:
        found += [{"field": name} for name in chance.sample(sorted(values.KINDS), chance.choice((1, 3, 29)))]
        found.append({"field": "names"})
    return found


# Documents


def text_of(selection: list[Field]) -> str:
    """A selection of a node as it is written; fields of one level stand in fragments."""
    parts: list[str] = []
    inside: dict[str, list[str]] = {level: [] for level in LEVELS}
    for field in selection:
        written = _written(field)
        owners = [level for level in LEVELS if field["field"] in values.ATTRIBUTES[level]]
        if field["field"] == "label":
            owners = ["BOX"]
        if "on" in field:
            parts.append(f"... on {field['on']} {{ {written} }}")
        elif len(owners) == 1:
            inside[owners[0]].append(written)
        else:
            parts.append(written)
    for level, fields in inside.items():
        if fields:
            parts.append(f"... on {level.title()} {{ {' '.join(fields)} }}")
    return " ".join(parts)


def _written(field: Field) -> str:
    name = field["field"]
    alias = f"{field['as']}: " if "as" in field else ""
    head = f"{alias}{name}{arguments(field.get('with', {}))}"
    if name == "names":
        return f"{head} {{ language text }}"
    if name in values.KINDS:
        return f"{head} {SUBFIELDS.get(values.KINDS[name].strip('[]'), '')}".strip()
    if name == "atRevision":
        return f"{head} {{ {' '.join(map(_written, field['pick']))} }}"
    if name == "history":
        nodes = f"nodes {{ {' '.join(map(_written, field['pick']))} }}"
        return f"{head} {{ totalCount pageInfo {{ hasNextPage hasPreviousPage }} {nodes} }}"
    if name in (*LISTS, "roots"):
        nodes = f"nodes {{ {text_of(field['pick'])} }}"
        nodes = f"edges {{ kilometers node {{ {text_of(field['pick'])} }} }}" if field.get("edges") else nodes
        return f"{head} {{ {of_list(field, nodes)} }}"
    return f"{head} {{ {text_of(field['pick'])} }}" if "pick" in field else head


def of_list(field: Field, nodes: str) -> str:
    """The selection of a list, with its nodes as they are written."""
    asked = [
        f"{name}facets{arguments(one)} {SELECTED}"
        for name, one in zip(("", "again: "), field.get("facets", ()), strict=False)
    ]
    return " ".join(("totalCount pageInfo { hasNextPage hasPreviousPage }", nodes, *asked))


# Expectations


def answer(trees: Trees, node: Node, selection: list[Field]) -> dict[str, Any]:
    """What a selection of a node has to be."""
    found: dict[str, Any] = {}
    for field in selection:
        if _has(node["level"], field["field"]):
            found[str(field.get("as") or field["field"])] = _value(trees, node, field)
    return found


def _has(level: str, name: str) -> bool:
    return (name not in values.KINDS or name in values.ATTRIBUTES[level]) and (name != "label" or level == "BOX")


def _value(trees: Trees, node: Node, field: Field) -> Any:
    name, given = field["field"], field.get("with", {})
    if name in _OWN:
        return _OWN[name](trees, node, given)
    if name in values.KINDS:
        return attribute(node["values"], name)
    if name == "label":
        return label(node)
    pick = field["pick"]
    if name == "parent":
        above = trees.ancestors(node)
        return answer(trees, above[-1], pick) if above else None
    if name == "ancestors":
        return [answer(trees, above, pick) for above in trees.ancestors(node)]
    if name == "history":
        page, info = _page(list(reversed(node["history"])), given)
        nodes = [revision_answer(node, kept, pick) for kept in page]
        return {"totalCount": len(node["history"]), "pageInfo": info, "nodes": nodes}
    if name == "atRevision":
        return next(
            (revision_answer(node, kept, pick) for kept in node["history"] if kept["revision"] == given["n"]), None
        )
    return connection(trees, name, node, field)


def connection(trees: Trees, kind: str, node: Node | None, field: Field) -> dict[str, Any] | Failure | Anything:
    """A list without cursors: whole, or its first or last nodes; a failure if no node in it can meet its condition."""
    try:
        return _connection(trees, kind, node, field)
    except Open:
        return Anything()


def _connection(trees: Trees, kind: str, node: Node | None, field: Field) -> dict[str, Any] | Failure:
    given = field.get("with", {})
    if lists.is_refused(kind, node, given):
        return Failure("BAD_USER_INPUT")
    whole = lists.whole_list(trees, kind, node, given)
    page, info = _page(whole, given)
    answers = [answer(trees, each, field["pick"]) for each in page]
    shown: dict[str, Any] = {"nodes": answers}
    if field.get("edges"):
        shown = {"edges": [{"node": each} for each in answers]}
        for edge, each in zip(shown["edges"], page, strict=True):
            # "Distance from the point of the `near` that stands directly in `where`; null without one" (schema).
            near = given.get("where", {}).get("near")
            edge["kilometers"] = near and Kilometers(distance(each, near) or 0.0)
    asked = zip(("facets", "again"), field.get("facets", ()), strict=False)
    counted = {name: facets(trees, kind, node, given, one) for name, one in asked}
    return {"totalCount": len(whole), "pageInfo": info, **shown, **counted}


def _page(whole: list[Node], given: Node) -> tuple[list[Node], dict[str, bool]]:
    """The first or the last of a list, and whether there are more."""
    page = whole[: given["first"]] if "first" in given else whole
    if "last" in given:
        page = whole[max(len(whole) - given["last"], 0) :]
    is_part = len(page) < len(whole)
    return page, {"hasNextPage": "first" in given and is_part, "hasPreviousPage": "last" in given and is_part}


def revision_answer(node: Node, kept: Node, pick: list[Field]) -> dict[str, Any]:
    """ "Revisions have the names of their time", their attributes too; null for those of other levels."""
    found: dict[str, Any] = {}
    for field in pick:
        name = field["field"]
        if name in values.KINDS:
            found[name] = attribute(kept["values"], name) if _has(node["level"], name) else None
        else:
            parts = {"changedAt": kept["at"], "changedBy": None, "names": by_language(kept["names"])}
            found[name] = {**kept, **parts}[name]
    return found


def attribute(found: Node, name: str) -> Any:
    value = found.get(name)
    if values.KINDS[name] == "localized" and value is not None:
        # "All texts, ordered by language tag" (schema).
        return {"texts": by_language(value)}
    return value


def by_language(texts: dict[str, str]) -> list[Node]:
    """ "Names in other languages, ordered by language tag" (schema)."""
    return [{"language": language, "text": texts[language]} for language in sorted(texts)]


def label(node: Node) -> str:
    """The computed field of the class file; of an enum the value is the "name of a member" (attributes.md)."""
    return f"{node['name']} {node['values'].get('state')}"


def _count(trees: Trees, node: Node, given: Node, *, below: bool) -> int:
    found = trees.descendants(node["id"]) if below else trees.children(node["id"])
    level = given.get("level")
    levels = level if isinstance(level, list) else [level]
    return len([each for each in found if level is None or each["level"] in levels])


_OWN: dict[str, Any] = {
    "id": lambda trees, node, given: node["id"],
    "path": lambda trees, node, given: trees.path(node),
    "key": lambda trees, node, given: node["key"],
    "name": lambda trees, node, given: name_in(node, given.get("languages"))[0],
    "nameLanguage": lambda trees, node, given: name_in(node, given["languages"])[1],
    "names": lambda trees, node, given: by_language(node["names"]),
    "level": lambda trees, node, given: node["level"],
    "levelName": lambda trees, node, given: node["level"],
    "depth": lambda trees, node, given: len(trees.ancestors(node)),
    "revision": lambda trees, node, given: node["revision"],
    "updatedAt": lambda trees, node, given: node["at"],
    "changedBy": lambda trees, node, given: None,
    "__typename": lambda trees, node, given: node["level"].title(),
    "childCount": lambda trees, node, given: _count(trees, node, given, below=False),
    "descendantCount": lambda trees, node, given: _count(trees, node, given, below=True),
}


# Comparison


def difference(expected: Any, got: Any, kind: str = "", at: str = "") -> tuple[str, Any, Any] | None:
    """Where an answer differs, what was expected there and what came; None if it is right."""
    if isinstance(expected, Anything) or (isinstance(expected, Failure) and got is None):
        return None
    if isinstance(expected, Text | Kilometers):
        is_right = expected.is_in(got) if isinstance(expected, Text) else expected.is_near(got)
        return None if is_right else (at, expected, got)
    if isinstance(expected, OneOf):
        return None if any(difference(one, got, kind, at) is None for one in expected) else (at, expected, got)
    if isinstance(expected, dict) and isinstance(got, dict):
        if expected.keys() != got.keys():
            return at, sorted(expected), sorted(got)
        pairs = (
            (difference(expected[name], got[name], values.KINDS.get(name, ""), f"{at}.{name}")) for name in expected
        )
        return next((pair for pair in pairs if pair), None)
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return at, _short(expected), _short(got)
        kind = kind.strip("[]")
        pairs = (
            difference(one, other, kind, f"{at}[{n}]") for n, (one, other) in enumerate(zip(expected, got, strict=True))
        )
        return next((pair for pair in pairs if pair), None)
    if kind in ("moment", "[moment]") and isinstance(got, str):
        got = values.moment(got)
    same = expected == got and isinstance(expected, bool) is isinstance(got, bool)
    return None if same else (at, expected, got)


def failures(expected: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str | None]]:
    """The places of errors in an answer, with their codes; None for a place at and below which nothing is known."""
    if isinstance(expected, Anything):
        yield path, None
    elif isinstance(expected, Failure):
        yield (*path, *expected.below), expected.code
    elif isinstance(expected, dict | list):
        for name, inner in expected.items() if isinstance(expected, dict) else enumerate(expected):
            yield from failures(inner, (*path, name))


def _short(items: list[Any]) -> Any:
    return [item.get("path", item.get("id", item)) if isinstance(item, dict) else item for item in items]
