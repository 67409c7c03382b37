"""Mutations of every hierarchy, named after its interface: inputs are parsed here, and edits made by resolvers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any

import strawberry

from graph.hierarchies.names import edit_field_of
from graph.types.field import Fields, argument, attribute_of, field, object_type, required
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.mutations.inputs import EditInputs
from graph.types.mutations.user_errors import USER_ERROR, UserError, user_errors
from graph.types.root_fields import load
from resolvers.mutations import EditOptions, EditResult, edit_all, edit_one
from store.errors import BadInput, CladeError
from store.model.records import Record

MAX_EDITS = 100  # of one mutation: a transaction of DynamoDB holds the changes of some thirty

_OPTIONS = (
    argument("dryRun", bool, "Change nothing, and return the necessary changes as `plan`.", default=False),
    argument(
        "idempotencyKey",
        str | None,
        "Unique key: a repetition within 24 hours returns the first result.",
    ),
)
_PLAN = {
    "nodes": field(attribute_of("nodes"), int, "Number of nodes to write."),
    "transactions": field(attribute_of("transactions"), int, "Number of transactions."),
    "write_units": field(attribute_of("write_units"), int, "Estimated write units of DynamoDB."),
}
WritePlan = object_type("WritePlan", "The changes that a mutation would make.", _PLAN)


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
        self._hierarchy = types.cls.definition()
        self._inputs = EditInputs(types.cls, types.level)

    def fields(self) -> Fields:
        title, edit = self._types.title, edit_field_of(self._types.cls)
        about = {
            "create": "Create a node.",
            "update": "Update a node's names and attributes; omitted ones are unchanged.",
            "move": "Move a node with its subtree: to another parent, key or position. Former paths are redirected.",
            "delete": "Delete a node; its revisions are kept.",
        }
        inputs: dict[str, Any] = self._inputs.of_verbs
        made = {
            f"{verb}{title}": field(
                self._one(verb), self._payload(f"{verb.capitalize()}{title}Payload", verb), text,
                required("input", inputs[verb], "Node to change, and how."), *_OPTIONS, name=f"{verb}{title}",
            )
            for verb, text in about.items()
        }  # fmt: skip
        one: Any = self._inputs.edit
        made[edit] = field(
            self._several, self._payload(f"{edit[:1].upper()}{edit[1:]}Payload", None),
            "Make several changes in one transaction, or none of them. Each sees those before it.",
            required("edits", list[one], f"Changes in their order; at most {MAX_EDITS}."), *_OPTIONS, name=edit,
        )  # fmt: skip
        return made

    # -- resolvers -----------------------------------------------------------------------------------------------------

    def _one(self, verb: str) -> Any:
        async def resolve(root: Any, info: Any, **given: Any) -> Payload:
            return await self._edit(info, given, [(verb, given["input_"])], is_batch=False)

        return resolve

    async def _several(self, root: Any, info: Any, **given: Any) -> Payload:
        edits = given["edits_"]
        if not 0 < len(edits) <= MAX_EDITS:
            fault = BadInput(f"There are {len(edits):,} edits; give 1 to {MAX_EDITS}.").at("edits")
            return Payload(self._hierarchy.name, None, user_errors(fault, [None], is_batch=True))
        return await self._edit(info, given, list(map(self._inputs.verb_of, edits)), is_batch=True)

    async def _edit(
        self, info: Any, given: Mapping[str, Any], edits: Sequence[tuple[str, Any]], *, is_batch: bool
    ) -> Payload:
        """Make the edits, and drop what was loaded before them; faults of the input are in the payload."""
        plain = [{verb: _json(value)} for verb, value in edits]
        options = EditOptions(dry_run=given["dryRun_"], key=given.get("idempotencyKey_"), asked=plain)
        members = [self._inputs.member_of(value) for _, value in edits]
        request = info.context.request
        try:
            asked = self._inputs.read(edits)
            if is_batch:
                result = await edit_all(request, self._hierarchy, asked, options)
            else:
                result = await edit_one(request, self._hierarchy, asked[0], options)
        except CladeError as error:
            return Payload(self._hierarchy.name, None, user_errors(error, members, is_batch=is_batch))
        finally:
            info.context.renew()
        return Payload(self._hierarchy.name, result)

    # -- payloads ------------------------------------------------------------------------------------------------------

    def _payload(self, name: str, verb: str | None) -> Any:
        """The payload of a mutation, of `editX` without a verb."""
        node: Any = self._types.interface
        fields: Fields = {}
        if verb is None:
            many = "The nodes of the edits in their order, as they are after all of them; null for a dry run or faults."
            fields["nodes"] = field(_nodes, list[node] | None, many)
        else:
            written = "The node as it was before its deletion" if verb == "delete" else "The node as written"
            fields["node"] = field(_node, node | None, f"{written}; null for a dry run or faults.")
        if verb in ("move", "delete"):
            parent = "Current content of the node's former parent; null for a root, a dry run or faults."
            large = "The large move, if one transaction is too small for it; else null."
            fields["previous_parent"] = field(_previous_parent, node | None, parent)
            fields["move"] = field(_large_move, self._move | None, large)
        plan = "The changes that it would make, for a dry run; else null."
        faults = "All faults of the input; nothing was changed if there are any."
        fields["plan"] = field(_dry_run, WritePlan | None, plan)
        fields["user_errors"] = field(attribute_of("user_errors"), list[USER_ERROR], faults)
        return object_type(name, "The result of a mutation.", fields)


def _node(payload: Payload, info: Any) -> Record | None:
    return None if payload.written is None else payload.written.record


def _nodes(payload: Payload, info: Any) -> list[Record] | None:
    return None if payload.written is None else list(payload.written.records)


def _large_move(payload: Payload, info: Any) -> Any:
    return payload.written and payload.written.move


def _dry_run(payload: Payload, info: Any) -> Any:
    return payload.result and payload.result.dry_run


async def _previous_parent(payload: Payload, info: Any) -> Record | None:
    before = None if payload.written is None else payload.written.before
    if before is None or len(before) == 1:
        return None
    (found,) = await load(info, [(payload.hierarchy, before[:-1])])
    return found


def _json(value: Any) -> Any:
    """An input as JSON, without what was left out: the same for the same request."""
    if isinstance(value, list):
        return [_json(one) for one in value]
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        parts = {name: getattr(value, name) for name in value.__dataclass_fields__}
        return {name: _json(part) for name, part in parts.items() if part is not strawberry.UNSET}
    return value
