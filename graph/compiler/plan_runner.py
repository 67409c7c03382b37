"""Plan runner: reads a bound plan's data level by level, then writes the response as bytes from the bottom up.

Each error is that of a field: of a field of Query, of a list or node that could not be read, or of a leaf. What it
makes null is decided when the response is written (`response_nodes.py`), and where it is when the response is whole
(`field_errors.py`).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from itertools import chain, islice, repeat
from typing import Any, Protocol

import orjson
from graphql import GraphQLError, GraphQLObjectType

from graph.compiler.field_errors import Root, Step, keys_of
from graph.compiler.json_writers import TypeName, key_of
from graph.compiler.operation_plan import InPlaceField, ListedRoots, RootField, SearchedRoot
from graph.compiler.plan_cache import BoundPlan
from graph.compiler.response_nodes import (
    CHUNK,
    FieldRows,
    InPlaceResults,
    NodeResults,
    PageResults,
    Shared,
    TypeGroup,
)
from graph.operation.context import Context
from resolvers.ancestors import read_ancestors
from resolvers.lists import read_pages, read_roots
from resolvers.lookup import find_nodes
from resolvers.outcomes import Outcome, awaited, each_of, gather_outcomes, is_error
from resolvers.planner import list_requests
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation
from resolvers.search.hits import Selected
from store.concurrency import yield_to_loop
from store.model.records import Record

_NONE: Counter[str] = Counter()
STARTED_AT_ONCE = 64  # fields in place between two yields to the event loop


class InPlace(Protocol):
    """graphql-core's execution of single fields, in one attempt at a response."""

    def start(self, parent: GraphQLObjectType, source: Any, details: Any, keys: Sequence[str | int]) -> Any:
        """The value of a field, or an awaitable of it. Raises the error of a field that may not be null."""
        ...

    @property
    def errors(self) -> list[GraphQLError]:
        """The errors that made fields in place, or fields below them, null."""
        ...

    def close(self) -> None:
        """End what was started and that nobody will await."""
        ...


@dataclass(slots=True)
class Written:
    """A response: the JSON of its data, its errors in the order of the document, the number of those left out by their
    codes, and whether the versions of trees prove it.
    """

    data: bytes
    errors: Sequence[GraphQLError]
    left_out: Counter[str]
    is_proven: bool


class PlanRun:
    """One run of a plan, by `written`."""

    def __init__(self, bound: BoundPlan, context: Context, in_place: Callable[[], InPlace]) -> None:
        """`in_place` makes the execution of fields that are not compiled."""
        self.request, self.look_ahead = context.request, bound.look_ahead
        # Not the run itself, or the response would be a cycle of references.
        self._shared = Shared(self.request, self.look_ahead)
        self.errors = self._shared.errors
        self._bound = bound
        self._plan = bound.plan
        self._context = context
        self._new_in_place = in_place
        self._in_place: InPlace | None = None
        self._started: list[tuple[list[Step], list[str | int]]] = []  # the places of fields in place
        self._values: list[list[Any]] = []  # of fields in place
        self._is_proven = True
        self._root = Root()
        self._found: dict[RootField, FieldRows] = {}

    async def written(self) -> Written:
        """The response. Raises BudgetExceeded where a budget of the whole response is exceeded."""
        self.request.budget.spend_fields(self._plan.count)
        try:
            await self._read_roots()
            while groups := self._shared.groups:
                self._shared.groups = []
                await self._read_level(groups)
        except BaseException:
            self._close()
            raise
        data = await self._data()
        if self._in_place is not None:
            self._add_errors_in_place(self._in_place.errors)
        errors, left_out = self._located() if self.errors.exist else ((), _NONE)
        return Written(data, errors, left_out, self._is_proven)

    def _located(self) -> tuple[Sequence[GraphQLError], Counter[str]]:
        self._link()
        return self.errors.in_order()

    def _link(self) -> None:
        """Let all rows have paths."""
        for results in self._found.values():
            results.link(self._root)

    async def _data(self) -> bytes:
        written: list[bytes] = []  # joined once, since it may be long
        is_null = False
        for root in self._plan.roots:
            if isinstance(root, TypeName):
                value: bytes | None = orjson.dumps(root.name)
            elif root in self._found:
                (value,) = await self._found[root].write()
            else:
                value = root.place.null
            is_null |= value is None
            start = key_of(root.key) if isinstance(root, TypeName) else root.place.start
            written += (b"," if written else b"", start, value or b"")
        return b"null" if is_null else b"".join((b"{", *written, b"}"))

    def _check_budgets(self) -> None:
        """Raise the error of a budget that ends the whole response."""
        if (refusal := self.request.budget.refusal) is not None:
            raise refusal

    # -- the fields of Query -------------------------------------------------------------------------------------------

    async def _read_roots(self) -> None:
        """Read what the fields of Query lead to: all lookups in one call, side by side with all others."""
        readers: list[tuple[RootField, Callable[[Any], FieldRows]]] = []
        calls: list[Awaitable[Any]] = []
        for field in self._plan.in_place:
            readers.append((field, self._values_of(field)))
            calls.append(self._gathered(await self._start(field, [None], partial(_at_root, field))))
        for failed in self._plan.failed:
            self._fail(failed, failed.error)
        for listed in self._plan.listed:
            relation = self.look_ahead.relation_or_error(listed.listing.relation)
            if is_error(relation):
                self._fail(listed, relation)
            else:
                readers.append((listed, self._pages_of(listed)))
                calls.append(read_roots(self.request, listed.resolve.hierarchy, relation))
        for searched, given in self._bound.searched:
            if is_error(given):
                self._fail(searched, given)
            else:
                selected = Selected(self.look_ahead.selection(searched.position), searched.counts)
                readers.append((searched, self._pages_of(searched)))
                calls.append(searched.resolve.find(self.request, given, selected))
        if self._bound.roots:
            calls.append(find_nodes(self.request, self._bound.lookups))
        outcomes = [await awaited(calls[0])] if len(calls) == 1 else await gather_outcomes(calls)
        self._check_budgets()
        for (root, results_of), outcome in zip(readers, outcomes, strict=False):
            if is_error(outcome):
                self._fail(root, outcome)
            else:
                self._found[root] = results_of(outcome)
        if self._bound.roots:
            self._look_up(outcomes[-1])

    def _pages_of(self, root: ListedRoots | SearchedRoot) -> Callable[[Any], FieldRows]:
        return lambda page: PageResults(self._shared, (0,), root.place, root.connection, [page])

    def _values_of(self, field: InPlaceField) -> Callable[[Any], FieldRows]:
        return lambda values: InPlaceResults(self._shared, (0,), field.place, values)

    def _look_up(self, found: Outcome[Sequence[Outcome[Record | None]]]) -> None:
        """The nodes of all lookups; an error of the batch is that of each."""
        left = iter(each_of(found, len(self._bound.lookups)))
        for root, targets in self._bound.roots:
            if is_error(targets):
                self._fail(root, targets)
                continue
            nodes: list[Outcome[Record | None]] = []
            for check, target in targets:
                one = next(left) if isinstance(target, tuple) else target
                try:
                    nodes.append(one if is_error(one) else check.checked(one))
                except Exception as error:
                    nodes.append(error)
            self._found[root] = NodeResults(
                self._shared, (0,), root.place, root.position, [nodes], many=root.resolve.many
            )

    def _fail(self, root: Any, error: Exception) -> None:
        self.errors.add(self._root, (0,), root.place.nodes, error, root.place.step)

    # -- levels --------------------------------------------------------------------------------------------------------

    async def _read_level(self, groups: Sequence[TypeGroup]) -> None:
        """Read all that the nodes in these groups select."""
        lists: list[ListRequest] = []
        lookups: list[tuple[Record, Relation]] = []
        calls: list[Awaitable[Any]] = []
        for group in groups:
            group.part()
            for listed in group.listed:
                if not is_error(listed):
                    lists += list_requests(group.owners, listed)
            for up in group.compiled.above:
                if isinstance(relation := self.look_ahead.relation_or_error(up.relation), Relation):
                    lookups += zip(group.owners, repeat(relation))
        started = await self._start_in_place(groups) if self._plan.is_current else ()
        if lists:
            calls.append(read_pages(self.request, lists))
        if lookups:
            calls.append(read_ancestors(self.request, lookups))
        if started:
            calls.append(self._gathered([value for _, _, values in started for value in values]))
        found_by = [await awaited(calls[0])] if len(calls) == 1 else await gather_outcomes(calls)
        outcomes: Iterator[Any] = iter(found_by)
        self._check_budgets()
        pages = iter(each_of(next(outcomes), len(lists)) if lists else ())
        found = iter(each_of(next(outcomes), len(lookups)) if lookups else ())
        values = iter(next(outcomes)) if started else iter(())
        for group in groups:
            self._distribute(group, pages, found)
        for group, executed, some in started:
            own = list(islice(values, len(some)))
            group.found[executed] = InPlaceResults(self._shared, group.owner_rows, executed.place, own)
        if len(lists) + len(lookups) > CHUNK:
            await yield_to_loop()

    def _distribute(self, group: TypeGroup, pages: Any, found: Any) -> None:
        """Give a group its part of what was read."""
        size = len(group.owners)
        for field, listed in zip(group.compiled.lists, group.listed, strict=True):
            some: Any = [listed] * size if is_error(listed) else list(islice(pages, size))
            group.found[field] = PageResults(self._shared, group.owner_rows, field.place, field.connection, some)
        for up in group.compiled.above:
            relation = self.look_ahead.relation_or_error(up.relation)
            nodes: Any = [relation] * size if is_error(relation) else list(islice(found, size))
            group.found[up] = NodeResults(self._shared, group.owner_rows, up.place, up.position, nodes, many=up.many)

    # -- fields that graphql-core executes -----------------------------------------------------------------------------

    async def _start_in_place(self, groups: Sequence[TypeGroup]) -> list[tuple[TypeGroup, InPlaceField, list[Any]]]:
        started = []
        if any(group.compiled.in_place for group in groups):
            self._link()
        for group in groups:
            for field in group.compiled.in_place:
                values = await self._start(field, group.owners, partial(group.place_of, field))
                started.append((group, field, values))
        return started

    def _close(self) -> None:
        """End the coroutines that have not begun: whatever was to await them has been cancelled."""
        self._shared.groups.clear()
        for value in chain.from_iterable(self._values):
            if iscoroutine(value) and getcoroutinestate(value) == CORO_CREATED:
                value.close()
        if self._in_place is not None:
            self._in_place.close()

    async def _start(
        self, field: InPlaceField, sources: Sequence[Any], steps: Callable[[int], list[Step]]
    ) -> list[Any]:
        """The values of a field for some objects, awaitables of them, or errors; all start before any is awaited, so
        that dataloaders batch them.
        """
        self._is_proven &= field.is_proven
        values: list[Any] = []
        self._values.append(values)
        starting = _Starting()
        self._context.unfinished.add(starting)
        for index, source in enumerate(sources):
            values.append(self._started_value(field, source, steps(index)))
            if index % STARTED_AT_ONCE == STARTED_AT_ONCE - 1:
                await yield_to_loop()
        self._context.unfinished.discard(starting)
        return values

    def _started_value(self, field: InPlaceField, source: Any, place: list[Step]) -> Any:
        if self._in_place is None:
            self._in_place = self._new_in_place()
        keys = keys_of(place)
        self._started.append((place, keys))
        try:
            return self._in_place.start(field.parent, source, field.details, keys)
        except Exception as error:
            return error

    async def _gathered(self, values: Sequence[Any]) -> list[Any]:
        """The values, with what was awaited in the place of each awaitable."""
        waiting = [n for n, value in enumerate(values) if isinstance(value, Awaitable)]
        found = list(values)
        for n, outcome in zip(waiting, await gather_outcomes([values[n] for n in waiting]), strict=True):
            found[n] = outcome
        return found

    def _add_errors_in_place(self, errors: Sequence[GraphQLError]) -> None:
        """Add graphql-core's errors, each at the place of its field."""
        places = {tuple(keys): place for place, keys in self._started}
        for error in errors:
            path = tuple(error.path or ())
            place = next(places[path[:n]] for n in range(len(path), 0, -1) if path[:n] in places)
            self.errors.add_located(partial(list, place), error)


class _Starting:
    """Fields in place that are still being started: dataloaders wait for them."""


def _at_root(field: InPlaceField, row: int) -> list[Step]:
    return [field.place.step]
