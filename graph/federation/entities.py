"""Entities of Federation: `_entities` resolves representations from a gateway, each a type with an ID or a path."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NewType, Union

import strawberry
from graphql import GraphQLError, GraphQLID
from strawberry.types.field import StrawberryField

from graph.types.field import field, required
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.root_fields import Find, Target, TargetField
from store.errors import BadInput, shorten

_EXAMPLE = 'Representations, such as [{__typename: "City", id: "location:US-NE"}].'

Representation = NewType("Representation", object)

REPRESENTATION = strawberry.scalar(
    name="_Any",
    description="Representation of an entity in another subgraph: its __typename, and its id or its path. With both "
    "the id is used, since a path may be a former one; other fields are ignored.",
    parse_value=lambda value: value,
)


@dataclass(frozen=True)
class Entities(TargetField):
    """Nodes of any hierarchy by their representations, in this order.

    An invalid representation, or a failed read, is an error of this entity alone.
    """

    named: Mapping[str, Find]
    """The field that checks an entity, by the type names of representations."""

    many = True

    def targets(self, given: Mapping[str, Any]) -> list[Target]:
        return [self._target(representation) for representation in given["representations_"]]

    async def __call__(self, root: Any, info: Any, **given: Any) -> list[Any]:
        selection = info.context.look_ahead(info).selection_of(info)
        load = info.context.loaders.node.load

        async def entity(representation: Any) -> Any:
            field, lookup = self._target(representation)
            return None if lookup is None else field.checked(await load((lookup, selection.expecting(field.level))))

        return await asyncio.gather(*map(entity, given["representations_"]), return_exceptions=True)

    def _target(self, representation: Any) -> Target:
        """The field that checks an entity, and its lookup. Raises BadInput."""
        name = representation.get("__typename") if isinstance(representation, dict) else None
        if not isinstance(name, str):
            raise BadInput('A representation is an object with a __typename, such as {"__typename": "City", "id": …}.')
        if name not in self.named:
            raise BadInput(f'"{shorten(name)}" is not an entity of this subgraph.')
        (target,) = self.named[name].targets(_key(name, representation))
        return target


def entities_field(published: Sequence[HierarchyTypes]) -> StrawberryField:
    """The field `_entities` over the levels and the interfaces of these hierarchies."""
    named = {types.title: Find(types.name) for types in published}
    for types in published:
        named |= {title: Find(types.name, level) for (_, level), title in types.type_names.items()}
    concrete = tuple(one for types in published for one in types.concrete.values())
    entity: Any = Annotated[
        Union[concrete],  # noqa: UP007  # it is made of values
        strawberry.union("_Entity", description="A node of any level, as an entity of the supergraph."),
    ]
    return field(
        Entities(named),
        list[entity | None],
        "The nodes of these representations, in this order; null for each without a node. For gateways.",
        required("representations", list[Representation], _EXAMPLE),
        name="_entities",
    )


def _key(name: str, representation: Mapping[str, Any]) -> dict[str, str]:
    """The argument of `Find` for a representation. Raises BadInput."""
    node_id, path = representation.get("id"), representation.get("path")
    if node_id is not None:
        try:
            return {"id_": GraphQLID.parse_value(node_id)}
        except GraphQLError:
            raise BadInput(f"The id in a representation of a {name} is neither a string nor an integer.") from None
    if path is None:
        raise BadInput(f"A representation of a {name} needs an id or a path.")
    if not isinstance(path, str):
        raise BadInput(f"The path in a representation of a {name} is not a string such as US/NE/Omaha.")
    return {"path_": path}
