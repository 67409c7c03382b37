"""Grants: the subtrees that a caller may read and write, each named by the path of its root; and what is visible of
keys, key ranges and nodes, under grants and while large moves are running.

Grants and moves show or hide whole subtrees, and a subtree is one range of the table and of each level. So a range
that is partly hidden is split into smaller ranges. Among the children of a visible node, only the root of a subtree can
be hidden.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self
from urllib.parse import unquote

from store.errors import BadInput, Forbidden, shorten
from store.model.keys import Index, Key, KeyRange, Path, hierarchy_of, node_key, parent_partition, path_of, subtree
from store.model.names import NAMES, names_of
from store.model.paths import format_path, parse_path
from store.model.records import Record

MAX_GRANTS = 1_000  # of one caller: each lookup compares a path with all of them

_GRANT = re.compile(r"(read|write):([a-z][a-z0-9_]*)(?:/(.+))?", re.DOTALL)


class Visibility(Enum):
    """The part of a node that a caller may read: all of it, only path and name (a grant lies below it), or nothing."""

    FULL = "full"
    REDACTED = "redacted"
    HIDDEN = "hidden"


@dataclass(frozen=True)
class Grants:
    """The roots of the subtrees that may be read and written, by hierarchy; the empty path is the whole hierarchy.

    Write access includes read access.
    """

    read: Mapping[str, frozenset[Path]]
    write: Mapping[str, frozenset[Path]]

    @classmethod
    def of(cls, read: Iterable[tuple[str, Path]], write: Iterable[tuple[str, Path]]) -> "Grants":
        write = list(write)
        return cls(_by_hierarchy([*read, *write]), _by_hierarchy(write))

    @classmethod
    def parse(cls, texts: Collection[str]) -> "Grants":
        """Parse grants: `read:location` is the whole hierarchy, `write:location/US/NE` a subtree.

        Paths have the form that clients use; further characters may be percent-encoded (RFC 3986), since names of roles
        and scopes cannot hold all. A hierarchy that is not served is accepted and has no effect. Raises BadInput.
        """
        if len(texts) > MAX_GRANTS:
            raise BadInput(f"There are {len(texts)} grants; at most {MAX_GRANTS} are allowed. Grant a common ancestor.")
        found: dict[str, list[tuple[str, Path]]] = {"read": [], "write": []}
        for text in texts:
            match = _GRANT.fullmatch(text)
            if match is None:
                raise BadInput(f'"{shorten(text)}" is not a grant; write read:location or write:location/US/NE.')
            try:
                path = unquote(re.sub("(?i)%(?=2F|25)", "%25", match[3] or ""), errors="strict")  # for parse_path
            except UnicodeDecodeError:
                raise BadInput(f'"{shorten(text)}" has percent-encoded bytes that are not UTF-8.') from None
            found[match[1]].append((match[2], parse_path(path) if path else ()))
        return cls.of(**found)

    @cached_property
    def _above(self) -> dict[str, set[Path]]:
        """The proper prefixes of the readable paths, by hierarchy."""
        return {name: {path[:end] for path in roots for end in range(len(path))} for name, roots in self.read.items()}

    @cached_property
    def digest(self) -> bytes:
        """A hash of the readable subtrees: equal for grants that allow the same reads, and for no others."""
        roots = [f"{name}/{format_path(path)}" for name, paths in self.read.items() for path in highest(paths)]
        return blake2b("\n".join(sorted(roots)).encode(), digest_size=16).digest()

    @cached_property
    def subtrees(self) -> dict[str, list[KeyRange]]:
        """The readable ranges of the table, by tree and in key order, of hierarchies that are readable in part."""
        found: dict[str, list[KeyRange]] = {}
        for hierarchy, roots in self.read.items():
            for key in [node_key(hierarchy, root) for root in highest(roots) if root]:
                found.setdefault(key.pk, []).append(subtree(*key))
        return {pk: sorted(spans, key=lambda span: span.lo) for pk, spans in found.items()}

    def visibility(self, hierarchy: str, path: Path) -> Visibility:
        """The part of the node at a path that may be read, whether or not there is a node."""
        if _covers(self.roots(hierarchy), path):
            return Visibility.FULL
        return Visibility.REDACTED if path in self._above.get(hierarchy, ()) else Visibility.HIDDEN

    def may_write(self, hierarchy: str, path: Path) -> bool:
        """Whether a node at a path may be created or changed."""
        return _covers(self.write.get(hierarchy, frozenset()), path)

    def roots(self, hierarchy: str) -> frozenset[Path]:
        """The roots of the readable subtrees; the empty path is the whole hierarchy."""
        return self.read.get(hierarchy, frozenset())


def visibility_of(grants: Grants | None, hierarchy: str, path: Path) -> Visibility:
    """The part of the node at a path that these grants let read; None grants everything."""
    return Visibility.FULL if grants is None else grants.visibility(hierarchy, path)


def visibility_at(grants: Grants | None, key: Key) -> Visibility:
    """The part of the node at a key that these grants let read; None grants everything."""
    return Visibility.FULL if grants is None else grants.visibility(hierarchy_of(key.pk), path_of(*key))


def _covers(roots: frozenset[Path], path: Path) -> bool:
    return any(path[:length] in roots for length in range(len(path) + 1))


def highest(roots: frozenset[Path]) -> list[Path]:
    """The paths that lie below no other of them."""
    return [root for root in roots if not any(root[:length] in roots for length in range(len(root)))]


def _by_hierarchy(grants: Iterable[tuple[str, Path]]) -> dict[str, frozenset[Path]]:
    found: dict[str, set[Path]] = {}
    for hierarchy, path in grants:
        found.setdefault(hierarchy, set()).add(path)
    return {hierarchy: frozenset(paths) for hierarchy, paths in found.items()}


@dataclass(frozen=True)
class VisibilityFilter:
    """The keys and key ranges that a request may read, given its grants and the running moves.

    `hidden` are the roots of the subtrees that running moves hide; `moved` the old and new roots of moved subtrees, to
    whose old place some id records still point; `grants` is None where everything is granted.
    """

    grants: Grants | None = None
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()

    def visibility(self, key: Key) -> Visibility:
        """The part of the node at a key that may be read."""
        if any(root.holds(key) for root in self.hidden):
            return Visibility.HIDDEN
        return visibility_at(self.grants, key)

    def new_key(self, key: Key) -> Key | None:
        """The key to which a move has taken the node that lay at `key`; None where no move has."""
        for source, target in self.moved:
            if source.holds(key):
                return key.moved(source, target)
        return None

    def visible_parts(self, span: KeyRange) -> list[KeyRange]:
        """The parts of a range that may be read, in its order. A range of `by_parent` is whole or empty, and still
        contains the roots that `hidden_in` counts.
        """
        if span.index is Index.BY_PARENT:
            return [span] if self._is_granted(span.partition) else []
        pk = span.partition if span.index is Index.TABLE else span.partition.rsplit("@", 2)[0]
        parts = [span] if self.grants is None else self._granted(span, pk, self.grants)
        for gap in [subtree(*root) for root in self.hidden if root.pk == pk]:
            parts = [cut for part in parts for cut in (_cut(part, part.lo, gap.lo), _cut(part, gap.hi, part.hi))]
        return [part for part in parts if part.lo < part.hi]

    def hidden_in(self, span: KeyRange) -> int:
        """The maximum number of nodes in a range of `by_parent` that a running move hides; 0 for other ranges."""
        if span.index is not Index.BY_PARENT:
            return 0
        return len([root for root in self.hidden if parent_partition(*root) == span.partition])

    def _is_granted(self, partition: str) -> bool:
        """Whether all children in a partition of `by_parent` (of a node, or of a hierarchy) may be read."""
        hierarchy, _, rest = partition.partition("#")
        root, _, below = rest.partition("#")
        path = path_of(f"{hierarchy}#{root}", f"#{below}") if rest else ()
        return visibility_of(self.grants, hierarchy, path) is Visibility.FULL

    def _granted(self, span: KeyRange, pk: str, grants: Grants) -> list[KeyRange]:
        if () in grants.roots(hierarchy_of(pk)):
            return [span]
        subtrees = grants.subtrees.get(pk, [])  # disjoint, so their ends are in order as well
        first = bisect_right(subtrees, span.lo, key=lambda granted: granted.hi)
        last = bisect_left(subtrees, span.hi, key=lambda granted: granted.lo)
        return [_cut(span, granted.lo, granted.hi) for granted in subtrees[first:last]]


def _cut(span: KeyRange, lo: str, hi: str) -> KeyRange:
    return KeyRange(span.index, span.partition, max(span.lo, lo), min(span.hi, hi))


WITHHELD = frozenset(("id", "rank", "kids", "below", "revision", "updated_at", "changed_by", "attributes"))


class RedactedNode(Record, frozen=True, kw_only=True, dict=True):
    """A node above the caller's grants, which raises Forbidden when a withheld attribute is read: only path, level and
    names may be.

    So code that serializes nodes cannot disclose more than is granted, even if it does not check for redacted nodes.
    """

    @classmethod
    def of_record(cls, record: Record) -> Self:
        """The redacted form of a record. It does not contain the withheld values, so none can leak."""
        return cls(
            pk=record.pk, sk=record.sk, rank="", id="", level=record.level, name=record.name, above=record.above,
            kids={}, below={}, revision=0, updated_at="",
            attributes={NAMES: names} if (names := record.attributes.get(NAMES)) is not None else {},
        )  # fmt: skip

    @property
    def names(self) -> Mapping[str, str]:
        """Its names in other languages, which may be read as its name may."""
        return names_of(super().__getattribute__("attributes"))

    def __getattribute__(self, name: str) -> Any:
        if name in WITHHELD:
            path = shorten(format_path(self.path))
            raise Forbidden(f"Your grants lie below {path}; of this node you may read only path, level and name.")
        return super().__getattribute__(name)


def total_withheld(owner: Record) -> Forbidden:
    """The error for `totalCount` of a list of a redacted node."""
    return Forbidden(f"Your grants lie below {shorten(format_path(owner.path))}; its lists have no totalCount.")


def redacted(outcome: Record | Exception | None, visibility: Visibility) -> Record | Exception | None:
    """A record as the caller may read it: in full, redacted, or not at all. Errors and None stay."""
    if visibility is Visibility.FULL or not isinstance(outcome, Record):
        return outcome
    return RedactedNode.of_record(outcome) if visibility is Visibility.REDACTED else None
