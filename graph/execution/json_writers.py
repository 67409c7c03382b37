"""JSON writers: of the leaf fields of a node, by code generated for each object type and position, and of a connection
around nodes that are written already.

A generated function only checks the Python type of a value. A value of another type goes through the field's resolver
and GraphQL's serialization; if these raise, the node is written field by field, as GraphQL completes values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count, islice, repeat
from types import MappingProxyType
from typing import Any

import orjson
from graphql import FieldNode, GraphQLError, GraphQLOutputType, is_enum_type, is_list_type, is_non_null_type
from graphql.execution.values import VariableValues

from graph.types.fields import AttributeField, DisplayName, RecordField
from resolvers.lists.arguments import Page
from resolvers.session.budget import Budget
from store.errors import BadData
from store.model.attributes import Attribute, Kind
from store.model.records import Record

MAX_FRAGMENTS = 8  # cached with one record; ordinary clients select fewer sets of leaf fields
MAX_FRAGMENT_BYTES = 500  # of one node's JSON, to be cached; ordinary clients select less
MAX_CACHED_FIELDS = 4  # of one page; ordinary clients select fewer

_numbers = count()

EMPTY_FIELDS: Mapping[str, tuple[str, Any]] = MappingProxyType({})

# Conditions for values that are valid without a look at the resolver, by GraphQL type; `{v}` is the value. Numbers are
# bounded well inside their types.
_VALID = {
    "String": "type({v}) is str",
    "ID": "type({v}) is str",
    "Int": "type({v}) is int and -2147483648 <= {v} <= 2147483647",
    "Float": "type({v}) is float and 1e-9 < abs({v}) < 1e9",
    "Boolean": "type({v}) is bool",
    "DateTime": "type({v}) is str",
    "Path": "type({v}) is str",
}


Arguments = Mapping[str, Any] | GraphQLError
"""The arguments of a field, or the error of invalid ones."""


class FieldError(Exception):
    """The error of a field, with the field's nodes and its path from the object of a `LeafWriter` on."""

    def __init__(self, error: Exception, path: tuple[str | int, ...], nodes: Sequence[FieldNode]) -> None:
        self.error, self.path, self.nodes = error, path, nodes


Note = Callable[..., None]
"""Takes the FieldError of a field that is null because of it; with True that of a whole object."""


@dataclass(frozen=True)
class LeafField:
    """A leaf field of an object: its response key, its type, its resolver, its field nodes and its arguments.

    Where variables are among the arguments, `bind` gives the arguments for a request's variables.
    """

    key: str
    kind: GraphQLOutputType
    resolve: Callable[..., Any]
    nodes: Sequence[FieldNode] = ()
    arguments: Arguments = field(default_factory=dict)
    bind: Callable[[VariableValues], Arguments] | None = None

    def resolved(self, record: Any, arguments: Any) -> Any:
        """The serialized value. Raises where GraphQL would report an error."""
        return _complete(self.kind, self.resolve(record, None, **arguments))

    def completed(self, record: Any, arguments: Any, path: tuple[str | int, ...], note: Note) -> Any:
        """The serialized value, null where it fails. Raises FieldError where it fails and may not be null."""

        def value() -> Any:
            if isinstance(arguments, GraphQLError):
                raise arguments
            return self._value(self.kind, self.resolve(record, None, **self.given(arguments)), arguments, path, note)

        return self._guarded(self.kind, path, note, value)

    def given(self, arguments: Any) -> Any:
        """The arguments of the field itself."""
        return arguments

    def _guarded(self, kind: Any, path: tuple[str | int, ...], note: Note, complete: Callable[[], Any]) -> Any:
        """A value at a place of this type; null, and its error noted, where it fails and may be null."""
        try:
            return complete()
        except Exception as error:
            failed = error if isinstance(error, FieldError) else FieldError(error, path, self.nodes)
            if is_non_null_type(kind):
                raise failed from None
            note(failed)
            return None

    def _value(self, kind: Any, value: Any, arguments: Any, path: tuple[str | int, ...], note: Note) -> Any:
        """A value as GraphQL completes it for this type."""
        if is_non_null_type(kind):
            if value is None:
                raise BadData("A stored value is missing that may not be null.")
            return self._value(kind.of_type, value, arguments, path, note)
        if value is None:
            return None
        if is_list_type(kind):
            inner, places = kind.of_type, [(*path, n) for n in range(len(value))]
            return [
                self._guarded(inner, place, note, partial(self._value, inner, one, arguments, place, note))
                for place, one in zip(places, value, strict=True)
            ]
        return self.named(kind, value, arguments, path, note)

    def named(self, kind: Any, value: Any, arguments: Any, path: tuple[str | int, ...], note: Note) -> Any:
        """A value that is no list, as completed for its type."""
        try:
            return kind.serialize(value)
        except GraphQLError as error:
            raise BadData(f"A stored value is not of its type: {error.message}") from None


@dataclass(frozen=True)
class Constant:
    """A field with the same value in every object: its response key, and the value as JSON."""

    key: str
    json: bytes


@dataclass(frozen=True)
class ValueField(LeafField):
    """A field with an object, or a list of objects, out of a record: a nested value, or names in other languages.

    `fields` are those of each object; their arguments are among its own by response key. `many` is whether its type is
    a list, `error` that of the selections in each object.
    """

    fields: Sequence[LeafField | Constant] = ()
    many: bool = False
    error: GraphQLError | None = None

    def resolved(self, record: Any, arguments: Any) -> Any:
        found = self.resolve(record, None)
        if found is None:
            return _complete(self.kind, found)
        return [self._object(one, arguments) for one in found] if self.many else self._object(found, arguments)

    def _object(self, value: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return {
            one.key: orjson.Fragment(one.json) if isinstance(one, Constant) else one.resolved(value, arguments[one.key])
            for one in self.fields
        }

    def given(self, arguments: Any) -> Any:
        return {}

    def named(self, kind: Any, value: Any, arguments: Any, path: tuple[str | int, ...], note: Note) -> Any:
        if self.error is not None:
            raise self.error
        return completed(self.fields, value, lambda one: arguments[one.key], path, note)

    def count(self, record: Any) -> int:
        """What the fields of its objects count as in the budget; 0 where it fails."""
        try:
            found = self.resolve(record, None)
        except Exception:  # which is met again, and reported, where it is written
            return 0
        return self.count_of([] if found is None else found if self.many else [found])

    def count_of(self, objects: Sequence[Any]) -> int:
        """The same for these objects."""
        inner = [field for field in self.fields if isinstance(field, ValueField)]
        return len(self.fields) * len(objects) + sum([field.count(one) for field in inner for one in objects])

    def json(self, objects: Sequence[Any]) -> bytes:
        """These objects as JSON, whose fields have no arguments."""
        return orjson.dumps([self._object(one, self.arguments) for one in objects])  # type: ignore[arg-type]


def completed(
    fields: Sequence[LeafField | Constant], value: Any, arguments: Callable[[LeafField], Any],
    path: tuple[str | int, ...], note: Note,
) -> dict[str, Any]:  # fmt: skip
    """An object with these fields. Raises FieldError where one fails that may not be null."""
    return {
        one.key: orjson.Fragment(one.json)
        if isinstance(one, Constant)
        else one.completed(value, arguments(one), (*path, one.key), note)
        for one in fields
    }


class LeafWriter:
    """Writer of some leaf fields of one object type as JSON, without the braces unless `whole`.

    The JSON of a cached record is cached with it, where the objects are records of nodes (`of_nodes`), unless the
    writer `varies`: there are variables among the arguments.
    """

    def __init__(self, fields: Sequence[LeafField | Constant], *, whole: bool, of_nodes: bool = True) -> None:
        self._number = next(_numbers)
        self._fields, self._whole = fields, whole
        leaves = {n: leaf for n, leaf in enumerate(fields) if isinstance(leaf, LeafField)}
        self._arguments = {n: leaf.arguments for n, leaf in leaves.items()}
        self._bind = {n: leaf.bind for n, leaf in leaves.items() if leaf.bind is not None}
        self.varies = bool(self._bind)
        self._has_fragments = of_nodes and not self.varies

    @cached_property
    def _write(self) -> Callable[..., bytes]:
        return _generate(self._fields, self._whole)

    def write(
        self, records: Sequence[Any], variables: VariableValues, budget: Budget, faults: Any, rows: Any, start: int
    ) -> list[bytes]:
        """The fields of each of some objects, from `start` on of these rows. Raises ResponseTooLarge.

        Their errors become `faults` of the rows; of a whole object that failed nothing valid is written. The bytes of
        an object are counted before the next one takes memory, since each may have 400 KB under 30 aliases.
        """
        arguments, number, has_fragments = self._arguments, self._number, self._has_fragments
        if self.varies:
            arguments = arguments | {n: bind(variables) for n, bind in self._bind.items()}
        written: list[bytes] = []
        size, left = 0, budget.bytes_left
        for record in records:
            fragments = record.fragments if has_fragments else None
            try:
                if fragments is None:
                    json = self._write(record, arguments)
                else:
                    json = fragments.get(number) or self._cached(record, fragments)
            except Exception:
                json = b""  # it is met again, and noted, outside of this block, of whose error it would be a part
            if not json:
                json = self._completed(record, arguments, partial(faults.of_leaf, rows, start + len(written)))
            size += len(json)
            if size > left:
                budget.spend_bytes(size)
            written.append(json)
        budget.bytes_left = left - size  # without the call of `spend_bytes`, which takes as long as a node
        return written

    def _completed(self, record: Any, arguments: Mapping[int, Any], failed: Note) -> bytes:
        """The fields of an object, of which one may have failed."""
        by_key = {leaf.key: arguments[n] for n, leaf in enumerate(self._fields) if isinstance(leaf, LeafField)}
        try:
            json = orjson.dumps(completed(self._fields, record, lambda one: by_key[one.key], (), failed))
        except FieldError as error:
            failed(error, True)
            return b""
        return json if self._whole else json[1:-1]

    def _cached(self, record: Record, fragments: dict[int, bytes]) -> bytes:
        """The fields of a cached record, which are cached with it."""
        if len(fragments) >= MAX_FRAGMENTS:
            fragments.clear()
        json = _exact(self._write(record, self._arguments))
        if len(json) <= MAX_FRAGMENT_BYTES:
            fragments[self._number] = json
        return json


def _generate(fields: Sequence[LeafField | Constant], whole: bool) -> Callable[..., bytes]:
    """A function of the record and of the fields' arguments by their numbers, as `def write(record, arguments): v0 =
    record.name; if not …: v0 = resolve0(record, arguments[0]); return …`.
    """
    scope: dict[str, Any] = {"dumps": orjson.dumps}
    lines, members = [], []
    for n, leaf in enumerate(fields):
        # Response keys are GraphQL names: only letters, digits and _ come into the code.
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
        case DisplayName() if not leaf.arguments and leaf.bind is None:
            value = "record.name"
        case AttributeField(attribute) if attribute.kind not in (Kind.DATE, Kind.DATETIME, Kind.DECIMAL, Kind.LONG):
            value = _stored(attribute)
        case _:
            return None
    if is_enum_type(kind):
        # A level may have another name in the table than in the schema, where it is the value of its name.
        is_level = isinstance(leaf.resolve, RecordField)
        scope[f"members{n}"] = frozenset(name for name, one in kind.values.items() if not is_level or one.value == name)
        valid = f"type({{v}}) is str and {{v}} in members{n}"
    elif kind.name in _VALID:  # type: ignore[union-attr]
        valid = _VALID[kind.name]  # type: ignore[union-attr]
    else:
        return None
    condition = valid.format(v=f"v{n}")
    return value, f"v{n} is None or {condition}" if nullable else condition


def _stored(attribute: Attribute) -> str:
    """The code of an attribute's value in a record, which may be under a former name."""
    value = "None"
    for name in reversed((attribute.name, *attribute.was)):  # identifiers, as the class was checked
        value = f'record.attributes.get("{name}", {value})'
    return value


def _complete(kind: GraphQLOutputType, value: Any) -> Any:
    """A value as GraphQL completes it. Raises TypeError for null that may not be null."""
    if is_non_null_type(kind):
        if value is None:
            raise TypeError
        return _complete(kind.of_type, value)
    if value is None:
        return None
    if is_list_type(kind):
        return [_complete(kind.of_type, one) for one in value]
    return kind.serialize(value)  # type: ignore[union-attr]


class ConnectionField:
    """One field of a connection: its response key and its name, with `fields` below it by response key, each with its
    name and resolver, and `kind`, the value of a `__typename` in it.

    `resolve` takes a page, and resolvers of fields of an edge its record as well.
    """

    def __init__(
        self, key: str, name: str, kind: str, resolve: Any = None, fields: Mapping[str, tuple[str, Any]] = EMPTY_FIELDS
    ) -> None:
        self.key, self.name, self.start = key, name, key_of(key)
        self.write = _page_writer(name, kind, resolve, fields)
        """The function that writes the field of a page, and takes the JSON of the page's nodes from an iterator."""
        self.number = next(_numbers)
        """Key of its JSON in the pages that cache it: a page may be cached for longer than its plan."""
        self.page_count, self.node_count = (1, len(fields)) if name == "edges" else (1 + len(fields), 0)
        """What it counts as in the budget for each page, and for each node without the node's fields."""

    def cached(self, count: Callable[[Sequence[Record]], int | None], nodes: Iterator[bytes], page: Page) -> bytes:
        """The field of a page, cached with the page unless it is too long or `count` is None for the page's nodes: what
        their fields count as, where their JSON depends on nothing else.
        """
        field, fields = self.write(page, nodes), count(page.records)
        is_short = len(field) <= MAX_FRAGMENT_BYTES * (len(page.records) + 1)
        if fields and is_short and len(page.json_fields) < MAX_CACHED_FIELDS:
            page.json_fields[self.number] = _exact(field), fields
        return field

    def tail(self, inner: str, index: int) -> tuple[str | int, ...]:
        """The path, in the page, of one of its objects, which has the key `inner` in an edge."""
        return (self.key, index, inner) if inner else (self.key, index)


def _page_writer(
    name: str, kind: str, resolve: Any, fields: Mapping[str, tuple[str, Any]]
) -> Callable[[Page, Iterator[bytes]], bytes]:
    def typename(*_: object) -> str:
        return kind

    dumps, below = orjson.dumps, [(key, one, get or typename) for key, (one, get) in fields.items()]
    if name == "nodes":
        return lambda page, nodes: b"[" + b",".join(islice(nodes, len(page.records))) + b"]"
    if name == "edges":

        def node(page: Any, record: Any, nodes: Iterator[bytes]) -> orjson.Fragment:
            return orjson.Fragment(next(nodes))

        edge = [(key, node if one == "node" else get) for key, one, get in below]
        return lambda page, nodes: dumps([{k: get(page, one, nodes) for k, get in edge} for one in page.records])
    if name == "pageInfo":
        return lambda page, _: dumps({key: get(page) for key, _, get in below})
    value = resolve or typename
    return lambda page, _: dumps(value(page))


def _exact(json: bytes) -> bytes:
    """A copy of its exact size: orjson's own bytes have some kilobytes of room behind them."""
    return bytes(memoryview(json))


def key_of(key: str) -> bytes:
    """A response key, which is a GraphQL name, as JSON with its colon."""
    return b'"' + key.encode() + b'":'


def objects(columns: Sequence[tuple[bytes, Iterable[bytes]]], size: int) -> Iterator[bytes]:
    """So many JSON objects from their columns, each the key of a field, empty where the values hold it already, and as
    many or more values. Without columns the objects are empty.
    """
    parts: list[Iterable[bytes]] = [repeat(b"{", size)]  # values may be long, and are copied once for each object
    for number, (key, values) in enumerate(columns):
        parts += (repeat(b"," + key if number else key), values)
    return map(b"".join, zip(*parts, repeat(b"}"), strict=False))
