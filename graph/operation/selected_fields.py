"""Selected fields: the selections of one operation by type, and the fields among them that lead from nodes to nodes.

graphql-core merges fields, fragments and aliases, and evaluates `@skip` and `@include`. Results are cached by concrete
type and merged field nodes: collecting anew for every type at every level would grow exponentially.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphql import (
    DefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    get_named_type,
    is_object_type,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.execution.values import VariableValues

from resolvers.planning.relations import RelationKind

RELATION_KINDS = {kind.value: kind for kind in RelationKind}
LISTS = frozenset((RelationKind.CHILDREN, RelationKind.DESCENDANTS, RelationKind.SIBLINGS))

Types = Mapping[tuple[str, str], str]
"""The name of the GraphQL type of each (hierarchy, level)."""
Grouped = dict[str, list[FieldDetails]]
"""Merged fields by response key, in the order of the query."""


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
        self._schema, self._types = schema, types
        self.query_type = cast(GraphQLObjectType, schema.query_type)
        fragments = [definition for definition in definitions if isinstance(definition, FragmentDefinitionNode)]
        self._fragments = {fragment.name.value: FragmentDetails(fragment) for fragment in fragments}
        self._operation, self._variables = operation, variables
        self._fields: dict[tuple[object, ...], Grouped] = {}
        self._relations: dict[tuple[object, ...], RelationField] = {}
        self._positions: dict[tuple[int, ...], NodePosition] = {}

    def at_root(self) -> Grouped:
        """The merged fields of Query."""
        collected = collect_fields(self._schema, self._fragments, self._variables, self.query_type, self._operation)
        return collected.grouped_field_set

    def below(self, kind: GraphQLObjectType, details: list[FieldDetails]) -> Grouped:
        """The merged fields below fields that return this type."""
        key = (kind.name, *node_ids(details))
        found = self._fields.get(key)
        if found is None:
            collected = collect_subfields(
                self._schema, self._fragments, self._variables, self._operation, kind, details
            )
            found = self._fields[key] = collected.grouped_field_set
        return found

    def level_type(self, hierarchy: str, level: str) -> GraphQLObjectType | None:
        """The type of the nodes of a level; None where the hierarchy has no such level."""
        kind = self._schema.get_type(self._types.get((hierarchy, level), ""))
        return kind if isinstance(kind, GraphQLObjectType) else None

    def position(self, details: list[FieldDetails]) -> "NodePosition":
        """The position in the response of the nodes that these merged fields return."""
        key = node_ids(details)
        found = self._positions.get(key)
        if found is None:
            found = self._positions[key] = NodePosition(self, details)
        return found

    def relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None = None
    ) -> "RelationField":
        """A field that leads to nodes; `kind` is CHILDREN for a connection that is no relation, as that of roots."""
        key = (parent.name, *node_ids(details))
        found = self._relations.get(key)
        if found is None:
            found = self._relations[key] = self._new_relation(parent, details, kind)
        return found

    def _new_relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None
    ) -> "RelationField":
        node = details[0].node
        definition = parent.fields[node.name.value]
        kind = kind or RELATION_KINDS[node.name.value]
        if kind not in LISTS:
            return RelationField(kind, definition, node, self.position(details))
        connection = get_named_type(definition.type)
        assert is_object_type(connection)  # every list is a connection  # noqa: S101
        names, nodes = set(), []
        for fields in self.below(connection, details).values():
            name = fields[0].node.name.value
            names.add(name)
            if name == "nodes":
                nodes += fields
            elif name == "edges":
                nodes += self._nodes_of_edges(get_named_type(connection.fields[name].type), fields)
        has_nodes = bool(names & {"nodes", "edges", "pageInfo"})
        return RelationField(kind, definition, node, self.position(nodes), has_nodes, "totalCount" in names)

    def _nodes_of_edges(self, edge: Any, details: list[FieldDetails]) -> Iterable[FieldDetails]:
        for fields in self.below(edge, details).values():
            if fields[0].node.name.value == "node":
                yield from fields


class NodePosition:
    """Merged fields that return nodes, and what they select of these, which may differ from level to level."""

    def __init__(self, fields: SelectedFields, details: list[FieldDetails]) -> None:
        self._fields = fields
        self._details = details

    def of_type(self, kind: GraphQLObjectType) -> Grouped:
        """The merged fields of a node of this type."""
        return self._fields.below(kind, self._details)

    def relations(self, hierarchy: str, level: str) -> list["RelationField"]:
        """The relations of a node of this level; none where the hierarchy has no such level."""
        kind = self._fields.level_type(hierarchy, level)
        if kind is None:
            return []
        return [
            self._fields.relation(kind, details)
            for details in self.of_type(kind).values()
            if details[0].node.name.value in RELATION_KINDS
        ]


@dataclass(frozen=True, eq=False)
class RelationField:
    """A selected field that leads to nodes at a position of the response.

    Of a connection, `nodes` is whether its nodes or `pageInfo` are selected, and `total` whether `totalCount` is.
    """

    kind: RelationKind
    definition: Any
    node: FieldNode
    position: NodePosition
    nodes: bool = True
    total: bool = False


def node_ids(details: Sequence[FieldDetails]) -> tuple[int, ...]:
    """Field nodes as a key: the document outlives what is cached for it."""
    return tuple([id(detail.node) for detail in details])
