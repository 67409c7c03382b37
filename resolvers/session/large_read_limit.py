"""Limit of large reads: so many requests at a time, since what is read takes memory until it is written."""

import asyncio

LARGE = 500  # nodes; whoever may read no more never waits
MOST = 4  # more at a time finish no sooner: they wait for the same processor


class LargeReadLimiter:
    """So many requests at a time have their turn, and of those that wait the one that came first is next.

    None of these has to wait for another before it gives its turn back.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.under_way = 0
        self._waiting: dict[asyncio.Future[None], None] = {}  # a mapping, since any of them may go

    def take(self) -> "asyncio.Future[None]":
        """A turn, which begins when the future is done; it has to be given back, also before that."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        self._begin()
        return turn

    def give_back(self, turn: "asyncio.Future[None]") -> None:
        """End a turn, or wait for it no longer."""
        if turn.cancel():
            del self._waiting[turn]
        else:  # it has begun
            self.under_way -= 1
        self._begin()

    def _begin(self) -> None:
        while self._waiting and self.under_way < self.most:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            turn.set_result(None)
            self.under_way += 1


class Slot:
    """What one request may read: up to LARGE nodes at once, more when its turn comes; all at once without `turns`.

    Its end is final: nothing is taken after it.
    """

    def __init__(self, turns: LargeReadLimiter | None) -> None:
        self._turns = turns
        self._expected = 0
        self._taken: asyncio.Future[None] | None = None
        self._has_ended = False

    def expect(self, nodes: int) -> None:
        """Note that up to so many nodes more are about to be read."""
        self._expected += nodes
        if self._expected > LARGE and self._taken is None and self._turns is not None and not self._has_ended:
            self._taken = self._turns.take()

    async def come(self) -> None:
        """Wait until it may read what it expects."""
        if self._taken is not None and not self._taken.done():
            await asyncio.shield(self._taken)  # which its other reads wait for, too

    def end(self) -> None:
        """Give back what it has taken, and take nothing more."""
        self._has_ended = True
        if self._taken is not None and self._turns is not None:
            self._turns.give_back(self._taken)
            self._taken = None
