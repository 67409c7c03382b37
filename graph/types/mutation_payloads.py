"""Payloads: what mutations return."""

from dataclasses import dataclass
from typing import Any

import strawberry

from graph.types.field import class_of, field
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.move_fields import Move
from graph.types.root_fields import load
from graph.types.scalars import Path
from resolvers.mutations import EditResult
from store.model.keys import Path as NodePath
from store.model.paths import format_path
from store.model.records import Record

_PLAN = {
    "nodes": field(lambda plan, info: plan.nodes, int, "How many nodes would be written."),
    "transactions": field(lambda plan, info: plan.transactions, int, "In how many transactions."),
    "write_units": field(lambda plan, info: plan.write_units, int, "About how many write units of DynamoDB it takes."),
    "collisions": field(
        lambda plan, info: list(map(format_path, plan.collisions)),
        list[Path],
        "Paths that other nodes have already, so that it would be refused.",
    ),
}
WritePlan = strawberry.type(class_of("WritePlan", _PLAN), description="What a mutation would change.")


@dataclass(frozen=True)
class Payload:
    """What a mutation has written, and the path at which its node lay before; None for a new node."""

    written: EditResult
    hierarchy: str
    before: NodePath | None


async def _previous_parent(payload: Payload, info: Any) -> Record | None:
    if payload.before is None or len(payload.before) == 1 or payload.written.dry_run:
        return None
    (found,) = await load(info, [(payload.hierarchy, payload.before[:-1])])
    return found


def payload_of(types: HierarchyTypes) -> Any:
    """The payload of all mutations of one hierarchy."""
    node: Any = types.interface
    fields = {
        "node": field(
            lambda payload, info: None if payload.written.dry_run else payload.written.record,
            node | None,
            "The node as it was written, of a deleted one as it was at last; null for a dry run.",
        ),
        "previous_parent": field(
            _previous_parent,
            node | None,
            "The node under which it lay before, as it is now; null for a root, a new node and a dry run.",
        ),
        "move": field(
            lambda payload, info: payload.written.move,
            Move | None,
            "The move by which it is done, where that takes more than one transaction; else null.",
        ),
        "plan": field(
            lambda payload, info: payload.written.dry_run, WritePlan | None, "What a dry run would change; else null."
        ),
    }
    made = class_of(f"{types.title}Payload", fields)
    return strawberry.type(made, description=f"What a mutation of the hierarchy {types.name} answers.")
