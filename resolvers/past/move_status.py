"""The moves that take more than one transaction, for those who may read both of their ends."""

import re

from resolvers.access.grants import Visibility
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.session.request import Request
from store.metadata.move_record import Move as Move
from store.metadata.move_record import MoveState as MoveState
from store.metadata.move_record import move_key
from store.model.keys import path_of
from store.reading.active_moves import recent_moves

_ID = re.compile(r"[0-9a-f]{1,64}")


async def move(request: Request, move_id: str) -> Move | None:
    """The move of an id as of now, None where there is none, or where it has ended more than a day ago."""
    request.spend(1)
    if not _ID.fullmatch(move_id):
        return None
    key = move_key(move_id)
    item = (await request.read_now([key]))[key]
    found = None if item is None else Move.of(item)
    return found if found is not None and is_seen(request, found) else None


async def moves(request: Request, hierarchy: str, window: ConnectionArguments) -> list[Move]:
    """The moves of a hierarchy that run or have ended within a day, or the first of them, the newest first."""
    found = [one for one in await recent_moves(request.store, request.reads, hierarchy) if is_seen(request, one)]
    shown = found[: window.size]
    request.spend(len(shown))
    return shown


def is_seen(request: Request, found: Move) -> bool:
    """Whether both ends of a move may be read."""
    grants = request.grants
    ends = found.running.ends
    return grants is None or all(grants.sight(found.hierarchy, path_of(*end)) is Visibility.WHOLE for end in ends)
