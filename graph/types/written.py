"""Written nodes: a node as a mutation left it, whose relations are those of the node that has its id now."""

from typing import Any

from msgspec.structs import asdict

from resolvers.lookup import ById
from store.model.records import Record


class WrittenRecord(Record, frozen=True, kw_only=True, dict=True):
    """A node that may be elsewhere by now, or gone; where it `is_gone`, that is known."""

    is_gone: bool = False

    @classmethod
    def left(cls, record: Record, *, is_gone: bool = False) -> "WrittenRecord":
        """The node as it was left."""
        return cls(**asdict(record), is_gone=is_gone)


async def present(record: WrittenRecord, info: Any) -> Record | None:
    """The node that has the id of this one now, None where it is gone or hidden. Raises the error of a failed read."""
    if record.is_gone:
        return None
    found: Record | None = await info.context.nodes.load(ById(record.hierarchy, record.id))
    return found
