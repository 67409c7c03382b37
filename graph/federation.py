"""Subgraph: the part of the schema that Federation 2 composes with other subgraphs, as SDL with Federation's
directives, and its fields `_service` and `_entities`, which gateways call.

Attributes declare directives of their fields. Values of `orderBy` and fields of `where` have the directives of their
attribute as well, so that they do not disclose hidden fields.

By `@cost` and `@listSize` (demand control) gateways estimate a query before they send it. A cost of 1 is one node of
the response, or one further read unit of the store. Fields that are read with their node cost nothing. Weights were
measured on the demo data (`tests/federation/test_demand_control.py`). Composers reject costs on fields of interfaces
and on their arguments.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, NewType, Union

import strawberry
from graphql import (
    DocumentNode,
    EnumTypeDefinitionNode,
    GraphQLError,
    GraphQLID,
    InputObjectTypeDefinitionNode,
    NamedTypeNode,
    ObjectTypeDefinitionNode,
    Visitor,
    parse,
    print_ast,
    visit,
)
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import value_attributes
from graph.hierarchies.node import Node
from graph.hierarchies.registry import (
    camel,
    list_values,
    paths_field_of,
    revision_fields,
    search_field_of,
    types_of,
    values_of,
)
from graph.types.fields import argument, field, object_type
from graph.types.lookups import Find, LookupField, Target, unique_arguments, worded
from graph.types.nodes import HierarchyTypes
from store.errors import BadInput, CladeError, shorten
from store.model.attributes import Attribute

# Pinned: later versions add nothing that is needed here, and not every composer takes them.
LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: [{}])'
_IMPORTED = ("@key", "@shareable", "@cost", "@listSize", "@tag", "@inaccessible")
ONE_OF = "directive @oneOf on INPUT_OBJECT"  # not every composer knows it

# Fields, each with the word that exposes it; without that, or with an empty one, they are left out.
_OF_QUERY = {
    # Two subgraphs with a Query.node never compose correctly: each would be asked for the other's nodes. The other
    # fields are for Clade's own clients.
    "node": "node", "nodes": "nodes", "changes": "changes", "moves": "moves", "move": "moves", "deletedNode": "history",
    "_service": "", "_entities": "",  # only a gateway calls them, so they are never composed
    "hierarchies": "",  # each subgraph would answer with its own hierarchies alone
}  # fmt: skip
_OF_NODES = {"history": "history", "atRevision": "history"}
# Types of values that several subgraphs have.
_SHARED = ("PageInfo", "Money", "Localized", "LocalizedText", "ListFacet", "ListFacetValue")
# It is left out: Cosmo's composer takes no interface whose fields are of interfaces that implement it.
_TREE_NODE = "TreeNode"

ASSUMED_PAGE = 100  # items of a list without first or last
ASSUMED_ANCESTORS = 8
ASSUMED_LOOKUPS = 10  # of paths or ids: composers take no list for the size

SEARCH, CHANGES = 10, 10
ARGUMENTS = {"orderBy": 50, "where": 50, "fields": 50}
"""Costs of arguments, where a query gives them: lists are read whole to be sorted, filtered or counted (`fields` of
`facets`).
"""

_NODES = 'sizedFields: ["nodes", "edges"], '

Directives = Mapping[tuple[str, str], str]
"""The directives of fields, of the values of enums, and of types, by the names of the type and of the field or value;
the second is empty for the type itself.
"""

_EXAMPLE = 'Representations, such as [{__typename: "City", id: "location:US-NE"}].'

Representation = NewType("Representation", object)

REPRESENTATION = strawberry.scalar(
    name="_Any",
    description="Representation of an entity in another subgraph: its __typename, and its id or its path. With both "
    "the id is used, since a path may be a former one; other fields are ignored.",
    parse_value=lambda value: value,
)


# -- fields of gateways ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entities(LookupField):
    """Nodes of any hierarchy by their representations, in this order.

    An invalid representation, or a failed read, is an error of this entity alone.
    """

    named: Mapping[str, Find]
    """The field that checks an entity, by the type names of representations."""

    many = True

    def targets(self, given: Mapping[str, Any]) -> list[Target]:
        return [self._outcome(representation) for representation in given["representations"]]

    def _outcome(self, representation: Any) -> Target:
        try:
            return self._target(representation)
        except CladeError as error:
            return self, error.bare()

    def _target(self, representation: Any) -> Target:
        """The field that checks an entity, and its lookup. Raises BadInput."""
        name = representation.get("__typename") if isinstance(representation, dict) else None
        if not isinstance(name, str):
            raise BadInput('A representation is an object with a __typename, such as {"__typename": "City", "id": …}.')
        if name not in self.named:
            raise BadInput(f'"{shorten(name)}" is not an entity of this subgraph.')
        find = self.named[name]
        (target,) = find.targets(_key(name, representation, find.unique))
        return target


def entities_field(published: Sequence[HierarchyTypes]) -> StrawberryField:
    """The field `_entities` over the levels and the interfaces of these hierarchies."""
    named = {types.title: Find(types.name, None, _unique_keys(types.cls)) for types in published}
    for types in published:
        for (_, level), title in types.type_names.items():
            named[title] = Find(types.name, level, _unique_keys(types.cls.levels[level]))
    concrete = tuple(one for types in published for one in types.concrete.values())
    entity: Any = Annotated[
        Union[concrete],  # noqa: UP007  # it is made of values
        strawberry.union("_Entity", description="A node of any level, as an entity of the supergraph."),
    ]
    return field(
        Entities(named),
        list[entity | None],
        "The nodes of these representations, in this order; null for each without a node. For gateways.",
        argument("representations", list[Representation], _EXAMPLE),
        name="_entities",
    )


def _unique_keys(cls: type[Node]) -> dict[str, Attribute]:
    """The attributes that are keys of a class's type, by the names of their fields."""
    return {name: one for name, one in unique_arguments(cls).items() if one.federation_key}


def _key(name: str, representation: Mapping[str, Any], unique: Collection[str]) -> dict[str, Any]:
    """The argument of `Find` for a representation. Raises BadInput."""
    node_id, path = representation.get("id"), representation.get("path")
    if node_id is not None:
        try:
            return {"id": GraphQLID.parse_value(node_id)}
        except GraphQLError:
            raise BadInput(f"The id in a representation of a {name} is neither a string nor an integer.") from None
    if path is None:
        if (key := next((key for key in unique if representation.get(key) is not None), None)) is not None:
            return {key: representation[key]}
        raise BadInput(f"A representation of a {name} needs {worded(['an id', 'a path', *unique], 'or')}.")
    if not isinstance(path, str):
        raise BadInput(f"The path in a representation of a {name} is not a string such as US/NE/Omaha.")
    return {"path": path}


def service_field(sdl: Callable[[], str]) -> StrawberryField:
    """`_service`, where gateways read the subgraph's schema. It is printed at the first request, in a thread: it takes
    a third of a second.
    """
    printed = cache(sdl)

    async def resolve(root: Any, info: Any) -> dict[str, str]:
        return {"sdl": await asyncio.to_thread(printed)}

    text = "SDL of the subgraph, with Federation's directives."
    fields = {"sdl": field(lambda service, info: service["sdl"], str, text)}
    service = object_type("_Service", "The schema of a subgraph, for gateways.", fields)
    return field(resolve, service, "Schema of this subgraph, for gateways.", name="_service")


# -- SDL ---------------------------------------------------------------------------------------------------------------


def subgraph_sdl(schema: strawberry.Schema, classes: Sequence[type[Node]], expose: frozenset[str] = frozenset()) -> str:
    """The SDL of the subgraph: the exposed parts of the schema, with nodes as entities by ID and by path.

    All types of nodes are entities. The interfaces of hierarchies are, too, so that a subgraph can add fields to nodes
    of any level with `@interfaceObject`. `classes` are those that the schema was made of.
    """
    declared, costs = _field_directives(classes), _demand_control(classes)
    directives = {key: f"{declared.get(key, '')} {costs.get(key, '')}" for key in declared | costs}
    definitions: dict[str, Any] = {one.name.value: one for one in _definitions(schema.as_str())}
    entities = [name for name, one in definitions.items() if _TREE_NODE in _interfaces_of(one)]
    del definitions[_TREE_NODE]
    unique = {cls.prefix + one.title: _unique_keys(one) for cls in classes for one in (cls, *cls.levels.values())}
    for name in entities:
        keys = " ".join(f'@key(fields: "{key}")' for key in ("id", "path", *unique.get(name, ())))
        definitions[name] = _shaped(definitions[name], _OF_NODES, expose, keys)
    definitions["Query"] = _shaped(definitions["Query"], _OF_QUERY, expose)
    for name in definitions.keys() & set(_SHARED):
        definitions[name] = _with(definitions[name], "@shareable")
    mutation = {"Mutation"} & definitions.keys() if "mutations" in expose else set()
    reached = _reached(definitions, {"Query", *entities, *mutation})
    kept = tuple(_decorated(one, directives) for name, one in definitions.items() if name in reached)
    sdl = print_ast(DocumentNode(definitions=kept))
    if "@oneOf" in sdl:
        sdl += f"\n\n{ONE_OF}"
    imported = ", ".join(f'"{name}"' for name in _IMPORTED if re.search(rf"{name}\b", sdl))
    return f"{LINK.format(imported)}\n\n{sdl}\n"


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
    return _with(replace(definition, fields=fields, interfaces=interfaces), directives)


def _decorated(definition: Any, directives: Directives) -> Any:
    """A definition with its directives and those of its fields and their arguments, or of the values of an enum."""
    part = "values" if isinstance(definition, EnumTypeDefinitionNode) else "fields"
    if not getattr(definition, part, None):
        return definition
    title, is_object = definition.name.value, isinstance(definition, ObjectTypeDefinitionNode)
    is_output = part == "fields" and not isinstance(definition, InputObjectTypeDefinitionNode)
    parts = []
    for one in getattr(definition, part):
        words = [directives.get((title, one.name.value), ""), _list_size(one) if is_output else ""]
        if is_object:
            costs = [(each, ARGUMENTS.get(each.name.value)) for each in one.arguments or ()]
            arguments = tuple(each if cost is None else _with(each, _cost(cost)) for each, cost in costs)
            one = replace(one, arguments=arguments)
        parts.append(_with(one, *words))
    words = [directives.get((title, ""), ""), _type_cost(definition)] if is_object else []
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


# -- declared directives -----------------------------------------------------------------------------------------------


def _field_directives(classes: Sequence[type[Node]]) -> dict[tuple[str, str], str]:
    """`@tag`, `@inaccessible` and `@shareable` of the fields of attributes, in all types that have them.

    Federation forbids `@shareable` on the fields of interfaces and inputs, so these have the others alone.
    """
    found: dict[tuple[str, str], str] = {}
    for cls in classes:
        listed = list_values(cls)
        for revised in revision_fields(cls):
            own = [values_of(cls.levels[level])[revised.name][1] for level in revised.levels]
            found.update(_directives(f"{cls.prefix}{cls.title}Revision", [_merged(own, revised.field)], shareable=True))
        for one in (cls, *cls.levels.values()):
            title = cls.prefix + one.title
            own = [attribute for _, attribute in one.attributes.values()]
            own += [computed.attribute for computed in one.computed.values()]
            found.update(_directives(title, own, shareable=one is not cls))
            found.update(_directives(f"{title}Attributes", own, shareable=False))
            sorted_by = [attribute for attribute in own if attribute.name in listed]
            found.update(_directives(f"{cls.prefix}{cls.title}Condition", sorted_by, shareable=False))
            found.update(_directives(f"{cls.prefix}{cls.title}OrderField", sorted_by, shareable=False, named=str.upper))
            for value in filter(is_dataclass, types_of(one)):
                parts = [attribute for _, attribute in value_attributes(value).values()]
                found.update(_directives(value.__name__, parts, shareable=True))
                found.update(_directives(f"{value.__name__}Input", parts, shareable=False))
    return found


def _merged(attributes: Sequence[Attribute], name: str) -> Attribute:
    """The field of revisions for these attributes of several levels: hidden where one of them is."""
    tags = tuple(dict.fromkeys(tag for one in attributes for tag in one.tags))
    is_shareable = all(one.shareable for one in attributes)
    is_hidden = any(one.inaccessible for one in attributes)
    return replace(attributes[0], name=name, tags=tags, shareable=is_shareable, inaccessible=is_hidden)


def _directives(
    title: str, attributes: Sequence[Attribute], *, shareable: bool, named: Callable[[str], str] = camel
) -> Iterator[tuple[tuple[str, str], str]]:
    for attribute in attributes:
        words = [f'@tag(name: "{tag}")' for tag in attribute.tags]
        words += ["@inaccessible"] if attribute.inaccessible else []
        words += ["@shareable"] if attribute.shareable and shareable else []
        if words:
            yield (title, named(attribute.name)), " ".join(words)


# -- demand control ----------------------------------------------------------------------------------------------------


def _demand_control(classes: Sequence[type[Node]]) -> dict[tuple[str, str], str]:
    """The costs and sizes of what is named by these hierarchies: searches, lookups of many, and nested values."""
    found = {(name, ""): _cost(0) for name in _SHARED} | {
        ("Query", "changes"): _cost(CHANGES),
        ("Query", "moves"): _size(ASSUMED_PAGE, "first"),
        ("Query", "nodes"): _size(ASSUMED_LOOKUPS),
        ("TreeChangeFeed", "changes"): _size(ASSUMED_PAGE),
    }
    for cls in classes:
        if cls.search is not None:
            hits = _size(None, "first", fields='sizedFields: ["nodes"], ')
            found["Query", search_field_of(cls)] = f"{_cost(SEARCH)} {hits}"
        found["Query", paths_field_of(cls)] = _size(ASSUMED_LOOKUPS)
        for level in (cls, *cls.levels.values()):
            found |= {(one.__name__, ""): _cost(0) for one in types_of(level) if is_dataclass(one)}
    return found


def _type_cost(definition: Any) -> str:
    """The `@cost` of an object type in an SDL document that its name says: an edge costs what its node costs."""
    is_edge = definition.name.value.endswith("Edge") and not definition.interfaces
    return _cost(0) if is_edge and any(field.name.value == "node" for field in definition.fields) else ""


def _list_size(field: Any) -> str:
    """The `@listSize` of a field in an SDL document that its type says; empty for one that is no list of nodes."""
    kind = field.type
    while not hasattr(kind, "name"):
        kind = kind.type
    slicing = [argument.name.value for argument in field.arguments or () if argument.name.value in ("first", "last")]
    if kind.name.value.endswith("Connection") and slicing:
        return _size(ASSUMED_PAGE, *slicing, fields=_NODES)
    return _size(ASSUMED_ANCESTORS) if field.name.value == "ancestors" else ""


def _cost(weight: int) -> str:
    return f"@cost(weight: {weight})"


def _size(assumed: int | None, *slicing: str, fields: str = "") -> str:
    """`assumed` is None where a slicing argument has a default: not every composer takes both."""
    size = "" if assumed is None else f"assumedSize: {assumed}, "
    names = ", ".join(f'"{name}"' for name in slicing)
    arguments = f"slicingArguments: [{names}], " if slicing else ""
    return f"@listSize({size}{arguments}{fields}requireOneSlicingArgument: false)"
