"""History fields: the revisions of a node, deleted nodes, and the changes of a tree.

A revision is the content of a node as of one write. Clients' caches identify objects by ID, so a revision has its own
ID.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any

import strawberry
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node
from graph.hierarchies.registry import RevisionField, camel, revision_fields, values_of
from graph.types.connections import ConnectionTypes, resolver_for
from graph.types.fields import (
    FIRST,
    Fields,
    Path,
    RecordField,
    Resolver,
    argument,
    attribute_of,
    class_of,
    enum_class,
    field,
    name_fields,
    object_type,
)
from graph.types.hierarchies import HierarchyEnums
from graph.types.lookups import by_id
from graph.types.reading import AT_REVISION, HISTORY, ReadingField, read_owners
from graph.types.values import output_type
from resolvers import changes, history
from resolvers.lists.arguments import ConnectionArguments
from store.metadata.moves import Move, MoveState
from store.model.keys import Key, path_of
from store.model.paths import format_path, parse_path
from store.model.records import Record

_NAMES = name_fields()


@strawberry.interface(name="NodeRevision", description="A revision of a node of any hierarchy.")
class NodeRevision:
    id = field(
        lambda record, info: f"{record.id}#{record.revision}",  # no node's id holds a #
        strawberry.ID,
        "ID of the revision; not a node's ID.",
    )
    revision = field(RecordField("revision"), int, "Number of the revision, from 1.")
    changed_at = field(RecordField("updated_at"), DateTime, "Time at which it was written, in UTC.")
    changed_by = field(RecordField("changed_by"), str | None, "Caller that wrote it, if known.")
    name, names = _NAMES["name"], _NAMES["names"]


def _pages(title: str) -> ConnectionTypes:
    return ConnectionTypes(title, "revision", cursors="`after`")


_PAGES = _pages("NodeRevision")
_PAGES.publish(NodeRevision, "A page of the revisions of a node of any hierarchy.")


@dataclass(frozen=True)
class _OfLevels:
    """The value of a revision: an attribute, or a computed field, of the levels that have it; null on all others."""

    resolvers: Mapping[str, Resolver]

    def __call__(self, record: Record, info: Any) -> Any:
        resolve = self.resolvers.get(record.level)
        return None if resolve is None else resolve(record, info)


def revision_types(cls: type[Node], level: Any) -> tuple[Any, Any]:
    """The type of the revisions of one hierarchy's nodes, and its connection; `level` is the enum of its levels.

    It is one type for all levels, with the attributes of each.
    """
    title = cls.prefix + cls.title
    fields = {"level": field(RecordField("level"), level, "Level of the node.")}
    fields |= {one.field: _value_field(cls, one) for one in revision_fields(cls)}
    made = class_of(f"{title}Revision", fields, NodeRevision)
    revision: Any = strawberry.type(made, name=f"{title}Revision", description=f"A revision of a {title}.")
    pages = _pages(f"{title}Revision")
    pages.publish(revision, f"A page of the revisions of a {title}.")
    return revision, pages.connection


def _value_field(cls: type[Node], one: RevisionField) -> StrawberryField:
    """The field of an attribute of some levels; of one that all have it is that of their interface."""
    levels = {name: cls if one.name in values_of(cls) else cls.levels[name] for name in one.levels}
    values = [values_of(level)[one.name] for level in levels.values()]
    text = " ".join(dict.fromkeys(attribute.description for _, attribute in values))
    if one.field != camel(one.name):
        text = f"`{camel(one.name)}` of level {levels[one.levels[0]].label}: {text}"
    deprecated = values[0][1].deprecated if all(attribute.deprecated for _, attribute in values) else ""
    resolve = _OfLevels({name: resolver_for(level, one.name) for name, level in levels.items()})
    return field(resolve, output_type(values[0][0]), text, name=one.field, deprecated=deprecated)


def history_fields(
    revision: Any, connection: Any, history: ReadingField = HISTORY, at_revision: ReadingField = AT_REVISION
) -> Fields:
    """`history` and `atRevision` of the nodes of one hierarchy, or of deleted nodes."""
    after = argument("after", str | None, "After this cursor.")
    number = argument("n", int, "Number of the revision, from 1.")
    return {
        "history": field(history, connection | None, "Revisions, newest first.", FIRST, after),
        "at_revision": field(at_revision, revision | None, "The revision with this number, or null.", number),
    }


# -- root fields -------------------------------------------------------------------------------------------------------


def past_fields(hierarchies: Collection[str], enums: HierarchyEnums) -> tuple[Fields, Fields]:
    """The fields of queries, `deletedNode` and `changes`, and those of subscriptions, over all hierarchies."""
    feed = _feed_type(enums)
    text = "Change feed of one tree, or of the list of roots, oldest first, of the last 90 days."
    after = "Only changes after this cursor of the same feed; by default all changes in the log."
    queries = {
        "deleted_node": _deleted_field(hierarchies, enums),
        "changes": _changes_field(enums, feed, text, after, follow=False),
    }
    text = "Changes of one tree, or of the list of roots, from now or from a cursor on. Each event is a page."
    after = "Begin after this cursor, of an event or of the query `changes`; by default now."
    return queries, {"changes": _changes_field(enums, feed, text, after, follow=True)}


def _changes_field(enums: HierarchyEnums, feed: Any, text: str, after: str, *, follow: bool) -> StrawberryField:
    """`changes` of queries, or with `follow` of subscriptions, for whose next page the context's listener waits."""

    async def read(root: Any, info: Any, hierarchy: Enum, **given: Any) -> changes.ChangePage:
        name, context = str(hierarchy.value), info.context
        tree, under = [None if one is None else parse_path(one) for one in (given.get("tree"), given.get("under"))]
        place = () if tree is None else tree[:1], given.get("after"), under
        read_page = context.listener.read if follow else changes.read_changes
        page: changes.ChangePage = await read_page(context.request, name, *place)
        # The levels as the schema names them:
        return replace(page, changes=[replace(one, level=enums.label(name, one.level)) for one in page.changes])

    subtree = 'Only changes of this subtree, such as "US/NE", and moves and deletions of an ancestor with its subtree.'
    arguments = [
        _hierarchy_argument(enums),
        argument("tree", Path | None, 'Path of the tree\'s root, such as "US"; without it, which roots there are.'),
        argument("after", str | None, after),
        argument("under", Path | None, subtree),
    ]
    return field(read, feed | None, text, *arguments)


def _hierarchy_argument(enums: HierarchyEnums) -> StrawberryArgument:
    return argument("hierarchy", enums.hierarchy, "Name of the hierarchy.")


def _deleted_field(hierarchies: Collection[str], enums: HierarchyEnums) -> StrawberryField:
    def level(found: history.DeletedNode, info: Any) -> str | None:
        return enums.label(found.record.hierarchy, found.record.level)

    owner = attrgetter("record")
    last = ReadingField(read_owners, bind=lambda given: None, owner=owner)

    fields = {
        "node_id": field(attribute_of("record.id"), strawberry.ID, "ID of the node."),
        "path": field(lambda found, info: found.record.path_text, Path, "Path at its deletion."),
        "level": field(level, enums.level | None, "Level of the node; null for a level that no class defines."),
        "deleted_at": field(attribute_of("at"), DateTime, "Time of its deletion, in UTC."),
        "descendant_count": field(attribute_of("descendants"), int, "Number of descendants deleted with it."),
        "deleted_by": field(attribute_of("by"), str | None, "Caller that deleted it; null if unknown."),
        "last_revision": field(last, NodeRevision | None, "Its content at its deletion."),
    }
    own = replace(HISTORY, owner=owner), replace(AT_REVISION, owner=owner)
    revisions = history_fields(NodeRevision, _PAGES.connection, *own)
    deleted = object_type("DeletedNode", "A deleted node, whose revisions are kept.", fields | revisions)

    async def find(root: Any, info: Any, **given: Any) -> history.DeletedNode | None:
        lookup = by_id(hierarchies, given["id"])
        return None if lookup is None else await history.find_deleted(info.context.request, lookup.id)

    id_of_node = argument("id", strawberry.ID, "ID of the deleted node.")
    return field(find, deleted | None, "The deleted node with this ID; null for any other.", id_of_node)


_CHANGE_EVENT = enum_class(
    "TreeChangeEvent",
    {
        "CREATED": ("CREATED", "A node was created."),
        "UPDATED": ("UPDATED", "The names or attributes of a node were changed."),
        "MOVED": ("MOVED", "A node was moved or renamed, or its place among its siblings changed."),
        "DELETED": ("DELETED", "A node was deleted."),
        "RESTORED": ("RESTORED", "The deletion of a node was undone."),
    },
    "The kinds of changes.",
)


def _feed_type(enums: HierarchyEnums) -> Any:
    parts: list[tuple[str, str, Any, str]] = [
        ("event", "event", _CHANGE_EVENT,
         "What happened. For callers with grants a move out of their subtrees is DELETED, and one into them CREATED."),
        ("nodeId", "id", strawberry.ID | None, "ID of the node; null for a change above the caller's grant."),
        ("path", "path", Path, "Path of the node in this tree at the time of the change."),
        ("level", "level", enums.level | None,
         "Level of the node; null for a level that no class defines, and if `nodeId` is null."),
        ("revision", "revision", int | None, "Number of the revision after the change; null if `nodeId` is null."),
        ("at", "at", DateTime, "Time of the change, in UTC."),
        ("from", "source", Path | None, "Path before a move; equal to `to` if only the order changed."),
        ("to", "target", Path | None, "Path after a move."),
        ("withDescendants", "with_descendants", bool,
         "Whether the change includes all descendants: true for moves, restores, and deletions other than REPARENT."),
    ]  # fmt: skip
    fields = {f"{part}_": field(attribute_of(part), kind, text, name=name) for name, part, kind, text in parts}
    change: Any = object_type("TreeChange", "A change of one node.", fields)
    return object_type(
        "TreeChangeFeed",
        "A page of changes, made of whole transactions.",
        {
            "changes": field(attribute_of("changes"), list[change], "Changes, oldest first."),
            "cursor": field(
                attribute_of("cursor"), str, "Cursor of the next page, for `after`, also in later requests."
            ),
            "has_more": field(attribute_of("has_more"), bool, "Whether there may be more changes now."),
        },
    )


_STATES = {
    MoveState.COPYING: "The subtree is visible at its old path while it is copied to its new one.",
    MoveState.SWEEPING: "The subtree is visible at its new path, or deleted; the items at its old path are removed.",
    MoveState.DONE: "The move is done.",
    MoveState.UNDONE: "The move failed; what it had copied is removed until it has an `endedAt`.",
}
_STATE_MEMBERS = {state.name: (state.value, text) for state, text in _STATES.items()}
_MOVE_STATE = enum_class("SubtreeMoveState", _STATE_MEMBERS, "The progress of a move.")


def _path(end: Key | None) -> str | None:
    return None if end is None else format_path(path_of(*end))


def move_type(enums: HierarchyEnums) -> Any:
    """The type SubtreeMove, which names one of the served hierarchies."""
    parts: list[tuple[str, Callable[..., Any], Any, str]] = [
        ("id", attribute_of("id"), strawberry.ID, "ID of the move."),
        ("hierarchy", attribute_of("hierarchy"), enums.hierarchy, "Name of the node's hierarchy."),
        ("from", lambda move, info: _path(move.former), Path, "Path of the node before."),
        ("to", lambda move, info: _path(move.target), Path | None, "Path of the node after; null for a deletion."),
        ("state", lambda move, info: _MOVE_STATE(move.state.value), _MOVE_STATE, "Progress of the move."),
        ("reason", attribute_of("reason"), str | None, "Reason of the failure; null unless UNDONE."),
        ("nodes", attribute_of("nodes"), int, "Number of nodes in the subtree."),
        ("written", attribute_of("written"), int, "Number of nodes copied while COPYING, or removed while SWEEPING."),
        ("startedAt", attribute_of("started_at"), DateTime, "Time of its start, in UTC."),
        ("endedAt", attribute_of("ended_at"), DateTime | None, "Time of its end, in UTC; null while it runs."),
        ("changedBy", attribute_of("changed_by"), str | None, "Caller that started it; null if unknown."),
    ]
    fields = {f"{name}_": field(resolve, kind, text, name=name) for name, resolve, kind, text in parts}
    return object_type("SubtreeMove", "A move, rename, deletion or restore of more than one transaction.", fields)


def move_fields(enums: HierarchyEnums, move: Any) -> Fields:
    """`move` and `moves` over all hierarchies; `move` is the type SubtreeMove."""
    served = {member.value for member in enums.hierarchy}

    async def find(root: Any, info: Any, **given: Any) -> Move | None:
        found = await history.find_move(info.context.request, given["id"])
        return found if found is not None and found.hierarchy in served else None

    async def latest(root: Any, info: Any, hierarchy: Enum, first: Any = None) -> list[Move]:
        arguments = ConnectionArguments(first=first)
        return await history.list_moves(info.context.request, str(hierarchy.value), arguments)

    one = "The move with this ID; null if there is none, or it ended more than a day ago."
    many = "Moves of a hierarchy that are running, or, if all of it may be read, ended within a day; newest first."
    return {
        "move": field(find, move | None, one, argument("id", strawberry.ID, "ID of the move.")),
        "moves": field(latest, list[move] | None, many, _hierarchy_argument(enums), FIRST),
    }
