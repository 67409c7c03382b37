"""Level types: an interface, a type of each level that implements it, and the connection; of the nodes of a hierarchy,
or of their revisions.
"""

from collections.abc import Callable
from typing import Any

import strawberry

from graph.hierarchies.node import Node
from graph.types.connection_types import ConnectionTypes, set_fields
from graph.types.field import Fields, Resolver, class_of, field
from graph.types.node_fields import AttributeField, ComputedField, level_of
from graph.types.value_types import output_type
from store.model.attributes import Attribute
from store.model.records import Record


class LevelTypes:
    """`concrete` has the types of the levels by the level's name; their names end in `suffix`.

    Types refer to each other, so the classes are made before their fields.
    """

    concrete: dict[str, type]

    def __init__(self, cls: type[Node], base: type, *, suffix: str = "", item: str = "node") -> None:
        self._cls, self._suffix = cls, suffix
        self.title = self._title(cls)
        self.interface: Any = class_of(self.title, {}, base)
        self._pages = ConnectionTypes(self.title, item)
        self.connection: Any = self._pages.connection

    def publish(self, fields: Fields, describe: Callable[[type[Node]], str], page: str) -> None:
        """Make the types: the interface has these fields and the hierarchy's attributes, each level further ones.

        `describe` returns the description of the type of a class, `page` is that of the connection.
        """
        set_fields(self.interface, fields | _attribute_fields(self._cls))
        self.interface.resolve_type = self.type_name
        strawberry.interface(self.interface, name=self.title, description=describe(self._cls))
        self._pages.publish(self.interface, page)
        self.concrete = {name: self._publish_level(level, describe(level)) for name, level in self._cls.levels.items()}

    def type_name(self, record: Record, *_: Any) -> str:
        """The name of a record's type. Raises BadData where the hierarchy has no such level."""
        return self._title(level_of(record, self._cls.levels))

    def _title(self, cls: type[Node]) -> str:
        return f"{self._cls.prefix}{cls.title}{self._suffix}"

    def _publish_level(self, cls: type[Node], text: str) -> type:
        shared = _attribute_fields(self._cls)
        own = {name: made for name, made in _attribute_fields(cls).items() if name not in shared}
        made = class_of(self._title(cls), own, self.interface)
        made.is_type_of = lambda record, info: record.level == cls.level  # type: ignore[attr-defined]
        return strawberry.type(made, name=self._title(cls), description=text)


def _attribute_fields(cls: type[Node]) -> Fields:
    """The attributes of a level, each checked when it is read, and its computed fields."""
    stored = {name: attribute for name, (_, attribute) in cls.attributes.items()}
    fields: list[tuple[Resolver, Any, Attribute]] = [
        *[(AttributeField(attribute), hint, attribute) for hint, attribute in cls.attributes.values()],
        *[(ComputedField(one, stored), one.hint, one.attribute) for one in cls.computed.values()],
    ]
    return {
        attribute.name: field(resolve, output_type(hint), attribute.description, deprecated=attribute.deprecated)
        for resolve, hint, attribute in fields
    }
