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
from store.metadata.history import place_of
from store.metadata.redirects import lines, redirect_key, redirected_id
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
        nodes = await request.state.current_nodes(current.values())
        for origin, key in list(current.items()):
            if (outcome := nodes[key]) is not None:
                found[origin] = outcome
                del current[origin]
    return found


async def _hop(request: Request, current: Mapping[Key, Key], found: Nodes) -> dict[Key, Key]:
    """The keys that the redirects of these keys lead to; errors of failed reads are added to `found`."""
    state = request.state
    redirects = await state.items(
        [redirect_key(prefix) for key in current.values() for prefix in lines(key)], current=True
    )
    targets: dict[Key, tuple[Key, str]] = {}  # an id record, and the rest of the key below the redirected prefix
    for origin, key in current.items():
        for prefix in lines(key):
            redirect = redirects[redirect_key(prefix)]
            if isinstance(redirect, Exception):
                found[origin] = redirect
            elif redirect is not None:
                targets[origin] = id_key(redirected_id(redirect)), key.sk[len(prefix.sk) :]
            if redirect is not None:
                break
    items = await state.items([record for record, _ in targets.values()], current=True)
    onward: dict[Key, Key] = {}
    for origin, (record, rest) in targets.items():
        item = items[record]
        if isinstance(item, Exception):
            found[origin] = item
            continue
        base = place_of(item)
        state.is_cacheable &= base is not None
        if base is not None and len((sk := base.sk + rest).encode()) <= MAX_SORT_KEY_BYTES:
            key = Key(base.pk, sk)
            onward |= {origin: key} if key != current[origin] else {}
    return onward


def _may_have_redirects(request: Request, key: Key) -> bool:
    if visibility_at(request.grants, key) is Visibility.HIDDEN:
        return True  # or the reads would disclose whether there is such a tree, and whether it has redirects
    version = request.state.tree_versions.get(key.pk)
    return version is not None and version.aliases > 0
