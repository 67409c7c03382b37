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

from graph.compiler.leaf_codegen import UnsupportedByPlan, resolver_of
from graph.operation.lookahead import Types


def interpreted_fields(schema: GraphQLSchema, types: Types) -> frozenset[str]:
    """The names of the fields of nodes that no plan compiles."""
    found: set[str] = set()
    for name in types.values():
        kind = schema.get_type(name)
        if isinstance(kind, GraphQLObjectType):
            found.update(field for field, definition in kind.fields.items() if not _is_compiled(definition))
    return frozenset(found)


def has_field(
    document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues, names: frozenset[str]
) -> bool:
    """Whether an operation asks, below its root fields, for a field of one of these names."""
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
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


def _is_compiled(definition: Any) -> bool:
    try:
        resolver_of(definition)
    except UnsupportedByPlan:
        return False
    return True


def _is_included(node: SelectionNode, variables: VariableValues) -> bool:
    if not node.directives:
        return True
    skip = get_directive_values(GraphQLSkipDirective, node, variables)
    include = get_directive_values(GraphQLIncludeDirective, node, variables)
    return not (skip and skip["if"]) and (include is None or bool(include["if"]))
