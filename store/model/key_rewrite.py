"""Key rewrite: the records of a subtree after a move of its top to another key."""

from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from store.errors import BadPath
from store.model.keys import MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Key, depth_of, first_rank, last_segment, parent_partition
from store.model.ranks import is_manual
from store.model.records import Record
from store.text import shorten


@dataclass(frozen=True)
class SubtreeRewrite:
    """The move of the subtree at `source` to `target`, below ancestors of the levels `above`, the root's first.

    `rank` is the new rank of the top; a manual one is kept where its siblings stay the same.
    """

    source: Key
    target: Key
    above: list[str]
    rank: str

    @classmethod
    def of(cls, top: Record, target: Key, above: list[str]) -> Self:
        keeps = is_manual(top.rank) and parent_partition(*target) == top.siblings
        rank = top.rank if keeps else first_rank(top.level, last_segment(*target))
        return cls(top.key, target, above, rank)

    @property
    def may_not_fit(self) -> bool:
        """Whether nodes could get deeper, or get longer keys, than they have."""
        deeper = depth_of(self.target.sk) > depth_of(self.source.sk)
        return deeper or len(self.target.sk.encode()) > len(self.source.sk.encode())

    def moved(self, record: Record) -> Record:
        """A node of the subtree after the move; raises BadPath where it is too deep, or its key too long."""
        key = record.key.moved(self.source, self.target)
        rank = self.rank if record.key == self.source else record.rank
        if depth_of(key.sk) >= MAX_SEGMENTS or len(key.sk.encode()) > MAX_SORT_KEY_BYTES:
            raise BadPath(
                f'"{shorten(last_segment(*key))}" would lie {depth_of(key.sk) + 1} segments deep under a key of '
                f"{len(key.sk.encode())} bytes; at most {MAX_SEGMENTS} and {MAX_SORT_KEY_BYTES} are allowed."
            )
        if (size := len(rank.encode())) > MAX_SORT_KEY_BYTES:
            raise BadPath(f"The key and its level take {size} bytes; at most {MAX_SORT_KEY_BYTES} fit.")
        above = self.above + record.above[depth_of(self.source.sk) :]
        return replace(record, pk=key.pk, sk=key.sk, above=above, rank=rank)
