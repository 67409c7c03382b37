"""One run of a plan: reads level by level, then tells the whole answer as bytes."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, compress, islice
from operator import attrgetter, itemgetter
from typing import Any, cast

import orjson

from graph.compiler.connection_writer import Part, key_of, objects
from graph.compiler.leaf_codegen import LeafWriter, TypeName
from graph.compiler.operation_plan import (
    AboveField,
    CompiledType,
    Connection,
    ListedRoots,
    ListField,
    Relations,
    ResponsePosition,
    RootField,
)
from graph.compiler.plan_cache import BoundPlan
from graph.operation.context import Context
from resolvers.ancestors import read_ancestors
from resolvers.lookup import find_nodes
from resolvers.planner import list_requests
from resolvers.planning.list_request import ListRequest
from resolvers.planning.page import Page
from resolvers.planning.relations import Relation
from resolvers.restricted_lists import may_have_children, read_pages, read_roots
from resolvers.session.budget import Budget
from resolvers.session.outcomes import gather_outcomes, raise_first_error
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.model.keys import hierarchy_of
from store.model.records import Record

FEW = 8  # nodes that are told before their bytes are counted, since each may have 400 KB under 30 aliases
PIECE = 256  # nodes between two looks at the clock

_PK, _LEVEL, _RECORDS = attrgetter("pk"), attrgetter("level"), attrgetter("records")
_FIRST: Any = itemgetter(0)
_SECOND: Any = itemgetter(1)


async def run(bound: BoundPlan, context: Context) -> bytes:
    """The response as JSON; raises Surprise, or what the batch functions raise, where anything is amiss, and
    ResponseTooLarge.
    """
    budget = context.budget
    budget.spend_fields(bound.plan.count)
    found = await _roots(bound, context)
    await _fetch(context.request, bound.relations, [visit for one in found.values() for visit in one.visits])
    told: list[bytes] = []  # joined once, since it may be long
    for root in bound.plan.roots:
        value = orjson.dumps(root.name) if isinstance(root, TypeName) else (await found[root].tell(bound.relations))[0]
        told += (b"," if told else b"", key_of(root.key), value)
    response = b"".join((b'{"data":{', *told, b"}}"))
    budget.check_size(len(response))
    return response


class TypeGroup:
    """The nodes of one level at one place: how they look, and what each of their relations led to.

    `owners` are those of which relations have to be read; all others are told `bare`.
    """

    def __init__(self, shape: CompiledType, records: Sequence[Record], budget: Budget) -> None:
        budget.spend_fields(shape.count * len(records))
        self.shape = shape
        self.owners = self._records = records
        self.found: dict[ListField | AboveField, PageResults | NodeResults] = {}
        self._budget = budget
        self._owns: Sequence[object] | None = None

    def part(self, request: Request, relations: Relations) -> None:
        """Leave only those to be read for that may have something in the lists that are asked for."""
        if self.shape.bare is None or any(relations.of(field).window.is_narrow for field in self.shape.lists):
            return
        self._owns = may_have_children(request, self._records)
        self.owners = list(compress(self._records, self._owns))
        self._budget.spend_fields(self.shape.empty_count * (len(self._records) - len(self.owners)))

    async def tell(self, relations: Relations) -> list[bytes]:
        """Each node as a JSON object."""
        if self.shape.is_leaf:
            parts = self.shape.leaves
            tell = relations.leaves(parts[0]) if parts else _nothing
            few = len(self._records) <= FEW
            return self._at_once(tell, self._records) if few else await self._told(tell, self._records)
        if self._owns is None or self.shape.bare is None:
            return await self._tell_owners(relations)
        owners = iter(await self._tell_owners(relations))
        without = [one for one, owns in zip(self._records, self._owns, strict=True) if not owns]
        others = iter(await self._told(relations.leaves(self.shape.bare), without))
        return [next(owners) if owns else next(others) for owns in self._owns]

    async def _tell_owners(self, relations: Relations) -> list[bytes]:
        owners = self.owners
        columns: list[tuple[bytes, list[bytes]]] = []
        for part in self.shape.parts:
            if not isinstance(part, LeafWriter):
                columns.append((key_of(part.key), await self.found[part].tell(relations)))
            elif len(owners) <= FEW:
                columns.append((b"", self._at_once(relations.leaves(part), owners)))
            else:
                columns.append((b"", await self._told(relations.leaves(part), owners)))
        if len(self.owners) > PIECE:
            await yield_to_loop()
        return objects(columns, len(self.owners))

    def _at_once(self, tell: Any, records: Sequence[Record]) -> list[bytes]:
        """What a function tells of each of a few nodes."""
        told = list(map(tell, records))
        self._budget.spend_bytes(sum(map(len, told)))
        return told

    async def _told(self, tell: Any, records: Sequence[Record]) -> list[bytes]:
        """The same of many, of which a few at a time take memory before their bytes are counted."""
        told: list[bytes] = []
        for start in range(0, len(records), FEW):
            told += self._at_once(tell, records[start : start + FEW])
            if start and start % PIECE == 0:
                await yield_to_loop()
        return told


class PositionNodes:
    """The nodes that stand at one place of this answer, in order, grouped by level."""

    def __init__(self, place: ResponsePosition, records: Sequence[Record], budget: Budget) -> None:
        self._place = place
        self._budget = budget
        self._indices: list[Sequence[int]] = []
        if len(records) <= 1:
            self.groups = [
                TypeGroup(place.shape(record.hierarchy, record.level), records, budget) for record in records
            ]
        else:
            self.groups = self._grouped(place, records)
        self.is_leaf = all(group.shape.is_leaf and not group.shape.varies for group in self.groups)

    def _grouped(self, place: ResponsePosition, records: Sequence[Record]) -> list[TypeGroup]:
        # Most places hold nodes of one level, which is found out without looking at each node by itself.
        hierarchies = {hierarchy_of(pk) for pk in set(map(_PK, records))}
        levels = set(map(_LEVEL, records))
        if len(hierarchies) == len(levels) == 1:
            return [TypeGroup(place.shape(*hierarchies, *levels), records, self._budget)]
        by_tree: dict[tuple[str, str], list[int]] = {}  # most records are of few trees, which tell their hierarchy
        groups: dict[CompiledType, list[int]] = {}
        for index, record in enumerate(records):
            key = (record.pk, record.level)
            indices = by_tree.get(key)
            if indices is None:
                shape = place.shape(record.hierarchy, record.level)
                indices = by_tree[key] = groups.setdefault(shape, [])
            indices.append(index)
        self._indices = list(groups.values())
        return [
            TypeGroup(shape, [records[index] for index in indices], self._budget) for shape, indices in groups.items()
        ]

    def count(self, records: Sequence[Record]) -> int:
        """What the fields of some nodes here count as."""
        return sum([self._place.shape(record.hierarchy, record.level).count for record in records])

    async def tell(self, relations: Relations) -> list[bytes]:
        """Each node as a JSON object, in order."""
        if len(self.groups) == 1:
            return await self.groups[0].tell(relations)
        told = [b""] * sum(map(len, self._indices))
        for group, indices in zip(self.groups, self._indices, strict=True):
            for index, one in zip(indices, await group.tell(relations), strict=True):
                told[index] = one
        return told


class NodeResults:
    """For each of some owners the nodes that a field leads to: a list of them, or one or none."""

    def __init__(
        self, place: ResponsePosition, found: Sequence[Sequence[Record | None]], budget: Budget, *, many: bool
    ) -> None:
        self._found = found
        self._many = many
        self._visit = PositionNodes(place, [record for some in found for record in some if record is not None], budget)

    @property
    def visits(self) -> list[PositionNodes]:
        return [self._visit]

    async def tell(self, relations: Relations) -> list[bytes]:
        told = iter(await self._visit.tell(relations))
        values = [[b"null" if record is None else next(told) for record in some] for some in self._found]
        if self._many:
            return [b"[" + b",".join(some) + b"]" for some in values]
        return [some[0] if some else b"null" for some in values]


class PageResults:
    """For each of some owners a page of a list of theirs, told as a connection."""

    def __init__(self, connection: Connection, pages: Sequence[Page], budget: Budget) -> None:
        self._connection = connection
        self._pages = pages
        self._visits: dict[Part, PositionNodes] = {}
        # As of now: while others are read, or by a page that stands here twice, more of them are told.
        self._told: dict[Part, list[bytes | None]] = {}
        records = sum(map(len, map(_RECORDS, pages)))
        budget.spend_fields(sum([part.count(len(pages), records) for part in connection.parts]))
        for part, place in connection.places.items():
            kept = [page.json_fields.get(part.number) for page in pages]
            found = [one for one in kept if one is not None] if None in kept else kept
            budget.spend_fields(sum(map(_SECOND, found)))
            budget.spend_bytes(sum(map(len, map(_FIRST, found))))
            if len(found) == len(kept):
                self._told[part], untold = list(map(_FIRST, found)), []
            else:
                self._told[part] = [None if one is None else one[0] for one in kept]
                untold = [page.records for page, one in zip(pages, kept, strict=True) if one is None]
            self._visits[part] = PositionNodes(place, list(chain.from_iterable(untold)), budget)

    @property
    def visits(self) -> list[PositionNodes]:
        return list(self._visits.values())

    async def tell(self, relations: Relations) -> list[bytes]:
        columns = [(b"", await self._tell_column(part, relations)) for part in self._connection.parts]
        if len(self._pages) > PIECE:
            await yield_to_loop()
        return objects(columns, len(self._pages))

    async def _tell_column(self, part: Part, relations: Relations) -> list[bytes]:
        """One field of every page, in order; where nothing that was read for its nodes is in it, the page keeps it."""
        visit = self._visits.get(part)
        told = iter(()) if visit is None else iter(await visit.tell(relations))
        pages, kept = self._pages, self._told.get(part) or [None] * len(self._pages)
        if None not in kept:
            return cast(list[bytes], kept)
        column: list[bytes] = []
        for start in range(0, len(pages), PIECE):
            column += map(partial(_field, part, visit, told), pages[start : start + PIECE], kept[start : start + PIECE])
            if start:
                await yield_to_loop()
        return column


def _field(part: Part, visit: PositionNodes | None, told: Iterator[bytes], page: Page, kept: bytes | None) -> bytes:
    """One field of a page, as it is kept or made of nodes that are told."""
    if kept is not None:
        return kept
    field = part.tell(page, told)
    if visit is not None and visit.is_leaf:
        part.keep(page, field, visit.count(page.records))
    return field


def _nothing(record: Record) -> bytes:
    """A node of which every field was skipped."""
    return b"{}"


# -- reading -----------------------------------------------------------------------------------------------------------


async def _roots(bound: BoundPlan, context: Context) -> dict[RootField, NodeResults | PageResults]:
    """What the fields of Query find: all that is looked up in one call, beside it the hierarchies' roots."""
    request, listed = context.request, bound.plan.listed
    for wanted in bound.wanted:
        wanted.root.resolve.spend(wanted.arguments, context)
    calls: list[Any] = [_list_roots(request, bound.relations, root) for root in listed]
    *pages, records = await _together([*calls, find_nodes(request, bound.lookups)])
    found: dict[RootField, NodeResults | PageResults] = {
        root: PageResults(root.listing.connection, [page], request.budget)
        for root, page in zip(listed, pages, strict=True)
    }
    left = iter(_all(records))
    for wanted in bound.wanted:
        root = wanted.root
        some = [None if lookup is None else one.checked(next(left)) for one, lookup in wanted.targets]
        found[root] = NodeResults(root.place, [some], request.budget, many=root.resolve.many)
    return found


async def _list_roots(request: Request, relations: Relations, root: ListedRoots) -> Page:
    relation = relations.of(root.listing)
    return await read_roots(
        request, root.resolve.hierarchy, relation.window, nodes=relation.nodes, total=relation.total
    )


async def _fetch(request: Request, relations: Relations, visits: list[PositionNodes]) -> None:
    """Read all that the nodes of these visits ask for, then what the nodes found there ask for, to the bottom."""
    while groups := [group for visit in visits for group in visit.groups if not group.shape.is_leaf]:
        jobs: list[ListRequest] = []
        asked: list[tuple[Record, Relation]] = []
        for group in groups:
            group.part(request, relations)
            for field in group.shape.lists:
                relation = relations.of(field)
                jobs += list_requests(group.owners, relation)
            for up in group.shape.above:
                relation = relations.of(up)
                asked += [(record, relation) for record in group.owners]
        pages, found = await _read(request, jobs, asked)
        for group in groups:
            size = len(group.owners)
            for field in group.shape.lists:
                group.found[field] = PageResults(field.connection, list(islice(pages, size)), request.budget)
            for up in group.shape.above:
                group.found[up] = NodeResults(up.place, list(islice(found, size)), request.budget, many=up.many)
        visits = [visit for group in groups for one in group.found.values() for visit in one.visits]
        if len(jobs) + len(asked) > PIECE:
            await yield_to_loop()


async def _read(
    request: Request, jobs: list[ListRequest], asked: list[tuple[Record, Relation]]
) -> tuple[Iterator[Page], Iterator[list[Record]]]:
    """All lists and all that lies above, each by one call of its batch function; raises the first error among them."""
    if not asked:
        pages, found = await read_pages(request, jobs), []
    elif not jobs:
        pages, found = [], await read_ancestors(request, asked)
    else:
        pages, found = await _together([read_pages(request, jobs), read_ancestors(request, asked)])
    return iter(_all(pages)), iter(_all(found))


def _all(outcomes: Sequence[Any]) -> Sequence[Any]:
    """What a batch function found, where nothing of it failed; raises the first error among it."""
    raise_first_error(outcomes)
    return outcomes


async def _together(calls: list[Any]) -> list[Any]:
    """The results of calls made side by side; raises the first error among them."""
    if len(calls) == 1:
        return [await calls[0]]
    return list(_all(await gather_outcomes(calls)))
