"""Shrinking: parts are taken out of a document as long as it still fails in the same way."""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSchema,
    InlineFragmentNode,
    ListValueNode,
    NamedTypeNode,
    Node,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    ast_from_value,
    parse,
    print_ast,
    type_from_ast,
)

from tests.outside.fuzzer.client import Document

Edit = Callable[[], None]


def shrink(
    document: Document, fails: Callable[[Document], bool], schema: GraphQLSchema, seconds: float = 20
) -> Document:
    """The smallest document that was found; the given one if it cannot be parsed."""
    end = time.monotonic() + seconds
    if document.others and fails(alone := replace(document, others=())):
        document = alone
    try:
        best = _tidy(parse(document.query, no_location=True), document)
    except Exception:
        return document
    number, changed = 0, False
    while time.monotonic() < end:
        tried = _edited(best, number, schema)
        if tried is None:
            if not changed:
                break
            number, changed = 0, False
            continue
        if tried.query != best.query and fails(tried):
            best, changed = tried, True
        else:
            number += 1
    return best


def _edited(document: Document, number: int, schema: GraphQLSchema) -> Document | None:
    """The document after the edit with this number; None if there are not as many."""
    tree = copy.deepcopy(parse(document.query, no_location=True))
    variables = {} if document.others else document.variables  # only those of all values can become literals
    for position, edit in enumerate(_edits(tree, variables, schema)):
        if position == number:
            edit()
            return _tidy(tree, document)
    return None


def _edits(tree: DocumentNode, variables: dict[str, Any], schema: GraphQLSchema) -> Iterator[Edit]:
    for node in _walk(tree):
        if isinstance(node, SelectionSetNode):
            yield from _of_selections(node, tree)
        for attribute in ("arguments", "directives", "values", "variable_definitions"):
            many = getattr(node, attribute, None)
            for one in many or ():
                yield _remove(node, attribute, one)
        if isinstance(node, ObjectValueNode):
            for one in node.fields:
                yield _remove(node, "fields", one)
        if isinstance(node, FieldNode) and node.alias:
            yield _set(node, "alias", None)
    for operation in tree.definitions:
        if isinstance(operation, OperationDefinitionNode):
            yield from _literals(operation, tree, variables, schema)


def _of_selections(node: SelectionSetNode, tree: DocumentNode) -> Iterator[Edit]:
    for one in node.selections:
        if len(node.selections) > 1:
            yield _remove(node, "selections", one)
    for one in node.selections:
        inner: tuple[Any, ...] = ()
        if isinstance(one, InlineFragmentNode | FieldNode) and one.selection_set:
            inner = one.selection_set.selections
        if isinstance(one, FragmentSpreadNode):
            found = next(
                d for d in tree.definitions if isinstance(d, FragmentDefinitionNode) and d.name.value == one.name.value
            )
            inner = (
                InlineFragmentNode(
                    type_condition=found.type_condition, directives=(), selection_set=found.selection_set
                ),
            )
        if inner:
            rest = tuple(part for other in node.selections for part in (inner if other is one else (other,)))
            yield _set(node, "selections", rest)


def _literals(
    operation: OperationDefinitionNode, tree: DocumentNode, variables: dict[str, Any], schema: GraphQLSchema
) -> Iterator[Edit]:
    """Variables become literals."""
    for defined in operation.variable_definitions or ():
        name = defined.variable.name.value
        kind = type_from_ast(schema, defined.type)
        try:
            value = ast_from_value(variables[name], kind) if name in variables and kind else defined.default_value
        except Exception:  # noqa: S112 - values that have no literal stay variables
            continue
        if value is not None:
            yield _replace_variable(tree, operation, defined, name, value)


def _replace_variable(
    tree: DocumentNode, operation: OperationDefinitionNode, defined: Node, name: str, value: Any
) -> Edit:
    def edit() -> None:
        for node in _walk(tree):
            if getattr(node, "value", None).__class__ is VariableNode and node.value.name.value == name:  # type: ignore[attr-defined]
                _put(node, "value", value)
            if isinstance(node, ListValueNode):
                others = (value if isinstance(v, VariableNode) and v.name.value == name else v for v in node.values)
                _put(node, "values", tuple(others))
        _put(
            operation,
            "variable_definitions",
            tuple(d for d in operation.variable_definitions or () if d is not defined),
        )

    return edit


def _remove(node: Node, attribute: str, one: Node) -> Edit:
    return _set(node, attribute, tuple(other for other in getattr(node, attribute) if other is not one))


def _set(node: Node, attribute: str, value: Any) -> Edit:
    return lambda: _put(node, attribute, value)


def _put(node: Node, attribute: str, value: Any) -> None:
    """Nodes are frozen; these are copies that only this module has."""
    object.__setattr__(node, attribute, value)


def _walk(node: Any) -> Iterator[Node]:
    yield node
    for key in node.keys:
        value = getattr(node, key, None)
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Node) and not isinstance(one, NamedTypeNode):
                yield from _walk(one)


def _tidy(tree: DocumentNode, document: Document) -> Document:
    """Without fragments and variables that nothing uses any more."""
    while True:
        spread = {node.name.value for node in _walk(tree) if isinstance(node, FragmentSpreadNode)}
        kept = tuple(d for d in tree.definitions if not isinstance(d, FragmentDefinitionNode) or d.name.value in spread)
        if len(kept) == len(tree.definitions):
            break
        _put(tree, "definitions", kept)
    used = set()
    for definition in tree.definitions:
        for key in ("selection_set", "directives"):
            for part in [getattr(definition, key)] if key == "selection_set" else getattr(definition, key) or ():
                used |= {node.name.value for node in _walk(part) if isinstance(node, VariableNode)}
    for definition in tree.definitions:
        if isinstance(definition, OperationDefinitionNode):
            defined = definition.variable_definitions or ()
            _put(definition, "variable_definitions", tuple(d for d in defined if d.variable.name.value in used))
    query = " ".join(print_ast(tree).split()) if '"""' not in print_ast(tree) else print_ast(tree)
    values = [
        {name: value for name, value in one.items() if name in used} for one in (document.variables, *document.others)
    ]
    return Document(query, values[0], tuple(values[1:]))
