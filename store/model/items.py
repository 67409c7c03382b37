"""Items and the changes of a commit: canonical form, conditions, sizes and limits.

An item is a mapping with the attributes of its keys (`pk`, `sk`; of a node also `parent`, `rank` and `tier`),
`expires` (time to live, in seconds since 1970) unless it is permanent, and its content.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from store.errors import BadData, BadInput
from store.model.attributes import Value
from store.model.keys import Key
from store.text import shorten, shown

Item = dict[str, Value]

T = TypeVar("T")

# The types of values in items, for `decoded`.
Number = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Partition = Annotated[str, Meta(pattern="^[^#]+#.")]
SortKey = Annotated[str, Meta(pattern="^#(.*#)?$")]
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]

# The values that attributes of the item at a change's key must have before the commit; None: the attribute is absent.
# An empty mapping requires nothing.
Condition = Mapping[str, Value]

MAX_ITEM_BYTES = 400 * 1024  # DynamoDB's limit for one item
MAX_BATCH_BYTES = 3_500_000  # DynamoDB's transactions end at 4 MB

ABSENT: Condition = {"pk": None}
UNCONDITIONAL: Condition = {}


class Put(Struct, frozen=True):
    """Write an item, in the place of the one at its key; if it `is_canonical`, its values need not be looked at."""

    item: Item
    when: Condition = UNCONDITIONAL
    is_canonical: bool = False

    @property
    def key(self) -> Key:
        return key_of(self.item)


class Delete(Struct, frozen=True):
    """Remove the item at a key, if there is one."""

    key: Key
    when: Condition = UNCONDITIONAL


class Check(Struct, frozen=True):
    """Require a condition of the item at a key, and change nothing."""

    key: Key
    when: Condition


Change = Put | Delete | Check


def key_of(item: Item) -> Key:
    """The primary key of an item."""
    return Key(cast(str, item["pk"]), cast(str, item["sk"]))


def decoded(item: Item, kind: type[T]) -> T:
    """The content of an item as a typed value; raises BadData with the key of an item that is damaged."""
    try:
        return msgspec.convert(item, kind)
    except msgspec.ValidationError as error:
        raise damaged(item, str(error)) from None


def damaged(item: Item, problem: str) -> BadData:
    """The error for an item whose content cannot be read."""
    pk, sk = [shorten(value) if isinstance(value, str) else shown(value) for value in map(item.get, ("pk", "sk"))]
    return BadData(f'The item "{pk}", "{sk}" is damaged: {problem[:1].lower()}{problem[1:]}. Run clade check.')


def condition_holds(condition: Condition, item: Item | None) -> bool:
    """Whether the item at the key of a change, None: no item, fulfils its condition."""
    found = item or {}
    return all(found.get(name) == value for name, value in condition.items())


MAX_CONTENT_BYTES = MAX_ITEM_BYTES - 16 * 1024  # of a node's own; its item also holds keys and counts
INT64_BOUND = 2**63
LEAST_FLOAT = 1e-130  # but for 0


def canonical_item(item: Item) -> Item:
    """The item as both stores store and return it; raises BadInput where DynamoDB cannot hold a value."""
    found = {**item}
    for name, value in cast(dict[str, Any], item).items():
        kind = type(value)  # comparing it is faster than a call, and every value that is written passes here
        if kind is str or (kind is int and -INT64_BOUND <= value < INT64_BOUND) or (kind is dict and not value):
            continue
        if value is None:
            del found[name]
        else:
            found[name] = canonical_value(value)
    return found


def canonical_value(value: Any) -> Any:
    """The value as both stores store and return it; raises BadInput where DynamoDB cannot hold it."""
    kind = type(value)  # see above; matching classes takes four times as long
    if kind is str or kind is bool or value is None:
        return value
    if kind is float and 1e-130 <= abs(value) < 1e126 and not value.is_integer():  # of most
        return value
    if kind is int or kind is float:
        return _number(value)
    if kind is dict:
        return {name: canonical_value(one) for name, one in value.items()}
    if kind is list:
        return [one if type(one) is str else canonical_value(one) for one in value]
    raise BadInput(f"{shown(value)} cannot be stored; use text, numbers, booleans, lists and objects.")


def _number(number: int | float) -> int | float:
    if isinstance(number, float):
        if not (number == 0 or 1e-130 <= abs(number) < 1e126):  # false of NaN, too
            raise BadInput(f"The number {number} cannot be stored; the range is 1E-130 to 1E+126.")
        return int(number) if number.is_integer() and -INT64_BOUND <= number < INT64_BOUND else number
    if not -INT64_BOUND <= number < INT64_BOUND:
        raise BadInput("An integer of more than 64 bits cannot be stored.")
    return number


def checked_item_size(item: Item) -> int:
    """The size of an item in bytes; raises BadInput past 400 KB."""
    if (size := size_of(item)) > MAX_ITEM_BYTES:
        name = shorten(str(item.get("name", item.get("id", item["sk"]))))
        raise BadInput(f'"{name}" takes {size} bytes; at most {MAX_ITEM_BYTES} (400 KB) fit into one item.')
    return size


def check_content(node: object, name: str, values: Mapping[str, Value], encoded_bytes: int | None = None) -> None:
    """Raise BadInput for content that leaves no room in the item for keys and counts; `node` is for the message.

    It is measured exactly only where an estimate is near the limit, such as the bytes of the values when encoded.
    """
    estimate = len(repr(values)) if encoded_bytes is None else encoded_bytes
    if len(name) + estimate < MAX_CONTENT_BYTES // 4:
        return
    if (size := size_of({"name": name, **values})) > MAX_CONTENT_BYTES:
        raise BadInput(f"{node} takes {size} bytes; at most {MAX_CONTENT_BYTES} of content fit into an item.")


def size_of(item: Item) -> int:
    """The bytes that DynamoDB counts for an item: the names and the values of its attributes, in UTF-8.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Value) -> int:
    match value:
        case str():
            return len(value.encode())
        case bool() | None:
            return 1
        case int() | float():
            return min(len(repr(value)) // 2 + 2, 21)  # two digits a byte, sign and exponent
        case list():
            return 3 + sum(1 + _size(one) for one in value)
        case dict():
            return 3 + sum(1 + len(name.encode()) + _size(one) for name, one in value.items())
