"""Node values: the values of nodes that lists are sorted and filtered by, and the forms in which they compare.

Text compares *folded* (`store/model/letters.py`): without case, accents and strokes, so that Évora sorts next to Evora
and Łódź next to Lodz in every language. Not every installation of Python has another collation. Search folds further
(`store/kinds/words.py`): it also removes punctuation, and vowel signs such as those of Hindi, which distinguish names
here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from typing import Any, Self

from store.model.attributes import Attribute, Kind, Value
from store.model.letters import plain_letters
from store.model.names import lookup
from store.model.records import Record

MAX_CACHED_CHARACTERS = 100  # of a text whose folded form is cached: names, not descriptions

Comparable = str | int | float | bool | Decimal


@dataclass(frozen=True)
class NodeValue:
    """A value of every node: `name`, `level`, `child_count`, `updated_at`, or the attribute of this name.

    `members` are the values of an enum in their order, which is also that of levels. `languages` are those that names
    are looked up in. `renamed` has, by levels, the attributes with former names, under which values may be stored.
    `levels` are those that have the attribute, none for all, and `label` is its name in the schema.
    A value that is missing, or of another type than its kind, is None.
    """

    name: str
    kind: Kind
    many: bool = False
    members: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    renamed: tuple[tuple[str, Attribute], ...] = ()
    levels: frozenset[str] = frozenset()
    label: str = ""

    def localized(self, languages: Sequence[str] | None) -> Self:
        """The name in the first of these languages that a node has it in. Raises BadInput where one is no tag."""
        lookup((), languages or ())
        return replace(self, languages=tuple(languages or ()))

    @cached_property
    def of(self) -> Callable[[Record], Any]:
        """The stored value of a node, a list where the attribute is one."""
        read = _READ.get(self.name) or (self._renamed_attribute if self.renamed else self._attribute)
        if self.name == "name" and self.languages:
            read = self._localized_name
        types = (list,) if self.many else python_types(self.kind)

        def checked(record: Record) -> Any:
            value = read(record)
            return value if type(value) in types else None

        return checked

    @cached_property
    def comparable_of(self) -> Callable[[Record], Comparable | None]:
        """The value of a node in the form that compares; not of a list."""
        of, comparable = self.of, self.comparable
        if comparable is _unchanged:
            return of

        def compared(record: Record) -> Comparable | None:
            value = of(record)
            return None if value is None else comparable(value)

        return compared

    @cached_property
    def comparable(self) -> Callable[[Any], Comparable | None]:
        """A value of this kind in the form that compares; None for one that has no such form."""
        match self.kind:
            case Kind.TEXT:
                return folded
            case Kind.DECIMAL:
                return _decimal
            case Kind.DATETIME:
                return _moment
            case Kind.ENUM:
                return {member: place for place, member in enumerate(self.members)}.get
        return _unchanged

    def _attribute(self, record: Record) -> Value:
        return record.attributes.get(self.name)

    @cached_property
    def _renamed_attribute(self) -> Callable[[Record], Value]:
        """The attribute of a node, which may be stored under a former name of its level's."""
        renamed = dict(self.renamed)

        def read(record: Record) -> Value:
            attribute = renamed.get(record.level)
            found = self._attribute(record)
            return found if found is not None or attribute is None else attribute.value_in(record.attributes)

        return read

    def _localized_name(self, record: Record) -> Value:
        names = record.names
        language = lookup(names, self.languages)
        return record.name if language is None else names[language]


def python_types(kind: Kind) -> tuple[type, ...]:
    """The Python types of stored values."""
    if kind in (Kind.INT, Kind.LONG, Kind.FLOAT):
        return (int, float)
    return (bool,) if kind is Kind.BOOLEAN else (str,)


def folded(text: str) -> str:
    """Text in the form in which it compares: of `München` that is `munchen`."""
    if text.isascii():
        return text.lower()
    return _folded(text) if len(text) <= MAX_CACHED_CHARACTERS else _folded_long(text)


_folded = lru_cache(10_000)(plain_letters)
_folded_long = lru_cache(4)(plain_letters)  # for all conditions on a node, which may take the same texts


_READ: dict[str, Callable[[Record], Value]] = {
    "name": lambda record: record.name,
    "level": lambda record: record.level,
    "child_count": lambda record: sum(record.kids.values()),
    "updated_at": lambda record: record.updated_at,
}


def _decimal(value: str) -> Decimal | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _moment(value: str) -> str:
    """Without the Z and the zeros at the end of a fraction, so that equal times are equal, and texts sort as times."""
    moment = value.removesuffix("Z")
    return moment.rstrip("0").rstrip(".") if "." in moment else moment


def _unchanged(value: Comparable) -> Comparable:
    return value
