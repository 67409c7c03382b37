"""Operation plan: one compiled query, as the positions of its response that hold nodes and, by type, what is written of
a node there.

A plan runs level by level. All lists of the nodes of one level are read by one call of the batch functions, all that
lies above them by another; when nothing is left to read, objects are written from the bottom up. Fields that have no
compiled form, such as `history` of nodes or `changes` of Query, are executed in place by graphql-core, those of a level
together with its reads.

What was compiled is shared by (concrete type, merged field nodes), so a fragment is compiled once, however often and
deep it is used.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLObjectType, get_named_type, is_list_type, is_non_null_type
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.values import VariableValues

from graph.compiler.field_errors import Step
from graph.compiler.json_writers import (
    EMPTY,
    ConnectionField,
    Constant,
    LeafField,
    LeafWriter,
    TypeName,
    ValueField,
    bound,
    key_of,
    objects,
)
from graph.operation.lookahead import (
    LISTS,
    RELATION_KINDS,
    Grouped,
    LookAhead,
    NodePosition,
    RelationField,
    SelectedFields,
    has_variables,
    leads_to_nodes,
    name_of,
    node_ids,
    resolver_arguments,
)
from graph.types.field import is_proven_by_tree, resolver_of
from graph.types.root_fields import RootsField, TargetField
from graph.types.search_fields import FoundField
from resolvers.planning.relations import RelationKind
from resolvers.session.budget import RELATION_FIELDS
from store.model.records import Record


class OperationPlan:
    """One operation with one set of values for its `@skip` and `@include`."""

    def __init__(
        self, fields: SelectedFields, variables: VariableValues, varying: Set[int], *, is_current: bool = False
    ) -> None:
        """`varying` are the ids of the field nodes that have variables. `is_current` is whether fields of nodes are
        executed in place: these are histories, which are never answered by what was read before.
        """
        self.fields, self.variables = fields, variables
        self._positions: dict[NodePosition, ResponsePosition] = {}
        self._connections: dict[tuple[object, ...], Connection] = {}
        query = fields.query_type
        selected = enumerate(fields.at_root().items())
        self.roots = [self._root_or_error(query, rank, key, details) for rank, (key, details) in selected]
        lists = [root for root in self.roots if isinstance(root, ListedRoots | SearchedRoot)]
        self.found = [root for root in self.roots if isinstance(root, FoundRoot)]
        self.listed = [root for root in self.roots if isinstance(root, ListedRoots)]
        self.searched = [root for root in self.roots if isinstance(root, SearchedRoot)]
        self.failed = [root for root in self.roots if isinstance(root, FailedRoot)]
        self.in_place = [root for root in self.roots if isinstance(root, InPlaceField)]
        self.is_current = is_current
        self.accepts_stale = not (is_current or self.in_place)
        """Whether its answer may be made of tree versions that are some seconds old, where the settings allow it."""
        self.count = (
            len(self.roots) + (RELATION_FIELDS - 1) * len(lists) + sum([one.count - 1 for one in self.in_place])
        )
        looked_up = {id(root.node) for root in self.found} | {id(root.node) for root in self.searched}
        looked_up |= {id(node) for root in self.in_place for node in root.nodes}
        self.look_ahead = None if varying - looked_up else LookAhead(fields, variables)
        """That of all requests, where no variable is among the arguments below the looked-up nodes."""

    def position(self, position: NodePosition) -> "ResponsePosition":
        if position not in self._positions:
            self._positions[position] = ResponsePosition(self, position)
        return self._positions[position]

    def connection(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> "Connection":
        key = (kind.name, *node_ids(details))
        if key not in self._connections:
            self._connections[key] = Connection(self, kind, details)
        return self._connections[key]

    def list_field(
        self,
        rank: int,
        key: str,
        parent: GraphQLObjectType,
        details: list[FieldDetails],
        kind: RelationKind | None = None,
    ) -> "ListField":
        """A connection field of an object; `kind` as in `SelectedFields.relation`."""
        relation = self.fields.relation(parent, details, kind)
        kind_of_list = relation.definition.type
        connection = self.connection(get_named_type(kind_of_list), details)
        return ListField(key, relation, connection, Place.of(kind_of_list, rank, key, details))

    def _root_or_error(self, query: GraphQLObjectType, rank: int, key: str, details: list[FieldDetails]) -> "RootField":
        try:
            return self._root(query, rank, key, details)
        except GraphQLError as error:  # of directives that the variables do not fit
            place = Place.of(query.fields[name_of(details)].type, rank, key, details)
            return FailedRoot(key, place, error.with_traceback(None))

    def _root(self, query: GraphQLObjectType, rank: int, key: str, details: list[FieldDetails]) -> "RootField":
        if name_of(details) == "__typename":
            return TypeName(key, query.name)
        node, definition = details[0].node, query.fields.get(name_of(details))
        resolve = None if definition is None else resolver_of(definition)
        if definition is None or resolve is None:
            return InPlaceField.of(rank, key, query, definition, details)
        place = Place.of(definition.type, rank, key, details)
        if isinstance(resolve, RootsField):
            return ListedRoots(key, resolve, self.list_field(rank, key, query, details, RelationKind.ROOTS))
        if isinstance(resolve, TargetField):
            return FoundRoot(key, resolve, definition, node, self.position(self.fields.position(details)), place)
        if isinstance(resolve, FoundField):
            kind: Any = get_named_type(definition.type)
            position = self.fields.listed(kind, details)
            counts = self.fields.counts(get_named_type(kind.fields["nodes"].type), position)
            connection = self.connection(kind, details)
            return SearchedRoot(key, resolve, definition, node, connection, position, counts, place)
        return InPlaceField.of(rank, key, query, definition, details)


@dataclass(frozen=True, eq=False)
class Place:
    """A field's step in paths of the response and its places in the document, and what it is where an error makes it
    null: None where it may not be null, so that the object around it is. `item` is the same for an item of its list,
    `start` the key of the field as JSON.
    """

    start: bytes
    step: Step
    nodes: Sequence[FieldNode]
    null: bytes | None
    item: bytes | None

    @classmethod
    def of(cls, kind: Any, rank: int, key: str, details: Sequence[FieldDetails]) -> "Place":
        """That of a field of this type; `rank` is that of its key among those of the object."""
        null = None if is_non_null_type(kind) else b"null"
        kind = kind.of_type if null is None else kind
        item = None if is_list_type(kind) and is_non_null_type(kind.of_type) else b"null"
        return cls(key_of(key), Step(rank, key, null is not None), [one.node for one in details], null, item)


@dataclass(frozen=True, eq=False)
class FoundRoot:
    """A field of Query that looks nodes up, and the position of these."""

    key: str
    resolve: TargetField
    definition: Any
    node: Any
    position: "ResponsePosition"
    place: Place


@dataclass(frozen=True, eq=False)
class ListedRoots:
    """A field of Query that lists a hierarchy's roots."""

    key: str
    resolve: RootsField
    listing: "ListField"

    @property
    def connection(self) -> "Connection":
        return self.listing.connection

    @property
    def place(self) -> Place:
        return self.listing.place


@dataclass(frozen=True, eq=False)
class SearchedRoot:
    """A field of Query that finds nodes by what they are like, and what is selected of them: `counts` is whether
    `descendantCount` is.
    """

    key: str
    resolve: FoundField
    definition: Any
    node: Any
    connection: "Connection"
    position: NodePosition
    counts: bool
    place: Place


@dataclass(frozen=True, eq=False)
class InPlaceField:
    """A field that graphql-core executes, of Query or of a node; `count` is what it counts as in the budget, without
    the fields of objects in it, and `is_proven` whether the version of the node's tree proves its value.
    """

    key: str
    parent: GraphQLObjectType
    details: list[FieldDetails]
    place: Place
    count: int
    is_proven: bool

    @classmethod
    def of(
        cls, rank: int, key: str, parent: GraphQLObjectType, definition: Any, details: list[FieldDetails]
    ) -> "InPlaceField":
        kind = None if definition is None else definition.type
        weight = RELATION_FIELDS if leads_to_nodes(name_of(details), definition) else 1
        is_proven = definition is not None and is_proven_by_tree(definition)
        return cls(key, parent, details, Place.of(kind, rank, key, details), weight, is_proven)

    @property
    def nodes(self) -> Sequence[FieldNode]:
        return self.place.nodes


@dataclass(frozen=True, eq=False)
class FailedRoot:
    """A field of Query below which directives have variables that do not fit."""

    key: str
    place: Place
    error: GraphQLError


RootField = FailedRoot | TypeName | FoundRoot | ListedRoots | SearchedRoot | InPlaceField


@dataclass(frozen=True, eq=False)
class ListField:
    """A connection among an object's fields."""

    key: str
    relation: RelationField
    connection: "Connection"
    place: Place


@dataclass(frozen=True, eq=False)
class AboveField:
    """`parent` or `ancestors` among an object's fields."""

    key: str
    relation: RelationField
    position: "ResponsePosition"
    place: Place

    @property
    def many(self) -> bool:
        return self.relation.kind is RelationKind.ANCESTORS


class ResponsePosition:
    """A position of the response that holds nodes, as an interface or one level's type."""

    def __init__(self, plan: OperationPlan, position: NodePosition) -> None:
        self.selected = position
        self._plan = plan
        self._types: dict[tuple[str, str], CompiledType | GraphQLError] = {}

    def compiled(self, hierarchy: str, level: str) -> "CompiledType | GraphQLError | None":
        """The type of a node of this level here; None for a level that its hierarchy has not, and the error of
        variables that do not fit the directives.
        """
        key = (hierarchy, level)
        found = self._types.get(key)
        if found is None and (kind := self._plan.fields.level_type(hierarchy, level)) is not None:
            try:
                found = CompiledType(self._plan, kind, self.selected.of_type(kind))
            except GraphQLError as error:
                found = error.with_traceback(None)
            self._types[key] = found
        return found


class CompiledType:
    """One object type at one position: its fields in the order of the query, runs of leaf fields as one writer.

    `childless` writes the whole of a node that has nothing below it, where of its relations only lists below it are
    selected; else it is None. `count` is what the fields of one object count as in the budget, without those of its
    `values`, and `empty_count` what those of its empty lists count as beside.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, grouped: Grouped) -> None:
        fields = [_compiled_field(plan, kind, rank, *one) for rank, one in enumerate(grouped.items())]
        self.is_leaf = all(map(_is_leaf, fields))
        self.ranks = {key: rank for rank, key in enumerate(grouped)}
        self.parts: list[LeafWriter | ListField | AboveField | InPlaceField] = []
        for are_leaves, run in groupby(fields, _is_leaf):
            parts: list[Any] = list(run)
            self.parts += [LeafWriter(parts, whole=self.is_leaf)] if are_leaves else parts
        self.leaves = [part for part in self.parts if isinstance(part, LeafWriter)]
        self.lists = [part for part in self.parts if isinstance(part, ListField)]
        self.listed = [part.relation for part in self.lists]
        self.above = [part for part in self.parts if isinstance(part, AboveField)]
        self.in_place = [part for part in self.parts if isinstance(part, InPlaceField)]
        self.childless = None if self.is_leaf else _childless(fields)
        self.values = [field for field in fields if isinstance(field, ValueField)]
        self.count = len(fields) + (RELATION_FIELDS - 1) * (len(self.lists) + len(self.above))
        self.count += sum([one.count - 1 for one in self.in_place])
        self.empty_count = sum([field.connection.page_count for field in self.lists])
        self.varies = any(part.varies for part in self.leaves)

    def value_counts(self, records: Sequence[Record]) -> int:
        """What the fields of the nested values and names of some nodes count as."""
        return sum([field.count(record) for field in self.values for record in records])


def _is_leaf(field: object) -> bool:
    return isinstance(field, LeafField | TypeName)


def _childless(fields: Sequence["CompiledField"]) -> LeafWriter | None:
    """The writer of these fields for a node that has nothing below it; None where they select what is not below."""
    leaves: list[TypeName | LeafField | Constant] = []
    for field in fields:
        if isinstance(field, TypeName | LeafField):
            leaves.append(field)
        elif isinstance(field, ListField) and field.relation.kind is not RelationKind.SIBLINGS:
            leaves.append(Constant(field.key, field.connection.empty))
        else:
            return None
    return LeafWriter(leaves, whole=True)


CompiledField = TypeName | LeafField | ListField | AboveField | InPlaceField


def _compiled_field(
    plan: OperationPlan, kind: GraphQLObjectType, rank: int, key: str, details: list[FieldDetails]
) -> CompiledField:
    """A merged field of an object: its type's name, a leaf, a relation, or what graphql-core executes."""
    name = name_of(details)
    relation = RELATION_KINDS.get(name)
    if name == "__typename":
        return TypeName(key, kind.name)
    if relation in LISTS:
        return plan.list_field(rank, key, kind, details)
    if relation is not None:
        field = plan.fields.relation(kind, details)
        place = Place.of(field.definition.type, rank, key, details)
        return AboveField(key, field, plan.position(field.position), place)
    definition = kind.fields[name]
    if resolver_of(definition) is None:
        return InPlaceField.of(rank, key, kind, definition, details)
    return _leaf_field(plan, kind, key, details)


def _leaf_field(
    plan: OperationPlan, kind: GraphQLObjectType, key: str, details: list[FieldDetails]
) -> TypeName | LeafField:
    """A merged field that needs no read: a leaf, or an object out of the record."""
    if name_of(details) == "__typename":
        return TypeName(key, kind.name)
    node, definition = details[0].node, kind.fields[name_of(details)]
    resolve: Any = resolver_of(definition)
    bind = partial(resolver_arguments, definition, node)
    label, nodes = f"{kind.name}.{node.name.value}", [one.node for one in details]
    inner = get_named_type(definition.type)
    if isinstance(inner, GraphQLObjectType):
        below = plan.fields.below(inner, details).items()
        fields = [_leaf_field(plan, inner, *one) for one in below]
        return _value_field(LeafField(key, definition.type, resolve, label=label, nodes=nodes), fields)
    if has_variables(node):
        return LeafField(key, definition.type, resolve, bind=bind, label=label, nodes=nodes)
    return LeafField(key, definition.type, resolve, bind(plan.variables), label=label, nodes=nodes)


def _value_field(field: LeafField, fields: Sequence[TypeName | LeafField]) -> ValueField:
    leaves = [one for one in fields if isinstance(one, LeafField)]
    arguments: dict[str, Any] = {one.key: one.arguments for one in leaves}
    binds = {one.key: one.bind for one in leaves if one.bind is not None}

    def bind(variables: VariableValues) -> dict[str, Any]:
        return arguments | {key: bound(one, variables) for key, one in binds.items()}

    return ValueField(
        field.key, field.kind, field.resolve, arguments, bind if binds else None, field.label, field.nodes, fields
    )


class Connection:
    """A connection's fields in the order of the query, and the positions of the nodes in those that have any.

    `empty` is the JSON of an empty page. `page_count` is what the fields of a page count as in the budget, and
    `record_count` what they count as more for each of its records, without the fields of the nodes.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, details: list[FieldDetails]) -> None:
        self.parts: list[ConnectionField] = []
        self.positions: dict[ConnectionField, list[NodesField]] = {}
        self.places: dict[ConnectionField, Place] = {}
        below = plan.fields.below
        for rank, (key, fields) in enumerate(below(kind, details).items()):
            name = name_of(fields)
            definition = None if name == "__typename" else kind.fields[name]
            inner: Any = kind if definition is None else get_named_type(definition.type)
            nodes: list[NodesField] = []
            match name:
                case "nodes":
                    part = ConnectionField(key, name, kind.name)
                    place = Place.of(None, rank, key, fields)
                    nodes = [NodesField((), plan.position(plan.fields.position(fields)), place)]
                case "edges":
                    edge = below(inner, fields)
                    part = ConnectionField(key, name, inner.name, _names(edge))
                    nodes = [
                        _node_of_edge(plan, *one) for one in enumerate(edge.items()) if name_of(one[1][1]) == "node"
                    ]
                case "pageInfo":
                    part = ConnectionField(key, name, inner.name, _names(below(inner, fields)))
                case _:
                    part = ConnectionField(key, name, kind.name)
            self.parts.append(part)
            self.places[part] = Place.of(definition and definition.type, rank, key, fields)
            if nodes:
                self.positions[part] = nodes
        self.totals = [part for part in self.parts if part.name == "totalCount"]
        self.page_count = sum([part.count(1, 0) for part in self.parts])
        self.record_count = sum([part.count(1, 1) for part in self.parts]) - self.page_count
        (self.empty,) = objects([(b"", [part.write(EMPTY, iter(()))]) for part in self.parts], 1)


@dataclass(frozen=True, eq=False)
class NodesField:
    """The nodes in a field of a connection: `below` is where in an item of the list, for an edge the key of its node
    with its rank among the keys.
    """

    below: tuple[Step, ...]
    position: ResponsePosition
    place: Place


def _node_of_edge(plan: OperationPlan, rank: int, field: tuple[str, list[FieldDetails]]) -> NodesField:
    key, details = field
    place = Place.of(None, rank, key, details)
    below = (Step(rank, key, may_be_null=False),)
    return NodesField(below, plan.position(plan.fields.position(details)), place)


def _names(grouped: Grouped) -> list[tuple[str, str]]:
    """Response keys, each with the name of its field."""
    return [(key, name_of(fields)) for key, fields in grouped.items()]
