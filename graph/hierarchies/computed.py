"""Computed fields: methods of a level's class, each a field whose value follows from the node's own attributes."""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graph.hierarchies.attribute import typed
from graph.hierarchies.attribute_options import WrongClass, plain_value
from store.errors import BadData, BadInput
from store.model.attributes import Attribute, Kind, Value
from store.model.keys import decode_segment, last_segment
from store.model.records import Record

_SURROGATE = re.compile("[\ud800-\udfff]")


class NodeValues:
    """A node as its class's methods see it: `key`, `name`, and its attributes as they are stored, None for each that
    it lacks. Decimals, dates and times are texts, amounts of money and nested values dictionaries.
    """

    __slots__ = ("_attributes", "_record")

    def __init__(self, record: Record, attributes: Mapping[str, Attribute]) -> None:
        self._record, self._attributes = record, attributes

    @property
    def key(self) -> str:
        return decode_segment(last_segment(self._record.pk, self._record.sk))

    @property
    def name(self) -> str:
        return self._record.name

    def __getattr__(self, name: str) -> Any:
        if name not in self._attributes:
            raise AttributeError(f"A {self._record.level} has no attribute {name}.")
        return self._attributes[name].value_in(self._record.attributes)


@dataclass(frozen=True)
class Computed:
    """A computed field: its method, and the attribute that says its type and description."""

    attribute: Attribute
    hint: Any
    method: Callable[[Any], Any]

    def value(self, record: Record, attributes: Mapping[str, Attribute]) -> Value:
        """The value of a node, whose level has these attributes. Raises BadData for one of another type."""
        found = plain_value(self.method(NodeValues(record, attributes)))
        if not _is_unicode(found):
            raise BadData(f"The computed field {self.attribute.name} has a lone surrogate, which is no character.")
        if found is None or self.attribute.is_valid(found):
            return found  # type: ignore[no-any-return]
        try:
            return self.attribute.parse(found)
        except BadInput as error:
            raise BadData(f"The computed field {error}") from None


def _is_unicode(value: object) -> bool:
    """Whether all texts in a value can be written as UTF-8, without which the whole response fails."""
    match value:
        case str():
            return value.isascii() or not _SURROGATE.search(value)
        case list():
            return all(map(_is_unicode, value))
        case dict():
            return all(map(_is_unicode, value.values()))
    return True


@dataclass(frozen=True)
class DescribedMethod:
    """The value that `@computed` leaves in a class body until the class is registered."""

    description: str
    deprecated: str
    method: Callable[[Any], Any]


def computed(description: str, *, deprecated: str = "") -> Callable[[Callable[[Any], Any]], Any]:
    """Declare a method of a level as a field: `@computed("Inhabitants per square kilometre.")`.

    The method takes the node alone, reads its attributes, `key` and `name`, and must depend on nothing else, since
    responses are cached. Its return type is that of an attribute, with `| None`. It runs for each node of a response.
    """
    return lambda method: DescribedMethod(description, deprecated, method)


def own_computed(cls: type) -> dict[str, Computed]:
    """The computed fields that a class body itself declares. Raises WrongClass for one that is written wrongly."""
    found = {}
    for name, made in vars(cls).items():
        if not isinstance(made, DescribedMethod):
            continue
        where = f"{cls.__name__}.{name}"
        if not str(made.description).strip() or callable(made.description):
            raise WrongClass(f'{where} has no description; write @computed("…").')
        if inspect.iscoroutinefunction(made.method) or len(inspect.signature(made.method).parameters) != 1:
            raise WrongClass(f"{where} must be a method with self alone; write def {name}(self) -> … | None.")
        hint = typing.get_type_hints(made.method).get("return")
        if hint is None:
            raise WrongClass(f"{where} has no return type; write def {name}(self) -> … | None.")
        shown, plain = typed(where, hint, made.description)
        if plain.kind is Kind.LOCALIZED:
            raise WrongClass(f"{where} returns Localized, which only attributes can have; return str | None.")
        attribute = replace(plain, deprecated=made.deprecated, sortable=False)
        found[name] = Computed(attribute, shown, made.method)
    return found
