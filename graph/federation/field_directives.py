"""Directives of the subgraph's fields that attributes declare.

Values of `orderBy` and fields of `where` have the directives of their attribute as well, so that they do not disclose
hidden fields.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass

from graph.hierarchies.attribute import value_attributes
from graph.hierarchies.list_values import list_values
from graph.hierarchies.names import camel, types_of
from graph.hierarchies.node import Node
from store.model.attributes import Attribute

Directives = Mapping[tuple[str, str], str]
"""The directives of fields, of the values of enums, and of types, by the names of the type and of the field or value;
the second is empty for the type itself.
"""


def field_directives(classes: Sequence[type[Node]]) -> dict[tuple[str, str], str]:
    """`@tag`, `@inaccessible` and `@shareable` of the fields of attributes, in all types that have them.

    Federation forbids `@shareable` on the fields of interfaces and inputs, so these have the others alone.
    """
    found: dict[tuple[str, str], str] = {}
    for cls in classes:
        listed = list_values(cls)
        for one in (cls, *cls.levels.values()):
            title = cls.prefix + one.title
            own = [attribute for _, attribute in one.attributes.values()]
            own += [computed.attribute for computed in one.computed.values()]
            for ending in ("", "Revision"):
                found.update(_directives(title + ending, own, shareable=one is not cls))
            found.update(_directives(f"{title}Attributes", own, shareable=False))
            found.update(_list_directives(cls.prefix + cls.title, [each for each in own if each.name in listed]))
            for value in filter(is_dataclass, types_of(one)):
                parts = [attribute for _, attribute in value_attributes(value).values()]
                found.update(_directives(value.__name__, parts, shareable=True))
                found.update(_directives(f"{value.__name__}Input", parts, shareable=False))
    return found


def _list_directives(title: str, attributes: Sequence[Attribute]) -> Iterator[tuple[tuple[str, str], str]]:
    """The directives of a hierarchy's conditions and values to sort by."""
    yield from _directives(f"{title}Condition", attributes, shareable=False)
    yield from _directives(f"{title}OrderField", attributes, shareable=False, named=str.upper)


def _directives(
    title: str, attributes: Sequence[Attribute], *, shareable: bool, named: Callable[[str], str] = camel
) -> Iterator[tuple[tuple[str, str], str]]:
    for attribute in attributes:
        words = [f'@tag(name: "{tag}")' for tag in attribute.tags]
        words += ["@inaccessible"] if attribute.inaccessible else []
        words += ["@shareable"] if attribute.shareable and shareable else []
        if words:
            yield (title, named(attribute.name)), " ".join(words)
