"""The plans of the operations seen last."""

from collections import OrderedDict
from typing import Any

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    GraphQLSchema,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    visit,
)
from graphql.execution.values import VariableValues, get_variable_values

from graph.plan import Plan
from graph.rendering import Surprise
from graph.selection import Types

MAX_DECIDING_CHARACTERS = 10_000
"""Of the values that decide what a plan is; one with more is made anew each time, or clients could fill the memory."""


class Plans:
    """Plans by operation, and by the values of those variables that decide what a plan is."""

    def __init__(self, schema: GraphQLSchema, types: Types, *, keep: int) -> None:
        self._schema = schema
        self._types = types
        self._keep = keep
        self._plans: OrderedDict[tuple[Any, ...], tuple[OperationDefinitionNode, Plan | None]] = OrderedDict()
        self._deciding: OrderedDict[int, tuple[DocumentNode, list[str]]] = OrderedDict()

    def get(
        self, document: DocumentNode, operation: OperationDefinitionNode, given: dict[str, Any]
    ) -> tuple[Plan, VariableValues] | None:
        """The plan of an operation with its coerced variables; None where Strawberry has to answer."""
        variables = _NONE
        if operation.variable_definitions:
            coerced = get_variable_values(self._schema, operation.variable_definitions, given)
            if isinstance(coerced, list):
                return None
            variables = coerced
        values = variables.coerced
        deciding = [repr(values.get(name)) for name in self._deciding_of(document)]
        key = (id(operation), *deciding)
        if key in self._plans:
            self._plans.move_to_end(key)
            _, plan = self._plans[key]
        else:
            plan = self._compile(document, operation, variables)
            if sum(map(len, deciding)) > MAX_DECIDING_CHARACTERS:
                return None if plan is None else (plan, variables)
            self._plans[key] = operation, plan  # the operation is kept, so its id stays its own
            if len(self._plans) > self._keep:
                self._plans.popitem(last=False)
        return None if plan is None else (plan, variables)

    def _compile(
        self, document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues
    ) -> Plan | None:
        try:
            return Plan(self._schema, self._types, document, operation, variables)
        except Surprise:
            return None

    def _deciding_of(self, document: DocumentNode) -> list[str]:
        """The variables that a plan of this document depends on."""
        found = self._deciding.get(id(document))
        if found is None:
            visitor = _Deciding()
            visit(document, visitor)
            found = self._deciding[id(document)] = (document, sorted(visitor.names))
            if len(self._deciding) > self._keep:
                self._deciding.popitem(last=False)
        return found[1]


_NONE = VariableValues({}, {})


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
