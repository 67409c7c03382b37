"""Run of a plan: `run` reads a bound plan's data level by level, then writes the response as bytes from the bottom up.
`run_beside` does so concurrently with fields of Query that are interpreted, and returns the values of all of them.

The nodes of a response are held as `Rows`, by position and type. What a relation leads to is an iterator of its JSON
for one owner after another, which takes the nodes' JSON once these are written. The fields and bytes of all that a
level has are taken from the budget of the request, `Request.budget`, before the next one is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, compress, islice, repeat
from operator import attrgetter, not_
from typing import Any, cast

from graphql import ExecutionResult
from graphql.execution.values import VariableValues
from orjson import Fragment

from graph.execution.interpreter import Executor
from graph.execution.json_writers import Constant, LeafWriter, key_of, objects
from graph.execution.plan import KIND, AboveField, CompiledType, Connection, ListField, ResponsePosition
from graph.execution.plan_cache import BoundPlan
from graph.operation.context import Context
from resolvers.ancestors import read_ancestors
from resolvers.lists.arguments import Page, Relation, RelationKind
from resolvers.lookup import find_nodes
from resolvers.pages import may_have_children, read_lists
from resolvers.search.finder import Selected
from resolvers.session.budget import Budget, gather_outcomes, raise_first_error
from resolvers.trees import read_roots
from store.concurrency import yield_to_loop
from store.model.keys import hierarchy_of
from store.model.records import Record

CHUNK = 256  # nodes between two yields to the event loop

_RECORDS = attrgetter("records")
_RELATION, _IS_NARROW = attrgetter("relation"), attrgetter("arguments.is_narrow")
_NOT_CACHED = None, 0


async def run(bound: BoundPlan, context: Context) -> bytes:
    """The response as JSON. Raises UnsupportedByPlan, ResponseTooLarge, and the errors of the batch functions."""
    written: list[bytes] = []  # joined once, since it may be long
    for key, value in (await _Run(bound, context).values()).items():
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
        calls.append(_Run(bound, context).values())
    outcomes: list[Any] = await gather_outcomes(calls)  # concurrently, since fields of users may wait for other things
    raise_first_error(outcomes)
    interpreted, *others = outcomes
    compiled = {key: Fragment(value) for values in others for key, value in values.items()}
    data = interpreted and {key: (compiled if key in compiled else interpreted)[key] for key in bound.plan.grouped}
    return ExecutionResult(data, executor.collected_errors.errors or None)


class Rows:
    """The nodes of one type at one position of the response, and what each of their relations leads to.

    `json` is that of all nodes at the position, of which these are at `places`. `parts` are written of each: leaf
    fields, and the next value that was `found` for a relation.
    """

    __slots__ = ("compiled", "found", "json", "parts", "places", "records")

    def __init__(
        self, compiled: CompiledType, records: Sequence[Record], json: list[bytes], places: Sequence[int]
    ) -> None:
        self.compiled, self.records, self.json, self.places = compiled, records, json, places
        self.parts = compiled.parts
        self.found: dict[ListField | AboveField, Iterator[bytes]] = {}

    def part(self, owns: Sequence[object], childless: LeafWriter) -> "Rows":
        """Keep the nodes that own something, where `owns` is true. Returns the others, of which leaves are written."""
        others = Rows(self.compiled, self.records, self.json, self.places)
        others.parts = [(b"", childless)]
        for rows, chosen in ((others, list(map(not_, owns))), (self, owns)):
            rows.records, rows.places = list(compress(rows.records, chosen)), list(compress(rows.places, chosen))
        return others

    def write(self, start: int, variables: VariableValues, budget: Budget) -> None:
        """Write a chunk of the nodes as JSON objects; chunks have to be written in order."""
        records = self.records[start : start + CHUNK]
        values: Iterable[bytes] = ()
        columns: list[tuple[bytes, Iterable[bytes]]] = []
        for key, part in self.parts:
            values = part.write(records, variables, budget) if isinstance(part, LeafWriter) else self.found[part]
            columns.append((key, values))
        if self.found:
            values = objects(columns, len(records))
        if len(self.records) == len(self.json):
            self.json[start : start + CHUNK] = values
        else:
            for place, value in zip(self.places[start : start + CHUNK], values, strict=True):
                self.json[place] = value


Listed = tuple[Rows, ListField, Relation]
Above = tuple[Rows, AboveField, Relation]


class _Run:
    """A run of a plan: the nodes that were read, and the fields and bytes of theirs that are still to be spent."""

    def __init__(self, bound: BoundPlan, context: Context) -> None:
        self._bound, self._look_ahead, self._request = bound, bound.look_ahead, context.request
        self._fields, self._bytes = bound.count, 0
        self._rows: list[Rows] = []
        """All nodes, those of a level before the nodes that they lead to."""
        self._level: list[Rows] = []
        """The nodes that were read last."""

    async def values(self) -> dict[str, bytes]:
        """The compiled fields of Query as JSON, by their keys."""
        found = await self._read_roots()
        await self._read_levels()
        await self._write()
        values: dict[str, bytes] = {}
        for root in self._bound.roots:
            values[root.key] = root.json if isinstance(root, Constant) else next(found[root.key])
        return values

    async def _read_roots(self) -> dict[str, Iterator[bytes]]:
        """Read the fields of Query: all lookups in one call, in parallel with the hierarchies' roots and searches."""
        request, bound = self._request, self._bound
        calls: list[Any] = []
        connections: list[tuple[str, Connection]] = []
        for root, relation in bound.listed:
            calls.append(read_roots(request, root.resolve.hierarchy, relation))
            connections.append((root.key, root.listing.connection))
        for searched, given in bound.searched:
            selected = Selected(self._look_ahead.selection(searched.position), searched.counts)
            calls.append(searched.resolve.find(request, given, selected))
            connections.append((searched.key, searched.connection))
        lookups = find_nodes(request, bound.lookups)
        *pages, records = await request.scheduler.gather_all([*calls, lookups]) if calls else [cast(Any, await lookups)]
        found: dict[str, Iterator[bytes]] = {}
        for (key, connection), page in zip(connections, pages, strict=True):
            found[key] = self._pages(connection, [page])
        raise_first_error(records)
        left = iter(records)
        for looked_up, targets in bound.looked_up:
            some = [None if target is None else check.checked(next(left)) for check, target in targets]
            found[looked_up.key] = self._nodes(looked_up.position, [some], many=looked_up.resolve.many)
        return found

    async def _read_levels(self) -> None:
        """Read all that the nodes select, then what the nodes found there select, to the bottom."""
        request = self._request
        while True:
            level, self._level = self._level, []
            self._rows += level
            listed, above = list[Listed](), list[Above]()
            for rows in level:
                self._select(rows, listed, above)
            request.budget.spend_fields(self._fields)
            if self._bytes:
                request.budget.spend_bytes(self._bytes)
            self._fields = self._bytes = 0
            reads: list[Any] = []
            if listed:
                reads.append(read_lists(request, [(relation, rows.records) for rows, _, relation in listed]))
            if above:
                asked = [(record, relation) for rows, _, relation in above for record in rows.records]
                reads.append(read_ancestors(request, asked))
            if not reads:
                return
            outcomes = list(chain.from_iterable(await request.scheduler.gather_all(reads)))
            raise_first_error(outcomes)
            found: Iterator[Any] = iter(outcomes)
            for rows, field, _ in listed:
                rows.found[field] = self._pages(field.connection, list(islice(found, len(rows.records))))
            for rows, up, relation in above:
                some, many = list(islice(found, len(rows.records))), relation.kind is RelationKind.ANCESTORS
                rows.found[up] = self._nodes(up.position, some, many=many)
            if len(outcomes) > CHUNK:
                await yield_to_loop()

    def _select(self, rows: Rows, listed: list[Listed], above: list[Above]) -> None:
        """Count the fields of some nodes, and add their relations. Nodes with nothing in their lists are set apart."""
        compiled, look_ahead = rows.compiled, self._look_ahead
        self._fields += compiled.count * len(rows.records)
        if compiled.values:
            self._fields += compiled.value_counts(rows.records)
        if compiled.is_leaf:
            return
        relations = list(map(look_ahead.relation, map(_RELATION, compiled.lists)))
        if compiled.childless is not None and not any(map(_IS_NARROW, relations)):
            owns = may_have_children(self._request, rows.records)
            if not all(owns):
                self._rows.append(rows.part(owns, compiled.childless))
                self._fields += compiled.empty_count * (len(owns) - len(rows.records))
        if rows.records:
            listed += zip(repeat(rows), compiled.lists, relations, strict=False)
            for up in compiled.above:
                above.append((rows, up, look_ahead.relation(up.relation)))

    def _nodes(
        self, position: ResponsePosition, found: Sequence[Sequence[Record | None]], *, many: bool
    ) -> Iterator[bytes]:
        """The JSON of what a field leads to, for each of some owners: a list of nodes, or one node or null."""
        records = list(filter(None, chain.from_iterable(found)))
        nodes: Iterator[bytes] = iter(self._add(position, records))
        if len(records) < sum(map(len, found)):
            present, places = nodes, chain.from_iterable(found)
            nodes = (b"null" if record is None else next(present) for record in places)
        if many:
            return (b"[" + b",".join(islice(nodes, len(some))) + b"]" for some in found)
        return (next(nodes) if some else b"null" for some in found)

    def _pages(self, connection: Connection, pages: Sequence[Page]) -> Iterator[bytes]:
        """The JSON of a connection for each of some owners, whose pages these are."""
        columns: list[tuple[bytes, Iterable[bytes]]] = []
        fields = connection.page_count * len(pages) + connection.node_count * sum(map(len, map(_RECORDS, pages)))
        for part, position in connection.parts:
            if position is None:
                columns.append((part.start, map(part.write, pages, repeat(iter(())))))
                continue
            # As of now: other requests, or a page that is here twice, may cache more of them while this one reads.
            column: list[Any] = []
            missing: list[Page] = []
            for page in pages:
                json, count = page.json_fields.get(part.number, _NOT_CACHED)
                column.append(json)
                if json is None:
                    missing.append(page)
                else:
                    fields += count
                    self._bytes += len(json)
            nodes = iter(self._add(position, list(chain.from_iterable(map(_RECORDS, missing)))))
            written = map(partial(part.cached, position.constant_count, nodes), missing)
            columns.append((part.start, _filled(column, written) if missing else iter(column)))
        self._fields += fields
        return objects(columns, len(pages))

    def _add(self, position: ResponsePosition, records: Sequence[Record]) -> list[bytes]:
        """Add the nodes at a position. Returns a list that will have their JSON, in order, once they are written."""
        json, kinds = [b""] * len(records), list(map(KIND, records))
        types = {kind: position[hierarchy_of(kind[0]), kind[1]] for kind in set(kinds)}
        compiled = set(types.values())
        if len(compiled) == 1:
            self._level.append(Rows(compiled.pop(), records, json, range(len(records))))
            return json
        places: dict[CompiledType, list[int]] = {}
        for place, kind in enumerate(kinds):
            places.setdefault(types[kind], []).append(place)
        self._level += [Rows(one, [records[place] for place in some], json, some) for one, some in places.items()]
        return json

    async def _write(self) -> None:
        """Write all nodes, those of the deepest level first; those that are written are dropped, with all below them.

        Fewer than CHUNK nodes are written without a pause.
        """
        variables, budget, written = self._look_ahead.variables, self._request.budget, 0
        while self._rows:
            rows = self._rows.pop()
            for start in range(0, len(rows.records), CHUNK):
                rows.write(start, variables, budget)
                written += min(CHUNK, len(rows.records) - start)
                if written >= CHUNK:
                    written = 0
                    await yield_to_loop()


def _filled(column: Iterable[bytes | None], written: Iterator[bytes]) -> Iterator[bytes]:
    """A column with what is written in place of None."""
    return (next(written) if json is None else json for json in column)
