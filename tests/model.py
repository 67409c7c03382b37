"""Model of responses: a plain second implementation with trees in dictionaries and lists cut in memory.

A query is a value here (`Field`, `On`), which `GraphText` writes as GraphQL and `Model.answer` answers by itself. Any
cursor is equal to the model's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import ANY

from msgspec.structs import replace

from graph.errors import MAX_ERRORS_PER_CODE
from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from store.engine import Store
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Path, id_key
from store.model.paths import format_path, parse_path
from store.model.records import Item, Put, Record

AT = "2026-11-20T12:00:00.000Z"


class Ground(Node, hierarchy="ground", many="grounds"):
    """A piece of ground, for tests."""

    note: str | None = attribute("Whatever is to be said.")


class Area(Ground, under=[None, "self"]):
    """An area in an area."""


class AreaPart(Ground, under=[None, Area, "self"]):
    """A part of an area; its level's name has another level's as a prefix."""


class Plot(Ground, under=[Area, AreaPart]):
    """A plot."""


class Tree(Ground, under=[Area, AreaPart, Plot]):
    """A tree."""


TYPES = {"AREA": "Area", "AREA_PART": "AreaPart", "PLOT": "Plot", "TREE": "Tree"}
NEVER_ROOTS = {"PLOT", "TREE"}  # of which the hierarchy lists all nodes

# -- queries as values -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A field under an alias of its own. `torn` writes it as two fields that GraphQL merges."""

    alias: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    fields: "tuple[Field | On, ...]" = ()
    torn: bool = False
    included: bool | None = None


@dataclass(frozen=True)
class On:
    """Fields of one type, in an inline fragment or a named one."""

    level: str
    fields: "tuple[Field | On, ...]"
    named: bool = False


@dataclass(frozen=True)
class Word:
    """A member of an enum, which is written without quotes."""

    name: str


ARGUMENT_TYPES = {
    "first": "Int", "last": "Int", "maxDepth": "Int", "after": "String", "before": "String",
    "level": "[GroundLevel!]", "where": "GroundCondition", "orderBy": "[GroundOrderBy!]",
    "path": "Path!", "id": "ID!", "ids": "[ID!]!",
}  # fmt: skip


class GraphText:
    """The text of a query; every second argument is a variable."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.variables: dict[str, Any] = {}
        self._declared: list[str] = []
        self._fragments: list[str] = []
        body = self._several(fields)
        head = f"query Q({', '.join(self._declared)}) " if self._declared else ""
        self.text = f"{head}{body}\n" + "\n".join(self._fragments)

    def __repr__(self) -> str:
        return f"{self.text} {self.variables}"

    def _several(self, fields: Iterable[Field | On]) -> str:
        return "{ " + " ".join(part for one in fields for part in self._one(one)) + " }"

    def _one(self, one: Field | On) -> Iterator[str]:
        if isinstance(one, On):
            if not one.named:
                yield f"... on {TYPES[one.level]} {self._several(one.fields)}"
                return
            name = f"F{len(self._fragments)}"
            self._fragments.append("")
            self._fragments[int(name[1:])] = f"fragment {name} on {TYPES[one.level]} {self._several(one.fields)}"
            yield f"...{name}"
            return
        head = f"{one.alias}: {one.name}{self._arguments(one.arguments)}"
        if one.included is not None:
            head += f" @include(if: {self._variable('Boolean!', one.included)})"
        halves = [one.fields[::2], one.fields[1::2]] if one.torn and len(one.fields) > 1 else [one.fields]
        for half in halves:
            yield head + (f" {self._several(half)}" if half else "")

    def _arguments(self, arguments: dict[str, Any]) -> str:
        parts = [f"{name}: {self._value(name, value)}" for name, value in arguments.items()]
        return f"({', '.join(parts)})" if parts else ""

    def _value(self, name: str, value: Any) -> str:
        # The same value is written the same way, since merged fields must have the same arguments.
        if len(repr(value)) % 2:
            return self._variable(ARGUMENT_TYPES[name], plain(value))
        return literal(value)

    def _variable(self, kind: str, value: Any) -> str:
        for name, known in self.variables.items():
            if (f"${name}: {kind}", known) == (self._declared[int(name[1:])], value):
                return f"${name}"
        name = f"v{len(self.variables)}"
        self.variables[name] = value
        self._declared.append(f"${name}: {kind}")
        return f"${name}"


def plain(value: Any) -> Any:
    """A value of an argument as a variable has it."""
    match value:
        case Word(name):
            return name
        case list():
            return list(map(plain, value))
        case dict():
            return {name: plain(one) for name, one in value.items()}
    return value


def literal(value: Any) -> str:
    """A value of an argument as a document has it."""
    match value:
        case None:
            return "null"
        case Word(name):
            return name
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\u{{{ord(c):X}}}" for c in value) + '"'
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case dict():
            return "{" + ", ".join([f"{name}: {literal(one)}" for name, one in value.items()]) + "}"
        case _:
            return str(value)


# -- trees and their answers -------------------------------------------------------------------------------------------


class Refused(Exception):
    """A field fails with this code."""


@dataclass(frozen=True)
class Failed:
    """The place of a field that fails; Clade returns null, and an error with the path of the field."""

    code: str


@dataclass(frozen=True)
class Listing:
    """A page of a list, and whether there are more nodes."""

    nodes: list[Record]
    has_next: bool
    has_previous: bool
    total: int


class Model:
    """The nodes of a hierarchy by path, as records of a store."""

    def __init__(
        self,
        hierarchy: str,
        nodes: dict[Path, str],
        ranks: dict[Path, str] | None = None,
        *,
        ids: dict[Path, str] | None = None,
        redirect: tuple[Path, Path] | None = None,
    ) -> None:
        """`nodes` are the levels by path, parents included; `ranks` the places of nodes that were moved by hand.

        `ids` are given where they do not follow from the paths, and `redirect` is from where to where a subtree moved.
        """
        kids: dict[Path, Counter[str]] = {path: Counter() for path in nodes}
        below: dict[Path, Counter[str]] = {path: Counter() for path in nodes}
        for path, level in nodes.items():
            if len(path) > 1:
                kids[path[:-1]][level] += 1
            for length in range(1, len(path)):
                below[path[:length]][level] += 1
        self.hierarchy = hierarchy
        self.nodes: dict[Path, Record] = {}
        for number, path in enumerate(sorted(nodes)):
            above = [nodes[path[:length]] for length in range(1, len(path))]
            own = ids[path].partition(":")[2] if ids else f"n{number}"
            made = Record.new(hierarchy, path, nodes[path], f"N {path[-1]}", own, AT, {}, above=above)
            rank = (ranks or {}).get(path, made.rank)
            self.nodes[path] = replace(made, kids=dict(kids[path]), below=dict(below[path]), rank=rank)
        self._redirect = redirect
        self.ids = {record.id: record for record in self.nodes.values()}
        self.families: dict[Path, list[Record]] = {}
        for path, record in self.nodes.items():
            self.families.setdefault(path[:-1], []).append(record)
        for family in self.families.values():
            family.sort(key=lambda record: record.rank)

    def items(self) -> list[Item]:
        """All items of the table: records, ids and tree versions."""
        items = [record.item() for record in self.nodes.values()]
        shapes: dict[str, Counter[str]] = {}
        for record in self.nodes.values():
            place = id_key(record.id)
            items.append({"pk": place.pk, "sk": place.sk, "tree": record.pk, "key": record.sk})
            shapes.setdefault(record.pk, Counter())[level_at_depth(record.level, record.depth)] += 1
            if record.is_root:
                shapes.setdefault(self.hierarchy, Counter())[level_at_depth(record.level, 0)] += 1
        return items + [TreeVersion(partition).incremented(dict(shape)).item for partition, shape in shapes.items()]

    async def plant(self, store: Store) -> None:
        """Write all items into a store."""
        items = self.items()
        for start in range(0, len(items), store.max_changes):
            await store.commit([Put(item) for item in items[start : start + store.max_changes]])

    # -- relations -----------------------------------------------------------------------------------------------------

    def above(self, record: Record) -> list[Record]:
        return [self.nodes[record.path[:length]] for length in range(1, len(record.path))]

    def below(self, record: Record) -> list[Record]:
        found: list[Record] = []
        for child in sorted(self.families.get(record.path, []), key=lambda one: one.path):
            found += [child, *self.below(child)]
        return found

    def listing(self, record: Record | None, kind: str, asked: dict[str, Any]) -> Listing:
        """A page of a list of a node, or of the hierarchy's roots without one."""
        given = {name: value for name, value in asked.items() if value is not None}
        sizes = {name: given[name] for name in ("first", "last") if name in given}
        place, descending = _place_order(given)
        if (
            min(given.get("maxDepth", 0), *sizes.values(), 0) < 0
            or len(sizes) > 1
            or (kind == "descendants" and place == "POSITION")
        ):
            raise Refused("BAD_USER_INPUT")
        whole = self._whole(record, kind, given)
        page = whole[::-1] if descending else whole
        cut = page[: given.get("first")]
        if "last" in given:
            cut = page[max(0, len(page) - given["last"]) :]
        is_cut = len(cut) < len(page)
        return Listing(cut, is_cut and "first" in given, is_cut and "last" in given, len(whole))

    def _levels(self, given: dict[str, Any]) -> set[str]:
        """The levels of the nodes in a list; none for all."""
        if "level" not in given:
            return set()
        levels = given["level"] if isinstance(given["level"], list) else [given["level"]]
        if not levels:
            raise Refused("BAD_USER_INPUT")
        return {level.name for level in levels}

    def _whole(self, record: Record | None, kind: str, given: dict[str, Any]) -> list[Record]:
        """A list without its paging, from its first node on."""
        if record is None and self._levels(given) & NEVER_ROOTS:
            if _place_order(given)[0] == "POSITION":
                raise Refused("BAD_USER_INPUT")
            every = sorted(self.nodes.values(), key=lambda one: one.path)
            found = [one for one in every if one.is_root or one.level in NEVER_ROOTS]
        elif record is None:
            found = self.families.get((), [])
        elif kind == "descendants":
            found = self.below(record)
        else:
            found = self.families.get(record.path, [])
        if (place := _place_order(given)[0]) == "KEY":
            found = sorted(found, key=lambda one: (one.path[-1], one.path))
        elif place == "PATH":
            found = sorted(found, key=lambda one: one.path)
        depth = len(record.path) if record is not None else 0
        if levels := self._levels(given):
            found = [one for one in found if one.level in levels]
        if "maxDepth" in given:
            found = [one for one in found if len(one.path) - depth <= given["maxDepth"]]
        return [one for one in found if _meets(one, given["where"])] if "where" in given else found

    # -- answers -------------------------------------------------------------------------------------------------------

    def answer(self, fields: Iterable[Field | On]) -> dict[str, Any]:
        """The data of a query, with `Failed` in the place of failing fields."""
        return {one.alias: _or_failed(self._root, one) for one in fields if _is_asked(one)}

    def _root(self, one: Field) -> Any:
        match one.name:
            case "grounds":
                return self._connection(self.listing(None, "roots", one.arguments), one)
            case "nodes":
                return [self._node(self.ids.get(each), one) for each in one.arguments["ids"]]
        given = one.arguments
        found = self.ids.get(given["id"]) if "id" in given else self._at(parse_path(given["path"]))
        wanted = {title[:1].lower() + title[1:]: level for level, title in TYPES.items()}.get(one.name)
        if found is not None and wanted not in (None, found.level):
            raise Refused("WRONG_LEVEL")
        return self._node(found, one)

    def _at(self, path: Path) -> Record | None:
        if path not in self.nodes and self._redirect and path[: len(self._redirect[0])] == self._redirect[0]:
            path = self._redirect[1] + path[len(self._redirect[0]) :]
        return self.nodes.get(path)

    def _node(self, record: Record | None, one: Field) -> Any:
        return None if record is None else self._fields(record, one.fields)

    def _fields(self, record: Record, fields: Iterable[Field | On]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in fields:
            if isinstance(one, On):
                found |= self._fields(record, one.fields) if one.level == record.level else {}
            elif _is_asked(one):
                found[one.alias] = _or_failed(self._value, one, record)
        return found

    def _value(self, one: Field, record: Record) -> Any:
        level = one.arguments.get("level")
        match one.name:
            case "__typename":
                return TYPES[record.level]
            case "id" | "name" | "level" | "depth":
                return getattr(record, one.name)
            case "path":
                return format_path(record.path)
            case "childCount":
                return len(
                    [kid for kid in self.families.get(record.path, []) if level is None or kid.level == level.name]
                )
            case "descendantCount":
                return len([kid for kid in self.below(record) if level is None or kid.level == level.name])
            case "levelName":
                return record.level
            case "parent":
                return self._node(next(iter(self.above(record)[::-1]), None), one)
            case "ancestors":
                return [self._node(each, one) for each in self.above(record)]
        return self._connection(self.listing(record, one.name, one.arguments), one)

    def _connection(self, page: Listing, one: Field) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in (each for each in one.fields if isinstance(each, Field) and _is_asked(each)):
            match part.name:
                case "totalCount":
                    found[part.alias] = page.total
                case "nodes":
                    found[part.alias] = [self._fields(each, part.fields) for each in page.nodes]
                case "edges":
                    found[part.alias] = [
                        {
                            inner.alias: ANY if inner.name == "cursor" else self._fields(each, inner.fields)
                            for inner in part.fields
                            if isinstance(inner, Field)
                        }
                        for each in page.nodes
                    ]
                case "pageInfo":
                    told = {
                        "hasNextPage": page.has_next,
                        "hasPreviousPage": page.has_previous,
                        "startCursor": ANY if page.nodes else None,
                        "endCursor": ANY if page.nodes else None,
                    }
                    found[part.alias] = {
                        inner.alias: told[inner.name] for inner in part.fields if isinstance(inner, Field)
                    }
        return found


def _is_asked(one: Field | On) -> bool:
    return isinstance(one, On) or one.included is not False


def _or_failed(make: Any, one: Any, *record: Record) -> Any:
    try:
        return make(one, *record)
    except Refused as refused:
        return Failed(str(refused))


def _place_order(given: dict[str, Any]) -> tuple[str | None, bool]:
    """The order by place that is asked for, and whether it is descending."""
    if not given.get("orderBy"):
        return None, False
    (one,) = given["orderBy"]
    return one["field"].name, one["direction"].name == "DESC"


_OPERATORS: dict[str, Any] = {
    "eq": lambda found, wanted: found == wanted,
    "in": lambda found, wanted: found in wanted,
    "lt": lambda found, wanted: found < wanted,
    "lte": lambda found, wanted: found <= wanted,
    "gt": lambda found, wanted: found > wanted,
    "gte": lambda found, wanted: found >= wanted,
    "startsWith": lambda found, wanted: found[: len(wanted)] == wanted,
}


def _meets(record: Record, where: dict[str, Any]) -> bool:
    """Whether a node meets conditions on its key and path: texts, or segments, in the order of their code points."""
    return all(_meets_one(record, name, inner) for name, inner in where.items())


def _meets_one(record: Record, name: str, inner: Any) -> bool:
    match name:
        case "and":
            return all(_meets(record, one) for one in inner)
        case "or":
            return any(_meets(record, one) for one in inner)
        case "not":
            return not _meets(record, inner)
    found = {"key": record.path[-1], "path": record.path, "name": record.name}[name]
    read = parse_path if name == "path" else str
    return all(
        _OPERATORS[operator](found, [read(one) for one in wanted] if operator == "in" else read(wanted))
        for operator, wanted in inner.items()
    )


def failures(answer: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The errors of a response of the model: path and code of each."""
    match answer:
        case Failed(code):
            yield path, code
        case dict():
            for name, value in answer.items():
                yield from failures(value, (*path, name))
        case list():
            for place, value in enumerate(answer):
                yield from failures(value, (*path, place))


def without_failures(answer: Any) -> Any:
    """The data as GraphQL returns it: null for a field that fails."""
    match answer:
        case Failed():
            return None
        case dict():
            return {name: without_failures(value) for name, value in answer.items()}
        case list():
            return [without_failures(value) for value in answer]
    return answer


def are_told(errors: Iterable[dict[str, Any]], answer: Any) -> bool:
    """Whether these are the errors of a response, of which only the first of each code are listed."""
    expected = set(failures(answer))
    told = {(tuple(error["path"]), error["extensions"]["code"]) for error in errors if "path" in error}
    counts = {code: min(count, MAX_ERRORS_PER_CODE) for code, count in Counter(code for _, code in expected).items()}
    return told <= expected and Counter(code for _, code in told) == counts
