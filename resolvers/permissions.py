"""What a caller may write: told by paths alone, so it is decided before anything is read.

What a caller may not see is told as if it did not exist, and in the same words; what it may only see is `FORBIDDEN`.
"""

from resolvers.access.grants import Visibility
from resolvers.session.request import Request
from store.edits.create_update import not_found
from store.errors import Forbidden
from store.model.keys import Path
from store.model.paths import format_path
from store.text import shorten


def must_see(request: Request, hierarchy: str, path: Path) -> None:
    """Raise NotFound for a node of which the caller may not even know that it exists."""
    if request.grants is not None and request.grants.sight(hierarchy, path) is Visibility.NOTHING:
        raise not_found(hierarchy, path)


def must_write(request: Request, hierarchy: str, path: Path, what: str) -> None:
    """Raise Forbidden unless the caller may write the subtree at a path; the empty one is the whole hierarchy."""
    writes = request.caller.writes
    if writes is not None and not writes.may_write(hierarchy, path):
        grant = f"write:{hierarchy}/{format_path(path)}" if path else f"write:{hierarchy}"
        raise Forbidden(f"You may not {what}; that takes the grant {shorten(grant)}.")


def may_change(request: Request, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may change the node at a path."""
    must_see(request, hierarchy, path)
    must_write(request, hierarchy, path, f"change {shorten(format_path(path))}")


def may_order(request: Request, hierarchy: str, path: Path) -> None:
    """Raise Forbidden unless the caller may read all siblings of a node: its place among them tells of each."""
    family = path[:-1]
    if request.grants is not None and request.grants.sight(hierarchy, family) is not Visibility.WHOLE:
        grant = f"read:{hierarchy}/{format_path(family)}" if family else f"read:{hierarchy}"
        raise Forbidden(
            f"You may not put a node in order among siblings unseen; that takes the grant {shorten(grant)}."
        )


def may_put(request: Request, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may have a node at a path where there is none yet."""
    writes = request.caller.writes
    if len(path) > 1 and not (writes is None or writes.may_write(hierarchy, path)):
        must_see(request, hierarchy, path[:-1])
    must_write(request, hierarchy, path, f"put a node at {shorten(format_path(path))}")
