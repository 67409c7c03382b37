"""History fields: the revisions of a node, deleted nodes, and the changes of a tree."""

from collections.abc import Collection
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField
from strawberry.utils.str_converters import to_camel_case

from graph.hierarchies.attribute import DateTime
from graph.types import node_fields
from graph.types.arguments import AFTER, FIRST, HIERARCHY, id_argument, served_hierarchy
from graph.types.field import REQUIRED, argument, attribute_of, class_of, field
from graph.types.revision_types import NodeRevision, NodeRevisionConnection
from graph.types.root_fields import by_id
from graph.types.scalars import Path
from resolvers.past import change_feed as feeds
from resolvers.past import history as states
from resolvers.planning.relations import RelationKind
from store.model.paths import parse_path
from store.model.records import Record


def history_fields(revision: Any, connection: Any) -> dict[str, StrawberryField]:
    """`history` and `atRevision` of the nodes of one hierarchy, or of deleted nodes."""
    return {
        "history": field(_history, connection | None, "Revisions, newest first.", FIRST, AFTER, compiled=False),
        "at_revision": field(
            _at_revision,
            revision | None,
            "The revision of this number; null where there is none.",
            argument("n", int, "Number of the revision; 1 is the first.", default=REQUIRED),
            compiled=False,
        ),
    }


def _history(subject: Any, info: Any, **_: Any) -> Any:
    relation = info.context.look_ahead(info).relation_of(info, RelationKind.CHILDREN)
    return states.history(info.context.request, _record(subject), relation.window, nodes=relation.nodes)


def _at_revision(subject: Any, info: Any, n_: int) -> Any:
    return states.at_revision(info.context.request, _record(subject), n_)


def _record(subject: Record | states.Deleted) -> Record:
    return subject.record if isinstance(subject, states.Deleted) else subject


# -- root fields -------------------------------------------------------------------------------------------------------


def past_fields(hierarchies: Collection[str]) -> dict[str, StrawberryField]:
    """`deletedNode` and `changes` over all hierarchies."""
    return {"deleted_node": _deleted_field(hierarchies), "changes": _changes_field(hierarchies)}


def _deleted_field(hierarchies: Collection[str]) -> StrawberryField:
    fields = {
        "node_id": field(attribute_of("record.id"), strawberry.ID, "ID of the node."),
        "path": field(lambda found, info: node_fields.path(found.record, info), Path, "Path at its deletion."),
        "level": field(attribute_of("record.level"), str, "Level of the node."),
        "deleted_at": field(attribute_of("at"), DateTime, "Time of its deletion, in UTC."),
        "deleted_by": field(attribute_of("by"), str | None, "Caller that deleted it; null where unknown."),
        "last_revision": field(attribute_of("record"), NodeRevision | None, "Its content at its deletion."),
    }
    revisions = history_fields(NodeRevision, NodeRevisionConnection)
    deleted = _type("DeletedNode", "A deleted node, whose revisions are kept.", fields | revisions)

    async def find(root: Any, info: Any, id_: str) -> states.Deleted | None:
        lookup = by_id(hierarchies, id_)
        return None if lookup is None else await states.deleted(info.context.request, str(lookup[1]))

    id_of_node = id_argument("ID of the deleted node.")
    return field(find, deleted | None, "The deleted node with this ID; null for any other.", id_of_node)


def _changes_field(hierarchies: Collection[str]) -> StrawberryField:
    async def follow(root: Any, info: Any, hierarchy_: str, tree_: str, **given: Any) -> feeds.Feed:
        hierarchy = served_hierarchy(hierarchies, hierarchy_)
        root_path, under = parse_path(tree_)[:1], given.get("under_")
        within = None if under is None else parse_path(under)
        return await feeds.feed(info.context.request, hierarchy, root_path, given.get("since_"), within)

    return field(
        follow,
        _feed_type() | None,
        "Change feed of one tree, oldest first; changes are kept for 90 days.",
        HIERARCHY,
        argument("tree", Path, 'Path of the tree\'s root, such as "US".', default=REQUIRED),
        argument("since", str | None, "Only changes after this cursor of the same feed; all that are kept without it."),
        argument("under", Path | None, 'Only changes of this subtree, such as "US/NE", or of its ancestors.'),
    )


def _feed_type() -> Any:
    parts: dict[str, tuple[str, Any, str]] = {
        "event": (
            "event",
            str,
            "CREATED, UPDATED, MOVED or DELETED. "
            "For callers with grants a move out of their subtrees is DELETED, and one into them CREATED.",
        ),
        "node_id": ("id", strawberry.ID | None, "ID of the node; null for one above the caller's grants."),
        "path": ("path", Path, "Path of the node in this tree at the change."),
        "level": ("level", str, "Level of the node."),
        "revision": ("revision", int | None, "Number of the revision after the change; null where `nodeId` is."),
        "at": ("at", DateTime, "Time of the change, in UTC."),
        "from": ("source", Path | None, "Path before a move; equal to `to` where only the order changed."),
        "to": ("target", Path | None, "Path after a move."),
        "withDescendants": (
            "with_descendants",
            bool,
            "Whether the change includes all descendants: true for moves, and for deletions that are no REPARENT.",
        ),
    }
    fields = {
        f"{name}_": field(attribute_of(part), kind, text, name=to_camel_case(name))
        for name, (part, kind, text) in parts.items()
    }
    change: Any = _type("Change", "A change of one node.", fields)
    return _type(
        "ChangeFeed",
        "A page of changes, made of whole transactions.",
        {
            "changes": field(attribute_of("changes"), list[change], "Changes, oldest first."),
            "cursor": field(attribute_of("cursor"), str, "Cursor of the next page, for `since`; also valid later."),
            "has_more": field(attribute_of("has_more"), bool, "Whether there may be more changes now."),
        },
    )


def _type(name: str, description: str, fields: dict[str, StrawberryField]) -> Any:
    return strawberry.type(class_of(name, fields), name=name, description=description)
