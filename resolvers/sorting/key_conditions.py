"""Key conditions: conditions on the key or the path of nodes, which are exact and in the order of the tree.

Each is the spans of the texts that meet it: of a key `Omaha#`, of a path `US#NE#Omaha#`, encoded as in the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from store.errors import BadInput, BadPath
from store.model.keys import MAX_SORT_KEY_BYTES, encode_segment, just_after, last_segment, prefix_end
from store.model.paths import checked_segment, parse_path
from store.model.records import Record
from store.model.spans import Span, Spans, contains, prefix_span, union


@dataclass(frozen=True)
class KeyComparison:
    """A condition on `key` or `path`: the spans of the encoded texts that meet it."""

    name: str
    spans: Spans

    @classmethod
    def of(cls, name: str, operator: str, operand: Any) -> Self:
        """The condition of one operator of the schema. Raises BadInput for a text that no key or path can be."""
        if operator == "in":
            return cls(name, union(*[cls.of(name, "eq", one).spans for one in operand]))
        if name == "key" and operator == "startsWith":
            return cls(name, (prefix_span(_encoded(operand)) if operand else ("", None),))
        first, end = _key_span(operand) if name == "key" else _path_span(operand, operator)
        match operator:
            case "lt":
                span: Span = ("", first)
            case "lte":
                span = ("", end)
            case "gt":
                span = (end, None)
            case "gte":
                span = (first, None)
            case _:
                span = (first, end)
        return cls(name, (span,))

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        return self.name, self.spans

    @cached_property
    def test(self) -> Callable[[Record], bool]:
        """Whether a node meets it."""
        position, spans = (key_position if self.name == "key" else path_position), self.spans
        return lambda record: contains(spans, position(record))


def key_position(record: Record) -> str:
    """The key of a node as it compares: `Omaha#`."""
    return last_segment(record.pk, record.sk) + "#"


def path_position(record: Record) -> str:
    """The path of a node as it compares: `US#NE#Omaha#`."""
    return record.pk[record.pk.index("#") + 1 :] + record.sk


def _key_span(key: str) -> tuple[str, str]:
    """The span of one key, and of everything below it."""
    encoded = _encoded(key)
    return encoded + "#", encoded + "$"


def _path_span(path: str, operator: str) -> tuple[str, str]:
    """The span of one path, with what is below it for `startsWith`."""
    try:
        whole = "".join([encode_segment(segment) + "#" for segment in parse_path(path)])
    except BadPath as error:
        raise BadInput(f"path in where: {error}") from None
    return whole, prefix_end(whole) if operator == "startsWith" else just_after(whole)


def _encoded(key: str) -> str:
    if not key:
        raise BadInput("A key in where is empty, and no key is; omit it.")
    try:
        encoded = encode_segment(checked_segment(key))
    except BadPath as error:
        raise BadInput(f"key in where: {error}") from None
    if (size := len(encoded.encode())) > MAX_SORT_KEY_BYTES:
        raise BadInput(f"A key in where takes {size:,} bytes, and no key has more than {MAX_SORT_KEY_BYTES:,}; cut it.")
    return encoded
