"""Parser: a request's query and variables as an operation, so that a known request can be changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    ListValueNode,
    OperationDefinitionNode,
    SchemaMetaFieldDef,
    SelectionNode,
    SelectionSetNode,
    TypeMetaFieldDef,
    ValueNode,
    VariableNode,
    get_named_type,
    parse,
    print_ast,
    value_from_ast_untyped,
)

from bench.cost.meter import Sent
from bench.cost.operation import Field, On, Operation, Selections, Value

META: Mapping[str, GraphQLField] = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}


def parsed(schema: GraphQLSchema, sent: Sent) -> Operation | None:
    """The operation of a request; None if it is invalid."""
    try:
        document = parse(sent.query)
        return _Parser(schema, document.definitions, sent.variables).operation()
    except (GraphQLError, KeyError, RecursionError):
        return None


class _Parser:
    """Reader of the definitions of one document."""

    def __init__(self, schema: GraphQLSchema, definitions: Sequence[Any], variables: Mapping[str, Any]) -> None:
        self._schema = schema
        self._fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
        (self._operation,) = [one for one in definitions if isinstance(one, OperationDefinitionNode)]
        declared = {one.variable.name.value: print_ast(one.type) for one in self._operation.variable_definitions or ()}
        self._variables = {name: Value(kind, variables[name]) for name, kind in declared.items()}
        self._spread: dict[str, Selections] = {}

    def operation(self) -> Operation:
        kind = self._operation.operation
        root = self._schema.get_root_type(kind)
        assert root is not None, f"The schema has no {kind.value}."
        return Operation(self._selections(self._operation.selection_set, root), kind.value)

    def _selections(self, selections: SelectionSetNode, kind: GraphQLNamedType) -> Selections:
        found: dict[str, Field | On] = {}
        for one in selections.selections:
            text = _text(one)
            if text in found and isinstance(known := found[text], Field):
                is_alias = isinstance(one, FieldNode) and one.alias is not None
                if is_alias:
                    found[text] = replace(known, aliases=max(1, known.aliases) + 1)
                else:
                    found[text] = replace(known, times=known.times + 1)
            elif text not in found:
                found[text] = self._selection(one, kind)
        return tuple(found.values())

    def _selection(self, one: SelectionNode, kind: GraphQLNamedType) -> Field | On:
        if isinstance(one, FieldNode):
            return self._field(one, kind)
        if isinstance(one, InlineFragmentNode):
            on = self._schema.type_map[one.type_condition.name.value] if one.type_condition else kind
            return On(kind.name, on.name, self._selections(one.selection_set, on))
        assert isinstance(one, FragmentSpreadNode), "There are no more kinds of selections."
        name = one.name.value
        on = self._schema.type_map[self._fragments[name].type_condition.name.value]
        if name not in self._spread:
            self._spread[name] = self._selections(self._fragments[name].selection_set, on)
        return On(kind.name, on.name, self._spread[name])

    def _field(self, one: FieldNode, kind: GraphQLNamedType) -> Field:
        name = one.name.value
        if name == "__typename":
            return Field(kind.name, name)
        definition: GraphQLField = META[name] if name in META else kind.fields[name]  # type: ignore[attr-defined]
        given = tuple(
            (arg.name.value, self._value(arg.value, str(definition.args[arg.name.value].type)))
            for arg in one.arguments or ()
        )
        below: Selections = ()
        if one.selection_set is not None:
            below = self._selections(one.selection_set, get_named_type(definition.type))
        return Field(kind.name, name, given, below)

    def _value(self, value: ValueNode, kind: str) -> Value:
        if isinstance(value, VariableNode):
            return self._variables[value.name.value]
        given = {name: one.json for name, one in self._variables.items()}
        if isinstance(value, ListValueNode) and len({_text(one) for one in value.values}) == 1:
            return Value(kind, value_from_ast_untyped(value.values[0], given), len(value.values))
        return Value(kind, value_from_ast_untyped(value, given))


def _text(node: Any) -> str:
    """A selection as text, without its alias."""
    text = print_ast(node)
    return text.partition(": ")[2] if isinstance(node, FieldNode) and node.alias else text
