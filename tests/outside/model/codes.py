"""Codes: unique values by which nodes are named in the place of paths, and looked up.

"A node is named by it in every input, and looked up by the field of its level", as attributes.md says of unique values;
an entity has it as a further key, with `federation_key=True`.
"""

import random
import unicodedata
from typing import Any

from tests.outside.model import values
from tests.outside.model.trees import Node, Trees

Step = dict[str, Any]
LONGEST = 16_384  # "maximum number of characters of a text; 16,384 by default" (attributes.md)
TOO_LONG = "s" * (LONGEST + 1)


# Mutations


def code_of(trees: Trees, node: Node | None) -> str | None:
    """The unique value by which a node is found; None for a node without one, or where another node has it, too."""
    code = node["values"].get("sku") if node else None
    return code if len(trees.with_sku(code)) == 1 else None


def is_named(trees: Trees, step: Step, node: Node | None) -> bool:
    """Whether a step names its node by a unique value."""
    if step.get("by") != "sku" or "path" not in step:
        return False
    return code_of(trees, node) is not None if node else step["do"] in ("update", "delete")


def named(trees: Trees, step: Step, given: Step) -> Step:
    """The input of a step with unique values in the place of paths.

    A path of no node becomes a value that none has. That of the node itself stays where its faults depend on it, in
    moves.
    """
    own = is_named(trees, step, trees.at(step.get("path")))
    position = given.get("position") or {}
    places = [(given, "parent"), (given.get("to") or {}, "parent"), (position, "before"), (position, "after")]
    for owner, name in [*([(given, "node")] if own else []), *places]:
        if isinstance(owner.get(name), dict) and "path" in owner[name]:
            owner[name] = _reference(trees, owner[name]["path"], step["n"])
    return given


def _reference(trees: Trees, path: str, turn: int) -> Step:
    node = trees.at(path)
    code = code_of(trees, node)
    if code is not None:
        return {"sku": spelled(code, turn)}
    if node:
        return {"path": path}
    gone = [one["values"].get("sku") for one in trees.deleted.values()]
    free = [one for one in gone if one is not None and not trees.with_sku(one)]
    return {"sku": [*free, f"none at {path}"[:LONGEST]][turn % (len(free) + 1)]}


def spelled(code: str, turn: int) -> str:
    """A value as it may be written, too: only how Unicode composes characters does not count."""
    return unicodedata.normalize(("NFC", "NFD")[turn % 2], code)


# Look-ups


def some_codes(chance: random.Random, trees: Trees) -> list[str]:
    """Values that nodes have, that they had, and that are like these, or too long."""
    nodes = [*trees.nodes.values()]
    there = [node["values"]["sku"] for node in nodes if "sku" in node["values"]]
    former = [kept["values"].get("sku") for node in (*nodes, *trees.deleted.values()) for kept in node["history"]]
    pool = [*there * 3, *(code for code in former if code is not None), chance.choice(values.SKUS), "nobody"]
    found = [_like(chance, chance.choice(pool)) for _ in range(chance.choice((1, 1, 3, 10)))]
    return [*found[1:], TOO_LONG] if chance.random() < 0.04 else found


def _like(chance: random.Random, code: str) -> str:
    """The value in either normal form, or now and then another one: case and spaces count."""
    if chance.random() < 0.15:
        return chance.choice((code.swapcase(), f"{code} ", f" {code}", code[:-1], f"0{code}"))
    return spelled(code, chance.randrange(2))


def all_codes(trees: Trees) -> list[str]:
    """All values that nodes have, and those that none has any more."""
    nodes = (*trees.nodes.values(), *trees.deleted.values())
    kept = {values.normal(one["values"]["sku"]) for node in nodes for one in node["history"] if "sku" in one["values"]}
    return sorted(kept) or ["nobody"]
