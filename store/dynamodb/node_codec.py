"""Nodes read out of an answer's bytes at once: their attributes have known names, so that no dictionary is in between.

`wire.decode` takes any item, value by value. In a list of nodes nearly all values are texts at known names, and a
structure with these names is filled in C, in half the time. Its own attributes it learns from the nodes that come.

An answer is taken apart first, its values left as they were sent, and each node put together again with its attributes
in one order, since they come in any. What that says was most often decoded before
(`store/engine/record_cache.py`), and if not, it is decoded now.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from store.dynamodb.codec import (
    Answer,
    WireValue,
    decode_value,
    parse_answer,
)
from store.engine.record_cache import RecordCache
from store.model.attributes import Value
from store.model.records import Record

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


class _SentCounts(Struct, gc=False):
    M: dict[str, Raw]  # which comes in any order too


class _Passed(Struct, gc=False):
    """A key of another order, which can be made of the rest."""


_NODE: dict[str, Any] = {
    "pk": _Text, "sk": _Text, "rank": _Text, "id": _Text, "level": _Text, "name": _Text, "updated_at": _Text,
    "above": _Texts, "kids": _Counts, "below": _Counts, "revision": _Whole, "parent": _Passed, "tier": _Passed,
}  # fmt: skip
_SENT: dict[str, Any] = {
    **dict.fromkeys(_NODE, Raw), "kids": _SentCounts, "below": _SentCounts, "parent": _Passed, "tier": _Passed,
}  # fmt: skip
_KNOWN = frozenset({*_NODE, "changed_by"})
_ABSENT = Raw()
_ENCODE = msgspec.json.Encoder(order="deterministic").encode
_BESIDE = ("LastEvaluatedKey", "ConsumedCapacity")  # what else is read of such an answer


class NodeAnswer(Answer, total=False):
    """An answer that has `Nodes` in the place of items."""

    Nodes: list[Record]


class NodeParser:
    """Reads the answers that hold nodes of one hierarchy."""

    def __init__(self, decoded: RecordCache) -> None:
        """`decoded` has what was decoded before, of this hierarchy or others."""
        self._decoded = decoded
        self._learn([])

    def parse(self, body: bytes) -> Answer:
        """An answer with `Nodes` where all its items are nodes and have no new attribute, else as `parse_answer` does.

        Raises msgspec.DecodeError where it is no answer.
        """
        try:
            page = self._split(body)
            nodes = self._decoded.records(map(_ENCODE, page.Items), self._record)
        except msgspec.ValidationError:
            told = parse_answer(body)
            names = set(filter(str.isidentifier, {*self._names}.union(*told.get("Items", ())) - _KNOWN - _NEVER_LEARNT))
            if len(self._names) < len(names) <= MAX_NAMES:
                self._learn(sorted(names))
            return told
        answer = NodeAnswer(Nodes=nodes, ConsumedCapacity=page.ConsumedCapacity)
        if page.LastEvaluatedKey is not None:
            answer["LastEvaluatedKey"] = page.LastEvaluatedKey
        return answer

    def _learn(self, names: list[str]) -> None:
        """Make the structures that have these as own attributes."""
        fields = {f"own{number}": name for number, name in enumerate(names)}
        node = [*_NODE.items(), ("changed_by", _Text | None, None), *[(one, WireValue | None, None) for one in fields]]
        self._decode = _decoder(_structure("Node", node, fields))
        sent = [*_SENT.items(), *[(one, Raw, _ABSENT) for one in ("changed_by", *fields)]]
        items: Any = list[_structure("Sent", sent, fields)]  # type: ignore[misc]
        self._split = _decoder(msgspec.defstruct("Page", [("Items", items), *[(one, Any, None) for one in _BESIDE]]))
        self._names = names
        self._own = attrgetter(*fields, "pk", "pk")  # a getter of fewer than two would bring no tuple

    def _record(self, content: bytes) -> Record:
        node = self._decode(content)
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


def _structure(name: str, fields: list[Any], names: dict[str, str]) -> Any:
    """A structure of these fields, some of which have other `names` in the wire, and of no others."""
    return msgspec.defstruct(name, fields, rename=names, forbid_unknown_fields=True, omit_defaults=True, gc=False)


def _decoder(structure: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(structure, strict=False).decode  # since numbers are texts in the wire
