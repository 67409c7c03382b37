"""Nodes read out of an answer's bytes at once: their attributes have known names, so that no dictionary is in between.

`wire.decode` takes any item, value by value. In a list of nodes nearly all values are texts at known names, and a
structure with these names is filled in C, in half the time. Its own attributes it learns from the nodes that come.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from store.attributes import Value
from store.records import Record
from store.wire import Answer, WireValue, decode_value, parse_answer

MAX_NAMES = 100  # of a hierarchy's own attributes; where there are more, some are read one by one
_NEVER_LEARNT = frozenset({"expires"})  # what can expire goes the long way


class _Text(Struct, gc=False):
    S: str


class _Texts(Struct, gc=False):
    L: list[_Text]


class _Whole(Struct, gc=False):
    N: int


class _Counts(Struct, gc=False):
    M: dict[str, _Whole]


# The keys of the other orders can be made of these, so they are passed over.
_NODE: dict[str, Any] = {
    "pk": _Text, "sk": _Text, "rank": _Text, "id": _Text, "level": _Text, "name": _Text, "updated_at": _Text,
    "above": _Texts, "kids": _Counts, "below": _Counts, "revision": _Whole,
    "parent": msgspec.Raw, "tier": msgspec.Raw,
}  # fmt: skip
_CHANGED_BY = ("changed_by", _Text | None, None)
_KNOWN = frozenset({*_NODE, "changed_by"})
_BESIDE = ("LastEvaluatedKey", "ConsumedCapacity")  # what else is read of such an answer


class NodeAnswer(Answer, total=False):
    """An answer that has `Nodes` in the place of items."""

    Nodes: list[Record]


class NodeParser:
    """Reads the answers that hold nodes of one hierarchy."""

    def __init__(self) -> None:
        self._learn([])

    def parse(self, body: bytes) -> Answer:
        """An answer with `Nodes` where all its items are nodes and have no new attribute, else as `parse_answer` does.

        Raises msgspec.DecodeError where it is no answer.
        """
        try:
            page = self._decode(body)
        except msgspec.ValidationError:
            told = parse_answer(body)
            names = set(filter(str.isidentifier, {*self._names}.union(*told.get("Items", ())) - _KNOWN - _NEVER_LEARNT))
            if len(self._names) < len(names) <= MAX_NAMES:
                self._learn(sorted(names))
            return told
        answer = NodeAnswer(Nodes=[self._record(node) for node in page.Items], ConsumedCapacity=page.ConsumedCapacity)
        if page.LastEvaluatedKey is not None:
            answer["LastEvaluatedKey"] = page.LastEvaluatedKey
        return answer

    def _learn(self, names: list[str]) -> None:
        """Make the structure that has these as own attributes."""
        fields = {f"own{number}": name for number, name in enumerate(names)}
        node = msgspec.defstruct(
            "Node", [*_NODE.items(), _CHANGED_BY, *[(field, WireValue | None, None) for field in fields]],
            rename=fields, forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        beside = [(name, Any, None) for name in _BESIDE]
        page = msgspec.defstruct("Page", [("Items", list[node]), *beside])  # type: ignore[valid-type]
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(
            page, strict=False
        ).decode  # since numbers are texts in the wire
        self._names = names
        self._own = attrgetter(*fields, "pk", "pk")  # a getter of fewer than two would bring no tuple

    def _record(self, node: Any) -> Record:
        attributes: dict[str, Value] = {
            name: value.S if value.S is not None else decode_value(value)
            for name, value in zip(self._names, self._own(node), strict=False)
            if value is not None
        }
        return Record(
            pk=node.pk.S, sk=node.sk.S, rank=node.rank.S, id=node.id.S, level=node.level.S, name=node.name.S,
            above=[one.S for one in node.above.L], kids=_counts(node.kids), below=_counts(node.below),
            revision=node.revision.N, updated_at=node.updated_at.S, attributes=attributes,
            changed_by=node.changed_by.S if node.changed_by is not None else None,
        )  # fmt: skip


def _counts(told: _Counts) -> dict[str, int]:
    return {level: count.N for level, count in told.M.items()} if told.M else {}
