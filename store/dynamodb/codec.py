"""DynamoDB JSON: encoding and decoding of items, conditions and key ranges."""

from collections.abc import Callable
from typing import Any, TypedDict, cast

import msgspec
import orjson
from msgspec import Struct

from store.model.attributes import Value
from store.model.keys import MAX_SORT_KEY_BYTES, Index, Key, KeyRange, index_name
from store.model.records import INT64_BOUND, Condition, Item, canonical_value

Json = dict[str, Any]


class WireValue(Struct, gc=False):
    """A value of a response: one attribute is set, none for NULL.

    Structures that the garbage collector does not track take half the time of dicts.
    """

    S: str | None = None
    N: str | None = None
    M: "WireItem | None" = None
    L: "list[WireValue] | None" = None
    BOOL: bool | None = None
    B: str | None = None
    SS: list[str] | None = None
    NS: list[str] | None = None
    BS: list[str] | None = None


WireItem = dict[str, WireValue]


class Answer(TypedDict, total=False):
    """The members of responses that are parsed, of all operations."""

    Items: list[WireItem]
    Count: int
    LastEvaluatedKey: Json
    Responses: dict[str, list[WireItem]]
    UnprocessedKeys: Json
    ConsumedCapacity: Any
    Item: WireItem
    Table: Json
    TimeToLiveDescription: Json
    ContinuousBackupsDescription: Json
    Tags: list[dict[str, str]]


parse_answer: Callable[[bytes], Answer] = msgspec.json.Decoder(Answer).decode
"""The members of a response; raises one of INVALID_BODY."""
INVALID_BODY = (msgspec.DecodeError, UnicodeDecodeError)


def encode(item: Item) -> Json:
    """An item in canonical form as DynamoDB JSON."""
    return {name: {"S": value} if type(value) is str else encode_value(value) for name, value in item.items()}


def encode_value(value: Value) -> Json:
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": repr(value)}
        case None:
            return {"NULL": True}
        case list():
            return {"L": [encode_value(one) for one in value]}
        case dict():
            return {"M": encode(value)}


def encode_key(key: Key) -> Json:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def decode_key(wire: Json) -> Key:
    """The inverse of `encode_key`."""
    return Key(wire["pk"]["S"], wire["sk"]["S"])


def decode(wire: WireItem) -> Item:
    """An item of a response; sets and bytes, which Clade never writes, become lists and base64."""
    # A list of a thousand items has some fifteen thousand values, most of them texts, which take no call.
    return {name: value.S if value.S is not None else decode_value(value) for name, value in wire.items()}


def decode_value(value: WireValue) -> Value:
    if value.S is not None:
        return value.S
    if value.N is not None:
        return _decode_number(value.N)
    if value.M is not None:
        return decode(value.M) if value.M else {}
    if value.L is not None:
        return [one.S if one.S is not None else decode_value(one) for one in value.L]
    if value.NS is not None:
        return [_decode_number(one) for one in value.NS]
    return cast(Value, next((one for one in (value.BOOL, value.SS, value.B, value.BS) if one is not None), None))


def _decode_number(text: str) -> int | float:
    if len(text) < 19 and text.isdecimal():  # most are counts; past 18 digits a number may have more than 64 bits
        return int(text)
    number: int | float = orjson.loads(text)
    if isinstance(number, float):
        return int(number) if number.is_integer() and -INT64_BOUND <= number < INT64_BOUND else number
    return number if -INT64_BOUND <= number < INT64_BOUND else float(number)


def condition(when: Condition, now: int) -> Json:
    """The condition expression that requires `when`; an item that has expired by `now` counts as absent."""
    if not when:
        return {}
    names, values, parts = {"#expires": "expires"}, {":now": {"N": str(now)}}, []
    for number, (name, value) in enumerate(when.items()):
        names[f"#c{number}"] = name
        if value is None:
            parts.append(f"attribute_not_exists(#c{number})")
        else:
            parts.append(f"#c{number} = :c{number}")
            values[f":c{number}"] = encode_value(canonical_value(value))
    required = " AND ".join(parts)
    allows_absence = len(values) == 1
    return {
        "ConditionExpression": f"({required}) {'OR #expires <= :now' if allows_absence else f'AND ({_ALIVE})'}",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


_ALIVE = "attribute_not_exists(#expires) OR #expires > :now"


def key_condition(key_range: KeyRange) -> Json:
    """The parameters of a Query of a range; its result can have keys at both ends that are not in the range.

    BETWEEN includes its upper bound, and DynamoDB rejects a bound that is empty or longer than a key may be.
    """
    values = {":partition": key_range.partition, ":lo": _lower(key_range.lo), ":hi": _upper(key_range.hi)}
    return {
        **({"IndexName": index_name(key_range.index)} if key_range.index is not Index.TABLE else {}),
        "KeyConditionExpression": "#partition = :partition AND #sort BETWEEN :lo AND :hi",
        "ExpressionAttributeNames": {"#partition": key_range.index.partition, "#sort": key_range.index.sort},
        "ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()},
    }


def counted(query: Json, now: int) -> Json:
    """The Query that counts the items of another one that have not expired."""
    return {
        **query,
        "Select": "COUNT",
        "FilterExpression": _ALIVE,
        "ExpressionAttributeNames": {**query["ExpressionAttributeNames"], "#expires": "expires"},
        "ExpressionAttributeValues": {**query["ExpressionAttributeValues"], ":now": {"N": str(now)}},
    }


def may_be_key(bound: str) -> bool:
    """Whether an item can have a bound as its key; those of `just_after` and `prefix_end` are no keys."""
    return bound == "!" or bound[-1] not in "!$"


def _lower(lo: str) -> str:
    return _cut(lo) or "\0"


def _upper(hi: str) -> str:
    """`hi`, or, if it is too long, its prefix padded with the highest character that fits; loses no key below `hi`."""
    cut = _cut(hi)
    return cut if cut == hi else cut + ("", "\x7f", "\u07ff", "\uffff")[MAX_SORT_KEY_BYTES - len(cut.encode())]


def _cut(bound: str) -> str:
    return bound.encode()[:MAX_SORT_KEY_BYTES].decode(errors="ignore")
