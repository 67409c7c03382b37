"""graphql-core's objects behind Strawberry's. Only this module reads Strawberry's private attributes."""

from typing import Any

import strawberry
from graphql import GraphQLResolveInfo, GraphQLSchema


def core_schema(schema: strawberry.Schema) -> GraphQLSchema:
    """The schema that graphql-core validates and executes against."""
    return schema._schema


def core_info(info: strawberry.Info) -> GraphQLResolveInfo[Any]:
    """The resolve info with the field nodes, the parent type and the fragments."""
    return info._raw_info
