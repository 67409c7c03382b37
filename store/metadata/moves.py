"""Large moves as stored: the record of a move, deletion or restore of more than one transaction, at `pk` = `moves`, and
the waits between its steps.

Only its state determines what is visible: before the commit the subtree is at its source, afterwards at its target, or
deleted. The copies at the other end are hidden.
"""

import secrets
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from store.metadata.history import Gone, shown_key
from store.metadata.tree_version import ActiveMoveRef, by_level
from store.model.decoding import Count, Number, Partition, SortKey, Time, decoded
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


class Move(Struct, frozen=True, kw_only=True, rename={"id": "sk"}):
    """A move of the subtree at `source` to `target`; None: a deletion of the subtree. A restore has one key for both:
    where the subtree comes to; `gone` is the tombstone of its top, which gets `top_rank`.

    Of its `nodes`, `written` have been copied, or swept after the commit, up to the sort key `cursor` of the source;
    `shape` counts those copied by level and depth. The process that runs it has the lease until `lease`, in seconds
    since 1970, and increments `epoch` when it takes it over (fencing). `started_at` and `ended_at` are times in UTC
    (RFC 3339). `reason` is the message for clients why a move is UNDONE. `redirects` and `is_logged` are as of the
    edit. `line` are the ids that lead to what a deletion swept last (`history.line_to`), which are not in the table.
    """

    id: str
    from_pk: Partition
    from_sk: SortKey
    to_pk: Partition | None = None
    to_sk: SortKey | None = None
    top_id: str
    state: MoveState
    nodes: Count
    written: Count
    epoch: Number
    lease: float
    started_at: Time
    ended_at: Time | None = None
    changed_by: str | None = None
    cursor: SortKey | None = None
    shape: dict[str, Count] = {}
    reason: str | None = None
    redirects: bool = True
    is_logged: bool = True
    line: list[str] = []
    gone: Gone | None = None
    top_rank: str = ""

    def __post_init__(self) -> None:
        if (self.to_pk is None) is not (self.to_sk is None):
            raise ValueError("Expected both `to_pk` and `to_sk`, or none of them")
        if (self.gone is not None) is not (self.source == self.target):
            raise ValueError("Expected `gone` where both keys are the same, and only there")

    @classmethod
    def of(cls, item: Item) -> "Move":
        """The move in an item; raises DamagedItem."""
        return decoded(item, cls)

    def item(self) -> Item:
        """The item that stores it; one that has ended expires a day later."""
        item: Item = {"pk": PARTITION, **to_builtins(self)}
        if self.ended_at is not None:
            item["expires"] = int(self.lease) + RECORD_SECONDS  # the lease was renewed when it ended
        return item

    @property
    def source(self) -> Key:
        return Key(self.from_pk, self.from_sk)

    @property
    def target(self) -> Key | None:
        return None if self.to_pk is None or self.to_sk is None else Key(self.to_pk, self.to_sk)

    @property
    def former(self) -> Key:
        """The key of the subtree before: of a restore, at its deletion."""
        return self.source if self.gone is None else self.gone.former

    @property
    def key(self) -> Key:
        return move_key(self.id)

    @property
    def running(self) -> ActiveMoveRef:
        """This move as tree versions list it."""
        return ActiveMoveRef(self.id, self.source, self.target)

    @property
    def partitions(self) -> set[str]:
        """The partitions of trees, and of the hierarchy, whose versions and logs its commit writes."""
        return self.running.partitions | {shown_key(self.former).pk}

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
        return self.running.hidden(has_committed=self.has_committed)

    def led(self, key: Key) -> Key | None:
        """The key at which a node is visible whose id record holds `key`; None where it is deleted."""
        if not self.has_committed or not self.source.holds(key):
            return key
        return None if self.target is None else key.moved(self.source, self.target)

    def counted(self, record: Record) -> Record:
        """The top of a subtree that is restored, with the counts of the copies: before the commit there are none."""
        if self.gone is None or not self.has_committed:
            return record
        kids = by_level({name: n for name, n in self.shape.items() if name.endswith(f"@{record.depth + 1}")})
        return replace(record, kids=dict(kids), below=dict(by_level(self.shape) - Counter([record.level])))


def new_move(
    top: Record,
    target: Key | None,
    now: float,
    at: str,
    by: str | None,
    *,
    redirects: bool = True,
    is_logged: bool = True,
    gone: Gone | None = None,
) -> Move:
    """The record of a move of a subtree that starts `now`, in seconds since 1970, which is `at` as text; of a restore
    of a node with the tombstone `gone`, `top` is as it will be.
    """
    move_id = new_move_id(now)
    to_pk, to_sk = (None, None) if target is None else target
    return Move(
        id=move_id, from_pk=top.pk, from_sk=top.sk, to_pk=to_pk, to_sk=to_sk, top_id=top.id, state=MoveState.COPYING,
        nodes=top.subtree_size if gone is None else 1 + gone.below, written=0, epoch=1, lease=now + LEASE_SECONDS,
        started_at=at, changed_by=by, redirects=redirects, is_logged=is_logged,
        gone=gone, top_rank="" if gone is None else top.rank,
    )  # fmt: skip


def new_move_id(now: float) -> str:
    """A new id of a move or a deletion that starts `now`."""
    return move_id_from(now) + secrets.token_hex(6)


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
