"""Look-ahead: the relations that an operation selects below its nodes, with the arguments of one request.

Compiled plans and Strawberry's resolvers read with it, so that one read of a level brings what the next ones need.
"""

from typing import Any

from graphql import GraphQLError, GraphQLResolveInfo
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.values import VariableValues

from graph.operation.arguments import connection_arguments
from graph.operation.selected_fields import LISTS, NodePosition, RelationField, SelectedFields, Types
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import Relation, RelationKind
from store.errors import CladeError


class LookAhead:
    """The selected fields of an operation with one set of variables."""

    def __init__(self, fields: SelectedFields, variables: VariableValues) -> None:
        self.variables = variables
        self._fields = fields
        self._relations: dict[RelationField, Relation] = {}
        self._rejected: dict[RelationField, CladeError | GraphQLError] = {}
        self._selections: dict[NodePosition, NodeSelection] = {}

    @classmethod
    def of(cls, info: GraphQLResolveInfo[Any], types: Types, fields: SelectedFields | None = None) -> "LookAhead":
        """That of an interpreted operation; `fields` are its selected ones where a plan has them already."""
        coerced: Any = info.variable_values  # values alone: Strawberry unpacks them
        variables = VariableValues({}, coerced)
        if fields is None:
            fields = SelectedFields(info.schema, types, info.fragments.values(), info.operation, variables)
        return cls(fields, variables)

    def relation(self, field: RelationField) -> Relation:
        """The relation that a field selects. Raises BadInput or GraphQLError where its arguments are invalid."""
        found = self._relations.get(field) or self._new_relation(field)
        if found is None:
            raise self._rejected[field]
        return found

    def selection(self, position: NodePosition) -> "NodeSelection":
        """What is selected of the nodes at a position."""
        found = self._selections.get(position)
        if found is None:
            found = self._selections[position] = NodeSelection(self, position)
        return found

    def relations(self, position: NodePosition, hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations of a node of this level at a position. Those with invalid arguments are errors of their own."""
        found = [
            self._relations.get(field) or self._new_relation(field) for field in position.relations(hierarchy, level)
        ]
        return tuple([relation for relation in found if relation is not None])

    def relation_of(self, info: GraphQLResolveInfo[Any], kind: RelationKind | None = None) -> Relation:
        """The relation that a resolver is called for; `kind` as in `SelectedFields.relation`. Raises BadInput."""
        return self.relation(self._fields.relation(info.parent_type, _details(info), kind))

    def selection_of(self, info: GraphQLResolveInfo[Any]) -> "NodeSelection":
        """What is selected of the nodes that a resolver returns."""
        return self.selection(self._fields.position(_details(info)))

    def _new_relation(self, field: RelationField) -> Relation | None:
        """None for rejected arguments, whose error is kept without its frames: it is raised for every node."""
        if field in self._rejected:
            return None
        try:
            is_list = field.kind in LISTS
            window = (
                connection_arguments(field.definition, field.node, self.variables) if is_list else ConnectionArguments()
            )
        except (CladeError, GraphQLError) as error:
            self._rejected[field] = error.bare() if isinstance(error, CladeError) else error.with_traceback(None)
            return None
        selection = self.selection(field.position)
        found = self._relations[field] = Relation(field.kind, window, selection, field.nodes, field.total)
        return found


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
        found = self._expecting.get(level)
        if found is None:
            found = self._expecting[level] = NodeSelection(self._look_ahead, self._position, level)
        return found


def _details(info: GraphQLResolveInfo[Any]) -> list[FieldDetails]:
    return [FieldDetails(node, None) for node in info.field_nodes]
