"""Mutations of every hierarchy, named after its interface: arguments are parsed here, and edits made by resolvers."""

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.types.arguments import path_argument
from graph.types.field import REQUIRED, argument, class_of, field
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


@strawberry.enum(description="Effect of a deletion on the children of the node.")
class DeletePolicy(Enum):
    REFUSE = strawberry.enum_value("refuse", description="A node with children is not deleted; the mutation fails.")
    CASCADE = strawberry.enum_value("cascade", description="All descendants are deleted as well.")
    REPARENT = strawberry.enum_value("reparent", description="The children move to the parent of the node.")


_PATH = path_argument('Current path of the node, such as "US/NE/Omaha"; former paths are not redirected.')
_REVISION = argument("expectedRevision", int | None, "Fail with CONFLICT unless this is the node's current revision.")
_OPTIONS = (
    argument("dryRun", bool, "Whether to change nothing, and return the necessary changes as `plan`.", default=False),
    argument("idempotencyKey", str | None, "Unique key, such as a UUID; within 24 hours it returns the first result."),
)
_SIDES = ("first", "last", "before", "after")


def mutation_type(published: Sequence[HierarchyTypes]) -> type:
    """The type Mutation with the mutations of all hierarchies."""
    fields: dict[str, StrawberryField] = {}
    for types in published:
        fields |= Mutations(types).fields()
    return strawberry.type(class_of("Mutation", fields), description="The root type of mutations.")


class Mutations:
    """The mutations of one hierarchy."""

    def __init__(self, types: HierarchyTypes) -> None:
        self._types = types
        self._hierarchy: Hierarchy = types.cls.definition()
        self._inputs = Inputs(types.cls)

    def fields(self) -> dict[str, StrawberryField]:
        title, returns = self._types.title, payload_of(self._types) | None
        changing = (_REVISION, *_OPTIONS)
        kinds: list[tuple[str, Any, str, Sequence[inspect.Parameter]]] = [
            ("create", self.create, "Create a node.", (*self._of_creation(), *_OPTIONS)),
            ("update", self.update, "Update a node's name and attributes; omitted ones are unchanged.",
             (_PATH, *self._of_update(), *changing)),
            ("rename", self.rename, "Change a node's key; former paths of its subtree are redirected.",
             (_PATH, _key('New key, such as "Omaha".'), *changing)),
            ("move", self.move, "Move a node with its subtree; former paths are redirected.",
             (_PATH, _TARGET, *changing)),
            ("reorder", self.reorder, "Change a node's position among its siblings of the same level.",
             (_PATH, *_BESIDE, *changing)),
            ("delete", self.delete, "Delete a node; its revisions are kept.", (_PATH, _POLICY, *changing)),
        ]  # fmt: skip
        return {
            f"{verb}{title}": field(call, returns, description, *arguments, name=f"{verb}{title}")
            for verb, call, description, arguments in kinds
        }

    # -- resolvers -----------------------------------------------------------------------------------------------------

    async def create(self, root: Any, info: Any, **given: Any) -> Payload:
        parent = given.get("parent_")
        path = (*(parse_path(parent) if parent is not None else ()), given["key_"])
        level, values = self._inputs.read(given["attributes_"])
        return await self._edit(
            info, mutations.create, path, level, given["name_"], values, given.get("id_"), _options(given)
        )

    async def update(self, root: Any, info: Any, **given: Any) -> Payload:
        level, values = self._inputs.read(given.get("attributes_"))
        name = given.get("name_", strawberry.UNSET)
        if name is None:
            raise BadInput("name is null; omit it to keep the current name.")
        new_name = None if name is strawberry.UNSET else name
        return await self._edit(
            info, mutations.update, _path(given), new_name, level, values, _expected(given), _options(given)
        )

    async def rename(self, root: Any, info: Any, **given: Any) -> Payload:
        path = _path(given)
        return await self._edit(
            info, mutations.move, path, (*path[:-1], given["key_"]), _expected(given), _options(given)
        )

    async def move(self, root: Any, info: Any, **given: Any) -> Payload:
        path, to = _path(given), given.get("to_", strawberry.UNSET)
        if to is strawberry.UNSET:
            raise BadInput("to is missing; give the path of the new parent, or null to make the node a root.")
        target = (*(parse_path(to) if to is not None else ()), path[-1])
        return await self._edit(info, mutations.move, path, target, _expected(given), _options(given))

    async def reorder(self, root: Any, info: Any, **given: Any) -> Payload:
        sides = [side for side in _SIDES if given.get(f"{side}_") not in (None, False)]
        if len(sides) != 1:
            raise BadInput("Give one of first: true, last: true, before: a sibling's path, after: a sibling's path.")
        place = given[f"{sides[0]}_"]
        beside = None if place is True else parse_path(place)
        return await self._edit(
            info, mutations.reorder, _path(given), sides[0], beside, _expected(given), _options(given)
        )

    async def delete(self, root: Any, info: Any, **given: Any) -> Payload:
        policy = given["policy_"].value
        return await self._edit(info, mutations.delete, _path(given), policy, _expected(given), _options(given))

    async def _edit(self, info: Any, call: Any, *arguments: Any) -> Payload:
        """Make the edit, and drop what was loaded before it."""
        result: EditResult = await call(info.context.request, self._hierarchy, *arguments)
        info.context.renew()
        return Payload(result, self._hierarchy.name, None if call is mutations.create else arguments[0])

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _of_creation(self) -> list[inspect.Parameter]:
        return [
            argument("parent", Path | None, 'Path of the parent, such as "US/NE"; omitted or null for a root.'),
            _key('Last segment of the path, unique among siblings, such as "Omaha".'),
            argument("name", str, "Display name.", default=REQUIRED),
            argument("id", strawberry.ID | None, 'ID, such as "location:US-NE" or "US-NE"; generated by default.'),
            argument("attributes", self._inputs.attributes, "Attributes, which also set the level.", default=REQUIRED),
        ]

    def _of_update(self) -> list[inspect.Parameter]:
        attributes: Any = self._inputs.attributes
        return [
            argument("name", str | None, "New display name."),
            argument("attributes", attributes | None, "Attributes to change, of the node's level."),
        ]


def _key(description: str) -> inspect.Parameter:
    return argument("key", str, description, default=REQUIRED)


_TARGET = argument("to", Path | None, 'Path of the new parent, such as "US/NE"; null makes the node a root.')
_BESIDE = (
    argument("first", bool | None, "Whether to make it the first."),
    argument("last", bool | None, "Whether to make it the last."),
    argument("before", Path | None, "Path of the sibling to be right before."),
    argument("after", Path | None, "Path of the sibling to be right after."),
)
_POLICY = argument("policy", DeletePolicy, "Effect on the children.", default=DeletePolicy.REFUSE)


def _path(given: Given) -> Any:
    return parse_path(given["path_"])


def _expected(given: Given) -> int | None:
    return given.get("expectedRevision_")


def _options(given: Given) -> EditOptions:
    return EditOptions(dry_run=given["dryRun_"], key=given.get("idempotencyKey_"))
