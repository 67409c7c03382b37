"""Grants: the subtrees that a caller may read and write, each named by the path of its top; and what is visible of keys
and key ranges, under grants and while large moves are running.

The highest tops that may be read are the *grant roots* of a caller who may read a part of a hierarchy: she has them in
place of the roots of its trees, and what is above or beside them does not exist for her.

Grants and moves show or hide whole subtrees, and a subtree is one range of the table and of each level. So a range
that is partly hidden is split into smaller ranges. Among the children of a visible node, only the top of a subtree that
a move hides can be hidden.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import takewhile
from urllib.parse import unquote

from store.errors import BadInput, shorten
from store.model.keys import Index, Key, KeyRange, Path, hierarchy_of, node_key, parent_partition, path_of, subtree
from store.model.paths import format_path, parse_path

MAX_GRANTS = 1_000  # of one caller: each lookup compares a path with all of them

_GRANT = re.compile(r"(read|write):([a-z][a-z0-9_]*)(?:/(.+))?", re.DOTALL)


@dataclass(frozen=True)
class Grants:
    """The tops of the subtrees that may be read and written, by hierarchy; the empty path is the whole hierarchy.

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
    def digest(self) -> bytes:
        """A hash of the readable subtrees: equal for grants that allow the same reads, and for no others."""
        tops = [f"{name}/{format_path(path)}" for name, paths in self._highest.items() for path in paths]
        return blake2b("\n".join(sorted(tops)).encode(), digest_size=16).digest()

    @cached_property
    def subtrees(self) -> dict[str, list[KeyRange]]:
        """The readable ranges of the table, by tree and in key order, of hierarchies that are readable in part."""
        found: dict[str, list[KeyRange]] = {}
        for hierarchy, tops in self._highest.items():
            for key in [node_key(hierarchy, top) for top in tops if top]:
                found.setdefault(key.pk, []).append(subtree(*key))
        return {pk: sorted(spans, key=lambda span: span.lo) for pk, spans in found.items()}

    @cached_property
    def _highest(self) -> dict[str, list[Path]]:
        """The readable paths that lie below no other of them, by hierarchy, in their order."""
        return {
            name: sorted(top for top in tops if not any(top[:length] in tops for length in range(len(top))))
            for name, tops in self.read.items()
        }

    def roots(self, hierarchy: str) -> list[Path] | None:
        """The grant roots of a hierarchy, whether or not there are nodes; None where all of it may be read."""
        found = self._highest.get(hierarchy, [])
        return None if () in found else found

    def roots_below(self, hierarchy: str, path: Path) -> list[Path]:
        """The grant roots that lie below a path."""
        tops, size = self._highest.get(hierarchy, []), len(path)
        return list(takewhile(lambda top: top[:size] == path, tops[bisect_right(tops, path) :]))

    def may_read(self, hierarchy: str, path: Path) -> bool:
        """Whether the node at a path may be read, whether or not there is one."""
        return _covers(self.read.get(hierarchy, frozenset()), path)

    def may_read_part(self, hierarchy: str, path: Path) -> bool:
        """Whether the subtree at a path, or a part of it, may be read."""
        return self.may_read(hierarchy, path) or bool(self.roots_below(hierarchy, path))

    def may_write(self, hierarchy: str, path: Path) -> bool:
        """Whether a node at a path may be created or changed."""
        return _covers(self.write.get(hierarchy, frozenset()), path)

    def may_write_some(self, hierarchy: str) -> bool:
        """Whether any node of a hierarchy may be created or changed."""
        return bool(self.write.get(hierarchy))

    def may_write_child(self, hierarchy: str, parent: Path) -> bool:
        """Whether a child of the node at a path may be created with some key; of the empty path these are the roots."""
        tops = self.write.get(hierarchy, frozenset())
        return _covers(tops, parent) or any(top[:-1] == parent for top in tops if top)


def may_read(grants: Grants | None, key: Key) -> bool:
    """Whether these grants let read the node at a key; None grants everything."""
    return grants is None or grants.may_read(hierarchy_of(key.pk), path_of(*key))


def grant_roots(grants: Grants | None, hierarchy: str) -> list[Path] | None:
    """The grant roots of a hierarchy; None where all of it may be read."""
    return None if grants is None else grants.roots(hierarchy)


def _covers(tops: frozenset[Path], path: Path) -> bool:
    return any(path[:length] in tops for length in range(len(path) + 1))


def _by_hierarchy(grants: Iterable[tuple[str, Path]]) -> dict[str, frozenset[Path]]:
    found: dict[str, set[Path]] = {}
    for hierarchy, path in grants:
        found.setdefault(hierarchy, set()).add(path)
    return {hierarchy: frozenset(paths) for hierarchy, paths in found.items()}


@dataclass(frozen=True)
class VisibilityFilter:
    """The keys and key ranges that a request may read, given its grants and the running moves.

    `hidden` are the tops of the subtrees that running moves hide; `moved` the old and new tops of moved subtrees, to
    whose old place some id records still point; `grants` is None where everything is granted.
    """

    grants: Grants | None = None
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()

    def shows(self, key: Key) -> bool:
        """Whether the node at a key may be read."""
        return not any(top.holds(key) for top in self.hidden) and may_read(self.grants, key)

    def new_key(self, key: Key) -> Key | None:
        """The key to which a move has taken the node that lay at `key`; None where no move has."""
        for source, target in self.moved:
            if source.holds(key):
                return key.moved(source, target)
        return None

    def visible_parts(self, span: KeyRange) -> list[KeyRange]:
        """The parts of a range that may be read, in its order. A range of `by_parent` is whole or empty, and still
        contains the tops that `hidden_in` counts.
        """
        if span.index is Index.BY_PARENT:
            return [span] if self._is_granted(span.partition) else []
        pk = span.partition if span.index is Index.TABLE else span.partition.rsplit("@", 2)[0]
        parts = [span] if self.grants is None else self._granted(span, pk, self.grants)
        for gap in [subtree(*top) for top in self.hidden if top.pk == pk]:
            parts = [cut for part in parts for cut in (_cut(part, part.lo, gap.lo), _cut(part, gap.hi, part.hi))]
        return [part for part in parts if part.lo < part.hi]

    def hidden_in(self, span: KeyRange) -> int:
        """The maximum number of nodes in a range of `by_parent` that a running move hides; 0 for other ranges."""
        if span.index is not Index.BY_PARENT:
            return 0
        return len([top for top in self.hidden if parent_partition(*top) == span.partition])

    def _is_granted(self, partition: str) -> bool:
        """Whether all children in a partition of `by_parent` (of a node, or of a hierarchy) may be read."""
        hierarchy, _, rest = partition.partition("#")
        root, _, below = rest.partition("#")
        path = path_of(f"{hierarchy}#{root}", f"#{below}") if rest else ()
        return self.grants is None or self.grants.may_read(hierarchy, path)

    def _granted(self, span: KeyRange, pk: str, grants: Grants) -> list[KeyRange]:
        if grants.roots(hierarchy_of(pk)) is None:
            return [span]
        subtrees = grants.subtrees.get(pk, [])  # disjoint, so their ends are in order as well
        first = bisect_right(subtrees, span.lo, key=lambda granted: granted.hi)
        last = bisect_left(subtrees, span.hi, key=lambda granted: granted.lo)
        return [_cut(span, granted.lo, granted.hi) for granted in subtrees[first:last]]


def _cut(span: KeyRange, lo: str, hi: str) -> KeyRange:
    return KeyRange(span.index, span.partition, max(span.lo, lo), min(span.hi, hi))
