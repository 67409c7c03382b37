"""Nodes of an import plan, which are all in memory until they are written."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from store.model.attributes import Value
from store.model.keys import Key, Path, path_of
from store.model.paths import format_path
from store.text import shorten

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
_NO_VALUES = _encode({})


class Node(Struct, gc=False):
    """A node that the file asks for; small, since all nodes of a file are in memory.

    `number` is the first row that names it, `values` are its attributes as stored; None removes one. They are held as
    `encoded` bytes, which take a quarter of the memory; a change has to be assigned. `rank` is the one that it gets if
    it is new, None for the default.
    """

    pk: str
    sk: str
    level: str
    name: str | None
    id: str | None
    number: int
    encoded: bytes = _NO_VALUES
    rank: str | None = None

    @property
    def values(self) -> dict[str, Value]:
        return _decode(self.encoded)

    @values.setter
    def values(self, values: dict[str, Value]) -> None:
        self.encoded = _encode(values) if values else _NO_VALUES

    @property
    def key(self) -> Key:
        return Key(self.pk, self.sk)

    @property
    def path(self) -> Path:
        return path_of(self.pk, self.sk)

    def __str__(self) -> str:
        return path_text(self.pk, self.sk)


@dataclass
class Tree:
    """The part of a plan for one tree: `nodes`, and the numbers of `rejected` rows, each by sort key."""

    pk: str
    nodes: dict[str, Node] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)


def path_text(pk: str, sk: str) -> str:
    """The path of the node at a key, for messages."""
    return shorten(format_path(path_of(pk, sk)), 200)
