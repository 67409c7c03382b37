"""Shrinking: parts are taken out of a document as long as it still fails in the same way."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from graphql import (
    SKIP,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSchema,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableDefinitionNode,
    VariableNode,
    Visitor,
    ast_from_value,
    parse,
    print_ast,
    type_from_ast,
    visit,
)

from tests.outside.fuzzer.client import Document

PARTS = ("arguments", "directives", "values", "fields", "variable_definitions", "selections")


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
        elif tried.query != best.query and fails(tried):
            best, changed = tried, True
        else:
            number += 1
    return best


def _edited(document: Document, number: int, schema: GraphQLSchema) -> Document | None:
    """The document after the edit with this number; None if there are not as many."""
    tree = parse(document.query, no_location=True)
    edit = Smaller(tree, number)
    made = visit(tree, edit)
    if edit.left < 0:
        return _tidy(made, document)
    variables = {} if document.others else document.variables  # only those of all values can become literals
    for name, value in list(_literals(tree, variables, schema))[edit.left :]:
        return _tidy(visit(tree, Literal(name, value)), document)
    return None


class Smaller(Visitor):
    """Makes the edit with a number; `left` is negative when it is made."""

    def __init__(self, tree: DocumentNode, number: int) -> None:
        super().__init__()
        self.left = number
        self._fragments = {d.name.value: d for d in tree.definitions if isinstance(d, FragmentDefinitionNode)}

    def enter(self, node: Node, *_: Any) -> Node | None:
        for smaller in self._smaller(node) if self.left >= 0 else ():
            self.left -= 1
            if self.left < 0:
                return smaller
        return None

    def _smaller(self, node: Node) -> Iterator[Node]:
        for part in PARTS:
            many = getattr(node, part, None) or ()
            for one in many if part != "selections" or len(many) > 1 else ():
                yield _with(node, part, tuple(other for other in many if other is not one))
        if isinstance(node, FieldNode) and node.alias:
            yield _with(node, "alias", None)
        for one in node.selections if isinstance(node, SelectionSetNode) else ():
            inner = getattr(one, "selection_set", None) and one.selection_set.selections  # in place of what has them
            if isinstance(one, FragmentSpreadNode):
                found = self._fragments[one.name.value]
                inner = (InlineFragmentNode(type_condition=found.type_condition, selection_set=found.selection_set),)
            if inner:
                parts = [inner if other is one else (other,) for other in node.selections]
                yield _with(node, "selections", sum(parts, ()))


class Literal(Visitor):
    """Puts a literal in the place of a variable."""

    def __init__(self, name: str, value: Node) -> None:
        super().__init__()
        self._name, self._value = name, value

    def enter_variable_definition(self, *_: Any) -> Any:
        return SKIP

    def enter_variable(self, node: VariableNode, *_: Any) -> Node | None:
        return self._value if node.name.value == self._name else None


def _literals(tree: DocumentNode, variables: dict[str, Any], schema: GraphQLSchema) -> Iterator[tuple[str, Node]]:
    """The variables that have a literal, which those of an enum or an input object may not have."""
    for defined in _nodes(tree, VariableDefinitionNode):
        name, kind = defined.variable.name.value, type_from_ast(schema, defined.type)
        try:
            value = ast_from_value(variables[name], kind) if name in variables and kind else defined.default_value
        except Exception:  # noqa: S112 - values that have no literal stay variables
            continue
        if value is not None:
            yield name, value


def _with(node: Node, part: str, value: Any) -> Node:
    return type(node)(**{key: getattr(node, key) for key in node.keys} | {part: value})


def _nodes(tree: Node | tuple[Node, ...], kind: type[Any]) -> list[Any]:
    """The nodes of a kind, but for the variables of definitions."""
    found: list[Any] = []

    class Finder(Visitor):
        def enter(self, node: Node, *_: Any) -> Any:
            if isinstance(node, kind):
                found.append(node)
            return SKIP if isinstance(node, VariableDefinitionNode) else None

    visit(tree, Finder())
    return found


def _tidy(tree: DocumentNode, document: Document) -> Document:
    """Without fragments and variables that nothing uses any more."""
    size = 0
    while size != len(tree.definitions):
        size = len(tree.definitions)
        spread = {node.name.value for node in _nodes(tree, FragmentSpreadNode)}
        kept = [d for d in tree.definitions if not isinstance(d, FragmentDefinitionNode) or d.name.value in spread]
        tree = DocumentNode(definitions=tuple(kept))
    used = {node.name.value for node in _nodes(tree, VariableNode)}
    definitions = []
    for one in tree.definitions:
        if isinstance(one, OperationDefinitionNode):
            defined = tuple(d for d in one.variable_definitions or () if d.variable.name.value in used)
            one = _with(one, "variable_definitions", defined)
        definitions.append(one)
    printed = print_ast(DocumentNode(definitions=tuple(definitions)))
    values = [{name: one[name] for name in one if name in used} for one in (document.variables, *document.others)]
    return Document(printed if '"""' in printed else " ".join(printed.split()), values[0], tuple(values[1:]))
