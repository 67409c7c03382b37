"""Permissions: the checks of a mutation, from the caller's grants and paths alone, before anything is read.

A hidden path is NOT_FOUND, with the same message as a path without a node; a path that may only be read is FORBIDDEN.
"""

from resolvers.access.caller import Caller
from resolvers.access.grants import Visibility, visibility_of
from store.errors import Forbidden, shorten
from store.model.keys import Path
from store.model.paths import format_path
from store.writing.create_update import not_found


def check_visible(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound for a hidden path."""
    if visibility_of(caller.reads, hierarchy, path) is Visibility.HIDDEN:
        raise not_found(hierarchy, path)


def check_writable(caller: Caller, hierarchy: str, path: Path, action: str) -> None:
    """Raise Forbidden unless the caller may write the subtree at a path; the empty path is the whole hierarchy."""
    writes = caller.writes
    if writes is not None and not writes.may_write(hierarchy, path):
        raise Forbidden(f"You may not {action}; that takes the grant {_grant('write', hierarchy, path)}.")


def check_change(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may change the node at a path."""
    check_visible(caller, hierarchy, path)
    check_writable(caller, hierarchy, path, f"change {shorten(format_path(path))}")


def check_reorder(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise Forbidden unless the caller may read all siblings of a node: its position discloses each of them."""
    parent = path[:-1]
    if visibility_of(caller.reads, hierarchy, parent) is not Visibility.FULL:
        raise Forbidden(
            "You may not reorder a node among hidden siblings; that takes the grant "
            f"{_grant('read', hierarchy, parent)}."
        )


def check_create(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may put a node at a path, by creation or by a move."""
    writes = caller.writes
    if len(path) > 1 and not (writes is None or writes.may_write(hierarchy, path)):
        check_visible(caller, hierarchy, path[:-1])
    check_writable(caller, hierarchy, path, f"put a node at {shorten(format_path(path))}")


def _grant(verb: str, hierarchy: str, path: Path) -> str:
    return shorten(f"{verb}:{hierarchy}/{format_path(path)}" if path else f"{verb}:{hierarchy}")
