"""What a caller may read and write: subtrees, each told by the path of its top."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from store.keys import Path


class Sight(Enum):
    """What a caller sees of a place: all of it, its path and name since a grant lies below, or nothing."""

    WHOLE = "whole"
    STUB = "stub"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Grants:
    """The tops of the subtrees that may be read and written, by hierarchy; the empty path is the whole hierarchy.

    What may be written may be read as well.
    """

    read: Mapping[str, frozenset[Path]]
    write: Mapping[str, frozenset[Path]]

    @classmethod
    def of(cls, read: Iterable[tuple[str, Path]], write: Iterable[tuple[str, Path]]) -> "Grants":
        readable, writable = _by_hierarchy(read), _by_hierarchy(write)
        for hierarchy, paths in writable.items():
            readable[hierarchy] = readable.get(hierarchy, frozenset()) | paths
        return cls(readable, writable)

    def sight(self, hierarchy: str, path: Path) -> Sight:
        """What of the node at a path may be read."""
        tops = self.read.get(hierarchy, frozenset())
        if _covers(tops, path):
            return Sight.WHOLE
        return Sight.STUB if any(top[: len(path)] == path for top in tops) else Sight.NOTHING

    def may_write(self, hierarchy: str, path: Path) -> bool:
        """Whether the node at a path, or a new one there, may be written."""
        return _covers(self.write.get(hierarchy, frozenset()), path)

    def tops(self, hierarchy: str) -> frozenset[Path]:
        """The tops of what may be read; the empty path is the whole hierarchy."""
        return self.read.get(hierarchy, frozenset())


def _covers(tops: frozenset[Path], path: Path) -> bool:
    return any(path[: len(top)] == top for top in tops)


def _by_hierarchy(grants: Iterable[tuple[str, Path]]) -> dict[str, frozenset[Path]]:
    found: dict[str, set[Path]] = {}
    for hierarchy, path in grants:
        found.setdefault(hierarchy, set()).add(path)
    return {hierarchy: frozenset(paths) for hierarchy, paths in found.items()}
