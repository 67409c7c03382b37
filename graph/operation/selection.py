"""Selection: the selected fields of an operation by type, and the relations among them with a request's arguments.

Compiled plans and Strawberry's resolvers use it, so that one read of a level also returns the data of the next ones.
graphql-core merges fields, fragments and aliases, and evaluates `@skip` and `@include`. Results are cached by concrete
type and merged field nodes: collecting again for every type at every level would take exponential time.

`SelectedFields` has the fields, `LookAhead` what the variables of a request add to them.

graphql-core's objects behind Strawberry's are found here as well: only this module reads Strawberry's private
attributes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import strawberry
from graphql import (
    DefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    GraphQLSkipDirective,
    OperationDefinitionNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.execution.values import VariableValues, get_argument_values, get_directive_values

from resolvers.lists.arguments import ConnectionArguments, KeyBounds, Relation, RelationKind
from resolvers.sorting.conditions import ConditionParser
from resolvers.sorting.ordering import LIST_ORDER, OrderField, Ordering, PlaceOrder
from store.errors import BadInput, CladeError

ORDER_VALUES = "clade-order-values"
"""The key, in the extensions of an enum of values to sort by, of these values by their names."""
CONDITION_VALUES = "clade-condition-values"
"""The same for an input of conditions."""

RELATION_KINDS = {kind.value: kind for kind in RelationKind if kind not in (RelationKind.ROOTS, RelationKind.REVISIONS)}
"""The fields of nodes that lead to other nodes, by their names."""
LISTS = frozenset(RelationKind) - {RelationKind.PARENT, RelationKind.ANCESTORS}
COUNT = "descendantCount"  # the field of a root that takes the version of its tree
_PLACES = {place.name: place for place in PlaceOrder}

Types = Mapping[tuple[str, str], str]
"""The name of the GraphQL type of each (hierarchy, level)."""
Grouped = dict[str, list[FieldDetails]]
"""Merged fields by response key, in the order of the query."""
Given = Mapping[str, Any]
"""Arguments or an input object, as graphql-core coerces them."""


def core_schema(schema: strawberry.Schema) -> GraphQLSchema:
    """The schema that graphql-core validates and executes against."""
    return schema._schema


def core_info(info: strawberry.Info) -> GraphQLResolveInfo[Any]:
    """The resolve info with the field nodes, the parent type and the fragments."""
    return info._raw_info


@dataclass(frozen=True, eq=False)
class NodePosition:
    """A position of the response that holds nodes: the merged fields that return them.

    What is selected of the nodes may differ from level to level.
    """

    details: list[FieldDetails]


@dataclass(frozen=True, eq=False)
class RelationField:
    """A selected field that leads to nodes at a position of the response.

    Of a connection, `nodes` is whether its nodes or `pageInfo` are selected, and `total` whether `totalCount` is.
    `counts` is whether the nodes are roots whose `descendantCount` is selected.
    """

    kind: RelationKind
    definition: Any
    node: FieldNode
    position: NodePosition
    nodes: bool = True
    total: bool = False
    counts: bool = False


class SelectedFields:
    """One operation with one set of values for its `@skip` and `@include`; other variables do not matter here."""

    def __init__(
        self,
        schema: GraphQLSchema,
        types: Types,
        definitions: Iterable[DefinitionNode],
        operation: OperationDefinitionNode,
        variables: VariableValues,
    ) -> None:
        """`definitions` are those of the document; only fragments are used."""
        self.schema, self._types = schema, types
        self.query_type = cast(GraphQLObjectType, schema.query_type)
        fragments = [definition for definition in definitions if isinstance(definition, FragmentDefinitionNode)]
        self.fragments = {fragment.name.value: FragmentDetails(fragment) for fragment in fragments}
        self.operation, self._variables = operation, variables
        self._fields: dict[tuple[object, ...], Grouped] = {}
        self._relations: dict[tuple[object, ...], RelationField] = {}
        self._positions: dict[tuple[int, ...], NodePosition] = {}

    def at_root(self) -> Grouped:
        """The merged fields of Query."""
        collected = collect_fields(self.schema, self.fragments, self._variables, self.query_type, self.operation)
        return collected.grouped_field_set

    def leads_to(self, details: list[FieldDetails], names: frozenset[str]) -> bool:
        """Whether a field of one of these names is selected below merged fields, of whatever type."""
        ahead: list[Any] = [detail.node.selection_set for detail in details]
        fragments: set[str] = set()
        while ahead:
            for node in getattr(ahead.pop(), "selections", ()):
                if node.directives:
                    skip = get_directive_values(GraphQLSkipDirective, node, self._variables)
                    include = get_directive_values(GraphQLIncludeDirective, node, self._variables)
                    if (skip and skip["if"]) or (include and not include["if"]):
                        continue
                if isinstance(node, FieldNode) and node.name.value in names:
                    return True
                if not isinstance(node, FragmentSpreadNode):
                    ahead.append(node.selection_set)
                elif node.name.value not in fragments:
                    fragments.add(node.name.value)
                    ahead.append(self.fragments[node.name.value].definition.selection_set)
        return False

    def below(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> Grouped:
        """The merged fields below fields that return this type. Raises GraphQLError for a directive whose condition is
        null.
        """
        key = (kind.name, *node_ids(details))
        if key not in self._fields:
            schema, operation = self.schema, self.operation
            collected = collect_subfields(schema, self.fragments, self._variables, operation, kind, details)
            self._fields[key] = collected.grouped_field_set
        return self._fields[key]

    def ahead(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> Grouped:
        """The same for what reads more than the field that is asked for; none where a condition is null.

        That is the error of the objects whose fields these are, if there are any: graphql-core raises it there.
        """
        try:
            return self.below(kind, details)
        except GraphQLError:
            return {}

    def level_type(self, hierarchy: str, level: str) -> GraphQLObjectType | None:
        """The type of the nodes of a level; None where the hierarchy has no such level."""
        kind = self.schema.get_type(self._types.get((hierarchy, level), ""))
        return kind if isinstance(kind, GraphQLObjectType) else None

    def position(self, details: list[FieldDetails]) -> NodePosition:
        """The position in the response of the nodes that these merged fields return."""
        return self._positions.setdefault(node_ids(details), NodePosition(details))

    def relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None = None
    ) -> RelationField:
        """A field that leads to nodes; `kind` is that of a connection that is no relation of nodes, such as ROOTS."""
        key = (parent.name, *node_ids(details))
        if key not in self._relations:
            self._relations[key] = self._new_relation(parent, details, kind)
        return self._relations[key]

    def _new_relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None
    ) -> RelationField:
        node = details[0].node
        definition = parent.fields[node.name.value]
        kind = kind or RELATION_KINDS[node.name.value]
        if kind not in LISTS:
            return RelationField(kind, definition, node, self.position(details))
        found: Any = get_named_type(definition.type)  # every list is a connection
        below = self.ahead(found, details)
        has_nodes = any(name_of(fields) in ("nodes", "edges", "pageInfo") for fields in below.values())
        position = self.listed(found, details)
        counts = kind is RelationKind.ROOTS and self.counts(found, position)
        return RelationField(kind, definition, node, position, has_nodes, bool(named(below, "totalCount")), counts)

    def listed(self, connection: Any, details: list[FieldDetails]) -> NodePosition:
        """The position of the nodes of a list, whether they are selected as nodes, in edges, or both."""
        below = self.ahead(connection, details)
        nodes = named(below, "nodes")
        for edges in named(below, "edges"):
            nodes += named(self.ahead(get_named_type(connection.fields["edges"].type), edges), "node")
        return self.position([detail for fields in nodes for detail in fields])

    def counts(self, connection: Any, position: NodePosition) -> bool:
        """Whether `descendantCount` is selected of the nodes of a list, which are at this position."""
        kind = get_named_type(connection.fields["nodes"].type)
        kinds = self.schema.get_possible_types(kind) if is_abstract_type(kind) else [kind]
        return any(name_of(details) == COUNT for one in kinds for details in self.ahead(one, position.details).values())


class LookAhead:
    """The selected fields of an operation with one set of variables."""

    def __init__(self, fields: SelectedFields, variables: VariableValues) -> None:
        self.variables = variables
        self._fields = fields
        self._relations: dict[RelationField, Relation | CladeError | GraphQLError] = {}
        self._selections: dict[NodePosition, NodeSelection] = {}
        self._arguments: dict[tuple[int, str], ConnectionArguments | CladeError | GraphQLError] = {}

    def relation(self, field: RelationField) -> Relation:
        """The relation that a field selects. Raises BadInput or GraphQLError where its arguments are invalid."""
        found = self._relations.get(field) or self._new_relation(field)
        if isinstance(found, Relation):
            return found
        raise found

    def relations(self, position: NodePosition, hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations of a node of this level at a position; none where the hierarchy has no such level.

        Those with invalid arguments are left out: they are errors of their own.
        """
        kind = self._fields.level_type(hierarchy, level)
        if kind is None:
            return ()
        selected = self._fields.ahead(kind, position.details).values()
        fields = [self._fields.relation(kind, one) for one in selected if name_of(one) in RELATION_KINDS]
        found = [self._relations.get(field) or self._new_relation(field) for field in fields]
        return tuple([relation for relation in found if isinstance(relation, Relation)])

    def selection(self, position: NodePosition) -> "NodeSelection":
        """What is selected of the nodes at a position."""
        found = self._selections.get(position)
        if found is None:
            found = self._selections[position] = NodeSelection(self, position)
        return found

    def relation_of(self, info: GraphQLResolveInfo[Any], kind: RelationKind | None = None) -> Relation:
        """The relation that a resolver is called for; `kind` as in `SelectedFields.relation`. Raises BadInput."""
        return self.relation(self._fields.relation(info.parent_type, _details(info), kind))

    def selection_of(self, info: GraphQLResolveInfo[Any]) -> "NodeSelection":
        """What is selected of the nodes that a resolver returns."""
        return self.selection(self._fields.position(_details(info)))

    def searched_by(self, info: GraphQLResolveInfo[Any]) -> tuple["NodeSelection", bool]:
        """What is selected of the nodes of a list that is no connection, and whether their counts are."""
        listing: Any = get_named_type(info.return_type)
        position = self._fields.listed(listing, _details(info))
        return self.selection(position), self._fields.counts(listing, position)

    def _new_relation(self, field: RelationField) -> Relation | CladeError | GraphQLError:
        """The relation of a field, or the error of its arguments, without its frames: it is raised for every node."""
        arguments = self._arguments_of(field) if field.kind in LISTS else ConnectionArguments()
        if isinstance(arguments, ConnectionArguments):
            selection = self.selection(field.position)
            found = Relation(field.kind, arguments, selection, field.nodes, field.total, field.counts)
            self._relations[field] = found
            return found
        self._relations[field] = arguments
        return arguments

    def _arguments_of(self, field: RelationField) -> ConnectionArguments | CladeError | GraphQLError:
        """The arguments of a list, coerced once for all levels, or their error."""
        key = id(field.node), str(field.definition.type)  # lists of one hierarchy have the same arguments at all levels
        if key not in self._arguments:
            try:
                given = get_argument_values(field.definition, field.node, self.variables)
                self._arguments[key] = _connection_arguments(field.definition, field.kind, given)
            except CladeError as error:
                self._arguments[key] = error.bare()
            except GraphQLError as error:
                self._arguments[key] = error.with_traceback(None)
        return self._arguments[key]


class NodeSelection:
    """What is selected of the nodes at one position; where a level is expected, of nodes of this level alone."""

    def __init__(self, look_ahead: LookAhead, position: NodePosition, expected: str | None = None) -> None:
        self._look_ahead, self._position, self._expected = look_ahead, position, expected
        self._relations: dict[tuple[str, str], tuple[Relation, ...]] = {}
        self._expecting: dict[str, NodeSelection] = {}

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations that are selected of a node of this level of a hierarchy."""
        key = (hierarchy, self._expected or level)
        found = self._relations.get(key)
        if found is None:
            found = self._relations[key] = self._look_ahead.relations(self._position, *key)
        return found

    def expecting(self, level: str | None) -> "NodeSelection":
        """The same for nodes of this level, so that what is selected above them is known before they are read."""
        if level is None:
            return self
        if level not in self._expecting:
            self._expecting[level] = NodeSelection(self._look_ahead, self._position, level)
        return self._expecting[level]


# -- merged fields and their arguments ---------------------------------------------------------------------------------


def name_of(fields: Sequence[FieldDetails]) -> str:
    """The name of merged fields."""
    return fields[0].node.name.value


def named(grouped: Grouped, name: str) -> list[list[FieldDetails]]:
    """The merged fields of this name, one list for each response key."""
    return [fields for fields in grouped.values() if name_of(fields) == name]


def node_ids(details: Sequence[FieldDetails]) -> tuple[int, ...]:
    """Field nodes as a key: the document outlives what is cached for it."""
    return tuple([id(detail.node) for detail in details])


def _details(info: GraphQLResolveInfo[Any]) -> list[FieldDetails]:
    return [FieldDetails(node, None) for node in info.field_nodes]


def has_variables(node: FieldNode) -> bool:
    """Whether a variable is among a field's arguments, also inside of a list or an input object."""
    ahead: list[Any] = [argument.value for argument in node.arguments or ()]
    while ahead:
        value = ahead.pop()
        if isinstance(value, VariableNode):
            return True
        ahead += [field.value for field in getattr(value, "fields", ())] + list(getattr(value, "values", ()))
    return False


def plain(member: Any) -> str:
    """A member of an enum as it is stored: Strawberry passes the member, a plan its value."""
    return str(member.value) if isinstance(member, Enum) else str(member)


def plain_levels(given: Sequence[Any]) -> tuple[str, ...]:
    """The levels of an argument, each once. Raises BadInput where it names none."""
    if not given:
        raise BadInput("level is empty; give levels, or omit it for all.")
    return tuple(sorted(set(map(plain, given))))


def _connection_arguments(definition: GraphQLField, kind: RelationKind, given: Given) -> ConnectionArguments:
    """The arguments of a connection field. Raises BadInput where they are invalid or contradict each other."""
    ordering = _ordering(definition, kind, given["orderBy"]) if given.get("orderBy") else LIST_ORDER
    where, bounds = None, None
    if given.get("where") is not None:
        values = get_named_type(definition.args["where"].type).extensions[CONDITION_VALUES]
        where = ConditionParser(values).parse(given["where"])
        if kind in (RelationKind.CHILDREN, RelationKind.DESCENDANTS):
            are_children = kind is RelationKind.CHILDREN or given.get("maxDepth") == 1
            bounds = KeyBounds.of(where, are_children=are_children)
            where = None if bounds is not None and bounds.is_exact else where
    return ConnectionArguments(
        first=given.get("first"),
        after=given.get("after"),
        last=given.get("last"),
        before=given.get("before"),
        levels=() if given.get("level") is None else plain_levels(given["level"]),
        max_depth=given.get("maxDepth"),
        ordering=ordering,
        where=where,
        bounds=bounds,
    )


def _ordering(definition: GraphQLField, kind: RelationKind, given: Sequence[Given]) -> Ordering:
    order: Any = get_named_type(definition.args["orderBy"].type)
    values = get_named_type(order.fields["field"].type).extensions[ORDER_VALUES]
    fields: list[OrderField] = []
    for number, one in enumerate(given):
        name, descending = plain(one["field"]), plain(one["direction"]) == "DESC"
        if name != "NAME" and one.get("languages") is not None:
            raise BadInput(f"orderBy has languages for {name}, but only names have languages; omit it.")
        if name in _PLACES:
            if number < len(given) - 1:
                raise BadInput(
                    f"{name} must be the last of orderBy, since it decides the whole order; omit what follows."
                )
            if name == "POSITION" and kind is RelationKind.DESCENDANTS:
                raise BadInput("POSITION is among siblings, and descendants have many parents; use PATH or KEY.")
            return Ordering(tuple(fields), _PLACES[name], descending)
        value = values[name]
        fields.append(OrderField(value if name != "NAME" else value.localized(one.get("languages")), descending))
    return Ordering(tuple(fields))
