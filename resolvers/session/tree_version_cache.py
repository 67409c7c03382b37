"""Tree version cache: the last version of each tree that this process has seen, and what these versions prove.

Everything that is cached of a tree is cached with a *proof*: a value that stands for one number of the tree's version.
A request that reads this number again, strongly consistent, may use it without another read, since every transaction on
a tree increments the number. DynamoDB's indexes lag behind its table, so only a *settled* number has a proof: one that
was first seen at least the settle time before the reads of a request began, without a move running in the tree. Then no
change was still on its way into an index. Data that was read while the number changed is cached under the old number,
which no later read returns.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from store.cache import BoundedCache
from store.metadata.tree_version import TreeVersion

PROOF_SECONDS = 60.0  # after which a proof is renewed, in case an index has lagged for longer than the settle time
MAX_TREES = 20_000
TREE_BYTES = 1_000  # of memory for each of them


@dataclass(slots=True)
class _Seen:
    """A version, when its number was first seen, when its latest read began, and its proof with the time of it."""

    version: TreeVersion
    first_seen: float
    read_at: float
    proof: object
    proof_since: float


class TreeVersionCache:
    """The versions by partition: of trees (`location#US`), and of the roots of hierarchies (`location`).

    `settle_seconds` is how long indexes may lag behind the table. A version that was read at most `max_stale_seconds`
    ago may be taken for current by queries. `clock` gives seconds.
    """

    def __init__(
        self,
        settle_seconds: float = 2.0,
        max_stale_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_stale_seconds = max_stale_seconds
        self.clock = clock
        self._settle_seconds = settle_seconds
        self._seen: BoundedCache[str, _Seen] = BoundedCache("tree_versions", MAX_TREES, bytes_each=TREE_BYTES)

    def see(self, version: TreeVersion, read_at: float) -> None:
        """Remember a version that was read, strongly consistent, by a read that began at `read_at`."""
        seen = self._seen.get(version.partition)
        if seen is None or version.number != seen.version.number:
            # Of two reads side by side the older one may end last; after a restore of the table numbers are lower.
            if seen is None or version.number > seen.version.number or read_at > seen.first_seen:
                now = self.clock()
                self._seen.put(version.partition, _Seen(version, now, read_at, object(), now))
        elif read_at > seen.read_at:
            seen.version, seen.read_at = version, read_at

    def latest(self, partition: str) -> TreeVersion | None:
        """The version that was seen last; it may be outdated."""
        seen = self._seen.get(partition)
        return None if seen is None else seen.version

    def fresh(self, partition: str) -> TreeVersion | None:
        """The version that was seen last, if it is so new that a query may take it for current."""
        if not self.max_stale_seconds:
            return None
        seen = self._seen.get(partition)
        return None if seen is None or self.clock() - seen.read_at > self.max_stale_seconds else seen.version

    def proof(self, version: TreeVersion, began: float) -> object | None:
        """The proof of what is read of a tree at this version since `began`; None unless it is settled."""
        seen = self._seen.get(version.partition)
        if seen is None or seen.version.number != version.number or version.moves:
            return None
        if began - seen.first_seen < self._settle_seconds:
            return None
        if began - seen.proof_since >= PROOF_SECONDS:
            seen.proof, seen.proof_since = object(), began
        return seen.proof

    def last_proof(self, partition: str) -> object | None:
        """The proof of the version that was seen last, if it still is that of the tree."""
        seen = self._seen.get(partition)
        return None if seen is None else seen.proof
