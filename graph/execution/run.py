"""Run of a plan: reads its data level by level, then writes the response as bytes from the bottom up.

The objects of a response are held as `Rows`, by position and type; the first is Query itself. What a field leads to is
an iterator of its JSON for one owner after another, which takes the objects' JSON once these are written. The fields
and bytes of all that a level has are taken from the budget of the request, `Request.budget`, before the next one is
read. The error of a read is in the place of its result, and becomes a fault (`graph/execution/faults.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from itertools import chain, compress, islice, repeat
from operator import attrgetter, not_
from types import SimpleNamespace
from typing import Any, cast

from graphql.execution.values import VariableValues

from graph.execution.faults import NONE, Column, Faults, Tail, nulled_of
from graph.execution.json_writers import LeafWriter, ValueField, objects
from graph.execution.plan import (
    EMPTY,
    CompiledType,
    Connection,
    ConnectionPart,
    LookAhead,
    OtherField,
    Part,
    ReadField,
    ResponsePosition,
)
from graph.execution.plan_cache import BoundPlan
from graph.operation.context import Context
from graph.types.fields import unknown_level
from graph.types.lookups import RootsField, Target
from graph.types.search import SearchField
from resolvers.lists.arguments import Page, Relation
from resolvers.lookup import find_nodes
from resolvers.pages import is_refused, may_have_children
from resolvers.search.finder import FoundPage, Selected
from resolvers.session.budget import Budget
from store.concurrency import yield_to_loop
from store.model.records import Record

CHUNK = 256  # objects between two yields to the event loop
FAULTY_CHUNK = 16  # the same where there are errors, since each object with one takes as long as many others

_RECORDS = attrgetter("records")
_IS_NARROW = attrgetter("arguments.is_narrow")
_NOT_CACHED = None, 0
_RELATIONS = frozenset((Relation,))
_RESULTS = frozenset((Page, FoundPage, list))

Outcome = Any
"""A page, a list of objects, or the error in its place."""


class Rows:
    """The objects of one type at one position of the response, and what each of their fields leads to.

    `column` has the JSON of all objects at the position, of which these are at `places`. `parts` are written of each:
    leaf fields, and the next value that was `found` for a field. `failed` are those that are null because of a fault,
    `nulled` by field the owners for which what was found is.
    """

    __slots__ = ("column", "compiled", "failed", "found", "nulled", "parts", "places", "present", "records")

    def __init__(
        self, compiled: CompiledType | None, records: Sequence[Any], column: Column | None, places: Sequence[int]
    ) -> None:
        self.compiled, self.records, self.column, self.places = compiled, records, column, places
        self.parts: Sequence[tuple[bytes, Part]] = () if compiled is None else compiled.parts
        self.found: dict[ReadField | OtherField, Iterator[bytes]] = {}
        self.failed = self.nulled = NONE
        self.present: Sequence[Record] | None = None
        """The nodes that fields are read of, in place of written ones; empty where all of these are gone."""

    def part(self, owns: Sequence[object], childless: LeafWriter) -> "Rows":
        """Keep the nodes that own something, where `owns` is true. Returns the others, of which leaves are written."""
        own, others = self.divided(owns)
        self.records, self.places = own.records, own.places
        others.parts = [(b"", childless)]
        return others

    def divided(self, chosen: Sequence[object]) -> tuple["Rows", "Rows"]:
        """The objects where `chosen` is true, and the others."""

        def some(which: Sequence[object]) -> Rows:
            records, places = list(compress(self.records, which)), list(compress(self.places, which))
            return Rows(self.compiled, records, self.column, places)

        return some(chosen), some(list(map(not_, chosen)))

    def write(self, start: int, stop: int, variables: VariableValues, budget: Budget, faults: Faults) -> None:
        """Write a chunk of the objects as JSON; chunks have to be written in order."""
        assert self.column is not None  # noqa: S101 - only what all others are in has none
        records, json = self.records[start:stop], self.column.json
        values: Iterable[bytes] = ()
        columns: list[tuple[bytes, Iterable[bytes]]] = []
        for key, part in self.parts:
            if isinstance(part, LeafWriter):
                values = part.write(records, variables, budget, faults, self, start)
            else:
                values = self.found[part]
            columns.append((key, values))
        if self.found:
            values = objects(columns, len(records))
        if self.failed:
            values = [b"null" if n in self.failed else one for n, one in enumerate(values, start)]
        if len(self.records) == len(json):
            json[start:stop] = values
        else:
            for place, value in zip(self.places[start:stop], values, strict=True):
                json[place] = value

    def apply_faults(self) -> None:
        """Make null what was found for owners for which it may not be."""
        for field, owners in self.nulled.items():
            self.found[field] = _nulled(self.found[field], owners)


Readings = dict[Any, tuple[list[tuple[Any, Sequence[Any]]], list[tuple[Rows, ReadField]]]]
"""By batch function what it is asked for, and the fields of rows that take its results."""


class Run:
    """A run of a plan: the objects that were read, and the fields and bytes of theirs that are still to be spent.

    Raises ResponseTooLarge where a budget of the response is used up, and BudgetExceeded where that of reads is.
    """

    def __init__(self, look_ahead: LookAhead, context: Context) -> None:
        self._look_ahead, self._context, self._request = look_ahead, context, context.request
        self._fields, self._bytes = 0, 0
        self.faults = Faults()
        self._rows: list[Rows] = []
        """All objects, those of a level before the objects that they lead to."""
        self._level: list[Rows] = []
        """The objects that were read last."""
        self._has_objects = False
        """Whether there are objects that are no nodes, each of which may have many others, as a feed has."""

    async def query(self, bound: BoundPlan, others: Mapping[str, bytes]) -> bytes:
        """The response map with `data` alone; `others` are the fields of Query that graphql-core has executed."""
        query = Rows(bound.plan.query, [None], None, (0,))
        query.found |= {field: iter((others[field.key],)) for _, field in query.parts if isinstance(field, OtherField)}
        self._fields = bound.plan.query.count if bound.plan.query else 0
        await self._read_roots(bound, query)
        return b"".join((b'{"data":', *await self._object(query), b"}"))

    async def field(self, field: ReadField, nodes: Sequence[Record], present: Mapping[str, Record | None]) -> bytes:
        """The value of a field that graphql-core has resolved to these nodes, or one or none.

        `present` has by id the nodes that fields are read of in place of written ones, None where these are gone.
        """
        payload = Rows(None, [None], None, (0,))
        payload.parts = [(b"", field)]
        self._take(payload, field, [nodes])
        if present:
            level, self._level = self._level, []
            for rows in level:
                found = [present.get(record.id, record) for record in rows.records]
                gone, there = rows.divided([record is None for record in found])
                gone.present, there.present = (), [record for record in found if record is not None]
                self._level += [one for one in (gone, there) if one.records]
        return b"".join(await self._object(payload))

    async def _object(self, top: Rows) -> list[bytes]:
        """The JSON of the object that all others are in, of a payload without braces; in pieces, as it may be long."""
        await self._read_levels()
        await self._write()
        if top.nulled:
            top.apply_faults()
        written: list[bytes] = []
        variables, budget = self._look_ahead.variables, self._request.budget
        for key, part in top.parts:
            if isinstance(part, LeafWriter):
                (value,) = part.write(top.records, variables, budget, self.faults, top, 0)
            else:
                value = next(top.found[part])
            written += (b"," if written else b"", key, value)
        if top.failed:
            return [b"null"]
        return written if top.compiled is None or top.compiled.is_leaf else [b"{", *written, b"}"]

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _read_roots(self, bound: BoundPlan, query: Rows) -> None:
        """Read the fields of Query: all lookups in one call, in parallel with all others."""
        request = self._request
        calls: list[Any] = [self._call(root, given) for root, given in bound.called]
        if bound.lookups:
            calls.append(find_nodes(request, bound.lookups))
        outcomes: list[Any] = [*await self._request.scheduler.gather_outcomes(calls)] if calls else []
        found: Any = outcomes.pop() if bound.lookups else []
        left = None if isinstance(found, Exception) else iter(found)
        for root, targets in bound.looked_up:
            self._take(query, root, [found if left is None else self._looked_up(query, root, targets, left)])
        for (root, _), outcome in zip(bound.called, outcomes, strict=True):
            self._take(query, root, [outcome])
        for root, error in bound.invalid:
            self._take(query, root, [error])

    async def _call(self, root: ReadField, given: Any) -> Outcome:
        """The outcome of a field of Query that is no lookup."""
        request, resolve = self._request, root.reading
        if isinstance(resolve, RootsField):
            return await resolve.read(request, given)
        if isinstance(resolve, SearchField):
            below, page = self._look_ahead.selection(root.selected), root.connection
            selected = Selected(below, counts=False) if page is None else Selected(below, page.counts, page.has_total)
            return await resolve.find(request, given, selected)
        found = resolve(None, SimpleNamespace(context=self._context), **given)
        found = await found if isawaitable(found) else found
        return found if root.many else [] if found is None else [found]

    async def _read_levels(self) -> None:
        """Read all that the objects select, then what the objects found there select, to the bottom."""
        request = self._request
        while True:
            level, self._level = self._level, []
            self._rows += level
            readings: Readings = {}
            for rows in level:
                self._select(rows, readings)
            request.budget.spend_fields(self._fields)
            if self._bytes:
                request.budget.spend_bytes(self._bytes)
            self._fields = self._bytes = 0
            if not readings:
                return
            results = await self._request.scheduler.gather_outcomes(
                [read(request, asked) for read, (asked, _) in readings.items()]
            )
            size = 0
            for (_, takers), result in zip(readings.values(), results, strict=True):
                left = iter(repeat(result) if isinstance(result, Exception) else result)
                for rows, field in takers:
                    outcomes = list(islice(left, len(rows.records)))
                    self._take(rows, field, outcomes)
                    size += len(outcomes)
            if size > CHUNK:
                await yield_to_loop()

    def _select(self, rows: Rows, readings: Readings) -> None:
        """Count the fields of some objects, and add those that read. Nodes with nothing in their lists are apart."""
        compiled, look_ahead = rows.compiled, self._look_ahead
        assert compiled is not None  # noqa: S101 - all others are null
        self._fields += compiled.count * len(rows.records)
        if compiled.values:
            self._fields += compiled.value_counts(rows.records)
        if compiled.is_leaf:
            return
        asked = list(map(look_ahead.asked, compiled.reads))
        has_lists = compiled.childless is not None and rows.present is None and _RELATIONS.issuperset(map(type, asked))
        if has_lists and not (any(map(_IS_NARROW, asked)) or self._are_refused(rows, asked)):
            owns = may_have_children(self._request, rows.records)
            if not all(owns) and compiled.childless is not None:
                self._rows.append(rows.part(owns, compiled.childless))
                self._fields += compiled.empty_count * (len(owns) - len(rows.records))
        if not rows.records:
            return
        for field, arguments in zip(compiled.reads, asked, strict=True):
            if isinstance(arguments, Exception):
                self._take(rows, field, [arguments] * len(rows.records))
            elif rows.present is not None and not rows.present and field.reading.absent is not None:
                self._take(rows, field, [field.reading.absent] * len(rows.records))
            else:
                reading = field.reading
                questions, takers = readings.setdefault(reading.read, ([], []))
                owners = rows.present or rows.records
                questions.append((arguments, list(map(reading.owner, owners)) if reading.owner else owners))
                takers.append((rows, field))

    def _are_refused(self, rows: Rows, asked: Sequence[Relation]) -> bool:
        """Whether one of these lists is an error for all of some objects, which are of one level."""
        return any(one.arguments.where and is_refused(self._request, rows.records[0], one) for one in asked)

    # -- what was found ------------------------------------------------------------------------------------------------

    def _take(self, rows: Rows, field: ReadField, outcomes: list[Outcome]) -> None:
        """Take what a field leads to for each of some rows; an error is a fault of this field."""
        if not _RESULTS.issuperset(map(type, outcomes)) or field.error is not None:
            if (refusal := self._request.budget.refusal) is not None:
                raise refusal
            outcomes = [self._result(rows, field, number, outcome) for number, outcome in enumerate(outcomes)]
        if field.connection is not None:
            rows.found[field] = self._pages(rows, field, field.connection, outcomes)
        elif field.position is not None:
            rows.found[field] = self._objects(rows, field, field.position, outcomes)
        else:
            rows.found[field] = repeat(b"null", len(outcomes))

    def _result(self, rows: Rows, field: ReadField, number: int, outcome: Outcome) -> Any:
        """The result for a row, empty where there is none."""
        error = outcome if isinstance(outcome, Exception) else field.error
        if error is None:
            return outcome
        self._null(rows, field, number, (), error, field.nodes)
        return [] if field.connection is None else EMPTY

    def _looked_up(
        self, query: Rows, root: ReadField, targets: Sequence[Target], left: Iterator[Any]
    ) -> list[Record | None] | Exception:
        """The outcome of a field that looks nodes up: None for each that does not exist, or is an error of its own."""
        found: list[Any] = []
        for field, target in targets:
            one = target if target is None or isinstance(target, Exception) else next(left)
            found.append(field.checked(one) if isinstance(one, Record) else one)
        if not root.many:
            return found[0] if isinstance(found[0], Exception) else found
        for index, one in enumerate(found):
            if isinstance(one, Exception):
                self.faults.add(query, 0, (root.key, index), one, root.nodes)
                found[index] = None
        return found

    def _null(
        self, rows: Rows, field: ReadField, number: int, tail: Tail, error: Exception, nodes: Sequence[Any]
    ) -> None:
        """Make null what a field leads to for a row, because of an error at a path from the field on."""
        if number in rows.nulled.get(field, ()):
            return
        is_row = not field.is_nullable
        fault = self.faults.add(rows, number, (field.key, *tail), error, nodes, is_row=is_row)
        nulled_of(rows, field)[number] = tail, fault

    def _objects(self, rows: Rows, field: ReadField, position: ResponsePosition, found: list[Any]) -> Iterator[bytes]:
        """The JSON of what a field leads to, for each of some owners: a list of objects, or one object or null."""
        many = field.many
        records = list(filter(None, chain.from_iterable(found)))

        def origins() -> Iterator[tuple[int, Tail]]:
            for number, some in enumerate(found):
                yield from ((number, (place,) if many else ()) for place, one in enumerate(some) if one is not None)

        objects_: Iterator[bytes] = iter(self._add(position, records, Column(len(records), rows, field, origins)))
        if len(records) < sum(map(len, found)):
            present, places = objects_, chain.from_iterable(found)
            objects_ = (b"null" if one is None else next(present) for one in places)
        if many:
            return (b"[" + b",".join(islice(objects_, len(some))) + b"]" for some in found)
        return (next(objects_) if some else b"null" for some in found)

    def _pages(self, rows: Rows, field: ReadField, connection: Connection, pages: Sequence[Page]) -> Iterator[bytes]:
        """The JSON of a connection for each of some owners, whose pages these are."""
        columns: list[tuple[bytes, Iterable[bytes]]] = []
        fields = connection.page_count * len(pages) + connection.node_count * sum(map(len, map(_RECORDS, pages)))
        nulled = rows.nulled.get(field)
        if nulled:
            fields -= connection.page_count * len(nulled)
        for part in connection.parts:
            if part.facets is not None:
                columns.append((part.field.start, self._facets(rows, field, part, part.facets, pages)))
                continue
            if part.error is not None:
                self._fail_pages(rows, field, part, pages, part.error)
            if not part.positions:
                columns.append((part.field.start, map(part.field.write, pages, repeat(iter(())))))
                continue
            # As of now: other requests, or a page that is here twice, may cache more of them while this one reads.
            column: list[Any] = []
            missing: list[Page] = []
            numbers: list[int] = []
            for number, page in enumerate(pages):
                json, count = page.json_fields.get(part.field.number, _NOT_CACHED)
                column.append(json)
                if json is None:
                    missing.append(page)
                    numbers.append(number)
                else:
                    fields += count
                    self._bytes += len(json)
            written = self._written(rows, field, part, numbers, missing) if missing else iter(())
            columns.append((part.field.start, _filled(column, written) if missing else iter(column)))
        self._fields += fields
        return objects(columns, len(pages))

    def _written(
        self, rows: Rows, field: ReadField, part: ConnectionPart, numbers: Sequence[int], pages: Sequence[Page]
    ) -> Iterator[bytes]:
        """The JSON of a field of a connection for the pages of the owners with these numbers."""
        for page in pages:
            page.use()
        records = list(chain.from_iterable(map(_RECORDS, pages)))
        iterators: list[Iterator[bytes]] = []
        for inner, position in part.positions.items():
            column = Column(len(records), rows, field, partial(_origins, part, inner, numbers, pages))
            column.faulty = faulty = list[int]()
            iterators.append(iter(self._add(position, records, column)))
        if len(iterators) > 1:  # the node of an edge under several keys
            return map(part.field.write, pages, repeat(chain.from_iterable(zip(*iterators, strict=True))))

        def count(some: Sequence[Record]) -> int | None:
            return None if faulty else position.constant_count(some)

        return map(partial(part.field.cached, count, iterators[0]), pages)

    def _facets(
        self, rows: Rows, field: ReadField, part: ConnectionPart, writer: ValueField, pages: Sequence[Page]
    ) -> Iterable[bytes]:
        """The JSON of the facets of these pages; in place of an empty page, those of no node."""
        asked = self._look_ahead.facets(part)
        if isinstance(asked, Exception):
            self._fail_pages(rows, field, part, pages, asked)
            return repeat(b"null", len(pages))
        found = [page.facets.get(asked) or asked.of_nothing for page in pages]
        self._fields += sum(map(writer.count_of, found))
        broken = next((one for one in writer.fields if isinstance(one, ValueField) and one.error is not None), None)
        if broken is None:
            return map(writer.json, found)
        written: list[bytes] = []
        for number, facets in enumerate(found):
            place = next((place for place, one in enumerate(facets) if one.values), None)
            if place is not None:  # the first of the values that have the error
                tail = part.field.key, place, broken.key, 0
                self._null(rows, field, number, tail, cast(Exception, broken.error), part.nodes)
            written.append(writer.json(facets) if place is None else b"null")
        return written

    def _fail_pages(
        self, rows: Rows, field: ReadField, part: ConnectionPart, pages: Sequence[Page], error: Exception
    ) -> None:
        """Make null the pages whose edges, `pageInfo` or `facets` have an error in their selections or arguments."""
        for number, page in enumerate(pages):
            if page.records or part.field.name != "edges":
                tail = (part.field.key, 0) if part.field.name == "edges" else (part.field.key,)
                self._null(rows, field, number, tail, error, part.nodes)

    def _add(self, position: ResponsePosition, records: Sequence[Any], column: Column) -> list[bytes]:
        """Add the objects at a position. Returns a list that will have their JSON, in order, once they are written."""
        kinds = list(map(position.kind_of, records))
        distinct = set(kinds)
        if len(distinct) == 1:
            self._add_rows(position, position.type_of(kinds[0]), records, column, range(len(records)))
            return column.json
        types = {kind: position.type_of(kind) for kind in distinct}
        places: dict[int, list[int]] = {}
        for place, kind in enumerate(kinds):
            places.setdefault(id(types[kind]), []).append(place)
        for some in places.values():
            self._add_rows(position, types[kinds[some[0]]], [records[place] for place in some], column, some)
        return column.json

    def _add_rows(
        self, position: ResponsePosition, compiled: Any, records: Sequence[Any], column: Column, places: Sequence[int]
    ) -> None:
        """Add the objects of one type; those without one are null."""
        if isinstance(compiled, CompiledType):
            self._has_objects |= bool(compiled.values) and not position.holds_nodes
            self._level.append(Rows(compiled, records, column, places))
            return
        rows = Rows(None, records, column, places)
        for index, record in enumerate(records):
            self.faults.add(rows, index, (), compiled or unknown_level(record), position.nodes, is_row=True)
            column.json[places[index]] = b"null"

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Write all objects, those of the deepest level first; those that are written are dropped, with all below them.

        Fewer than CHUNK objects are written without a pause.
        """
        variables, budget, written = self._look_ahead.variables, self._request.budget, 0
        while self._rows:
            rows = self._rows.pop()
            if rows.nulled:
                rows.apply_faults()
            start, size = 0, len(rows.records)
            while start < size:
                known = len(self.faults.kept)
                stop = min(size, start + (FAULTY_CHUNK if known else CHUNK))
                rows.write(start, stop, variables, budget, self.faults)
                written += stop - start
                start = stop
                if written >= CHUNK or self._has_objects or len(self.faults.kept) > known:
                    written = 0
                    await yield_to_loop()


def _origins(
    part: ConnectionPart, inner: str, numbers: Sequence[int], pages: Sequence[Page]
) -> Iterator[tuple[int, Tail]]:
    """The owner's number, and the path in its page, of each object of some pages."""
    for number, page in zip(numbers, pages, strict=True):
        for index in range(len(page.records)):
            yield number, part.field.tail(inner, index)


def _nulled(values: Iterable[bytes], owners: Mapping[int, Any]) -> Iterator[bytes]:
    """Values, null for some owners."""
    return (b"null" if number in owners else value for number, value in enumerate(values))


def _filled(column: Iterable[bytes | None], written: Iterator[bytes]) -> Iterator[bytes]:
    """A column with what is written in place of None."""
    return (next(written) if json is None else json for json in column)
