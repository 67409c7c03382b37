"""Dataloaders: what resolvers that graphql-core calls need of the store, one key at a time, is read in batches.

| loader | key | batch function |
| --- | --- | --- |
| `node` | lookup | `lookup.find_nodes` |

Plans call the batch functions without dataloaders.
"""

from collections.abc import Sequence

from aiodataloader import DataLoader

from resolvers.lists.arguments import NOTHING
from resolvers.lookup import Lookup, find_nodes
from resolvers.session.request import Request
from store.model.records import Record


class NodeLoader(DataLoader[Lookup, Record | Exception | None]):
    """The nodes of lookups, None where there is none. The request has what was read, so nothing is cached here."""

    cache = False

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    async def batch_load_fn(self, keys: Sequence[Lookup]) -> list[Record | Exception | None]:
        return await find_nodes(self._request, [(key, NOTHING) for key in keys])
