"""The state of one move that takes more than one transaction, as it lies in the table at `pk` = `moves`.

What of a move is seen follows from its state alone: until it flips the subtree is at its old place, from then on at its
new one, or nowhere where it is a cascade. Copies at the other end are hidden.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from store.items import Item
from store.keys import Key


class MoveState(StrEnum):
    """COPYING and SWEEPING are before and after the flip; DONE and UNDONE are ends."""

    COPYING = "COPYING"
    SWEEPING = "SWEEPING"
    DONE = "DONE"
    UNDONE = "UNDONE"


@dataclass(frozen=True)
class Move:
    """A journaled move of the subtree at `source` to `target`, None for a cascade.

    `nodes` are how many it is about, `written` how many of them have been copied, or swept after the flip. Whoever
    works on it holds it until `lease`, in seconds since 1970, and raises `epoch` when taking it over. `started_at` and
    `ended_at` are times in UTC (RFC 3339).
    """

    id: str
    source: Key
    target: Key | None
    top_id: str
    state: MoveState
    nodes: int
    written: int
    epoch: int
    lease: float
    started_at: str
    ended_at: str | None = None
    changed_by: str | None = None

    @classmethod
    def of(cls, item: Item) -> "Move":
        found = cast(dict[str, Any], item)
        target = Key(found["to_pk"], found["to_sk"]) if "to_pk" in found else None
        return cls(
            found["sk"], Key(found["from_pk"], found["from_sk"]), target, found["top_id"], MoveState(found["state"]),
            found["nodes"], found["written"], found["epoch"], found["lease"], found["started_at"],
            found.get("ended_at"), found.get("changed_by"),
        )  # fmt: skip

    @property
    def key(self) -> Key:
        return move_key(self.id)

    @property
    def has_flipped(self) -> bool:
        """Whether the subtree is at its new place."""
        return self.state in (MoveState.SWEEPING, MoveState.DONE)


def move_key(move_id: str) -> Key:
    """Where the state of a move lies."""
    return Key("moves", move_id)
