"""Conditions: what the nodes of a list have to meet, as comparisons of their values joined by and, or and not.

A comparison with a value that a node lacks is false, except `ne` and `isNull`. `eq`, `ne` and `in` compare texts as
they are; the others compare them folded, as the order does (`values.py`). Keys and paths compare exactly and in the
order of the tree: what a condition leaves of them are spans, parts of the order of texts, which bound key ranges.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

from resolvers.sorting.values import NodeValue
from store.concurrency import in_chunks
from store.errors import BadInput, BadPath
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Level
from store.model.keys import MAX_SORT_KEY_BYTES, encode_segment, just_after, last_segment, prefix_end
from store.model.paths import checked_segment, parse_path
from store.model.records import Record

Span = tuple[str, str | None]  # from the first text up to the second, which is not in it; None: to the end
Spans = tuple[Span, ...]  # in order, without a common text

EVERYTHING: Spans = (("", None),)


def contains(spans: Spans, text: str) -> bool:
    place = bisect_right(spans, text, key=_lo)
    if place == 0:
        return False
    hi = spans[place - 1][1]
    return hi is None or text < hi


def union(*sets: Spans) -> Spans:
    """The texts that are in one of these sets; none for none."""
    found: list[Span] = []
    for lo, hi in sorted([span for spans in sets for span in spans], key=_lo):
        if hi is not None and hi <= lo:
            continue
        start, end = found[-1] if found else (lo, "")
        if found and (end is None or lo <= end):
            found[-1] = (start, None if end is None or hi is None else max(end, hi))
        else:
            found.append((lo, hi))
    return tuple(found)


def complement(spans: Spans) -> Spans:
    """All other texts."""
    found: list[Span] = []
    start: str | None = ""
    for lo, hi in spans:
        if start is not None and start < lo:
            found.append((start, lo))
        start = hi
    return tuple(found) if start is None else (*found, (start, None))


def intersection(*sets: Spans) -> Spans:
    """The texts that are in each of these sets; all for none."""
    return complement(union(*[complement(spans) for spans in sets]))


def clipped(spans: Spans, lo: str, hi: str) -> Spans:
    """The texts of a set from one text up to another."""
    first = max(bisect_right(spans, lo, key=_lo) - 1, 0)
    last = bisect_left(spans, hi, key=_lo)
    parts = [(max(lo, start), hi if end is None else min(hi, end)) for start, end in spans[first:last]]
    return tuple([(start, end) for start, end in parts if start < end])


def prefix_span(prefix: str) -> Span:
    """The texts that begin with a prefix."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return (prefix, None)
    following = ord(kept[-1]) + 1
    return (prefix, kept[:-1] + chr(0xE000 if following == 0xD800 else following))  # no text has surrogates


def _lo(span: Span) -> str:
    return span[0]


MAX_CONDITIONS = 50  # of one list: each comparison is tested for every node, and so is each empty object or list
DEAR = 5  # what a condition counts as that takes so many times as long as a comparison
PARSED = frozenset((Kind.LONG, Kind.DECIMAL, Kind.DATE, Kind.DATETIME))  # which scalars take as they are given
MAX_DEPTH = 5  # of and, or, not and children in each other
MAX_CHARACTERS = 4_000  # of all texts to compare with: they are cached with the list

TESTED_A_CHUNK = 5  # nodes between two points at which the event loop may run others: their texts may be long

Test = Callable[[Record], bool]


async def tested(records: Sequence[Record], test: Test) -> list[Record]:
    """The nodes that meet a condition."""
    found: list[Record] = []
    async for chunk in in_chunks(records, TESTED_A_CHUNK):
        found += filter(test, chunk)
    return found


class Condition(Protocol):
    """A condition on the nodes of a list.

    `is_cacheable` is whether lists that were filtered by it are cached.
    """

    @property
    def is_cacheable(self) -> bool: ...

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        ...

    @property
    def test(self) -> Test:
        """Whether a node meets it."""
        ...

    def outcome(self, level: str) -> bool | None:
        """Whether all nodes of a level meet it, or none does, by the attributes that the level has; None where that
        depends on the node.
        """
        ...

    def lacking(self, level: str) -> set[str]:
        """The attributes that a level lacks, by their names in the schema, in the parts that decide its outcome."""
        ...


@dataclass(frozen=True)
class KeyComparison:
    """A condition on `key` or `path`: the spans of the texts that meet it, of a key `Omaha#`, of a path `US#NE#Omaha#`,
    encoded as in the table.
    """

    name: str
    spans: Spans
    is_cacheable: ClassVar[bool] = True

    @classmethod
    def of(cls, name: str, operator: str, operand: Any) -> Self:
        """The condition of one operator of the schema. Raises BadInput for a text that no key or path can be."""
        if operator == "in":
            return cls(name, union(*[cls.of(name, "eq", one).spans for one in operand]))
        if name == "key" and operator == "startsWith":
            return cls(name, (prefix_span(_encoded(operand)) if operand else ("", None),))
        first, end = _key_span(operand) if name == "key" else _path_span(operand, operator)
        match operator:
            case "lt":
                span: Span = ("", first)
            case "lte":
                span = ("", end)
            case "gt":
                span = (end, None)
            case "gte":
                span = (first, None)
            case _:
                span = (first, end)
        return cls(name, (span,))

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        return self.name, self.spans

    @cached_property
    def test(self) -> Test:
        """Whether a node meets it."""
        position, spans = (key_position if self.name == "key" else path_position), self.spans
        return lambda record: contains(spans, position(record))

    def outcome(self, level: str) -> bool | None:
        return None

    def lacking(self, level: str) -> set[str]:
        return set()


def key_position(record: Record) -> str:
    """The key of a node as it compares: `Omaha#`."""
    return last_segment(record.pk, record.sk) + "#"


def path_position(record: Record) -> str:
    """The path of a node as it compares: `US#NE#Omaha#`."""
    return record.pk[record.pk.index("#") + 1 :] + record.sk


def _key_span(key: str) -> tuple[str, str]:
    """The span of one key, and of everything below it."""
    encoded = _encoded(key)
    return encoded + "#", encoded + "$"


def _path_span(path: str, operator: str) -> tuple[str, str]:
    """The span of one path, with what is below it for `startsWith`."""
    try:
        whole = "".join([encode_segment(segment) + "#" for segment in parse_path(path)])
    except BadPath as error:
        raise BadInput(f"path in where: {error}") from None
    return whole, prefix_end(whole) if operator == "startsWith" else just_after(whole)


def _encoded(key: str) -> str:
    if not key:
        raise BadInput("A key in where is empty, and no key is; omit it.")
    try:
        encoded = encode_segment(checked_segment(key))
    except BadPath as error:
        raise BadInput(f"key in where: {error}") from None
    if (size := len(encoded.encode())) > MAX_SORT_KEY_BYTES:
        raise BadInput(f"A key in where takes {size:,} bytes, and no key has more than {MAX_SORT_KEY_BYTES:,}; cut it.")
    return encoded


@dataclass(frozen=True)
class Comparison:
    """One comparison: a value of nodes, the operator as the schema names it, and what to compare with.

    The operand of `in` is a tuple, that of `isNull` a boolean.
    """

    value: NodeValue
    operator: str
    operand: Hashable
    is_cacheable: ClassVar[bool] = True

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal comparisons."""
        return self.value.name, self.value.languages, self.operator, self.operand

    @cached_property
    def test(self) -> Test:
        """Whether a node meets it."""
        value, operand = self.value, self.operand
        match self.operator:
            case "isNull":
                of = value.of if value.many else value.comparable_of
                return lambda record: (of(record) is None) is operand
            case "contains" if value.many:
                return self._has_element()
            case "eq" | "ne" | "in":
                return self._equality()
        of, wanted = value.comparable_of, value.comparable(operand)
        meets = _MEETS[self.operator]
        return lambda record: (found := of(record)) is not None and meets(found, wanted)

    def outcome(self, level: str) -> bool | None:
        if not self.lacking(level):
            return None
        return self.operator == "ne" or (self.operator == "isNull" and self.operand is True)

    def lacking(self, level: str) -> set[str]:
        return {self.value.label} if self.value.levels and level not in self.value.levels else set()

    def _exact(self, operand: Any) -> Hashable:
        """An operand in the form that is equal for equal values."""
        return operand if self.value.kind in (Kind.TEXT, Kind.ENUM) else self.value.comparable(operand)

    def _equality(self) -> Test:
        is_exact = self.value.kind in (Kind.TEXT, Kind.ENUM)
        of: Callable[[Record], Any] = self.value.of if is_exact else self.value.comparable_of
        operands: Any = self.operand if self.operator == "in" else (self.operand,)
        wanted = frozenset(map(self._exact, operands))
        if self.operator == "ne":
            return lambda record: of(record) not in wanted
        return lambda record: of(record) in wanted

    def _has_element(self) -> Test:
        of, exact, wanted = self.value.of, self._exact, self._exact(self.operand)

        def test(record: Record) -> bool:
            elements = of(record)
            return elements is not None and any(exact(one) == wanted for one in elements)

        return test


@dataclass(frozen=True)
class Combination:
    """Conditions joined by `and` or `or`, or the one that `not` negates. `and` of none is met, `or` of none is not."""

    operator: str
    parts: tuple[Condition, ...]

    @cached_property
    def is_cacheable(self) -> bool:
        return all(part.is_cacheable for part in self.parts)

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        return self.operator, [part.identity for part in self.parts]

    @cached_property
    def test(self) -> Test:
        """Whether a node meets it."""
        tests = [part.test for part in self.parts]
        if len(tests) == 1 and self.operator != "not":
            return tests[0]
        match self.operator:
            case "and":
                return lambda record: all(test(record) for test in tests)
            case "or":
                return lambda record: any(test(record) for test in tests)
        (negated,) = tests
        return lambda record: not negated(record)

    def outcome(self, level: str) -> bool | None:
        found = [part.outcome(level) for part in self.parts]
        if self.operator == "not":
            return None if found[0] is None else not found[0]
        if (self.operator == "or") in found:  # one that is met decides `or`, one that is not decides `and`
            return self.operator == "or"
        return None if None in found else self.operator == "and"

    def lacking(self, level: str) -> set[str]:
        outcome = self.outcome(level)
        deciding = [part for part in self.parts if self.operator == "not" or part.outcome(level) is outcome]
        return {name for part in deciding for name in part.lacking(level)}


def direct_parts(where: Condition | None) -> Sequence[Condition]:
    """The conditions that stand directly in `where`, each with a name: not those in its and, or and not."""
    parts = where.parts if isinstance(where, Combination) and where.operator == "and" else (where,)
    return [part for part in parts if part is not None and not isinstance(part, Combination)]


def check_levels(where: Condition, levels: Sequence[Level], others: Iterable[Level], below: Iterable[Level]) -> None:
    """Raise BadInput for a condition that no node of these levels can meet, since they lack the attributes.

    `levels` are those that nodes of the list can have, and of none the list is empty anyway; `others` are those that it
    could have, and `below` those of their children.
    """
    if not levels or any(where.outcome(level.name) is not False or not where.lacking(level.name) for level in levels):
        return
    lacks = [f"{level.label} has no {', '.join(sorted(where.lacking(level.name)))}" for level in levels]
    having, children = [
        ", ".join([one.label for one in some if not where.lacking(one.name)]) for some in (others, below)
    ]
    ways = [f"give level: [{having}]"] if having else []
    ways += [f"put it into children: {{some: …}}, since {children} may have it"] if children else []
    raise BadInput(f"No node in this list can meet where: {'; '.join(lacks)}. {_way_out([*ways, 'omit it'])}")


def _way_out(ways: Sequence[str]) -> str:
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


class OwnParser(Protocol):
    """A name in `where` whose conditions are no comparisons of a value of the node itself; `cost` is what each counts
    as among those that one list may have.
    """

    cost: ClassVar[int]

    def parse(self, given: Mapping[str, Any], parser: "ConditionParser", depth: int) -> Condition:
        """The condition. Raises BadInput."""
        ...


class ConditionParser:
    """Parses one condition as clients write it: by name of a value its operators, or and, or and not."""

    def __init__(self, values: Mapping[str, NodeValue | OwnParser]) -> None:
        """`values` are those of the hierarchy by their names in the schema, without `key` and `path`."""
        self._values = values
        self._conditions_left = MAX_CONDITIONS
        self._characters_left = MAX_CHARACTERS

    def parse(self, given: Mapping[str, Any], depth: int = 1) -> Condition:
        """The condition; raises BadInput for one that is too large, and for null inside it."""
        if depth > MAX_DEPTH:
            raise BadInput(f"where has more than {MAX_DEPTH} levels of and, or, not and children; nest it less.")
        parts: list[Condition] = []
        for name, inner in given.items():
            if inner is None:
                raise BadInput(f"{name} is null in where; {_omit(self._values.get(name))}.")
            if name in ("and", "or"):
                parts.append(self._combination(name, inner, depth))
            elif name == "not":
                parts.append(self._combination(name, [inner], depth))
            elif not isinstance(value := self._values.get(name), NodeValue | None):
                parts.append(self.counted(value.parse(inner, self, depth), value.cost))
            else:
                if name == "name" and value is not None:
                    value, inner = _localized(value, inner)
                parts += [self._comparison(name, value, operator, operand) for operator, operand in inner.items()]
        if len(parts) == 1 and not (isinstance(parts[0], Combination) and depth == 1):
            return parts[0]
        return self._joined("and", parts)  # also of one, for `direct_parts`

    def _combination(self, operator: str, given: Sequence[Mapping[str, Any]], depth: int) -> Condition:
        return self._joined(operator, [self.parse(one, depth + 1) for one in given])

    def _joined(self, operator: str, parts: Sequence[Condition]) -> Condition:
        joined = Combination(operator, tuple(parts))
        return joined if parts else self.counted(joined)

    def _comparison(self, name: str, value: NodeValue | None, operator: str, operand: Any) -> Condition:
        if operand is None:
            raise BadInput(f"{operator} of {name} is null in where; {_omit(value)}.")
        given = operand if isinstance(operand, list) else [operand]
        operands = tuple([one.name if isinstance(one, Enum) else one for one in given])
        self._characters_left -= sum([len(one) for one in operands if isinstance(one, str)])
        if self._characters_left < 0:
            raise BadInput(f"where has texts of more than {MAX_CHARACTERS:,} characters; use shorter ones.")
        if value is not None and operator != "isNull" and value.kind in PARSED:
            operands = tuple([Attribute(name, value.kind, "").parse(one) for one in operands])
        whole: Hashable = operands if isinstance(operand, list) else operands[0]
        if value is None:
            return self.counted(KeyComparison.of(name, operator, whole))
        return self.counted(Comparison(value, operator, whole))

    def counted(self, condition: Condition, cost: int = 1) -> Condition:
        """A condition, taken from those that one list may have. Raises BadInput where it has too many."""
        self._conditions_left -= cost
        if self._conditions_left < 0:
            counts = f"; one of near or search counts as {DEAR}" if cost > 1 else ""
            raise BadInput(f"where has more than {MAX_CONDITIONS} conditions{counts}; omit some.")
        return condition


def _omit(value: object) -> str:
    return "omit it, or write isNull: true" if isinstance(value, NodeValue) else "omit it"


def _localized(value: NodeValue, given: Mapping[str, Any]) -> tuple[NodeValue, Mapping[str, Any]]:
    """Names in the languages of a condition, and its operators. Raises BadInput for languages without an operator."""
    languages = given.get("languages")
    operators = {name: operand for name, operand in given.items() if name != "languages"}
    if "languages" not in given:
        return value, operators
    if not operators:
        raise BadInput("name in where has languages alone; add what the name has to be, such as eq.")
    return value.localized(languages), operators


_MEETS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda found, wanted: found < wanted,
    "lte": lambda found, wanted: found <= wanted,
    "gt": lambda found, wanted: found > wanted,
    "gte": lambda found, wanted: found >= wanted,
    "startsWith": lambda found, wanted: found.startswith(wanted),
    "contains": lambda found, wanted: wanted in found,
}
