"""Mutations: checked against the caller's grants, made as edits of the store, after which the request discards what it
has read.

Nodes are named by their current paths, since mutations follow no redirects. So grants are checked by these paths alone,
before anything is read, and an error discloses nothing about hidden nodes.
"""

from collections.abc import Mapping
from dataclasses import replace

from resolvers.access.callers import (
    check_change,
    check_create,
    check_put,
    check_reorder,
    check_visible,
    check_writable,
)
from resolvers.session.request import Request
from store.engine import ReadUsage
from store.errors import Forbidden
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.names import checked_name
from store.model.paths import check_new_key, checked_path
from store.model.records import checked_id
from store.writing.create_update import Create, Edit, Update
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move, Policy
from store.writing.reorder import Reorder, Side
from store.writing.writer import Writer

Values = Mapping[str, Value]


def enabled_writer(request: Request) -> Writer:
    """The writer of a request. Raises Forbidden where the server accepts no mutations, whoever sends them."""
    if request.writer is None:
        raise Forbidden("Mutations are disabled on this server; CLADE_WRITES=granted or on enables them.")
    return request.writer


async def create(
    request: Request, hierarchy: Hierarchy, path: Path, level: str, name: str, values: Values,
    node_id: str | None, options: EditOptions,
) -> EditResult:  # fmt: skip
    """Create a node at a path; its id may be given with or without the hierarchy's prefix."""
    path = checked_path(path)
    check_new_key(path[-1])
    checked_name(name)
    check_create(request.caller, hierarchy.name, path)
    if node_id is not None:
        check_writable(request.caller, hierarchy.name, (), "choose an id, since ids are shared by all; leave it out")
        node_id = checked_id(node_id.removeprefix(f"{hierarchy.name}:"))
    return await _write(request, Create(hierarchy, path, level, name, values, node_id), options)


async def update(
    request: Request, hierarchy: Hierarchy, path: Path, name: str | None, level: str | None, values: Values,
    expected: int | None, options: EditOptions,
) -> EditResult:  # fmt: skip
    """Change a node's name, level or attributes: those left out stay, None clears a value."""
    checked_name(name)
    check_change(request.caller, hierarchy.name, path)
    return await _write(request, Update(hierarchy, path, name, level, values, expected), options)


async def move(
    request: Request, hierarchy: Hierarchy, path: Path, target: Path, expected: int | None, options: EditOptions
) -> EditResult:
    """Move a node, with all below it, to another path."""
    target = checked_path(target)
    if target[-1] != path[-1]:
        check_new_key(target[-1])
    check_change(request.caller, hierarchy.name, path)
    if target[:-1] == path[:-1]:  # another key needs no look at the parent, which may be hidden
        check_put(request.caller, hierarchy.name, target)
    else:
        check_create(request.caller, hierarchy.name, target)
    return await _write(request, Move(hierarchy, path, target, expected), options)


async def reorder(
    request: Request, hierarchy: Hierarchy, path: Path, side: str, beside: Path | None, expected: int | None,
    options: EditOptions,
) -> EditResult:  # fmt: skip
    """Move a node among its siblings: `first`, `last`, or `before` or `after` the sibling at `beside`."""
    check_change(request.caller, hierarchy.name, path)
    check_visible(request.caller, hierarchy.name, beside or path)
    check_reorder(request.caller, hierarchy.name, path)
    # A store that has a version has no lag.
    settle = request.settle_seconds if request.state.store_version is None else 0.0
    return await _write(request, Reorder(hierarchy, path, Side(side), beside, expected, settle), options)


async def delete(
    request: Request, hierarchy: Hierarchy, path: Path, policy: str, expected: int | None, options: EditOptions
) -> EditResult:
    """Delete a node; `policy` is `refuse`, `cascade` or `reparent`."""
    check_change(request.caller, hierarchy.name, path)
    if policy == Policy.REPARENT.value:
        check_writable(request.caller, hierarchy.name, path[:-1], "let its children take its place")
    return await _write(request, Delete(hierarchy, path, Policy(policy), expected), options)


async def _write(request: Request, edit: Edit, options: EditOptions) -> EditResult:
    """Make an edit, and discard what the request has read before."""
    writer = enabled_writer(request)
    request.state.accepts_stale = False
    options = replace(options, by=request.caller.name, caller=request.caller.id)
    # The reads of an edit are bounded by the size of a transaction; a dry run has the read budget of a query.
    reads = request.reads if options.dry_run else ReadUsage(trace=request.reads.trace)
    try:
        result = await writer.write(edit, reads, options)
    finally:
        if reads is not request.reads:
            request.reads.include(reads)
    if not options.dry_run:
        request.discard_reads()
    return result
