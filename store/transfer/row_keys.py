"""Keys of the nodes on the path of a row."""

from collections.abc import Sequence
from functools import lru_cache

from store.errors import BadPath
from store.model.keys import MAX_ROOT_BYTES, MAX_SEGMENTS, MAX_SORT_KEY_BYTES, encode_segment, path_of
from store.model.paths import check_sizes, checked_segment
from store.text import shorten


class RowKeys:
    """The keys of one row after another; siblings often follow one another, so those of their parent are used again."""

    def __init__(self) -> None:
        self._above: list[object] = []  # the path of the parent of the last row
        self._root = ""
        self._keys: list[str] = []  # of the parent and the nodes above it

    def of(self, path: Sequence[object]) -> tuple[str, list[str]]:
        """The encoded root of a path, and the sort keys of the nodes on it, the root's first.

        Raises BadPath as `paths.checked_path` does, which takes several times as long.
        """
        if not 0 < len(path) <= MAX_SEGMENTS:
            raise BadPath(f"A path has 1 to {MAX_SEGMENTS} segments, not {len(path)}.")
        above = [*path[:-1]]
        try:
            if above != self._above or not above:
                self._root, self._keys = _keys(above or path)
                self._above = above
            keys = [*self._keys, f"{self._keys[-1]}{encoded(path[-1])}#"] if above else self._keys
        except TypeError:  # a value that cannot be hashed is not a text
            raise BadPath(f"A path's segments are texts, not {shorten(repr(path))}.") from None
        if len(keys[-1]) > MAX_SORT_KEY_BYTES // 8 or len(self._root) > MAX_ROOT_BYTES // 8:
            check_sizes(path_of(f"#{self._root}", keys[-1]))
        return self._root, keys


@lru_cache(maxsize=1 << 16)
def encoded(segment: object) -> str:
    """A segment as a part of keys; raises BadPath where it is none, TypeError where it cannot be hashed."""
    return encode_segment(checked_segment(segment))


def _keys(path: Sequence[object]) -> tuple[str, list[str]]:
    """The encoded root of a path, and the sort keys of the nodes on it."""
    root, *others = [encoded(segment) for segment in path]
    keys = ["#"]
    for segment in others:
        keys.append(f"{keys[-1]}{segment}#")
    return root, keys
