"""Edits of a command with their large moves: the command ends when these have ended, whoever works on them."""

import dataclasses

from store.engine import ReadUsage, Store
from store.errors import BadInput
from store.metadata.moves import Move, MoveState
from store.reading import wait_for_moves
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.writer import Writer

REST = "A large move, deletion or restore that has begun is completed by a server that writes, or by clade repair."


async def make(store: Store, edit: Edit, *, dry_run: bool = False) -> EditResult:
    """Make an edit; its large move has ended then. Raises BadInput with the reason where that was undone."""
    from graph.settings import Settings  # with pydantic, which the help of a command does without

    settings = Settings()
    writer = Writer(store, dataclasses.replace(settings.move_timing, wait_seconds=0.0))
    try:
        options = EditOptions(dry_run, settle_seconds=settings.settle_seconds)
        result = await writer.write(edit, ReadUsage(), options)
        if result.move is None:
            return result
        move = await ended(store, writer, result.move)
        if move.state is MoveState.UNDONE:
            raise BadInput(move.reason or f"The move {move.id} was undone.")
        return dataclasses.replace(result, move=move)
    finally:
        await writer.move_worker.stop()


async def ended(store: Store, writer: Writer, move: Move) -> Move:
    """A move as it ended. Raises Conflict where another process goes on with it for long."""
    await writer.move_worker.finished()
    for partition in move.running.partitions:
        await wait_for_moves(store, partition, ReadUsage())
    (item,) = await store.get([move.key], ReadUsage(), strong=True)
    return move if item is None else Move.of(item)
