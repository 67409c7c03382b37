"""DynamoDB JSON: encoding and decoding of items, conditions and key ranges; nodes from the bytes of a response.

`decode` decodes any item, value by value. In a list of nodes nearly all values are texts of attributes with known
names, and a structure with these names is filled in C, in half the time (`NodeParser`). The names of a level's own
attributes are learnt from the nodes of responses.

The response to a range that was read before is first split into its nodes, their values left as JSON, and each node is
written again with its attributes in one order, since they come in any. These bytes are the key in the record cache
(`store/engine.py`).
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypedDict, cast

import msgspec
import orjson
from msgspec import Raw, Struct

from store.engine import RecordCache
from store.model.attributes import Value
from store.model.keys import MAX_SORT_KEY_BYTES, Index, Key, KeyRange, index_name
from store.model.names import NAMES
from store.model.records import Condition, Item, Record, canonical_value
from store.model.values import INT64_BOUND

Json = dict[str, Any]


class WireValue(Struct, gc=False, omit_defaults=True):
    """A value of a response: one attribute is set. It is encoded as it was.

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
    NULL: bool | None = None


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
        return _number(value.N)
    if value.M is not None:
        return decode(value.M) if value.M else {}
    if value.L is not None:
        return [one.S if one.S is not None else decode_value(one) for one in value.L]
    if value.NS is not None:
        return [_number(one) for one in value.NS]
    return cast(Value, next((one for one in (value.BOOL, value.SS, value.B, value.BS) if one is not None), None))


def _number(text: str) -> int | float:
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


# -- nodes -------------------------------------------------------------------------------------------------------------

MAX_NAMES = 100  # of own attributes in a hierarchy; pages with more are decoded item by item
_NEVER_LEARNT = frozenset({"expires"})  # items that can expire are decoded by `decode`


class _Text(Struct, gc=False):
    S: str


class _Texts(Struct, gc=False):
    L: list[_Text]


class _Whole(Struct, gc=False):
    N: int


class _Counts(Struct, gc=False):
    M: dict[str, _Whole]


class _SentMap(Struct, gc=False):
    M: dict[str, Raw]  # its members too come in any order


class _Passed(Struct, gc=False):
    """A key of an index, which follows from the other attributes."""


_NODE: dict[str, Any] = {
    "pk": _Text, "sk": _Text, "rank": _Text, "id": _Text, "level": _Text, "name": _Text, "updated_at": _Text,
    "above": _Texts, "kids": _Counts, "revision": _Whole, "parent": _Passed, "tier": _Passed,
}  # fmt: skip
_SENT: dict[str, Any] = {
    **dict.fromkeys(_NODE, Raw), "kids": _SentMap, "parent": _Passed, "tier": _Passed,
}  # fmt: skip
_KNOWN = frozenset({*_NODE, "below", "changed_by"})
_ABSENT = Raw()
_ENCODE = msgspec.json.Encoder(order="deterministic").encode
_BESIDE = ("LastEvaluatedKey", "ConsumedCapacity")  # other members of a response that are parsed


class NodeAnswer(Answer, total=False):
    """A response with `Nodes` in the place of `Items`."""

    Nodes: list[Record]


class NodeParser:
    """Parser of responses with nodes of one hierarchy."""

    def __init__(self, decoded: RecordCache) -> None:
        """`decoded` is the cache of records, of all hierarchies."""
        self._decoded = decoded
        self._learn([])

    def parse(self, body: bytes, *, again: bool) -> Answer:
        """A response with `Nodes` where all items are nodes and have no unknown attribute, else as `parse_answer` does.

        The records of a range that is read `again` are cached. Raises one of `INVALID_BODY` for an invalid response.
        """
        try:
            if again:
                page = self._split(body)
                nodes = self._decoded.records(map(_ENCODE, page.Items), self._decode)
            else:
                page = self._page(body)
                nodes = list(map(self._record, page.Items))
        except msgspec.ValidationError:
            answer = parse_answer(body)
            names = set(
                filter(str.isidentifier, {*self._names}.union(*answer.get("Items", ())) - _KNOWN - _NEVER_LEARNT)
            )
            if len(self._names) < len(names) <= MAX_NAMES:
                self._learn(sorted(names))
            return answer
        answer = NodeAnswer(Nodes=nodes, ConsumedCapacity=page.ConsumedCapacity)
        if page.LastEvaluatedKey is not None:
            answer["LastEvaluatedKey"] = page.LastEvaluatedKey
        return answer

    def _learn(self, names: list[str]) -> None:
        """Build the structures with these own attributes."""
        fields = {f"own{number}": name for number, name in enumerate(names)}
        node = [
            *_NODE.items(), ("below", _Counts | None, None), ("changed_by", _Text | None, None),
            *[(one, WireValue | None, None) for one in fields],
        ]  # fmt: skip
        kind = _structure("Node", node, fields)
        self._content, self._page = _decoder(kind), _page_decoder(kind)
        sent = [
            *_SENT.items(), ("below", _SentMap | None, None),
            *[(one, _SentMap if fields.get(one) == NAMES else Raw, _ABSENT) for one in ("changed_by", *fields)],
        ]  # fmt: skip
        self._split = _page_decoder(_structure("Sent", sent, fields))
        self._names = names
        self._own = attrgetter(*fields, "pk", "pk")  # a getter of fewer than two would return no tuple

    def _decode(self, content: bytes) -> Record:
        return self._record(self._content(content))

    def _record(self, node: Any) -> Record:
        if node.sk.S == "#":
            below = None
        elif node.below is None:
            raise msgspec.ValidationError("a node has no `below`")
        else:
            below = _counts(node.below)
        attributes: dict[str, Value] = {
            name: value.S if value.S is not None else decode_value(value) if value.N is None else _number(value.N)
            for name, value in zip(self._names, self._own(node), strict=False)
            if value is not None
        }
        return Record(
            pk=node.pk.S, sk=node.sk.S, rank=node.rank.S, id=node.id.S, level=node.level.S, name=node.name.S,
            above=[one.S for one in node.above.L], kids=_counts(node.kids), below=below,
            revision=node.revision.N, updated_at=node.updated_at.S, attributes=attributes,
            changed_by=node.changed_by.S if node.changed_by is not None else None,
        )  # fmt: skip


def _counts(sent: _Counts) -> dict[str, int]:
    return {level: count.N for level, count in sent.M.items()} if sent.M else {}


def _structure(name: str, fields: list[Any], names: dict[str, str]) -> Any:
    """A structure of these fields and no others; `names` are those in JSON where they differ."""
    return msgspec.defstruct(name, fields, rename=names, forbid_unknown_fields=True, omit_defaults=True, gc=False)


def _page_decoder(structure: Any) -> Callable[[bytes], Any]:
    """The decoder of a page with such items."""
    items: Any = list[structure]
    return _decoder(msgspec.defstruct("Page", [("Items", items), *[(one, Any, None) for one in _BESIDE]]))


def _decoder(structure: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(structure, strict=False).decode  # since DynamoDB JSON has numbers as texts
