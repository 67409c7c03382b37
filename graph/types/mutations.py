"""The mutations of every hierarchy, named after its interface: what clients write as calls of the resolvers."""

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.types.field import (
    REQUIRED,
    argument,
    class_of,
    field,
)
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.mutation_inputs import Inputs
from graph.types.mutation_payloads import Payload, payload_of
from graph.types.scalars import Path
from resolvers import mutations
from resolvers.mutations import EditOptions, EditResult
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.paths import parse_path

Given = Mapping[str, Any]


@strawberry.enum(description="What becomes of the children of a node that is deleted.")
class DeletePolicy(Enum):
    REFUSE = strawberry.enum_value("refuse", description="A node that has children is not deleted.")
    CASCADE = strawberry.enum_value("cascade", description="All below the node is deleted with it.")
    REPARENT = strawberry.enum_value("reparent", description="The children take the node's place.")


_PATH = argument("path", Path, "Where the node lies; redirects are not followed.", default=REQUIRED)
_REVISION = argument("expectedRevision", int | None, "Refused with CONFLICT where the node has another by now.")
_TERMS = (
    argument("dryRun", bool, "Change nothing, and answer what would be changed.", default=False),
    argument("idempotencyKey", str | None, "The same key within 24 hours changes nothing again, and answers the same."),
)
_SIDES = ("first", "last", "before", "after")


def mutation_type(published: Sequence[HierarchyTypes]) -> type:
    """The type Mutation with the mutations of all hierarchies."""
    fields: dict[str, StrawberryField] = {}
    for types in published:
        fields |= Mutations(types).fields()
    return strawberry.type(class_of("Mutation", fields), description="Where every mutation begins.")


class Mutations:
    """The mutations of one hierarchy."""

    def __init__(self, types: HierarchyTypes) -> None:
        self._types = types
        self._hierarchy: Hierarchy = types.cls.definition()
        self._inputs = Inputs(types.cls)

    def fields(self) -> dict[str, StrawberryField]:
        title, returns = self._types.title, payload_of(self._types) | None
        changing = (_REVISION, *_TERMS)
        kinds: list[tuple[str, Any, str, Sequence[inspect.Parameter]]] = [
            ("create", self.create, "Make a node.", (*self._of_creation(), *_TERMS)),
            ("update", self.update, "Change a node's own content; what is left out stays.",
             (_PATH, *self._of_update(), *changing)),
            ("rename", self.rename, "Give a node another key; old paths go on to lead to it and all below it.",
             (_PATH, _key("The new key."), *changing)),
            ("move", self.move, "Move a node with all below it; old paths go on to lead there.",
             (_PATH, _TARGET, *changing)),
            ("reorder", self.reorder, "Move a node among its siblings of the same level.",
             (_PATH, *_BESIDE, *changing)),
            ("delete", self.delete, "Delete a node; its history stays.", (_PATH, _POLICY, *changing)),
        ]  # fmt: skip
        return {
            f"{verb}{title}": field(call, returns, description, *arguments, name=f"{verb}{title}")
            for verb, call, description, arguments in kinds
        }

    # -- one method for each -------------------------------------------------------------------------------------------

    async def create(self, root: Any, info: Any, **given: Any) -> Payload:
        parent = given.get("parent_")
        path = (*(parse_path(parent) if parent is not None else ()), given["key_"])
        level, values = self._inputs.read(given["attributes_"])
        return await self._told(
            info, mutations.create, path, level, given["name_"], values, given.get("id_"), _terms(given)
        )

    async def update(self, root: Any, info: Any, **given: Any) -> Payload:
        level, values = self._inputs.read(given.get("attributes_"))
        name = given.get("name_", strawberry.UNSET)
        if name is None:
            raise BadInput("A name cannot be null; leave it out to keep it.")
        wanted = None if name is strawberry.UNSET else name
        return await self._told(
            info, mutations.update, _path(given), wanted, level, values, _expected(given), _terms(given)
        )

    async def rename(self, root: Any, info: Any, **given: Any) -> Payload:
        path = _path(given)
        return await self._told(
            info, mutations.move, path, (*path[:-1], given["key_"]), _expected(given), _terms(given)
        )

    async def move(self, root: Any, info: Any, **given: Any) -> Payload:
        path, to = _path(given), given.get("to_", strawberry.UNSET)
        if to is strawberry.UNSET:
            raise BadInput("Say where to: the path of a parent, or null to make the node a root.")
        target = (*(parse_path(to) if to is not None else ()), path[-1])
        return await self._told(info, mutations.move, path, target, _expected(given), _terms(given))

    async def reorder(self, root: Any, info: Any, **given: Any) -> Payload:
        sides = [side for side in _SIDES if given.get(f"{side}_") not in (None, False)]
        if len(sides) != 1:
            raise BadInput("Say one of first: true, last: true, before: a sibling's path, after: a sibling's path.")
        place = given[f"{sides[0]}_"]
        beside = None if place is True else parse_path(place)
        return await self._told(
            info, mutations.reorder, _path(given), sides[0], beside, _expected(given), _terms(given)
        )

    async def delete(self, root: Any, info: Any, **given: Any) -> Payload:
        policy = given["policy_"].value
        return await self._told(info, mutations.delete, _path(given), policy, _expected(given), _terms(given))

    async def _told(self, info: Any, call: Any, *arguments: Any) -> Payload:
        """Make the edit; what was loaded before is not told after it."""
        written: EditResult = await call(info.context.request, self._hierarchy, *arguments)
        info.context.renew()
        return Payload(written, self._hierarchy.name, None if call is mutations.create else arguments[0])

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _of_creation(self) -> list[inspect.Parameter]:
        return [
            argument("parent", Path | None, "The node to make it under; left out or null for a root."),
            _key("The last segment of its path, which no sibling has."),
            argument("name", str, "What it is called.", default=REQUIRED),
            argument("id", strawberry.ID | None, "Its id, with or without its hierarchy; made where left out."),
            argument("attributes", self._inputs.attributes, "Its level and attributes.", default=REQUIRED),
        ]

    def _of_update(self) -> list[inspect.Parameter]:
        attributes: Any = self._inputs.attributes
        return [
            argument("name", str | None, "What it is called."),
            argument("attributes", attributes | None, "Attributes to change, of the level that the node has."),
        ]


def _key(description: str) -> inspect.Parameter:
    return argument("key", str, description, default=REQUIRED)


_TARGET = argument("to", Path | None, "The node to move it under, in any tree; null makes it a root.")
_BESIDE = (
    argument("first", bool | None, "To be the first."),
    argument("last", bool | None, "To be the last."),
    argument("before", Path | None, "To stand right before this sibling."),
    argument("after", Path | None, "To stand right after this sibling."),
)
_POLICY = argument("policy", DeletePolicy, "What becomes of its children.", default=DeletePolicy.REFUSE)


def _path(given: Given) -> Any:
    return parse_path(given["path_"])


def _expected(given: Given) -> int | None:
    return given.get("expectedRevision_")


def _terms(given: Given) -> EditOptions:
    return EditOptions(dry_run=given["dryRun_"], key=given.get("idempotencyKey_"))
