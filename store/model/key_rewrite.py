"""How the nodes of a subtree lie when its top lies elsewhere."""

from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from store.errors import BadPath
from store.model.keys import (
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    Key,
    depth_of,
    first_rank,
    last_segment,
    parent_partition,
)
from store.model.ranks import is_manual
from store.model.records import Record
from store.text import shorten


@dataclass(frozen=True)
class SubtreeRewrite:
    """The subtree at `source` as it lies at `target`, where its top stands below nodes of the levels `above`.

    A place among its siblings that was made by hand is kept where these stay the same; `rank` is the one of the top.
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
        """Whether anything could come to lie deeper, or under longer keys, than it does."""
        deeper = depth_of(self.target.sk) > depth_of(self.source.sk)
        return deeper or len(self.target.sk.encode()) > len(self.source.sk.encode())

    def moved(self, record: Record) -> Record:
        """A node of the subtree at its new place; raises BadPath where that would be too deep, or its keys too long."""
        key = record.key.moved(self.source, self.target)
        rank = self.rank if record.key == self.source else record.rank
        if depth_of(key.sk) >= MAX_SEGMENTS or len(key.sk.encode()) > MAX_SORT_KEY_BYTES:
            raise BadPath(
                f'"{shorten(last_segment(*key))}" would lie {depth_of(key.sk) + 1} segments deep under a key of '
                f"{len(key.sk.encode())} bytes; at most {MAX_SEGMENTS} and {MAX_SORT_KEY_BYTES} are possible."
            )
        if (size := len(rank.encode())) > MAX_SORT_KEY_BYTES:
            raise BadPath(f"The key and its level take {size} bytes; at most {MAX_SORT_KEY_BYTES} fit.")
        above = self.above + record.above[depth_of(self.source.sk) :]
        return replace(record, pk=key.pk, sk=key.sk, above=above, rank=rank)
