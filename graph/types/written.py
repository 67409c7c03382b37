"""Written nodes: a node as a mutation left it, whose relations are those of the node that has its id now."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import asdict

from resolvers.lists.arguments import NOTHING, Page
from store.model.records import Record

GONE = Page([], total=0)
"""The list of a node that is gone."""


class WrittenRecord(Record, frozen=True, kw_only=True, dict=True):
    """A node that may be elsewhere by now, or gone; where it `is_gone`, that is known."""

    is_gone: bool = False

    @classmethod
    def left(cls, record: Record, *, is_gone: bool = False) -> "WrittenRecord":
        """The node as it was left."""
        return cls(**asdict(record), is_gone=is_gone)


def of_present(resolve: Callable[..., Any], absent: Any) -> Callable[..., Any]:
    """The resolver of a relation, which of a written node goes by where its id is now; `absent` where that is gone, or
    hidden.
    """

    def relation(record: Record, info: Any, **given: Any) -> Any:
        if isinstance(record, WrittenRecord):
            return of_written(record, info, **given)
        return resolve(record, info, **given)

    async def of_written(record: WrittenRecord, info: Any, **given: Any) -> Any:
        found = await present(record, info)
        result = absent if found is None else resolve(found, info, **given)
        return await result if isinstance(result, Awaitable) else result

    return relation


async def present(record: WrittenRecord, info: Any) -> Record | None:
    """The node that has the id of this one now, None where it is gone or hidden."""
    if record.is_gone:
        return None
    found: Record | None = await info.context.loaders.node.load(((record.hierarchy, record.id), NOTHING))
    return found
