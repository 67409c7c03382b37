"""Run of a plan: `run` reads a bound plan's data level by level, then writes the response as bytes from the bottom up.
`run_beside` does so concurrently with fields of Query that are interpreted, and returns the values of all of them.

The nodes of a response are held by position and type: a `PageResults` or `NodeResults` for each field that returns
nodes, a `PositionNodes` for each position in it, and a `TypeGroup` for each type there. Each spends the fields and
bytes of its nodes from the budget of the request, `Request.budget`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, compress, islice
from operator import attrgetter
from typing import Any, cast

from graphql import ExecutionResult
from orjson import Fragment

from graph.execution.interpreter import Executor
from graph.execution.json_writers import ConnectionField, Constant, LeafWriter, key_of, objects
from graph.execution.plan import AboveField, CompiledType, Connection, ListField, ResponsePosition, RootField
from graph.execution.plan_cache import BoundPlan
from graph.operation.context import Context
from graph.operation.selection import LookAhead
from resolvers.ancestors import read_ancestors
from resolvers.lists.arguments import Page, Relation, RelationKind
from resolvers.lists.list_request import ListRequest
from resolvers.lookup import find_nodes
from resolvers.pages import may_have_children, read_pages
from resolvers.planner import list_requests
from resolvers.search.finder import Selected
from resolvers.session.budget import Budget, gather_outcomes, raise_first_error
from resolvers.session.request import Request
from resolvers.trees import read_roots
from store.concurrency import yield_to_loop
from store.model.keys import hierarchy_of
from store.model.records import Record

FEW = 8  # nodes that are written before their bytes are counted, since each may have 400 KB under 30 aliases
CHUNK = 256  # nodes between two yields to the event loop

_PK, _LEVEL, _RECORDS = attrgetter("pk"), attrgetter("level"), attrgetter("records")


async def run(bound: BoundPlan, context: Context) -> bytes:
    """The response as JSON. Raises UnsupportedByPlan, ResponseTooLarge, and the errors of the batch functions."""
    written: list[bytes] = []  # joined once, since it may be long
    for key, value in (await _values(bound, context)).items():
        written += (b"," if written else b"", key_of(key), value)
    response = b"".join((b'{"data":{', *written, b"}}"))
    context.request.budget.check_size(len(response))
    return response


async def run_beside(bound: BoundPlan, context: Context, executor: Executor) -> ExecutionResult:
    """The result of a plan some of whose fields of Query are interpreted: the values of the others are `Fragment`s.

    Raises as `run` does, once everything that was started has ended.
    """
    calls: list[Any] = [executor.execute_root(bound.interpreted)]
    if bound.roots:
        calls.append(_values(bound, context))
    outcomes: list[Any] = await gather_outcomes(calls)  # concurrently, since fields of users may wait for other things
    raise_first_error(outcomes)
    interpreted, *others = outcomes
    compiled = {key: Fragment(value) for values in others for key, value in values.items()}
    data = interpreted and {key: (compiled if key in compiled else interpreted)[key] for key in bound.plan.grouped}
    return ExecutionResult(data, executor.collected_errors.errors or None)


async def _values(bound: BoundPlan, context: Context) -> dict[str, bytes]:
    """The compiled fields of Query as JSON, by their keys."""
    context.request.budget.spend_fields(bound.count)
    found = await _roots(bound, context)
    await _fetch(context.request, bound.look_ahead, [position for one in found.values() for position in one.positions])
    values: dict[str, bytes] = {}
    for root in bound.roots:
        if isinstance(root, Constant):
            values[root.key] = root.json
        else:
            (values[root.key],) = await found[root].write(bound.look_ahead)
    return values


async def _roots(bound: BoundPlan, context: Context) -> "dict[RootField, NodeResults | PageResults]":
    """The nodes of the fields of Query: all lookups in one call, in parallel with the hierarchies' roots."""
    request = context.request
    selected = [Selected(bound.look_ahead.selection(one.position), one.counts) for one, _ in bound.searched]
    calls: list[Any] = [
        *[read_roots(request, field.resolve.hierarchy, one) for field, one in bound.listed],
        *[one.resolve.find(request, given, of) for (one, given), of in zip(bound.searched, selected, strict=True)],
        find_nodes(request, bound.lookups),
    ]
    *pages, records = await request.scheduler.gather_all(calls)
    connections: list[tuple[RootField, Connection]] = [(field, field.listing.connection) for field, _ in bound.listed]
    connections += [(searched, searched.connection) for searched, _ in bound.searched]
    found: dict[RootField, NodeResults | PageResults] = {
        field: PageResults(connection, [page], request.budget)
        for (field, connection), page in zip(connections, pages, strict=True)
    }
    raise_first_error(records)
    left = iter(records)
    for root, targets in bound.looked_up:
        some = [None if target is None else check.checked(next(left)) for check, target in targets]
        found[root] = NodeResults(root.position, [some], request.budget, many=root.resolve.many)
    return found


async def _fetch(request: Request, look_ahead: LookAhead, positions: "list[PositionNodes]") -> None:
    """Read all that the nodes at these positions select, then what the nodes found there select, to the bottom."""
    while groups := [group for position in positions for group in position.groups if not group.compiled.is_leaf]:
        jobs: list[ListRequest] = []
        lookups: list[tuple[Record, Relation]] = []
        for group in groups:
            group.part(request, look_ahead)
            for field in group.compiled.lists:
                jobs += list_requests(group.owners, look_ahead.relation(field.relation))
            for up in group.compiled.above:
                relation = look_ahead.relation(up.relation)
                lookups += [(record, relation) for record in group.owners]
        pages, found = await _read(request, jobs, lookups)
        for group in groups:
            size = len(group.owners)
            for field in group.compiled.lists:
                group.found[field] = PageResults(field.connection, list(islice(pages, size)), request.budget)
            for up in group.compiled.above:
                some, many = list(islice(found, size)), up.relation.kind is RelationKind.ANCESTORS
                group.found[up] = NodeResults(up.position, some, request.budget, many=many)
        positions = [position for group in groups for one in group.found.values() for position in one.positions]
        if len(jobs) + len(lookups) > CHUNK:
            await yield_to_loop()


async def _read(
    request: Request, jobs: list[ListRequest], lookups: list[tuple[Record, Relation]]
) -> tuple[Iterator[Page], Iterator[list[Record]]]:
    """All lists, and all nodes above, each by one call of its batch function. Raises the first error among them."""
    pages: Any = []
    found: Any = []
    if not lookups:
        pages = await read_pages(request, jobs)
    elif not jobs:
        found = await read_ancestors(request, lookups)
    else:
        calls = [read_pages(request, jobs), read_ancestors(request, lookups)]
        pages, found = await request.scheduler.gather_all(calls)
    raise_first_error(pages)
    raise_first_error(found)
    return iter(pages), iter(found)


class TypeGroup:
    """The nodes of one type at one position, and the nodes that each of their relations leads to.

    `owners` are the nodes whose relations have to be read; all others are written as `childless`.
    """

    def __init__(self, compiled: CompiledType, records: Sequence[Record], budget: Budget) -> None:
        budget.spend_fields(compiled.count * len(records))
        if compiled.values:
            budget.spend_fields(compiled.value_counts(records))
        self.compiled = compiled
        self.owners = self._records = records
        self.found: dict[ListField | AboveField, PageResults | NodeResults] = {}
        self._budget = budget
        self._owns: Sequence[object] | None = None

    def part(self, request: Request, look_ahead: LookAhead) -> None:
        """Restrict the owners to nodes that may have something in the selected lists."""
        if self.compiled.childless is None or any(
            look_ahead.relation(field.relation).arguments.is_narrow for field in self.compiled.lists
        ):
            return
        self._owns = may_have_children(request, self._records)
        self.owners = list(compress(self._records, self._owns))
        self._budget.spend_fields(self.compiled.empty_count * (len(self._records) - len(self.owners)))

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        """Each node as a JSON object."""
        if self.compiled.is_leaf:
            return await self._write_leaves(self.compiled.leaves[0].bound(look_ahead.variables), self._records)
        if self._owns is None or self.compiled.childless is None:
            return await self._write_owners(look_ahead)
        owners = iter(await self._write_owners(look_ahead))
        childless = [record for record, owns in zip(self._records, self._owns, strict=True) if not owns]
        others = iter(await self._write_leaves(self.compiled.childless.bound(look_ahead.variables), childless))
        return [next(owners) if owns else next(others) for owns in self._owns]

    async def _write_owners(self, look_ahead: LookAhead) -> list[bytes]:
        owners = self.owners
        columns: list[tuple[bytes, list[bytes]]] = []
        for part in self.compiled.parts:
            if isinstance(part, LeafWriter):
                columns.append((b"", await self._write_leaves(part.bound(look_ahead.variables), owners)))
            else:
                columns.append((key_of(part.key), await self.found[part].write(look_ahead)))
        if len(owners) > CHUNK:
            await yield_to_loop()
        return objects(columns, len(owners))

    async def _write_leaves(self, write: Callable[[Record], bytes], records: Sequence[Record]) -> list[bytes]:
        """The JSON of leaf fields of nodes, of which a few at a time take memory before their bytes are counted."""
        written: list[bytes] = []
        for start in range(0, len(records), FEW):
            few = list(map(write, records[start : start + FEW]))
            self._budget.spend_bytes(sum(map(len, few)))
            written += few
            if start and start % CHUNK == 0:
                await yield_to_loop()
        return written


class PositionNodes:
    """The nodes at one position of this response, in order, grouped by type."""

    def __init__(self, position: ResponsePosition, records: Sequence[Record], budget: Budget) -> None:
        self._position = position
        self._budget = budget
        self._indices: list[Sequence[int]] = []
        if len(records) <= 1:
            self.groups = [TypeGroup(position.compiled(one.hierarchy, one.level), records, budget) for one in records]
        else:
            self.groups = self._grouped(records)
        self.is_leaf = all(group.compiled.is_leaf and not group.compiled.varies for group in self.groups)

    def _grouped(self, records: Sequence[Record]) -> list[TypeGroup]:
        position = self._position
        # Most positions hold nodes of one level, which needs no look at each node by itself.
        levels = set(map(_LEVEL, records))
        if len(levels) == 1 and len(hierarchies := {hierarchy_of(pk) for pk in set(map(_PK, records))}) == 1:
            return [TypeGroup(position.compiled(*hierarchies, *levels), records, self._budget)]
        by_tree: dict[tuple[str, str], list[int]] = {}  # most records are of few trees, and a tree has one hierarchy
        groups: dict[CompiledType, list[int]] = {}
        for index, record in enumerate(records):
            key = (record.pk, record.level)
            indices = by_tree.get(key)
            if indices is None:
                compiled = position.compiled(record.hierarchy, record.level)
                indices = by_tree[key] = groups.setdefault(compiled, [])
            indices.append(index)
        self._indices = list(groups.values())
        return [
            TypeGroup(compiled, [records[index] for index in indices], self._budget)
            for compiled, indices in groups.items()
        ]

    def count(self, records: Sequence[Record]) -> int:
        """The number of fields of some nodes here."""
        types = [self._position.compiled(record.hierarchy, record.level) for record in records]
        names = [one.value_counts([record]) for one, record in zip(types, records, strict=True) if one.values]
        return sum([one.count for one in types]) + sum(names)

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        """Each node as a JSON object, in order."""
        if len(self.groups) == 1:
            return await self.groups[0].write(look_ahead)
        written = [b""] * sum(map(len, self._indices))
        for group, indices in zip(self.groups, self._indices, strict=True):
            for index, node in zip(indices, await group.write(look_ahead), strict=True):
                written[index] = node
        return written


class NodeResults:
    """The nodes that a field leads to, for each of some owners: a list of nodes, or one node or null."""

    def __init__(
        self, position: ResponsePosition, found: Sequence[Sequence[Record | None]], budget: Budget, *, many: bool
    ) -> None:
        self._found = found
        self._many = many
        records = [record for some in found for record in some if record is not None]
        self.positions = [PositionNodes(position, records, budget)]

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        nodes = iter(await self.positions[0].write(look_ahead))
        values = [[b"null" if record is None else next(nodes) for record in some] for some in self._found]
        if self._many:
            return [b"[" + b",".join(some) + b"]" for some in values]
        return [some[0] if some else b"null" for some in values]


class PageResults:
    """A page of a list for each of some owners, written as a connection."""

    def __init__(self, connection: Connection, pages: Sequence[Page], budget: Budget) -> None:
        self._connection = connection
        self._pages = pages
        self._nodes: dict[ConnectionField, PositionNodes] = {}
        # As of now: other requests, or a page that is here twice, may cache more of them while this one reads.
        self._cached: dict[ConnectionField, list[bytes | None]] = {}
        records = sum(map(len, map(_RECORDS, pages)))
        budget.spend_fields(sum([part.count(len(pages), records) for part in connection.parts]))
        for part, position in connection.positions.items():
            cached: list[Any] = [page.json_fields.get(part.number) for page in pages]
            found = [entry for entry in cached if entry is not None] if None in cached else cached
            budget.spend_fields(sum([fields for _, fields in found]))
            budget.spend_bytes(sum([len(json) for json, _ in found]))
            self._cached[part] = [entry and entry[0] for entry in cached]
            missing = [] if found is cached else list(compress(map(_RECORDS, pages), [e is None for e in cached]))
            self._nodes[part] = PositionNodes(position, list(chain.from_iterable(missing)), budget)
        self.positions = list(self._nodes.values())

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        columns = [(b"", await self._write_column(part, look_ahead)) for part in self._connection.parts]
        if len(self._pages) > CHUNK:
            await yield_to_loop()
        return objects(columns, len(self._pages))

    async def _write_column(self, part: ConnectionField, look_ahead: LookAhead) -> list[bytes]:
        """One field of every page, in order. Its page caches it where it holds nothing that was read for its nodes."""
        position = self._nodes.get(part)
        nodes = iter(()) if position is None else iter(await position.write(look_ahead))
        pages, cached = self._pages, self._cached.get(part) or [None] * len(self._pages)
        if None not in cached:
            return cast(list[bytes], cached)
        column: list[bytes] = []
        write = partial(_field, part, position, nodes)
        for start in range(0, len(pages), CHUNK):
            column += map(write, pages[start : start + CHUNK], cached[start : start + CHUNK])
            if start:
                await yield_to_loop()
        return column


def _field(
    part: ConnectionField, position: PositionNodes | None, nodes: Iterator[bytes], page: Page, cached: bytes | None
) -> bytes:
    """One field of a page, from its cache or from written nodes."""
    if cached is not None:
        return cached
    field = part.write(page, nodes)
    if position is not None and position.is_leaf:
        part.cache(page, field, position.count(page.records))
    return field
