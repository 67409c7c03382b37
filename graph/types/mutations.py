"""Mutations of every hierarchy, named after its interface: create, update, move and delete."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from graph.hierarchies.registry import camel
from graph.types.fields import Fields, argument, attribute_of, field, object_type
from graph.types.lookups import by_id
from graph.types.mutation_inputs import MutationInputs, asked_json
from graph.types.nodes import HierarchyTypes
from graph.types.user_errors import USER_ERROR, UserError, user_errors
from graph.types.written import WrittenRecord
from resolvers.access.grants import may_read
from resolvers.mutations import edit, enabled_writer
from store.errors import MAX_FAULTS, CladeError
from store.model import keys
from store.model.records import Record
from store.writing.edit_request import EditOptions, EditResult

_OPTIONS = (
    argument("dryRun", bool, "Change nothing, and return the `plan`.", default=False),
    argument("idempotencyKey", str | None, "A repetition within 24 hours returns the first result."),
)
_VERBS = {
    "create": "Create a node.",
    "update": "Update a node's names and attributes.",
    "move": "Move a node with its subtree: to another parent, key or position. Former paths are redirected.",
    "delete": "Delete a node; its revisions are kept.",
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
        return found

    def _resolver(self, verb: str) -> Any:
        parse, name = getattr(self._inputs, verb), self._hierarchy.name

        async def resolve(root: Any, info: Any, **given: Any) -> Payload:
            """Make the edit; faults of the input are in the payload."""
            request, asked, key = info.context.request, given["input"], given.get("idempotencyKey")
            enabled_writer(request)  # first, since no input helps where nobody may write
            try:
                options = EditOptions(given["dryRun"], key, key and [verb, asked_json(asked)])
                result = await edit(request, self._hierarchy, parse(asked), options)
            except CladeError as error:
                found = user_errors(error, self._inputs.member_of(asked))
                info.context.user_errors |= dict.fromkeys([one.code.value for one in found])
                return Payload(name, None, found)
            return Payload(name, result)

        return resolve

    def _payload(self, verb: str, name: str) -> Any:
        node: Any = self._types.interface
        written = "The node as it was before its deletion" if verb == "delete" else "The node as written"
        resolve = _deleted_node if verb == "delete" else _node
        fields = {"node": field(resolve, node | None, f"{written}; null for a dry run or faults.")}
        if verb in ("move", "delete"):
            parent = "Former parent as it is now; null for a root, a dry run or faults."
            large = "The large move, if one transaction is too small for it; else null."
            fields["previous_parent"] = field(_previous_parent, node | None, parent)
            fields["move"] = field(_large_move, self._move | None, large)
        faults = f"All faults of the input, up to {MAX_FAULTS}."
        fields["plan"] = field(_plan, _WRITE_PLAN | None, "What a dry run would change; else null.")
        fields["user_errors"] = field(attribute_of("user_errors"), list[USER_ERROR], faults)
        return object_type(name, "The result of a mutation.", fields)


def _node(payload: Payload, info: Any) -> Record | None:
    """The node as it was written; its relations by its id, unless it is known to be where it was written just now."""
    found = payload.written
    if found is None:
        return None
    is_there = found.repeats is None and found.move is None
    return found.record if is_there else WrittenRecord.left(found.record)


def _deleted_node(payload: Payload, info: Any) -> Record | None:
    """The same of a deletion, which is made at once or by a move."""
    found = payload.written
    if found is None:
        return None
    return WrittenRecord.left(found.record, is_gone=found.repeats is None and found.move is None)


def _large_move(payload: Payload, info: Any) -> Any:
    return payload.written and payload.written.move


def _plan(payload: Payload, info: Any) -> Any:
    return payload.result and payload.result.dry_run


async def _previous_parent(payload: Payload, info: Any) -> Record | None:
    written, load = payload.written, info.context.nodes.load
    if written is None:
        return None
    if written.repeats is not None:
        found = by_id([payload.hierarchy], written.repeats.parent or "")
        return None if found is None else cast(Record | None, await load(found))
    parent = written.before[:-1]
    if not parent or not may_read(info.context.request.grants, keys.node_key(payload.hierarchy, parent)):
        return None  # nor is there, for this caller, a node that has left this path
    return cast(Record | None, await load((payload.hierarchy, parent)))
