"""Variables of a document by what depends on them: the plan itself, or the arguments of its fields."""

from graphql import DocumentNode, FieldNode, VariableNode

from graph.operation.arguments import has_variables
from graph.operation.document_limits import nodes_in


def deciding_variables(document: DocumentNode) -> list[str]:
    """The variables in directives, which decide whether a field is there: a plan depends on their values."""
    directives = [directive for node in nodes_in(document) for directive in node.directives or ()]
    values = [argument.value for directive in directives for argument in directive.arguments or ()]
    return sorted({value.name.value for value in values if isinstance(value, VariableNode)})


def varying_fields(document: DocumentNode) -> frozenset[int]:
    """The ids of the field nodes that have a variable among their arguments."""
    return frozenset(id(node) for node in nodes_in(document) if isinstance(node, FieldNode) and has_variables(node))
