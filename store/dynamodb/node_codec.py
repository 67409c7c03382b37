"""Node codec: records parsed from the bytes of a response, without a dictionary in between.

`codec.decode` decodes any item, value by value. In a list of nodes nearly all values are texts of attributes with known
names, and structures with these names are filled in C, in one pass over the response, in a third of the time. The names
of a level's own attributes are learnt from the nodes of responses.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from store.dynamodb.codec import Answer, WireItem, WireValue, canonical_number, decode_value, parse_answer
from store.model.attributes import Value
from store.model.items import INT64_BOUND
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


class _Passed(Struct, gc=False):
    """A value that is not decoded, such as the keys of indexes, which follow from the other attributes."""


_NODE: dict[str, Any] = {
    "pk": _Text, "sk": _Text, "rank": _Text, "id": _Text, "level": _Text, "name": _Text, "updated_at": _Text,
    "above": _Texts, "kids": _Counts, "revision": _Whole, "parent": _Passed, "tier": _Passed,
}  # fmt: skip
_SOMETIMES: dict[str, Any] = {"below": _Counts | None, "changed_by": _Text | None, "came_by": _Text | None}
_KNOWN = frozenset({*_NODE, *_SOMETIMES})
_BESIDE = ("LastEvaluatedKey", "ConsumedCapacity")  # other members of a response that are parsed


class _Own(Struct, gc=False, forbid_unknown_fields=True):
    """A value of an own attribute, as Clade writes it: not a set, nor bytes."""

    S: str | None = None
    N: int | float | None = None
    BOOL: bool | None = None
    M: WireItem | None = None
    L: list[WireValue] | None = None


class _Names(Struct, gc=False):
    Items: list[dict[str, _Passed]] = []


_decode_names = msgspec.json.Decoder(_Names).decode


class NodeAnswer(Answer, total=False):
    """A response with `Nodes` in the place of `Items`."""

    Nodes: list[Record]


class NodeParser:
    """Parser of responses with nodes of one hierarchy; with `keep` records are to be cached."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._learn([])

    def parse(self, body: bytes) -> Answer:
        """A response with `Nodes` where all items are nodes as Clade writes them, else as `parse_answer` does.

        Raises one of `INVALID_BODY` for an invalid response.
        """
        for attempt in range(2):
            try:
                return self._parse(body)
            except msgspec.ValidationError:
                if attempt or not self._learn_from(body):
                    break
        return parse_answer(body)

    def _parse(self, body: bytes) -> NodeAnswer:
        page = self._decode(body)
        nodes = list(map(self._record, page.Items))
        answer = NodeAnswer(Nodes=nodes, ConsumedCapacity=page.ConsumedCapacity)
        if page.LastEvaluatedKey is not None:
            answer["LastEvaluatedKey"] = page.LastEvaluatedKey
        return answer

    def _learn_from(self, body: bytes) -> bool:
        """Learn the names of the own attributes in a response; whether there are new ones."""
        found = {*self._names}.union(*_decode_names(body).Items) - _KNOWN - _NEVER_LEARNT
        names = sorted(filter(str.isidentifier, found))
        if is_new := len(self._names) < len(names) <= MAX_NAMES:
            self._learn(names)
        return is_new

    def _learn(self, names: list[str]) -> None:
        """Build the structures with these own attributes."""
        fields = {f"own{number}": name for number, name in enumerate(names)}
        optional = {**_SOMETIMES, **dict.fromkeys(fields, _Own | None)}
        node: Any = msgspec.defstruct(
            "Node", [*_NODE.items(), *[(one, kind, None) for one, kind in optional.items()]], rename=fields,
            forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        page = msgspec.defstruct("Page", [("Items", list[node]), *[(one, Any, None) for one in _BESIDE]])
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(page, strict=False).decode
        self._names = names
        self._own = attrgetter(*fields, "pk", "pk")  # a getter of fewer than two would return no tuple

    def _record(self, node: Any) -> Record:
        below, is_root = node.below, node.sk.S == "#"
        if below is None and not is_root:
            raise msgspec.ValidationError("a node has no `below`")
        attributes: dict[str, Value] = {
            name: value.S if value.S is not None else _decode(value)
            for name, value in zip(self._names, self._own(node), strict=False)
            if value is not None
        }
        record = Record(
            pk=node.pk.S, sk=node.sk.S, rank=node.rank.S, id=node.id.S, level=node.level.S, name=node.name.S,
            above=[one.S for one in node.above.L], kids=_counts(node.kids), below=None if is_root else _counts(below),
            revision=node.revision.N, updated_at=node.updated_at.S, attributes=attributes,
            changed_by=None if node.changed_by is None else node.changed_by.S,
            came_by="" if node.came_by is None else node.came_by.S,
        )  # fmt: skip
        return record.with_fragments() if self._keep else record


def _counts(sent: _Counts) -> dict[str, int]:
    return {level: count.N for level, count in sent.M.items()} if sent.M else {}


def _decode(value: _Own) -> Value:
    """A value that is no text."""
    number = value.N
    if number is not None:
        return number if type(number) is int and -INT64_BOUND <= number < INT64_BOUND else canonical_number(number)
    return value.BOOL if value.BOOL is not None else decode_value(WireValue(M=value.M, L=value.L))
