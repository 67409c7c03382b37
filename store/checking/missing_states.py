"""Former states of nodes that must be in the table, looked up for many nodes at once."""

from collections import Counter
from collections.abc import Mapping

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import revisions
from store.model.keys import Key, revision_key

PAGE_ITEMS = 1000
MOST_STATES = 100  # of a node that are looked up together with others'; more are counted


async def missing_states(store: Store, last: Mapping[str, int], reads: ReadUsage) -> Counter[str]:
    """How many states are missing of these nodes, by their ids, which have all from the first to this last one."""
    missing: Counter[str] = Counter()
    keys: dict[Key, str] = {}
    for node_id, number in last.items():
        if number > MOST_STATES:
            missing[node_id] = number - await store.count(revisions(node_id, number + 1), reads)
        else:
            keys.update({revision_key(node_id, one): node_id for one in range(1, number + 1)})
    wanted = list(keys)
    for start in range(0, len(wanted), PAGE_ITEMS):
        some = wanted[start : start + PAGE_ITEMS]
        for key, item in zip(some, await store.get(some, reads, strong=True), strict=True):
            missing[keys[key]] += item is None
    return +missing
