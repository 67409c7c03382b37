"""Position order: the nodes of a list at any depth as editors put them, depth-first as `children` shows each level.

A rank is a place among siblings, so the order also takes the ranks of the nodes in between, from the owner down to
those that are listed. They are read with the list where they are no more than it has (`read_together`); else those
above listed nodes are read by key, or all of them where that costs less, as the counts tell.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

from resolvers.lists.arguments import Page
from resolvers.lists.list_request import ListRequest
from resolvers.session.budget import COMPARED_A_UNIT, raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.children import child_key
from resolvers.sorting.ordering import sorted_numbers
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.model.keys import Key, first_rank, last_segment, parent_sort_key
from store.model.records import Record

Read = Callable[[Request, Sequence[ListRequest]], Awaitable[list[Page | Exception]]]
Places = dict[str, int]  # by `child_key`


def read_together(request: Request, requested: ListRequest) -> list[ListRequest]:
    """The list of the nodes in between, if it is to be read with a list."""
    between = requested.counted(request).between(request.hierarchies[requested.hierarchy])
    return [between] if between is not None and 0 < between.max_size <= requested.counted(request).max_size else []


async def read_places(
    request: Request, requested: ListRequest, records: Sequence[Record], known: Sequence[Record], read: Read
) -> tuple[Places, int]:
    """The places of nodes of a list in its order, and how many others were read for them.

    `known` are nodes that were read before. Raises BudgetExceeded and the error of a failed read.
    """
    ranks: dict[str, str] = {}
    async for chunk in in_chunks([*requested.starts, *known]):
        ranks.update({child_key(one): one.rank for one in chunk})
    starts = [child_key(one) for one in requested.starts]
    families, seen, missing = defaultdict[str, list[str]](list), {*starts}, dict[Key, str]()
    async for chunk in in_chunks(records):
        for record in chunk:
            pk, sk, depth = record.pk, record.sk, record.depth
            ranks[pk + sk] = record.rank
            while (name := pk + sk) not in seen:
                seen.add(name)
                if name not in ranks:
                    missing[Key(pk, sk)] = first_rank(record.above[depth], last_segment(pk, sk))
                sk, depth = parent_sort_key(sk), depth - 1
                families[pk + sk].append(name)
    above, spent = await _read_above(request, requested, missing, read) if missing else ([], 0)
    first = {key.pk + key.sk: rank for key, rank in missing.items()}  # of nodes that are gone since
    ranks = first | ranks | {child_key(one): one.rank for one in above}
    places, ahead = Places(), starts[::-1]
    while ahead:
        name = ahead.pop()
        places[name] = len(places)
        family = families.get(name, [])
        if len(family) > 1:
            order = await sorted_numbers(range(len(family)), [ranks[child] for child in family], reverse=True)
            family = [family[number] for number in order]
        ahead += family
        if len(places) % CHUNK_LENGTH == 0:
            await yield_to_loop()
    return places, spent


async def _read_above(
    request: Request, requested: ListRequest, missing: Iterable[Key], read: Read
) -> tuple[Sequence[Record], int]:
    """The nodes at these keys, perhaps among others, and how many were read. Raises as `read_places`."""
    keys, records = list(missing), list[Record]()
    between = requested.counted(request).between(request.hierarchies[requested.hierarchy])
    if between is not None and between.max_size < len(keys) * COMPARED_A_UNIT:  # each key is a read unit
        (page,) = await read(request, [between])
        if isinstance(page, Exception):
            raise page
        records += page.records
        found_keys = {one.key for one in records}
        keys = [key for key in keys if key not in found_keys]
    request.budget.spend_nodes(len(keys), requested.description, compared=True)
    found = await request.state.nodes(keys)
    raise_first_error(found.values())
    spent = len(records) + len(keys)
    return records + [one for one in found.values() if isinstance(one, Record)], spent
