"""An operation compiled: which places of its response hold nodes, and for each level how an object there looks.

A plan runs level by level. All lists that the nodes of one level ask for are read by one call of the batch functions,
all that lies above them by another; when nothing is left to read, the objects are told from the bottom up.

Fields are merged by graphql-core's own `collect_subfields`. What was compiled is shared by (concrete type, merged field
nodes), so a document's fragments are compiled once, however often and deep they are used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    get_named_type,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.execution.values import VariableValues, get_argument_values

from graph.compiler.connection_writer import EMPTY, Part, objects
from graph.compiler.leaf_codegen import (
    Constant,
    LeafField,
    LeafWriter,
    TypeName,
    UnsupportedByPlan,
    resolver_of,
)
from graph.compiler.plan_variables import arguments_of, fields_with_variables, has_variables
from graph.operation.lookahead import AnySelection, Types, window_of
from graph.types.root_fields import RootsField, TargetField
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import Relation, RelationKind
from resolvers.session.budget import RELATION_FIELDS
from store.errors import BadInput
from store.model.records import Record

LISTS = frozenset((RelationKind.CHILDREN, RelationKind.DESCENDANTS, RelationKind.SIBLINGS))
_KINDS = {kind.value: kind for kind in RelationKind}


class OperationPlan:
    """One operation with one set of answers to its `@skip` and `@include`."""

    def __init__(
        self,
        schema: GraphQLSchema,
        types: Types,
        document: DocumentNode,
        operation: OperationDefinitionNode,
        variables: VariableValues,
    ) -> None:
        self.schema, self.types = schema, types
        self.operation = operation
        self.fragments = {
            one.name.value: FragmentDetails(one)
            for one in document.definitions
            if isinstance(one, FragmentDefinitionNode)
        }
        self.variables = variables
        self._places: dict[tuple[int, ...], ResponsePosition] = {}
        self._connections: dict[tuple[object, ...], Connection] = {}
        query = cast(GraphQLObjectType, schema.query_type)
        collected = collect_fields(schema, self.fragments, variables, query, operation)
        self.roots = [self._root(query, key, details) for key, details in collected.grouped_field_set.items()]
        self.count = sum([RELATION_FIELDS if isinstance(root, ListedRoots) else 1 for root in self.roots])
        self.found = [root for root in self.roots if isinstance(root, FoundRoot)]
        self.listed = [root for root in self.roots if isinstance(root, ListedRoots)]
        looked_up = {id(detail.node) for root in self.found for detail in root.details}
        varying = fields_with_variables(document) - looked_up
        self.relations = None if varying else Relations(variables)
        """Those of all questions, where no variable is among their arguments."""

    def place(self, kind: Any, details: Sequence[FieldDetails]) -> "ResponsePosition":
        key = tuple([id(detail.node) for detail in details])
        if key not in self._places:
            self._places[key] = ResponsePosition(self, get_named_type(kind), list(details))
        return self._places[key]

    def connection(self, kind: GraphQLObjectType, details: Sequence[FieldDetails]) -> "Connection":
        key = (kind.name, *[id(detail.node) for detail in details])
        if key not in self._connections:
            self._connections[key] = Connection(self, kind, list(details))
        return self._connections[key]

    def collect(self, kind: GraphQLObjectType, details: Sequence[FieldDetails]) -> dict[str, list[FieldDetails]]:
        """The merged fields below fields that return this type, by response key in the order of the query."""
        collected = collect_subfields(self.schema, self.fragments, self.variables, self.operation, kind, list(details))
        return collected.grouped_field_set

    def _root(self, query: GraphQLObjectType, key: str, details: list[FieldDetails]) -> "RootField":
        name = details[0].node.name.value
        if name == "__typename":
            return TypeName(key, query.name)
        definition = query.fields.get(name)
        resolve = resolver_of(definition)
        if isinstance(resolve, RootsField):
            connection = self.connection(get_named_type(definition.type), details)
            return ListedRoots(key, resolve, ListField(key, RelationKind.CHILDREN, definition, connection, details))
        if isinstance(resolve, TargetField):
            return FoundRoot(key, resolve, definition, details, self.place(definition.type, details))
        raise UnsupportedByPlan


@dataclass(frozen=True, eq=False)
class FoundRoot:
    """A field of Query that looks nodes up, and the place of what it finds."""

    key: str
    resolve: TargetField
    definition: Any
    details: list[FieldDetails]
    place: "ResponsePosition"


@dataclass(frozen=True, eq=False)
class ListedRoots:
    """A field of Query that lists a hierarchy's roots."""

    key: str
    resolve: RootsField
    listing: "ListField"


RootField = TypeName | FoundRoot | ListedRoots


@dataclass(frozen=True, eq=False)
class ListField:
    """A connection among an object's fields."""

    key: str
    kind: RelationKind
    definition: Any
    connection: "Connection"
    details: list[FieldDetails]


@dataclass(frozen=True, eq=False)
class AboveField:
    """A parent, a root or the ancestors among an object's fields."""

    key: str
    kind: RelationKind
    place: "ResponsePosition"

    @property
    def many(self) -> bool:
        return self.kind is RelationKind.ANCESTORS


class ResponsePosition:
    """Where nodes stand in a response: some merged fields that return them, as an interface or one level's type."""

    def __init__(self, plan: OperationPlan, kind: Any, details: list[FieldDetails]) -> None:
        self.plan = plan
        self.kind = kind
        self.details = details
        self._shapes: dict[tuple[str, str], CompiledType] = {}

    def shape(self, hierarchy: str, level: str) -> "CompiledType":
        """How a node of this level looks here; raises Surprise where the level is none of its hierarchy's."""
        key = (hierarchy, level)
        found = self._shapes.get(key)
        if found is None:
            concrete = self.kind
            if not isinstance(concrete, GraphQLObjectType):
                concrete = self.plan.schema.get_type(self.plan.types.get(key, ""))
            found = self._shapes[key] = CompiledType(self.plan, concrete, self.details)
        return found


class CompiledType:
    """One object type at one place: its fields in the order of the query, runs of leaves in one.

    `bare` tells the whole of a node that has nothing below it, where its lists alone are asked for; else it is None.
    `count` is what one object's fields count as in the budget, `empty_count` what those of empty lists count as beside.
    """

    def __init__(self, plan: OperationPlan, concrete: Any, details: list[FieldDetails]) -> None:
        if not isinstance(concrete, GraphQLObjectType):
            raise UnsupportedByPlan
        self.parts: list[LeafWriter | ListField | AboveField] = []
        leaves: list[LeafField | TypeName] = []

        def close(*, whole: bool = False) -> None:
            if leaves:
                self.parts.append(LeafWriter(list(leaves), whole=whole))
                leaves.clear()

        fields = [_part(plan, concrete, key, some) for key, some in plan.collect(concrete, details).items()]
        for part in fields:
            if isinstance(part, LeafField | TypeName):
                leaves.append(part)
            else:
                close()
                self.parts.append(part)
        self.is_leaf = not self.parts
        close(whole=self.is_leaf)
        self.leaves = [part for part in self.parts if isinstance(part, LeafWriter)]
        self.relations = [part for part in self.parts if not isinstance(part, LeafWriter)]
        self.lists = [part for part in self.parts if isinstance(part, ListField)]
        self.above = [part for part in self.parts if isinstance(part, AboveField)]
        self.bare = None if self.is_leaf else _bare(fields)
        self.count = len(fields) + (RELATION_FIELDS - 1) * len(self.relations)
        self.empty_count = sum([field.connection.empty_count for field in self.lists])
        self.varies = any(part.varies for part in self.leaves)


def _bare(fields: Sequence[TypeName | LeafField | ListField | AboveField]) -> LeafWriter | None:
    """What tells these fields of a node that has nothing below it, where they ask for nothing above or beside it."""
    told: list[TypeName | LeafField | Constant] = []
    for field in fields:
        if isinstance(field, TypeName | LeafField):
            told.append(field)
        elif isinstance(field, ListField) and field.kind is not RelationKind.SIBLINGS:
            told.append(Constant(field.key, field.connection.empty))
        else:
            return None
    return LeafWriter(told, whole=True)


def _part(
    plan: OperationPlan, concrete: GraphQLObjectType, key: str, fields: list[FieldDetails]
) -> TypeName | LeafField | ListField | AboveField:
    """What a merged field of an object is: its type's name, a leaf, or a relation."""
    node = fields[0].node
    name = node.name.value
    if name == "__typename":
        return TypeName(key, concrete.name)
    definition = concrete.fields[name]
    kind = _KINDS.get(name)
    if kind is None:
        resolve, bind = resolver_of(definition), partial(arguments_of, definition, node)
        if has_variables(node):
            return LeafField(key, definition.type, resolve, bind=bind)
        return LeafField(key, definition.type, resolve, bind(plan.variables))
    if kind in LISTS:
        connection = plan.connection(get_named_type(definition.type), fields)
        return ListField(key, kind, definition, connection, fields)
    return AboveField(key, kind, plan.place(definition.type, fields))


class Connection:
    """A connection's fields in the order of the query, and the places of the nodes in those that have any.

    `empty` is how a page tells that there is nothing in it.
    """

    def __init__(self, plan: OperationPlan, kind: GraphQLObjectType, details: list[FieldDetails]) -> None:
        self.parts: list[Part] = []
        self.places: dict[Part, ResponsePosition] = {}
        nodes: list[FieldDetails] = []
        for key, fields in plan.collect(kind, details).items():
            name = fields[0].node.name.value
            below: Any = kind if name == "__typename" else get_named_type(kind.fields[name].type)
            inner: list[FieldDetails] = []
            match name:
                case "nodes":
                    part, inner = Part(key, name, kind.name), fields
                case "edges":
                    edge = plan.collect(below, fields)
                    part, inner = Part(key, name, below.name, _names(edge)), _nodes_of(edge)
                case "pageInfo":
                    part = Part(key, name, below.name, _names(plan.collect(below, fields)))
                case _:
                    part = Part(key, name, kind.name)
            self.parts.append(part)
            if inner:
                self.places[part] = plan.place(below.fields["node"].type if name == "edges" else below, inner)
                nodes += inner
        self.empty_count = sum([part.count(1, 0) for part in self.parts])
        names = {part.name for part in self.parts}
        self.nodes = bool(names & {"nodes", "edges", "pageInfo"})
        self.total = "totalCount" in names
        self.merged = plan.place(kind.fields["nodes"].type, nodes)
        (self.empty,) = objects([(b"", [part.tell(EMPTY, iter(()))]) for part in self.parts], 1)


def _names(collected: dict[str, list[FieldDetails]]) -> list[tuple[str, str]]:
    """Response keys, each with the name of its field."""
    return [(key, fields[0].node.name.value) for key, fields in collected.items()]


def _nodes_of(edge: dict[str, list[FieldDetails]]) -> list[FieldDetails]:
    """The field with an edge's node; one that is told twice under two keys is left to Strawberry."""
    found = [fields for fields in edge.values() if fields[0].node.name.value == "node"]
    if len(found) > 1:
        raise UnsupportedByPlan
    return found[0] if found else []


class Relations:
    """A plan's relations with the arguments that a request's variables give them."""

    def __init__(self, variables: VariableValues) -> None:
        self._variables = variables
        self._found: dict[int, Relation] = {}
        self._selections: dict[ResponsePosition, PlaceSelection] = {}

    def leaves(self, leaves: LeafWriter) -> Callable[[Record], bytes]:
        return leaves.bound(self._variables)

    def of(self, field: ListField | AboveField) -> Relation:
        """The relation of a field; raises BadInput where its arguments contradict each other."""
        found = self._found.get(id(field))
        if found is None:
            found = self._found[id(field)] = self._new(field)
        return found

    def selection(self, place: ResponsePosition) -> "PlaceSelection":
        found = self._selections.get(place)
        if found is None:
            found = self._selections[place] = PlaceSelection(self, place)
        return found

    def _new(self, field: ListField | AboveField) -> Relation:
        if isinstance(field, AboveField):
            return Relation(field.kind, ConnectionArguments(), self.selection(field.place))
        window = window_of(get_argument_values(field.definition, field.details[0].node, self._variables))
        connection = field.connection
        return Relation(field.kind, window, self.selection(connection.merged), connection.nodes, connection.total)


class PlaceSelection(AnySelection):
    """What is asked of the nodes at a place, as the resolvers plan with it."""

    def __init__(self, relations: Relations, place: ResponsePosition) -> None:
        super().__init__()
        self._relations = relations
        self._place = place
        self._found: dict[tuple[str, str], tuple[Relation, ...]] = {}

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        key = (hierarchy, level)
        found = self._found.get(key)
        if found is None:
            shape = self._place.shape(hierarchy, level)
            relations = [self._relation(field) for field in shape.relations]
            found = self._found[key] = tuple([one for one in relations if one is not None])
        return found

    def _relation(self, field: ListField | AboveField) -> Relation | None:
        try:
            return self._relations.of(field)
        except (BadInput, GraphQLError):
            return None  # the field will tell when its turn comes, if it does
