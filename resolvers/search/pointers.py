"""Pointers: search items as far as they lead to their nodes, and the reads of these nodes.

| round | index | key condition |
| --- | --- | --- |
| 1 | table | keys of the nodes, as their items have them |
| 2, 3 | table | of those that are not there: keys of their ids, then of the nodes |

Search items of nodes below a renamed or moved ancestor have an old key. Where such nodes are now is learned from nodes
that were not found at the key in their item. These keys are hints: the node that is read there has to have the expected
id.
"""

from collections.abc import Sequence
from typing import Protocol

from resolvers.ancestors import selected_keys
from resolvers.lists.arguments import NOTHING, RelationKind
from resolvers.lookup import ById, find_spent
from resolvers.session.budget import raise_first_error
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.model.keys import Key, ancestor_keys, last_segment, parent_sort_key
from store.model.records import Record


class Pointer(Protocol):
    """A search item, as far as it leads to its node."""

    @property
    def id(self) -> str: ...

    @property
    def key(self) -> Key: ...


async def pointed_nodes(
    request: Request,
    hierarchy: str,
    some: Sequence[Pointer],
    kinds: set[RelationKind],
    shown: int | None = None,
    *,
    is_strong: bool,
) -> list[Record | None]:
    """The nodes of these search items, None for those that are gone or hidden: eventually consistent, as the items,
    unless a large move is running.

    Ancestors of the first ones, as many as are `shown`, are read with them, as far as relations of these kinds lead to
    them.
    """
    state, cache = request.state, request.state.pages.cache
    keys = [present_key(cache, one.key) for one in some]
    above = [above for key in keys[:shown] for above in selected_keys(key, kinds)]
    nodes = await (state.current_nodes if is_strong else state.weak_nodes)([*keys, *above])
    raise_first_error([nodes[key] for key in keys])
    found: list[Record | None] = []
    for key, one in zip(keys, some, strict=True):
        record = nodes[key]
        found.append(record if isinstance(record, Record) and record.id == one.id else None)
        if found[-1] is not None and found[-1].key != key:  # a running move has taken it away
            _learn(cache, one.key, found[-1].key)
    missing = [index for index, record in enumerate(found) if record is None]
    if missing:
        elsewhere = await find_spent(request, [(ById(hierarchy, some[index].id), NOTHING) for index in missing])
        raise_first_error(elsewhere)
        for index, record in zip(missing, elsewhere, strict=True):
            if isinstance(record, Record):
                found[index] = record
                _learn(cache, some[index].key, record.key)
    return found


def present_key(cache: PageCache, key: Key) -> Key:
    """The key at which a node probably is, by the key in its search item."""
    for former in (key, *reversed(ancestor_keys(key))):
        if (found := cache.peek(("former", former))) is not None:
            return key.moved(former, found[0])
    return key


def _learn(cache: PageCache, former: Key, present: Key) -> None:
    """Remember that a node is at another key than its search item says, and so are all below the same ancestor. One
    that is where its item says shows that its siblings are, too, where another node was before.
    """
    while "#" not in (former.sk, present.sk) and last_segment(*former) == last_segment(*present):
        above = [Key(key.pk, parent_sort_key(key.sk)) for key in (former, present)]
        is_there = former == present
        if above[0].holds(above[1]) and not is_there:
            break  # nothing is below itself
        former, present = above
        if is_there:
            break
    cache.put_hint(("former", former), present)
