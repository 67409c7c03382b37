"""History fields: the revisions of a node, deleted nodes, and the changes of a tree."""

from collections.abc import Collection
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField
from strawberry.utils.str_converters import to_camel_case

from graph.hierarchies.attribute import DateTime
from graph.types import node_fields
from graph.types.field import (
    REQUIRED,
    argument,
    class_of,
    field,
)
from graph.types.revision_types import NodeRevision, NodeRevisionConnection
from graph.types.root_fields import by_id
from graph.types.scalars import Path
from resolvers.past import change_feed as feeds
from resolvers.past import history as states
from resolvers.planning.connection_arguments import ConnectionArguments
from store.errors import BadInput
from store.model.paths import parse_path
from store.model.records import Record
from store.text import shorten


def history_fields(revision: Any, connection: Any) -> dict[str, StrawberryField]:
    """`history` and `atRevision` of the nodes of one hierarchy, or of deleted ones."""
    return {
        "history": field(
            _history,
            connection | None,
            "Its revisions, the newest first.",
            argument("first", int | None, "At most so many; all where it is left out."),
            argument("after", str | None, "Only what follows this cursor of the same list."),
            planned=False,
        ),
        "at_revision": field(
            _at_revision,
            revision | None,
            "Its content as of this revision; null where there is none of this number.",
            argument("n", int, "The revision's number.", default=REQUIRED),
            planned=False,
        ),
    }


def _history(subject: Any, info: Any, first_: Any = None, after_: Any = None) -> Any:
    window = ConnectionArguments(first=first_, after=after_)
    relation = info.context.asked(info._raw_info).connection(info._raw_info)
    return states.read_history(info.context.request, _record(subject), window, nodes=relation.nodes)


def _at_revision(subject: Any, info: Any, n_: int) -> Any:
    return states.read_revision(info.context.request, _record(subject), n_)


def _record(subject: Record | states.DeletedNode) -> Record:
    return subject.record if isinstance(subject, states.DeletedNode) else subject


# -- root fields -------------------------------------------------------------------------------------------------------


def past_fields(known: Collection[str]) -> dict[str, StrawberryField]:
    """`deletedNode` and `changes` over all hierarchies."""
    return {"deleted_node": _deleted_field(known), "changes": _changes_field(known)}


def _deleted_field(known: Collection[str]) -> StrawberryField:
    told = {
        "node_id": field(lambda found, info: found.record.id, strawberry.ID, "The id that it had."),
        "path": field(lambda found, info: node_fields.path(found.record, info), Path, "Where it lay."),
        "level": field(lambda found, info: found.record.level, str, "Which level it was of."),
        "deleted_at": field(lambda found, info: found.at, DateTime, "When it was deleted, in UTC."),
        "deleted_by": field(lambda found, info: found.by, str | None, "Who deleted it, where that is known."),
        "last_revision": field(lambda found, info: found.record, NodeRevision | None, "Its content as it was at last."),
    }
    deleted = _type(
        "DeletedNode",
        "A node that was deleted.",
        told | history_fields(NodeRevision, NodeRevisionConnection),
    )

    async def find(root: Any, info: Any, id_: str) -> states.DeletedNode | None:
        lookup = by_id(known, id_)
        return None if lookup is None else await states.find_deleted(info.context.request, str(lookup[1]))

    one = argument("id", strawberry.ID, "The node's id.", default=REQUIRED)
    return field(find, deleted | None, "The node that had this id and was deleted; null for any other.", one)


def _changes_field(known: Collection[str]) -> StrawberryField:
    async def follow(root: Any, info: Any, hierarchy_: str, tree_: str, **given: Any) -> feeds.ChangePage:
        if hierarchy_ not in known:
            raise BadInput(f'There is no hierarchy "{shorten(hierarchy_)}"; use the name of one that is served.')
        root_path, under = parse_path(tree_)[:1], given.get("under_")
        within = None if under is None else parse_path(under)
        return await feeds.read_changes(info.context.request, hierarchy_, root_path, given.get("since_"), within)

    return field(
        follow,
        _feed_type() | None,
        "What has changed in one tree, in order; kept for 90 days.",
        argument("hierarchy", str, "The hierarchy's name, such as location.", default=REQUIRED),
        argument("tree", Path, "The tree's root.", default=REQUIRED),
        argument("since", str | None, "Only what follows this cursor; all that is kept where it is left out."),
        argument("under", Path | None, "Only changes at this path, below it, or of what it lies in."),
    )


def _feed_type() -> Any:
    told: dict[str, tuple[str, Any, str]] = {
        "event": (
            "event",
            str,
            "CREATED, UPDATED, MOVED or DELETED. "
            "For callers with grants a move out of their sight is DELETED, and one into it CREATED.",
        ),
        "node_id": ("id", strawberry.ID | None, "The node's id; null for one above the caller's grants."),
        "path": ("path", Path, "Where the node lay in this tree when it was changed."),
        "level": ("level", str, "Which level it is of."),
        "revision": ("revision", int | None, "The revision that it has since; null where its nodeId is."),
        "at": ("at", DateTime, "When, in UTC."),
        "from": ("source", Path | None, "Where a moved node lay before; its new path where only its order changed."),
        "to": ("target", Path | None, "Where a moved node lies since."),
        "withDescendants": (
            "with_descendants",
            bool,
            "Whether it is about all below the node as well: true of moves, and of deletions unless the children have "
            "taken the node's place.",
        ),
    }
    fields = {
        f"{name}_": field(_part(part), kind, text, name=to_camel_case(name))
        for name, (part, kind, text) in told.items()
    }
    change: Any = _type("Change", "One node's change.", fields)
    return _type(
        "ChangeFeed",
        "A page of changes, of whole transactions.",
        {
            "changes": field(lambda page, info: page.changes, list[change], "The changes, the oldest first."),
            "cursor": field(lambda page, info: page.cursor, str, "Where to go on from, also later."),
            "has_more": field(lambda page, info: page.has_more, bool, "Whether more may follow at once."),
        },
    )


def _part(name: str) -> Any:
    return lambda change, info: getattr(change, name)


def _type(name: str, description: str, fields: dict[str, StrawberryField]) -> Any:
    return strawberry.type(class_of(name, fields), name=name, description=description)
