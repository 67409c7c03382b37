"""From records to JSON bytes: for each object type at a place of a response a function is generated that tells its
leaf fields.

A generated function accepts by sight what is surely valid; anything else goes through the field's resolver and
GraphQL's own serialisation, and what these refuse is a surprise that the whole plan gives way to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import orjson
from graphql import GraphQLOutputType, is_enum_type, is_list_type, is_non_null_type
from graphql.execution.values import VariableValues

from graph.types.node_fields import AttributeField, RecordField
from store.model.attributes import Kind
from store.model.records import Record

KEPT_FRAGMENTS = 8  # of one record; more kinds of leaf sets are asked for by no ordinary set of clients

KEPT_BYTES = 500  # of a node that is told, if it is to be kept; more is asked for by no ordinary client

_numbers = count()

# What is valid at a glance, by GraphQL type; `{v}` is the value. Numbers are bounded well inside their types.
_AT_SIGHT = {
    "String": "type({v}) is str",
    "ID": "type({v}) is str",
    "Int": "type({v}) is int and -2147483648 <= {v} <= 2147483647",
    "Float": "type({v}) is float and 1e-9 < abs({v}) < 1e9",
    "Boolean": "type({v}) is bool",
    "DateTime": "type({v}) is str",
}


class UnsupportedByPlan(Exception):
    """Something that a plan does not cover; Strawberry answers instead."""


Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class LeafField:
    """A leaf of an object: its response key, its type, and what answers it with which arguments.

    Where variables are among the arguments, `bind` makes them of a request's variables.
    """

    key: str
    kind: GraphQLOutputType
    resolve: Callable[..., Any]
    arguments: Arguments = field(default_factory=dict)
    bind: Callable[[VariableValues], Arguments] | None = None

    def slowly(self, record: Record, arguments: Arguments) -> Any:
        """Its value as JSON can hold it, or an exception where GraphQL would tell an error."""
        return _complete(self.kind, self.resolve(record, None, **arguments))


@dataclass(frozen=True)
class TypeName:
    """A `__typename` under some response key."""

    key: str
    name: str


@dataclass(frozen=True)
class Constant:
    """A field that every node tells alike: its response key, and its value as JSON."""

    key: str
    json: bytes


class LeafWriter:
    """Some leaf fields of one object type; calling it tells them as JSON, without the braces unless `whole`.

    What was told of a record that is kept is kept with it, for the next time that it is told the same way. Where it
    `varies` there are variables among the arguments: what `bound` returns is called instead, and nothing is kept.
    """

    def __init__(self, fields: Sequence[LeafField | TypeName | Constant], *, whole: bool) -> None:
        self._number = next(_numbers)
        leaves = {n: leaf for n, leaf in enumerate(fields) if isinstance(leaf, LeafField)}
        self._given = {n: leaf.arguments for n, leaf in leaves.items()}
        self._bind = {n: leaf.bind for n, leaf in leaves.items() if leaf.bind is not None}
        self.varies = bool(self._bind)
        self._tell = _generate(fields, whole)

    def bound(self, variables: VariableValues) -> Callable[[Record], bytes]:
        """What tells the fields of a record with these variables. Raises GraphQLError where they do not fit."""
        if not self.varies:
            return self
        given = self._given | {n: bind(variables) for n, bind in self._bind.items()}
        return partial(self._tell, given=given)

    def __call__(self, record: Record) -> bytes:
        fragments = record.fragments
        if fragments is None:
            return self._tell(record, self._given)
        found = fragments.get(self._number)
        if found is None:
            if len(fragments) >= KEPT_FRAGMENTS:
                fragments.clear()
            # A copy of just its size: what orjson makes has some kilobytes of room behind it.
            found = bytes(memoryview(self._tell(record, self._given)))
            if len(found) <= KEPT_BYTES:
                fragments[self._number] = found
        return found


def _generate(fields: Sequence[LeafField | TypeName | Constant], whole: bool) -> Callable[..., bytes]:
    """A function of the record and of the fields' arguments by their numbers, as `def tell(record, given): v0 =
    record.name; if not …: v0 = slowly0(record, given[0]); return …`.
    """
    scope: dict[str, Any] = {"dumps": orjson.dumps}
    lines, shown = [], []
    for n, leaf in enumerate(fields):
        # A response key is a GraphQL name, and so is a type's: letters, digits and _ alone come into the code.
        if isinstance(leaf, TypeName):
            shown.append(f'"{leaf.key}": "{leaf.name}"')
            continue
        shown.append(f'"{leaf.key}": v{n}')
        if isinstance(leaf, Constant):
            scope[f"v{n}"] = orjson.Fragment(leaf.json)
            continue
        scope[f"slowly{n}"] = leaf.slowly
        quick = _quick(leaf, n, scope)
        lines += [f"v{n} = slowly{n}(record, given[{n}])"] if quick is None else [
            f"v{n} = {quick[0]}",
            f"if not ({quick[1]}):",
            f"    v{n} = slowly{n}(record, given[{n}])",
        ]  # fmt: skip
    lines.append(f"return dumps({{{', '.join(shown)}}})" + ("" if whole else "[1:-1]"))
    source = "def tell(record, given):\n" + "".join(f"    {line}\n" for line in lines)
    exec(source, scope)  # noqa: S102  # the text is ours, made of names that the schema has checked
    made: Callable[..., bytes] = scope["tell"]
    return made


def _quick(leaf: LeafField, n: int, scope: dict[str, Any]) -> tuple[str, str] | None:
    """The code of a leaf's value, and of what makes it surely valid; None where only its resolver can tell."""
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
        at_sight = f"type({{v}}) is str and {{v}} in members{n}"
    elif kind.name in _AT_SIGHT:  # type: ignore[union-attr]
        at_sight = _AT_SIGHT[kind.name]  # type: ignore[union-attr]
    else:
        return None
    condition = at_sight.format(v=f"v{n}")
    return value, f"v{n} is None or {condition}" if nullable else condition


def _complete(kind: GraphQLOutputType, value: Any) -> Any:
    """A value as GraphQL completes it, or Surprise where that would be an error."""
    if is_non_null_type(kind):
        if value is None:
            raise UnsupportedByPlan
        return _complete(kind.of_type, value)
    if value is None:
        return None
    if is_list_type(kind):
        return [_complete(kind.of_type, one) for one in value]
    return kind.serialize(value)  # type: ignore[union-attr]


def resolver_of(definition: Any) -> Any:
    """What answers a field, as `field()` was given it; raises Surprise for a field that is made otherwise."""
    strawberry_field = (definition.extensions if definition is not None else {}).get("strawberry-definition")
    resolver = getattr(strawberry_field, "base_resolver", None)
    resolve = getattr(getattr(resolver, "wrapped_func", None), "resolve", None)
    if resolve is None:
        raise UnsupportedByPlan
    return resolve
