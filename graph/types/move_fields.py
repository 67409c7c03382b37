"""The fields that tell of moves which take more than one transaction: `move` and `moves`, and the type of both."""

from collections.abc import Collection
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.types.field import (
    REQUIRED,
    argument,
    class_of,
    field,
)
from graph.types.scalars import Path
from resolvers.past import move_status
from resolvers.past.move_status import Move as Journaled
from resolvers.past.move_status import MoveState as Stored
from resolvers.planning.connection_arguments import ConnectionArguments
from store.errors import BadInput
from store.model.keys import Key, path_of
from store.model.paths import format_path
from store.text import shorten

_STATES = {
    Stored.COPYING: "The subtree is seen at its old place, and copied to its new one.",
    Stored.SWEEPING: "It is seen at its new place, or gone; what is left at the old one is removed.",
    Stored.DONE: "It is done.",
    Stored.UNDONE: "It could not be done, and everything is as it was.",
}
_make: Any = Enum  # mypy follows only enums that are written out
MoveState = strawberry.enum(
    _make(
        "MoveState", {state.name: strawberry.enum_value(state.value, description=_STATES[state]) for state in Stored}
    ),
    description="How far a move is.",
)


def _path(end: Key | None) -> str | None:
    return None if end is None else format_path(path_of(*end))


_FIELDS = {
    "id": field(lambda move, info: move.id, strawberry.ID, "The move's id."),
    "hierarchy": field(lambda move, info: move.hierarchy, str, "The hierarchy that it is in."),
    "from_": field(lambda move, info: _path(move.source), Path, "Where the node lay before.", name="from"),
    "to_": field(
        lambda move, info: _path(move.target), Path | None, "Where it lies then; null for a deletion.", name="to"
    ),
    "state": field(lambda move, info: MoveState(move.state.value), MoveState, "How far it is."),
    "reason": field(
        lambda move, info: move.reason, str | None, "Why it could not be done; null for one that is not UNDONE."
    ),
    "nodes": field(lambda move, info: move.nodes, int, "How many nodes it is about."),
    "written": field(lambda move, info: move.written, int, "How many of them are copied, or then swept."),
    "started_at": field(lambda move, info: move.started_at, DateTime, "When it was begun, in UTC."),
    "ended_at": field(lambda move, info: move.ended_at, DateTime | None, "When it was done or undone, in UTC."),
    "changed_by": field(lambda move, info: move.changed_by, str | None, "Who began it, where that is known."),
}
Move: Any = strawberry.type(
    class_of("Move", _FIELDS), description="A move, rename or deletion that takes more than one transaction."
)


def move_fields(known: Collection[str]) -> dict[str, StrawberryField]:
    """`move` and `moves` over all hierarchies."""

    async def find(root: Any, info: Any, id_: str) -> Journaled | None:
        return await move_status.find_move(info.context.request, id_)

    async def latest(root: Any, info: Any, hierarchy_: str, first_: Any = None) -> list[Journaled]:
        if hierarchy_ not in known:
            raise BadInput(f'There is no hierarchy "{shorten(hierarchy_)}"; use the name of one that is served.')
        return await move_status.list_moves(info.context.request, hierarchy_, ConnectionArguments(first=first_))

    one = argument("id", strawberry.ID, "The move's id.", default=REQUIRED)
    of = argument("hierarchy", str, "The hierarchy's name, such as location.", default=REQUIRED)
    first = argument("first", int | None, "At most so many; all where it is left out.")
    return {
        "move": field(find, Move | None, "The move with this id; null where there is none, or it ended long ago.", one),
        "moves": field(
            latest, list[Move] | None, "The moves that run or have ended within a day, the newest first.", of, first
        ),
    }
