"""Search index: whether the search items of a hierarchy are complete, and the nodes that were moved with others below.

| what | index | key condition |
| --- | --- | --- |
| marker and moved nodes | table | `pk = "search/location"` |

One Query, at most once in 10 seconds on DynamoDB: what it finds only decides the order of nodes of equal weight. A
search below a node, or for a caller who sees a part, reads it anew, since there it decides which nodes are found.
"""

from resolvers.session.request import Request
from store.errors import Unavailable
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import Index, tree_version_key
from store.model.ranges import KeyRange
from store.search.lineage import MovedNode, Moves, moved_nodes
from store.search.node_items import made_of, marker_key

MAX_MOVED = 1_000  # nodes; where more were moved, repair makes their items unnecessary
MOVES_SECONDS = 10.0


async def read_moves(request: Request, hierarchy: Hierarchy, *, current: bool) -> Moves | None:
    """The nodes that were moved, None where they are too many to be known; `current` as of now.

    Raises Unavailable where the search items are incomplete.
    """
    state, key = request.state, ("search", hierarchy.name)
    cached: tuple[Moves | None] | None = state.pages.get(None, key)
    if cached is None and not current and (hint := state.pages.peek(key)) is not None:
        read_at, cached = hint[0]
        if state.store_version is not None or state.clock() - read_at > MOVES_SECONDS:
            cached = None
    if cached is None:
        began = state.clock()
        cached = await _read(request, hierarchy)
        if state.store_version is not None:
            state.pages.put(None, key, cached, 0)
        else:
            state.pages.put_hint(key, (began, cached))
    return cached[0]


async def _read(request: Request, hierarchy: Hierarchy) -> tuple[Moves | None]:
    span = moved_nodes(hierarchy.name)
    key = marker_key(hierarchy.name)
    whole = KeyRange(Index.TABLE, span.partition, key.sk, span.hi)
    items = await request.state.items_in(whole, limit=MAX_MOVED + 2)
    found = items[0].get("made_of") if items and items[0]["sk"] == key.sk else None
    if found != made_of(hierarchy) and (found is not None or not await _is_empty(request, hierarchy)):
        raise Unavailable(
            f"The search items of {hierarchy.name} are not those that its class asks for; clade repair writes them."
        )
    moved = [MovedNode.of(item) for item in items if item["sk"] != key.sk]
    return (Moves(moved) if len(moved) <= MAX_MOVED else None,)


async def _is_empty(request: Request, hierarchy: Hierarchy) -> bool:
    """Whether no node was ever written, so that there are no search items and no marker."""
    key = tree_version_key(hierarchy.name)
    (item,) = (await request.state.strong_items([key])).values()
    return TreeVersion.of(hierarchy.name, item).number == 0
