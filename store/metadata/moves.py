"""Large moves as stored: the record of a move or deletion of more than one transaction, at `pk` = `moves`, and the
waits between its steps.

Only its state determines what is visible: before the commit the subtree is at its source, afterwards at its target, or
deleted. The copies at the other end are hidden.
"""

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self, cast

from store.metadata.tree_version import ActiveMoveRef
from store.model.attributes import Value
from store.model.keys import Key, hierarchy_of
from store.model.records import Item, Record

PARTITION = "moves"
LEASE_SECONDS = 30.0  # after its last renewal another process may take the move over
RECORD_SECONDS = 24 * 3600  # after its end, until the record of a move expires
MARGIN_SECONDS = 1.0  # for what a request does before its time limit starts and after it ends
MAX_WAIT_SECONDS = 5.0  # longer, clients and proxies may give up; the move goes on without its request


class MoveState(StrEnum):
    """COPYING and SWEEPING are before and after the commit; DONE and UNDONE are final."""

    COPYING = "COPYING"
    SWEEPING = "SWEEPING"
    DONE = "DONE"
    UNDONE = "UNDONE"


@dataclass(frozen=True)
class Move:
    """A move of the subtree at `source` to `target`; None: a deletion of the subtree.

    Of its `nodes`, `written` have been copied, or swept after the commit, up to the sort key `cursor` of the source;
    `shape` counts those copied by level and depth. The process that runs it has the lease until `lease`, in seconds
    since 1970, and increments `epoch` when it takes it over (fencing). `started_at` and `ended_at` are times in UTC
    (RFC 3339). `reason` is the message for clients why a move is UNDONE.
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
        """The item that stores it; one that has ended expires a day later."""
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
            item["expires"] = int(self.lease) + RECORD_SECONDS  # the lease was renewed when it ended
        return item

    @property
    def key(self) -> Key:
        return move_key(self.id)

    @property
    def running(self) -> ActiveMoveRef:
        """This move as tree versions list it."""
        return ActiveMoveRef(self.id, self.source, self.target)

    @property
    def hierarchy(self) -> str:
        return hierarchy_of(self.source.pk)

    @property
    def has_committed(self) -> bool:
        """Whether the subtree is at its target."""
        return self.state in (MoveState.SWEEPING, MoveState.DONE)

    @property
    def hidden(self) -> Key | None:
        """The top of the subtree that is hidden while the move runs."""
        return self.source if self.has_committed else self.target

    def led(self, key: Key) -> Key | None:
        """The key at which a node is visible whose id record holds `key`; None where it is deleted."""
        if not self.has_committed or not self.source.holds(key):
            return key
        return None if self.target is None else key.moved(self.source, self.target)


def new_move(top: Record, target: Key | None, now: float, at: str, by: str | None) -> Move:
    """The record of a move of a subtree that starts `now`, in seconds since 1970, which is `at` as text."""
    move_id = move_id_from(now) + secrets.token_hex(6)
    nodes, lease = top.subtree_size, now + LEASE_SECONDS
    return Move(move_id, top.key, target, top.id, MoveState.COPYING, nodes, 0, 1, lease, at, None, by)


def move_id_from(now: float) -> str:
    """The prefix of the ids of moves that start at a time, in seconds since 1970; ids are in the order of time."""
    return f"{int(now * 1000):012x}"


def move_key(move_id: str) -> Key:
    """The key of the record of a move."""
    return Key(PARTITION, move_id)


@dataclass(frozen=True)
class MoveTiming:
    """The waits of large moves.

    `grace_seconds`: until all readers have seen the last tree version. `settle_seconds`: until the indexes have caught
    up with the table. `wait_seconds`: how long the request that asked for a move waits for its commit. `lease_seconds`:
    how long a worker has to be silent before another takes over its move.
    """

    grace_seconds: float = 10.0 + MARGIN_SECONDS
    settle_seconds: float = 2.0
    wait_seconds: float = MAX_WAIT_SECONDS
    lease_seconds: float = LEASE_SECONDS

    @classmethod
    def of(cls, request_seconds: float, settle_seconds: float, *, stale_seconds: float = 0.0) -> Self:
        """The timing where no request takes longer than `request_seconds`, half of which at most is spent waiting, or
        begins with a tree version that is older than `stale_seconds`.
        """
        grace = request_seconds + stale_seconds + MARGIN_SECONDS
        return cls(grace, settle_seconds, min(MAX_WAIT_SECONDS, request_seconds / 2))
