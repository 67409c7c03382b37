"""Generator: random valid operations of a schema, and mutations of known ones.

An operation may be rejected for a limit or a conflict; most are accepted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    SchemaMetaFieldDef,
    TypeMetaFieldDef,
    get_named_type,
    is_composite_type,
    is_non_null_type,
    is_required_argument,
)

from bench.cost.nodes import SCRATCH, WIDE
from bench.cost.operation import Field, On, Operation, Selections, Value, fields_in, replaced
from bench.cost.values import SCRATCH_PATHS, Values, has_list

DEPTH = 14  # of fields; the limit counts fewer of them
BROAD = 4  # fields of one selection set, before it is changed
WIDE_ROOTS = 0.5  # of queries begin at fields that return nodes of any level: more paths lead to one
MUTATIONS = 0.08  # of all operations
VARIABLE_ITEMS, LITERAL_ITEMS = 600, 120  # of a list in an argument; more are past a limit in any case
LISTED = 1_000  # nodes whose lists are asked with the same argument
META = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}
LARGE_LISTS = ("descendants", "children", "ancestors", "history", "atRevision", "parent")


class Generator:
    """Generator of operations of a schema; the same seed makes the same operations."""

    def __init__(self, schema: GraphQLSchema, seed: int) -> None:
        self._schema = schema
        self._values = Values()
        self.random = Random(seed)

    def operation(self) -> Operation:
        """A random operation."""
        random = self.random
        if random.random() < MUTATIONS and self._schema.mutation_type is not None:
            return Operation(self._mutations(self._schema.mutation_type), "mutation")
        query = self._schema.query_type
        assert query is not None, "The schema has no queries."
        fields = self._fields(query)
        wide = [name for name, one in fields.items() if not isinstance(get_named_type(one.type), GraphQLObjectType)]
        names = random.sample(wide if random.random() < WIDE_ROOTS else list(fields), random.choice([1, 1, 2, 3]))
        return Operation(tuple(self._field(query.name, name, fields[name], random.randint(2, DEPTH)) for name in names))

    def changed(self, operation: Operation, other: Operation) -> Operation:
        """The operation with some changes, or with a part of another operation of its kind."""
        below = operation.below
        for _ in range(self.random.choice([1, 1, 2, 3])):
            change = self.random.choice(
                [
                    self._revalued,
                    self._aliased,
                    self._repeated,
                    self._nested,
                    self._joined,
                    self._directed,
                    self._dropped,
                ]
            )
            below = change(below, other.below if other.kind == operation.kind else below)
        return Operation(below, operation.kind)

    def with_lists(self, *, literal: bool) -> Iterator[Operation]:
        """Operations that fill each argument with lists: of root fields, of a node, and of each node of a list."""
        query = self._schema.query_type
        assert query is not None, "The schema has no queries."
        size = LITERAL_ITEMS if literal else VARIABLE_ITEMS
        for name, one in query.fields.items():
            yield from (Operation((field,)) for field in self._filled(query.name, name, one, size, literal=literal))
        location = query.fields["location"]
        node = get_named_type(location.type)
        page = get_named_type(self._fields(node)["children"].type)
        path = (("path", Value("Path", WIDE)),)
        for name, one in self._fields(node).items():
            for field in self._filled(node.name, name, one, size, literal=literal):
                nodes = Field(page.name, "nodes", below=(field,))
                few = Field(node.name, "children", (("first", Value("Int", LISTED)),), (nodes,))
                for below in (field, few):
                    yield Operation((Field(query.name, "location", path, (below,)),))

    def _filled(self, parent: str, name: str, one: GraphQLField, size: int, *, literal: bool) -> Iterator[Field]:
        """A field once for each of its arguments that has lists."""
        for argument, given in one.args.items():
            if not has_list(given.type):
                continue
            value = self._values.filled(argument, given.type, self.random, size, literal=literal)
            needed = [other for other, arg in one.args.items() if is_required_argument(arg) and other != argument]
            others = [(other, self._values.of(other, one.args[other].type, self.random)) for other in needed]
            kind = get_named_type(one.type)
            below = self._selections(kind, 0) if is_composite_type(kind) else ()
            yield Field(parent, name, (*others, (argument, value)), below)

    # -- growing -------------------------------------------------------------------------------------------------------

    def _fields(self, kind: GraphQLNamedType) -> dict[str, GraphQLField]:
        fields = dict(kind.fields) if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType) else {}
        return fields | META if kind is self._schema.query_type else fields

    def _field(self, parent: str, name: str, one: GraphQLField, depth: int) -> Field:
        kind = get_named_type(one.type)
        below = self._selections(kind, depth - 1) if is_composite_type(kind) else ()
        return Field(parent, name, self._arguments(one), below)

    def _selections(self, kind: GraphQLNamedType, depth: int) -> Selections:
        """Some fields of a type: leaves, and fewer that go deeper."""
        random = self.random
        if not isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):  # a union
            possible = self._schema.get_possible_types(kind)  # type: ignore[arg-type]
            return tuple(
                On(kind.name, one.name, self._selections(one, depth)) for one in random.sample(list(possible), 2)
            )
        fields = self._fields(kind)
        leaves = [name for name, one in fields.items() if not is_composite_type(get_named_type(one.type))]
        deeper = [name for name in fields if name not in leaves]
        wanted = random.sample(leaves, min(len(leaves), random.randint(1, BROAD)))
        if depth > 0 and deeper:
            wanted += random.sample(deeper, min(len(deeper), random.choice([1, 1, 1, 2])))
        if not wanted:
            return (Field(kind.name, "__typename"),)
        return tuple(self._field(kind.name, name, fields[name], depth) for name in wanted)

    def _arguments(self, one: GraphQLField) -> tuple[tuple[str, Value], ...]:
        """Values of all required arguments and of some others; one of path and id."""
        random = self.random
        names = [name for name, arg in one.args.items() if is_non_null_type(arg.type) or random.random() < 0.3]
        if {"path", "id"} <= one.args.keys() and random.random() < 0.95:
            names = [random.choice(["path", "path", "id"])]
        if "first" in names and "last" in names and random.random() < 0.9:
            names.remove("last")
        return tuple((name, self._values.of(name, one.args[name].type, random)) for name in names)

    def _mutations(self, kind: GraphQLObjectType) -> Selections:
        """Some mutations: dry runs of any node, and real ones in the scratch tree."""
        names = self.random.sample(list(kind.fields), self.random.choice([1, 1, 2]))
        return tuple(_harmless(self._field(kind.name, name, kind.fields[name], 4), self.random) for name in names)

    # -- changing ------------------------------------------------------------------------------------------------------

    def _place(self, below: Selections, *, deeper: bool = False) -> tuple[tuple[int, ...], Field] | None:
        """One of the fields; with `deeper` one that has a selection."""
        fields = [(at, one) for at, one in fields_in(below) if isinstance(one, Field) and (one.below or not deeper)]
        return self.random.choice(fields) if fields else None

    def _revalued(self, below: Selections, other: Selections) -> Selections:
        """Other arguments for a field."""
        found = self._place(below)
        definition = self._definition(found[1]) if found else None
        if found is None or definition is None or not definition.args:
            return below
        at, one = found
        new = replace(one, arguments=self._arguments(definition))
        return replaced(below, at, (_harmless(new, self.random) if one.parent == "Mutation" else new,))

    def _aliased(self, below: Selections, other: Selections) -> Selections:
        found = self._place(below, deeper=self.random.random() < 0.8)
        if found is None:
            return below
        left = 30 - sum(max(1, one.aliases) for _, one in fields_in(below) if isinstance(one, Field) and one.aliases)
        times = self.random.choice([2, 5, 10, 15, 29, 30])
        return replaced(below, found[0], (replace(found[1], aliases=max(0, min(times, left))),))

    def _repeated(self, below: Selections, other: Selections) -> Selections:
        if (found := self._place(below)) is None:
            return below
        return replaced(below, found[0], (replace(found[1], times=self.random.choice([2, 10, 50, 99])),))

    def _nested(self, below: Selections, other: Selections) -> Selections:
        """The selection of nodes repeated one relation further down."""
        found = self._place(below, deeper=True)
        if found is None:
            return below
        at, one = found
        parent = one.below[0].parent
        fields = self._fields(self._schema.type_map[parent]) if parent in self._schema.type_map else {}
        ways = [name for name in LARGE_LISTS if name in fields]
        if not ways:
            return below
        name = self.random.choice(ways)
        kind = get_named_type(fields[name].type)
        inner: Selections = one.below
        if "Connection" in kind.name:
            inner = (Field(kind.name, "nodes", below=inner), *self._totals(kind))
        deeper = Field(parent, name, self._arguments(fields[name]), inner)
        return replaced(below, at, (replace(one, below=(*one.below[:2], deeper)),))

    def _totals(self, kind: Any) -> Selections:
        return (Field(kind.name, "totalCount"),) if self.random.random() < 0.5 else ()

    def _joined(self, below: Selections, other: Selections) -> Selections:
        """Some fields of another operation at a place of the same type."""
        theirs: dict[str, list[Selections]] = {}
        for _, one in fields_in(other):
            if one.below:
                theirs.setdefault(one.below[0].parent, []).append(one.below)
        ours = [(at, one) for at, one in fields_in(below) if one.below and one.below[0].parent in theirs]
        if not ours or self.random.random() < 0.3:
            return (*below, *other)[:20]
        at, one = self.random.choice(ours)
        more = self.random.choice(theirs[one.below[0].parent])
        return replaced(below, at, (replace(one, below=(*one.below, *more)),))

    def _directed(self, below: Selections, other: Selections) -> Selections:
        if (found := self._place(below)) is None:
            return below
        return replaced(below, found[0], (replace(found[1], directives=self.random.choice([1, 2])),))

    def _dropped(self, below: Selections, other: Selections) -> Selections:
        """The operation without one field."""
        places = fields_in(below)
        at, _ = self.random.choice(places)
        return replaced(below, at, ())

    def _definition(self, one: Field) -> GraphQLField | None:
        kind = self._schema.type_map.get(one.parent)
        return None if kind is None else self._fields(kind).get(one.name)


def _harmless(one: Field, random: Random) -> Field:
    """A mutation as a dry run, or of nodes in the scratch tree."""
    arguments = dict(one.arguments)
    arguments["dryRun"] = Value("Boolean!", json=True)
    if random.random() < 0.3 and _is_apart(arguments, random):
        arguments["dryRun"] = Value("Boolean!", json=False)
    return replace(one, arguments=tuple(arguments.items()))


def _is_apart(arguments: dict[str, Value], random: Random) -> bool:
    """Put all its paths into the scratch tree; false if it has none."""
    places: Sequence[str] = [name for name in ("path", "parent", "to") if name in arguments]
    for name in places:
        path = SCRATCH if name == "to" else random.choice(SCRATCH_PATHS)
        arguments[name] = Value(arguments[name].type, path)
    return "path" in places or "parent" in places
