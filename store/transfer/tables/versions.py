"""Former versions of nodes, as items of their own: each becomes a revision, so that they are the node's history.

Revision n is the nth version that differs from the one before. They are imported one after another, and only where the
node has no such revision yet; so the same import again adds none. Deletions of an incremental export come last.
"""

from store.concurrency import in_chunks
from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import NotEmpty, NotFound
from store.metadata.change_log import Event
from store.model.attributes import Value
from store.model.keys import Key
from store.model.records import Record
from store.reading.active_moves import wait_for_moves
from store.reading.pages import PAGE_ITEMS
from store.transfer.load import LoadResult
from store.transfer.rows import ImportPlan, Node, Tree
from store.writer.writer import Writer


def arrange_versions(plan: ImportPlan) -> list[tuple[ImportPlan, dict[Key, int]]]:
    """The plans of the former versions, oldest first, each with the revision that its nodes get.

    The newest version of a node is its current one where the table has no current one. Attributes that a version lacks
    and another has are removed by it. Versions that equal the one before are left out.
    """
    numbers = sorted(plan.versions)
    found: dict[Key, list[tuple[int, Node]]] = {}
    for number in numbers:
        for tree in plan.versions[number].trees.values():
            for node in tree.nodes.values():
                found.setdefault(node.key, []).append((number, node))
    revisions: dict[int, dict[Key, int]] = {number: {} for number in numbers}
    for key, versions in found.items():
        _arrange(plan, key, versions, revisions)
    for number in numbers:
        plan.rejections += plan.versions[number].rejections
        plan.versions[number].rejections = []
    return [(plan.versions[number], revisions[number]) for number in numbers]


async def leave_existing_out(store: Store, plan: ImportPlan, revisions: dict[Key, int]) -> None:
    """Take the nodes out of a plan that have this revision, or a later one, in the table."""
    nodes = [node for tree in plan.trees.values() for node in tree.nodes.values()]
    reads = ReadUsage()
    async for page in in_chunks(nodes, PAGE_ITEMS):
        for node, item in zip(page, await store.get([node.key for node in page], reads, strong=True), strict=True):
            revision = item["revision"] if item else 0
            if isinstance(revision, int) and revision >= revisions[node.key]:
                del plan.trees[node.pk].nodes[node.sk]


def _arrange(
    plan: ImportPlan, key: Key, versions: list[tuple[int, Node]], revisions: dict[int, dict[Key, int]]
) -> None:
    tree = plan.trees.setdefault(key.pk, Tree(key.pk))
    current = tree.nodes.get(key.sk)
    if current is None:
        number, current = versions.pop()
        del plan.versions[number].trees[key.pk].nodes[key.sk]
        tree.nodes[key.sk] = current
        plan.nodes += 1
    nodes = [*(node for _, node in versions), current]
    names = dict.fromkeys(name for node in nodes for name in node.values)
    for node in nodes:
        node.values = {**dict.fromkeys(names), **node.values}
    is_bare = all(node.name is None and not node.values for _, node in versions)
    earlier: tuple[str | None, dict[str, Value]] | None = None
    for number, node in versions:
        content = (node.name, node.values)
        if content == earlier:
            del plan.versions[number].trees[key.pk].nodes[key.sk]
            continue
        if is_bare:  # only an ancestor of versions: with its present content it is created once
            plan.versions[number].trees[key.pk].nodes[key.sk] = current
        revisions[number][key] = sum(key in others for others in revisions.values()) + 1
        earlier = content


def leave_wanted_out(plan: ImportPlan) -> None:
    """Take those deletions out of a plan whose node it has, too, such as the parent of a new one."""
    plan.deleted = {
        key: number for key, number in plan.deleted.items()
        if key.pk not in plan.trees or key.sk not in plan.trees[key.pk].nodes
    }  # fmt: skip


async def delete_nodes(store: Store, plan: ImportPlan, result: LoadResult) -> int:
    """Delete the nodes of `plan.deleted`, children first, and count them in `result`; absent ones are left out.

    Returns the number of nodes that stay because they have children.
    """
    writer, reads, kept = Writer(store), ReadUsage(), 0
    for key in sorted(plan.deleted, reverse=True):
        (item,) = await store.get([key], reads, strong=True)
        if item is None:
            continue
        record = Record.of(item)
        await wait_for_moves(store, key.pk, reads)
        try:
            await writer.write(Delete(plan.hierarchy, record.path, Policy.REFUSE), reads)
        except NotEmpty:
            kept += 1
        except NotFound:
            continue
        else:
            result.note(Event.DELETED, record.level, key)
    return kept
