"""Conditions on children: whether some of a node's children meet a condition, or none does.

The counts of a node may decide that, with the attributes that the levels of its children have; else the children are
read. `bounds` are the conditions that a node has to meet whatever its children are, and that are enough.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

from resolvers.sorting.conditions import Combination, Condition, ConditionParser, Test
from store.errors import BadInput
from store.model.records import Record

Levels = tuple[tuple[str, frozenset[str | None]], ...]
"""Levels, each with those that its nodes may be under."""


@dataclass(frozen=True)
class ChildrenComparison:
    """Whether some of a node's children of these levels meet `where`; without `is_some`, whether none does.

    `having` are the nodes, by `child_key`, of which some do, among all whose children were read. Before that it is what
    is assumed of nodes whose counts do not decide it: that they meet this condition, or that they do not.
    """

    is_some: bool
    where: Condition
    levels: Levels
    having: Set[str] | bool = field(default=False, compare=False)

    @property
    def identity(self) -> object:
        return "children", self.is_some, [name for name, _ in self.levels], self.where.identity

    @property
    def is_cacheable(self) -> bool:
        return self.where.is_cacheable

    @cached_property
    def outcomes(self) -> Mapping[str, bool | None]:
        """For each level of children whether all of its nodes meet `where`, or none does; None where that depends."""
        return {name: self.where.outcome(name) for name, _ in self.levels}

    @cached_property
    def test(self) -> Test:
        by_counts, having, is_some = self._by_counts, self.having, self.is_some

        def test(record: Record) -> bool:
            found = by_counts(record)
            if found is not None:
                return found
            return having if isinstance(having, bool) else (child_key(record) in having) is is_some

        return test

    @cached_property
    def test_child(self) -> Test:
        """Whether a child is of these levels and meets `where`."""
        outcomes, meets = self.outcomes, self.where.test
        return lambda child: child.level in outcomes and meets(child)

    def _by_counts(self, record: Record) -> bool | None:
        """What the counts of a node decide, None for nothing; those of a root out of a list may be outdated."""
        outcomes, is_some = self.outcomes, self.is_some
        if record.is_root:
            found = {None if outcome is not False else False for outcome in outcomes.values()}
        else:
            found = {outcomes[level] for level, count in record.kids.items() if count and level in outcomes}
        return is_some if True in found else None if None in found else not is_some

    def outcome(self, level: str) -> bool | None:
        return None if any(self.outcomes[name] is not False for name in self._below(level)) else not self.is_some

    def lacking(self, level: str) -> set[str]:
        below = self._below(level)
        if self.outcome(level) is None or not below:
            return set() if below else {"children of such levels"}
        names = {name for child in below for name in self.where.lacking(child)}
        return {f"children with {' and '.join(sorted(names))}"} if names else set()

    def _below(self, level: str) -> list[str]:
        """The levels that children of nodes of a level can be of."""
        return [name for name, under in self.levels if level in under]


def child_key(record: Record) -> str:
    """What the children of a node have as `siblings`, which tells it from all other nodes."""
    return record.pk + record.sk


def comparisons_in(where: Condition | None) -> Iterator[ChildrenComparison]:
    """All conditions on children in a condition."""
    if isinstance(where, ChildrenComparison):
        yield where
    elif isinstance(where, Combination):
        for part in where.parts:
            yield from comparisons_in(part)


def bounds(where: Condition) -> tuple[Condition, Condition]:
    """A condition that no node meets `where` without, and one with which every node meets it, whatever children it has
    that its counts do not show.
    """
    most, least = [_replaced(where, lambda one, having: replace(one, having=having), met) for met in (True, False)]
    return most, least


def with_having(where: Condition, having: Mapping[ChildrenComparison, Set[str]]) -> Condition:
    """The condition with what was read for each condition on children."""
    return _replaced(where, lambda one, _: replace(one, having=having[one]), True)


def _replaced(where: Condition, replaced: Callable[[ChildrenComparison, bool], Condition], is_met: bool) -> Condition:
    """A condition with others in place of those on children; `replaced` also takes whether that one has to be met for
    `where` to be `is_met`.
    """
    match where:
        case ChildrenComparison():
            return replaced(where, is_met)
        case Combination(operator, parts):
            inner = is_met is not (operator == "not")
            return Combination(operator, tuple([_replaced(part, replaced, inner) for part in parts]))
    return where


@dataclass(frozen=True)
class ChildrenParser:
    """Parses `children` in `where`, with the levels of a hierarchy."""

    levels: Levels
    cost: ClassVar[int] = 1

    def parse(self, given: Mapping[str, Any], parser: ConditionParser, depth: int) -> Condition:
        for name, inner in given.items():
            if inner is None:
                raise BadInput(f"{name} of children is null in where; omit it.")
        levels, parts = self.levels, list[Condition]()
        if "level" in given:
            chosen = {str(one.value) if isinstance(one, Enum) else str(one) for one in given["level"]}
            levels = tuple([(name, under) for name, under in levels if name in chosen])
        if not levels:
            raise BadInput("level of children is empty in where; give levels, or omit it for all.")
        for name in ("some", "none"):
            if name in given:
                inner = parser.parse(given[name], depth + 1)
                if any(comparisons_in(inner)):
                    raise BadInput("where has children inside of children; ask for children of one level alone.")
                parts.append(ChildrenComparison(name == "some", inner, levels))
        if not parts:
            raise BadInput("children in where has neither some nor none; give one of them.")
        return parts[0] if len(parts) == 1 else Combination("and", tuple(parts))
