"""Response nodes: the nodes of a response while it is made, by position and type, and their JSON.

They are a `PageResults` or `NodeResults` for each field that returns nodes, a `PositionNodes` for each position in it,
and a `TypeGroup` for each type there. Each of them writes its rows: bytes, or None for a row that an error below it
makes null though it may not be, so that what is around it is null.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, chain, compress, islice
from operator import attrgetter
from typing import Any

import orjson
from graphql import GraphQLError, is_non_null_type

from graph.compiler.field_errors import FieldErrors, Rows, Step, steps_below
from graph.compiler.json_writers import ConnectionField, LeafField, LeafWriter, objects
from graph.compiler.operation_plan import (
    AboveField,
    CompiledType,
    Connection,
    InPlaceField,
    ListField,
    NodesField,
    Place,
    ResponsePosition,
)
from graph.operation.lookahead import LookAhead
from graph.types.node_fields import label
from resolvers.lists import may_have_children
from resolvers.outcomes import Outcome, errors_in, is_error
from resolvers.planning.page import Page
from resolvers.planning.relations import Relation
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.errors import BadData
from store.model.keys import hierarchy_of
from store.model.records import Record

FEW = 8  # nodes that are written before their bytes are counted, since each may have 400 KB under 30 aliases
CHUNK = 256  # nodes between two yields to the event loop

_PK, _LEVEL, _RECORDS = attrgetter("pk"), attrgetter("level"), attrgetter("records")

Json = bytes | None
"""A value as JSON, or None where an error makes it null though it may not be."""


class Shared:
    """What the parts of one response share; `groups` are those whose relations are still to be read."""

    def __init__(self, request: Request, look_ahead: LookAhead) -> None:
        self.request, self.look_ahead = request, look_ahead
        self.errors = FieldErrors()
        self.groups: list[TypeGroup] = []


class TypeGroup:
    """The nodes of one type at one position, and what each of their relations leads to.

    `owners` are the nodes whose relations have to be read, and `owner_rows` their rows; all others are written as
    `childless`. `listed` are the relations of its lists, or the errors of their arguments.
    """

    listed: Sequence[Outcome[Relation]] = ()
    _above: "Above | None" = None
    _owns: Sequence[object] | None = None

    def __init__(
        self, shared: Shared, compiled: CompiledType, records: Sequence[Record], indices: Sequence[int]
    ) -> None:
        """`indices` are those of the records at their position."""
        budget = shared.request.budget
        budget.spend_fields(compiled.count * len(records))
        if compiled.values:
            budget.spend_fields(compiled.value_counts(records))
        self.compiled = compiled
        self.owners = self._records = records
        self.owner_rows: Sequence[int] = range(len(records))
        self.found: dict[ListField | AboveField | InPlaceField, FieldRows] = {}
        if not compiled.is_leaf:
            shared.groups.append(self)
        self.is_cacheable = compiled.is_leaf and not compiled.varies
        self._shared = shared
        self._budget = budget
        self._indices = indices

    def link(self, above: "Above") -> None:
        """Let the rows here have paths: `above` gives the place of a node of this position."""
        self._above = above
        for results in self.found.values():
            results.link(self)

    def path(self, row: int) -> list[Step]:
        return _placed(self._above, self._indices[row])

    def place_of(self, field: InPlaceField, owner: int) -> list[Step]:
        """The place of a field of one of the owners."""
        return [*self.path(self.owner_rows[owner]), field.place.step]

    def part(self) -> None:
        """Restrict the owners to nodes that may have something in the selected lists."""
        compiled = self.compiled
        self.listed = list(map(self._shared.look_ahead.relation_or_error, compiled.listed))
        if compiled.childless is None:
            return
        for relation in self.listed:
            # Even an empty list has to be read, or it has invalid arguments, which are an error of every owner.
            if is_error(relation) or relation.window.is_narrow:
                return
        self._owns = may_have_children(self._shared.request, self._records)
        if not all(self._owns):
            self.owners = list(compress(self._records, self._owns))
            self.owner_rows = list(compress(range(len(self._records)), self._owns))
            self._budget.spend_fields(compiled.empty_count * (len(self._records) - len(self.owners)))

    async def write(self) -> list[Json]:
        """Each node as a JSON object."""
        if self.compiled.is_leaf:
            if not self.compiled.leaves:  # every field was skipped
                return [b"{}"] * len(self._records)
            return await self._leaves(self.compiled.leaves[0], self._records, self.owner_rows)
        if len(self.owners) == len(self._records) or self._owns is None or self.compiled.childless is None:
            return await self._write_owners()
        owners = iter(await self._write_owners())
        rows = [row for row, owns in enumerate(self._owns) if not owns]
        childless = [self._records[row] for row in rows]
        others = iter(await self._leaves(self.compiled.childless, childless, rows))
        return [next(owners) if owns else next(others) for owns in self._owns]

    async def _write_owners(self) -> list[Json]:
        columns: list[tuple[bytes, list[Json]]] = []
        for part in self.compiled.parts:
            if isinstance(part, LeafWriter):
                columns.append((b"", await self._leaves(part, self.owners, self.owner_rows)))
            else:
                columns.append((part.place.start, await self.found[part].write()))
        if len(self.owners) > CHUNK:
            await yield_to_loop()
        return _joined(columns, len(self.owners), self._shared.errors)

    async def _leaves(self, writer: LeafWriter, records: Sequence[Record], rows: Sequence[int]) -> list[Json]:
        """The JSON of a run of leaf fields, of a few nodes at a time: they take memory before their bytes are
        counted.
        """
        write = writer.bound(self._shared.look_ahead.variables) if writer.varies else writer
        if len(records) <= FEW:
            return self._at_once(writer, write, records, rows)
        written: list[Json] = []
        for start in range(0, len(records), FEW):
            some = slice(start, start + FEW)
            written += self._at_once(writer, write, records[some], rows[some])
            if start and start % CHUNK == 0:
                await yield_to_loop()
        return written

    def _at_once(self, writer: LeafWriter, write: Any, records: Sequence[Record], rows: Sequence[int]) -> list[Json]:
        try:
            written: list[Json] = list(map(write, records))
        except Exception:
            written = [self._one(writer, write, record, row) for record, row in zip(records, rows, strict=True)]
            self._budget.spend_bytes(sum([len(json) for json in written if json is not None]))
        else:
            self._budget.spend_bytes(sum(map(len, written)))  # type: ignore[arg-type]  # there is no None
        return written

    def _one(self, writer: LeafWriter, write: Any, record: Record, row: int) -> Json:
        try:
            return write(record)  # type: ignore[no-any-return]
        except Exception:
            self.is_cacheable = False
            return writer.one_by_one(record, self._shared.look_ahead.variables, partial(self._report, row))

    def _report(self, row: int, field: LeafField, error: Exception, below: Sequence[str | int]) -> None:
        place = Step(self.compiled.ranks[field.key], field.key, not is_non_null_type(field.kind))
        self._shared.errors.add(self, [row], field.nodes, error, place, *steps_below(below))


class FailedNodes:
    """Nodes at one position that are an error each: those of a level that no class defines, and those whose fields have
    directives that the variables do not fit.
    """

    compiled = None
    is_cacheable = False

    def __init__(
        self, shared: Shared, place: Place, error: GraphQLError | None, records: Sequence[Record],
        indices: Sequence[int],
    ) -> None:  # fmt: skip
        self._indices = indices
        self._above: Above | None = None
        for row, record in enumerate(records):
            unknown = BadData(f"{label(record)}: unknown level {record.level}.")
            shared.errors.add(self, [row], place.nodes, error or unknown)

    def link(self, above: "Above") -> None:
        self._above = above

    def path(self, row: int) -> list[Step]:
        return _placed(self._above, self._indices[row])

    async def write(self) -> list[Json]:
        return [None] * len(self._indices)


class PositionNodes:
    """The nodes at one position of this response, in order, grouped by type."""

    def __init__(self, shared: Shared, position: ResponsePosition, place: Place, records: Sequence[Record]) -> None:
        self._shared = shared
        self._place = place
        self._position = position
        self._grouping: list[Sequence[int]] = []
        self.groups: list[TypeGroup | FailedNodes] = []
        if len(records) <= 1:
            for record in records:
                self._add(position.compiled(hierarchy_of(record.pk), record.level), records, (0,))
            return
        levels = set(map(_LEVEL, records))
        # Most positions hold nodes of one level, which needs no look at each node by itself.
        if len(levels) == 1 and len(hierarchies := {hierarchy_of(pk) for pk in set(map(_PK, records))}) == 1:
            self._add(position.compiled(*hierarchies, *levels), records, range(len(records)))
            return
        by_tree: dict[tuple[str, str], list[int]] = {}  # most records are of few trees, and a tree has one hierarchy
        groups: dict[CompiledType | GraphQLError | None, list[int]] = {}
        for index, record in enumerate(records):
            key = (record.pk, record.level)
            indices = by_tree.get(key)
            if indices is None:
                compiled = position.compiled(hierarchy_of(record.pk), record.level)
                indices = by_tree[key] = groups.setdefault(compiled, [])
            indices.append(index)
        for compiled, indices in groups.items():
            self._add(compiled, [records[index] for index in indices], indices)

    def _add(
        self, compiled: CompiledType | GraphQLError | None, records: Sequence[Record], indices: Sequence[int]
    ) -> None:
        self._grouping.append(indices)
        if isinstance(compiled, CompiledType):
            self.groups.append(TypeGroup(self._shared, compiled, records, indices))
        else:
            self.groups.append(FailedNodes(self._shared, self._place, compiled, records, indices))

    def link(self, above: "Above") -> None:
        for group in self.groups:
            group.link(above)

    @property
    def is_cacheable(self) -> bool:
        """Whether the JSON of its nodes may be cached with a page: it is theirs alone, and without errors."""
        return all(group.is_cacheable for group in self.groups)

    def count(self, records: Sequence[Record]) -> int:
        """The number of fields of some nodes here."""
        types = [self._position.compiled(record.hierarchy, record.level) for record in records]
        counts = [
            one.count + (one.value_counts([record]) if one.values else 0)
            for one, record in zip(types, records, strict=True)
            if isinstance(one, CompiledType)
        ]
        return sum(counts)

    async def write(self) -> list[Json]:
        """Each node as a JSON object, in order."""
        if len(self.groups) == 1:
            return await self.groups[0].write()
        written: list[Json] = [b""] * sum(map(len, self._grouping))
        for group, indices in zip(self.groups, self._grouping, strict=True):
            for index, node in zip(indices, await group.write(), strict=True):
                written[index] = node
        return written


Above = Callable[[int], list[Step]]
"""Gives the place of a node in the response by its index at its position."""


def _placed(above: Above | None, index: int) -> list[Step]:
    assert above is not None  # paths are asked for after `link`  # noqa: S101
    return above(index)


class FieldRows:
    """A field of some owners: its place in the response, and the errors that it has for some of them.

    What is below it is linked to it once paths are needed: otherwise each response would be a cycle of references,
    which only the garbage collector ends.
    """

    positions: Sequence[PositionNodes] = ()

    def __init__(self, shared: Shared, rows: Sequence[int], place: Place) -> None:
        """`rows` are those of the owners."""
        self._shared = shared
        self._above: Above | None = None
        self._rows = rows
        self._place = place

    def link(self, owner: Rows) -> None:
        """Let all rows here and below have paths."""
        self._above = owner.path

    def path(self, row: int) -> list[Step]:
        """The place of the field of an owner, by the owner's index."""
        return [*_placed(self._above, self._rows[row]), self._place.step]

    async def write(self) -> list[Json]:
        raise NotImplementedError

    def _without_errors(self, found: Sequence[Any]) -> list[int] | None:
        """The indices of what is no error, after all others were reported; None if there is no error."""
        failed = errors_in(found)
        if not failed:
            return None
        by_error: dict[int, list[int]] = {}  # one error of a batch is that of many rows
        for index in failed:
            by_error.setdefault(id(found[index]), []).append(index)
        for indices in by_error.values():
            self._fail(indices, found[indices[0]])
        return [index for index, one in enumerate(found) if not is_error(one)]

    def _fail(self, indices: Sequence[int], error: Exception, *below: Step, place: Place | None = None) -> None:
        self._shared.errors.add(self, indices, (place or self._place).nodes, error, *below)


class NodeResults(FieldRows):
    """The nodes that a field leads to, for each of some owners: a list of nodes, or one node or null."""

    def __init__(
        self, shared: Shared, rows: Sequence[int], place: Place, position: ResponsePosition,
        found: Sequence[Outcome[Sequence[Outcome[Record | None]]]], *, many: bool,
    ) -> None:  # fmt: skip
        """In `found`, an error in the place of some nodes makes the field null, one in the place of a node this
        node.
        """
        super().__init__(shared, rows, place)
        self._found = found
        self._many = many
        kept = self._without_errors(found)
        self._kept: Sequence[int] = range(len(found)) if kept is None else kept
        lists: Any = found if kept is None else [found[index] for index in kept]
        nodes = list(chain.from_iterable(lists))
        records: Any = nodes
        self._are_all = set(map(type, nodes)) <= {Record}
        if not self._are_all:
            records = [one for one in nodes if isinstance(one, Record)]
            self._report_nodes()
        self.positions = [PositionNodes(shared, position, place, records)]

    def _report_nodes(self) -> None:
        for index in self._kept:
            for place, one in enumerate(self._list(index)):
                if is_error(one):
                    self._fail([index], one, *self._item(place))

    def _list(self, index: int) -> Sequence[Outcome[Record | None]]:
        return self._found[index]  # type: ignore[return-value]  # those that are kept are no errors

    def link(self, owner: Rows) -> None:
        super().link(owner)
        for position in self.positions:
            position.link(self._node_path)

    def _node_path(self, index: int) -> list[Step]:
        owner, place = self._places[index]
        return [*self.path(owner), *self._item(place)]

    def _item(self, place: int) -> list[Step]:
        return [Step(place, place, self._place.item is not None)] if self._many else []

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """For each node the index of its owner, and its own in the list."""
        return [
            (index, n) for index in self._kept for n, one in enumerate(self._list(index)) if isinstance(one, Record)
        ]

    async def write(self) -> list[Json]:
        nodes = iter(await self.positions[0].write())
        written: list[Json] = [self._place.null] * len(self._found)
        for index in self._kept:
            written[index] = self._written(self._list(index), nodes)
        return written

    def _written(self, some: Sequence[Outcome[Record | None]], nodes: Iterator[Json]) -> Json:
        if not self._many:
            (one,) = some or (None,)
            if one is None:
                return b"null"
            json = None if is_error(one) else next(nodes)
            return self._place.null if json is None else json
        values: Any
        if self._are_all and not self._shared.errors.exist:
            values = islice(nodes, len(some))
            return b"[" + b",".join(values) + b"]"
        values = [
            b"null" if one is None else (None if is_error(one) else next(nodes)) or self._place.item for one in some
        ]
        return self._place.null if None in values else b"[" + b",".join(values) + b"]"


class PageResults(FieldRows):
    """A page of a list for each of some owners, written as a connection."""

    def __init__(
        self, shared: Shared, rows: Sequence[int], place: Place, connection: Connection,
        found: Sequence[Outcome[Page]],
    ) -> None:  # fmt: skip
        super().__init__(shared, rows, place)
        budget = shared.request.budget
        self._connection = connection
        self._size = len(found)
        kept = self._without_errors(found)
        self._kept: Sequence[int] = range(len(found)) if kept is None else kept
        pages: Any = found if kept is None else [found[index] for index in kept]
        self._pages: Sequence[Page] = pages
        if connection.totals:
            self._report_totals()
        self._nodes: dict[ConnectionField, list[PositionNodes]] = {}
        # As of now: other requests, or a page that is here twice, may cache more of them while this one reads.
        self._cached: dict[ConnectionField, list[bytes | None]] = {}
        count = len(pages) * connection.page_count
        if connection.record_count:
            count += connection.record_count * sum(map(len, map(_RECORDS, pages)))
        self.positions: list[PositionNodes] = []
        for part, fields in connection.positions.items():
            cached: list[bytes | None] = []
            size, nodes = 0, []
            for page in pages:
                if (entry := page.json_fields.get(part.number)) is None:
                    cached.append(None)
                    nodes += page.records
                else:
                    cached.append(entry[0])
                    size += len(entry[0])
                    count += entry[1]
            budget.spend_bytes(size)
            self._cached[part] = cached
            if None in cached:
                self._nodes[part] = [PositionNodes(shared, one.position, one.place, nodes) for one in fields]
                self.positions += self._nodes[part]
        budget.spend_fields(count)

    def link(self, owner: Rows) -> None:
        super().link(owner)
        for part, positions in self._nodes.items():
            for field, position in zip(self._connection.positions[part], positions, strict=True):
                position.link(partial(self._node_path, part, field))

    def _report_totals(self) -> None:
        """A count that failed takes nothing else away."""
        for part in self._connection.totals:
            place = self._connection.places[part]
            for index, page in zip(self._kept, self._pages, strict=True):
                if is_error(page.total):
                    self._fail([index], page.total, place.step, place=place)

    def _node_path(self, part: ConnectionField, field: NodesField, index: int) -> list[Step]:
        missing = [n for n, json in enumerate(self._cached[part]) if json is None]
        ends = list(accumulate(len(self._pages[n].records) for n in missing))
        which = bisect_right(ends, index)
        page = missing[which]
        place = index - (ends[which] - len(self._pages[page].records))
        return [
            *self.path(self._kept[page]), self._connection.places[part].step, Step(place, place, may_be_null=False),
            *field.below,
        ]  # fmt: skip

    async def write(self) -> list[Json]:
        columns: list[tuple[bytes, list[Json]]] = []
        for part in self._connection.parts:
            columns.append((b"", await self._write_column(part)))
        if len(self._pages) > CHUNK:
            await yield_to_loop()
        written = _joined(columns, len(self._pages), self._shared.errors)
        if not self._shared.errors.exist:
            return written
        spread: list[Json] = [self._place.null] * self._size
        for index, json in zip(self._kept, written, strict=True):
            spread[index] = self._place.null if json is None else json
        return spread

    async def _write_column(self, part: ConnectionField) -> list[Json]:
        """One field of every page, in order. Its page caches it where it holds nothing that was read for its nodes."""
        pages, cached = self._pages, self._cached.get(part) or [None] * len(self._pages)
        if None not in cached:
            return cached
        positions = self._nodes.get(part, [])
        nodes = [iter(await position.write()) for position in positions]
        column: list[Json] = []
        write = partial(self._field, part, positions, nodes)
        for start in range(0, len(pages), CHUNK):
            column += map(write, pages[start : start + CHUNK], cached[start : start + CHUNK])
            if start:
                await yield_to_loop()
        return column

    def _field(
        self, part: ConnectionField, positions: Sequence[PositionNodes], nodes: Sequence[Iterator[Any]], page: Page,
        cached: bytes | None,
    ) -> Json:  # fmt: skip
        """One field of a page, from its cache or from written nodes."""
        if cached is not None:
            return cached
        if self._shared.errors.exist:
            some = [list(islice(one, len(page.records))) for one in nodes]
            if any(None in one for one in some):
                return self._connection.places[part].null
            nodes = list(map(iter, some))
        field = part.write(page, *nodes)
        if positions and all(position.is_cacheable for position in positions):
            part.cache(page, field, sum([position.count(page.records) for position in positions]))
        return field


class InPlaceResults(FieldRows):
    """The values of a field that graphql-core has executed for each of some owners."""

    def __init__(self, shared: Shared, rows: Sequence[int], place: Place, values: Sequence[Any]) -> None:
        super().__init__(shared, rows, place)
        self._values = values

    async def write(self) -> list[Json]:
        return [self._json(index, value) for index, value in enumerate(self._values)]

    def _json(self, index: int, value: Any) -> Json:
        if is_error(value):  # of a field that may not be null; all others are reported by now
            self._report(index, value)
            return self._place.null
        try:
            json = orjson.dumps(value)
        except Exception as error:  # a text that UTF-8 has no form for
            self._fail([index], error)
            return self._place.null
        self._shared.request.budget.spend_bytes(len(json))
        return json

    def _report(self, index: int, error: Exception) -> None:
        if isinstance(error, GraphQLError) and error.path is not None:
            self._shared.errors.add_located(partial(self.path, index), error)
        else:
            self._fail([index], error)


def _joined(columns: Sequence[tuple[bytes, list[Json]]], size: int, errors: FieldErrors) -> list[Json]:
    """So many JSON objects from their columns, None for each that has a None."""
    if not errors.exist or not any(None in column for _, column in columns):
        return objects(columns, size)  # type: ignore[arg-type, return-value]  # there is no None
    failed = {row for _, column in columns for row, json in enumerate(column) if json is None}
    whole = [(key, [json or b"" for json in column]) for key, column in columns]
    return [None if row in failed else json for row, json in enumerate(objects(whole, size))]
