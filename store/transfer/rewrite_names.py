"""Rewriting of former names: attributes that are stored under the name that they had before, in all trees.

Each tree is read and written as by an import: in transactions that leave it consistent, so it can be stopped anywhere
and continued. Each node with a former name is written once, as a revision of its own.
"""

from collections.abc import Callable

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.hierarchy import Hierarchy
from store.transfer.export import root_keys
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Tree


async def rewrite_names(
    store: Store,
    hierarchy: Hierarchy,
    result: LoadResult,
    *,
    dry_run: bool = False,
    on_nodes: Callable[[int], None] = lambda nodes: None,
) -> None:
    """Store attributes under their present names, and add to `result` what is done.

    `on_nodes` is called with each number of nodes written. Raises Conflict where other writes to a tree do not stop.
    """
    plan = ImportPlan(hierarchy, rewrite=True)
    for top in await root_keys(store, hierarchy, ReadUsage()):
        plan.trees[top.pk] = Tree(top.pk)
    await load(store, plan, result, dry_run=dry_run, on_nodes=on_nodes)
