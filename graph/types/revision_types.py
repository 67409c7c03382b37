"""Revision types: the content of a node as of one revision, apart from the node.

Clients' caches identify objects by ID, so a revision has an ID of its own.
"""

from collections.abc import Callable
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node
from graph.types.connection_types import ConnectionTypes, set_fields
from graph.types.field import class_of, field
from graph.types.node_fields import RecordField, level_of
from store.model.records import Record


def _id(record: Record, info: Any) -> str:
    return f"{record.id}#{record.revision}"  # no node's id holds a #


@strawberry.interface(name="NodeRevision", description="A revision of a node of any hierarchy.")
class NodeRevision:
    id = field(_id, strawberry.ID, "ID of the revision; not a node's ID.")
    revision = field(RecordField("revision"), int, "Number of the revision; 1 is the node's first.")
    changed_at = field(RecordField("updated_at"), DateTime, "Time at which it was written, in UTC.")
    changed_by = field(RecordField("changed_by"), str | None, "Caller that wrote it; null where unknown.")
    name = field(RecordField("name"), str, "Display name of the node.")


def _connection() -> type:
    types = ConnectionTypes("NodeRevision", item="revision")
    types.publish(NodeRevision, "A page of the revisions of a node of any hierarchy.")
    return types.connection


NodeRevisionConnection = _connection()


class RevisionTypes:
    """The revisions of one hierarchy's nodes: their interface and connection, and `concrete` by the level's name."""

    def __init__(
        self,
        cls: type[Node],
        title: str,
        level: Any,
        attribute_fields: Callable[[type[Node]], dict[str, StrawberryField]],
    ) -> None:
        """`title` is that of the nodes' interface, `level` the enum, and `attribute_fields` makes those of a level."""
        self._cls = cls
        self.title = f"{title}Revision"
        self.interface = class_of(self.title, {}, NodeRevision)
        shared = attribute_fields(cls)
        level_field = {"level": field(RecordField("level"), level, "Level of the node.")}
        set_fields(self.interface, level_field | shared)
        self.interface.resolve_type = self.type_name  # type: ignore[attr-defined]
        strawberry.interface(self.interface, name=self.title, description=f"A revision of a {title}.")
        types = ConnectionTypes(self.title, item="revision")
        types.publish(self.interface, f"A page of the revisions of a {title}.")
        self.connection = types.connection
        self.concrete = {
            name: self._publish(one, {part: made for part, made in attribute_fields(one).items() if part not in shared})
            for name, one in cls.levels.items()
        }

    def type_name(self, record: Record, *_: Any) -> str:
        """The name of a revision's type. Raises BadData where the hierarchy has no such level."""
        return f"{self._cls.prefix}{level_of(record, self._cls.levels).title}Revision"

    def _publish(self, cls: type[Node], own: dict[str, StrawberryField]) -> type:
        title = f"{self._cls.prefix}{cls.title}"
        made = class_of(f"{title}Revision", own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
        return strawberry.type(made, name=f"{title}Revision", description=f"A revision of a {title}.")
