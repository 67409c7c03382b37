"""Selection: the selected fields of an operation by type, and the arguments of lists among them.

graphql-core merges fields, fragments and aliases, and evaluates `@skip` and `@include`. Results are cached by concrete
type and merged field nodes: collecting again for every type at every level would take exponential time.

graphql-core's objects behind Strawberry's are found here as well: only this module reads Strawberry's private
attributes.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, cast

import strawberry
from graphql import (
    DefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    VariableNode,
    get_named_type,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.execution.values import VariableValues

from resolvers.lists.arguments import ConnectionArguments, KeyBounds, RelationKind
from resolvers.sorting.conditions import Condition, ConditionParser
from resolvers.sorting.facets import FacetsRequest
from resolvers.sorting.ordering import LIST_ORDER, OrderField, Ordering, PlaceOrder
from store.errors import BadInput

ORDER_VALUES = "clade-order-values"
"""The key, in the extensions of an enum of values to sort by, of these values by their names, or of functions that
return them for the conditions of a list.
"""
CONDITION_VALUES = "clade-condition-values"
"""The same for an input of conditions."""
FACET_FIELDS = "clade-facet-fields"
"""The same for an enum of values that lists are counted by."""

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
        self.schema, self._types, self._levels = schema, types, frozenset(types.values())
        self.query_type = cast(GraphQLObjectType, schema.query_type)
        fragments = [definition for definition in definitions if isinstance(definition, FragmentDefinitionNode)]
        self.fragments = {fragment.name.value: FragmentDetails(fragment) for fragment in fragments}
        self.operation, self._variables = operation, variables
        self._fields: dict[tuple[object, ...], Grouped] = {}

    def at_root(self) -> Grouped:
        """The merged fields of Query."""
        collected = collect_fields(self.schema, self.fragments, self._variables, self.query_type, self.operation)
        return collected.grouped_field_set

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

    def are_levels(self, kinds: Iterable[Any]) -> bool:
        """Whether all of these types are those of nodes."""
        return self._levels.issuperset([kind.name for kind in kinds])

    def level_type(self, hierarchy: str, level: str) -> GraphQLObjectType | None:
        """The type of the nodes of a level; None where the hierarchy has no such level."""
        kind = self.schema.get_type(self._types.get((hierarchy, level), ""))
        return kind if isinstance(kind, GraphQLObjectType) else None


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


def connection_arguments(definition: GraphQLField, kind: RelationKind, given: Given) -> ConnectionArguments:
    """The arguments of a connection field. Raises BadInput where they are invalid or contradict each other."""
    where, bounds = None, None
    if given.get("where") is not None:
        values = get_named_type(definition.args["where"].type).extensions[CONDITION_VALUES]
        where = ConditionParser(values).parse(given["where"])
    ordering = _ordering(definition, given["orderBy"], where) if given.get("orderBy") else LIST_ORDER
    if where is not None and kind in (RelationKind.CHILDREN, RelationKind.DESCENDANTS):
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


def facets_request(definition: GraphQLField, given: Given) -> FacetsRequest:
    """What a field of facets asks. Raises BadInput."""
    fields = get_named_type(definition.args["fields"].type).extensions[FACET_FIELDS]
    return FacetsRequest(tuple([fields[plain(one)] for one in given["fields"]]), given["first"])


def _ordering(definition: GraphQLField, given: Sequence[Given], where: Condition | None) -> Ordering:
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
            return Ordering(tuple(fields), _PLACES[name], descending)
        value = values[name](where) if callable(values[name]) else values[name]
        fields.append(OrderField(value if name != "NAME" else value.localized(one.get("languages")), descending))
    return Ordering(tuple(fields))
