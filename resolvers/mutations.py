"""What mutations do: the wishes of a client as edits of the store, and the request read anew after each.

Each names its nodes by the paths where they lie now, for no mutation follows redirects. So what the caller may do is
decided by these paths alone, before anything is read, and nothing of what lies there can be told by it.
"""

from collections.abc import Mapping
from dataclasses import replace

from resolvers.permissions import (
    may_change,
    may_order,
    may_put,
    must_see,
    must_write,
)
from resolvers.session.request import Request
from store.edits.create_update import Create, Edit, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.reorder import Reorder, Side
from store.engine.usage import ReadUsage
from store.errors import Forbidden
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.paths import checked_path
from store.model.records import checked_id, checked_name
from store.writer.writer import EditOptions as EditOptions
from store.writer.writer import EditResult as EditResult

Values = Mapping[str, Value]


async def create(
    request: Request, hierarchy: Hierarchy, path: Path, level: str, name: str, values: Values,
    node_id: str | None, terms: EditOptions,
) -> EditResult:  # fmt: skip
    """A new node at a path; its id may be given with or without the hierarchy's prefix."""
    path = checked_path(path)
    checked_name(name)
    may_put(request, hierarchy.name, path)
    if node_id is not None:
        must_write(request, hierarchy.name, (), "choose an id, since ids are one for all; leave it out")
        node_id = checked_id(node_id.removeprefix(f"{hierarchy.name}:"))
    return await _write(request, Create(hierarchy, path, level, name, values, node_id), terms)


async def update(
    request: Request, hierarchy: Hierarchy, path: Path, name: str | None, level: str | None, values: Values,
    expected: int | None, terms: EditOptions,
) -> EditResult:  # fmt: skip
    """Other content for a node: what is left out stays, None clears a value."""
    checked_name(name)
    may_change(request, hierarchy.name, path)
    return await _write(request, Update(hierarchy, path, name, level, values, expected), terms)


async def move(
    request: Request, hierarchy: Hierarchy, path: Path, target: Path, expected: int | None, terms: EditOptions
) -> EditResult:
    """A node, with all below it, to another path."""
    target = checked_path(target)
    may_change(request, hierarchy.name, path)
    may_put(request, hierarchy.name, target)
    return await _write(request, Move(hierarchy, path, target, expected), terms)


async def reorder(
    request: Request, hierarchy: Hierarchy, path: Path, side: str, beside: Path | None, expected: int | None,
    terms: EditOptions,
) -> EditResult:  # fmt: skip
    """A node to another place among its siblings: `first`, `last`, or `before` or `after` the one at `beside`."""
    may_change(request, hierarchy.name, path)
    must_see(request, hierarchy.name, beside or path)
    may_order(request, hierarchy.name, path)
    settle = request.settle_seconds if request.version is None else 0.0  # a store that knows its version never lags
    return await _write(request, Reorder(hierarchy, path, Side(side), beside, expected, settle), terms)


async def delete(
    request: Request, hierarchy: Hierarchy, path: Path, policy: str, expected: int | None, terms: EditOptions
) -> EditResult:
    """The end of a node; `policy` is `refuse`, `cascade` or `reparent`."""
    may_change(request, hierarchy.name, path)
    if policy == Policy.REPARENT.value:
        must_write(request, hierarchy.name, path[:-1], "let its children take its place")
    return await _write(request, Delete(hierarchy, path, Policy(policy), expected), terms)


async def _write(request: Request, edit: Edit, terms: EditOptions) -> EditResult:
    """Make an edit, if this server may; what the request has read before is forgotten."""
    if request.writer is None:
        raise Forbidden("This server does not write; whoever runs it allows that by CLADE_WRITES=on.")
    terms = replace(terms, by=request.caller.name, caller=request.caller.id)
    # What is changed is bounded by what may change at once, a dry run as everything that only reads.
    reads = request.reads if terms.dry_run else ReadUsage()
    try:
        written = await request.writer.write(edit, reads, terms)
    finally:
        if reads is not request.reads:
            request.reads.include(reads)
    if not terms.dry_run:
        request.forget()
    return written
