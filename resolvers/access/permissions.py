"""Permissions: the checks of a mutation, from the caller's grants and paths alone, before anything is read.

A hidden path is NOT_FOUND, with the same message as a path without a node; a path that may only be read is FORBIDDEN.
"""

from resolvers.access.grants import Caller
from store.edits.create_update import not_found
from store.errors import Forbidden
from store.model.keys import Path
from store.model.paths import format_path
from store.text import shorten


def check_visible(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound for a hidden path."""
    if caller.reads is not None and not caller.reads.may_read(hierarchy, path):
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
    if caller.reads is not None and not caller.reads.may_read(hierarchy, parent):
        raise Forbidden(
            "You may not reorder a node among hidden siblings; that takes the grant "
            f"{_grant('read', hierarchy, parent)}."
        )


def check_create(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may put a node at a path, by creation or by a move.

    A parent that she may not see is as one that does not exist, even if she may write what she would put there.
    """
    if len(path) > 1:
        check_visible(caller, hierarchy, path[:-1])
    check_put(caller, hierarchy, path)


def check_put(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise Forbidden unless the caller may write what is put at a path."""
    check_writable(caller, hierarchy, path, f"put a node at {shorten(format_path(path))}")


def _grant(verb: str, hierarchy: str, path: Path) -> str:
    return shorten(f"{verb}:{hierarchy}/{format_path(path)}" if path else f"{verb}:{hierarchy}")
