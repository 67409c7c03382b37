"""Deletions of an incremental export: nodes whose items were deleted, unless they have descendants."""

from store.edits.delete import Delete, Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import NotEmpty, NotFound
from store.metadata.change_log import Event
from store.model.records import Record
from store.reading.active_moves import wait_for_moves
from store.transfer.load import LoadResult
from store.transfer.rows import ImportPlan
from store.writer.writer import Writer


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
