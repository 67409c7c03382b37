"""`clade delete`: a node and its descendants."""

import sys
from collections import Counter
from typing import Annotated

import typer

from commands.options import HierarchyName, StoreUrl, hierarchy_named, interruptible, store_url, with_store
from commands.output import AsJson, print_json
from commands.tree import node_at
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import opened
from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Path, node_key
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.reading.active_moves import wait_for_moves
from store.text import quantity, shorten
from store.writer.writer import Writer


def delete(
    hierarchy: HierarchyName,
    path: Annotated[str, typer.Argument(help="Path of the node, such as US/NE/Omaha.", metavar="PATH")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, and delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the descendants, too, without a question.")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Delete a node with its descendants.

    Where there are descendants it asks on a terminal, and needs --yes elsewhere. What is deleted stays in the history.
    Servers may run meanwhile; more than some thousand nodes vanish at one moment, and are removed afterwards.

    Example: clade delete location US/NE --dry-run
    """
    definition, parsed = hierarchy_named(hierarchy), parse_path(path)

    async def run(store: Store) -> Record:
        record = await _record(store, definition, parsed)
        if not dry_run:
            _confirm(definition, record, is_confirmed=yes)
            await _delete(store, definition, record)
        return record

    with interruptible(lambda: "Stopped: the node may be deleted; the same command deletes it, or says so."):
        record = with_store(opened(store_url(store)), run)
    counts = Counter({record.level: 1}) + Counter(record.descendant_counts)
    levels = dict.fromkeys([*definition.levels, *counts])  # the store may have levels of no class
    deleted = {definition.any_level(level).label: counts[level] for level in levels if counts[level]}
    if as_json:
        return print_json({"path": format_path(record.path), "dryRun": dry_run, "deleted": deleted})
    by_level = ", ".join(f"{count:,} {label}" for label, count in deleted.items())
    typer.echo(f"{'would be ' if dry_run else ''}deleted: {record.subtree_size:,} ({by_level})")


async def _record(store: Store, hierarchy: Hierarchy, path: Path) -> Record:
    """The node at a path, once no large move changes its tree. Raises BadInput where there is none."""
    await wait_for_moves(store, node_key(hierarchy.name, path).pk, ReadUsage())
    return await node_at(Request(store, {hierarchy.name: hierarchy}, BudgetLimits()), hierarchy, path)


def _confirm(hierarchy: Hierarchy, record: Record, *, is_confirmed: bool) -> None:
    """Ask on a terminal whether descendants are to be deleted; raises BadInput elsewhere."""
    if is_confirmed or not (below := record.subtree_size - 1):
        return
    name, descendants = shorten(format_path(record.path), 200), quantity(below, "descendant")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"{name} has {descendants}; --yes deletes them, too, --dry-run counts them by level.")
    typer.confirm(f"Delete {name} and {descendants}?", abort=True, err=True)


async def _delete(store: Store, hierarchy: Hierarchy, record: Record) -> None:
    """Delete a node as it was read, and wait for the end."""
    from graph.settings import Settings  # with pydantic, which the help of a command does without

    writer = Writer(store, Settings().move_timing, {hierarchy.name: hierarchy})
    ids = {record.path: record.id}
    try:
        result = await writer.write(Delete(hierarchy, record.path, Policy.CASCADE, record.revision, ids), ReadUsage())
        if result.move is not None:
            await writer.move_worker.finished()
    finally:
        await writer.move_worker.stop()
