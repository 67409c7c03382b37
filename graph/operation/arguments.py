"""Field arguments: their values in one request, and those of a connection as one value."""

from collections.abc import Mapping
from typing import Any

from graphql import FieldNode, VariableNode
from graphql.execution.values import VariableValues, get_argument_values

from resolvers.planning.connection_arguments import ConnectionArguments
from store.errors import BadInput
from store.model.keys import MAX_SORT_KEY_BYTES, encode_segment
from store.model.paths import checked_segment


def resolver_arguments(definition: Any, node: FieldNode, variables: VariableValues) -> dict[str, Any]:
    """A field's arguments by the names of its resolver's parameters. Raises GraphQLError for unfit variables."""
    return {f"{name}_": value for name, value in get_argument_values(definition, node, variables).items()}


def has_variables(node: FieldNode) -> bool:
    """Whether a variable is among a field's arguments."""
    return any(isinstance(argument.value, VariableNode) for argument in node.arguments or ())


def connection_arguments(definition: Any, node: FieldNode, variables: VariableValues) -> ConnectionArguments:
    """The arguments of a connection field. Raises BadInput where they contradict each other, and GraphQLError."""
    given: Mapping[str, Any] = get_argument_values(definition, node, variables)
    level = given.get("level")
    return ConnectionArguments(
        first=given.get("first"),
        after=given.get("after"),
        last=given.get("last"),
        before=given.get("before"),
        level=getattr(level, "value", level),
        start=_encoded(given.get("from")),
        end=_encoded(given.get("to")),
        reverse=bool(given.get("reverse")),
        max_depth=given.get("maxDepth"),
    )


def _encoded(bound: str | None) -> str | None:
    """A bound as it is stored in keys, encoded once for all lists. Raises BadInput for one longer than any key."""
    if bound is None:
        return None
    encoded = encode_segment(checked_segment(bound))
    if len(encoded.encode()) > MAX_SORT_KEY_BYTES:
        raise BadInput(f"from or to takes more than {MAX_SORT_KEY_BYTES:,} bytes in a key, which none is as long as.")
    return encoded
