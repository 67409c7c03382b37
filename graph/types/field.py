"""Fields and arguments for Strawberry, made of values: types differ from hierarchy to hierarchy.

A field's resolver is registered with it, so that plans and the executor can call it without Strawberry.
"""

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Any

import strawberry
from graphql import GraphQLField, GraphQLSchema
from strawberry.types.field import StrawberryField

from graph.operation.graphql_core import core_info

REQUIRED = inspect.Parameter.empty
RESOLVER = "clade-resolver"
"""The key of a field's resolver in the metadata of Strawberry's field, and in the extensions of graphql-core's."""

Resolver = Callable[..., Any]


def argument(name: str, kind: Any, description: str, *, default: Any = strawberry.UNSET) -> inspect.Parameter:
    """An argument of a field, by its name in the schema; it is optional unless `default` is REQUIRED."""
    return inspect.Parameter(
        f"{name}_",
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, strawberry.argument(name=name, description=description)],
    )


def field(
    resolve: Resolver,
    returns: Any,
    description: str,
    *arguments: inspect.Parameter,
    name: str | None = None,
    compiled: bool = True,
) -> StrawberryField:
    """A field with the resolver `resolve(root, info, **arguments)`, whose argument names end in `_`.

    Plans compile leaf fields and the relations between nodes; any other field that leads to nodes is not `compiled`.
    """

    def answer(root: Any, info: Any, **given: Any) -> Any:
        return resolve(root, core_info(info), **given)

    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [inspect.Parameter("root", plain), inspect.Parameter("info", plain, annotation=strawberry.Info)]
    answer.__signature__ = inspect.Signature([*taken, *arguments], return_annotation=returns)  # type: ignore[attr-defined]
    metadata = {RESOLVER: resolve} if compiled else {}
    made: StrawberryField = strawberry.field(resolver=answer, description=description, name=name, metadata=metadata)
    return made


def register_resolvers(schema: strawberry.Schema, core: GraphQLSchema) -> None:
    """Give graphql-core's fields the resolvers that `field` was given."""
    for kind in core.type_map.values():
        for name, definition in getattr(kind, "fields", {}).items():
            made = schema.get_field_for_type(name, kind.name) if isinstance(definition, GraphQLField) else None
            if made is not None and RESOLVER in made.metadata:
                definition.extensions[RESOLVER] = made.metadata[RESOLVER]


def resolver_of(definition: GraphQLField) -> Resolver | None:
    """The resolver of a compiled field; None for every other field."""
    return definition.extensions.get(RESOLVER)


def attribute_of(name: str) -> Resolver:
    """The resolver of an attribute of the parent object, such as "node" or "node.id"."""
    get = attrgetter(name)
    return lambda source, info: get(source)


def class_of(name: str, fields: dict[str, StrawberryField], *bases: type) -> type:
    """A class with these fields, ready to become a Strawberry type."""
    return type(name, bases, dict(fields))
