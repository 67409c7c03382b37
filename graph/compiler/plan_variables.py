"""The variables of a document by what depends on them: the plan itself, or the arguments of its fields."""

from typing import Any

from graphql import DirectiveNode, DocumentNode, FieldNode, VariableNode, Visitor, visit
from graphql.execution.values import VariableValues, get_argument_values


def deciding_variables(document: DocumentNode) -> list[str]:
    """The variables that a plan of this document depends on."""
    visitor = _Deciding()
    visit(document, visitor)
    return sorted(visitor.names)


def fields_with_variables(document: DocumentNode) -> set[int]:
    """The ids of those fields that have a variable among their arguments."""
    visitor = _FieldsWithVariables()
    visit(document, visitor)
    return visitor.found


class _FieldsWithVariables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if has_variables(node):
            self.found.add(id(node))


def arguments_of(definition: Any, node: FieldNode, variables: VariableValues) -> dict[str, Any]:
    """A field's arguments, named as its resolver takes them. Raises GraphQLError where the variables do not fit."""
    return {f"{name}_": value for name, value in get_argument_values(definition, node, variables).items()}


def has_variables(node: FieldNode) -> bool:
    """Whether a variable is among a field's arguments."""
    return any(isinstance(one.value, VariableNode) for one in node.arguments or ())


class _Deciding(Visitor):
    """Finds the variables in directives, which decide whether a field is there."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        for argument in node.arguments or ():
            if isinstance(argument.value, VariableNode):
                self.names.add(argument.value.name.value)
