"""Proven pages: the part of the page cache that one request may use, and the proofs under which it does.

On SQLite the version of the store is the proof for everything. On DynamoDB each tree whose version the request has read
has a proof of its own, once that version is settled; without one, nothing of the tree is taken from the cache or added.
"""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, cast

from resolvers.session.page_cache import PageCache
from store.engine import ReadUsage
from store.metadata.tree_version import TreeVersion

Proofs = dict[str | None, object]  # by partition: a tree or the roots of a hierarchy; that of the whole store by None


class ProvenPages:
    """The pages of `page_cache` that are proven at `store_version`, or by the tree versions that are used from now on.

    `has_lookups` is whether results of lookups are among them: not where running moves or grants hide nodes.
    """

    def __init__(self, page_cache: PageCache, store_version: object, usage: ReadUsage) -> None:
        self._usage = usage
        self._cache, self._versions = page_cache, page_cache.tree_versions
        self._store_version = store_version
        self._began = self._versions.clock()
        self._proofs: Proofs = {}
        self.has_lookups = True

    def proof(self, partition: str | None) -> object | None:
        """The proof for what is read of a partition; None if nothing may be cached of it.

        None for `partition` stands for several, which only the version of the whole store proves.
        """
        return self._proofs.get(partition) if self._store_version is None else self._store_version

    def get(self, partition: str | None, key: Hashable) -> Any:
        """The page at a key, if nothing was written to its partition since it was read; else None."""
        proof = self._proofs.get(partition) if self._store_version is None else self._store_version
        return None if proof is None else self._cache.page(key, proof)

    def put(self, partition: str | None, key: Hashable, page: Any, records: int = 1) -> None:
        """Cache a page of so many records, if it is proven."""
        if (proof := self.proof(partition)) is not None:
            self._cache.put_page(key, proof, page, records)

    def lookups(self, keys: Iterable[tuple[str | None, Hashable]]) -> list[Any] | None:
        """The results of lookups at all of these partitions and keys; None if one has to be read."""
        if not self.has_lookups or None in (found := [self.get(partition, key) for partition, key in keys]):
            return None
        if self._usage.trace is not None:
            self._usage.trace.records += sum(len(one) if isinstance(one, list) else 1 for one in found)
        return found

    def put_lookup(self, partition: str | None, key: Hashable, found: object) -> None:
        """Cache the result of a lookup. Its records have pages of their own."""
        if self.has_lookups:
            self.put(partition, key, found, records=0)

    def use_version(self, version: TreeVersion) -> None:
        """Use what a tree version proves that this request has read, or may take for current."""
        if (proof := self._versions.proof(version, self._began)) is not None:
            self._proofs[version.partition] = proof
        else:
            self._proofs.pop(version.partition, None)

    def drop(self, partitions: Collection[str]) -> None:
        """Use nothing of these partitions any more."""
        for partition in partitions:
            self._proofs.pop(partition, None)

    def proofs(self, partitions: Collection[str]) -> Proofs | None:
        """The proofs of all that was read of these partitions; None if one has none."""
        if self._store_version is not None:
            return {None: self._store_version}
        found: Proofs = {partition: self._proofs.get(partition) for partition in partitions}
        return found if found and None not in found.values() else None

    def holds(self, proofs: Proofs) -> bool:
        """Whether all of these proofs hold for this request."""
        return all(self.proof(partition) == proof for partition, proof in proofs.items())

    def may_hold(self, proofs: Proofs) -> bool:
        """Whether these proofs hold if nothing was written since their versions were read last."""
        if self._store_version is not None:
            return self.holds(proofs)
        return all(self._versions.last_proof(cast(str, partition)) == proof for partition, proof in proofs.items())

    # -- hints ---------------------------------------------------------------------------------------------------------

    def put_hint(self, key: Hashable, hint: Any) -> None:
        """Cache what nothing proves; only `peek` returns it."""
        self._cache.put_page(key, object(), hint, 0)

    def peek(self, key: Hashable) -> tuple[Any, object] | None:
        """The page that was cached last at a key, and its proof, which may not hold any more."""
        return self._cache.peek(key)

    def last_version(self, tree: str) -> TreeVersion | None:
        """The version of a tree that this process has read last, perhaps long ago."""
        return self._versions.latest(tree)
