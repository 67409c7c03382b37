"""The classes that hierarchies are written with: a subclass of Node is a hierarchy, a subclass of that is a level.

Classes only register here; `graph.types.hierarchy_types` makes GraphQL types of them when all are there.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from graph.hierarchies.attribute import WrongClass as WrongClass
from graph.hierarchies.attribute import own_attributes
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy, Level


class Node:
    """What every node of every hierarchy has. Subclass it for a hierarchy, and that class for each level.

    A hierarchy is declared with `hierarchy=` (its name in ids and in the table), `many=` (the root field that lists
    its roots) and perhaps `prefix=` (before the names of its types and root fields); a level with `under=`: the level
    classes that it may stand under, None for a root, "self" for itself. The docstrings become the descriptions.
    """

    hierarchies: ClassVar[dict[str, type["Node"]]] = {}
    """All hierarchies that modules have registered, by name."""

    name: ClassVar[str]
    many: ClassVar[str]
    prefix: ClassVar[str]
    title: ClassVar[str]
    level: ClassVar[str]
    under: ClassVar[frozenset[str | None]]
    levels: ClassVar[dict[str, type["Node"]]]
    attributes: ClassVar[dict[str, tuple[Any, Attribute]]]

    def __init_subclass__(
        cls,
        hierarchy: str | None = None,
        many: str = "",
        prefix: str = "",
        under: "Sequence[type[Self] | str | None] | str | None" = (),
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        if not (cls.__doc__ or "").strip():
            raise WrongClass(f"{cls.__name__} needs a docstring: it is the description that clients see.")
        own = own_attributes(cls)
        for name in own:
            delattr(cls, name)  # so that none hides what every class has itself, such as its title
        cls.title = cls.__name__
        if hierarchy is not None:
            cls.name, cls.many, cls.prefix, cls.levels = hierarchy, many or f"{hierarchy}s", prefix, {}
            cls.attributes = own
            known = Node.hierarchies.setdefault(hierarchy, cls)
            if (known.__module__, known.__name__) != (cls.__module__, cls.__name__):
                raise WrongClass(f'{known.__module__} has a hierarchy named "{hierarchy}" already.')
            Node.hierarchies[hierarchy] = cls
            return
        cls.level = _upper(cls.__name__)
        cls.attributes = {**cls.attributes, **own}
        cls.under = frozenset(_level_name(cls, one) for one in _several(under))
        known = cls.levels.setdefault(cls.level, cls)
        if known is not cls:
            raise WrongClass(
                f"The classes {cls.__name__} and {known.__name__} are one level of {cls.name}; rename one of them."
            )

    @classmethod
    def definition(cls) -> Hierarchy:
        """The hierarchy as the store knows it; raises ValueError where its levels do not fit together."""
        return Hierarchy(
            cls.name,
            {
                name: Level(
                    name,
                    level.title,
                    description(level),
                    level.under,
                    {name: attribute for name, (_, attribute) in level.attributes.items()},
                )
                for name, level in cls.levels.items()
            },
        )


def description(cls: type) -> str:
    """The docstring of a class on one line."""
    return " ".join((cls.__doc__ or "").split())


def _several(under: Any) -> Sequence[Any]:
    return under if isinstance(under, list | tuple) else [under]


def _level_name(cls: type[Node], under: type[Node] | str | None) -> str | None:
    if under is None:
        return None
    return cls.level if under == "self" else _upper(under if isinstance(under, str) else under.__name__)


def _upper(title: str) -> str:
    """The enum's word for a class: PostalCode is POSTAL_CODE."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", title).upper()
