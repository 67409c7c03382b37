"""Interpreted fields: those of nodes that no plan compiles. An operation with one of them is interpreted as a whole."""

from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    OperationDefinitionNode,
    SelectionNode,
)
from graphql.execution.values import VariableValues, get_directive_values

from graph.operation.selected_fields import Types
from graph.types.field import resolver_of


def interpreted_fields(schema: GraphQLSchema, types: Types) -> frozenset[str]:
    """The names of the fields of nodes that no plan compiles."""
    kinds = [kind for kind in map(schema.get_type, types.values()) if isinstance(kind, GraphQLObjectType)]
    return frozenset(name for kind in kinds for name, field in kind.fields.items() if resolver_of(field) is None)


def has_field(
    document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues, names: frozenset[str]
) -> bool:
    """Whether an operation selects, below its root fields, a field of one of these names."""
    definitions = document.definitions
    fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
    ahead: list[tuple[bool, SelectionNode]] = [(True, one) for one in operation.selection_set.selections]
    while ahead:
        is_root, node = ahead.pop()
        if not _is_included(node, variables):
            continue
        if isinstance(node, FieldNode):
            if not is_root and node.name.value in names:
                return True
            is_root = False
        below: Any = fragments.pop(node.name.value, None) if isinstance(node, FragmentSpreadNode) else node
        if below is not None and below.selection_set:
            ahead += [(is_root, one) for one in below.selection_set.selections]
    return False


def _is_included(node: SelectionNode, variables: VariableValues) -> bool:
    if not node.directives:
        return True
    skip = get_directive_values(GraphQLSkipDirective, node, variables)
    include = get_directive_values(GraphQLIncludeDirective, node, variables)
    return not (skip and skip["if"]) and (include is None or bool(include["if"]))
