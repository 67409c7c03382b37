"""Mutations of every hierarchy, named after its interface: create, update, move, delete, restore; and several edits at
once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graph.hierarchies.registry import camel, list_field_of
from graph.types.fields import Fields, argument, attribute_of, field, object_type
from graph.types.lookups import by_id
from graph.types.mutation_inputs import MutationInputs, asked_json
from graph.types.nodes import HierarchyTypes
from graph.types.user_errors import USER_ERROR, UserError, user_errors
from graph.types.written import WrittenRecord
from resolvers.access.grants import may_read
from resolvers.lookup import ByPath
from resolvers.mutations import edit, enabled_writer
from store.errors import MAX_FAULTS, CladeError
from store.model import keys
from store.model.records import Record
from store.writing.edit import Edit
from store.writing.edit_many import MAX_EDITS, EditMany
from store.writing.edit_request import EditedNode, EditOptions, EditResult

_OPTIONS = (
    argument("dryRun", bool, "Change nothing, and return the `plan`.", default=False),
    argument("idempotencyKey", str | None, "A repetition within 24 hours returns the first result."),
)
_VERBS = {
    "create": "Create a node.",
    "update": "Update a node's names and attributes.",
    "move": "Move a node with its subtree: to another parent, key or position. Former paths are redirected.",
    "delete": "Delete a node; its revisions are kept.",
    "restore": "Undo the deletion of a node, with all that it removed below it.",
}
_WRITE_PLAN: Any = object_type(
    "WritePlan",
    "The changes that a mutation would make.",
    {
        "nodes": field(attribute_of("nodes"), int, "Number of nodes to write."),
        "transactions": field(attribute_of("transactions"), int, "Number of transactions."),
        "write_units": field(attribute_of("write_units"), int, "Estimated write units of DynamoDB."),
    },
)


def mutation_type(published: Sequence[HierarchyTypes], move: Any) -> type:
    """The type Mutation with the mutations of all hierarchies; `move` is the type SubtreeMove."""
    fields: Fields = {}
    for types in published:
        fields |= Mutations(types, move).fields()
    made: type = object_type("Mutation", "The root type of mutations.", fields)
    return made


@dataclass(frozen=True)
class Payload:
    """The result of a mutation of a hierarchy, None where its input has faults."""

    hierarchy: str
    result: EditResult | None
    user_errors: Sequence[UserError] = ()

    @property
    def written(self) -> EditResult | None:
        """The result of what was written; None for a dry run and for faults."""
        return None if self.result is None or self.result.dry_run else self.result


class Mutations:
    """The mutations of one hierarchy."""

    def __init__(self, types: HierarchyTypes, move: Any) -> None:
        self._types, self._move = types, move
        self._hierarchy = types.cls.definition().labelled(camel)
        self._inputs = MutationInputs(types.cls, self._hierarchy)

    def fields(self) -> Fields:
        title, found = self._types.title, Fields()
        for verb, text in _VERBS.items():
            given = argument("input", self._inputs.types[verb], "What to change, and how.")
            returns = self._payload(verb, f"{verb.capitalize()}{title}Payload")
            found[f"{verb}{title}"] = field(
                self._resolver(verb), returns, text, given, *_OPTIONS, name=f"{verb}{title}"
            )
        listed = list_field_of(self._types.cls)
        one: Any = self._inputs.edit
        name = f"edit{listed[:1].upper()}{listed[1:]}"
        several = argument("edits", list[one], f"1 to {MAX_EDITS} edits, each of which sees those before it.")
        returns = self._payload("edit", f"Edit{title}Payload")
        found[name] = field(
            self._several, returns, "Make several edits, or none of them.", several, *_OPTIONS, name=name
        )
        return found

    def _resolver(self, verb: str) -> Any:
        async def resolve(root: Any, info: Any, **given: Any) -> Payload:
            """Make the edit; faults of the input are in the payload."""
            asked = {verb: given["input"]}
            return await self._made(info, [verb, given["input"]], given, [asked], self._inputs.parse)

        return resolve

    async def _several(self, root: Any, info: Any, **given: Any) -> Payload:
        """Make the edits; faults of the input are in the payload."""
        return await self._made(info, ["edit", given["edits"]], given, given["edits"], self._inputs.parse_many)

    async def _made(
        self,
        info: Any,
        asked: Any,
        given: Mapping[str, Any],
        edits: Sequence[Any],
        parse: Callable[[Any], Edit | EditMany],
    ) -> Payload:
        request, key, name = info.context.request, given.get("idempotencyKey"), self._hierarchy.name
        enabled_writer(request)  # first, since no input helps where nobody may write
        try:
            options = EditOptions(given["dryRun"], key, key and asked_json(asked))
            result = await edit(request, parse(edits), options)
        except CladeError as error:
            found = user_errors(error, [self._inputs.member_of(one) for one in edits])
            info.context.user_errors |= dict.fromkeys([one.code.value for one in found])
            return Payload(name, None, found)
        return Payload(name, result)

    def _payload(self, verb: str, name: str) -> Any:
        node: Any = self._types.interface
        if verb == "edit":
            text = "The node of each edit after all of them, a deleted one as it was; null for a dry run or faults."
            return self._type_of(name, {"nodes": field(_nodes, list[node] | None, text)})
        deleted = "The node as it was before its deletion, without descendants"
        written = deleted if verb == "delete" else "The node as written"
        fields: Fields = {"node": field(_node, node | None, f"{written}; null for a dry run or faults.")}
        if verb in ("move", "delete"):
            parent = "Former parent as it is now; null for a root, a dry run or faults."
            fields["previous_parent"] = field(_previous_parent, node | None, parent)
        if verb in ("move", "delete", "restore"):
            large = "The large move, if one transaction is too small for it; else null."
            fields["move"] = field(_large_move, self._move | None, large)
        return self._type_of(name, fields)

    def _type_of(self, name: str, fields: Fields) -> Any:
        """The type of a payload with these fields, and those of all."""
        faults = f"All faults of the input, up to {MAX_FAULTS}."
        fields["plan"] = field(_plan, _WRITE_PLAN | None, "What a dry run would change; else null.")
        fields["user_errors"] = field(attribute_of("user_errors"), list[USER_ERROR], faults)
        return object_type(name, "The result of a mutation.", fields)


def _written(payload: Payload, edited: EditedNode) -> Record:
    """A node as it was written; its relations by its id, unless it is known to be where it was written just now."""
    result = payload.written
    is_known = result is not None and not result.is_repeated and result.move is None
    if is_known and not edited.is_gone:
        return edited.record
    return WrittenRecord.left(edited.record, is_gone=edited.is_gone)


def _node(payload: Payload, info: Any) -> Record | None:
    return None if payload.written is None else _written(payload, payload.written.nodes[0])


def _nodes(payload: Payload, info: Any) -> list[Record] | None:
    return None if payload.written is None else [_written(payload, one) for one in payload.written.nodes]


def _large_move(payload: Payload, info: Any) -> Any:
    return payload.written and payload.written.move


def _plan(payload: Payload, info: Any) -> Any:
    return payload.result and payload.result.dry_run


async def _previous_parent(payload: Payload, info: Any) -> Record | None:
    written, load = payload.written, info.context.nodes.load
    if written is None:
        return None
    (edited,) = written.nodes
    if written.is_repeated:
        found = by_id([payload.hierarchy], edited.parent_before or "")
        return None if found is None else cast(Record | None, await load(found))
    parent = edited.before[:-1]
    if not parent or not may_read(info.context.request.grants, keys.node_key(payload.hierarchy, parent)):
        return None  # nor is there, for this caller, a node that has left this path
    return cast(Record | None, await load(ByPath(payload.hierarchy, parent)))
