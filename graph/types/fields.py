"""Fields of GraphQL types: what makes fields, arguments, types and scalars for Strawberry, and the fields of nodes and
revisions that follow from a record alone.

Types are made of values, since they differ from hierarchy to hierarchy. A field's resolver is registered with it, so
that plans and graphql-core call it without Strawberry; plans write the simple ones into their generated code.
Scalars are serialized as they are stored, so responses need no conversion.

Names are in the languages of an argument instead of a header, since responses are cached by their arguments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from enum import Enum
from keyword import iskeyword
from operator import attrgetter
from typing import Any, NamedTuple, NewType, cast, get_args

import strawberry
from graphql import (
    FloatValueNode,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLSchema,
    ValueNode,
    value_from_ast_untyped,
)
from strawberry.annotation import StrawberryAnnotation
from strawberry.schema_directives import OneOf
from strawberry.tools import create_type
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField
from strawberry.types.scalar import ScalarDefinition

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long, Url
from graph.hierarchies.node import Computed, Node
from graph.operation.selection import plain_levels
from store.errors import BadData, BadInput
from store.model.attributes import Attribute, Kind, Value
from store.model.keys import decode_segment, last_segment
from store.model.names import lookup
from store.model.records import Record

RESOLVER = "clade-resolver"
"""The key of a field's resolver in the metadata of Strawberry's field, and in the extensions of graphql-core's."""

Resolver = Callable[..., Any]
Fields = dict[str, StrawberryField]


def argument(name: str, kind: Any, description: str, *, default: Any = strawberry.UNSET) -> StrawberryArgument:
    """An argument of a field, by its name in the schema. Without a default it may be omitted if it may be null."""
    return StrawberryArgument(name, name, StrawberryAnnotation(kind), description=description, default=default)


def field(
    resolve: object,
    returns: Any,
    description: str,
    *arguments: StrawberryArgument,
    name: str | None = None,
    deprecated: str = "",
) -> StrawberryField:
    """A field with the resolver `resolve(root, info, **arguments)`, by the names of the schema, or with a class that
    plans know. `deprecated` says what to use instead.
    """
    made: Any = strawberry.field(
        resolver=_registered, graphql_type=returns, description=description, name=name,
        metadata={RESOLVER: resolve}, deprecation_reason=deprecated or None,
    )  # fmt: skip
    made.arguments = list(arguments)
    return cast(StrawberryField, made)


def _registered() -> None:
    """The resolver for Strawberry, which is never called."""


def register_resolvers(schema: strawberry.Schema, core: GraphQLSchema) -> None:
    """Give graphql-core's fields the resolvers that `field` was given: Strawberry's would make inputs of their own."""
    for kind in core.type_map.values():
        for name, definition in getattr(kind, "fields", {}).items():
            made = schema.get_field_for_type(name, kind.name) if isinstance(definition, GraphQLField) else None
            if made is not None and RESOLVER in made.metadata:
                definition.extensions[RESOLVER] = definition.resolve = made.metadata[RESOLVER]


def register_one_of(schema: strawberry.Schema, core: GraphQLSchema) -> None:
    """Tell graphql-core which inputs take exactly one of their fields: its check tells of all wrong values with their
    places, Strawberry's of the first one without its place.
    """
    for kind in core.type_map.values():
        if isinstance(kind, GraphQLInputObjectType) and getattr(schema.get_type_by_name(kind.name), "is_one_of", False):
            kind.is_one_of, kind.out_type = True, GraphQLInputObjectType.out_type  # type: ignore[method-assign]


def resolver_of(definition: GraphQLField) -> Resolver | None:
    """The resolver that a field was given; None for every other field."""
    return definition.extensions.get(RESOLVER)


def attribute_of(name: str) -> Resolver:
    """The resolver of an attribute of the parent object, such as "node" or "node.id"."""
    get = attrgetter(name)
    return lambda source, info: get(source)


def class_of(name: str, fields: Fields, *bases: type) -> type:
    """A class with these fields, ready to become a Strawberry type."""
    return type(name, bases, dict(fields))


def object_type(name: str, description: str, fields: Fields) -> Any:
    """An object type with these fields by their names in Python."""
    for part, made in fields.items():
        made.python_name = part
    return _named(create_type(name, list(fields.values()), description=description), name)


def _named(made: Any, name: str) -> Any:
    """A type with exactly this name: Strawberry would write it in camel case."""
    made.__strawberry_definition__.name = name
    return made


def enum_class(name: str, members: Mapping[str, tuple[str, str | None]], description: str | None = None) -> Any:
    """An enum with these members by their names, each a value and its description."""
    make: Any = Enum  # mypy follows only enums that are written out
    values = {member: strawberry.enum_value(value, description=text) for member, (value, text) in members.items()}
    return strawberry.enum(make(name, values), description=description)


def input_type(
    name: str, description: str, fields: Mapping[str, Sequence[Any]], cls: type | None = None, *, one_of: bool = False
) -> Any:
    """An input with these fields by their names in the schema, as `input_field` takes them.

    `cls` is its class, where types refer to it already. With `one_of` it takes exactly one of its fields.
    """
    made = [input_field(part, *described) for part, described in fields.items()]
    if cls is None:
        directives = [OneOf()] if one_of else ()
        kind = create_type(name, made, is_input=True, description=description, directives=directives)
        return _named(kind, name)
    set_fields(cls, {one.python_name: one for one in made})
    cls.__annotations__ = {one.python_name: one.type for one in made}
    return strawberry.input(cls, name=name, description=description)


def input_field(
    name: str, kind: Any, description: str, default: Any = strawberry.UNSET, deprecated: str = ""
) -> StrawberryField:
    """A field of an input. Without a default it may be omitted if it may be null."""
    is_needed = default is strawberry.UNSET and type(None) not in get_args(kind)
    return StrawberryField(
        f"{name}_" if iskeyword(name) else name, name, StrawberryAnnotation(kind),
        description=description, default=MISSING if is_needed else default, deprecation_reason=deprecated or None,
    )  # fmt: skip


def set_fields(cls: type, fields: Fields) -> None:
    """Give fields to a class that was made without, since types refer to it."""
    for name, made in fields.items():
        setattr(cls, name, made)


FIRST = argument("first", int | None, "At most so many, from the start.")
PAGING = [
    FIRST,
    argument("after", str | None, "After this cursor."),
    argument("last", int | None, "At most so many, from the end."),
    argument("before", str | None, "Before this cursor."),
]

# -- scalars -----------------------------------------------------------------------------------------------------------

_XML_SCHEMA = "https://www.w3.org/TR/xmlschema11-2/"
_RFC_3339 = "https://www.rfc-editor.org/rfc/rfc3339#section-5.6"
_RFC_3986 = "https://www.rfc-editor.org/rfc/rfc3986"

Path = NewType("Path", str)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("A Path is a string, such as US/NE/Omaha.")
    return value


def _scalar(kind: Kind, description: str, specification: str) -> ScalarDefinition:
    """A scalar of attributes. A text or number that is no value of its kind is taken as it is, and refused by the
    attribute or the condition that it is for: so a mutation names all faults of its input.
    """
    parse = Attribute("A value", kind, "").parse

    def parsed(value: Any) -> Any:
        try:
            return parse(value)
        except BadInput:
            if isinstance(value, str | int | float):
                return value
            raise

    def literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
        if kind is Kind.DECIMAL and isinstance(node, FloatValueNode):
            return parsed(node.value)  # its digits, which a float would round
        return parsed(value_from_ast_untyped(node, variables))

    return strawberry.scalar(
        name=kind.value, description=description, specified_by_url=specification, parse_value=parsed,
        parse_literal=literal,
    )  # fmt: skip


SCALARS: dict[object, ScalarDefinition] = {
    Path: strawberry.scalar(
        name="Path",
        description="Path of a node: the keys from the root down, separated by /, such as US/MO/St. Louis. "
        "Within a key, / is escaped as %2F and % as %25.",
        specified_by_url=f"{_RFC_3986}#section-3.3",
        parse_value=_path,
    ),
    Long: _scalar(Kind.LONG, "Signed 64-bit integer.", f"{_XML_SCHEMA}#long"),
    Decimal: _scalar(
        Kind.DECIMAL,
        "Decimal of up to 38 digits, as a string with all its decimal places, such as 1299.00.",
        f"{_XML_SCHEMA}#decimal",
    ),
    Date: _scalar(Kind.DATE, "Calendar date in RFC 3339, such as 2026-10-05.", _RFC_3339),
    DateTime: _scalar(Kind.DATETIME, "Date and time in UTC in RFC 3339, such as 2026-10-05T12:30:00Z.", _RFC_3339),
    Url: _scalar(Kind.URL, "Absolute URL of http or https, such as https://example.com/a.", _RFC_3986),
}


# -- fields of nodes and revisions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordField:
    """An attribute of the record itself."""

    name: str

    def __call__(self, record: Record, info: Any) -> Any:
        return getattr(record, self.name)


@dataclass(frozen=True)
class AttributeField:
    """An attribute of the hierarchy. Raises BadData where the stored value is not of its type."""

    attribute: Attribute

    def __call__(self, record: Record, info: Any) -> Value:
        value = self.attribute.value_in(record.attributes)
        if value is None or self.attribute.is_valid(value):
            return value
        raise BadData(f"{label(record)}: attribute {self.attribute.name} is not of its type.")


@dataclass(frozen=True, eq=False)
class ComputedField:
    """A computed field of nodes with these attributes. Raises BadData for a value of another type."""

    computed: Computed
    attributes: Mapping[str, Attribute]

    def __call__(self, record: Record, info: Any) -> Value:
        try:
            return self.computed.value(record, self.attributes)
        except BadData as error:
            raise BadData(f"{label(record)}: {error}") from None


@dataclass(frozen=True)
class Count:
    """The number of children (`kids`) or descendants (`descendant_counts`), of some levels or of all."""

    counts: str

    def __call__(self, record: Record, info: Any, level: Sequence[Enum | str] | None = None) -> int:
        counts: dict[str, int] = getattr(record, self.counts)
        if level is None:
            return sum(counts.values())
        return sum([counts.get(one, 0) for one in plain_levels(level)])


def key(record: Record, info: Any) -> str:
    return decode_segment(last_segment(record.pk, record.sk))


def level_of(record: Record, levels: Mapping[str, type[Node]]) -> type[Node]:
    """The class of a record's level. Raises BadData where the hierarchy has no such level."""
    try:
        return levels[record.level]
    except KeyError:
        raise unknown_level(record) from None


def unknown_level(record: Record) -> BadData:
    """The error of a record whose hierarchy has no such level."""
    return BadData(f"{label(record)}: unknown level {record.level}.")


def label(record: Record) -> str:
    """A node in messages."""
    return f"The {record.hierarchy} {record.path_text}"


LANGUAGES = argument("languages", list[str] | None, "Tags of BCP 47, the best first.")
_NAME = "Name in the first of `languages`, else the default name."
_NAME_LANGUAGE = "Language of `name` with these `languages`, else null."


@dataclass(frozen=True)
class DisplayName:
    """The name in the best of some languages, else the default name. Plans write the latter into their code."""

    def __call__(self, record: Record, info: Any, languages: Sequence[str] | None = None) -> str:
        if languages is None:
            return record.name
        names = record.names
        language = lookup(names, languages)
        return record.name if language is None else names[language]


class LocalizedText(NamedTuple):
    """A name or another text in one language, by its canonical tag."""

    language: str
    text: str


_LANGUAGE, _TEXT = "Language tag of BCP 47, such as de or zh-Hant.", "Text in this language."
LOCALIZED_TEXT: Any = object_type(
    "LocalizedText",
    "A text in a language.",
    {
        "language": field(attribute_of("language"), str, _LANGUAGE),
        "text": field(attribute_of("text"), str, _TEXT),
    },
)


@strawberry.input(description="A text in a language.")
class LocalizedTextInput:
    language: str = strawberry.field(description=_LANGUAGE)
    text: str | None = strawberry.field(default=None, description=f"{_TEXT[:-1]}; null or omitted clears it.")


def localized_texts(texts: Mapping[str, str]) -> list[LocalizedText]:
    """Texts by language, ordered by language tag."""
    return [LocalizedText(*one) for one in sorted(texts.items())]


def best_language(texts: Mapping[str, str], languages: Sequence[str] | None = None) -> str | None:
    """The first of some languages that there is; None without one. Raises BadInput for an invalid tag."""
    return None if languages is None else lookup(texts, languages)


def name_fields() -> Fields:
    """`name`, `nameLanguage` and `names`, in this order."""
    return {
        "name": field(DisplayName(), str, _NAME, LANGUAGES),
        "name_language": field(
            lambda record, info, languages=None: best_language(record.names, languages), str | None, _NAME_LANGUAGE,
            LANGUAGES,
        ),
        "names": field(
            lambda record, info: localized_texts(record.names), list[LOCALIZED_TEXT],
            "Names in other languages, by language tag.",
        ),
    }  # fmt: skip


def texts_of(given: Iterable[Mapping[str, Any]]) -> tuple[tuple[Any, Any], ...]:
    """The languages and texts of inputs, in their order."""
    return tuple((one["language"], one.get("text")) for one in given)
