"""Tree versions of some partitions, read in one strongly consistent request."""

from collections.abc import Sequence

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.keys import tree_version_key


async def tree_versions(store: Store, partitions: Sequence[str], reads: ReadUsage) -> list[TreeVersion]:
    """The versions of trees (`location#US`), or of the roots of a hierarchy (`location`), in the order given."""
    items = await store.get([tree_version_key(partition) for partition in partitions], reads, strong=True)
    return [TreeVersion.of(partition, item) for partition, item in zip(partitions, items, strict=True)]


async def tree_version(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    """The version of one tree, or of the roots of a hierarchy."""
    (version,) = await tree_versions(store, [partition], reads)
    return version
