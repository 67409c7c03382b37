"""Missing history: the number of earlier revisions of nodes that have no item, for many nodes at once."""

from collections import Counter
from collections.abc import Mapping

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import revisions
from store.model.keys import Key, revision_key
from store.reading.pages import PAGE_ITEMS

MAX_READ_REVISIONS = 100  # of a node; more are counted in a request of their own


async def missing_revisions(store: Store, last: Mapping[str, int], reads: ReadUsage) -> Counter[str]:
    """The number of missing revisions by id of node, for nodes that must have those from 1 to `last`."""
    missing: Counter[str] = Counter()
    node_ids: dict[Key, str] = {}
    for node_id, number in last.items():
        if number > MAX_READ_REVISIONS:
            missing[node_id] = number - await store.count(revisions(node_id, number + 1), reads)
        else:
            node_ids.update({revision_key(node_id, revision): node_id for revision in range(1, number + 1)})
    async for keys in in_chunks(list(node_ids), PAGE_ITEMS):
        for key, item in zip(keys, await store.get(keys, reads, strong=True), strict=True):
            missing[node_ids[key]] += item is None
    return +missing
