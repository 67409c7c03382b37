"""List arguments: `orderBy`, `where`, `languages`, `level` and `levels` of a list, as graphql-core coerces them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from graphql import GraphQLField, get_named_type

from resolvers.sorting.conditions import Condition, ConditionParser
from resolvers.sorting.node_values import NodeValue
from resolvers.sorting.ordering import OrderField, Ordering
from store.errors import BadInput
from store.model.languages import lookup

ORDER_VALUES = "clade-order-values"
"""The key, in the extensions of an enum of values to sort by, of these values by their names."""
CONDITION_VALUES = "clade-condition-values"
"""The same for an input of conditions."""

Given = Mapping[str, Any]


def arrangement(definition: GraphQLField, given: Given) -> dict[str, Any]:
    """`ordering` and `where` of `ConnectionArguments`, as far as they are given. Raises BadInput."""
    languages = tuple(given.get("languages") or ())
    lookup((), languages)  # raises where they are invalid
    found: dict[str, Any] = {}
    if given.get("orderBy"):
        found["ordering"] = _ordering(definition, given["orderBy"], languages)
    if given.get("where") is not None:
        found["where"] = _where(definition, given["where"], languages)
    return found


def levels(given: Given) -> list[str] | None:
    """The levels of a list, None for all. Raises BadInput where `level` and `levels` are both given."""
    level, several = given.get("level"), given.get("levels")
    if several is None:
        return None if level is None else [plain(level)]
    if level is not None:
        raise BadInput("level and levels are both given; give one of them.")
    return list(map(plain, several))


def plain(member: Any) -> str:
    """A member of an enum as it is stored."""
    return str(member.value) if isinstance(member, Enum) else str(member)


def _ordering(definition: GraphQLField, given: Sequence[Given], languages: tuple[str, ...]) -> Ordering:
    order: Any = get_named_type(definition.args["orderBy"].type)
    values = _localized(get_named_type(order.fields["field"].type).extensions[ORDER_VALUES], languages)
    return Ordering(
        tuple([OrderField(values[plain(one["field"])], plain(one["direction"]) == "DESC") for one in given])
    )


def _where(definition: GraphQLField, given: Given, languages: tuple[str, ...]) -> Condition:
    values = get_named_type(definition.args["where"].type).extensions[CONDITION_VALUES]
    return ConditionParser(_localized(values, languages)).parse(given)


def _localized(values: Mapping[str, NodeValue], languages: tuple[str, ...]) -> Mapping[str, NodeValue]:
    """The values with names in the best of some languages."""
    if not languages:
        return values
    return {
        name: replace(value, languages=languages) if value.name == "name" else value for name, value in values.items()
    }
