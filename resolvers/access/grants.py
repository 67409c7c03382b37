"""Grants: the subtrees that a caller may read and write, each named by the path of its top.

The highest tops are the *grant roots* of a caller who may read a part of a hierarchy: she has them in place of the
roots of its trees, and what is above or beside them does not exist for her.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from store.errors import BadInput
from store.model.keys import Key, Path, hierarchy_of, node_key, path_of
from store.model.paths import format_path, parse_path
from store.model.ranges import KeyRange, subtree
from store.text import shorten

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

    def may_read(self, hierarchy: str, path: Path) -> bool:
        """Whether the node at a path may be read, whether or not there is one."""
        return _covers(self.read.get(hierarchy, frozenset()), path)

    def leads_to_part(self, hierarchy: str, path: Path) -> bool:
        """Whether the subtree at a path has a part that may be read."""
        return self.may_read(hierarchy, path) or bool(self.roots_below(hierarchy, path))

    def roots_below(self, hierarchy: str, path: Path) -> list[Path]:
        """The grant roots that lie below a path."""
        return [top for top in self._highest.get(hierarchy, []) if len(top) > len(path) and top[: len(path)] == path]

    def may_write(self, hierarchy: str, path: Path) -> bool:
        """Whether a node at a path may be created or changed."""
        return _covers(self.write.get(hierarchy, frozenset()), path)


def may_read(grants: Grants | None, key: Key) -> bool:
    """Whether these grants let read the node at a key; None grants everything."""
    return grants is None or grants.may_read(hierarchy_of(key.pk), path_of(*key))


def grant_roots(grants: Grants | None, hierarchy: str) -> list[Path] | None:
    """The grant roots of a hierarchy; None where all of it may be read."""
    return None if grants is None else grants.roots(hierarchy)


def grant_root_of(grants: Grants | None, key: Key) -> Path:
    """The path of the grant root that a node that may be read is or lies below; empty where the hierarchy may be."""
    if grants is None:
        return ()
    path, tops = path_of(*key), grants.read.get(hierarchy_of(key.pk), frozenset())
    return next((path[:length] for length in range(len(path)) if path[:length] in tops), path)


def is_grant_root(grants: Grants | None, key: Key) -> bool:
    """Whether a node that may be read is a grant root, so that nothing above or beside it exists for the caller."""
    return grants is not None and len(grant_root_of(grants, key)) == len(path_of(*key))


def _covers(tops: frozenset[Path], path: Path) -> bool:
    return any(path[:length] in tops for length in range(len(path) + 1))


def _by_hierarchy(grants: Iterable[tuple[str, Path]]) -> dict[str, frozenset[Path]]:
    found: dict[str, set[Path]] = {}
    for hierarchy, path in grants:
        found.setdefault(hierarchy, set()).add(path)
    return {hierarchy: frozenset(paths) for hierarchy, paths in found.items()}


@dataclass(frozen=True)
class Caller:
    """A sender of requests, identified by `id`.

    `name` is stored as `changedBy`. `reads` is what it may read and `writes` what it may write, None for everything.
    """

    id: str = ""
    name: str | None = None
    reads: Grants | None = None
    writes: Grants | None = None


class InvalidCredential(Exception):
    """A credential that authenticates nobody; the message is the reason, for the log alone, without any secret."""


ANYONE = Caller()
"""An anonymous caller, where no credential is required."""
