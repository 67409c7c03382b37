"""Redirects: from paths that nodes have left to the ids of these nodes.

| request | index | key condition | for 1 path | for N paths |
| --- | --- | --- | --- | --- |
| redirects | table | keys of the redirects of exactly these paths | 1 | 1 |

Each request is a BatchGetItem of up to 100 keys; the nodes are then looked up by their ids, see `lookup.py`. Trees that
never had a redirect cost nothing. No dataloader is needed: `lookup.py` calls it for a whole batch.
"""

from collections.abc import Iterable

from resolvers.access.grants import Visibility, visibility_at
from resolvers.session.request import Request
from store.metadata.redirects import redirect_key, redirected_id
from store.model.items import Item
from store.model.keys import Key


async def redirected_ids(request: Request, keys: Iterable[Key]) -> dict[Key, str | Exception | None]:
    """The ids of the nodes that were last at these keys, which have no node now: None without a redirect, or the error
    of a failed read. Keys of trees that never had a redirect are left out.
    """
    former = [key for key in dict.fromkeys(keys) if _may_have_redirects(request, key)]
    if not former:
        return {}
    redirects = list(map(redirect_key, former))
    request.state.read_again(redirects)
    items = await request.state.items(redirects, current=True)
    return {key: _redirected_id(items[redirect]) for key, redirect in zip(former, redirects, strict=True)}


def _redirected_id(item: Item | Exception | None) -> str | Exception | None:
    return item if isinstance(item, Exception) or item is None else redirected_id(item)


def _may_have_redirects(request: Request, key: Key) -> bool:
    if visibility_at(request.grants, key) is Visibility.HIDDEN:
        return True  # or the reads would disclose whether there is such a tree, and whether it has redirects
    version = request.state.tree_versions.get(key.pk)
    return version is not None and version.has_redirects
