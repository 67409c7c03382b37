"""Response nodes: the nodes of one response by position and type, and the JSON that is written of them."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, compress
from operator import attrgetter, itemgetter
from typing import Any, cast

from graph.compiler.connection_writer import ConnectionField, key_of, objects
from graph.compiler.leaf_codegen import LeafWriter
from graph.compiler.operation_plan import AboveField, CompiledType, Connection, ListField, ResponsePosition
from graph.operation.lookahead import LookAhead
from resolvers.pages import Page
from resolvers.restricted_lists import have_lists
from resolvers.session.budget import Budget
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.model.keys import hierarchy_of
from store.model.records import Record

FEW = 8  # nodes that are written before their bytes are counted, since each may have 400 KB under 30 aliases
CHUNK = 256  # nodes between two yields to the event loop

_PK, _LEVEL, _RECORDS = attrgetter("pk"), attrgetter("level"), attrgetter("records")
_FIRST: Any = itemgetter(0)
_SECOND: Any = itemgetter(1)


class TypeGroup:
    """The nodes of one type at one position, and the nodes that each of their relations leads to.

    `owners` are the nodes whose relations have to be read; all others are written as `childless`.
    """

    def __init__(self, compiled: CompiledType, records: Sequence[Record], budget: Budget) -> None:
        budget.spend_fields(compiled.count * len(records))
        self.compiled = compiled
        self.owners = self._records = records
        self.found: dict[ListField | AboveField, PageResults | NodeResults] = {}
        self._budget = budget
        self._owns: Sequence[object] | None = None

    def part(self, request: Request, look_ahead: LookAhead) -> None:
        """Restrict the owners to nodes that may have something in the selected lists."""
        if self.compiled.childless is None or any(
            look_ahead.relation(field.relation).window.is_narrow for field in self.compiled.lists
        ):
            return
        self._owns = have_lists(request, self._records)
        self.owners = list(compress(self._records, self._owns))
        self._budget.spend_fields(self.compiled.empty_count * (len(self._records) - len(self.owners)))

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        """Each node as a JSON object."""
        if self.compiled.is_leaf:
            leaves = self.compiled.leaves
            write = leaves[0].bound(look_ahead.variables) if leaves else _empty
            few = len(self._records) <= FEW
            return self._at_once(write, self._records) if few else await self._in_chunks(write, self._records)
        if self._owns is None or self.compiled.childless is None:
            return await self._write_owners(look_ahead)
        owners = iter(await self._write_owners(look_ahead))
        childless = [record for record, owns in zip(self._records, self._owns, strict=True) if not owns]
        others = iter(await self._in_chunks(self.compiled.childless.bound(look_ahead.variables), childless))
        return [next(owners) if owns else next(others) for owns in self._owns]

    async def _write_owners(self, look_ahead: LookAhead) -> list[bytes]:
        owners = self.owners
        columns: list[tuple[bytes, list[bytes]]] = []
        for part in self.compiled.parts:
            if not isinstance(part, LeafWriter):
                columns.append((key_of(part.key), await self.found[part].write(look_ahead)))
            elif len(owners) <= FEW:
                columns.append((b"", self._at_once(part.bound(look_ahead.variables), owners)))
            else:
                columns.append((b"", await self._in_chunks(part.bound(look_ahead.variables), owners)))
        if len(self.owners) > CHUNK:
            await yield_to_loop()
        return objects(columns, len(self.owners))

    def _at_once(self, write: Any, records: Sequence[Record]) -> list[bytes]:
        """The JSON of a few nodes."""
        written = list(map(write, records))
        self._budget.spend_bytes(sum(map(len, written)))
        return written

    async def _in_chunks(self, write: Any, records: Sequence[Record]) -> list[bytes]:
        """The JSON of many nodes, of which a few at a time take memory before their bytes are counted."""
        written: list[bytes] = []
        for start in range(0, len(records), FEW):
            written += self._at_once(write, records[start : start + FEW])
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
            self.groups = [
                TypeGroup(position.compiled(record.hierarchy, record.level), records, budget) for record in records
            ]
        else:
            self.groups = self._grouped(position, records)
        self.is_leaf = all(group.compiled.is_leaf and not group.compiled.varies for group in self.groups)

    def _grouped(self, position: ResponsePosition, records: Sequence[Record]) -> list[TypeGroup]:
        # Most positions hold nodes of one level, which needs no look at each node by itself.
        hierarchies = {hierarchy_of(pk) for pk in set(map(_PK, records))}
        levels = set(map(_LEVEL, records))
        if len(hierarchies) == len(levels) == 1:
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
        return sum([self._position.compiled(record.hierarchy, record.level).count for record in records])

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
        self._nodes = PositionNodes(position, records, budget)

    @property
    def positions(self) -> list[PositionNodes]:
        return [self._nodes]

    async def write(self, look_ahead: LookAhead) -> list[bytes]:
        nodes = iter(await self._nodes.write(look_ahead))
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
            cached = [page.told.get(part.number) for page in pages]
            found = [entry for entry in cached if entry is not None] if None in cached else cached
            budget.spend_fields(sum(map(_SECOND, found)))
            budget.spend_bytes(sum(map(len, map(_FIRST, found))))
            if len(found) == len(cached):
                self._cached[part], missing = list(map(_FIRST, found)), []
            else:
                self._cached[part] = [None if entry is None else entry[0] for entry in cached]
                missing = [page.records for page, entry in zip(pages, cached, strict=True) if entry is None]
            self._nodes[part] = PositionNodes(position, list(chain.from_iterable(missing)), budget)

    @property
    def positions(self) -> list[PositionNodes]:
        return list(self._nodes.values())

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


def _empty(record: Record) -> bytes:
    """A node of which every field was skipped."""
    return b"{}"
