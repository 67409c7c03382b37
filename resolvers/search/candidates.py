"""Candidates: the nodes of a list that are found by search items, where a condition leads to them, so that the list is
not read whole.
"""

from resolvers.lists.list_request import ListRequest
from resolvers.search.near_list import read_near
from resolvers.session.request import Request
from store.model.records import Record


async def read_candidates(request: Request, requested: ListRequest) -> list[Record] | None:
    """All nodes of a list that may meet its conditions; None where the whole list is to be read.

    Raises BudgetExceeded where neither is possible.
    """
    return await read_near(request, requested)
