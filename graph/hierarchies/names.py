"""Names in the schema: each type and each field of Query comes from one class alone, or the hierarchies are refused."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args

from graph.hierarchies.loading import shown
from graph.hierarchies.node import Node
from store.errors import BadInput
from store.model.hierarchy import RESERVED

OWN_TYPES = frozenset(
    "Query Mutation Subscription Node NodeRevision NodeRevisionConnection NodeRevisionEdge PageInfo DeletedNode "
    "Change ChangeFeed Move MoveState WritePlan DeletePolicy Path Long Decimal Date DateTime ID Int Float String "
    "Boolean _Any _Entity _Service".split()
)
"""The types that a schema has, or may have, whatever hierarchies are served."""

OWN_FIELDS = frozenset("node nodes move moves deletedNode changes _entities _service".split())
"""The fields of Query that every schema has."""

_NAME = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_OF_TITLE = (
    "",
    "Level",
    "Connection",
    "Edge",
    "Payload",
    "Attributes",
    "Revision",
    "RevisionConnection",
    "RevisionEdge",
)
_OF_LEVEL = ("", "Attributes", "Revision")


@dataclass(frozen=True)
class Use:
    """A name that a class makes in the schema: `made_by` and `way_out` are parts of the sentence that refuses it."""

    name: str
    source: object
    made_by: str
    way_out: str


def field_of(title: str) -> str:
    """The field of Query that finds a node of the type of this title."""
    return title[:1].lower() + title[1:]


def input_field_of(title: str) -> str:
    """The attribute of a mutation's input that holds the attributes of a level: postal_code for PostalCode."""
    return "".join(f"_{c.lower()}" if c.isupper() and place else c.lower() for place, c in enumerate(title))


def list_field_of(cls: type[Node]) -> str:
    """The field of Query that lists the roots of a hierarchy."""
    return field_of(cls.prefix + cls.many[:1].upper() + cls.many[1:] if cls.prefix else cls.many)


def check_names(classes: Sequence[type[Node]]) -> None:
    """Raise BadInput for a name that GraphQL cannot have, or that two of the classes or Clade itself make."""
    types = {name: Use(name, None, "Clade itself", "") for name in OWN_TYPES}
    fields = {name: Use(name, None, "Clade itself", "") for name in OWN_FIELDS}
    for cls in classes:
        for use in types_of(cls):
            _take(cls, "type", types, use)
        for use in fields_of(cls):
            _take(cls, "field of Query", fields, use)
        for level in (cls, *cls.levels.values()):
            _check_attributes(cls, level)


def types_of(cls: type[Node]) -> Iterator[Use]:
    """The types of a hierarchy."""
    rename = _rename(cls)
    for ending in _OF_TITLE:
        yield Use(f"{cls.prefix}{cls.title}{ending}", cls, _described(cls), rename)
    for level in cls.levels.values():
        for ending in _OF_LEVEL:
            yield Use(f"{cls.prefix}{level.title}{ending}", level, _described(cls, level), rename)
    for level in (cls, *cls.levels.values()):
        for enum in _enums_of(level):
            yield Use(enum.__name__, enum, f"the enum {enum.__name__} of {_described(cls, level)}", "rename the enum")


def fields_of(cls: type[Node]) -> Iterator[Use]:
    """The fields of Query of a hierarchy."""
    rename = _rename(cls)
    yield Use(field_of(cls.prefix + cls.title), cls, _described(cls), rename)
    for level in cls.levels.values():
        yield Use(field_of(cls.prefix + level.title), level, _described(cls, level), rename)
    way_out = f'give {cls.title} another many=, as in many="all{cls.title}"'
    yield Use(list_field_of(cls), None, f'many="{cls.many}" of {_described(cls)}', way_out)


def _rename(cls: type[Node]) -> str:
    return f'rename the class, or give {cls.title} {"another" if cls.prefix else "a"} prefix=, as in prefix="My"'


def location(cls: type[Node]) -> str:
    """File and line of a class as messages name them."""
    file, line = cls.declared_at
    return f"{shown(file)}:{line}"


def _take(cls: type[Node], kind: str, taken: dict[str, Use], use: Use) -> None:
    source = use.source if isinstance(use.source, type) and issubclass(use.source, Node) else cls
    where = f"{location(source)}: {use.made_by} makes the {kind}"
    if not _NAME.fullmatch(use.name):
        raise BadInput(f'{where} "{use.name}", which is no name of GraphQL; {use.way_out}.')
    other = taken.setdefault(use.name, use)
    if other is not use and (use.source is None or other.source is not use.source):
        raise BadInput(f"{where} {use.name}, which {other.made_by} makes already; {use.way_out}.")


def _check_attributes(cls: type[Node], level: type[Node]) -> None:
    """Refuse an attribute whose field would take the place of another one, and an enum that GraphQL cannot have."""
    taken = {camel(name): "every node" for name in RESERVED}
    for name in level.attributes:
        field = camel(name)
        where = f"{location(level)}: the attribute {name} of {_described(cls, level)} makes the field"
        if not _NAME.fullmatch(field):
            raise BadInput(f'{where} "{field}", which is no name of GraphQL; rename the attribute.')
        if field in taken:
            raise BadInput(f"{where} {field}, which {taken[field]} has already; rename the attribute.")
        taken[field] = f"the attribute {name}"
    for enum in _enums_of(level):
        for member in enum.__members__ or [""]:
            if not _NAME.fullmatch(member) or member in ("true", "false", "null"):
                raise BadInput(
                    f'{location(level)}: the enum {enum.__name__} has the member "{member}", '
                    "which is no value of GraphQL; rename the member."
                )


def _described(cls: type[Node], level: type[Node] | None = None) -> str:
    """A class as messages name it."""
    if level is None or level is cls:
        return f"the class {cls.title} of the hierarchy {cls.name}"
    return f"the level {level.title} of the hierarchy {cls.name}"


def _enums_of(cls: type[Node]) -> Iterator[type[Enum]]:
    """The enums among the types of a class's attributes, which may be optional and in lists."""
    ahead: list[Any] = [hint for hint, _ in cls.attributes.values()]
    while ahead:
        hint = ahead.pop()
        ahead += get_args(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            yield hint


def camel(name: str) -> str:
    """A Python name in camel case, as Strawberry writes it in the schema."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() or "_" for word in rest)
