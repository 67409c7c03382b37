"""Old paths: where a node lies now that once lay, or would have lain, at a path where there is none."""

from collections.abc import Iterable, Mapping

from resolvers.access.grants import Visibility
from resolvers.access.visibility import VisibilityFilter
from resolvers.session.request import Request
from store.metadata.history import current_key
from store.metadata.redirects import path_keys, redirect_key, redirected_id
from store.model.items import Item
from store.model.keys import MAX_SORT_KEY_BYTES, Key, id_key
from store.model.records import Record

MAX_HOPS = 8  # from one old path to the next

Found = dict[Key, Record | Exception]
Outcomes = Mapping[Key, Item | Exception | None]


async def redirected(request: Request, missing: Iterable[Key]) -> Found:
    """The nodes that redirects find for places where nothing lies, and errors where a read failed.

    A hop costs three reads for all together: the aliases of the places and all above them, of which the longest counts,
    the records of their ids, and the nodes. Trees whose stamps count no alias cost nothing.
    """
    found: Found = {}
    ahead = {place: place for place in missing}  # where each is to be looked for by now
    for _ in range(MAX_HOPS):
        ahead = {origin: place for origin, place in ahead.items() if _has_aliases(request, place)}
        if not ahead:
            break
        ahead = await _hop(request, ahead, found)
        request.read_again(ahead.values())
        outcomes = await request.current_outcomes(ahead.values())
        for origin, place in list(ahead.items()):
            if (outcome := outcomes[place]) is not None:
                found[origin] = outcome
                del ahead[origin]
    return found


async def _hop(request: Request, ahead: Mapping[Key, Key], found: Found) -> dict[Key, Key]:
    """Where the aliases of these places lead; a read that failed is noted among the found.

    The places are read once more with the aliases: a node that has come back to one has taken its alias away.
    """
    keys = [*ahead.values(), *[redirect_key(line) for place in ahead.values() for line in path_keys(place)]]
    request.read_again(keys)
    aliases = await request.outcomes(keys, now=True)
    led: dict[Key, tuple[Key, str]] = {}  # the id's record that each is led to, and what of the key lies below
    for origin, place in ahead.items():
        for line in path_keys(place):
            alias = aliases[redirect_key(line)]
            if isinstance(alias, Exception):
                found[origin] = alias
            elif alias is not None:
                led[origin] = id_key(redirected_id(alias)), place.sk[len(line.sk) :]
            if alias is not None:
                break
    ids = [key for key, _ in led.values()]
    request.read_again(ids)
    places = await request.outcomes(ids, now=True)
    back = [origin for origin, place in ahead.items() if aliases[place] is not None and _is_seen(request, place)]
    onward = {origin: ahead[origin] for origin in back if origin not in led}
    for origin, (key, rest) in led.items():
        item = places[key]
        if isinstance(item, Exception):
            found[origin] = item
            continue
        base = current_key(item)
        request.met_unknown_id |= base is None
        if base is not None and len((sk := base.sk + rest).encode()) <= MAX_SORT_KEY_BYTES:
            onward[origin] = Key(base.pk, sk)
    return onward


def _is_seen(request: Request, place: Key) -> bool:
    return request.grants is None or VisibilityFilter(request.grants).sight(place) is not Visibility.NOTHING


def _has_aliases(request: Request, place: Key) -> bool:
    if not _is_seen(request, place):
        return True  # or the reads would tell whether there is such a tree, and whether anything was moved in it
    stamp = request.stamps.get(place.pk)
    return stamp is not None and stamp.aliases > 0
