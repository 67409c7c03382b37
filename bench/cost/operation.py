"""Operation: fields with arguments as values, which can be changed and written as GraphQL.

What stands at several places is written once, as a fragment, and long values become variables, so that as many fields
as possible fit into the limits of a document.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Union

import orjson

from bench.cost.meter import Sent

INLINE_CHARACTERS = 20  # up to which a value is written where it stands


@dataclass(frozen=True, eq=False)
class Value:
    """A JSON value of a GraphQL type; with `times` it is a list of so many of it, each written as the same variable.

    `literal` is the value as GraphQL, if it is written where it stands.
    """

    type: str
    json: Any
    times: int | None = None
    literal: str = ""

    @property
    def is_inline(self) -> bool:
        """Whether it is written alike in GraphQL and JSON, and is short."""
        return (
            self.times is None
            and (self.json is None or len(str(self.json)) <= INLINE_CHARACTERS)
            and not isinstance(self.json, dict | list)
        )


@dataclass(frozen=True, eq=False)
class Field:
    """A field of the type `parent`; `aliases` writes it under several names, `times` several times."""

    parent: str
    name: str
    arguments: tuple[tuple[str, Value], ...] = ()
    below: "Selections" = ()
    aliases: int = 0
    times: int = 1
    directives: int = 0

    @property
    def copies(self) -> int:
        return max(1, self.aliases) * self.times


@dataclass(frozen=True, eq=False)
class On:
    """An inline fragment on a type."""

    parent: str
    type: str
    below: "Selections" = ()


Selection = Union[Field, On]  # noqa: UP007  # both name Selections, which names this
Selections = tuple[Selection, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """A query or a mutation."""

    below: Selections
    kind: str = "query"

    def sent(self) -> Sent:
        """The request of this operation."""
        return _Writer(self).sent()


def fields_in(selections: Selections) -> list[tuple[tuple[int, ...], Selection]]:
    """All selections with their places, which are indices from the outermost on."""
    found: list[tuple[tuple[int, ...], Selection]] = []
    ahead: list[tuple[tuple[int, ...], Selection]] = [((number,), one) for number, one in enumerate(selections)]
    while ahead:
        place, one = ahead.pop(0)
        found.append((place, one))
        ahead += [((*place, number), below) for number, below in enumerate(one.below)]
    return found


def replaced(selections: Selections, place: tuple[int, ...], new: Selections) -> Selections:
    """The selections with one replaced by these; never empty."""
    index, *deeper = place
    one = selections[index]
    if deeper:
        new = (replace(one, below=replaced(one.below, tuple(deeper), new)),)
    return (*selections[:index], *new, *selections[index + 1 :]) or selections


@dataclass
class _Writer:
    """Writer of one operation as GraphQL."""

    operation: Operation
    _variables: dict[tuple[str, int], tuple[str, Any]] = field(default_factory=dict)
    _fragments: dict[int, str] = field(default_factory=dict)
    _written: list[str] = field(default_factory=list)
    _aliases: int = 0

    def sent(self) -> Sent:
        self._often = self._counted(self.operation.below)
        body = self._selections(self.operation.below)
        declared = " ".join(f"${name}: {kind}" for (kind, _), (name, _) in self._variables.items())
        head = f"{self.operation.kind}({declared})" if declared else self.operation.kind
        variables = dict(self._variables.values())
        return Sent(" ".join([f"{head} {body}", *self._written]), variables)

    def _counted(self, selections: Selections) -> Counter[int]:
        """The number of occurrences of each selection set."""
        counts: Counter[int] = Counter()
        ahead: list[Selections] = [selections]
        while ahead:
            for one in ahead.pop():
                if one.below:
                    counts[id(one.below)] += one.copies if isinstance(one, Field) else 1
                    if counts[id(one.below)] <= 2:
                        ahead.append(one.below)
        return counts

    def _selections(self, selections: Selections) -> str:
        seen: dict[str, tuple[Any, ...]] = {}
        parts: list[str] = []
        for one in selections:
            if isinstance(one, On):
                parts.append(f"... on {one.type} {self._below(one.below, one.type)}")
            else:
                parts += self._field(one, seen)
        return "{ " + " ".join(parts) + " }"

    def _field(self, one: Field, seen: dict[str, tuple[Any, ...]]) -> list[str]:
        """The field with its repeats; with an alias if its name is taken by one with other arguments."""
        arguments = ", ".join(f"{name}: {self._value(value)}" for name, value in one.arguments)
        asked = f"{one.name}({arguments})" if arguments else one.name
        asked += " @include(if: true)" * (one.directives > 0) + " @skip(if: false)" * (one.directives > 1)
        if one.below:
            asked += " " + self._below(one.below)
        own = (arguments, id(one.below))
        if not one.aliases and seen.setdefault(one.name, own) == own:
            return [asked] * one.times
        return [f"{self._alias()}: {asked}" for _ in range(max(1, one.aliases)) for _ in range(one.times)]

    def _alias(self) -> str:
        self._aliases += 1
        return f"a{self._aliases}"

    def _below(self, selections: Selections, on: str | None = None) -> str:
        """A selection set, as a fragment if it occurs more than once."""
        if self._often[id(selections)] < 2 or (len(selections) == 1 and not selections[0].below):
            return self._selections(selections)
        name = self._fragments.get(id(selections))
        if name is None:
            name = self._fragments[id(selections)] = f"f{len(self._fragments)}"
            self._written.append(f"fragment {name} on {on or selections[0].parent} {self._selections(selections)}")
        return "{ ..." + name + " }"

    def _value(self, value: Value) -> str:
        if value.literal:
            return value.literal
        if value.is_inline:
            return str(value.json) if _is_enum(value) else orjson.dumps(value.json).decode()
        name = self._variable(value)
        return f"[{' '.join([f'${name}'] * value.times)}]" if value.times is not None else f"${name}"

    def _variable(self, value: Value) -> str:
        kind = value.type if value.times is None else _item(value.type)
        key = (kind, id(value.json))
        if key not in self._variables:
            self._variables[key] = (f"v{len(self._variables)}", value.json)
        return self._variables[key][0]


def _is_enum(value: Value) -> bool:
    name = value.type.strip("[]!")
    return isinstance(value.json, str) and name.endswith(("Level", "Policy", "State", "HierarchyName"))


def _item(kind: str) -> str:
    """The type of a list's items."""
    return kind.removesuffix("!").removeprefix("[").removesuffix("]")
