"""Suspects: the items of a table where two sides do not state the same facts, found in bounded memory and in any order.

A fact is a text. Each side adds the 128-bit digest of a fact to the sum of a bucket, as often as it states the fact,
one side with the opposite sign. Where both agree the sum is 0; where they differ it is 0 with a probability of 2^-128.
A second pass gathers the facts of such buckets alone; those that remain name the items that state them.

The digests have random keys, so each run of Python has others, and nobody can choose facts that cancel each other.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from store.model.keys import Key, parent_sort_key

BUCKETS = 1 << 19  # of some 90 bytes each
MAX_GATHERED = 200_000  # facts in memory at once, of some 500 bytes each; other buckets are left to the next pass
MAX_KEYS = 10_000  # of the items that state one fact, such as the children of one node

_MASK = BUCKETS - 1
MAX_SUSPECTS = 100_000  # of a scan; a repair looks for further ones when these are mended


class Statements(Protocol):
    """What takes the facts of both sides."""

    def state(self, fact: str, count: int, by: Key) -> None:
        """State a fact so many times, a negative number for what is stored; `by` is the item that says so."""
        ...


class Digests:
    """The sums of all facts by bucket."""

    def __init__(self) -> None:
        self._sums = [0] * BUCKETS

    def state(self, fact: str, count: int, by: Key) -> None:
        digest = hash(fact) << 64 ^ hash(fact + "\n")
        self._sums[digest & _MASK] += digest * count

    def differing(self) -> set[int]:
        """The buckets in which the two sides differ."""
        return {bucket for bucket, digest in enumerate(self._sums) if digest}


class Unmatched(NamedTuple):
    """A fact that one side states more often, and an item that states it, of nodes (`is_derived`) or of the other."""

    fact: str
    by: Key
    is_derived: bool


@dataclass(slots=True)
class _Stated:
    total: int = 0
    derived: list[Key] = field(default_factory=list)
    stored: list[Key] = field(default_factory=list)


class GatheredFacts:
    """The facts of some buckets, with the items that state them; `left` are the buckets that had no room."""

    def __init__(self, buckets: set[int]) -> None:
        self.left: set[int] = set()
        self._buckets = set(buckets)
        self._facts: dict[str, _Stated] = {}
        self._size = 0

    def state(self, fact: str, count: int, by: Key) -> None:
        if hash(fact + "\n") & _MASK not in self._buckets:
            return
        found = self._facts.setdefault(fact, _Stated())
        found.total += count
        keys = found.derived if count > 0 else found.stored
        if len(keys) < MAX_KEYS:
            keys.append(by)
            self._size += 1
        if self._size > MAX_GATHERED and len(self._buckets) > 1:
            self._make_room()

    def unmatched(self) -> Iterator[Unmatched]:
        for fact, stated in self._facts.items():
            if stated.total:
                yield from [Unmatched(fact, by, True) for by in stated.derived]
                yield from [Unmatched(fact, by, False) for by in stated.stored]

    def _make_room(self) -> None:
        """Leave half of the buckets to the next pass."""
        leaving = set(sorted(self._buckets)[len(self._buckets) // 2 :])
        self._buckets -= leaving
        self.left |= leaving
        self._facts = {
            fact: stated for fact, stated in self._facts.items() if hash(fact + "\n") & _MASK in self._buckets
        }
        self._size = sum(len(stated.derived) + len(stated.stored) for stated in self._facts.values())


class Relation(StrEnum):
    """What two sides state facts about; each fact begins with it."""

    ID = "i"  # a node and the record of its id
    REVISIONS = "r"  # a node or tombstone, and the former revisions of its id
    CHILDREN = "k"  # a node and its children of one level, with the levels of their ancestors
    DESCENDANTS = "b"  # a node and its descendants of one level below its children
    SHAPE = "t"  # a tree's version and its nodes of one level and depth
    REDIRECTS = "a"  # a tree's version and its redirects
    LOG = "l"  # a tree's version and its log
    DERIVED = "s"  # a node and the items that follow from it by the kinds


@dataclass
class TreeSuspects:
    """Of one tree the sort keys of nodes, of those whose counts of descendants are to be compared, and of those whose
    derived items are; and the relations of its version.
    """

    nodes: set[str] = field(default_factory=set)
    families: set[str] = field(default_factory=set)
    derived: set[str] = field(default_factory=set)
    relations: set[Relation] = field(default_factory=set)


class Suspects:
    """`trees` are by partition, `hierarchies` those whose version of roots is one, `ids` are of nodes, and `strays` and
    `moved` are keys of derived items, `unknown` those of items of no kind. `has_more` is whether there are more than
    are kept.
    """

    def __init__(self) -> None:
        self.trees: defaultdict[str, TreeSuspects] = defaultdict(TreeSuspects)
        self.hierarchies: set[str] = set()
        self.ids: set[str] = set()
        self.strays: set[Key] = set()
        self.moved: set[Key] = set()
        self.unknown: set[Key] = set()
        self.has_more = False
        self._size = 0

    def add_node(self, key: Key, *, with_counts: bool = False) -> None:
        """Add a node that is suspect by itself."""
        if self._has_room():
            self.trees[key.pk].nodes.add(key.sk)
            if with_counts:
                self.trees[key.pk].families.add(key.sk)

    def add_version(self, partition: str, relation: Relation) -> None:
        """Add the version of a tree, or of the roots of a hierarchy."""
        if "#" not in partition:
            self.hierarchies.add(partition)
        elif self._has_room():
            self.trees[partition].relations.add(relation)

    def add_id(self, key: Key) -> None:
        if self._has_room():
            self.ids.add(key.pk[3:])

    def add_unknown(self, key: Key) -> None:
        if self._has_room():
            self.unknown.add(key)

    def add_unmatched(self, unmatched: Unmatched) -> None:
        """Add what may be wrong where a fact is not stated equally often."""
        relation, key = Relation(unmatched.fact[0]), unmatched.by
        match relation:
            case Relation.ID | Relation.REVISIONS if key.sk.startswith("#"):
                self.add_node(key)
            case Relation.ID | Relation.REVISIONS:
                self.add_id(key)
            case Relation.CHILDREN | Relation.DESCENDANTS if unmatched.fact[1:].startswith(f"{key.pk}{key.sk}\n"):
                self._add_family(key)  # whose counts these are
            case Relation.CHILDREN | Relation.DESCENDANTS:
                self._add_family(Key(key.pk, parent_sort_key(key.sk)))
                self.add_node(key)
            case Relation.DERIVED if unmatched.is_derived:
                if self._has_room():
                    self.trees[key.pk].derived.add(key.sk)
            case Relation.DERIVED:
                if self._has_room():
                    self.strays.add(key)
            case _:
                self.add_version(key.pk, relation)

    def _add_family(self, key: Key) -> None:
        if self._has_room():
            self.trees[key.pk].families.add(key.sk)

    def _has_room(self) -> bool:
        self._size += 1
        self.has_more = self.has_more or self._size > MAX_SUSPECTS
        return self._size <= MAX_SUSPECTS
