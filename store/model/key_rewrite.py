"""Key rewrite: the records of a subtree after a move of its top to another key.

Each move has a token, and each node has the tokens of the last moves of its own or of a node above it, one after
another. So it is known by which moves a node came to its key, whatever other nodes came and went there.
"""

import re
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Self

from msgspec.structs import replace

from store.errors import BadPath
from store.model.keys import MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Key, depth_of, first_rank, last_segment, parent_partition
from store.model.ranks import is_manual
from store.model.records import Record
from store.text import shorten

TOKEN_CHARACTERS = 8
MAX_TOKENS = 32  # of a node, so that its item stays small

_TOKENS = re.compile(rf"([\w-]{{{TOKEN_CHARACTERS}}}){{1,{MAX_TOKENS}}}", re.ASCII)


def new_token() -> str:
    """The token of a move in one transaction."""
    return secrets.token_urlsafe(6)


def token_of(move_id: str) -> str:
    """The token of a background move, from the random part of its id."""
    return urlsafe_b64encode(bytes.fromhex(move_id[-12:])).decode()


def are_tokens(value: object) -> bool:
    """Whether a value is the tokens of moves of a node."""
    return isinstance(value, str) and _TOKENS.fullmatch(value) is not None


@dataclass(frozen=True)
class SubtreeRewrite:
    """The move of the subtree at `source` to `target`, below ancestors of the levels `above`, the root's first.

    `rank` is the new rank of the top; a manual one is kept where its siblings stay the same. `token` is that of the
    move, and added to those of its nodes.
    """

    source: Key
    target: Key
    above: list[str]
    rank: str
    token: str = field(compare=False)

    @classmethod
    def of(cls, top: Record, target: Key, above: list[str], token: str, rank: str | None = None) -> Self:
        """The rewrite; `rank` is a position that was asked for."""
        keeps = is_manual(top.rank) and parent_partition(*target) == top.siblings
        rank = rank or (top.rank if keeps else first_rank(top.level, last_segment(*target)))
        return cls(top.key, target, above, rank, token)

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
        came_by = (record.came_by + self.token)[-MAX_TOKENS * TOKEN_CHARACTERS :]
        return replace(record, pk=key.pk, sk=key.sk, above=above, rank=rank, came_by=came_by)
