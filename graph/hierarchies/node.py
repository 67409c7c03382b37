"""Classes that hierarchies are written with: a subclass of Node is a hierarchy, a subclass of that is a level.

Classes are only registered here; `graph.types.nodes` makes GraphQL types of them when all are there. Methods of a
level's class are computed fields, each with a value that follows from the node's own attributes.
"""

import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from graph.hierarchies.attribute import WrongClass, own_attributes, plain_value, typed
from store.errors import BadData, BadInput
from store.model.attributes import Attribute, Kind, Value
from store.model.hierarchy import Hierarchy, Level, Search, SearchScope
from store.model.keys import decode_segment, last_segment
from store.model.records import Record

_NOT_GIVEN: Any = object()
_MEANT = {"parent": "under", "parents": "under", "below": "under", "name": "hierarchy", "plural": "many"}
"""Keywords that are easily written for another."""
_KEYWORDS = ("hierarchy", "many", "prefix", "search", "search_weight", "location", "under", "was")

_declared: dict[str, tuple[object, list[type["Node"]]]] = {}
"""By module: its spec, which a reload replaces, and the hierarchies that it declares."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Node:
    """What every node of every hierarchy has. Subclass it for a hierarchy, and that class for each level.

    A hierarchy is declared with `hierarchy=` (its name in ids and in the table), `many=` (the root field that lists
    its roots) and perhaps `prefix=` (before the names of its types and root fields); a level with `under=`: the level
    classes that it may stand under, None for a root, "self" for itself, and perhaps with `was=`: the name that its
    class had when nodes were written. The docstrings become the descriptions.

    A hierarchy with `search="hierarchy"` is searched by words, as a whole or below a node, one with `search="tree"`
    one tree at a time; `search_weight="population"` lists nodes with a greater number first. With
    `location="latitude,longitude"`, two attributes in degrees, nodes near a point are found.
    Raises WrongClass where a class is not written like that.
    """

    name: ClassVar[str]
    many: ClassVar[str]
    prefix: ClassVar[str]
    search: ClassVar[Search | None]
    location: ClassVar[tuple[str, str] | None]
    title: ClassVar[str]
    level: ClassVar[str]
    """Name of the level in the table."""
    label: ClassVar[str]
    """Present name of the level."""
    under: ClassVar[frozenset[str | None]]
    levels: ClassVar[dict[str, type["Node"]]]
    attributes: ClassVar[dict[str, tuple[Any, Attribute]]]
    computed: ClassVar[dict[str, "Computed"]]
    declared_at: ClassVar[tuple[str, int]]
    """File and line of the class."""

    def __init_subclass__(
        cls,
        hierarchy: str | None = None,
        many: str = "",
        prefix: str = "",
        search: str | None = None,
        search_weight: str | None = None,
        location: str | None = None,
        under: "Sequence[type[Self] | str | None] | type[Self] | str | None" = _NOT_GIVEN,
        was: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init_subclass__()
        _check_class(cls, rest)
        is_hierarchy = cls.__bases__ == (Node,)
        place = cls.location if not is_hierarchy else None if location is None else _location(cls, location)
        # Both are removed from the class body, so that none hides what every class has itself.
        for name in (methods := own_computed(cls)):
            delattr(cls, name)
        for name in (own := own_attributes(cls, location=place)):
            delattr(cls, name)
        caller = sys._getframe(1)
        cls.declared_at = caller.f_code.co_filename, caller.f_lineno
        cls.title = cls.__name__
        if is_hierarchy:
            _check_hierarchy(cls, hierarchy, under, was)
            cls.name, cls.many, cls.prefix, cls.levels = str(hierarchy), many or f"{hierarchy}s", prefix, {}
            cls.search, cls.location = _search(cls, search, search_weight), place
            cls.attributes, cls.computed = own, methods
            _declare(cls)
            return
        for keyword, value in {
            "hierarchy": hierarchy, "many": many, "prefix": prefix, "search": search, "search_weight": search_weight,
            "location": location,
        }.items():  # fmt: skip
            if value:
                raise WrongClass(f"{cls.title} is a level and has {keyword}=; give that to its hierarchy's class.")
        cls.label = _upper(cls.title)
        cls.level = cls.label if was is None else _former(cls, was)
        cls.attributes, cls.computed = {**cls.attributes, **own}, {**cls.computed, **methods}
        cls.under = _under(cls, under)
        _refuse_double(cls, cls.levels.setdefault(cls.level, cls))

    @classmethod
    def definition(cls) -> Hierarchy:
        """The hierarchy's schema for the store; raises ValueError where its levels do not fit together."""
        levels = {}
        stored = {level.label: name for name, level in cls.levels.items()}
        for name, level in cls.levels.items():
            attributes = {one: attribute for one, (_, attribute) in level.attributes.items()}
            under = frozenset(above if above is None else stored.get(above, above) for above in level.under)
            renamed = "" if level.label == name else level.label
            levels[name] = Level(name, level.title, description(level), under, attributes, renamed)
        return Hierarchy(cls.name, levels, cls.search, cls.location)


def declared_in(module: str) -> list[type[Node]]:
    """The hierarchies that a module declares, in their order."""
    return list(_declared.get(module, (None, []))[1])


def description(cls: type) -> str:
    """The docstring of a class on one line."""
    return " ".join((cls.__doc__ or "").split())


def _check_class(cls: type[Node], unknown: dict[str, Any]) -> None:
    for keyword in unknown:
        near = [_MEANT[keyword]] if keyword in _MEANT else get_close_matches(keyword, _KEYWORDS, n=1)
        meant = f"; write {near[0]}=" if near else ""
        own = "hierarchy=, many=, prefix=, search=, search_weight= and location="
        takes = f"A hierarchy takes {own}, a level under= and was=."
        raise WrongClass(f"{cls.__name__} has {keyword}=, which is unknown{meant}. {takes}")
    if len(cls.__bases__) != 1:
        raise WrongClass(f"{cls.__name__} has several base classes; give it one, its hierarchy's class or Node.")
    if not (cls.__doc__ or "").strip():
        raise WrongClass(f"{cls.__name__} has no docstring; add one, which is the description that clients see.")


def _check_hierarchy(cls: type[Node], name: object, under: object, was: object) -> None:
    if was is not None:
        raise WrongClass(f"{cls.title} has was=, which a level has; keep the name hierarchy= of a hierarchy.")
    if under is not _NOT_GIVEN:
        raise WrongClass(f"{cls.title} has under=, and so is a level; make it a subclass of its hierarchy's class.")
    if not isinstance(name, str):
        example = f'class {cls.title}(Node, hierarchy="{cls.title.lower()}")'
        raise WrongClass(f"{cls.title} has no hierarchy=; write {example}.")


def _search(cls: type[Node], scope: str | None, weight: str | None) -> Search | None:
    if scope is None:
        if weight is not None:
            raise WrongClass(f'{cls.title} has search_weight= without search=; add search="hierarchy".')
        return None
    if scope not in list(SearchScope):
        raise WrongClass(f'{cls.title} has search={scope!r}; write search="hierarchy" or search="tree".')
    return Search(SearchScope(scope), weight)


def _location(cls: type[Node], names: str) -> tuple[str, str]:
    latitude, _, longitude = names.partition(",") if isinstance(names, str) else ("", "", "")
    if not latitude.strip() or not longitude.strip():
        raise WrongClass(f'{cls.__name__} has location={names!r}; write location="latitude,longitude", two attributes.')
    return latitude.strip(), longitude.strip()


def _declare(cls: type[Node]) -> None:
    """Register a hierarchy in its module."""
    spec = getattr(sys.modules.get(cls.__module__), "__spec__", None)
    if cls.__module__ not in _declared or _declared[cls.__module__][0] is not spec:
        _declared[cls.__module__] = spec, []
    others = _declared[cls.__module__][1]
    for other in others:
        if other.title == cls.title:
            _refuse_double(cls, other)
        if other.name == cls.name:
            raise WrongClass(f'{other.title} and {cls.title} both have hierarchy="{cls.name}"; rename one.')
    others.append(cls)


def _refuse_double(cls: type[Node], other: type[Node]) -> None:
    """Reject a class if another one of its hierarchy or module has the same name or level."""
    if other is cls:
        return
    file, line = other.declared_at
    place = f"line {line}" if file == cls.declared_at[0] else f"{file}, line {line}"
    if other.title == cls.title:
        raise WrongClass(f"{cls.title} is the second class of this name, after that in {place}; rename one of them.")
    both = f"{cls.title} and {other.title} (in {place})"
    raise WrongClass(f"{both} are both the level {cls.level} of {cls.name}; rename one of them.")


def _under(cls: type[Node], under: Any) -> frozenset[str | None]:
    """The names of the levels that a level may stand under."""
    several = list(under) if isinstance(under, list | tuple | set | frozenset) else [under]
    if under is _NOT_GIVEN or not several:
        fact = f"{cls.title} has no under=" if under is _NOT_GIVEN else f"{cls.title} has an empty under="
        way_out = "write the levels that it may stand under, as in under=[Country], or under=None for a root"
        raise WrongClass(f"{fact}; {way_out}.")
    return frozenset(_level_name(cls, one) for one in several)


def _level_name(cls: type[Node], under: Any) -> str | None:
    match under:
        case None:
            return None
        case "self":
            return cls.level
        case str():
            return _upper(under)
    hierarchy = next(base for base in cls.__mro__ if base.__bases__ == (Node,))
    if isinstance(under, type) and issubclass(under, Node) and issubclass(under, hierarchy) and under is not hierarchy:
        return under.level
    shown = under.__name__ if isinstance(under, type) else repr(under)
    fact = f"{cls.title} has under={shown}, which is not a level of {cls.name}"
    raise WrongClass(f'{fact}; write level classes, "self" or None.')


def _former(cls: type[Node], was: object) -> str:
    """The name in the table of a level that was renamed."""
    if not isinstance(was, str) or not was.isidentifier() or _upper(was) == cls.label:
        raise WrongClass(f'{cls.title} has was={was!r}; write the former name of the class, as in was="Town".')
    return _upper(was)


def _upper(title: str) -> str:
    """The enum's word for a class: PostalCode is POSTAL_CODE."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", title).upper()


def computed(description: str, *, deprecated: str = "") -> Callable[[Callable[[Any], Any]], Any]:
    """Declare a method of a level as a field: `@computed("Inhabitants per square kilometre.")`.

    The method takes the node alone, reads its attributes, `key` and `name`, and must depend on nothing else, since
    responses are cached. Its return type is that of an attribute, with `| None`. It runs for each node of a response.
    """
    return lambda method: DescribedMethod(description, deprecated, method)


@dataclass(frozen=True)
class DescribedMethod:
    """The value that `@computed` leaves in a class body until the class is registered."""

    description: str
    deprecated: str
    method: Callable[[Any], Any]


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
