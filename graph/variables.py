"""Which variables of a document decide more than values: what its plan is, and what its fields are about."""

from typing import Any

from graphql import DirectiveNode, DocumentNode, FieldNode, VariableNode, Visitor, visit


def deciding_variables(document: DocumentNode) -> list[str]:
    """The variables that a plan of this document depends on."""
    visitor = _Deciding()
    visit(document, visitor)
    return sorted(visitor.names)


def fields_with_variables(document: DocumentNode) -> set[int]:
    """The ids of those fields with fields below them that have a variable among their arguments."""
    visitor = _FieldsWithVariables()
    visit(document, visitor)
    return visitor.found


class _FieldsWithVariables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if node.selection_set and any(isinstance(one.value, VariableNode) for one in node.arguments or ()):
            self.found.add(id(node))


class _Deciding(Visitor):
    """Finds the variables in directives, which decide whether a field is there, and in the arguments of leaf fields."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        self._take(node)

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if node.selection_set is None:
            self._take(node)

    def _take(self, node: DirectiveNode | FieldNode) -> None:
        for argument in node.arguments or ():
            if isinstance(argument.value, VariableNode):
                self.names.add(argument.value.name.value)
