"""Candidates: the nodes of a list that are found by search items, where a condition leads to them, so that the list is
not read whole.
"""

from typing import Any

from resolvers.lists.list_request import ListRequest
from resolvers.search.item_lists import ItemList, found_by_items
from resolvers.search.near_list import MAX_KILOMETERS, NearList
from resolvers.search.search_list import SearchList
from resolvers.session.request import Request
from resolvers.sorting.search_comparison import direct_search
from store.model.records import Record


async def read_candidates(request: Request, requested: ListRequest) -> list[Record] | None:
    """All nodes of a list that may meet its conditions; None where the whole list is to be read.

    Raises BudgetExceeded where neither is possible.
    """
    near, search = requested.relation.near, direct_search(requested.relation.arguments.where)
    if search is not None and not search.text.words:
        return []
    ways: list[ItemList[Any]] = [] if search is None else [SearchList(request, requested, search)]
    if near is not None and (near.kilometers <= MAX_KILOMETERS or not requested.has_size):
        ways.append(NearList(request, requested, near))
    return await found_by_items(request, requested, ways)
