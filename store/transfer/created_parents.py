"""Parents that no row of a file describes: `--create-parents` adds them to the plan where their level is clear."""

from store.model.hierarchy import Hierarchy
from store.model.keys import parent_sort_key
from store.transfer.planned_nodes import Node, Tree
from store.transfer.rows import ImportPlan

MAX_WAYS = 1_000  # of levels between two nodes that are compared


def create_parents(plan: ImportPlan) -> None:
    """Add the missing ancestors of all nodes, each with the number of the first row below it.

    A parent whose row was rejected is not created, nor one that may be of several levels.
    """
    plan.may_create_parents = True
    known: dict[tuple[str | None, str, int], tuple[str, ...]] = {}
    for tree in plan.trees.values():
        was_packed = bool(tree.packed)
        _complete(plan, tree, known)
        if was_packed:
            tree.pack()


def _complete(plan: ImportPlan, tree: Tree, known: dict[tuple[str | None, str, int], tuple[str, ...]]) -> None:
    nodes = tree.nodes
    for node in [*nodes.values()]:
        missing: list[str] = []
        sk = node.sk
        while len(sk) > 1 and (sk := parent_sort_key(sk)) not in nodes:
            missing.append(sk)
        if not missing or not tree.rejected.keys().isdisjoint(missing):
            continue
        place = (nodes[sk].level if sk in nodes else None, node.level, len(missing))
        if place not in known:
            known[place] = levels_between(plan.hierarchy, *place)
        for key, level in zip(reversed(missing), known[place], strict=False):
            plan.create(Node(tree.pk, key, level, None, None, node.number), tree)


def levels_between(hierarchy: Hierarchy, above: str | None, below: str, count: int) -> tuple[str, ...]:
    """The levels of `count` nodes between one of the level `above`, None: the root, and one of the level `below`.

    Nothing unless exactly one sequence of levels is possible.
    """
    ways: list[tuple[str, ...]] = [(below,)]
    for _ in range(count):
        ways = [(one, *way) for way in ways for one in hierarchy.any_level(way[0]).under if one is not None][:MAX_WAYS]
    found = [way[:-1] for way in ways if above in hierarchy.any_level(way[0]).under]
    return found[0] if len(found) == 1 else ()
