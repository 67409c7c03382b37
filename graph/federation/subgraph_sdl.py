"""Subgraph SDL: the part of the schema that Federation 2 composes with other subgraphs, and `_service`, its field.

Values of `orderBy` and fields of `where` have the directives of their attribute as well, so that they do not disclose
hidden fields.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any

import strawberry
from graphql import (
    DocumentNode,
    EnumTypeDefinitionNode,
    InputObjectTypeDefinitionNode,
    NamedTypeNode,
    ObjectTypeDefinitionNode,
    Visitor,
    parse,
    print_ast,
    visit,
)
from strawberry.types.field import StrawberryField

from graph.federation.demand_control import argument_cost, demand_control, list_size, type_cost
from graph.hierarchies.attribute import value_attributes
from graph.hierarchies.list_values import list_values
from graph.hierarchies.names import camel, types_of
from graph.hierarchies.node import Node
from graph.types.field import field, object_type, schema_text
from store.model.attributes import Attribute

Directives = Mapping[tuple[str, str], str]
"""The directives of fields, of the values of enums, and of types, by the names of the type and of the field or value;
the second is empty for the type itself.
"""


def field_directives(classes: Sequence[type[Node]]) -> dict[tuple[str, str], str]:
    """`@tag`, `@inaccessible` and `@shareable` of the fields of attributes, in all types that have them.

    Federation forbids `@shareable` on the fields of interfaces and inputs, so these have the others alone.
    """
    found: dict[tuple[str, str], str] = {}
    for cls in classes:
        listed = list_values(cls)
        for one in (cls, *cls.levels.values()):
            title = cls.prefix + one.title
            own = [attribute for _, attribute in one.attributes.values()]
            own += [computed.attribute for computed in one.computed.values()]
            for ending in ("", "Revision"):
                found.update(_directives(title + ending, own, shareable=one is not cls))
            found.update(_directives(f"{title}Attributes", own, shareable=False))
            found.update(_list_directives(cls.prefix + cls.title, [each for each in own if each.name in listed]))
            for value in filter(is_dataclass, types_of(one)):
                parts = [attribute for _, attribute in value_attributes(value).values()]
                found.update(_directives(value.__name__, parts, shareable=True))
                found.update(_directives(f"{value.__name__}Input", parts, shareable=False))
    return found


def _list_directives(title: str, attributes: Sequence[Attribute]) -> Iterator[tuple[tuple[str, str], str]]:
    """The directives of a hierarchy's conditions and values to sort by."""
    yield from _directives(f"{title}Condition", attributes, shareable=False)
    yield from _directives(f"{title}OrderField", attributes, shareable=False, named=str.upper)


def _directives(
    title: str, attributes: Sequence[Attribute], *, shareable: bool, named: Callable[[str], str] = camel
) -> Iterator[tuple[tuple[str, str], str]]:
    for attribute in attributes:
        words = [f'@tag(name: "{tag}")' for tag in attribute.tags]
        words += ["@inaccessible"] if attribute.inaccessible else []
        words += ["@shareable"] if attribute.shareable and shareable else []
        if words:
            yield (title, named(attribute.name)), " ".join(words)


# Pinned: later versions add nothing that is needed here, and not every composer takes them.
LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: [{}])'
_IMPORTED = ("@composeDirective", "@key", "@shareable", "@cost", "@listSize", "@tag", "@inaccessible")
COMPOSED = (  # a directive that supergraphs keep, for the clients that read it from their SDL
    'extend schema @link(url: "https://specs.apollo.dev/nullability/v0.4", import: ["@semanticNonNull"]) '
    '@composeDirective(name: "@semanticNonNull")'
)
ONE_OF = "directive @oneOf on INPUT_OBJECT"  # not every composer knows it

# Fields, each with the word that exposes it; without that they are left out. Two subgraphs with a Query.node never
# compose correctly: each would be asked for the other's nodes. The other fields are for Clade's own clients.
_OF_QUERY = {name: name for name in ("node", "nodes", "changes", "moves")} | {"deletedNode": "history", "move": "moves"}
_GATEWAY_FIELDS = {"_service": "", "_entities": ""}  # only a gateway calls them, so they are never composed
_OWN_FIELDS = {"hierarchies": ""}  # each subgraph would answer with its own hierarchies alone
_SHARED = frozenset(
    {"UserError", "WritePlan", "PageInfo", "LocalizedName", "Money", "Localized", "LocalizedText"}
)  # several subgraphs have them
_OF_NODES = {"history": "history", "atRevision": "history"}
# It is left out: Cosmo's composer takes no interface whose fields are of interfaces that implement it.
_TREE_NODE = "TreeNode"


def service_field(sdl: Callable[[], str]) -> StrawberryField:
    """`_service`, where gateways read the subgraph's schema. It is printed at the first request, in a thread: it takes
    a third of a second.
    """
    printed = cache(sdl)

    async def resolve(service: Any, info: Any) -> str:
        return await asyncio.to_thread(printed)

    fields = {"sdl": field(resolve, str, "SDL of the subgraph, with Federation's directives.")}
    service = object_type("_Service", "The schema of a subgraph, for gateways.", fields)
    return field(lambda root, info: (), service, "Schema of this subgraph, for gateways.", name="_service")


def subgraph_sdl(schema: strawberry.Schema, classes: Sequence[type[Node]], expose: frozenset[str] = frozenset()) -> str:
    """The SDL of the subgraph: the exposed parts of the schema, with nodes as entities by ID and by path.

    All types of nodes are entities. The interfaces of hierarchies are, too, so that a subgraph can add fields to nodes
    of any level with `@interfaceObject`. `classes` are those that the schema was made of.
    """
    directives = _joined(field_directives(classes), demand_control(classes))
    definitions: dict[str, Any] = {one.name.value: one for one in _definitions(schema_text(schema))}
    entities = [name for name, one in definitions.items() if _TREE_NODE in _interfaces_of(one)]
    del definitions[_TREE_NODE]
    for name in entities:
        definitions[name] = _shaped(definitions[name], _OF_NODES, expose, '@key(fields: "id") @key(fields: "path")')
    definitions["Query"] = _shaped(definitions["Query"], _OF_QUERY | _GATEWAY_FIELDS | _OWN_FIELDS, expose)
    for name in _SHARED & definitions.keys():
        definitions[name] = _shaped(definitions[name], {}, expose, "@shareable")
    mutation = {"Mutation"} & definitions.keys() if "mutations" in expose else set()
    reached = _reached(definitions, {"Query", *entities, *mutation}) | {"semanticNonNull"}
    kept = tuple(_decorated(one, directives) for name, one in definitions.items() if name in reached)
    sdl = print_ast(DocumentNode(definitions=kept))
    if "@oneOf" in sdl:
        sdl += f"\n\n{ONE_OF}"
    imported = ", ".join(f'"{name}"' for name in _IMPORTED if re.search(rf"{name}\b", COMPOSED + sdl))
    return f"{LINK.format(imported)}\n{COMPOSED}\n\n{sdl}\n"


def _joined(*several: Directives) -> Directives:
    return {key: " ".join([one[key] for one in several if key in one]) for one in several for key in one}


def _definitions(sdl: str) -> tuple[Any, ...]:
    return parse(sdl, no_location=True).definitions


def _interfaces_of(definition: Any) -> dict[str, Any]:
    """The interfaces that a type implements, by their names."""
    return {one.name.value: one for one in getattr(definition, "interfaces", None) or ()}


def _shaped(definition: Any, words: dict[str, str], expose: frozenset[str], directives: str = "") -> Any:
    """A definition without unexposed fields and TreeNode, and with directives."""
    hidden = {name for name, word in words.items() if word not in expose}
    fields = tuple(one for one in definition.fields if one.name.value not in hidden)
    interfaces = tuple(one for name, one in _interfaces_of(definition).items() if name != _TREE_NODE)
    (carrier,) = _definitions(f"type Any {directives}")
    return replace(definition, fields=fields, interfaces=interfaces, directives=carrier.directives)


def _decorated(definition: Any, directives: Directives) -> Any:
    """A definition with its directives and those of its fields and their arguments, or of the values of an enum."""
    part = "values" if isinstance(definition, EnumTypeDefinitionNode) else "fields"
    if not getattr(definition, part, None):
        return definition
    title, is_object = definition.name.value, isinstance(definition, ObjectTypeDefinitionNode)
    is_output = part == "fields" and not isinstance(definition, InputObjectTypeDefinitionNode)
    parts = []
    for one in getattr(definition, part):
        words = [directives.get((title, one.name.value), ""), list_size(one) if is_output else ""]
        if is_object:
            arguments = [_with(argument, argument_cost(argument)) for argument in one.arguments or ()]
            one = replace(one, arguments=tuple(arguments))
        parts.append(_with(one, *words))
    words = [directives.get((title, ""), ""), type_cost(definition)] if is_object else []
    return _with(replace(definition, **{part: tuple(parts)}), *words)


def _with(node: Any, *words: str) -> Any:
    """A part of a definition with further directives."""
    (carrier,) = _definitions(f"type Any {' '.join(words)}")
    return replace(node, directives=(*(node.directives or ()), *(carrier.directives or ())))


def _reached(definitions: dict[str, Any], roots: Iterable[str]) -> set[str]:
    """The names of these types, of all types that they refer to, and of those that implement interfaces among these."""
    referred = {name: _names_in(definition) for name, definition in definitions.items()}
    for name, definition in definitions.items():
        for interface in _interfaces_of(definition):
            referred[interface].add(name)
    reached: set[str] = set()
    ahead = set(roots)
    while ahead:
        reached |= ahead
        ahead = set().union(*(referred[name] for name in ahead)) & definitions.keys() - reached
    return reached


def _names_in(definition: Any) -> set[str]:
    class Names(Visitor):
        def enter_named_type(self, node: NamedTypeNode, *_: Any) -> None:
            found.add(node.name.value)

    found: set[str] = set()
    visit(definition, Names())
    return found
