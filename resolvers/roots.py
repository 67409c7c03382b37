"""Roots: from a hierarchy to the roots of its trees.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations` | `by_parent` | `parent = "location"` | one |
| `locations(level: COUNTRY)` | `by_parent` | the same, `begins_with(rank, "COUNTRY#")` | one |
| `locations(level: [COUNTRY, REGION])` | `by_parent` | the same of each level | one a level |
| `locations { totalCount }` | – | the version of the hierarchy, by key | one, in the same round |
| `locations { nodes { descendantCount } }` | – | the versions of all trees listed, by key | one more |
| `locations` of who may read a part | table | keys of her grant roots and of their trees' versions | one round |

Those by key are BatchGetItems of up to 100 keys. Lists below the roots read the same versions. Every list of all roots
reads the version of the hierarchy, which names the moves from and to roots: in the same round, on SQLite before it.

A caller who may read a part has her grant roots in place of the roots. Their keys follow from the grants, so no Query
reads what is beside them; and their order is by level, key and path, since an order that an editor has given to
siblings would disclose hidden ones.

They are a list like any other, whose owner is virtual; no dataloader batches it, since a hierarchy has one.
"""

from collections import Counter
from collections.abc import Awaitable, Container, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Self, cast

from resolvers.access.grants import grant_roots
from resolvers.lists.arguments import CursorKind, ListCursors, Page, Relation, by_rank, page_of
from resolvers.lists.list_request import ListRequest, ReadOption, TreeState
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.cache import Partition
from resolvers.session.reads import ReadState
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from resolvers.sorting.conditions import path_position
from resolvers.sorting.ordering import PlaceOrder
from store.engine import ReadUsage, Store
from store.metadata.tree_version import StoredVersion, TreeVersion, by_level
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import HIERARCHIES, KeyRange, Path, first_rank, last_segment, node_key, siblings
from store.model.records import Counts, Record


async def undefined_hierarchies(store: Store, defined: Container[str], reads: ReadUsage) -> list[str]:
    """The hierarchies that have nodes in the store and are not among the defined ones; one Query."""
    versions = [item for item in await store.range(HIERARCHIES, reads) if item["pk"] not in defined]
    return [cast(str, item["pk"]) for item in versions if any(decoded(item, StoredVersion).shape.values())]


class HierarchyList(ListRequest, frozen=True, eq=False, dict=True):
    """A list of a whole hierarchy, whose owner is virtual. It is in no tree, so it is read by its `page`."""

    @property
    def key_ranges(self) -> list[KeyRange]:
        raise NotImplementedError

    @classmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        raise NotImplementedError

    @property
    def hierarchy(self) -> str:
        return self.owner.id

    def _open_levels(self, hierarchy: Hierarchy) -> Sequence[Level]:
        return list(hierarchy.levels.values())

    async def page(self, request: Request) -> Page:
        """A page, neither sorted nor filtered. Raises BadCursor, BudgetExceeded and the error of a failed read."""
        raise NotImplementedError


class RootsList(HierarchyList, frozen=True, eq=False, dict=True):
    """The roots of a hierarchy, or where `tops` are given, the grant roots of a caller."""

    tops: Sequence[Path] | None = None
    cursor_kind: ClassVar[CursorKind] = CursorKind.ROOTS

    @property
    def key_ranges(self) -> list[KeyRange]:
        """`parent = :hierarchy` in `by_parent`, with a level `begins_with(rank, "COUNTRY#")`, from cursor to cursor."""
        arguments, levels = self.relation.arguments, self.relation.arguments.levels or (None,)
        return [arguments.between_cursors(siblings(self.hierarchy, one), self.cursors.decode) for one in levels]

    @property
    def partition(self) -> Partition:
        return None  # a write to any tree may change its root

    def partitions(self, records: Iterable[Record]) -> frozenset[str]:
        return frozenset([self.hierarchy, *[record.pk for record in records]])

    @property
    def is_deep(self) -> bool:
        return self.tops is not None

    @property
    def description(self) -> str:
        return f"The roots of {self.hierarchy}"

    def holds(self, record: Record) -> bool:
        is_listed = record.is_root if self.tops is None else record.path in self.tops
        return is_listed and self.relation.arguments.has_level(record.level)

    @property
    def cursors(self) -> ListCursors:
        if self.tops is None:
            return ListCursors(CursorKind.ROOTS, self.hierarchy, by_rank)
        is_by_path = self.relation.arguments.ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH)
        return ListCursors(CursorKind.ROOTS, self.hierarchy, path_position if is_by_path else _level_key_path)

    def possible_levels(self, hierarchy: Hierarchy) -> list[Level]:
        has_level = self.relation.arguments.has_level
        levels = [one for one in hierarchy.levels.values() if one.may_be_root or self.tops is not None]
        return [one for one in levels if has_level(one.name)]

    async def level_counts(self, request: Request) -> Counts:
        has_level = self.relation.arguments.has_level
        if self.tops is not None:
            return Counter([record.level for record in await self._grant_roots(request)])
        counts = by_level((await _version(request.state, self.hierarchy)).shape)
        return {level: count for level, count in counts.items() if count and has_level(level)}

    async def read_size(self, request: Request) -> int:
        return sum((await self.level_counts(request)).values())

    async def page(self, request: Request) -> Page:
        return await (self._page(request) if self.tops is None else self._page_of_grant_roots(request))

    async def _page(self, request: Request) -> Page:
        state, relation, arguments = request.state, self.relation, self.relation.arguments
        cached: Page | None = state.pages.get(None, self.cache_key)
        if cached is not None:
            request.budget.spend_nodes(len(cached.records), compared=arguments.compared)
            state.partitions_read.update(self.partitions(cached.records))
            if request.reads.trace is not None:
                request.reads.trace.pages += 1
            return cached
        left, spans = request.budget.left(compared=arguments.compared), self.key_ranges
        limit = min(arguments.limit or left + 2, left + 2)  # the number of roots is not known before they are read
        request.scheduler.expect(arguments.limit or 0)
        state.partitions_read.add(self.hierarchy)
        calls: list[Awaitable[object]] = [state.versions_of([self.hierarchy])] if relation.total else []
        if relation.nodes and state.records_read.in_ranges(spans, limit, reverse=arguments.descending) is None:
            calls += [state.range(Read(span, limit, arguments.descending)) for span in spans]
        await request.scheduler.gather_all(calls)
        total = sum((await self.level_counts(request)).values()) if relation.total else None
        if not relation.nodes:
            return Page([], total=total)
        records = state.records_read.in_ranges(spans, limit, reverse=arguments.descending) or []
        state.partitions_read.update(self.partitions(records))
        shown = len(records[: arguments.size])
        if shown > left:
            raise TooManyNodes(self.description, None, left, compared=arguments.compared)
        request.budget.spend_nodes(shown, self.description, compared=arguments.compared)
        page = page_of(records, arguments, total, self.cursors)
        page = replace(page, records=await with_counts(state, page.records)) if relation.counts else page
        state.pages.put(None, self.cache_key, page, len(page.records))
        return page

    async def _page_of_grant_roots(self, request: Request) -> Page:
        """A page of the caller's grant roots; the position in a cursor is by level, key and path, or by path alone."""
        arguments, position = self.relation.arguments, self.cursors.position
        existing = await self._grant_roots(request)
        lo, hi = arguments.positions(self.cursors.decode)
        page = [
            record
            for record in sorted(existing, key=position, reverse=arguments.descending)
            if (lo is None or lo < position(record)) and (hi is None or position(record) < hi)
        ][: arguments.limit]
        shown = len(page[: arguments.size])
        request.budget.spend_nodes(shown, self.description, compared=arguments.compared)
        return page_of(page, arguments, len(existing) if self.relation.total else None, self.cursors)

    async def _grant_roots(self, request: Request) -> list[Record]:
        found = await request.state.nodes([node_key(self.hierarchy, top) for top in self.tops or ()])
        raise_first_error(found.values())
        has_level = self.relation.arguments.has_level
        return [one for one in found.values() if isinstance(one, Record) and has_level(one.level)]


async def _version(state: ReadState, hierarchy: str) -> TreeVersion:
    found = (await state.versions_of([hierarchy]))[hierarchy]
    if isinstance(found, Exception):
        raise found
    return found


def roots_list(request: Request, hierarchy: str, relation: Relation) -> RootsList:
    """The list of a hierarchy's roots, or of the caller's grant roots."""
    return RootsList(virtual_owner(hierarchy), relation, grant_roots(request.grants, hierarchy))


def virtual_owner(hierarchy: str) -> Record:
    """The owner of the lists of a whole hierarchy, which is no node; its id is the hierarchy's name."""
    return Record(
        pk="", sk=hierarchy, rank="", id=hierarchy, level="", name="", above=[], kids={}, revision=0, updated_at="",
        attributes={},
    )  # fmt: skip


def _level_key_path(record: Record) -> str:
    return first_rank(record.level, last_segment(*record.key)) + path_position(record)


async def with_counts(state: ReadState, records: list[Record]) -> list[Record]:
    """The same nodes, those that are roots out of a list with the counts of their descendants. Raises the error of a
    failed read.

    Every field that may lead to such roots calls this where `descendantCount` is selected.
    """
    roots = [one.pk for one in records if one.is_root and one.below is None]
    if not roots:
        return records
    raise_first_error((await state.versions_of(roots)).values())
    return [state.counted(one) for one in records]
