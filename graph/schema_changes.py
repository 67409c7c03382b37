"""Schema changes: what differs between an older schema and the present one, by what it does to clients."""

from typing import NamedTuple

from graphql import GraphQLError, GraphQLInputObjectType, GraphQLSchema, build_schema
from graphql.utilities import BreakingChange, DangerousChange, find_schema_changes

from store.errors import BadInput


class SchemaChanges(NamedTuple):
    """The changes between two schemas that a client may notice, each a sentence.

    `breaking` ones make operations invalid that were valid; `dangerous` ones may confuse a client that is not prepared
    for them, such as an additional value of an enum.
    """

    breaking: list[str]
    dangerous: list[str]


def schema_changes(old: str, new: str) -> SchemaChanges:
    """The changes from one SDL to another. Raises BadInput, with a sentence about `old`, if it is no schema."""
    before, after = _parsed(old), _parsed(new)
    found = find_schema_changes(before, after)
    breaking = [change.description for change in found if isinstance(change, BreakingChange)]
    dangerous = [change.description for change in found if isinstance(change, DangerousChange)]
    return SchemaChanges([*breaking, *_narrowed(before, after)], dangerous)


def _parsed(sdl: str) -> GraphQLSchema:
    """The schema of an SDL; that of a subgraph, too, whose directives Federation defines."""
    try:
        schema = build_schema(sdl, assume_valid_sdl="@link(" in sdl)
    except (GraphQLError, TypeError) as error:
        reason = error.message if isinstance(error, GraphQLError) else str(error).partition("\n")[0]
        raise BadInput(f"is not a GraphQL schema in SDL: {reason.rstrip('.')}") from None
    if schema.query_type is None:
        raise BadInput("is not a GraphQL schema in SDL: it has no type Query")
    return schema


def _narrowed(before: GraphQLSchema, after: GraphQLSchema) -> list[str]:
    """Inputs that take exactly one of their fields now, and took any number: graphql-core does not compare that."""
    return [
        f"Input {name} has become @oneOf."
        for name, new in after.type_map.items()
        if isinstance(new, GraphQLInputObjectType) and new.is_one_of
        if isinstance(old := before.type_map.get(name), GraphQLInputObjectType) and not old.is_one_of
    ]
