"""Operation plan: one compiled query, as the positions of its response that hold nodes and, by type, what is written of
a node there. Fields of Query that are not compiled are left to the interpreter, each with all that is below it.

`graph/execution/run.py` runs it level by level. All lists of the nodes of one level are read by one call of the batch
functions, all that lies above them by another; when nothing is left to read, objects are written from the bottom up.

What was compiled is shared by (concrete type, merged field nodes), so a fragment is compiled once, however often and
deep it is used.
"""

from collections import Counter
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from graphql import GraphQLObjectType, get_named_type
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.values import VariableValues, get_argument_values
from orjson import dumps

from graph.errors import UnsupportedByPlan
from graph.execution.json_writers import ConnectionField, Constant, LeafField, LeafWriter, ValueField, key_of, objects
from graph.operation.selection import (
    LISTS,
    RELATION_KINDS,
    Grouped,
    LookAhead,
    NodePosition,
    RelationField,
    SelectedFields,
    has_variables,
    name_of,
    named,
    node_ids,
)
from graph.types.fields import resolver_of
from graph.types.lookups import LookupField, RootsField
from graph.types.search import SearchField
from resolvers.lists.arguments import RelationKind
from resolvers.search.finder import FoundPage
from resolvers.session.budget import RELATION_FIELDS
from store.model.keys import hierarchy_of
from store.model.records import Record

EMPTY = FoundPage([], total=0)  # which has the fields of any page


class OperationPlan:
    """One operation with one set of values for its `@skip` and `@include`."""

    def __init__(
        self, fields: SelectedFields, variables: VariableValues, varying: Set[int], interpreted: frozenset[str]
    ) -> None:
        """`varying` are the ids of the field nodes that have variables, `interpreted` the names of the fields of nodes
        that no plan compiles.
        """
        self.fields, self.variables = fields, variables
        self.grouped = fields.at_root()
        """The merged fields of Query."""
        self._positions: dict[NodePosition, ResponsePosition] = {}
        self._connections: dict[tuple[object, ...], Connection] = {}
        self.roots: list[RootField] = []
        """Those that are compiled; all others are interpreted."""
        for key, details in self.grouped.items():
            with suppress(UnsupportedByPlan):
                if not fields.leads_to(details, interpreted):
                    self.roots.append(self._root(fields.query_type, key, details))
        self.is_current = len(self.roots) < len(self.grouped)
        """Whether no state may be stale that it reads, since what is not compiled has histories or changes."""
        bound = {id(details[0].node) for details in self.grouped.values()}
        bound -= {id(root.listing.relation.node) for root in self.roots if isinstance(root, ListRoot)}
        self.look_ahead = None if varying - bound else LookAhead(fields, variables)
        """That of all requests, where only lookups, searches and interpreted fields of Query have variables, which a
        `BoundPlan` binds.
        """

    def position(self, position: NodePosition) -> "ResponsePosition":
        return self._positions.setdefault(position, ResponsePosition(self, position))

    def connection(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> "Connection":
        key = (kind.name, *node_ids(details))
        if key not in self._connections:
            self._connections[key] = Connection(self, kind, details)
        return self._connections[key]

    def list_field(
        self, key: str, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None = None
    ) -> "ListField":
        """A connection field of an object; `kind` as in `SelectedFields.relation`."""
        relation = self.fields.relation(parent, details, kind)
        return ListField(key, relation, self.connection(get_named_type(relation.definition.type), details))

    def _root(self, query: GraphQLObjectType, key: str, details: list[FieldDetails]) -> "RootField":
        if name_of(details) == "__typename":
            return Constant(key, dumps(query.name))
        node, definition = details[0].node, query.fields.get(name_of(details))
        resolve = _compiled_resolver(definition)
        if isinstance(resolve, RootsField):
            return ListRoot(key, resolve, self.list_field(key, query, details, RelationKind.ROOTS))
        if isinstance(resolve, LookupField):
            return LookupRoot(key, resolve, definition, node, self.position(self.fields.position(details)))
        if isinstance(resolve, SearchField):
            kind: Any = get_named_type(definition.type)
            position = self.fields.listed(kind, details)
            counts = self.fields.counts(kind, position)
            return SearchRoot(key, resolve, definition, node, self.connection(kind, details), position, counts)
        raise UnsupportedByPlan


@dataclass(frozen=True, eq=False)
class LookupRoot:
    """A field of Query that looks nodes up, and the position of these."""

    key: str
    resolve: LookupField
    definition: Any
    node: Any
    position: "ResponsePosition"


@dataclass(frozen=True, eq=False)
class ListRoot:
    """A field of Query that lists a hierarchy's roots."""

    key: str
    resolve: RootsField
    listing: "ListField"


@dataclass(frozen=True, eq=False)
class SearchRoot:
    """A field of Query that finds nodes by what they are like, and what is selected of them: `counts` is whether
    `descendantCount` is.
    """

    key: str
    resolve: SearchField
    definition: Any
    node: Any
    connection: "Connection"
    position: NodePosition
    counts: bool


RootField = Constant | LookupRoot | ListRoot | SearchRoot


@dataclass(frozen=True, eq=False)
class ListField:
    """A connection among an object's fields."""

    key: str
    relation: RelationField
    connection: "Connection"


@dataclass(frozen=True, eq=False)
class AboveField:
    """`parent` or `ancestors` among an object's fields."""

    key: str
    relation: RelationField
    position: "ResponsePosition"


KIND = attrgetter("pk", "level")
"""The tree and the level of a record, which lead to its type: there are few of both, whatever the records are."""


class ResponsePosition(dict[tuple[str, str], "CompiledType"]):
    """A position of the response that holds nodes, as an interface or one level's type: the types of its nodes by
    hierarchy and level. Raises UnsupportedByPlan for a level that its hierarchy has not.
    """

    def __init__(self, plan: OperationPlan, position: NodePosition) -> None:
        self.selected = position
        self._plan = plan

    def __missing__(self, key: tuple[str, str]) -> "CompiledType":
        fields = self._plan.fields
        kind = fields.level_type(*key)
        if kind is None:
            raise UnsupportedByPlan
        found = self[key] = CompiledType(self._plan, kind, fields.below(kind, self.selected.details))
        return found

    def constant_count(self, records: Sequence[Record]) -> int | None:
        """What the fields of some nodes here count as; None where one is written from more than the node."""
        count = 0
        for kind, number in Counter(map(KIND, records)).items():
            compiled = self[hierarchy_of(kind[0]), kind[1]]
            if not compiled.is_leaf or compiled.varies:
                return None
            count += compiled.count * number
            if compiled.values:
                count += compiled.value_counts([record for record in records if KIND(record) == kind])
        return count


class CompiledType:
    """One object type at one position: its fields in the order of the query, runs of leaf fields as one writer.

    `childless` writes the whole of a node that has nothing below it, where of its relations only lists below it are
    selected; else it is None. `count` is what the fields of one object count as in the budget, without those of its
    `values`, and `empty_count` what those of its empty lists count as beside.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, grouped: Grouped) -> None:
        fields = [_compiled_field(plan, kind, key, details) for key, details in grouped.items()]
        self.is_leaf = all(map(_is_leaf, fields))
        self.parts: list[tuple[bytes, LeafWriter | ListField | AboveField]] = []
        """Each with its response key as JSON, empty for a writer of leaves."""
        for are_leaves, run in groupby(fields, _is_leaf):
            parts: list[Any] = list(run)
            writer = [(b"", LeafWriter(parts, whole=self.is_leaf))] if are_leaves else []
            self.parts += writer or [(key_of(part.key), part) for part in parts]
        if not fields:  # all were skipped
            self.parts.append((b"", LeafWriter([], whole=True)))
        self.lists = [part for part in fields if isinstance(part, ListField)]
        self.above = [part for part in fields if isinstance(part, AboveField)]
        self.childless = None if self.is_leaf else _childless(fields)
        self.values = [field for field in fields if isinstance(field, ValueField)]
        self.count = len(fields) + (RELATION_FIELDS - 1) * (len(self.lists) + len(self.above))
        self.empty_count = sum([field.connection.page_count for field in self.lists])
        self.varies = any(isinstance(part, LeafWriter) and part.varies for _, part in self.parts)

    def value_counts(self, records: Sequence[Record]) -> int:
        """What the fields of the nested values and names of some nodes count as."""
        return sum([field.count(record) for field in self.values for record in records])


def _is_leaf(field: object) -> bool:
    return isinstance(field, LeafField | Constant)


def _childless(fields: Sequence[LeafField | Constant | ListField | AboveField]) -> LeafWriter | None:
    """The writer of these fields for a node that has nothing below it; None where they select what is not below."""
    leaves: list[LeafField | Constant] = []
    for field in fields:
        if isinstance(field, LeafField | Constant):
            leaves.append(field)
        elif isinstance(field, ListField):
            leaves.append(Constant(field.key, field.connection.empty))
        else:
            return None
    return LeafWriter(leaves, whole=True)


def _compiled_field(
    plan: OperationPlan, kind: GraphQLObjectType, key: str, details: list[FieldDetails]
) -> LeafField | Constant | ListField | AboveField:
    """A merged field of an object: its type's name, a leaf, or a relation."""
    relation = RELATION_KINDS.get(name_of(details))
    if relation in LISTS:
        return plan.list_field(key, kind, details)
    if relation is not None:
        field = plan.fields.relation(kind, details)
        return AboveField(key, field, plan.position(field.position))
    return _leaf_field(plan, kind, key, details)


def _leaf_field(
    plan: OperationPlan, kind: GraphQLObjectType, key: str, details: list[FieldDetails]
) -> LeafField | Constant:
    """A merged field that needs no read: a leaf, or an object out of the record."""
    if name_of(details) == "__typename":
        return Constant(key, dumps(kind.name))
    node, definition = details[0].node, kind.fields[name_of(details)]
    resolve, bind = _compiled_resolver(definition), partial(get_argument_values, definition, node)
    inner = get_named_type(definition.type)
    if isinstance(inner, GraphQLObjectType):
        below = plan.fields.below(inner, details).items()
        return _value_field(key, definition, resolve, [_leaf_field(plan, inner, *one) for one in below])
    if has_variables(node):
        return LeafField(key, definition.type, resolve, bind=bind)
    return LeafField(key, definition.type, resolve, bind(plan.variables))


def _value_field(key: str, definition: Any, resolve: Any, fields: Sequence[LeafField | Constant]) -> ValueField:
    leaves = [field for field in fields if isinstance(field, LeafField)]
    arguments = {field.key: field.arguments for field in leaves}
    binds = {field.key: field.bind for field in leaves if field.bind is not None}

    def bind(variables: VariableValues) -> dict[str, Any]:
        return arguments | {name: bound(variables) for name, bound in binds.items()}

    return ValueField(key, definition.type, resolve, arguments, bind if binds else None, fields)


def _compiled_resolver(definition: Any) -> Any:
    """The resolver of a field. Raises UnsupportedByPlan for a field that plans do not compile."""
    resolve = None if definition is None else resolver_of(definition)
    if resolve is None:
        raise UnsupportedByPlan
    return resolve


class Connection:
    """A connection's fields in the order of the query, each with the position of the nodes in it, if it has any.

    `empty` is the JSON of an empty page. `page_count` and `node_count` are what its fields count as in the budget for
    each page, and for each node without the fields of the node.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, details: list[FieldDetails]) -> None:
        self.parts: list[tuple[ConnectionField, ResponsePosition | None]] = []
        below = plan.fields.below
        for key, fields in below(kind, details).items():
            name, typename, grouped = name_of(fields), kind.name, Grouped()
            nodes = [fields] if name == "nodes" else []
            if name in ("edges", "pageInfo"):
                inner: Any = get_named_type(kind.fields[name].type)
                typename, grouped = inner.name, below(inner, fields)
                nodes = named(grouped, "node")
            if len(nodes) > 1:  # the node of an edge under two keys
                raise UnsupportedByPlan
            part = ConnectionField(key, name, typename, [(each, name_of(one)) for each, one in grouped.items()])
            self.parts.append((part, plan.position(plan.fields.position(nodes[0])) if nodes else None))
        self.page_count = sum([part.page_count for part, _ in self.parts])
        self.node_count = sum([part.node_count for part, _ in self.parts])
        (self.empty,) = objects([(part.start, [part.write(EMPTY, iter(()))]) for part, _ in self.parts], 1)
