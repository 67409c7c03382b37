"""Move fields: `move` and `moves`, which show moves that take more than one transaction, and the type of both."""

from collections.abc import Collection
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.types.arguments import FIRST, HIERARCHY, id_argument, served_hierarchy
from graph.types.field import attribute_of, class_of, field
from graph.types.scalars import Path
from resolvers.past import move_status
from resolvers.past.move_status import Move as StoredMove
from resolvers.past.move_status import MoveState as StoredState
from resolvers.planning.connection_arguments import ConnectionArguments
from store.model.keys import Key, path_of
from store.model.paths import format_path

_STATES = {
    StoredState.COPYING: "The subtree is visible at its old path while it is copied to its new one.",
    StoredState.SWEEPING: "The subtree is visible at its new path, or deleted; the items at its old path are removed.",
    StoredState.DONE: "The move is done.",
    StoredState.UNDONE: "The move failed and was undone.",
}
_make: Any = Enum  # mypy follows only enums that are written out
MoveState = strawberry.enum(
    _make(
        "MoveState",
        {state.name: strawberry.enum_value(state.value, description=_STATES[state]) for state in StoredState},
    ),
    description="The progress of a move.",
)


def _path(end: Key | None) -> str | None:
    return None if end is None else format_path(path_of(*end))


_FIELDS = {
    "id": field(attribute_of("id"), strawberry.ID, "ID of the move."),
    "hierarchy": field(attribute_of("hierarchy"), str, "Name of the node's hierarchy."),
    "from_": field(lambda move, info: _path(move.source), Path, "Path of the node before.", name="from"),
    "to_": field(
        lambda move, info: _path(move.target), Path | None, "Path of the node after; null for a deletion.", name="to"
    ),
    "state": field(lambda move, info: MoveState(move.state.value), MoveState, "Progress of the move."),
    "reason": field(attribute_of("reason"), str | None, "Reason of the failure; null unless UNDONE."),
    "nodes": field(attribute_of("nodes"), int, "Number of nodes in the subtree."),
    "written": field(attribute_of("written"), int, "Number of nodes copied while COPYING, or removed while SWEEPING."),
    "started_at": field(attribute_of("started_at"), DateTime, "Time of its start, in UTC."),
    "ended_at": field(attribute_of("ended_at"), DateTime | None, "Time of its end, in UTC; null while it runs."),
    "changed_by": field(attribute_of("changed_by"), str | None, "Caller that started it; null where unknown."),
}
Move: Any = strawberry.type(
    class_of("Move", _FIELDS), description="A move, rename or deletion that takes more than one transaction."
)


def move_fields(hierarchies: Collection[str]) -> dict[str, StrawberryField]:
    """`move` and `moves` over all hierarchies."""

    async def find(root: Any, info: Any, id_: str) -> StoredMove | None:
        return await move_status.move(info.context.request, id_)

    async def latest(root: Any, info: Any, hierarchy_: str, first_: Any = None) -> list[StoredMove]:
        hierarchy = served_hierarchy(hierarchies, hierarchy_)
        return await move_status.moves(info.context.request, hierarchy, ConnectionArguments(first=first_))

    return {
        "move": field(
            find,
            Move | None,
            "The move with this ID; null where there is none, or it ended more than a day ago.",
            id_argument("ID of the move."),
        ),
        "moves": field(
            latest,
            list[Move] | None,
            "Moves of a hierarchy that run or ended within a day, newest first.",
            HIERARCHY,
            FIRST,
        ),
    }
