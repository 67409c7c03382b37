"""Former keys: the current keys of nodes whose search items have an old key, since an ancestor was renamed or moved.
They are learned from nodes that were not found at the key in their item. They are hints: a search checks that the node
that it reads has the expected id.
"""

from resolvers.session.request import Request
from store.model.keys import Key, ancestor_keys, last_segment, parent_sort_key


def present_key(request: Request, key: Key) -> Key:
    """The key at which a node probably is, by the key in its search item."""
    for former in (key, *reversed(ancestor_keys(key))):
        if (found := request.state.pages.peek(("former", former))) is not None:
            return key.moved(former, found[0])
    return key


def learn(request: Request, former: Key, present: Key) -> None:
    """Remember that a node is at another key than its search item says, and so are all below the same ancestor."""
    while former.sk != "#" and present.sk != "#" and last_segment(*former) == last_segment(*present):
        former, present = _parent(former), _parent(present)
    if former != present:
        request.state.pages.put_hint(("former", former), present)


def _parent(key: Key) -> Key:
    return Key(key.pk, parent_sort_key(key.sk))
