"""History: the revisions of a node, newest first, one revision by its number, and the last one of a deleted node; the
moves that take more than one transaction, for callers who may read both of their ends.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from resolvers.access.grants import grant_roots, may_read
from resolvers.lists.arguments import (
    Asked,
    ConnectionArguments,
    CursorKind,
    ListCursors,
    Page,
    Relation,
    decode_number,
    page_of,
)
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.request import Request
from resolvers.session.scheduler import outcome_of
from store.metadata.history import deleted_record, former_key, gone_of, revisions, with_revision
from store.metadata.moves import Move, move_key
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key, id_key, revision_key, tree_key
from store.model.records import Item, Record
from store.reading import active_moves, recent_moves

_ID = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True)
class DeletedNode:
    """The last state of a deleted node, at its last path; when and by whom it was deleted, with so many descendants."""

    record: Record
    at: str
    by: str | None
    descendants: int


async def read_histories(request: Request, asked: Sequence[Asked]) -> list[Page | Exception]:
    """The revisions of each node from the current one back to the first, which is read already: one Query for each."""
    calls = [_read_history(request, record, relation) for relation, owners in asked for record in owners]
    return await request.scheduler.gather_outcomes(calls)


async def _read_history(request: Request, record: Record, relation: Relation) -> Page:
    """For callers with grants, revisions at hidden paths are left out, so all revisions have to be read."""
    arguments, nodes = relation.arguments, relation.nodes
    below = None if arguments.after is None else decode_number(arguments.after, CursorKind.HISTORY, record.id)
    end = record.revision + 1 if below is None else min(below, record.revision + 1)
    found = [record] if nodes and record.revision < end else []
    total = record.revision
    if request.grants is not None:
        items = await request.state.items_in(revisions(record.id, record.revision), reverse=True)
        visible = [item for item in items if _may_see_item(request, item)]
        total = len(visible) + 1
        revised = [with_revision(record, item) for item in visible]
        found = (found + [one for one in revised if nodes and one.revision < end])[: arguments.limit]
    else:
        limit = None if arguments.limit is None else arguments.limit - len(found)
        span = revisions(record.id, min(end, record.revision))
        if nodes and min(end, record.revision) > 1 and (limit is None or limit > 0):
            items = await request.state.items_in(span, limit=limit, reverse=True)
            found += [with_revision(record, item) for item in items]
    request.budget.spend_nodes(len(found[: arguments.size]))
    return page_of(found, arguments, total, ListCursors(CursorKind.HISTORY, record.id, lambda one: str(one.revision)))


async def read_revisions(
    request: Request, asked: Sequence[tuple[int, Sequence[Record]]]
) -> list[list[Record] | Exception]:
    """The state of each node at the revision of a number, empty where there is none: one BatchGetItem for up to 100."""
    pairs = [(record, number) for number, owners in asked for record in owners]
    keys = [revision_key(record.id, number) if 0 < number < record.revision else None for record, number in pairs]
    left = request.budget.nodes_left
    request.budget.spend_nodes(min(left, len(pairs)))
    items = await request.state.items(filter(None, keys[:left]), current=True) if any(keys[:left]) else {}
    results: list[list[Record] | Exception] = []
    for (record, number), key in zip(pairs[:left], keys, strict=False):
        results.append(
            outcome_of(items[key], partial(_revision, request, record))
            if key
            else [record] * (number == record.revision)
        )
    return results + [TooManyNodes("The revisions that are looked up", 1, 0)] * (len(pairs) - left)


def _revision(request: Request, record: Record, item: Item | None) -> list[Record]:
    """The state of a node that a revision has, empty where that is none or at a hidden path."""
    return [] if item is None or not _may_see_item(request, item) else [with_revision(record, item)]


async def find_deleted(request: Request, node_id: str) -> DeletedNode | None:
    """The deleted node of an id, None for an unknown id and a node that exists."""
    request.budget.spend_nodes(1)
    item = await request.state.item(id_key(node_id))
    if item is None or not _may_see_item(request, item) or (found := gone_of(item)) is None:
        return None
    version = await request.state.item(revision_key(node_id, found.revision))
    if version is None:
        return None
    return DeletedNode(deleted_record(found, version), found.deleted, found.deleted_by, found.below)


def _may_see_item(request: Request, item: Item) -> bool:
    """Whether the caller may read the path of a former state, or of a deleted node."""
    return may_read(request.grants, former_key(item))


async def find_move(request: Request, move_id: str) -> Move | None:
    """The current state of a move, None for an unknown id and a move that ended more than a day ago."""
    request.budget.spend_nodes(1)
    if not _ID.fullmatch(move_id):
        return None
    key = move_key(move_id)
    item = (await request.state.strong_items([key]))[key]
    move = None if item is None else Move.of(item)
    if move is None or not _may_see_move(request, move):
        return None
    request.state.show_moves([move])
    return move


async def list_moves(request: Request, hierarchy: str, arguments: ConnectionArguments) -> list[Move]:
    """The first moves of a hierarchy that are running or ended within a day, newest first.

    To a caller who may read a part only those that are running, which the versions of her trees name, since all others
    are in one range with those that she may not see.
    """
    tops = grant_roots(request.grants, hierarchy)
    if tops is None:
        moves = await request.scheduler.run(partial(recent_moves, request.store, request.reads, hierarchy))
    else:
        versions = await request.state.versions_of({tree_key(hierarchy, top) for top in tops})
        raise_first_error(versions.values())
        named = {ref for one in versions.values() if isinstance(one, TreeVersion) for ref in one.moves}
        seen = [ref for ref in named if _may_see_all(request, ref.ends)]
        moves = []
        if seen:
            running = (await request.scheduler.run(partial(active_moves, request.store, seen, request.reads))).moves
            moves = sorted(running, key=attrgetter("id"), reverse=True)
    shown = [move for move in moves if _may_see_move(request, move)][: arguments.size]
    request.budget.spend_nodes(len(shown))
    request.state.show_moves(shown)
    return shown


def _may_see_move(request: Request, move: Move) -> bool:
    """Whether the caller may read both ends of a move."""
    return _may_see_all(request, (move.former, *move.running.ends))


def _may_see_all(request: Request, keys: Iterable[Key]) -> bool:
    return all(may_read(request.grants, key) for key in keys)
