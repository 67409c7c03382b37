"""Holders: the nodes that have unique values, as the items of these values say.

| read | index | key |
| --- | --- | --- |
| the item of a value, under each name of its attribute | table | `("unique/category.sku#TV-48", "#")` |
| the marker, which says which of these names counts | table | `("kinds/category", "-")` |

Both are in one request. A name that only the marker knows takes another one, and a hierarchy without a marker its
version, which says whether it ever had a node.
"""

from collections.abc import Collection

from resolvers.session.request import Request
from resolvers.session.scheduler import outcome_of
from store.errors import CladeError, NotIndexed
from store.kinds.marker import Marker, made_of, marker_key
from store.kinds.registry import KINDS
from store.kinds.unique import Holder, UniqueKind, UniqueValue
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key, tree_version_key
from store.model.records import Item


def holder_keys(values: Collection[UniqueValue]) -> list[Key]:
    """The keys that `read_holders` reads."""
    return [*[key for one in values for key in one.keys], *[marker_key(one.hierarchy) for one in values]]


async def read_holders(
    request: Request, values: Collection[UniqueValue], *, current: bool
) -> dict[UniqueValue, Holder | Exception | None]:
    """The holders of these values, None for a value that no node has, or the error of a failed read; NotIndexed where
    not all values of the attribute have items.

    Without `current` a store whose reads lag may miss what was just written: then there is None in place of NotIndexed.
    """
    state, keys = request.state, dict[UniqueValue, Key | Exception | None]()
    is_final = current or not state.validators.has_lag
    items = await state.items(holder_keys(values), current=current)
    for value in values:
        marker = items[marker_key(value.hierarchy)]
        if isinstance(marker, Exception) or (marker is None and not is_final):
            keys[value] = marker
            continue
        try:
            keys[value] = await _key(request, value, marker)
        except CladeError as error:
            keys[value] = None if isinstance(error, NotIndexed) and not is_final else error.bare()
    others = [key for key in keys.values() if isinstance(key, Key) and key not in items]
    if others:
        items |= await state.items(others, current=current)
    return {value: outcome_of(items[key], _holder) if isinstance(key, Key) else key for value, key in keys.items()}


async def _key(request: Request, value: UniqueValue, marker: Item | None) -> Key:
    """The key of a value's item. Raises NotIndexed."""
    found, name = Marker.of(value.hierarchy, marker), value.hierarchy
    version = None if found else await request.state.item(tree_version_key(name))
    had_nodes = found is not None or TreeVersion.of(name, version).number > 0
    made = made_of(name, found, KINDS[UniqueKind.name], had_nodes=had_nodes)
    return value.key(request.hierarchies[name], made)


def _holder(item: Item | None) -> Holder | None:
    return None if item is None else Holder.of(item)
