"""One run of a plan: reads level by level, then tells the whole answer as bytes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from graph.context import Context
from graph.plan import (
    AboveField,
    Connection,
    ListedRoots,
    ListField,
    Part,
    Place,
    Relations,
    RootField,
    Shape,
)
from graph.plans import Bound
from graph.rendering import KEPT_BYTES, Leaves, TypeName
from resolvers.granted import lists, roots
from resolvers.job import Job
from resolvers.lists import Page
from resolvers.nodes import Lookup, above, nodes
from resolvers.request import Request
from resolvers.selection import Relation, Selection
from store.records import Record

KEPT_FIELDS = 4  # of one page; more are asked for by no ordinary set of clients


async def run(bound: Bound, context: Context) -> bytes:
    """The operation's `data` as JSON; raises Surprise, or what the batch functions raise, where anything is amiss."""
    plan = bound.plan
    relations = plan.relations_for(bound.variables)
    found = await _roots(bound, context, relations)
    await _fetch(context.request, relations, [visit for one in found.values() for visit in one.visits])
    fields = [
        _key(root.key) + (orjson.dumps(root.name) if isinstance(root, TypeName) else found[root].tell()[0])
        for root in plan.roots
    ]
    return b"{" + b",".join(fields) + b"}"


class Group:
    """The nodes of one level at one place: how they look, and what each of their relations led to."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.indices: list[int] = []
        self.records: list[Record] = []
        self.found: dict[ListField | AboveField, Listed | Found] = {}

    def tell(self, *, once: bool) -> list[bytes]:
        """Each node as a JSON object; `once` where whoever asks keeps what is told of nodes without relations."""
        parts = self.shape.parts
        if self.shape.is_leaf:
            (leaves,) = parts or (_nothing,)
            tell: Any = leaves.make if once and isinstance(leaves, Leaves) else leaves
            return [tell(record) for record in self.records]
        columns = [
            [part(record) for record in self.records]
            if isinstance(part, Leaves)
            else [_key(part.key) + one for one in self.found[part].tell()]
            for part in parts
        ]
        return [b"{" + b",".join(fields) + b"}" for fields in zip(*columns, strict=True)]


class Visit:
    """The nodes that stand at one place of this answer, in order, grouped by level."""

    def __init__(self, place: Place, records: Sequence[Record]) -> None:
        self.size = len(records)
        by_tree: dict[tuple[str, str], Group] = {}  # most records are of few trees, which tell their hierarchy
        groups: dict[Shape, Group] = {}
        for index, record in enumerate(records):
            key = (record.pk, record.level)
            group = by_tree.get(key)
            if group is None:
                shape = place.shape(record.hierarchy, record.level)
                group = by_tree[key] = groups.get(shape) or groups.setdefault(shape, Group(shape))
            group.indices.append(index)
            group.records.append(record)
        self.groups = list(groups.values())
        self.is_leaf = all(group.shape.is_leaf for group in self.groups)

    def tell(self, *, once: bool = False) -> list[bytes]:
        """Each node as a JSON object, in order."""
        if len(self.groups) == 1:
            return self.groups[0].tell(once=once)
        told = [b""] * self.size
        for group in self.groups:
            for index, one in zip(group.indices, group.tell(once=once), strict=True):
                told[index] = one
        return told


class Found:
    """For each of some owners the nodes that a field leads to: a list of them, or one or none."""

    def __init__(self, place: Place, found: Sequence[Sequence[Record | None]], *, many: bool) -> None:
        self._found = found
        self._many = many
        self._visit = Visit(place, [record for some in found for record in some if record is not None])

    @property
    def visits(self) -> list[Visit]:
        return [self._visit]

    def tell(self) -> list[bytes]:
        told = iter(self._visit.tell())
        values = [[b"null" if record is None else next(told) for record in some] for some in self._found]
        if self._many:
            return [b"[" + b",".join(some) + b"]" for some in values]
        return [some[0] if some else b"null" for some in values]


class Listed:
    """For each of some owners a page of a list of theirs, told as a connection."""

    def __init__(self, connection: Connection, pages: Sequence[Page]) -> None:
        self._connection = connection
        self._pages = pages
        self._visits: dict[Part, Visit] = {}
        # As of now: while others are read, or by a page that stands here twice, more of them are told.
        self._told: dict[Part, list[bytes | None]] = {}
        for part in connection.parts:
            if part.place is not None:
                told = self._told[part] = [page.told.get(part.number) for page in pages]
                untold = [page for page, one in zip(pages, told, strict=True) if one is None]
                self._visits[part] = Visit(part.place, [record for page in untold for record in page.records])

    @property
    def visits(self) -> list[Visit]:
        return list(self._visits.values())

    def tell(self) -> list[bytes]:
        columns = [self._tell_column(part) for part in self._connection.parts]
        if not columns:  # every field was skipped
            return [b"{}"] * len(self._pages)
        return [b"{" + b",".join(fields) + b"}" for fields in zip(*columns, strict=True)]

    def _tell_column(self, part: Part) -> list[bytes]:
        """One field of every page, in order."""
        visit = self._visits.get(part)
        if visit is None:
            return [self._tell_part(part, page, iter(())) for page in self._pages]
        told = iter(visit.tell(once=visit.is_leaf))
        column = []
        for page, one in zip(self._pages, self._told[part], strict=True):
            if one is None and not page.records:  # many lists share one empty page
                one = page.told.get(part.number)
            column.append(self._tell_part(part, page, told) if one is None else one)
        return column

    def _tell_part(self, part: Part, page: Page, told: Iterator[bytes]) -> bytes:
        """One field of one page; where nothing that was read for its nodes is in it, the page keeps it."""
        field = _key(part.key) + self._tell_value(part, page, told)
        visit = self._visits.get(part)
        small = len(field) <= KEPT_BYTES * (len(page.records) + 1)
        if visit is not None and (visit.is_leaf or not page.records) and small and len(page.told) < KEPT_FIELDS:
            page.told[part.number] = field
        return field

    def _tell_value(self, part: Part, page: Page, told: Iterator[bytes]) -> bytes:
        match part.name:
            case "nodes":
                return b"[" + b",".join(islice(told, len(page.records))) + b"]"
            case "edges":
                return b"[" + b",".join([self._tell_edge(part, page, record, told) for record in page.records]) + b"]"
            case "pageInfo":
                return orjson.dumps({key: _page_info(page, name) for key, name in part.fields})
            case "totalCount":
                return orjson.dumps(page.total)
            case _:
                return orjson.dumps(self._connection.name)

    def _tell_edge(self, part: Part, page: Page, record: Record, told: Iterator[bytes]) -> bytes:
        values = {"cursor": lambda: orjson.dumps(page.cursor(record)), "node": lambda: next(told)}
        typename = orjson.dumps(self._connection.edge)
        fields = [_key(key) + (values[name]() if name in values else typename) for key, name in part.fields]
        return b"{" + b",".join(fields) + b"}"


def _page_info(page: Page, name: str) -> Any:
    match name:
        case "hasNextPage":
            return page.has_next
        case "hasPreviousPage":
            return page.has_previous
        case "startCursor":
            return page.cursor(page.records[0]) if page.records else None
        case "endCursor":
            return page.cursor(page.records[-1]) if page.records else None
        case _:
            return "PageInfo"


def _key(key: str) -> bytes:
    return b'"' + key.encode() + b'":'


def _nothing(record: Record) -> bytes:
    """A node of which every field was skipped."""
    return b"{}"


# -- reading -----------------------------------------------------------------------------------------------------------


async def _roots(bound: Bound, context: Context, relations: Relations) -> dict[RootField, Found | Listed]:
    """What the fields of Query find: all that is looked up in one call, beside it the hierarchies' roots."""
    plan, request = bound.plan, context.request
    pairs = zip(plan.found, bound.arguments, strict=True)
    wanted = [root.resolve.targets(arguments, context) for root, arguments in pairs]
    asked: list[tuple[Lookup, Selection]] = []
    for root, targets in zip(plan.found, wanted, strict=True):
        selection = relations.selection(root.place)
        asked += [(lookup, selection.expecting(one.level)) for one, lookup in targets if lookup is not None]
    calls: list[Any] = [_list_roots(request, relations, root) for root in plan.listed]
    *pages, records = await _together(request, [*calls, nodes(request, asked)])
    found: dict[RootField, Found | Listed] = {}
    for listed, page in zip(plan.listed, pages, strict=True):
        found[listed] = Listed(listed.listing.connection, [page])
    left = iter(_all(records))
    for root, targets in zip(plan.found, wanted, strict=True):
        some = [None if lookup is None else one.checked(next(left)) for one, lookup in targets]
        found[root] = Found(root.place, [some], many=root.resolve.many)
    return found


async def _list_roots(request: Request, relations: Relations, root: ListedRoots) -> Page:
    relation = relations.of(root.listing)
    return await roots(request, root.resolve.hierarchy, relation.window, nodes=relation.nodes, total=relation.total)


async def _fetch(request: Request, relations: Relations, visits: list[Visit]) -> None:
    """Read all that the nodes of these visits ask for, then what the nodes found there ask for, to the bottom."""
    while groups := [group for visit in visits for group in visit.groups if not group.shape.is_leaf]:
        jobs: list[Job] = []
        asked: list[tuple[Record, Relation]] = []
        for group in groups:
            for field in group.shape.lists:
                relation = relations.of(field)
                jobs += [Job(record, relation) for record in group.records]
            for up in group.shape.above:
                relation = relations.of(up)
                asked += [(record, relation) for record in group.records]
        pages, found = await _read(request, jobs, asked)
        for group in groups:
            size = len(group.records)
            for field in group.shape.lists:
                group.found[field] = Listed(field.connection, list(islice(pages, size)))
            for up in group.shape.above:
                group.found[up] = Found(up.place, list(islice(found, size)), many=up.many)
        visits = [visit for group in groups for one in group.found.values() for visit in one.visits]


async def _read(
    request: Request, jobs: list[Job], asked: list[tuple[Record, Relation]]
) -> tuple[Iterator[Page], Iterator[list[Record]]]:
    """All lists and all that lies above, each by one call of its batch function; raises the first error among them."""
    if not asked:
        pages, found = await lists(request, jobs), []
    elif not jobs:
        pages, found = [], await above(request, asked)
    else:
        pages, found = await _together(request, [lists(request, jobs), above(request, asked)])
    return iter(_all(pages)), iter(_all(found))


def _all(outcomes: Sequence[Any]) -> Sequence[Any]:
    """What a batch function found, where nothing of it failed; raises the first error among it."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


async def _together(request: Request, calls: list[Any]) -> list[Any]:
    """The results of calls made side by side; raises the first error among them."""
    if len(calls) == 1:
        return [await calls[0]]
    results = await request.together(calls)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
