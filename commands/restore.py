"""`clade restore-nodes`: deleted nodes, each with all that its deletion removed below it; and the list of deletions."""

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from commands.common import HierarchyName, StoreUrl, hierarchy_named, store_url, with_store
from commands.interrupt import interruptible
from commands.moves import REST, make
from commands.output import AsJson, print_json, print_table, say
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError, Fault, Faults, Uncertain, quantity, shorten
from store.metadata.history import Gone, gone_of
from store.metadata.tree_version import Event
from store.model.hierarchy import Hierarchy
from store.model.keys import Path, id_key, log_partition, path_of
from store.model.paths import format_path, parse_path
from store.model.records import checked_id
from store.reading import LOG_PAGE_ITEMS, stored_items, transactions
from store.transfer.export import root_keys
from store.writing.edit import Named
from store.writing.restore import Restore

MAX_SHOWN_CHARACTERS = 200  # of a path


def restore_nodes(
    hierarchy: HierarchyName,
    ids: Annotated[list[str], typer.Argument(help="Ids of deleted nodes, as of clade delete --list.", metavar="ID")],
    to: Annotated[
        str | None, typer.Option(help="Path of the new parent, such as US; by default the former one.", metavar="PATH")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Try each id on what is stored now, and restore nothing.")
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Restore deleted nodes, each with all that the same deletion removed below it.

    A node comes back with its id, content, history and order, below its former parent wherever that is now, or below
    --to. The nodes are restored in the order given; the first one that cannot be restored ends the command. Servers may
    run meanwhile; a large subtree appears at one moment, and the command ends when all is done.

    Example: clade restore-nodes location i17 --dry-run
    """
    definition, url = hierarchy_named(hierarchy), store_url(store)
    bare = [checked_id(one.removeprefix(f"{hierarchy}:")) for one in ids]
    parent = [] if to is None else [Named("to", path=parse_path(to))]
    edits = [
        Restore(definition, (), full, names=[Named("id", id=full), *parent])
        for full in [f"{hierarchy}:{one}" for one in bare]
    ]
    done = 0

    async def restore(store: Store) -> None:
        nonlocal done
        for edit in edits:
            result = await make(store, edit, dry_run=dry_run)
            path, plan = format_path(result.record.path), result.dry_run
            nodes = plan.nodes if plan and plan.transactions > 1 else result.record.subtree_size
            nodes = result.move.nodes if result.move else nodes
            if as_json:
                print_json({"path": path, "id": bare[done], "dryRun": dry_run, "nodes": nodes})
            else:
                would = "would be " if dry_run else ""
                say(f"{would}restored: {quantity(nodes, 'node')} at {shorten(path, MAX_SHOWN_CHARACTERS)}")
            done += 1

    def progress(state: str, note: str = "") -> str:
        rest = restoring(definition, bare[done:], store) + ("" if to is None else f" --to {shlex.quote(to)}")
        return f"{state}: {done:,} of {quantity(len(bare), 'id')} restored. {note}To go on: {rest}"

    try:
        with interruptible(lambda: progress("Stopped", f"{REST} ")):
            with_store(opened(url), restore)
    except CladeError as error:
        if done and not dry_run and not isinstance(error, Uncertain):
            say(progress("Failed"), err=True)
        if isinstance(error, Fault | Faults):
            raise BadInput(str(error).replace("give to.", "give --to.")) from None  # the store knows no options
        raise


def restoring(hierarchy: Hierarchy, bare_ids: Sequence[str], store: str | None) -> str:
    """The command that restores nodes by their ids, which have the prefix where they would be options without, in the
    store that was given as an option.
    """
    ids = [f"{hierarchy.name}:{one}" if one.startswith("-") else one for one in bare_ids]
    options = [] if store is None else ["--store", store]
    return shlex.join(["clade", "restore-nodes", hierarchy.name, *ids, *options])


def list_deletions(store_option: str | None, hierarchy: Hierarchy, path: Path | None, *, as_json: bool) -> None:
    """Print the deletions of a tree, or of all trees, that can be restored, the newest first."""
    found = with_store(opened(store_url(store_option)), lambda store: _deletions(store, hierarchy, path))
    rows = [
        (one.deleted, one.deleted_by or "", format_path(path_of(*one.former)), one.id.partition(":")[2], 1 + one.below)
        for one in found
    ]
    if as_json:
        for at, by, place, node_id, nodes in rows:
            print_json({"deletedAt": at, "deletedBy": by or None, "path": place, "id": node_id, "nodes": nodes})
    elif rows:
        print_table(("deleted", "by", "path", "id", "nodes"), [(*texts, f"{nodes:,}") for *texts, nodes in rows])
        say(f"To undo the newest: {restoring(hierarchy, [rows[0][3]], store_option)}", err=True)
    else:
        say("There is no deletion of the last 90 days that can be restored.", err=True)


async def _deletions(store: Store, hierarchy: Hierarchy, path: Path | None) -> list[Gone]:
    """The tombstones of the tops of deletions that change logs tell of: of the tree of a path, or of all trees."""
    reads, ids = ReadUsage(), dict[str, None]()
    logs = [log_partition(hierarchy.name, path or ())]  # without a path that of roots, which has the deleted ones
    if not path:
        logs += [key.pk for key in await root_keys(store, hierarchy, reads)]
    for log in logs:
        number: int | None = None
        while found := await transactions(store, log, number, LOG_PAGE_ITEMS, reads):
            ids |= {entry.id: None for one in found for entry in one.entries if entry.event is Event.DELETED}
            number = found[-1].number
    gone = {
        one.id: one async for _, item in stored_items(store, [*map(id_key, ids)], reads)
        if (one := gone_of(item)) is not None
    }  # fmt: skip

    def is_top(one: Gone) -> bool:
        above = gone.get(one.under or "")
        return one.deletion is None or above is None or above.deletion != one.deletion

    return sorted(filter(is_top, gone.values()), key=lambda one: (one.deleted, one.id), reverse=True)
