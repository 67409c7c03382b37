"""Fields, arguments and object types for Strawberry, made of values: they differ from hierarchy to hierarchy.

A field's resolver is registered with it, so that plans and the executor can call it without Strawberry.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, get_args

import strawberry
from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema
from strawberry.schema_directive import Location
from strawberry.types.field import StrawberryField

from graph.operation.graphql_core import core_info

RESOLVER = "clade-resolver"
"""The key of a field's resolver in the metadata of Strawberry's field, and in the extensions of graphql-core's."""

PROVEN = "clade-proven-by-tree"
"""The key, in the same places, of a field in place whose value the version of its node's tree proves."""

Resolver = Callable[..., Any]
Fields = dict[str, StrawberryField]


@strawberry.schema_directive(
    locations=[Location.FIELD_DEFINITION],
    name="semanticNonNull",
    description="Null only beside an error, after Apollo's nullability specification (0.4).",
)
class SemanticNonNull:
    """Experimental and not in introspection: clients read it from the SDL."""


def schema_text(schema: strawberry.Schema) -> str:
    """The SDL of a schema. A directive's argument that nobody gives is in its definition all the same, which others
    compare with the specification.
    """
    name = "directive @semanticNonNull"
    return f"{schema.as_str()}\n".replace(f"{name} on", f"{name}(levels: [Int] = [0]) on")


def argument(name: str, kind: Any, description: str | None, *, default: Any = strawberry.UNSET) -> Parameter:
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
    proven_by_tree: bool = False,
    deprecated: str | None = None,
    semantic_non_null: bool = False,
) -> StrawberryField:
    """A field with the resolver `resolve(root, info, **arguments)`, whose argument names end in `_`.

    Plans compile leaf fields and the relations between nodes; any other field of nodes or of Query is not `compiled`,
    but executed in place. If it is `proven_by_tree`, its value stays the same as long as the version of its node's tree
    does. `deprecated` says what to use instead. A `semantic_non_null` field is null only beside an error.
    """

    def answer(root: Any, info: Any, **given: Any) -> Any:
        return resolve(root, core_info(info), **given)

    plain = Parameter.POSITIONAL_OR_KEYWORD
    taken = [Parameter("root", plain), Parameter("info", plain, annotation=strawberry.Info)]
    answer.__signature__ = Signature([*taken, *arguments], return_annotation=returns)  # type: ignore[attr-defined]
    metadata: dict[str, Any] = {RESOLVER: resolve} if compiled else {}
    if proven_by_tree:
        metadata[PROVEN] = True
    made: StrawberryField = strawberry.field(
        resolver=answer, description=description, name=name, metadata=metadata, deprecation_reason=deprecated,
        directives=[SemanticNonNull()] if semantic_non_null else [],
    )  # fmt: skip
    return made


def register_resolvers(schema: strawberry.Schema, core: GraphQLSchema) -> None:
    """Give graphql-core's fields the resolvers that `field` was given."""
    for kind in core.type_map.values():
        for name, definition in getattr(kind, "fields", {}).items():
            made = schema.get_field_for_type(name, kind.name) if isinstance(definition, GraphQLField) else None
            if made is not None:
                kept = {key: made.metadata[key] for key in (RESOLVER, PROVEN) if key in made.metadata}
                definition.extensions.update(kept)


def describe_once(core: GraphQLSchema) -> None:
    """Leave to an interface the descriptions that types which implement it would repeat: those of the arguments of
    nodes, and those of the fields of revisions.
    """
    for kind in core.type_map.values():
        if not isinstance(kind, GraphQLObjectType):
            continue
        are_revisions = any(interface.name == "NodeRevision" for interface in kind.interfaces)
        for made in (kind.fields[name] for interface in kind.interfaces for name in interface.fields):
            for taken in made.args.values():
                taken.description = None
            made.description = None if are_revisions else made.description


def resolver_of(definition: GraphQLField) -> Resolver | None:
    """The resolver of a compiled field; None for every other field."""
    return definition.extensions.get(RESOLVER)


def is_proven_by_tree(definition: GraphQLField) -> bool:
    """Whether the version of its node's tree proves the value of a field that is not compiled."""
    return PROVEN in definition.extensions


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


def input_type(
    name: str, description: str, parts: Mapping[str, tuple[Any, str]], *, one_of: bool = False,
    deprecated: Mapping[str, str] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """An input with fields of these types and descriptions, by their names as in Python; an optional one may be left
    out. With `one_of` exactly one is given. `deprecated` says what to use instead of some.
    """
    namespace: dict[str, Any] = {"__annotations__": {part: kind for part, (kind, _) in parts.items()}}
    for part, (kind, text) in parts.items():
        default = {"default": strawberry.UNSET} if type(None) in get_args(kind) else {}
        namespace[part] = strawberry.field(
            description=text,
            deprecation_reason=deprecated.get(part),
            **default,
        )
    return strawberry.input(type(name, (), namespace), name=name, description=description, one_of=one_of)


FIRST = argument("first", int | None, "At most so many, from the start; by default all.")
PAGING = [
    FIRST,
    argument("after", str | None, "After this cursor, such as an `endCursor`."),
    argument("last", int | None, "At most so many, from the end."),
    argument("before", str | None, "Before this cursor, such as a `startCursor`."),
]
