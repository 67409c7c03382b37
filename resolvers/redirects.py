"""Redirects: from the old path of a moved node, or of a node below it, to the node.

| request | index | key condition | for 1 path | for N paths |
| --- | --- | --- | --- | --- |
| redirects | table | keys of the redirects of the path and of all its prefixes | 1 | 1 |
| id record | table | key `("id#<id>", "v0")`, of the longest prefix that has a redirect | 1 | 1 |
| node | table | key of the rest of the path below the new key of that prefix | 1 | 1 |

These are the requests of one hop, each a BatchGetItem of up to 100 keys; a new path may be an old one again. Trees
whose version counts no redirects cost nothing. No dataloader is needed: `lookup.py` calls it for a whole batch.
"""

from collections.abc import Iterable, Mapping

from resolvers.access.grants import Visibility, visibility_at
from resolvers.session.read_state import Nodes
from resolvers.session.request import Request
from store.metadata.history import current_key
from store.metadata.redirects import path_keys, redirect_key, redirected_id
from store.model.keys import MAX_SORT_KEY_BYTES, Key, id_key

MAX_HOPS = 8  # from one old path to the next


async def follow_redirects(request: Request, missing: Iterable[Key]) -> Nodes:
    """The nodes that redirects lead to from keys without a node, and the errors of failed reads; by the old key."""
    found: Nodes = {}
    current = {key: key for key in missing}  # the key to look at, by the key that was looked up
    for _ in range(MAX_HOPS):
        current = {origin: key for origin, key in current.items() if _may_have_redirects(request, key)}
        if not current:
            break
        current = await _hop(request, current, found)
        request.state.read_again(current.values())
        nodes = await request.state.current_nodes(current.values())
        for origin, key in list(current.items()):
            if (outcome := nodes[key]) is not None:
                found[origin] = outcome
                del current[origin]
    return found


async def _hop(request: Request, current: Mapping[Key, Key], found: Nodes) -> dict[Key, Key]:
    """The keys that the redirects of these keys lead to; errors of failed reads are added to `found`.

    The keys themselves are read again with the redirects: a node that has moved back has removed its redirect.
    """
    state = request.state
    keys = [*current.values(), *[redirect_key(prefix) for key in current.values() for prefix in path_keys(key)]]
    state.read_again(keys)
    redirects = await state.items(keys, current=True)
    targets: dict[Key, tuple[Key, str]] = {}  # an id record, and the rest of the key below the redirected prefix
    for origin, key in current.items():
        for prefix in path_keys(key):
            redirect = redirects[redirect_key(prefix)]
            if isinstance(redirect, Exception):
                found[origin] = redirect
            elif redirect is not None:
                targets[origin] = id_key(redirected_id(redirect)), key.sk[len(prefix.sk) :]
            if redirect is not None:
                break
    ids = [record for record, _ in targets.values()]
    state.read_again(ids)
    items = await state.items(ids, current=True)
    returned = [origin for origin, key in current.items() if redirects[key] is not None and _is_visible(request, key)]
    onward = {origin: current[origin] for origin in returned if origin not in targets}
    for origin, (record, rest) in targets.items():
        item = items[record]
        if isinstance(item, Exception):
            found[origin] = item
            continue
        base = current_key(item)
        state.is_cacheable &= base is not None
        if base is not None and len((sk := base.sk + rest).encode()) <= MAX_SORT_KEY_BYTES:
            onward[origin] = Key(base.pk, sk)
    return onward


def _is_visible(request: Request, key: Key) -> bool:
    return visibility_at(request.grants, key) is not Visibility.HIDDEN


def _may_have_redirects(request: Request, key: Key) -> bool:
    if not _is_visible(request, key):
        return True  # or the reads would disclose whether there is such a tree, and whether it has redirects
    version = request.state.tree_versions.get(key.pk)
    return version is not None and version.aliases > 0
