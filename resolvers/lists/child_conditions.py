"""Conditions on children: the children that they need, read for all lists of a response level together.

Only the children of nodes that may meet all other conditions are read, and of these nodes only of those whose counts do
not decide it. The planner makes one range of the children of many nodes, where that is less than a Query for each.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import islice

from resolvers.lists.ancestor_words import with_ancestors
from resolvers.lists.arguments import NOTHING, Asked, ConnectionArguments, Page, Relation, RelationKind
from resolvers.lists.list_request import ListRequest
from resolvers.session.request import Request
from resolvers.sorting.children import ChildrenComparison, bounds, comparisons_in, with_having
from resolvers.sorting.conditions import Condition, Test, tested
from resolvers.sorting.facets import own_conditions
from resolvers.sorting.search_comparison import searches_in
from store.concurrency import in_chunks
from store.model.records import Record

ReadAsked = Callable[[Request, Sequence[Asked]], Awaitable[list[Page | Exception]]]
Found = tuple[Condition, int] | Exception


async def read_children(
    request: Request, lists: Sequence[tuple[ListRequest, Condition | None, Sequence[Record]]], read: ReadAsked
) -> list[Found]:
    """For each of these lists with its condition and its nodes the condition, with what was read for those on children,
    and how many nodes these are, or the error in its place; `read` reads the lists that relations lead to from their
    nodes.
    """
    relations: dict[tuple[tuple[str, ...], bool], Relation] = {}
    asked: list[Asked] = []
    for requested, where, records in lists:
        levels = _levels(where, len(request.hierarchies[requested.hierarchy].levels))
        arguments = ConnectionArguments(levels=levels, compared=True)
        is_cached = not requested.relation.is_cacheable  # else what is made of them is
        children = Relation(RelationKind.CHILDREN, arguments, NOTHING, is_cached=is_cached)
        relation = relations.setdefault((levels, is_cached), children)
        asked.append((relation, await tested(records, _needs_children(requested.relation, where))))
    pages, found = iter(await read(request, asked)), list[Found]()
    for one, (_, owners) in zip(lists, asked, strict=True):
        found.append(await _read_for(request, *one, list(islice(pages, len(owners)))))
    return found


def _levels(where: Condition | None, count: int) -> tuple[str, ...]:
    """The levels whose nodes may decide a condition on children; none for all, which are so many."""
    levels = {name for one in comparisons_in(where) for name, outcome in one.outcomes.items() if outcome is not False}
    return tuple(sorted(levels)) if len(levels) < count else ()


def _needs_children(relation: Relation, where: Condition | None) -> Test:
    """Whether the children of a node decide if it is in the list, or counts for one of its facets."""
    fields = [field for facets in relation.facets for field in facets.fields]
    others, own = own_conditions(where, fields)
    assert others is not None  # noqa: S101 - no field has a condition on children of its own
    most, least = [bound.test for bound in bounds(others)]
    tests = [condition.test for condition in own.values()]

    def test(record: Record) -> bool:
        return most(record) and not least(record) and sum([not test(record) for test in tests]) < 2

    return test


async def _read_for(
    request: Request,
    requested: ListRequest,
    where: Condition | None,
    records: Sequence[Record],
    pages: Sequence[Page | Exception],
) -> Found:
    children: list[Record] = []
    for page in pages:
        if isinstance(page, Exception):
            return page
        children += page.records
    having: dict[ChildrenComparison, set[str]] = {}
    for one in comparisons_in(where):
        found = having[one] = set()
        asked = one
        if searches_in(one.where):
            try:
                (inner,) = await with_ancestors(request, [(requested, one.where, children)], records)
            except Exception as error:  # also of a failed read
                return error
            asked = replace(one, where=inner or one.where)
        async for chunk in in_chunks(await tested(children, asked.test_child)):
            found.update([child.siblings for child in chunk])
    assert where is not None  # noqa: S101 - it has a condition on children
    return with_having(where, having), len(children)
