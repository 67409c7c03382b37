"""Ancestor words: what conditions `search` of several words need to know beside the nodes of a list.

| read | index | key condition | requests |
| --- | --- | --- | --- |
| ancestors | table | keys of the ancestors of those nodes that have the first word, but not all | one for up to 100 |

They are read for all lists of a response level together, each once, unless the lists have them. They count as compared.
"""

from collections.abc import Sequence

from resolvers.access.grants import may_read
from resolvers.lists.list_request import ListRequest
from resolvers.session.budget import raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.conditions import Condition
from resolvers.sorting.search_comparison import BY_ANCESTORS, Met, SearchComparison, searches_in, with_searches
from store.concurrency import in_chunks
from store.errors import BudgetExceeded
from store.model.keys import Key, ancestor_keys
from store.model.records import Record
from store.search.words import Words

MAX_ANCESTORS = 1_000  # of all nodes of these lists with the first word: ten requests
MATCHED_A_CHUNK = 20  # nodes between two points at which the event loop may run others


async def with_ancestors(
    request: Request, lists: Sequence[tuple[ListRequest, Condition, Sequence[Record]]]
) -> list[Condition]:
    """The conditions of lists, given with their nodes, with the words of ancestors that the caller may see.

    Raises BudgetExceeded where these are too many, and the error of a failed read.
    """
    own: dict[Key, Record | None] = {}
    wanted: dict[Key, None] = {}
    needed: list[dict[int, set[Key]]] = []
    for requested, where, records in lists:
        if not (searches := searches_in(where)):
            needed.append({})
            continue
        own[requested.owner.key] = requested.owner
        found: dict[int, set[Key]] = {id(one): set() for one in searches}
        async for chunk in in_chunks(records, MATCHED_A_CHUNK):
            for record in chunk:
                own[record.key] = record
                words = Words.of(searches[0].hierarchy, record)
                for one in searches:
                    if one.match(words) == BY_ANCESTORS:
                        found[id(one)].update(ancestor_keys(record.key))
        needed.append(found)
        wanted.update(dict.fromkeys([key for keys in found.values() for key in keys]))
    unread = [key for key in wanted if key not in own and may_read(request.grants, key)]
    if unread:
        what = f"The ancestors of nodes in {lists[0][0].description[:1].lower()}{lists[0][0].description[1:]}"
        if len(unread) > MAX_ANCESTORS:
            raise BudgetExceeded(
                f"{what} that have the first word of search are more than {MAX_ANCESTORS:,}; write a longer word, or "
                "search below a node with fewer below it."
            )
        request.budget.spend_nodes(len(unread), what, compared=True)
        nodes = await request.state.nodes(unread)
        raise_first_error(nodes.values())
        own |= {key: node for key, node in nodes.items() if not isinstance(node, Exception)}
    return [
        with_searches(where, {id(one): _with(one, needs[id(one)], own) for one in searches_in(where)} if needs else {})
        for (_, where, _), needs in zip(lists, needed, strict=True)
    ]


def _with(search: SearchComparison, keys: set[Key], nodes: dict[Key, Record | None]) -> SearchComparison:
    above: dict[Key, Met] = {key: search.met(nodes.get(key)) for key in keys}
    return SearchComparison(search.hierarchy, search.text, search.languages, above)
