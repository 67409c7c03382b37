"""Plan runner: reads a bound plan's data level by level, then writes the response as bytes from the bottom up."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from graph.compiler.connection_writer import key_of
from graph.compiler.leaf_codegen import TypeName
from graph.compiler.operation_plan import ListedRoots, RootField
from graph.compiler.plan_cache import BoundPlan
from graph.compiler.response_nodes import CHUNK, NodeResults, PageResults, PositionNodes
from graph.operation.context import Context
from graph.operation.lookahead import LookAhead
from resolvers.lookup import above, nodes
from resolvers.pages import Page
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation
from resolvers.restricted_lists import lists, roots
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.model.records import Record


async def run(bound: BoundPlan, context: Context) -> bytes:
    """The response as JSON. Raises UnsupportedByPlan, ResponseTooLarge, and the errors of the batch functions."""
    budget = context.budget
    budget.spend_fields(bound.plan.count)
    found = await _roots(bound, context)
    await _fetch(context.request, bound.look_ahead, [position for one in found.values() for position in one.positions])
    written: list[bytes] = []  # joined once, since it may be long
    for root in bound.plan.roots:
        if isinstance(root, TypeName):
            value = orjson.dumps(root.name)
        else:
            (value,) = await found[root].write(bound.look_ahead)
        written += (b"," if written else b"", key_of(root.key), value)
    response = b"".join((b'{"data":{', *written, b"}}"))
    budget.check_size(len(response))
    return response


async def _roots(bound: BoundPlan, context: Context) -> dict[RootField, NodeResults | PageResults]:
    """The nodes of the fields of Query: all lookups in one call, beside it the hierarchies' roots."""
    request, listed = context.request, bound.plan.listed
    for lookup in bound.roots:
        lookup.root.resolve.spend(lookup.arguments, context)
    calls: list[Any] = [_list_roots(request, bound.look_ahead, root) for root in listed]
    *pages, records = await _together(request, [*calls, nodes(request, bound.lookups)])
    found: dict[RootField, NodeResults | PageResults] = {
        root: PageResults(root.listing.connection, [page], request.budget)
        for root, page in zip(listed, pages, strict=True)
    }
    left = iter(_unfailed(records))
    for lookup in bound.roots:
        root = lookup.root
        some = [None if target is None else field.checked(next(left)) for field, target in lookup.targets]
        found[root] = NodeResults(root.position, [some], request.budget, many=root.resolve.many)
    return found


async def _list_roots(request: Request, look_ahead: LookAhead, root: ListedRoots) -> Page:
    relation = look_ahead.relation(root.listing.relation)
    return await roots(request, root.resolve.hierarchy, relation.window, nodes=relation.nodes, total=relation.total)


async def _fetch(request: Request, look_ahead: LookAhead, positions: list[PositionNodes]) -> None:
    """Read all that the nodes at these positions select, then what the nodes found there select, to the bottom."""
    while groups := [group for position in positions for group in position.groups if not group.compiled.is_leaf]:
        jobs: list[ListRequest] = []
        lookups: list[tuple[Record, Relation]] = []
        for group in groups:
            group.part(request, look_ahead)
            for field in group.compiled.lists:
                relation = look_ahead.relation(field.relation)
                jobs += [ListRequest(record, relation) for record in group.owners]
            for up in group.compiled.above:
                relation = look_ahead.relation(up.relation)
                lookups += [(record, relation) for record in group.owners]
        pages, found = await _read(request, jobs, lookups)
        for group in groups:
            size = len(group.owners)
            for field in group.compiled.lists:
                group.found[field] = PageResults(field.connection, list(islice(pages, size)), request.budget)
            for up in group.compiled.above:
                some = list(islice(found, size))
                group.found[up] = NodeResults(up.position, some, request.budget, many=up.many)
        positions = [position for group in groups for one in group.found.values() for position in one.positions]
        if len(jobs) + len(lookups) > CHUNK:
            await yield_to_loop()


async def _read(
    request: Request, jobs: list[ListRequest], lookups: list[tuple[Record, Relation]]
) -> tuple[Iterator[Page], Iterator[list[Record]]]:
    """All lists, and all nodes above, each by one call of its batch function. Raises the first error among them."""
    if not lookups:
        pages, found = await lists(request, jobs), []
    elif not jobs:
        pages, found = [], await above(request, lookups)
    else:
        pages, found = await _together(request, [lists(request, jobs), above(request, lookups)])
    return iter(_unfailed(pages)), iter(_unfailed(found))


def _unfailed(outcomes: Sequence[Any]) -> Sequence[Any]:
    """The outcomes of a batch function. Raises the first error among them."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


async def _together(request: Request, calls: list[Any]) -> list[Any]:
    """The results of calls made side by side. Raises the first error among them."""
    if len(calls) == 1:
        return [await calls[0]]
    results = await request.together(calls)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
