"""Reading fields: the fields of objects that read. Each names the batch function that reads it for all objects of a
level of the response at once, and what is known of it before.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolvers.ancestors import read_ancestors
from resolvers.history import read_histories, read_revisions
from resolvers.lists.arguments import Page, RelationKind
from resolvers.pages import read_lists
from resolvers.session.request import Request

GONE = Page([], total=0)
"""The list of a node that is gone."""

Read = Callable[[Request, Sequence[tuple[Any, Sequence[Any]]]], Awaitable[Sequence[Any]]]
"""Takes arguments, each with the objects of which the field is asked with them. Returns for one after another a page, a
list of what it leads to, which of a field that is no list is one or none, or the error in its place.
"""


@dataclass(frozen=True, eq=False)
class ReadingField:
    """The resolver of a field that reads, asked with the `Relation` of this kind, or with what `bind` makes of its
    arguments in the query.

    `owner` gives the record of an object
    that is none. `absent` is what it is of a node that is gone, None for a field that goes by the record alone.
    """

    read: Read
    kind: RelationKind | None = None
    bind: Callable[[Mapping[str, Any]], Any] | None = None
    owner: Callable[[Any], Any] | None = None
    absent: Any = None

    @property
    def leads_to_nodes(self) -> bool:
        return self.kind is not None and self.kind is not RelationKind.REVISIONS


CHILDREN = ReadingField(read_lists, RelationKind.CHILDREN, absent=GONE)
DESCENDANTS = ReadingField(read_lists, RelationKind.DESCENDANTS, absent=GONE)
PARENT = ReadingField(read_ancestors, RelationKind.PARENT, absent=())
ANCESTORS = ReadingField(read_ancestors, RelationKind.ANCESTORS, absent=())


HISTORY = ReadingField(read_histories, RelationKind.REVISIONS)
AT_REVISION = ReadingField(read_revisions, bind=lambda given: given["n"])


async def read_owners(request: Request, asked: Sequence[tuple[Any, Sequence[Any]]]) -> list[list[Any]]:
    """The records themselves, of which nothing has to be read."""
    return [[record] for _, records in asked for record in records]
