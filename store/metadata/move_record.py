"""The state of one move that takes more than one transaction, as it lies in the table at `pk` = `moves`.

What of a move is seen follows from its state alone: until it flips the subtree is at its old place, from then on at its
new one, or nowhere where it is a cascade. Copies at the other end are hidden."""

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from store.metadata.tree_version import ActiveMoveRef
from store.model.attributes import Value
from store.model.items import Item
from store.model.keys import Key, hierarchy_of
from store.model.records import Record

PARTITION = "moves"
LEASE_SECONDS = 30.0  # how long nobody else works on a move after its last sign of life
RECORD_SECONDS = 24 * 3600  # how long the record of a move stays when it has ended


class MoveState(StrEnum):
    """COPYING and SWEEPING are before and after the flip; DONE and UNDONE are ends."""

    COPYING = "COPYING"
    SWEEPING = "SWEEPING"
    DONE = "DONE"
    UNDONE = "UNDONE"


@dataclass(frozen=True)
class Move:
    """A journaled move of the subtree at `source` to `target`, None for a cascade.

    `nodes` are how many it is about, `written` how many of them have been copied, or swept after the flip, up to the
    sort key `cursor` of the source, and `shape` how many of those copied each tier has. Whoever works on it holds it
    until `lease`, in seconds since 1970, and raises `epoch` when taking it over. `started_at` and `ended_at` are times
    in UTC (RFC 3339). `reason` is why one that is UNDONE could not be done, in words for clients.
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
    cursor: str | None = None
    shape: dict[str, int] = field(default_factory=dict)
    reason: str | None = None

    @classmethod
    def of(cls, item: Item) -> "Move":
        found = cast(dict[str, Any], item)
        target = Key(found["to_pk"], found["to_sk"]) if "to_pk" in found else None
        return cls(
            found["sk"], Key(found["from_pk"], found["from_sk"]), target, found["top_id"], MoveState(found["state"]),
            found["nodes"], found["written"], found["epoch"], found["lease"], found["started_at"],
            found.get("ended_at"), found.get("changed_by"), found.get("cursor"), found.get("shape", {}),
            found.get("reason"),
        )  # fmt: skip

    def item(self) -> Item:
        """The item that holds it; one that has ended expires a day later."""
        item: Item = {
            "pk": PARTITION, "sk": self.id, "from_pk": self.source.pk, "from_sk": self.source.sk,
            "top_id": self.top_id, "state": self.state.value, "nodes": self.nodes, "written": self.written,
            "epoch": self.epoch, "lease": self.lease, "started_at": self.started_at, "ended_at": self.ended_at,
            "changed_by": self.changed_by, "cursor": self.cursor, "shape": cast(Value, self.shape),
            "reason": self.reason,
        }  # fmt: skip
        if self.target is not None:
            item |= {"to_pk": self.target.pk, "to_sk": self.target.sk}
        if self.ended_at is not None:
            item["expires"] = int(self.lease) + RECORD_SECONDS  # the lease was as good as now when it ended
        return item

    @property
    def key(self) -> Key:
        return move_key(self.id)

    @property
    def running(self) -> ActiveMoveRef:
        """What the stamps say of it."""
        return ActiveMoveRef(self.id, self.source, self.target)

    @property
    def hierarchy(self) -> str:
        return hierarchy_of(self.source.pk)

    @property
    def has_flipped(self) -> bool:
        """Whether the subtree is at its new place."""
        return self.state in (MoveState.SWEEPING, MoveState.DONE)

    @property
    def hidden(self) -> Key | None:
        """The top of the end at which nothing is to be seen, as long as the move runs."""
        return self.source if self.has_flipped else self.target

    def led(self, place: Key) -> Key | None:
        """Where the node is to be seen whose id record leads to a place; None where it is gone with a cascade."""
        if not self.has_flipped or not self.source.holds(place):
            return place
        return None if self.target is None else place.moved(self.source, self.target)


def new_move(top: Record, target: Key | None, now: float, at: str, by: str | None) -> Move:
    """The move of a node with all below it that somebody begins `now`, which is `at` as text."""
    move_id = move_id_from(now) + secrets.token_hex(6)
    nodes = 1 + sum(top.below.values())
    return Move(move_id, top.key, target, top.id, MoveState.COPYING, nodes, 0, 1, now + LEASE_SECONDS, at, None, by)


def move_id_from(now: float) -> str:
    """What the ids of moves begin with that begin at a time, in seconds since 1970; they are in the order of time."""
    return f"{int(now * 1000):012x}"


def move_key(move_id: str) -> Key:
    """Where the state of a move lies."""
    return Key(PARTITION, move_id)
