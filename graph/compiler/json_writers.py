"""JSON writers: of the leaf fields of a node, by code generated for each object type and position, and of a connection
around nodes that are written already.

A generated function only checks the Python type of a value. A value of another type goes through the field's resolver
and GraphQL's serialization. If these raise, the fields of this node are written one by one (`LeafWriter.one_by_one`),
with each error reported at its field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice, repeat
from typing import Any, cast

import orjson
from graphql import FieldNode, GraphQLOutputType, is_enum_type, is_list_type, is_non_null_type
from graphql.execution.values import VariableValues

from graph.types.list_types import PAGE_INFO
from graph.types.node_fields import AttributeField, DisplayName, RecordField
from resolvers.outcomes import Outcome, is_error
from resolvers.planning.page import Page
from resolvers.search.finder import FoundPage
from store.bounded_cache import cached_function
from store.model.attributes import Attribute, Kind
from store.model.records import Record

MAX_FRAGMENTS = 8  # cached with one record; ordinary clients select fewer sets of leaf fields
MAX_CACHED_KEY = 100  # characters of a response key whose JSON is cached
MAX_FRAGMENT_BYTES = 500  # of one node's JSON, to be cached; ordinary clients select less
MAX_CACHED_FIELDS = 4  # of one page; ordinary clients select fewer

_numbers = count()

EMPTY = FoundPage([], total=0)  # which has the fields of any page

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


class FieldError(Exception):
    """An error at a place below a field, which makes the nearest place above it null that may be null."""

    def __init__(self, cause: Exception, below: tuple[str | int, ...]) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.below = below


Report = Callable[[Exception, tuple[str | int, ...]], None]
"""Takes an error that makes a place below a field null, and this place."""


@dataclass(frozen=True)
class LeafField:
    """A leaf field of an object: its response key, its type, its resolver and the arguments of this.

    Where variables are among the arguments, `bind` gives the arguments for a request's variables. `label` names the
    field in messages, `nodes` are its places in the document.
    """

    key: str
    kind: GraphQLOutputType
    resolve: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    bind: Callable[[VariableValues], Mapping[str, Any]] | None = None
    label: str = ""
    nodes: Sequence[FieldNode] = ()

    def resolved(self, record: Any, arguments: Mapping[str, Any]) -> Any:
        """The serialized value. Raises where GraphQL reports an error."""
        return _value(self.kind, self.resolve(record, None, **arguments))

    def completed(
        self, record: Any, arguments: Outcome[Mapping[str, Any]], report: Report, below: tuple[str | int, ...]
    ) -> Any:
        """The serialized value, null where an error was reported; `arguments` may be their error. Raises FieldError
        where an error makes the field null though it may not be.
        """
        try:
            if is_error(arguments):
                raise arguments
            value = self._resolved(record, arguments)
        except Exception as error:
            return self._null(error, report, below)
        return _complete(self.kind, value, self._inner(arguments), report, below, self.label)

    def _resolved(self, record: Any, arguments: Mapping[str, Any]) -> Any:
        return self.resolve(record, None, **arguments)

    def _inner(self, arguments: Mapping[str, Any]) -> "Inner":
        """The function that serializes the value inside of lists."""
        return _serialize

    def _null(self, error: Exception, report: Report, below: tuple[str | int, ...]) -> None:
        if is_non_null_type(self.kind):
            raise FieldError(error, below) from None
        report(error, below)


def bound(bind: Callable[[VariableValues], Any], variables: VariableValues) -> Any:
    """The arguments of a field, or their error."""
    try:
        return bind(variables)
    except Exception as error:
        return error.with_traceback(None)


@dataclass(frozen=True)
class TypeName:
    """A `__typename` under some response key."""

    key: str
    name: str


@dataclass(frozen=True)
class ValueField(LeafField):
    """A field with an object, or a list of objects, out of a record: a nested value, or names in other languages.

    `fields` are those of each object; their arguments are among its own by response key.
    """

    fields: Sequence["LeafField | TypeName"] = ()

    def resolved(self, record: Any, arguments: Mapping[str, Any]) -> Any:
        return self.completed(record, arguments, _raise, ())

    def _resolved(self, record: Any, arguments: Mapping[str, Any]) -> Any:
        return self.resolve(record, None)

    def _inner(self, arguments: Mapping[str, Any]) -> "Inner":
        def of_fields(kind: Any, value: Any, report: Report, below: tuple[str | int, ...]) -> dict[str, Any]:
            return {
                one.key: one.name
                if isinstance(one, TypeName)
                else one.completed(value, arguments[one.key], report, (*below, one.key))
                for one in self.fields
            }

        return of_fields

    def count(self, record: Any) -> int:
        """What the fields of its objects count as in the budget."""
        try:
            found = self.resolve(record, None)
        except Exception:  # it is reported where the field is written
            return 0
        objects = found if isinstance(found, list) else [] if found is None else [found]
        inner = [field for field in self.fields if isinstance(field, ValueField)]
        return len(self.fields) * len(objects) + sum([field.count(one) for field in inner for one in objects])


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
        self._fields = fields
        self._whole = whole
        self._leaves = {n: leaf for n, leaf in enumerate(fields) if isinstance(leaf, LeafField)}
        self._arguments: dict[int, Any] = {n: leaf.arguments for n, leaf in self._leaves.items()}
        self._bind = {n: leaf.bind for n, leaf in self._leaves.items() if leaf.bind is not None}
        self.varies = bool(self._bind)
        self._write = _generate(fields, whole)

    def bound(self, variables: VariableValues) -> Callable[[Record], bytes]:
        """The writer with these variables, if it varies. It raises where one of its fields has an error."""
        return partial(self._write, arguments=self._bound_arguments(variables))

    def one_by_one(self, record: Record, variables: VariableValues, report: Callable[..., None]) -> bytes | None:
        """The same JSON for a record of which a field has an error: null for a field that may be null, else None, for
        the whole object. Calls `report` with the field of each error, the error, and the place below the field.
        """
        members: list[bytes] = []
        arguments = self._bound_arguments(variables)
        for n, one in enumerate(self._fields):
            match one:
                case TypeName():
                    json = orjson.dumps(one.name)
                case Constant():
                    json = one.json
                case LeafField():
                    reported = partial(report, one)
                    try:
                        json = _dumped(one.completed(record, arguments[n], reported, ()), one, reported)
                    except FieldError as error:
                        reported(error.cause, error.below)
                        return None
            members.append(key_of(one.key) + json)
        written = b",".join(members)
        return b"{" + written + b"}" if self._whole else written

    def _bound_arguments(self, variables: VariableValues) -> dict[int, Any]:
        """The arguments by the numbers of their fields; the error in the place of those that do not fit."""
        return self._arguments | {n: bound(bind, variables) for n, bind in self._bind.items()}

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


def _value(kind: Any, value: Any) -> Any:
    """A value as GraphQL completes it. Raises where that is an error."""
    if is_non_null_type(kind):
        if value is None:
            raise TypeError
        return _value(kind.of_type, value)
    if value is None:
        return None
    return [_value(kind.of_type, one) for one in value] if is_list_type(kind) else kind.serialize(value)


Inner = Callable[[Any, Any, Report, tuple[str | int, ...]], Any]
"""Serializes a value of a type, at a place below its field. Raises whatever error there is."""


def _serialize(kind: Any, value: Any, report: Report, below: tuple[str | int, ...]) -> Any:
    return kind.serialize(value)


def _complete(kind: Any, value: Any, inner: Inner, report: Report, below: tuple[str | int, ...], label: str) -> Any:
    """A value as GraphQL completes it. Raises FieldError where an error makes it null though it may not be."""
    if not is_non_null_type(kind):
        try:
            return _completed(kind, value, inner, report, below, label)
        except FieldError as error:
            report(error.cause, error.below)
            return None
    found = _completed(kind.of_type, value, inner, report, below, label)
    if found is None:
        raise FieldError(TypeError(f"Cannot return null for non-nullable field {label}."), below)
    return found


def _completed(kind: Any, value: Any, inner: Inner, report: Report, below: tuple[str | int, ...], label: str) -> Any:
    if value is None:
        return None
    if is_list_type(kind):
        return [_complete(kind.of_type, one, inner, report, (*below, n), label) for n, one in enumerate(value)]
    try:
        return inner(kind, value, report, below)
    except FieldError:
        raise
    except Exception as error:
        raise FieldError(error, below) from None


def _dumped(value: Any, leaf: LeafField, report: Report) -> bytes:
    """A value as JSON. Raises FieldError as `_complete` does, where JSON has no form for it."""
    try:
        return orjson.dumps(value)
    except Exception as error:
        if is_non_null_type(leaf.kind):
            raise FieldError(error, ()) from None
        report(error, ())
        return b"null"


def _raise(error: Exception, below: tuple[str | int, ...]) -> None:
    raise error


class ConnectionField:
    """One field of a connection: its response key, its name, the value of a `__typename` in it, and the response keys
    and names of the fields below it.
    """

    def __init__(self, key: str, name: str, kind: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.key = key
        self.name = name
        self.kind = kind
        self.number = next(_numbers)
        """Key of its JSON in the pages that cache it: a page may be cached for longer than its plan."""
        self._start = key_of(key)
        self._fields = fields

    def write(self, page: Page, *nodes: Iterator[bytes]) -> bytes:
        """The field of a page with its key. Takes the JSON of the page's nodes from each of `nodes`: of `edges` there
        are as many as keys with a `node`.
        """
        match self.name:
            case "nodes":
                return b"".join((self._start, b"[", b",".join(islice(nodes[0], len(page.records))), b"]"))
            case "edges":
                edges = [self._edge(page, record, nodes) for record in page.records]
                return b"".join((self._start, b"[", b",".join(edges), b"]"))
            case "pageInfo":
                values = {key: PAGE_INFO[name](page) if name in PAGE_INFO else self.kind for key, name in self._fields}
                return self._start + orjson.dumps(values)
            case "totalCount":
                return self._start + (b"null" if is_error(page.total) else orjson.dumps(page.total))
            case "complete":
                return self._start + orjson.dumps(cast(FoundPage, page).complete)
            case _:
                return self._start + orjson.dumps(self.kind)

    def count(self, pages: int, records: int) -> int:
        """The fields it counts as in the budget for so many pages of so many records, without the fields of nodes."""
        return pages + len(self._fields) * (records if self.name == "edges" else pages)

    def cache(self, page: Page, field: bytes, fields: int) -> None:
        """Cache the field's JSON and the number of its nodes' fields with the page, unless it is too long or many."""
        is_short = len(field) <= MAX_FRAGMENT_BYTES * (len(page.records) + 1)
        if page.records and is_short and len(page.json_fields) < MAX_CACHED_FIELDS:
            page.json_fields[self.number] = field, fields

    def _edge(self, page: Page, record: Record, nodes: Sequence[Iterator[bytes]]) -> bytes:
        rest = iter(nodes)
        values = {
            "cursor": lambda: orjson.dumps(page.cursor(record)),
            "kilometers": lambda: orjson.dumps(cast(FoundPage, page).kilometers[record.id]),
            "node": lambda: next(next(rest)),
        }
        typename = orjson.dumps(self.kind)
        fields = [key_of(key) + (values[name]() if name in values else typename) for key, name in self._fields]
        return b"{" + b",".join(fields) + b"}"


def key_of(key: str) -> bytes:
    """A response key, which is a GraphQL name, as JSON with its colon."""
    return _known_key(key) if len(key) <= MAX_CACHED_KEY else _key_json(key)


def _key_json(key: str) -> bytes:
    return b'"' + key.encode() + b'":'


_known_key = cached_function("response_keys", 1_000, entry_bytes=400)(_key_json)


def objects(columns: Sequence[tuple[bytes, Iterable[bytes]]], size: int) -> list[bytes]:
    """So many JSON objects from their columns: the key of a field, empty where the fields hold it already, and the
    field of each object. Without columns the objects are empty.
    """
    if not columns:
        return [b"{}"] * size
    parts: list[Iterable[bytes]] = []  # fields may be long, and are copied once for each object around them
    before = b"{"
    for key, fields in columns:
        parts += (repeat(before + key), fields)
        before = b","
    return list(map(b"".join, zip(*parts, repeat(b"}"), strict=False)))
