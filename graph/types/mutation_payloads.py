"""Mutation payloads: the types that mutations return."""

from dataclasses import dataclass
from typing import Any

import strawberry

from graph.types.field import attribute_of, class_of, field
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.move_fields import Move
from graph.types.root_fields import load
from graph.types.scalars import Path
from resolvers.mutations import EditResult
from store.model.keys import Path as NodePath
from store.model.paths import format_path
from store.model.records import Record

_PLAN = {
    "nodes": field(attribute_of("nodes"), int, "Number of nodes to write."),
    "transactions": field(attribute_of("transactions"), int, "Number of transactions."),
    "write_units": field(attribute_of("write_units"), int, "Estimated write units of DynamoDB."),
    "collisions": field(
        lambda plan, info: list(map(format_path, plan.collisions)),
        list[Path],
        "Paths that are taken by other nodes; with any, the mutation would be rejected.",
    ),
}
WritePlan = strawberry.type(class_of("WritePlan", _PLAN), description="The changes that a dry run found necessary.")


@dataclass(frozen=True)
class Payload:
    """The result of a mutation, and the path of its node before; None for a new node."""

    result: EditResult
    hierarchy: str
    before: NodePath | None


async def _previous_parent(payload: Payload, info: Any) -> Record | None:
    if payload.before is None or len(payload.before) == 1 or payload.result.dry_run:
        return None
    (found,) = await load(info, [(payload.hierarchy, payload.before[:-1])])
    return found


def payload_of(types: HierarchyTypes) -> Any:
    """The payload of all mutations of one hierarchy."""
    node: Any = types.interface
    fields = {
        "node": field(
            lambda payload, info: None if payload.result.dry_run else payload.result.record,
            node | None,
            "The node as written, or as it was before its deletion; null for a dry run.",
        ),
        "previous_parent": field(
            _previous_parent,
            node | None,
            "Current content of the node's parent before the mutation; null for a root, a new node and a dry run.",
        ),
        "move": field(
            attribute_of("result.move"),
            Move | None,
            "The move that carries out a mutation of more than one transaction; else null.",
        ),
        "plan": field(
            attribute_of("result.dry_run"), WritePlan | None, "The changes that a dry run found necessary; else null."
        ),
    }
    made = class_of(f"{types.title}Payload", fields)
    return strawberry.type(made, description=f"The result of a mutation of the hierarchy {types.name}.")
