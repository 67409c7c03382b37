"""Revision types: the content of a node as it was written at one time, apart from the node.

Clients' caches take whatever has a node's id for the node as it is now, so a revision has an id of its own.
"""

from collections.abc import Callable
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node
from graph.types import node_fields
from graph.types.connection_types import ConnectionTypes, set_fields
from graph.types.field import class_of, field
from store.model.records import Record


def _id(record: Record, info: Any) -> str:
    return f"{record.id}#{record.revision}"  # no node's id holds a #


@strawberry.interface(name="NodeRevision", description="The content of a node of any hierarchy as of one revision.")
class NodeRevision:
    id = field(_id, strawberry.ID, "The revision's own id, which no node has.")
    revision = field(node_fields.RecordField("revision"), int, "Its number; a node's first one is 1.")
    changed_at = field(node_fields.RecordField("updated_at"), DateTime, "When it was written, in UTC.")
    changed_by = field(node_fields.RecordField("changed_by"), str | None, "Who wrote it, where that is known.")
    name = field(node_fields.RecordField("name"), str, "What the node was called.")


def _connection() -> type:
    types = ConnectionTypes("NodeRevision", item="revision")
    types.publish(NodeRevision, "A page of the revisions of a node of any hierarchy.")
    return types.connection


NodeRevisionConnection = _connection()


class RevisionTypes:
    """The revisions of one hierarchy's nodes: their interface and connection, and `concrete` by the level's name."""

    def __init__(
        self, cls: type[Node], title: str, level: Any, own: Callable[[type[Node]], dict[str, StrawberryField]]
    ) -> None:
        """`title` is that of the nodes' interface, `level` the enum, and `own` makes the fields of own attributes."""
        self._cls = cls
        self.title = f"{title}Revision"
        self.interface = class_of(self.title, {}, NodeRevision)
        told = {"level": field(node_fields.RecordField("level"), level, "Which level the node was of.")}
        shared = own(cls)
        set_fields(self.interface, told | shared)
        self.interface.resolve_type = self.type_name  # type: ignore[attr-defined]
        strawberry.interface(
            self.interface, name=self.title, description=f"The content of a {title} as of one revision."
        )
        types = ConnectionTypes(self.title, item="revision")
        types.publish(self.interface, f"A page of the revisions of a {title}.")
        self.connection = types.connection
        self.concrete = {
            name: self._publish(one, {part: made for part, made in own(one).items() if part not in shared})
            for name, one in cls.levels.items()
        }

    def type_name(self, record: Record, *_: Any) -> str:
        """The name of a revision's type; raises BadData where its level is none of the hierarchy."""
        return f"{self._cls.prefix}{node_fields.level_of(record, self._cls.levels).title}Revision"

    def _publish(self, cls: type[Node], own: dict[str, StrawberryField]) -> type:
        title = f"{self._cls.prefix}{cls.title}"
        made = class_of(f"{title}Revision", own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
        return strawberry.type(
            made, name=f"{title}Revision", description=f"The content of a {title} as of one revision."
        )
