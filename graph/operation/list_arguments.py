"""List arguments: `level`, `orderBy` and `where` of a list, as graphql-core coerces them."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from graphql import GraphQLField, get_named_type

from resolvers.lists.arguments import KeyBounds, RelationKind
from resolvers.sorting.conditions import ConditionParser
from resolvers.sorting.ordering import OrderField, Ordering, PlaceOrder
from store.errors import BadInput

ORDER_VALUES = "clade-order-values"
"""The key, in the extensions of an enum of values to sort by, of these values by their names."""
CONDITION_VALUES = "clade-condition-values"
"""The same for an input of conditions."""

Given = Mapping[str, Any]


def arrangement(definition: GraphQLField, kind: RelationKind, given: Given) -> dict[str, Any]:
    """`ordering`, `where` and `bounds` of `ConnectionArguments`, as far as they are given. Raises BadInput."""
    found: dict[str, Any] = {}
    if given.get("orderBy"):
        found["ordering"] = _ordering(definition, kind, given["orderBy"])
    if given.get("where") is not None:
        values = get_named_type(definition.args["where"].type).extensions[CONDITION_VALUES]
        where = ConditionParser(values).parse(given["where"])
        has_ranges = kind in (RelationKind.CHILDREN, RelationKind.DESCENDANTS)
        are_children = kind is RelationKind.CHILDREN or given.get("maxDepth") == 1
        bounds = KeyBounds.of(where, are_children=are_children) if has_ranges else None
        found |= {"bounds": bounds, "where": None if bounds is not None and bounds.is_exact else where}
    return found


def levels(given: Given) -> tuple[str, ...]:
    """The levels of a list in their order, none for all. Raises BadInput for an empty list of them."""
    wanted = given.get("level")
    if wanted is None:
        return ()
    if not wanted:
        raise BadInput("level is empty; give levels, or omit it for all.")
    return tuple(sorted(set(map(plain, wanted))))


def plain(member: Any) -> str:
    """A member of an enum as it is stored: Strawberry passes the member, a plan its value."""
    return str(member.value) if isinstance(member, Enum) else str(member)


def _ordering(definition: GraphQLField, kind: RelationKind, given: Sequence[Given]) -> Ordering:
    order: Any = get_named_type(definition.args["orderBy"].type)
    values = get_named_type(order.fields["field"].type).extensions[ORDER_VALUES]
    fields: list[OrderField] = []
    for number, one in enumerate(given):
        name, descending = plain(one["field"]), plain(one["direction"]) == "DESC"
        if name != "NAME" and one.get("languages") is not None:
            raise BadInput(f"orderBy has languages for {name}, but only names have languages; omit it.")
        if name in _PLACES:
            if number < len(given) - 1:
                raise BadInput(
                    f"{name} must be the last of orderBy, since it decides the whole order; omit what follows."
                )
            if name == "POSITION" and kind is RelationKind.DESCENDANTS:
                raise BadInput("POSITION is among siblings, and descendants have many parents; use PATH or KEY.")
            return Ordering(tuple(fields), _PLACES[name], descending)
        value = values[name]
        fields.append(OrderField(value if name != "NAME" else value.localized(one.get("languages")), descending))
    return Ordering(tuple(fields))


_PLACES = {place.name: place for place in PlaceOrder}
