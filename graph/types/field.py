"""Fields, arguments and object types for Strawberry, made of values: they differ from hierarchy to hierarchy.

A field's resolver is registered with it, so that plans and the executor can call it without Strawberry.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from operator import attrgetter
from typing import Annotated, Any

import strawberry
from graphql import GraphQLField, GraphQLSchema
from strawberry.types.field import StrawberryField

from graph.operation.graphql_core import core_info

RESOLVER = "clade-resolver"
"""The key of a field's resolver in the metadata of Strawberry's field, and in the extensions of graphql-core's."""

Resolver = Callable[..., Any]
Fields = dict[str, StrawberryField]


def argument(name: str, kind: Any, description: str, *, default: Any = strawberry.UNSET) -> Parameter:
    """An optional argument of a field, by its name in the schema."""
    annotation = Annotated[kind, strawberry.argument(name=name, description=description)]
    return Parameter(f"{name}_", Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def required(name: str, kind: Any, description: str) -> Parameter:
    """A required argument of a field."""
    return argument(name, kind, description, default=Parameter.empty)


def field(
    resolve: Resolver,
    returns: Any,
    description: str,
    *arguments: Parameter,
    name: str | None = None,
    compiled: bool = True,
    deprecated: str = "",
) -> StrawberryField:
    """A field with the resolver `resolve(root, info, **arguments)`, whose argument names end in `_`.

    Plans compile leaf fields and the relations between nodes; any other field that leads to nodes is not `compiled`.
    `deprecated` says what to use instead.
    """

    def answer(root: Any, info: Any, **given: Any) -> Any:
        return resolve(root, core_info(info), **given)

    plain = Parameter.POSITIONAL_OR_KEYWORD
    taken = [Parameter("root", plain), Parameter("info", plain, annotation=strawberry.Info)]
    answer.__signature__ = Signature([*taken, *arguments], return_annotation=returns)  # type: ignore[attr-defined]
    metadata = {RESOLVER: resolve} if compiled else {}
    made: StrawberryField = strawberry.field(
        resolver=answer, description=description, name=name, metadata=metadata, deprecation_reason=deprecated or None
    )
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


def class_of(name: str, fields: Fields, *bases: type) -> type:
    """A class with these fields, ready to become a Strawberry type."""
    return type(name, bases, dict(fields))


def object_type(name: str, description: str, fields: Fields) -> Any:
    """An object type with these fields."""
    return strawberry.type(class_of(name, fields), name=name, description=description)


def input_class(
    name: str, description: str, fields: Mapping[str, tuple[Any, Any]], cls: type | None = None, *, one_of: bool = False
) -> Any:
    """An input with these fields by their names in Python, each a type and Strawberry's field.

    `cls` is its class, where types refer to it already. With `one_of` it takes exactly one of its fields.
    """
    made = cls or type(name, (), {})
    made.__annotations__ = {part: kind for part, (kind, _) in fields.items()}
    for part, (_, declared) in fields.items():
        setattr(made, part, declared)
    return strawberry.input(made, name=name, description=description, one_of=one_of)


FIRST = argument("first", int | None, "At most so many, from the start; by default all.")
PAGING = [
    FIRST,
    argument("after", str | None, "After this cursor, such as an `endCursor`."),
    argument("last", int | None, "At most so many, from the end."),
    argument("before", str | None, "Before this cursor, such as a `startCursor`."),
]
