"""Search index: whether the search items of a hierarchy are complete, and what moves have changed.

| what | index | key condition |
| --- | --- | --- |
| marker, moved nodes, running moves | table | `pk = "search/location"` |
| marker, for a caller who may read a part | table | key `("search/drive", "-")` |
| moved nodes of her tree | table | `pk = "search/drive" AND begins_with(sk, "Xy12aBdrive:")` |

One Query, at most once a second on DynamoDB. That is often enough: a background move waits between its steps until all
requests have ended that may not know of it (`store/background_moves/timing.py`). A search below a node reads it anew,
since there it decides which nodes are found. So does one for a caller who may read a part, who has a list of her own,
so that nothing depends on the moves of other trees.
"""

from typing import NamedTuple

from resolvers.outcomes import gather_all
from resolvers.session.request import Request
from store.background_moves.timing import MARGIN_SECONDS
from store.errors import Unavailable
from store.kinds.search import index_range, made_of, marker_key
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Index, tree_version_key
from store.model.ranges import KeyRange, just_after
from store.search.lineage import RUNNING, MovedNode, Moves, moved_nodes

MAX_MOVED = 1_000  # nodes; where more were moved, repair makes their items unnecessary


class SearchIndex(NamedTuple):
    """`moves` are the nodes that were moved, None where they are too many; `is_moving` is whether a background move is
    running, or whether one is is not known.
    """

    moves: Moves | None
    is_moving: bool


async def read_index(request: Request, hierarchy: Hierarchy, *, current: bool) -> SearchIndex:
    """What a search has to know of a hierarchy; `current` as of now, else as of a second ago at most.

    Raises Unavailable where the search items are incomplete.
    """
    state, key = request.state, ("search", hierarchy.name)
    found: SearchIndex | None = state.pages.get(None, key)
    if found is not None:
        return found
    hint = None if current else state.pages.hint(key)
    if hint is not None and state.clock() - hint.read_at <= MARGIN_SECONDS:
        return hint.value  # type: ignore[no-any-return]
    found = await _read(request, hierarchy)
    state.pages.put(None, key, found, 0)
    state.pages.put_hint(key, found)
    return found


async def read_tree_index(request: Request, hierarchy: Hierarchy, tree: str) -> SearchIndex:
    """The same of one tree alone, as of now; `tree` is the hash of the id of its root."""
    state, key = request.state, marker_key(hierarchy.name)
    marker_range = KeyRange(Index.TABLE, key.pk, key.sk, just_after(key.sk))
    moved = state.items_once(moved_nodes(hierarchy.name, tree), MAX_MOVED + 1)
    markers, items = await gather_all([state.items_once(marker_range, 1), moved])
    await _check_marker(request, hierarchy, markers[0] if markers else None)
    return SearchIndex(None if len(items) > MAX_MOVED else Moves(map(MovedNode.of, items)), True)


async def _read(request: Request, hierarchy: Hierarchy) -> SearchIndex:
    items = await request.state.items_once(index_range(hierarchy.name), MAX_MOVED + 2)
    marker = items[0] if items and items[0]["sk"] == marker_key(hierarchy.name).sk else None
    await _check_marker(request, hierarchy, marker)
    if len(items) > MAX_MOVED + 1:
        return SearchIndex(None, True)
    others = [item for item in items if item is not marker]
    is_moving = any(str(item["sk"]).startswith(RUNNING) for item in others)
    moved = [MovedNode.of(item) for item in others if not str(item["sk"]).startswith(RUNNING)]
    return SearchIndex(Moves(moved), is_moving)


async def _check_marker(request: Request, hierarchy: Hierarchy, marker: Item | None) -> None:
    made = marker and marker.get("made_of")
    if made != made_of(hierarchy) and (made is not None or not await _is_empty(request, hierarchy)):
        raise Unavailable(
            f"The search items of {hierarchy.name} do not match its class; run clade repair to write them."
        )


async def _is_empty(request: Request, hierarchy: Hierarchy) -> bool:
    """Whether no node was ever written, so that there are no search items and no marker."""
    key = tree_version_key(hierarchy.name)
    (item,) = (await request.state.strong_items([key])).values()
    return TreeVersion.of(hierarchy.name, item).number == 0
