"""Pages of a Query or a Scan: their rows, cut to the range that was asked for, and what they cost."""

import math
import time
from collections.abc import Sequence
from typing import TypeVar, cast

from store.dynamodb import codec
from store.dynamodb.node_codec import NodeAnswer
from store.model.items import Item, size_of
from store.model.ranges import KeyRange
from store.model.records import Record

Row = TypeVar("Row", Item, Record)


def alive(items: list[Item]) -> list[Item]:
    """Those that have not expired; DynamoDB takes up to days to remove what has."""
    now = time.time()
    return [item for item in items if item.get("expires", math.inf) > now]  # type: ignore[operator]


def items_of(page: codec.Answer) -> list[Item]:
    return alive([codec.decode(item) for item in page["Items"]])


def records_of(page: codec.Answer) -> list[Record]:
    """Nodes, which a parser of nodes or, where it had to give up, the ordinary one has read."""
    nodes = cast(NodeAnswer, page).get("Nodes")
    return [Record.of(item) for item in items_of(page)] if nodes is None else nodes


def row_size(row: Item | Record) -> int:
    return size_of(row.item() if isinstance(row, Record) else row)


def _sort_key(row: Item | Record, span: KeyRange) -> str:
    name = span.index.sort
    return cast(str, getattr(row, name) if isinstance(row, Record) else row[name])


def within(span: KeyRange, found: list[Row]) -> list[Row]:
    """Those rows that lie in a span; since they are in order, the first and the last mostly tell that all do."""
    if all(span.lo <= _sort_key(row, span) < span.hi for row in found[:1] + found[-1:]):
        return found
    return [row for row in found if span.lo <= _sort_key(row, span) < span.hi]


def is_through(span: KeyRange, found: Sequence[Item | Record], reverse: bool) -> bool:
    """Whether a page reached beyond the far end of a span, so that nothing of it can follow."""
    if not found:
        return False
    last = _sort_key(found[-1], span)
    return last < span.lo if reverse else last >= span.hi


def consumed_units(answer: codec.Answer) -> float | None:
    """The read units that a call took, None where the engine does not tell."""
    told = answer.get("ConsumedCapacity") or []
    parts = told if isinstance(told, list) else [told]
    return sum(part["CapacityUnits"] for part in parts) if parts else None
