"""Mutations: edits of the store with the rights of the caller, after which the request discards what it has read.

Rights are checked by the caller's grants and paths alone, so an error discloses nothing about hidden nodes. They come
before all faults: a part of an input that is at fault counts as whatever would need the fewest of them.
"""

from dataclasses import replace
from typing import NoReturn

from resolvers.access.callers import (
    Caller,
    check_change,
    check_put,
    check_put_child,
    check_reorder,
    check_visible,
    check_writable,
    check_writes,
)
from resolvers.session.request import Request
from store.engine import ReadUsage
from store.errors import CladeError, Forbidden, NotFound
from store.model.keys import Path
from store.writing.create_update import Create, Update
from store.writing.edit import NOWHERE, UNUSABLE, Edit, Places
from store.writing.edit_many import EditMany
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position
from store.writing.reads import Rights
from store.writing.restore import Restore
from store.writing.writer import Writer


class CallerRights(Rights):
    """What a caller may do, by its grants."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def check_visible(self, hierarchy: str, path: Path) -> None:
        check_visible(self._caller, hierarchy, path)

    def check_change(self, hierarchy: str, path: Path) -> None:
        check_change(self._caller, hierarchy, path)

    def check(self, edit: Edit) -> None:
        caller, name, path = self._caller, edit.hierarchy.name, edit.path
        target = edit.target if isinstance(edit, Move) else path
        if isinstance(edit, Create | Move | Restore) and UNUSABLE not in target[:-1]:
            if target[-1] == UNUSABLE:
                check_put_child(caller, name, target[:-1])
            else:
                check_put(caller, name, target)
        if isinstance(edit, Create | Update):
            for one in edit.hierarchy.any_level(edit.level or "").unique:
                if not one.disclosed and edit.values.get(one.name) is not None:
                    action = f"set {one.label}, since no other node may have its value; leave it out"
                    check_writable(caller, name, (), action)
        match edit:
            case Create(node_id=str()):
                check_writable(caller, name, (), "choose an id, since ids are shared by all; leave it out")
            case Move(position=Position()) if NOWHERE not in (path, target[:-1]):
                check_reorder(caller, name, target)
            case Delete(policy=Policy.REPARENT) if path != NOWHERE:
                check_writable(caller, name, path[:-1], "let its children take its place")

    def check_unique(self, hierarchy: str, label: str) -> None:
        action = f"restore nodes with {label}, since no other node may have its value"
        check_writable(self._caller, hierarchy, (), action)


def enabled_writer(request: Request) -> Writer:
    """The writer of a request. Raises Forbidden where the server accepts no mutations, whoever sends them."""
    if request.writer is None:
        raise Forbidden("Mutations are disabled on this server; CLADE_WRITES=granted or on enables them.")
    return request.writer


async def edit(request: Request, asked: Edit | EditMany, options: EditOptions) -> EditResult:
    """Make one edit, or several or none. Raises Forbidden for what the caller may not do, else its faults, all of them
    at once.
    """
    writer = enabled_writer(request)
    check_writes(request.caller, asked.hierarchy.name)
    if (refusal := request.budget.refusal) is not None:  # by a mutation before: there will be no response
        raise refusal
    request.state.accepts_stale = False
    options = replace(
        options,
        by=request.caller.name,
        caller=request.caller.id,
        rights=CallerRights(request.caller),
        settle_seconds=request.settle_seconds if request.state.validators.has_lag else 0.0,
    )
    # The reads of an edit are bounded by the size of a transaction; a dry run has the read budget of a query.
    reads = request.reads if options.dry_run else ReadUsage(trace=request.reads.trace)
    request.has_edits, request.may_have_written = True, request.may_have_written or not options.dry_run
    try:
        result = await writer.write(asked, reads, options)
        if result.refusal is not None:
            await _refuse(writer, asked, result.refusal, reads, options)
        return result
    finally:
        if reads is not request.reads:
            request.reads.include(reads, free=True)
        if not options.dry_run:
            request.forget_reads()


async def _refuse(
    writer: Writer, asked: Edit | EditMany, refusal: CladeError, reads: ReadUsage, options: EditOptions
) -> NoReturn:
    """Raise what somebody is told who may not make a change; what is hidden is not found, at the price of that."""
    if isinstance(refusal, NotFound):
        unfound = asked.placed(Places(), options.rights)  # as if it named by ids what is not there
        await writer.write(unfound, reads, replace(options, dry_run=True))
        refusal = NotFound("There is no such node.")  # without the path, which is hidden
    raise refusal
