"""Taken items: the changes of kinds with conditions in an edit, and its faults where other nodes have such items."""

from collections.abc import Sequence
from contextlib import suppress

from store.errors import Conflict, Fault, FaultList, NotFound
from store.kinds.conditional import Taken, Waiting, conditional_changes, keys_of
from store.metadata.history import current_key
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, id_key, path_of
from store.model.records import Change
from store.writing.reads import Reader, ReadSet, WriteContext


async def settled(
    waiting: Sequence[Waiting], hierarchy: Hierarchy | None, reader: Reader, context: WriteContext
) -> dict[Key, Change]:
    """The changes of what is waiting, for which is read what is stored. Raises the faults where others have items."""
    if not waiting:
        return {}
    changes, taken = conditional_changes(waiting, await reader.read([], keys_of(waiting)))
    if taken:
        places = await _places(taken, reader)
        FaultList([_fault(one, hierarchy, *places[one.holder], context) for one in taken]).check()
    return changes


async def _places(taken: Sequence[Taken], reader: Reader) -> dict[str, tuple[Key | None, ReadSet]]:
    """Where the holders of items are, by their ids, None for one that is gone, with the versions of all trees."""
    keys = {one.holder: id_key(one.holder) for one in taken}
    ids = await reader.read([], keys.values())
    found = {holder: current_key(ids[key]) for holder, key in keys.items()}
    versions = await reader.read([place.pk for place in found.values() if place is not None], [])
    return {holder: (place, versions) for holder, place in found.items()}


def _fault(
    one: Taken, hierarchy: Hierarchy | None, place: Key | None, versions: ReadSet, context: WriteContext
) -> Fault:
    """The fault of a node: a running deletion of the holder is a conflict for whoever may read where it is."""
    path: Path | None = None
    if place is not None:
        with suppress(NotFound):
            context.rights.check_visible(one.waiting.record.hierarchy, path_of(*place))
            path = path_of(*place)
    fault = one.waiting.kind.taken(hierarchy, one.waiting.record, one.item, path)
    if place is not None and path is not None:
        for running in versions.version(place.pk).moves:
            if running.target is None and running.holds(place):
                fault = Conflict(running.refusal(place)).at(*fault.field)
    fault.edit = one.waiting.edit
    return fault
