"""Taken items: the changes of kinds with conditions in an edit, and its faults where other nodes have such items."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from store.errors import Conflict, Fault, FaultList, NotFound
from store.kinds.conditional import Taken, Waiting, conditional_changes, keys_of
from store.metadata.history import current_key
from store.metadata.tree_version import ActiveMoveRef
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, id_key, path_of
from store.model.records import Change, key_of
from store.reading import active_moves
from store.writing.reads import Reader, WriteContext


async def settled(
    waiting: Sequence[Waiting], hierarchy: Hierarchy | None, reader: Reader, context: WriteContext
) -> dict[Key, Change]:
    """The changes of what is waiting, for which is read what is stored. Raises the faults where others have items."""
    if not waiting:
        return {}
    changes, taken = conditional_changes(waiting, await reader.read([], keys_of(waiting)))
    if taken:
        places = await _places(dict.fromkeys([one.holder for one in taken]), reader)
        formers = {one.record.id: one.former for one in waiting}
        faults = [_fault(one, hierarchy, *places[one.holder], context, formers.get(one.holder)) for one in taken]
        FaultList(sorted(faults, key=lambda one: (one.edit or 0, one.field))).check()
    return changes


async def _places(ids: Iterable[str], reader: Reader) -> dict[str, tuple[Key | None, ActiveMoveRef | None]]:
    """Where the nodes with these ids are, None for one that is gone, and the running deletions and restores of them."""
    read_set = await reader.read([], map(id_key, ids))
    keys = {one: current_key(read_set[id_key(one)]) for one in ids}
    await reader.read_into(read_set, {key.pk for key in keys.values() if key is not None}, [])
    held = {one: [ref for ref in read_set.version(key.pk).moves if ref.holds(key)] for one, key in keys.items() if key}
    moves = await active_moves(reader.store, {ref for refs in held.values() for ref in refs}, reader.reads)
    hiding = {
        one: next((ref for ref in refs if ref.target is None or ref.is_restore), None) for one, refs in held.items()
    }
    return {one: (key and (moves.current(key) or key), hiding.get(one)) for one, key in keys.items()}


def _fault(
    one: Taken,
    hierarchy: Hierarchy | None,
    place: Key | None,
    hiding: ActiveMoveRef | None,
    context: WriteContext,
    former: Path | None,
) -> Fault:
    """The fault of a node: a move that hides the holder is a conflict for whoever may read where it is. `former` is the
    last path of a holder that is restored with the node.
    """
    path = former
    if place is not None:
        with suppress(NotFound):
            context.rights.check_visible(one.waiting.record.hierarchy, path_of(*place))
            path = path_of(*place)
    fault = one.waiting.kind.taken(
        hierarchy, one.waiting.record, one.item, path, one.waiting.former, is_beside=former is not None
    )
    if place is not None and path is not None and hiding is not None:
        fault = Conflict(hiding.refusal(place)).at(*fault.field)
    fault.edit = one.waiting.edits.get(key_of(one.item))
    return fault
