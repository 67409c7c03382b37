"""Ancestor words: what conditions `search` of several words need to know beside the nodes of a list.

| read | index | key condition | requests |
| --- | --- | --- | --- |
| ancestors | table | keys of the ancestors of those nodes that have the first word, but not all | one for up to 100 |

They are read for all lists of a response level together, each once, unless the lists have them. They count as compared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from resolvers.access.grants import may_read
from resolvers.lists.list_request import ListRequest
from resolvers.session.budget import raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.conditions import Condition
from resolvers.sorting.search_comparison import BY_ANCESTORS, Met, SearchComparison, searches_in, with_searches
from store.concurrency import in_chunks
from store.errors import BudgetExceeded
from store.kinds.words import Words
from store.model.keys import Key, ancestor_keys
from store.model.records import Record

MAX_ANCESTORS = 1_000  # of all nodes of these lists with the first word: ten requests
MATCHED_A_CHUNK = 20  # nodes between two points at which the event loop may run others


async def with_ancestors(
    request: Request,
    lists: Sequence[tuple[ListRequest, Condition | None, Sequence[Record]]],
    known: Iterable[Record] = (),
) -> list[Condition | None]:
    """The conditions of lists, given with their nodes, with the words of ancestors that the caller may see; `known` are
    other nodes that were read.

    Raises BudgetExceeded where these are too many, and the error of a failed read.
    """
    own: dict[Key, Record | None] = {record.key: record for record in known}
    needs: list[dict[int, set[Key]]] = []  # of each list, by the ids of its searches
    for requested, where, records in lists:
        searches = searches_in(where)
        needs.append({id(one): set() for one in searches})
        own[requested.owner.key] = requested.owner
        async for chunk in in_chunks(records if searches else (), MATCHED_A_CHUNK):
            for record in chunk:
                own[record.key] = record
                words = Words.of(searches[0].hierarchy, record)
                for one in searches:
                    if one.match(words) == BY_ANCESTORS:
                        needs[-1][id(one)].update(ancestor_keys(record.key))
    wanted = sorted({key for each in needs for keys in each.values() for key in keys})
    unread = [key for key in wanted if key not in own and may_read(request.grants, key)]
    if len(unread) > MAX_ANCESTORS:
        raise BudgetExceeded(
            f"{lists[0][0].description} has nodes with the first word of search that have more than {MAX_ANCESTORS:,} "
            "ancestors; write a longer word, or search below a node with fewer below it."
        )
    request.budget.spend_nodes(len(unread), "The ancestors of nodes with the first word of search", compared=True)
    nodes = await request.state.nodes(unread) if unread else {}
    raise_first_error(nodes.values())
    own |= {key: node for key, node in nodes.items() if not isinstance(node, Exception)}
    found: list[Condition | None] = []
    for (_, where, _), keys in zip(lists, needs, strict=True):
        with_words = {id(one): await _with(one, keys[id(one)], own) for one in searches_in(where)}
        found.append(where and with_searches(where, with_words))
    return found


async def _with(search: SearchComparison, keys: set[Key], nodes: dict[Key, Record | None]) -> SearchComparison:
    """The condition with its words that the nodes at these keys have."""
    above: dict[Key, Met] = {}
    async for chunk in in_chunks(list(keys), MATCHED_A_CHUNK):
        above |= {key: search.met(nodes.get(key)) for key in chunk}
    return replace(search, above=above)
