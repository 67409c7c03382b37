"""What mutations do: the wishes of a client as edits of the store, and the request read anew after each."""

from collections.abc import Mapping

from resolvers.request import Request
from store.attributes import Value
from store.deletions import Delete, Policy
from store.edits import Create, Edit, Update
from store.errors import Forbidden
from store.hierarchy import Hierarchy
from store.keys import Path, checked_path
from store.moves import Move
from store.order import Reorder, Side
from store.records import checked_id
from store.writes import Terms as Terms
from store.writes import Written as Written

Values = Mapping[str, Value]


async def create(
    request: Request, hierarchy: Hierarchy, path: Path, level: str, name: str, values: Values,
    node_id: str | None, terms: Terms,
) -> Written:  # fmt: skip
    """A new node at a path; its id may be given with or without the hierarchy's prefix."""
    if node_id is not None:
        node_id = checked_id(node_id.removeprefix(f"{hierarchy.name}:"))
    return await _write(request, Create(hierarchy, checked_path(path), level, name, values, node_id), terms)


async def update(
    request: Request, hierarchy: Hierarchy, path: Path, name: str | None, level: str | None, values: Values,
    expected: int | None, terms: Terms,
) -> Written:  # fmt: skip
    """Other content for a node: what is left out stays, None clears a value."""
    return await _write(request, Update(hierarchy, path, name, level, values, expected), terms)


async def move(
    request: Request, hierarchy: Hierarchy, path: Path, target: Path, expected: int | None, terms: Terms
) -> Written:
    """A node, with all below it, to another path."""
    return await _write(request, Move(hierarchy, path, checked_path(target), expected), terms)


async def reorder(
    request: Request, hierarchy: Hierarchy, path: Path, side: str, beside: Path | None, expected: int | None,
    terms: Terms,
) -> Written:  # fmt: skip
    """A node to another place among its siblings: `first`, `last`, or `before` or `after` the one at `beside`."""
    settle = request.settle_seconds if request.version is None else 0.0  # a store that knows its version never lags
    return await _write(request, Reorder(hierarchy, path, Side(side), beside, expected, settle), terms)


async def delete(
    request: Request, hierarchy: Hierarchy, path: Path, policy: str, expected: int | None, terms: Terms
) -> Written:
    """The end of a node; `policy` is `refuse`, `cascade` or `reparent`."""
    return await _write(request, Delete(hierarchy, path, Policy(policy), expected), terms)


async def _write(request: Request, edit: Edit, terms: Terms) -> Written:
    """Make an edit, if this server may; what the request has read before is forgotten."""
    if request.writer is None:
        raise Forbidden("This server does not write; whoever runs it allows that by CLADE_WRITES=on.")
    written = await request.writer.write(edit, request.reads, terms)
    if not terms.dry_run:
        request.forget()
    return written
