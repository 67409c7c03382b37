"""Redirects: from a path that a node has left to the id of that node.

Each node that leaves a path by a move, its own or that of a node above it, writes the redirect of exactly that path
over the one that is there. The deletion of the node at a path deletes the redirect of that path. So a redirect names
the node that was there last, wherever that is now. A node at a path comes before the redirect, which may stay.
"""

from typing import cast

from store.model.items import Change, Delete, Item
from store.model.keys import Key
from store.model.records import Record


def redirect_key(former: Key) -> Key:
    """The key of the redirect from a former key."""
    return Key(f"alias#{former.pk}", former.sk)


def redirect_item(record: Record) -> Item:
    """The redirect from the key that a node leaves to its id."""
    key = redirect_key(record.key)
    return {"pk": key.pk, "sk": key.sk, "id": record.id}


def redirected_id(item: Item) -> str:
    """The id in a redirect."""
    return cast(str, item["id"])


def without_redirect(record: Record, *, has_redirects: bool) -> list[Change]:
    """The change besides the deletion of a node at its key; none in a tree that never had redirects."""
    return [Delete(redirect_key(record.key))] if has_redirects else []
