"""Move status: the moves that take more than one transaction, for callers who may read both of their ends."""

import re

from resolvers.access.grants import Visibility, visibility_at
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.session.request import Request
from store.metadata.moves import Move, move_key
from store.reading import recent_moves

_ID = re.compile(r"[0-9a-f]{1,64}")


async def find_move(request: Request, move_id: str) -> Move | None:
    """The current state of a move, None for an unknown id and a move that ended more than a day ago."""
    request.budget.spend_nodes(1)
    if not _ID.fullmatch(move_id):
        return None
    key = move_key(move_id)
    item = (await request.state.strong_items([key]))[key]
    move = None if item is None else Move.of(item)
    if move is None or not _is_visible(request, move):
        return None
    request.state.show_moves([move])
    return move


async def list_moves(request: Request, hierarchy: str, window: ConnectionArguments) -> list[Move]:
    """The first moves of a hierarchy that are running or ended within a day, newest first."""
    moves = await recent_moves(request.store, request.reads, hierarchy)
    shown = [move for move in moves if _is_visible(request, move)][: window.size]
    request.budget.spend_nodes(len(shown))
    request.state.show_moves(shown)
    return shown


def _is_visible(request: Request, move: Move) -> bool:
    """Whether the caller may read both ends of a move."""
    return all(visibility_at(request.grants, end) is Visibility.FULL for end in move.running.ends)
