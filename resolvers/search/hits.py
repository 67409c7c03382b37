"""Hits of a search: the nodes of its candidates, read and checked, or all nodes of a small scope."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from resolvers.access.redacted_node import RedactedNode
from resolvers.ancestors import kinds_for_all_levels, selected_keys
from resolvers.lookup import find_nodes
from resolvers.planning.relations import NOTHING, Selection
from resolvers.roots import with_counts
from resolvers.search.former_keys import learn, present_key
from resolvers.search.scope import Scope
from resolvers.session.outcomes import gather_all, raise_first_error
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.ranges import subtree
from store.model.records import Record

ATTEMPTS = 3  # to read candidates, since some do not match any more


Place = tuple[Any, ...]
"""The place of a node in the result, by which nodes are sorted; its last part is the id of the node."""


class Pointer(Protocol):
    """A search item, as far as it leads to its node."""

    @property
    def id(self) -> str: ...

    @property
    def key(self) -> Key: ...


class Hit(NamedTuple):
    place: Place
    record: Record


class Selected(NamedTuple):
    """What is selected of the hits: `below` are their relations, None if that is not known; `counts` is whether
    `descendantCount` is, which roots have in the versions of their trees.
    """

    below: Selection | None = None
    counts: bool = True


class HitReader:
    """Reads the hits of one search: eventually consistent, as the items, unless a background move is running.

    `place` returns the place of a node as it is now, None where it does not match.
    """

    def __init__(
        self,
        request: Request,
        hierarchy: Hierarchy,
        selected: Selected,
        place: Callable[[Record], Place | None],
        *,
        is_strong: bool,
    ) -> None:
        self._request, self._hierarchy, self._selected = request, hierarchy, selected
        self._is_strong = is_strong
        self._place = place

    async def first_of(
        self, found: Sequence[Pointer], scope: Scope, size: int, *, attempts: int = ATTEMPTS
    ) -> tuple[list[Hit], bool]:
        """The nodes of the first candidates, in order: one BatchGetItem with the ancestors that are selected.

        Nodes that do not match any more are replaced by the next candidates, in so many `attempts` in all; the second
        value is False where that did not end. A node that is not at the key in its item is looked up by its id.
        """
        hits: list[Hit] = []
        ahead = list(found)
        for _ in range(attempts):
            some, ahead = ahead[: size - len(hits)], ahead[size - len(hits) :]
            if not some:
                break
            for record in await self._read(some):
                hits += self._hit(record, scope)
        return await self._counted(sorted(hits)), len(hits) == size or not ahead

    async def all_below(self, scope: Scope, size: int) -> list[Hit]:
        """The first matching nodes of a small scope, all of whose nodes are read: one Query for each top."""
        state = self._request.state
        reads = [Read(subtree(*top.record.key), None, False) for top in scope.tops or ()]
        await gather_all([state.range(read) for read in reads])
        hits: list[Hit] = []
        for read in reads:
            async for chunk in in_chunks(state.records_read.in_range(read.span, None, reverse=False) or []):
                for record in chunk:
                    hits += self._hit(record, scope)
        return await self._counted(sorted(hits)[:size])

    def _hit(self, record: Record | None, scope: Scope) -> list[Hit]:
        if record is None or isinstance(record, RedactedNode) or not scope.holds(record):
            return []
        place = self._place(record)
        return [] if place is None else [Hit(place, record)]

    async def _read(self, some: Sequence[Pointer]) -> list[Record | None]:
        """The nodes of these candidates, None for those that are gone or hidden."""
        request, state = self._request, self._request.state
        keys = [present_key(request, one.key) for one in some]
        nodes = await (state.current_nodes if self._is_strong else state.weak_nodes)([*keys, *self._above(keys)])
        raise_first_error([nodes[key] for key in keys])
        found: list[Record | None] = []
        for key, one in zip(keys, some, strict=True):
            record = nodes[key]
            is_it = isinstance(record, Record) and not isinstance(record, RedactedNode) and record.id == one.id
            found.append(record if is_it and isinstance(record, Record) else None)
        missing = [index for index, record in enumerate(found) if record is None]
        if missing:
            ids = [(self._hierarchy.name, some[index].id) for index in missing]
            elsewhere = await find_nodes(request, [(node_id, NOTHING) for node_id in ids])
            raise_first_error(elsewhere)
            for index, record in zip(missing, elsewhere, strict=True):
                if isinstance(record, Record):
                    found[index] = record
                    learn(request, some[index].key, record.key)
        return found

    def _above(self, keys: Sequence[Key]) -> list[Key]:
        """The keys of the ancestors that are selected for nodes of all levels."""
        below = self._selected.below
        kinds = set() if below is None else kinds_for_all_levels(below, self._hierarchy)
        return [above for key in keys for above in selected_keys(key, kinds)] if kinds else []

    async def _counted(self, hits: list[Hit]) -> list[Hit]:
        """The same hits, with their counts where these are selected."""
        if not self._selected.counts:
            return hits
        records = await with_counts(self._request.state, [hit.record for hit in hits])
        return [hit._replace(record=record) for hit, record in zip(hits, records, strict=True)]
