"""Node fields: those with values of a record alone. Plans write the simple ones into their generated code."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from graph.hierarchies.computed import Computed
from graph.hierarchies.node import Node
from graph.operation.list_arguments import plain
from store.errors import BadData
from store.model.attributes import Attribute, Value
from store.model.keys import decode_segment, last_segment
from store.model.paths import format_path
from store.model.records import Record


@dataclass(frozen=True)
class RecordField:
    """An attribute of the record itself."""

    name: str

    def __call__(self, record: Record, info: Any) -> Any:
        return getattr(record, self.name)


@dataclass(frozen=True)
class AttributeField:
    """An attribute of the hierarchy. Raises BadData where the stored value is not of its type."""

    attribute: Attribute

    def __call__(self, record: Record, info: Any) -> Value:
        value = self.attribute.value_in(record.attributes)
        if value is None or self.attribute.is_valid(value):
            return value
        raise BadData(f"{label(record)}: attribute {self.attribute.name} is not of its type.")


@dataclass(frozen=True, eq=False)
class ComputedField:
    """A computed field of nodes with these attributes. Raises BadData for a value of another type."""

    computed: Computed
    attributes: Mapping[str, Attribute]

    def __call__(self, record: Record, info: Any) -> Value:
        try:
            return self.computed.value(record, self.attributes)
        except BadData as error:
            raise BadData(f"{label(record)}: {error}") from None


@dataclass(frozen=True)
class Count:
    """The number of children (`kids`) or descendants (`descendant_counts`), of one level or of all."""

    counts: str

    def __call__(self, record: Record, info: Any, level_: Enum | str | None = None) -> int:
        counts: dict[str, int] = getattr(record, self.counts)
        return sum(counts.values()) if level_ is None else counts.get(plain(level_), 0)


def path(record: Record, info: Any) -> str:
    return format_path(record.path)


def key(record: Record, info: Any) -> str:
    return decode_segment(last_segment(record.pk, record.sk))


def level_of(record: Record, levels: Mapping[str, type[Node]]) -> type[Node]:
    """The class of a record's level. Raises BadData where the hierarchy has no such level."""
    try:
        return levels[record.level]
    except KeyError:
        raise BadData(f"{label(record)}: unknown level {record.level}.") from None


def label(record: Record) -> str:
    """A node in messages."""
    return f"The {record.hierarchy} {format_path(record.path)}"
