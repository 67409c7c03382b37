"""Wishes of the same trees, made together: drafted one after another and committed as few transactions.

Each is drafted over what those before it will leave, so all come out as if they were made one by one, in the order in
which they came. What rests on changes that are not committed yet, refusals too, is told when they are.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from store.edits.overlay import NotCombinable, WriteOverlay
from store.edits.reader import Reader
from store.edits.transaction import WriteContext
from store.engine.protocol import Store
from store.errors import BadInput, CladeError, Conflict, Unavailable, Uncertain
from store.metadata.move_record import Move
from store.model.keys import tree_version_key
from store.reading.recent_changes import RecentChanges
from store.text import rfc3339
from store.writer.dry_run import dry_run
from store.writer.request import EditRequest, EditResult

ATTEMPTS = 20  # at one transaction while others write to the same tree
LONGEST_DELAY_SECONDS = 0.25


class _Drafted(NamedTuple):
    """What comes of a wish if what is pending is committed, and whether changes of its own are among that."""

    wish: EditRequest
    outcome: EditResult | Exception
    changes: bool = False


class GroupCommit:
    """`begin` is told of each journaled move whose beginning is committed; `recent` is kept from group to group.

    What several wishes need is read once, and counted among the reads of the first one that asks for it.
    """

    def __init__(
        self, store: Store, wishes: Sequence[EditRequest], begin: Callable[[Move], object], recent: RecentChanges
    ) -> None:
        self._store = store
        self._begin = begin
        self._recent = recent
        self._view = WriteOverlay(store)
        self._readers = {wish: Reader(store, wish.reads, self._view, recent) for wish in wishes}

    async def make(self) -> None:
        """Settle all wishes; those that nobody waits for any more are left out until their commit has begun."""
        try:
            while self._left():
                await self._advance()
        except Exception as error:
            for wish in self._left():
                wish.settle(error)

    def _left(self) -> list[EditRequest]:
        return [wish for wish in self._readers if not wish.is_settled]

    async def _advance(self) -> None:
        """Settle the first wishes, as many as one transaction takes; again if somebody else was first."""
        drafted: list[_Drafted] = []
        for delay in _delays():
            await asyncio.sleep(delay)
            drafted = await self._drafts()
            if await self._commit(drafted):
                return
            self._view.forget()
        refusal = Conflict("Others are writing to the same tree all the time, so nothing was changed; try again later.")
        for one in drafted:
            one.wish.settle(refusal)

    # -- drafts --------------------------------------------------------------------------------------------------------

    async def _drafts(self) -> list[_Drafted]:
        """Draft as many of the wishes as can be committed together, all of which somebody waits for."""
        drafted = await self._draft_in_order()
        while any(one.wish.is_settled for one in drafted):  # what nobody waits for any more shall not be written
            drafted = await self._draft_in_order()
        return drafted

    async def _draft_in_order(self) -> list[_Drafted]:
        """Draft wishes until one cannot be made together with those before; what rests on nothing pending is told."""
        self._view.drop()
        await self._foresee(self._left())
        drafted: list[_Drafted] = []
        for wish in self._left():
            if drafted:
                await asyncio.sleep(0)  # so that requests that only read are answered in between
            if wish.is_settled:
                continue
            try:
                one = await self._draft(wish)
            except NotCombinable:
                break
            if self._view.is_pending:
                drafted.append(one)
            else:
                wish.settle(one.outcome)
        return drafted

    async def _foresee(self, wishes: Sequence[EditRequest]) -> None:
        """Read in a few goes what several need for certain: what was made already, the stamps, and then the rest."""
        if len(wishes) < 2:
            return
        reads = wishes[0].reads
        await self._view.read([wish.once for wish in wishes if wish.once], reads)
        edits = [wish.edit for wish in wishes if not wish.once or self._view.item(wish.once) is None]
        await self._view.read([tree_version_key(one) for edit in edits for one in sorted(edit.partitions())], reads)
        await self._view.read([key for edit in edits for key in edit.needs()], reads)

    async def _draft(self, wish: EditRequest) -> _Drafted:
        """Raises Later where a wish cannot be made together with what is pending."""
        try:
            if (made := await self._made(wish, self._readers[wish])) is not None:
                return _Drafted(wish, made)
            now = time.time()
            draft = await wish.edit.draft(self._readers[wish], WriteContext(rfc3339(now), now, wish.terms.by))
            if wish.terms.dry_run:
                return _Drafted(wish, EditResult(draft.record, await dry_run(draft, self._store)))
            changes = wish.changes(draft, self._store.most_changes)
            await self._view.take(changes)
            return _Drafted(wish, EditResult(draft.record, move=draft.move), bool(changes))
        except NotCombinable:
            raise
        except Exception as error:
            return _Drafted(wish, await self._refusal(wish, error))

    async def _made(self, wish: EditRequest, reader: Reader) -> EditResult | None:
        """What a wish has changed already under its idempotency key."""
        item = None if wish.once is None else (await reader.seen([], [wish.once])).item(wish.once)
        if item is None:
            return None
        record, key = wish.repeated(item)
        move = None if key is None else (await reader.seen([], [key])).item(key)
        return EditResult(await reader.content_of(record), move=None if move is None else Move.of(move))

    async def _refusal(self, wish: EditRequest, error: Exception) -> EditResult | Exception:
        """What is told of a wish that failed. What stands in its way may be itself, made for somebody who asked another
        process for the same, or by a commit whose answer was lost.
        """
        if not isinstance(error, CladeError):
            return error
        try:
            return await self._made(wish, Reader(self._store, wish.reads)) or error
        except Unavailable as worse:
            return error if isinstance(error, Unavailable) else Uncertain.after(worse)
        except CladeError as worse:
            return worse

    # -- commits -------------------------------------------------------------------------------------------------------

    async def _commit(self, drafted: Sequence[_Drafted]) -> bool:
        """Commit what is pending and tell what came of it; False where all of it has to be drafted anew."""
        try:
            if drafted:
                await self._store.commit(self._view.changes)
        except Conflict:
            return False
        except Exception as error:
            await self._fail([one for one in drafted if one.changes], error)
            return True
        self._view.keep()
        for one in drafted:
            self._begin_move(one)
            one.wish.settle(one.outcome)
        return True

    def _begin_move(self, one: _Drafted) -> None:
        if one.changes and isinstance(one.outcome, EditResult) and one.outcome.move is not None:
            self._begin(one.outcome.move)

    async def _fail(self, drafted: Sequence[_Drafted], error: Exception) -> None:
        """Tell those whose changes could not be committed, or who cannot know; what rests on them is drafted anew."""
        self._view.forget()
        wishes = [one.wish for one in drafted]
        if isinstance(error, BadInput) and len(wishes) > 1:  # one of them cannot be stored, and only that one
            for wish in wishes:
                await GroupCommit(self._store, [wish], self._begin, self._recent).make()
            return
        if isinstance(error, Unavailable):  # it may be committed, and a move that is not finds no record of its own
            for one in drafted:
                self._begin_move(one)
        refusals = await asyncio.gather(*[self._refusal(wish, error) for wish in wishes])
        for wish, refusal in zip(wishes, refusals, strict=True):
            wish.settle(refusal)


def _delays() -> Iterator[float]:
    """How long to wait before each attempt; random, so that those who met once do not meet again."""
    yield 0.0
    for attempt in range(1, ATTEMPTS):
        yield random.uniform(0.0, min(LONGEST_DELAY_SECONDS, 0.01 * attempt))  # noqa: S311 - no secret
