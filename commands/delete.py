"""`clade delete`: a node, alone, with its descendants, or with its children moved to its parent."""

import sys
from typing import Annotated, Literal

import typer

from commands.common import HierarchyName, StoreUrl, ask, hierarchy_named, store_url, with_store
from commands.interrupt import interruptible
from commands.moves import REST, make
from commands.output import AsJson, by_level, print_json, say
from commands.restore import MAX_SHOWN_CHARACTERS, list_deletions, restoring
from commands.tree import node_at
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.model.keys import Path, node_key
from store.model.paths import format_path, parse_path
from store.model.records import Counts, Record, checked_id
from store.reading import wait_for_moves
from store.transfer.by_id import find_nodes
from store.writing.edit import Named
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer


def delete(
    hierarchy: HierarchyName,
    path: Annotated[
        str | None, typer.Argument(help="Path of the node, such as US/NE/Omaha; or --id, --by.", metavar="PATH")
    ] = None,
    node_id: Annotated[str | None, typer.Option("--id", help="Id of the node, in the place of its path.")] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Unique value of the node, such as sku=TV-48, for its path.", metavar="NAME=VALUE"),
    ] = None,
    policy: Annotated[
        Literal["refuse", "cascade", "reparent"],
        typer.Option(
            case_sensitive=False,
            help="Effect on the children, as of the mutation: refuse keeps a node with children, cascade deletes all "
            "descendants as well, reparent moves the children to the parent of the node.",
        ),
    ] = "refuse",
    is_list: Annotated[
        bool,
        typer.Option("--list", help="List deletions of the last 90 days to undo, of all trees or that of PATH."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, and delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without a question.")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Delete a node, with --policy cascade its descendants as well; or list what was deleted.

    On a terminal it asks, with the number of nodes by level; elsewhere it needs --yes. The last state and the history
    of each node are kept, and clade restore-nodes undoes a deletion. Servers may run meanwhile; a large subtree
    vanishes at one moment, and the command ends when all its items are removed.

    Example: clade delete location US/NE --policy cascade --dry-run
    """
    definition, url = hierarchy_named(hierarchy), store_url(store)
    if is_list and node_id is None and by is None:
        return list_deletions(store, definition, None if path is None else parse_path(path), as_json=as_json)
    if is_list or [path, node_id, by].count(None) != 2:
        raise typer.BadParameter("give either the path of the node, or --id, or --by.", param_hint="PATH")
    place, children = None if path is None else parse_path(path), Policy(policy)
    record = with_store(opened(url), lambda store: _tried(store, definition, place, node_id, by, children))
    deleted = by_level(definition, _counts(record, children))
    name, nodes = shorten(format_path(record.path), MAX_SHOWN_CHARACTERS), _in_words(deleted)
    if not dry_run:
        _confirm(name, nodes, is_confirmed=yes)
        edit = _edit_of(definition, record, children)
        with interruptible(lambda: f"Stopped: the same command deletes {name}, or says that it is gone. {REST}"):
            with_store(opened(url), lambda store: make(store, edit))
    bare_id = record.id.partition(":")[2]
    if as_json:
        shown = {"path": format_path(record.path), "id": bare_id}
        return print_json({**shown, "dryRun": dry_run, "deleted": deleted})
    say(f"{'would be ' if dry_run else ''}deleted: {nodes}")
    if not dry_run:
        say(f"To undo this: {restoring(definition, [bare_id], store)}")


async def _path_of(store: Store, hierarchy: Hierarchy, node_id: str | None, by: str | None) -> Path:
    """The path of the node with an id, with or without the prefix of its hierarchy, or with a unique value. Raises
    BadInput.
    """
    known, (given, equals, text) = hierarchy.unique, (f"id={node_id}" if by is None else by).partition("=")
    name = next((name for name, one in known.items() if given in one.was), given)
    attribute = known.get(name) if by is not None else None
    if by is not None and (attribute is None or not equals):
        names = ", ".join([f"{one}=VALUE" for one in known]) or "for unique attributes, which it has not"
        raise BadInput(f"--by of {hierarchy.name} is {names}; not {shorten(by)}.")
    value = str(attribute.parse(text)) if attribute else checked_id(text.removeprefix(f"{hierarchy.name}:"))
    found = await find_nodes(store, hierarchy, attribute, [value], ReadUsage())
    if value not in found:
        raise BadInput(f'{hierarchy.name} has no node with the {name} "{shorten(value)}".')
    return found[value].path


async def _tried(
    store: Store, hierarchy: Hierarchy, path: Path | None, node_id: str | None, by: str | None, policy: Policy
) -> Record:
    """The node at a path, or with an id or a unique value, with its counts, once no large move changes its tree. Raises
    BadInput where it cannot be deleted so.
    """
    path = path or await _path_of(store, hierarchy, node_id, by)
    await wait_for_moves(store, node_key(hierarchy.name, path).pk, ReadUsage())
    record = await node_at(Request(store, {hierarchy.name: hierarchy}, BudgetLimits()), hierarchy, path)
    if policy is Policy.REFUSE and record.subtree_size > 1:
        name, descendants = shorten(format_path(path), MAX_SHOWN_CHARACTERS), record.subtree_size - 1
        raise BadInput(
            f"{name} has {quantity(descendants, 'descendant')}; "
            "--policy cascade deletes them, too, --policy reparent moves its children to its parent."
        )
    await Writer(store).write(_edit_of(hierarchy, record, policy), ReadUsage(), EditOptions(dry_run=True))
    return record


def _edit_of(hierarchy: Hierarchy, record: Record, policy: Policy) -> Delete:
    """The deletion of this node, and of no other one that comes to its path."""
    return Delete(hierarchy, record.path, policy, record.revision, names=[Named("node", id=record.id)])


def _confirm(name: str, nodes: str, *, is_confirmed: bool) -> None:
    """Ask on a terminal whether nodes are to be deleted; raises BadInput elsewhere."""
    if is_confirmed:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"{nodes} would be deleted; --yes deletes without a question, --dry-run only counts.")
    ask(f"Delete {name}: {nodes}?")


def _counts(record: Record, policy: Policy) -> Counts:
    """The numbers of deleted nodes by level."""
    counts = dict(record.descendant_counts) if policy is Policy.CASCADE else {}
    return {**counts, record.level: counts.get(record.level, 0) + 1}


def _in_words(counts: Counts) -> str:
    """Counts by level in words: `4 nodes (1 COUNTRY, 3 CITY)`."""
    return f"{quantity(sum(counts.values()), 'node')} ({', '.join(f'{n:,} {level}' for level, n in counts.items())})"
