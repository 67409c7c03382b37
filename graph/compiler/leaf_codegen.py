"""Code generation for leaf fields: a function per object type and position that writes a record's fields as JSON.

A generated function checks values by their Python type alone. Any other value goes through the field's resolver and
GraphQL's serialization; where these raise, the whole plan gives way to the interpreter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import orjson
from graphql import GraphQLOutputType, is_enum_type, is_list_type, is_non_null_type
from graphql.execution.values import VariableValues

from graph.types.field import resolver_of
from graph.types.node_fields import AttributeField, RecordField
from store.model.attributes import Kind
from store.model.records import Record

MAX_FRAGMENTS = 8  # cached with one record; ordinary clients select fewer sets of leaf fields

MAX_FRAGMENT_BYTES = 500  # of one node's JSON, to be cached; ordinary clients select less

_numbers = count()

# Conditions for values that are valid without a look at the resolver, by GraphQL type; `{v}` is the value. Numbers are
# bounded well inside their types.
_VALID = {
    "String": "type({v}) is str",
    "ID": "type({v}) is str",
    "Int": "type({v}) is int and -2147483648 <= {v} <= 2147483647",
    "Float": "type({v}) is float and 1e-9 < abs({v}) < 1e9",
    "Boolean": "type({v}) is bool",
    "DateTime": "type({v}) is str",
}


class UnsupportedByPlan(Exception):
    """A field or value that a plan does not cover; the operation is interpreted instead."""


Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class LeafField:
    """A leaf field of an object: its response key, its type, its resolver and the arguments of this.

    Where variables are among the arguments, `bind` gives the arguments for a request's variables.
    """

    key: str
    kind: GraphQLOutputType
    resolve: Callable[..., Any]
    arguments: Arguments = field(default_factory=dict)
    bind: Callable[[VariableValues], Arguments] | None = None

    def resolved(self, record: Record, arguments: Arguments) -> Any:
        """The serialized value. Raises where GraphQL would report an error."""
        return _complete(self.kind, self.resolve(record, None, **arguments))


@dataclass(frozen=True)
class TypeName:
    """A `__typename` under some response key."""

    key: str
    name: str


@dataclass(frozen=True)
class Constant:
    """A field with the same value in every node: its response key, and the value as JSON."""

    key: str
    json: bytes


class LeafWriter:
    """Writer of some leaf fields of one object type: called with a record, it returns their JSON, without the braces
    unless `whole`.

    The JSON of a cached record is cached with it. Where the writer `varies` there are variables among the arguments:
    what `bound` returns is called instead, and nothing is cached.
    """

    def __init__(self, fields: Sequence[LeafField | TypeName | Constant], *, whole: bool) -> None:
        self._number = next(_numbers)
        leaves = {n: leaf for n, leaf in enumerate(fields) if isinstance(leaf, LeafField)}
        self._arguments = {n: leaf.arguments for n, leaf in leaves.items()}
        self._bind = {n: leaf.bind for n, leaf in leaves.items() if leaf.bind is not None}
        self.varies = bool(self._bind)
        self._write = _generate(fields, whole)

    def bound(self, variables: VariableValues) -> Callable[[Record], bytes]:
        """The writer with these variables. Raises GraphQLError where they do not fit."""
        if not self.varies:
            return self
        arguments = self._arguments | {n: bind(variables) for n, bind in self._bind.items()}
        return partial(self._write, arguments=arguments)

    def __call__(self, record: Record) -> bytes:
        fragments = record.fragments
        if fragments is None:
            return self._write(record, self._arguments)
        found = fragments.get(self._number)
        if found is None:
            if len(fragments) >= MAX_FRAGMENTS:
                fragments.clear()
            # A copy of its exact size: orjson's own bytes have some kilobytes of room behind them.
            found = bytes(memoryview(self._write(record, self._arguments)))
            if len(found) <= MAX_FRAGMENT_BYTES:
                fragments[self._number] = found
        return found


def _generate(fields: Sequence[LeafField | TypeName | Constant], whole: bool) -> Callable[..., bytes]:
    """A function of the record and of the fields' arguments by their numbers, as `def write(record, arguments): v0 =
    record.name; if not …: v0 = resolve0(record, arguments[0]); return …`.
    """
    scope: dict[str, Any] = {"dumps": orjson.dumps}
    lines, members = [], []
    for n, leaf in enumerate(fields):
        # Response keys and types' names are GraphQL names: only letters, digits and _ come into the code.
        if isinstance(leaf, TypeName):
            members.append(f'"{leaf.key}": "{leaf.name}"')
            continue
        members.append(f'"{leaf.key}": v{n}')
        if isinstance(leaf, Constant):
            scope[f"v{n}"] = orjson.Fragment(leaf.json)
            continue
        scope[f"resolve{n}"] = leaf.resolved
        quick = _quick(leaf, n, scope)
        lines += [f"v{n} = resolve{n}(record, arguments[{n}])"] if quick is None else [
            f"v{n} = {quick[0]}",
            f"if not ({quick[1]}):",
            f"    v{n} = resolve{n}(record, arguments[{n}])",
        ]  # fmt: skip
    lines.append(f"return dumps({{{', '.join(members)}}})" + ("" if whole else "[1:-1]"))
    source = "def write(record, arguments):\n" + "".join(f"    {line}\n" for line in lines)
    exec(source, scope)  # noqa: S102  # the text is ours, made of names that validation has checked
    write: Callable[..., bytes] = scope["write"]
    return write


def _quick(leaf: LeafField, n: int, scope: dict[str, Any]) -> tuple[str, str] | None:
    """The code of a leaf's value, and of the condition that it is valid; None where the resolver has to be called."""
    nullable = not is_non_null_type(leaf.kind)
    kind = leaf.kind if nullable else leaf.kind.of_type  # type: ignore[union-attr]
    if is_list_type(kind):
        return None
    match leaf.resolve:
        case RecordField(name):
            value = f"record.{name}"
        case AttributeField(attribute) if attribute.kind not in (Kind.DATE, Kind.DATETIME, Kind.DECIMAL, Kind.LONG):
            value = f'record.attributes.get("{attribute.name}")'
        case _:
            return None
    if is_enum_type(kind):
        scope[f"members{n}"] = frozenset(kind.values)
        valid = f"type({{v}}) is str and {{v}} in members{n}"
    elif kind.name in _VALID:  # type: ignore[union-attr]
        valid = _VALID[kind.name]  # type: ignore[union-attr]
    else:
        return None
    condition = valid.format(v=f"v{n}")
    return value, f"v{n} is None or {condition}" if nullable else condition


def _complete(kind: GraphQLOutputType, value: Any) -> Any:
    """A value as GraphQL completes it. Raises UnsupportedByPlan where that would be an error."""
    if is_non_null_type(kind):
        if value is None:
            raise UnsupportedByPlan
        return _complete(kind.of_type, value)
    if value is None:
        return None
    if is_list_type(kind):
        return [_complete(kind.of_type, one) for one in value]
    return kind.serialize(value)  # type: ignore[union-attr]


def compiled_resolver(definition: Any) -> Any:
    """The resolver of a field. Raises UnsupportedByPlan for a field that plans do not compile."""
    resolve = None if definition is None else resolver_of(definition)
    if resolve is None:
        raise UnsupportedByPlan
    return resolve
