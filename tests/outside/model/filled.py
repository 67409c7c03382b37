"""A store that has some hundred nodes at the beginning, so that lists take more than one small read."""

import json
import random
from typing import Any

from tests.outside.model.session import Session
from tests.outside.processes import EXTREMES, command

Row = dict[str, Any]


def fill(session: Session, step: dict[str, Any]) -> None:
    """Import a tree of both levels at several depths, which the model then has, too."""
    session.steps.append(step)
    if session.trees.nodes:
        return
    rows = _rows(random.Random(step["seed"]))
    file = session.place.folder / f"filled-{step['seed']}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command("import", "thing", str(file), store=session.store, hierarchies=str(EXTREMES))
    session.shown.append(f"clade import of {len(rows)} nodes below filled, seed {step['seed']}")
    query = '{ thing(path: "filled") { id updatedAt descendants { nodes { id updatedAt } } } }'
    top = session.servers[0].ask(query).data["thing"]
    times = {node["id"]: node["updatedAt"] for node in (top, *top["descendants"]["nodes"])}
    for number, row in enumerate(rows, 1):
        *above, key = row["path"].split("/")
        parent = session.trees.at("/".join(above)) if above else None
        values = {name: row[name] for name in ("small", "note", "title", "mark", "sku") if name in row}
        made = {"key": key, "level": row["level"], "name": row["name"], "values": values, "n": -number}
        id = f"thing:{row['id']}"
        session.trees.create(parent["id"] if parent else None, id, made, times[id])
        session.ids[-number] = id
    session.counts["nodes at the beginning"] += len(rows)


def _rows(chance: random.Random) -> list[Row]:
    """Nodes in path order: boxes in boxes, and cards in them."""
    rows: list[Row] = []

    def add(path: str, level: str, deeper: int) -> None:
        extra = {"BOX": {"small": chance.choice((1, 2, 3))}, "CARD": {"title": "x"}, "SLIP": {"mark": "x"}}[level]
        name = f"Filled {chance.choice('abc')}"
        extra |= {"sku": f"filled {len(rows)}"} if chance.random() < 0.2 else {}
        rows.append({"path": path, "level": level, "name": name, "id": f"f{len(rows)}", "note": "n" * 300, **extra})
        if level == "BOX" and deeper:
            for number in range(chance.choice((2, 5, 7))):
                add(f"{path}/{number}", chance.choice(("BOX", "BOX", "CARD", "SLIP")), deeper - 1)

    add("filled", "BOX", 4)
    return rows[:400]
