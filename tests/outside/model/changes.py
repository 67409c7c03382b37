"""Changes: what a mutation that was made does to the model."""

from typing import Any

from tests.outside.model.trees import Node, Trees
from tests.outside.model.values import normal

Step = dict[str, Any]


def make(trees: Trees, step: Step, id: str, at: str) -> None:
    """Change the trees; the id of the node that the mutation is about, and the time of what it writes."""
    if step["do"] == "create":
        parent = trees.at(step["parent"])
        trees.create(parent["id"] if parent else None, id, step, at)
        return
    if step["do"] == "restore":
        parent, key = place_of(trees, step, trees.deleted[id])
        trees.restore(id, parent["id"] if parent else None, key, at)
        return
    node = trees.nodes[id]
    match step["do"]:
        case "update" if trees.changed(node, step):
            trees.update(node, step, at)
        case "rename" if normal(step["key"]) != node["key"]:
            trees.move(node, node["parent"], step["key"])
        case "move":
            to = trees.at(step["to"])
            if (to["id"] if to else None) != node["parent"]:
                trees.move(node, to["id"] if to else None, node["key"])
        case "reorder":
            _reorder(trees, node, step)
        case "delete":
            trees.delete(node, step["policy"], at)


def place_of(trees: Trees, step: Step, gone: Node) -> tuple[Node | None, str]:
    """The parent, None for a root, and the key where a step restores a deleted node."""
    parent = trees.at(step["to"]) if "to" in step else trees.nodes.get(gone["parent"] or "")
    return parent, step.get("key", gone["key"])


def _reorder(trees: Trees, node: Node, step: Step) -> None:
    order = list(trees.siblings[(node["parent"], node["level"])])
    rest = [id for id in order if id != node["id"]]
    place = 0 if "first" in step else len(rest)
    for name, more in (("before", 0), ("after", 1)):
        if name in step:
            other = trees.at(step[name])
            assert other
            place = rest.index(other["id"]) + more
    rest.insert(place, node["id"])
    if rest != order:
        trees.reorder(node, rest)
