"""`_entities`: nodes for a gateway, which sends what other subgraphs keep of them: a type and an id or a path."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NewType, Union

import strawberry
from graphql import GraphQLError, GraphQLID
from strawberry.types.field import StrawberryField

from graph.types.field import REQUIRED, argument, field
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.root_fields import Find, Target, TargetField
from resolvers.lookup import Lookup
from store.errors import BadInput, CladeError
from store.text import shorten

Representation = NewType("Representation", object)

REPRESENTATION = strawberry.scalar(
    name="_Any",
    description="What another subgraph keeps of an entity: its __typename, and its id or its path. With both the id "
    "counts, for a path may be an old one; whatever else is sent is not looked at.",
    parse_value=lambda value: value,
)

Asked = tuple[Find, Lookup | None]  # what an entity must be, and what to look up; None where nothing can be there


@dataclass(frozen=True)
class Entities(TargetField):
    """Nodes of any hierarchy by their representations, in the order of these.

    What goes wrong with one, or with reading it, stands in its place, so that it is an error of this one alone.
    """

    named: Mapping[str, Find]
    """What an entity must be, by each type name that a representation can have."""

    many = True

    def spend(self, given: Mapping[str, Any], context: Any) -> None:
        context.spend_entities(len(given["representations_"]))

    def targets(self, given: Mapping[str, Any]) -> list[Target]:
        targets: list[Target] = []
        for one in self.asked(given["representations_"]):
            if isinstance(one, CladeError):
                raise one
            targets.append(one)
        return targets

    async def __call__(self, root: Any, info: Any, representations_: list[Any]) -> list[Any]:
        self.spend({"representations_": representations_}, info.context)
        return await _load(info, self.asked(representations_))

    def asked(self, representations: Sequence[Any]) -> list[Asked | CladeError]:
        """What each representation asks for, or what is wrong with it."""
        asked: list[Asked | CladeError] = []
        for one in representations:
            try:
                asked.append(self._asked(one))
            except CladeError as error:
                asked.append(error)
        return asked

    def _asked(self, representation: Any) -> Asked:
        name = representation.get("__typename") if isinstance(representation, dict) else None
        if not isinstance(name, str):
            raise BadInput('A representation is an object with a __typename, such as {"__typename": "City", "id": …}.')
        if name not in self.named:
            raise BadInput(f'"{shorten(name)}" is no entity of this subgraph.')
        find = self.named[name]
        return find, find.lookups(_key(name, representation))[0]


def entities_field(published: Sequence[HierarchyTypes]) -> StrawberryField:
    """The field `_entities` over the levels and the interfaces of these hierarchies."""
    named = {}
    for types in published:
        named[types.title] = Find(types.name, None)
        named |= {title: Find(types.name, level) for (_, level), title in types.type_names.items()}
    concrete = tuple(one for types in published for one in types.concrete.values())
    entity: Any = Annotated[
        Union[concrete],  # noqa: UP007  # it is made of values
        strawberry.union("_Entity", description="A node of any level, as other subgraphs refer to it."),
    ]
    return field(
        Entities(named),
        list[entity | None],
        "The nodes that other subgraphs refer to, in their order, null where there is none; for gateways.",
        argument("representations", list[Representation], "What is kept of the nodes elsewhere.", default=REQUIRED),
        name="_entities",
    )


def _key(name: str, representation: Mapping[str, Any]) -> dict[str, str]:
    """The key by which an entity is looked up, named as `Find` takes it. Raises BadInput."""
    node_id, path = representation.get("id"), representation.get("path")
    if node_id is not None:
        try:
            return {"id_": GraphQLID.parse_value(node_id)}
        except GraphQLError:
            raise BadInput(f"The id in a representation of a {name} is neither a text nor a whole number.") from None
    if path is None:
        raise BadInput(f"A representation of a {name} needs its id or its path.")
    if not isinstance(path, str):
        raise BadInput(f"The path in a representation of a {name} is no text such as US/NE/Omaha.")
    return {"path_": path}


async def _load(info: Any, asked: Sequence[Asked | CladeError]) -> list[Any]:
    """The nodes that are looked up, None where there is none, and what went wrong in a node's place."""
    selection = info.context.look_ahead(info).selection_of(info)
    load = info.context.loaders.node.load

    async def one(asked: Asked | CladeError) -> Any:
        if isinstance(asked, CladeError):
            return asked
        find, lookup = asked
        return None if lookup is None else find.checked(await load((lookup, selection.expecting(find.level))))

    return await asyncio.gather(*map(one, asked), return_exceptions=True)
