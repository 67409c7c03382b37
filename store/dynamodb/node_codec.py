"""Node codec: records parsed from the bytes of a response, without a dictionary in between.

`codec.decode` decodes any item, value by value. In a list of nodes nearly all values are texts of attributes with known
names, and a structure with these names is filled in C, in half the time. The names of a level's own attributes are
learnt from the nodes of responses.

A response is first split into its nodes, their values left as JSON, and each node is written again with its attributes
in one order, since they come in any. These bytes are the key in the record cache (`store/engine.py`).
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from store.dynamodb.codec import Answer, WireValue, decode_value, parse_answer
from store.engine import RecordCache
from store.model.attributes import Value
from store.model.names import NAMES
from store.model.records import Record

MAX_NAMES = 100  # of own attributes in a hierarchy; pages with more are decoded item by item
_NEVER_LEARNT = frozenset({"expires"})  # items that can expire are decoded by `codec.decode`


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

    def parse(self, body: bytes) -> Answer:
        """A response with `Nodes` where all items are nodes and have no unknown attribute, else as `parse_answer` does.

        Raises one of `INVALID_BODY` for an invalid response.
        """
        try:
            page = self._split(body)
            nodes = self._decoded.records(map(_ENCODE, page.Items), self._record)
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
        self._decode = _decoder(_structure("Node", node, fields))
        sent = [
            *_SENT.items(), ("below", _SentMap | None, None),
            *[(one, _SentMap if fields.get(one) == NAMES else Raw, _ABSENT) for one in ("changed_by", *fields)],
        ]  # fmt: skip
        items: Any = list[_structure("Sent", sent, fields)]  # type: ignore[misc]
        self._split = _decoder(msgspec.defstruct("Page", [("Items", items), *[(one, Any, None) for one in _BESIDE]]))
        self._names = names
        self._own = attrgetter(*fields, "pk", "pk")  # a getter of fewer than two would return no tuple

    def _record(self, content: bytes) -> Record:
        node = self._decode(content)
        if node.sk.S == "#":
            below = None
        elif node.below is None:
            raise msgspec.ValidationError("a node has no `below`")
        else:
            below = _counts(node.below)
        attributes: dict[str, Value] = {
            name: value.S if value.S is not None else decode_value(value)
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


def _decoder(structure: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(structure, strict=False).decode  # since DynamoDB JSON has numbers as texts
