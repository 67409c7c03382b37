"""The fields that tell what was: a node's former states, deleted nodes, and what has changed in a tree."""

from collections.abc import Collection
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.attribute import DateTime
from graph.field import REQUIRED, argument, class_of, field
from graph.lookup import by_id
from graph.scalars import Path
from resolvers import feed as feeds
from resolvers import history as states
from resolvers.window import Window
from store.errors import BadInput
from store.keys import parse_path, shorten
from store.records import Record


def history_fields(node: Any, connection: Any) -> dict[str, StrawberryField]:
    """`history` and `atRevision` of the nodes of one hierarchy. A former state is the node with the content of then."""
    return {
        "history": field(
            _history,
            connection | None,
            "Its states from this one back to the first: the node with the content of then, where it lies now.",
            argument("first", int | None, "At most so many; all where it is left out."),
            argument("after", str | None, "Only what follows this cursor of the same list."),
            planned=False,
        ),
        "at_revision": field(
            lambda record, info, n_: states.at_revision(info.context.request, record, n_),
            node | None,
            "The node with the content of this revision; null where there is none so early.",
            argument("n", int, "The revision.", default=REQUIRED),
            planned=False,
        ),
    }


def _history(record: Record, info: Any, first_: Any = None, after_: Any = None) -> Any:
    window = Window(first=first_, after=after_)
    relation = info.context.asked(info._raw_info).connection(info._raw_info)
    return states.history(info.context.request, record, window, nodes=relation.nodes)


# -- root fields -------------------------------------------------------------------------------------------------------


def past_fields(known: Collection[str], node: Any) -> dict[str, StrawberryField]:
    """`deletedNode` and `changes` over all hierarchies."""
    return {"deleted_node": _deleted_field(known, node), "changes": _changes_field(known)}


def _deleted_field(known: Collection[str], node: Any) -> StrawberryField:
    deleted = _type(
        "DeletedNode",
        "A node that was deleted.",
        {
            "node": field(lambda found, info: found.record, node, "The node as it was at last, where it lay."),
            "deleted_at": field(lambda found, info: found.at, DateTime, "When it was deleted, in UTC."),
            "deleted_by": field(lambda found, info: found.by, str | None, "Who deleted it, where that is known."),
        },
    )

    async def find(root: Any, info: Any, id_: str) -> states.Deleted | None:
        lookup = by_id(known, id_)
        return None if lookup is None else await states.deleted(info.context.request, str(lookup[1]))

    one = argument("id", strawberry.ID, "The node's id.", default=REQUIRED)
    return field(find, deleted | None, "The node that had this id and was deleted; null for any other.", one)


def _changes_field(known: Collection[str]) -> StrawberryField:
    async def follow(root: Any, info: Any, hierarchy_: str, tree_: str, **given: Any) -> feeds.Feed:
        if hierarchy_ not in known:
            raise BadInput(f'There is no hierarchy "{shorten(hierarchy_)}"; use the name of one that is served.')
        root_path, under = parse_path(tree_)[:1], given.get("under_")
        within = None if under is None else parse_path(under)
        return await feeds.feed(info.context.request, hierarchy_, root_path, given.get("since_"), within)

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
        "id": ("id", strawberry.ID | None, "The node's id; null for one above the caller's grants."),
        "path": ("path", Path, "Where the node lay in this tree when it was changed."),
        "level": ("level", str, "Which level it is of."),
        "revision": ("revision", int | None, "The revision that it has since; null where its id is."),
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
    fields = {f"{name}_": field(_part(part), kind, text, name=name) for name, (part, kind, text) in told.items()}
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
