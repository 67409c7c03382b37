"""Where moved nodes lay before: an alias at the old place of a subtree tells the id of the node that it began with.

One alias answers for every path below the old place. It names an id, so it holds through further moves.
"""

from typing import cast

from store.model.items import Item
from store.model.keys import Key, ancestor_keys


def redirect_key(place: Key) -> Key:
    """Where the alias of a place lies."""
    return Key(f"alias#{place.pk}", place.sk)


def redirect_item(place: Key, node_id: str) -> Item:
    """The alias that leads from a place to the node of an id."""
    key = redirect_key(place)
    return {"pk": key.pk, "sk": key.sk, "id": node_id}


def redirected_id(item: Item) -> str:
    return cast(str, item["id"])


def path_keys(place: Key) -> list[Key]:
    """A place and all above it, the longest first: where an alias may lie that answers for it."""
    return [place, *ancestor_keys(place)[::-1]]
