"""Search index: whether the search items of a hierarchy are complete, and what moves have changed.

| what | index | key condition |
| --- | --- | --- |
| marker, moved nodes, running moves | table | `pk = "search/location"` |

One Query, at most once a second on DynamoDB. That is often enough: a background move waits between its steps until all
requests have ended that may not know of it (`store/metadata/moves.py`). A search below a node, or for a caller
who sees a part, reads it anew, since there it decides which nodes are found.
"""

from typing import NamedTuple

from resolvers.session.request import Request
from store.engine import ReadUsage
from store.errors import Unavailable
from store.metadata.moves import MARGIN_SECONDS
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import tree_version_key
from store.search.items import index_range, made_of, marker_key
from store.search.lineage import RUNNING, MovedNode, Moves

MAX_MOVED = 1_000  # nodes; where more were moved, repair makes their items unnecessary
MAX_UNITS = 25.0  # of the Query, with items of some 100 bytes


class SearchIndex(NamedTuple):
    """`moves` are the nodes that were moved, None where they are too many; `is_moving` is whether a background move is
    running.
    """

    moves: Moves | None
    is_moving: bool


async def read_index(
    request: Request, hierarchy: Hierarchy, *, current: bool, usage: ReadUsage | None = None
) -> SearchIndex:
    """What a search has to know of a hierarchy; `current` as of now, else as of a second ago at most.

    The read is counted in `usage`, by default in that of the request. Raises Unavailable where the search items are
    incomplete.
    """
    state, key = request.state, ("search", hierarchy.name)
    found: SearchIndex | None = state.pages.get(None, key)
    if found is not None:
        return found
    if not current and state.store_version is None and (hint := state.pages.peek(key)) is not None:
        read_at, found = hint[0]
        if state.clock() - read_at <= MARGIN_SECONDS:
            return found
    began = state.clock()
    found = await _read(request, hierarchy, usage)
    if state.store_version is not None:
        state.pages.put(None, key, found, 0)
    else:
        state.pages.put_hint(key, (began, found))
    return found


async def _read(request: Request, hierarchy: Hierarchy, usage: ReadUsage | None) -> SearchIndex:
    items = await request.state.items_once(index_range(hierarchy.name), MAX_MOVED + 2, usage)
    marker = items[0] if items and items[0]["sk"] == marker_key(hierarchy.name).sk else None
    made = marker and marker.get("made_of")
    if made != made_of(hierarchy) and (made is not None or not await _is_empty(request, hierarchy)):
        raise Unavailable(
            f"The search items of {hierarchy.name} do not match its class; run clade repair to write them."
        )
    if len(items) > MAX_MOVED + 1:
        return SearchIndex(None, True)
    others = [item for item in items if item is not marker]
    is_moving = any(str(item["sk"]).startswith(RUNNING) for item in others)
    moved = [MovedNode.of(item) for item in others if not str(item["sk"]).startswith(RUNNING)]
    return SearchIndex(Moves(moved), is_moving)


async def _is_empty(request: Request, hierarchy: Hierarchy) -> bool:
    """Whether no node was ever written, so that there are no search items and no marker."""
    key = tree_version_key(hierarchy.name)
    (item,) = (await request.state.strong_items([key])).values()
    return TreeVersion.of(hierarchy.name, item).number == 0
