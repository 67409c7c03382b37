"""Input values: what a request gives to the arguments of its operation, counted before any value is coerced.

A scalar, a list and an object each count as one, with their elements and fields. Literals and variables count at each
place where they are used, since each use is coerced by itself; those in a fragment count wherever it is spread.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    ValueNode,
    VariableNode,
    is_input_object_type,
)

from graph.errors import LIMIT_EXCEEDED

MAX_LEVELS = 32  # of lists and objects in each other: more than any input of a schema has


@dataclass
class InputValues:
    """The input values of one operation: the number of its literals, and how often it uses each variable."""

    literals: int = 0
    uses: Counter[str] = field(default_factory=Counter)

    def add(self, node: FieldNode) -> None:
        """Count the arguments of a field at one of its places."""
        for argument in node.arguments or ():
            literals, uses = _counted(argument.value)
            self.literals += literals
            self.uses.update(uses)

    def count(self, schema: GraphQLSchema, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> int:
        """The number of values with these variables. Raises GraphQLError for one that is nested too deeply."""
        total = self.literals
        for definition in operation.variable_definitions or ():
            name = definition.variable.name.value
            if name in variables:
                value, size = variables[name], 1
                if isinstance(value, list | dict):
                    is_object = is_input_object_type(schema.get_type(_type_name(definition.type)))
                    size = _size(name, value, is_object=is_object)
            elif definition.default_value is not None:
                size, _ = _counted(definition.default_value)
            else:
                continue
            total += size * max(1, self.uses[name])  # one that is not used is coerced as well
        return total


def _counted(value: ValueNode) -> tuple[int, list[str]]:
    """The number of values in a literal, and the names of the variables in it."""
    literals, names = 0, []
    ahead = [value]
    while ahead:
        node = ahead.pop()
        if isinstance(node, VariableNode):
            names.append(node.name.value)
            continue
        literals += 1
        if isinstance(node, ListValueNode):
            ahead += node.values
        elif isinstance(node, ObjectValueNode):
            ahead += [one.value for one in node.fields]
    return literals, names


def _size(name: str, value: Any, *, is_object: bool) -> int:
    """The number of values in a variable; the content of a scalar is not counted, whatever it is."""
    size, level = 0, 0
    ahead = [value]
    while ahead:
        if level > MAX_LEVELS:
            raise GraphQLError(
                f"The variable ${name} has more than {MAX_LEVELS} levels of lists and objects; nest them less.",
                extensions={"code": LIMIT_EXCEEDED, "limit": MAX_LEVELS},
            )
        size += len(ahead)
        below: list[Any] = []
        for one in ahead:
            if isinstance(one, list):
                below += one
            elif is_object and isinstance(one, dict):
                below += one.values()
        ahead, level = below, level + 1
    return size


def _type_name(kind: Any) -> str:
    while hasattr(kind, "type"):
        kind = kind.type
    return str(kind.name.value)
