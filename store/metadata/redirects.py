"""Redirects: from the former key of a moved subtree to the id of its top.

One redirect serves every path below the former key. It holds an id, so it stays valid through further moves.
"""

from typing import cast

from store.model.items import Item
from store.model.keys import Key, ancestor_keys


def redirect_key(former: Key) -> Key:
    """The key of the redirect from a former key."""
    return Key(f"alias#{former.pk}", former.sk)


def redirect_item(former: Key, node_id: str) -> Item:
    """The redirect from a former key to the node with an id."""
    key = redirect_key(former)
    return {"pk": key.pk, "sk": key.sk, "id": node_id}


def redirected_id(item: Item) -> str:
    """The id in a redirect."""
    return cast(str, item["id"])


def path_keys(key: Key) -> list[Key]:
    """A key and those of its ancestors, the longest first: those that a redirect for it may start from."""
    return [key, *ancestor_keys(key)[::-1]]
