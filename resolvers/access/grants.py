"""Grants: the subtrees that a caller may read and write, each named by the path of its top."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import blake2b

from store.errors import BadInput, shorten
from store.model.keys import Key, KeyRange, Path, hierarchy_of, node_key, path_of, subtree
from store.model.paths import format_path, parse_path

MAX_GRANTS = 1_000  # of one caller: each lookup compares a path with all of them

_GRANT = re.compile(r"(read|write):([a-z][a-z0-9_]*)(?:/(.+))?", re.DOTALL)


class Visibility(Enum):
    """The part of a node that a caller may read: all of it, only path and name (a grant lies below it), or nothing."""

    FULL = "full"
    REDACTED = "redacted"
    HIDDEN = "hidden"


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

        Paths have the form that clients use. A hierarchy that is not served is accepted and has no effect. Raises
        BadInput.
        """
        if len(texts) > MAX_GRANTS:
            raise BadInput(f"There are {len(texts)} grants; at most {MAX_GRANTS} are allowed. Grant a common ancestor.")
        found: dict[str, list[tuple[str, Path]]] = {"read": [], "write": []}
        for text in texts:
            match = _GRANT.fullmatch(text)
            if match is None:
                raise BadInput(f'"{shorten(text)}" is not a grant; write read:location or write:location/US/NE.')
            found[match[1]].append((match[2], parse_path(match[3]) if match[3] else ()))
        return cls.of(**found)

    @cached_property
    def _above(self) -> dict[str, set[Path]]:
        """The proper prefixes of the readable paths, by hierarchy."""
        return {name: {top[:length] for top in tops for length in range(len(top))} for name, tops in self.read.items()}

    @cached_property
    def digest(self) -> bytes:
        """A hash of the readable subtrees: equal for grants that allow the same reads, and for no others."""
        tops = [f"{name}/{format_path(path)}" for name, paths in self.read.items() for path in highest(paths)]
        return blake2b("\n".join(sorted(tops)).encode(), digest_size=16).digest()

    @cached_property
    def subtrees(self) -> dict[str, list[KeyRange]]:
        """The readable ranges of the table, by tree and in key order, of hierarchies that are readable in part."""
        found: dict[str, list[KeyRange]] = {}
        for hierarchy, tops in self.read.items():
            for key in [node_key(hierarchy, top) for top in highest(tops) if top]:
                found.setdefault(key.pk, []).append(subtree(*key))
        return {pk: sorted(spans, key=lambda span: span.lo) for pk, spans in found.items()}

    def visibility(self, hierarchy: str, path: Path) -> Visibility:
        """The part of the node at a path that may be read, whether or not there is a node."""
        if _covers(self.tops(hierarchy), path):
            return Visibility.FULL
        return Visibility.REDACTED if path in self._above.get(hierarchy, ()) else Visibility.HIDDEN

    def may_write(self, hierarchy: str, path: Path) -> bool:
        """Whether a node at a path may be created or changed."""
        return _covers(self.write.get(hierarchy, frozenset()), path)

    def tops(self, hierarchy: str) -> frozenset[Path]:
        """The tops of the readable subtrees; the empty path is the whole hierarchy."""
        return self.read.get(hierarchy, frozenset())


def visibility_of(grants: Grants | None, hierarchy: str, path: Path) -> Visibility:
    """The part of the node at a path that these grants let read; None grants everything."""
    return Visibility.FULL if grants is None else grants.visibility(hierarchy, path)


def visibility_at(grants: Grants | None, key: Key) -> Visibility:
    """The same for the node at a key."""
    return Visibility.FULL if grants is None else grants.visibility(hierarchy_of(key.pk), path_of(*key))


def _covers(tops: frozenset[Path], path: Path) -> bool:
    return any(path[:length] in tops for length in range(len(path) + 1))


def highest(tops: frozenset[Path]) -> list[Path]:
    """The paths that lie below no other of them."""
    return [top for top in tops if not any(top[:length] in tops for length in range(len(top)))]


def _by_hierarchy(grants: Iterable[tuple[str, Path]]) -> dict[str, frozenset[Path]]:
    found: dict[str, set[Path]] = {}
    for hierarchy, path in grants:
        found.setdefault(hierarchy, set()).add(path)
    return {hierarchy: frozenset(paths) for hierarchy, paths in found.items()}
