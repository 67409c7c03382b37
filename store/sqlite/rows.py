"""Rows: items as columns and as msgpack in the column `body`, decoded and checked, with their sizes.

A body does not repeat the columns. Of the items that a table has most of it is an array: its form, then the values of
the attributes that the form names, None for an absent one. Any other item is a map of what the columns do not hold.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from store.model.attributes import Value
from store.model.items import MAX_ITEM_BYTES, Item, canonical_item, checked_item_size
from store.model.records import NODE, Record
from store.sqlite.connection import Undecodable

KEYS = ("pk", "sk", "parent", "rank", "tier")
"""The columns of an item beside its body."""

ROW_BYTES = 120
"""What DynamoDB counts for an item beside its body, on average: the keys and the names of attributes."""

_FORMS: dict[int, tuple[str, ...]] = {
    NODE: Record.__struct_fields__[: -len(("pk", "sk", "rank"))],
    2: ("tree", "key"),  # the record of an id
    3: ("at", "line", "level"),  # a word item
    4: ("at", "line", "level", "names"),
    5: ("at", "line", "level", "others"),
    6: ("at", "line", "level", "names", "others"),
    7: ("at", "line", "level", "latitude", "longitude"),  # a cell item
}
_OWN = "attributes"  # holds the attributes of a node that are not in its form
_NODE = frozenset(_FORMS[NODE]) - {_OWN}
"""The attributes of a node in its form."""

_FORM_OF = {frozenset(names): form for form, names in _FORMS.items()}

_IN_ORDER = {(*KEYS[:keys], *names): (form, keys) for form, names in _FORMS.items() for keys in (2, 4) if form != NODE}
"""The forms by all attributes in the order in which Clade makes items, with the number of their keys."""

_NO_KEYS = (None,) * (len(KEYS) + 1)
"""The columns before the body, of an item without keys that does not expire."""

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], object] = msgspec.msgpack.Decoder().decode
_decode_record = msgspec.msgpack.Decoder(Record).decode


Row = tuple[Any, ...]
"""The columns of KEYS and the body of an item."""

NodeRow = tuple[str, str, str, bytes]
"""The keys `pk`, `sk` and `rank` of a node, and its body."""


def decode(row: Row) -> Item:
    """The item in a `Row`; raises Undecodable."""
    try:
        content = _decode(row[-1])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Undecodable(str(error)) from error
    item: Item = {name: value for name, value in zip(KEYS, row, strict=False) if value is not None}
    if type(content) is dict:
        return item | content
    form, *values = content if type(content) is list and content else [None]
    names = _FORMS.get(form) if type(form) is int else None
    if names is None or len(values) > len(names):
        raise Undecodable("a row has a body of no known form")
    for name, value in zip(names, values, strict=False):
        if value is not None:
            item[name] = value
    if form == NODE:
        own = item.pop(_OWN, None)
        if type(own) is not dict:
            raise Undecodable("a node has no attributes")
        item |= own
    return item


def decode_record(row: NodeRow) -> Record:
    """The record of a node; raises Undecodable, or BadData where its values have other types."""
    pk, sk, rank, body = row
    try:
        record = _decode_record(body)
    except msgspec.ValidationError:
        return Record.of(decode((pk, sk, None, rank, None, body)))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Undecodable(str(error)) from error
    if (record.below is None) == (sk != "#"):  # a root has no counts there, any other node has
        return Record.of(decode((pk, sk, None, rank, None, body)))
    # Setting three attributes takes less time than any other way to add them to what was decoded.
    force_setattr(record, "pk", pk)
    force_setattr(record, "sk", sk)
    force_setattr(record, "rank", rank)
    return record


def total_size(rows: Iterable[Row]) -> int:
    """The bytes of the items in these rows together, nearly as DynamoDB counts them; raises Undecodable."""
    try:
        return sum([len(row[-1]) + ROW_BYTES for row in rows])
    except TypeError as error:
        raise Undecodable("a row has no content") from error


def row_of(item: Item, *, is_canonical: bool = False) -> tuple[Value | bytes, ...]:
    """The columns of an item, which may be known to be canonical; raises BadInput where it cannot be stored."""
    if is_canonical and (known := _IN_ORDER.get(tuple(item))) is not None:
        form, keys = known
        values = [*item.values()]
        body = _encode([form, *values[keys:]])
        if len(body) <= MAX_ITEM_BYTES // 4:
            return (*values[:keys], *_NO_KEYS[keys:], body)
    canonical = item if is_canonical else canonical_item(item)
    body = _encode(_content(canonical))
    if len(body) > MAX_ITEM_BYTES // 4:  # msgpack is no more than that much shorter than what DynamoDB counts
        checked_item_size(canonical)
    get = canonical.get
    return get("pk"), get("sk"), get("parent"), get("rank"), get("tier"), get("expires"), body


def _content(item: Item) -> Item | list[Value]:
    """What the body of an item holds."""
    rest = {name: value for name, value in item.items() if name not in KEYS or type(value) is not str}
    form = NODE if type(item.get("tier")) is str and rest.keys().isdisjoint(KEYS) else _FORM_OF.get(frozenset(rest))
    if form is None:
        return rest
    if form == NODE:
        rest[_OWN] = {name: value for name, value in rest.items() if name not in _NODE}
    content = [form, *map(rest.get, _FORMS[form])]
    while content[-1] is None:  # of the optional ones at the end
        content.pop()
    return content
