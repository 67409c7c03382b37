"""What mutations answer."""

from typing import Any

import strawberry

from graph.field import class_of, field
from graph.moves import Move
from graph.scalars import Path
from graph.types import HierarchyTypes
from store.keys import format_path

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


def payload_of(types: HierarchyTypes) -> Any:
    """The payload of all mutations of one hierarchy."""
    node: Any = types.interface
    fields = {
        "node": field(
            lambda written, info: None if written.forecast else written.record,
            node | None,
            "The node as it was written, of a deleted one as it was at last; null for a dry run.",
        ),
        "move": field(
            lambda written, info: written.move,
            Move | None,
            "The move by which it is done, where that takes more than one transaction; else null.",
        ),
        "plan": field(
            lambda written, info: written.forecast, WritePlan | None, "What a dry run would change; else null."
        ),
    }
    made = class_of(f"{types.title}Payload", fields)
    return strawberry.type(made, description=f"What a mutation of the hierarchy {types.name} answers.")
