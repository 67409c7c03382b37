"""Operation plan: one compiled operation, as the positions of its response that hold objects and, by type, what is
written of an object there, and what it leads to.

`graph/execution/run.py` runs it level by level. Each batch function is called once for all objects of a level; when
nothing is left to read, objects are written from the bottom up. What is selected at a position is what the planner of
reads looks ahead at (`LookAhead`), so that one read of a level also returns the data of the next ones.

What was compiled is shared by (concrete type, merged field nodes), so a fragment is compiled once, however often and
deep it is used. The error of a condition that is null is kept in place of what it belongs to.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, cast

from graphql import (
    GraphQLError,
    GraphQLObjectType,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_list_type,
    is_non_null_type,
)
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.values import VariableValues, get_argument_values
from orjson import dumps

from graph.execution.json_writers import (
    Arguments,
    ConnectionField,
    Constant,
    LeafField,
    LeafWriter,
    ValueField,
    key_of,
    objects,
)
from graph.operation.selection import (
    Grouped,
    SelectedFields,
    connection_arguments,
    facets_request,
    has_variables,
    name_of,
    named,
    node_ids,
    plain_levels,
)
from graph.types.fields import resolver_of
from graph.types.reading import CHILDREN, DESCENDANTS
from resolvers.lists.arguments import ConnectionArguments, Relation, RelationKind, Selection
from resolvers.search.finder import FoundPage
from resolvers.session.budget import RELATION_FIELDS
from resolvers.sorting.facets import FacetsRequest
from store.errors import BadInput, CladeError
from store.model.keys import hierarchy_of
from store.model.names import lookup
from store.model.records import Record

EMPTY = FoundPage([], total=0)  # which has the fields of any page
ABOVE = (RelationKind.PARENT, RelationKind.ANCESTORS)
COUNT = "descendantCount"  # the field of a root that takes the version of its tree

KIND = attrgetter("pk", "level")
"""The tree and the level of a record, which lead to its type: there are few of both, whatever the records are."""


class OperationPlan:
    """One operation with one set of values for its `@skip` and `@include`."""

    def __init__(
        self, fields: SelectedFields, variables: VariableValues, varying: Set[int], *, is_query: bool, is_current: bool
    ) -> None:
        """`varying` are the ids of the field nodes that have variables. With `is_current` no state may be stale that is
        read. Raises GraphQLError where the condition of a field of Query is null.
        """
        self.fields, self.variables, self.is_current = fields, variables, is_current
        self._positions: dict[Hashable, ResponsePosition] = {}
        self._connections: dict[Hashable, Connection] = {}
        self.query = CompiledType(self, fields.query_type, fields.at_root()) if is_query else None
        """The fields of Query; None for other operations, of which only what is below their payloads is compiled."""
        roots = self.query.reads if self.query else []
        bound = {id(root.nodes[0]) for root in roots if root.kind is not RelationKind.ROOTS}
        self.look_ahead = None if varying - bound else LookAhead(variables)
        """That of all requests, where only lookups and searches have variables, which a `BoundPlan` binds."""

    def position(self, kind: Any, details: list[FieldDetails]) -> "ResponsePosition":
        """The position of the objects of a type that these merged fields return."""
        key = (kind.name, *node_ids(details))
        if key not in self._positions:
            self._positions[key] = ResponsePosition(self, kind, details)
        return self._positions[key]

    def connection(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> "Connection":
        key = (kind.name, *node_ids(details))
        if key not in self._connections:
            self._connections[key] = Connection(self, kind, details)
        return self._connections[key]


def arguments_of(definition: Any, node: Any, variables: VariableValues) -> Arguments:
    """The arguments of a field, or the error of invalid ones."""
    try:
        return get_argument_values(definition, node, variables) if definition.args else {}
    except GraphQLError as error:
        return error.with_traceback(None)


class ReadField:
    """A field that reads: the pages of its `connection`, or the objects at its `position`.

    `error` is in place of both where its selections have one. `kind` is that of a relation.
    """

    def __init__(self, plan: OperationPlan, parent: GraphQLObjectType, key: str, details: list[FieldDetails]) -> None:
        self.key, self.nodes = key, [one.node for one in details]
        self.definition = parent.fields[name_of(details)]
        self.reading: Any = resolver_of(self.definition)
        self.kind: RelationKind | None = getattr(self.reading, "kind", None)
        kind, items = get_named_type(self.definition.type), get_nullable_type(self.definition.type)
        self.many = is_list_type(items)
        self.has_nullable_items = self.many and not is_non_null_type(items.of_type)
        self.is_nullable = not is_non_null_type(self.definition.type)
        self.connection: Connection | None = None
        self.position: ResponsePosition | None = None
        self.error: GraphQLError | None = None
        try:
            if _lists(kind):
                self.connection = plan.connection(kind, details)
            else:
                self.position = plan.position(kind, details)
        except GraphQLError as error:
            self.error = error.with_traceback(None)
        self.count = RELATION_FIELDS if _lists(kind) or self.kind in ABOVE else 1
        """What it counts as in the budget."""

    @property
    def selected(self) -> "ResponsePosition | None":
        """The position of the objects that it leads to."""
        return self.connection.listed if self.connection else self.position

    def order_of(self, tail: Sequence[str | int]) -> tuple[int, ...]:
        """The place, in what it leads to, of a path from it on, by the order of the query."""
        if self.connection is None or not tail:
            return tuple([key for key in tail if isinstance(key, int)])
        keys: list[str | int] = [part.field.key for part in self.connection.parts]
        number, (_, *inner) = keys.index(tail[0]), tail
        positions: list[str | int] = [*self.connection.parts[number].positions]
        return (number, *[key if isinstance(key, int) else positions.index(key) for key in inner])

    def bind(self, given: Mapping[str, Any]) -> Any:
        """What it is asked with for some arguments in the query. Raises BadInput."""
        if self.kind is None:
            return self.reading.bind(given)
        return connection_arguments(self.definition, self.kind, given)

    def relation(
        self, arguments: ConnectionArguments, selection: Selection, facets: tuple[FacetsRequest, ...] = ()
    ) -> Relation:
        """Itself with arguments and the facets of its lists, for the planner of reads."""
        listed, kind = self.connection, cast(RelationKind, self.kind)
        if listed is None:
            return Relation(kind, arguments, selection, nodes=kind in ABOVE)
        counts = kind is RelationKind.ROOTS and listed.counts
        return Relation(kind, arguments, selection, listed.has_nodes, listed.has_total, counts, facets)


@dataclass(frozen=True, eq=False)
class OtherField:
    """A field of Query that graphql-core executes, as introspection."""

    key: str
    details: list[FieldDetails]


Part = LeafWriter | ReadField | OtherField


class ResponsePosition(dict[Any, "CompiledType | GraphQLError | None"]):
    """A position of the response that holds objects of one type, an interface or a union: the types of these objects,
    of nodes by (hierarchy, level), of others by the name of the type.

    In its place is the error of its selections, and None for a level that its hierarchy has not.
    """

    def __init__(self, plan: OperationPlan, kind: Any, details: list[FieldDetails]) -> None:
        self._plan, self._kind, self.details = plan, kind, details
        self.nodes = [one.node for one in details]
        self._is_abstract = is_abstract_type(kind)
        kinds = plan.fields.schema.get_possible_types(kind) if self._is_abstract else [kind]
        self.holds_nodes = plan.fields.are_levels(kinds)
        self.kind_of: Callable[[Any], Any] = KIND if self.holds_nodes else self._name_of
        """What tells the type of an object, for `type_of`."""

    def __missing__(self, key: Any) -> "CompiledType | GraphQLError | None":
        plan = self._plan
        found: CompiledType | GraphQLError | None = None
        kind: Any = plan.fields.level_type(*key) if self.holds_nodes else plan.fields.schema.get_type(key)
        try:
            if kind is not None and (self._is_abstract or kind is self._kind):
                below = plan.fields.below(kind, self.details)
                found = CompiledType(plan, kind, below, of_nodes=self.holds_nodes)
        except GraphQLError as error:
            found = error.with_traceback(None)
        self[key] = found
        return found

    def _name_of(self, found: Any) -> str:
        return str(self._kind.resolve_type(found, None, self._kind) if self._is_abstract else self._kind.name)

    def type_of(self, kind: Any) -> "CompiledType | GraphQLError | None":
        """The type of objects by what tells it."""
        return self[hierarchy_of(kind[0]), kind[1]] if self.holds_nodes else self[kind]

    def constant_count(self, records: Sequence[Record]) -> int | None:
        """What the fields of some nodes here count as; None where one is written from more than the node."""
        if not self.holds_nodes:
            return None
        count = 0
        for kind, number in Counter(map(KIND, records)).items():
            compiled = self.type_of(kind)
            if not isinstance(compiled, CompiledType) or not compiled.is_leaf or compiled.varies:
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

    def __init__(
        self, plan: OperationPlan, kind: GraphQLObjectType, grouped: Grouped, *, of_nodes: bool = False
    ) -> None:
        self.fields = fields = [_compiled_field(plan, kind, key, details) for key, details in grouped.items()]
        self.is_leaf = all(map(_is_leaf, fields))
        self.parts: list[tuple[bytes, Part]] = []
        """Each with its response key as JSON, empty for a writer of leaves."""
        for are_leaves, run in groupby(fields, _is_leaf):
            parts: list[Any] = list(run)
            writer = [(b"", LeafWriter(parts, whole=self.is_leaf, of_nodes=of_nodes))] if are_leaves else []
            self.parts += writer or [(key_of(part.key), part) for part in parts]
        if not fields:  # all were skipped
            self.parts.append((b"", LeafWriter([], whole=True, of_nodes=of_nodes)))
        self.reads = [part for part in fields if isinstance(part, ReadField)]
        self.others = {part.key: part.details for part in fields if isinstance(part, OtherField)}
        self.childless = None if self.is_leaf or not of_nodes else _childless(fields)
        self.values = [field for field in fields if isinstance(field, ValueField)]
        self.count = len(fields) - len(self.reads) - len(self.others) + sum([field.count for field in self.reads])
        self.empty_count = sum([field.connection.page_count for field in self.reads if field.connection])
        self.varies = any(isinstance(part, LeafWriter) and part.varies for _, part in self.parts)

    def order_of(self, path: Sequence[str | int]) -> tuple[int, ...]:
        """The place of a field in an object, and in the values below it, by their order in the query."""
        place: list[int] = []
        fields: Any = self.fields
        for key in path:
            if isinstance(key, int):
                place.append(key)
            elif fields:
                place.append([field.key for field in fields].index(key))
                fields = getattr(fields[place[-1]], "fields", ())
        return tuple(place)

    def value_counts(self, records: Sequence[Any]) -> int:
        """What the fields of the nested values and names of some objects count as."""
        return sum([field.count(record) for field in self.values for record in records])


def _is_leaf(field: object) -> bool:
    return isinstance(field, LeafField | Constant)


def _childless(fields: Sequence[LeafField | Constant | ReadField | OtherField]) -> LeafWriter | None:
    """The writer of these fields for a node that has nothing below it; None where they select what is not below."""
    leaves: list[LeafField | Constant] = []
    for field in fields:
        if isinstance(field, LeafField | Constant):
            leaves.append(field)
            continue
        if not isinstance(field, ReadField) or field.reading not in (CHILDREN, DESCENDANTS):
            return None
        if field.connection is None or field.connection.empty is None:
            return None
        leaves.append(Constant(field.key, field.connection.empty))
    return LeafWriter(leaves, whole=True)


def _compiled_field(
    plan: OperationPlan, kind: GraphQLObjectType, key: str, details: list[FieldDetails]
) -> LeafField | Constant | ReadField | OtherField:
    """A merged field of an object: its type's name, a leaf, an object out of the object, or what is read."""
    if name_of(details) == "__typename":
        return Constant(key, dumps(kind.name))
    node, definition = details[0].node, kind.fields.get(name_of(details))
    resolve: Any = None if definition is None else resolver_of(definition)
    is_root = kind is plan.fields.query_type
    if definition is None or resolve is None:
        return OtherField(key, details)
    inner = get_named_type(definition.type)
    if is_root or hasattr(resolve, "read"):
        return ReadField(plan, kind, key, details)
    if isinstance(inner, GraphQLObjectType):
        return _value_field(plan, key, definition, details)
    nodes, bind = [one.node for one in details], partial(_arguments_of_leaf, definition, node)
    return LeafField(key, definition.type, resolve, nodes, bind(plan.variables), bind if has_variables(node) else None)


def _arguments_of_leaf(definition: Any, node: Any, variables: VariableValues) -> Arguments:
    """The arguments of a field that is computed for each node, checked once for all of them: levels once each, since
    clients may repeat them, and language tags, which may be long.
    """
    given = arguments_of(definition, node, variables)
    if isinstance(given, GraphQLError):
        return given
    if given.get("level"):
        return {**given, "level": plain_levels(given["level"])}
    if given.get("languages"):
        try:
            lookup((), given["languages"])
        except BadInput as error:
            return GraphQLError(str(error), original_error=error.with_traceback(None))
    return given


def _value_field(plan: OperationPlan, key: str, definition: Any, details: list[FieldDetails]) -> ValueField:
    kind: Any = get_named_type(definition.type)
    fields, failed = list[Any](), None
    try:
        fields = [_compiled_field(plan, kind, *one) for one in plan.fields.below(kind, details).items()]
    except GraphQLError as error:
        failed = error.with_traceback(None)
    leaves = [field for field in fields if isinstance(field, LeafField)]
    arguments = {field.key: field.arguments for field in leaves}
    binds = {field.key: field.bind for field in leaves if field.bind is not None}

    def bind(variables: VariableValues) -> dict[str, Any]:
        return arguments | {name: bound(variables) for name, bound in binds.items()}

    return ValueField(
        key, definition.type, cast(Any, resolver_of(definition)), [one.node for one in details], arguments,
        bind if binds else None, fields, is_list_type(get_nullable_type(definition.type)), failed,
    )  # fmt: skip


def _lists(kind: Any) -> bool:
    """Whether a type is that of the pages of a list."""
    nodes = kind.fields.get("nodes") if isinstance(kind, GraphQLObjectType) else None
    return nodes is not None and is_list_type(get_nullable_type(nodes.type))


def _resolver(kind: GraphQLObjectType, details: list[FieldDetails]) -> Any:
    """The resolver of merged fields, None for `__typename`."""
    definition = kind.fields.get(name_of(details))
    return None if definition is None else resolver_of(definition)


class Connection:
    """A connection's fields in the order of the query, each with the positions of the objects in it.

    `listed` is the position of all its objects, whether they are selected as nodes, in edges, or both. `empty` is the
    JSON of an empty page, None where that is an error or has facets. `page_count` and `node_count` are what its fields
    count as in the budget for each page, and for each node without the fields of the node.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, details: list[FieldDetails]) -> None:
        """Raises GraphQLError for a directive whose condition is null."""
        self._plan = plan
        self._item = get_named_type(kind.fields["nodes"].type)
        grouped, listed = plan.fields.below(kind, details), list[FieldDetails]()
        self.parts = [self._part(kind, key, fields, listed) for key, fields in grouped.items()]
        self.listed = plan.position(self._item, listed)
        self.has_nodes = any(part.field.name in ("nodes", "edges", "pageInfo") for part in self.parts)
        self.has_total = bool(named(grouped, "totalCount"))
        self.page_count = sum([part.field.page_count for part in self.parts])
        self.node_count = sum([part.field.node_count for part in self.parts])
        columns = [(part.field.start, [part.field.write(EMPTY, iter(()))]) for part in self.parts]
        is_broken = any(part.error is not None and part.field.name == "pageInfo" for part in self.parts)
        has_facets = any(part.facets for part in self.parts)
        self.empty = None if is_broken or has_facets else next(objects(columns, 1))

    def _part(
        self, kind: GraphQLObjectType, key: str, fields: list[FieldDetails], listed: list[FieldDetails]
    ) -> "ConnectionPart":
        """A field of the connection; `listed` gets the merged fields of its nodes."""
        name, typename, grouped = name_of(fields), kind.name, Grouped()
        if name == "facets":
            definition, nodes = kind.fields[name], [one.node for one in fields]
            facets = _value_field(self._plan, key, definition, fields)
            return ConnectionPart(ConnectionField(key, name, typename), {}, nodes, facets.error, definition, facets)
        listing, error = {"": fields} if name == "nodes" else {}, None
        inner: Any = kind
        if name in ("edges", "pageInfo"):
            inner = get_named_type(kind.fields[name].type)
            typename = inner.name
            try:
                grouped = self._plan.fields.below(inner, fields)
            except GraphQLError as found:
                error = found.with_traceback(None)
            listing = {each: one for each, one in grouped.items() if name_of(one) == "node"}
        listed += [detail for one in listing.values() for detail in one]
        below = {each: (name_of(one), _resolver(inner, one)) for each, one in grouped.items()}
        field = ConnectionField(key, name, typename, _resolver(kind, fields), below)
        positions = {each: self._plan.position(self._item, one) for each, one in listing.items()}
        return ConnectionPart(field, positions, [one.node for one in fields], error)

    @cached_property
    def counts(self) -> bool:
        """Whether `descendantCount` is selected of its nodes."""
        fields = self._plan.fields
        kinds = fields.schema.get_possible_types(self._item) if is_abstract_type(self._item) else [self._item]
        try:
            return any(named(fields.below(kind, self.listed.details), COUNT) for kind in kinds)
        except GraphQLError:  # which is that of the nodes, if there are any
            return False


@dataclass(frozen=True, eq=False)
class ConnectionPart:
    """A field of a connection; `positions` are those of its objects by the response key in an edge, empty of `nodes`.

    `error` is that of the selections in each of its edges, in `pageInfo` or in `facets`. Of the latter there are its
    `definition`, and what writes its objects.
    """

    field: ConnectionField
    positions: Mapping[str, ResponsePosition]
    nodes: Sequence[Any]
    error: GraphQLError | None
    definition: Any = None
    facets: ValueField | None = None


# -- look-ahead --------------------------------------------------------------------------------------------------------


class LookAhead:
    """The arguments of a plan's fields for the variables of a request, and what is selected at its positions."""

    def __init__(self, variables: VariableValues) -> None:
        self.variables = variables
        self._asked: dict[ReadField, Any] = {}
        self._selections: dict[int, NodeSelection] = {}  # by the ids of positions, which live as long as the plan
        self._arguments: dict[tuple[int, str], Any] = {}

    def asked(self, field: ReadField) -> Any:
        """What a field is asked with: its `Relation`, or what it binds; BadInput or GraphQLError for invalid arguments,
        without their frames: they are the error of every object.
        """
        return self._asked.get(field) or self._ask(field)

    def selection(self, position: ResponsePosition | None) -> "NodeSelection":
        """What is selected of the nodes at a position."""
        found = self._selections.get(id(position))
        if found is None:
            found = self._selections[id(position)] = NodeSelection(self, position)
        return found

    def _ask(self, field: ReadField) -> Any:
        key = id(field.nodes[0]), str(field.definition.type)  # lists of a hierarchy have the same at all levels
        found: Any = self._arguments.get(key)
        if found is None:
            found = arguments_of(field.definition, field.nodes[0], self.variables)
            try:
                if not isinstance(found, GraphQLError):
                    found = field.bind(found)
            except CladeError as error:
                found = error.bare()
            self._arguments[key] = found
        if isinstance(found, ConnectionArguments):
            facets = [self.facets(part) for part in field.connection.parts if part.facets] if field.connection else []
            asked = tuple(dict.fromkeys([one for one in facets if isinstance(one, FacetsRequest)]))
            found = field.relation(found, self.selection(field.selected), asked)
        self._asked[field] = found
        return found

    def facets(self, part: "ConnectionPart") -> FacetsRequest | Exception:
        """What a field of facets asks, or the error of invalid arguments or selections."""
        key = id(part.nodes[0]), "facets"
        found: Any = part.error or self._arguments.get(key)
        if found is None:
            definition = part.definition
            found = arguments_of(definition, part.nodes[0], self.variables)
            try:
                if not isinstance(found, GraphQLError):
                    found = facets_request(definition, found)
            except CladeError as error:
                found = error.bare()
            self._arguments[key] = found
        return cast(FacetsRequest | Exception, found)


class NodeSelection:
    """What is selected of the nodes at one position; where a level is expected, of nodes of this level alone."""

    def __init__(self, look_ahead: LookAhead, position: ResponsePosition | None, expected: str | None = None) -> None:
        self._look_ahead, self._position, self._expected = look_ahead, position, expected
        self._relations: dict[tuple[str, str], tuple[Relation, ...]] = {}
        self._expecting: dict[str, NodeSelection] = {}

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations that are selected of a node of this level of a hierarchy; those with invalid arguments are
        errors of their own.
        """
        key = (hierarchy, self._expected or level)
        found = self._relations.get(key)
        if found is None:
            compiled = None if self._position is None else self._position[key]
            reads = compiled.reads if isinstance(compiled, CompiledType) else []
            asked = [self._look_ahead.asked(field) for field in reads if field.reading.leads_to_nodes]
            found = self._relations[key] = tuple([one for one in asked if isinstance(one, Relation)])
        return found

    def expecting(self, level: str | None) -> "NodeSelection":
        """The same for nodes of this level, so that what is selected above them is known before they are read."""
        if level is None:
            return self
        if level not in self._expecting:
            self._expecting[level] = NodeSelection(self._look_ahead, self._position, level)
        return self._expecting[level]
