"""Nodes of an import plan, which are all in memory until they are written, those of large trees packed."""

import zlib
from itertools import islice
from sys import intern
from typing import Any

import msgspec
from msgspec import Struct

from store.errors import shorten
from store.model.attributes import Value
from store.model.keys import Key, Path, path_of
from store.model.paths import format_path

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
_decode_rows = msgspec.msgpack.Decoder(list[tuple[str, str, str | None, str | None, int, bytes, str | None]]).decode
_NO_VALUES = _encode({})

PART_NODES = 5_000  # packed at once
LEAST_PACKED = 100  # nodes of a tree; fewer take as much memory packed
MAX_UNPACKED = 100_000  # nodes of trees that may be packed and are not
MAX_REPACKED = 1_000_000  # nodes that are unpacked for further rows: where rows jump between trees, it takes too long


class Node(Struct, gc=False):
    """A node that the file asks for; small, since many are in memory.

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


class Tree:
    """The part of a plan for one tree: its nodes, and the numbers of `rejected` rows, each by sort key.

    `size` is the number of nodes, `packed` are the nodes as compressed bytes, of a tenth of the size, some thousand in
    each part: what is packed and unpacked at a time takes several times its size.
    """

    def __init__(self, pk: str) -> None:
        self.pk = pk
        self.rejected: dict[str, int] = {}
        self.packed: list[bytes] = []
        self._nodes: dict[str, Node] = {}
        self._packed_size = 0

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes by their sort keys, unpacked if they are packed."""
        if self.packed:
            parts, self.packed = self.packed, []
            self._nodes = {
                sk: Node(self.pk, sk, intern(level), name, node_id, number, encoded, rank)
                for part in parts
                for sk, level, name, node_id, number, encoded, rank in _decode_rows(zlib.decompress(part))
            }
        return self._nodes

    @property
    def size(self) -> int:
        return self._packed_size if self.packed else len(self._nodes)

    def pack(self) -> None:
        """Pack the nodes; those that are held elsewhere are not these any more."""
        nodes, self._packed_size = iter(self._nodes.values()), len(self._nodes)
        while part := [(n.sk, n.level, n.name, n.id, n.number, n.encoded, n.rank) for n in islice(nodes, PART_NODES)]:
            self.packed.append(zlib.compress(_encode(part), 1))
        self._nodes = {}


class PlannedTrees(dict[str, Tree]):
    """The trees of a plan by partition. Those that have had no rows for a while are packed."""

    def __init__(self) -> None:
        self._current = Tree("")
        self._left: dict[str, Tree] = {}  # the longest ago first
        self._left_nodes = self._repacked = 0

    def use(self, pk: str) -> Tree:
        """The tree of a row."""
        if pk == self._current.pk:
            return self._current
        left, tree = self._current, self.get(pk)
        if tree is None:
            tree = self[pk] = Tree(pk)
        if self._left.pop(pk, None) is not None:
            self._left_nodes -= tree.size
        elif tree.packed:
            self._repacked += tree.size
        if left.size >= LEAST_PACKED:
            self._left[left.pk] = left
            self._left_nodes += left.size
        self._current = tree
        while self._left_nodes > MAX_UNPACKED and self._repacked <= MAX_REPACKED:
            oldest = self._left.pop(next(iter(self._left)))
            self._left_nodes -= oldest.size
            oldest.pack()
        return tree


def path_text(pk: str, sk: str) -> str:
    """The path of the node at a key, for messages."""
    return shorten(format_path(path_of(pk, sk)), 200)
